"""What a seat knows: all of it, nothing more, and fair draws of what it does not know."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referee import Referee
from tables import (
    GAMES,
    Table,
    chi_square,
    chi_square_bound,
    follow_match,
    jacks_of,
    random_rules,
    voids_of,
)

from valety_env.cards import GENERAL, PASS, cards_of
from valety_env.engine import PUBLIC, STATE, legal_actions, play
from valety_env.observations import ENCODERS, encode_views, make_encoder
from valety_env.rules import Rules, make_rules
from valety_env.view import SCRATCH_SIZE, VIEW, imagine, look, unseen_cards, view_legal

PHASES = {"calls": 0, "plays": 1, "waiting for a deal": 2, "over": 3}
SUITS = "SCDH"


def view_of(table: Table, seat: int) -> np.ndarray:
    """Return what a seat knows, VIEW (1,), written over what lay there before."""
    view = np.frombuffer(b"\xa5" * VIEW.itemsize, VIEW).copy()
    clean = np.zeros(1, VIEW)
    look(table.record, table.state, seat, view[0])
    for name in VIEW.names or ():
        clean[name] = view[name]  # all but the gaps between fields
    return clean


def view_from(referee: Referee, rules: Rules, seat: int) -> np.ndarray:
    """Return the view of a seat, VIEW (1,), from what a referee says and the seat has seen."""
    order = rules.rank_order

    def number(card: str) -> int:
        return 13 * SUITS.index(card[1]) + order.index(card[0])

    def bits(items: list[int]) -> int:
        return sum(1 << item for item in items)

    players = rules.num_players
    assert rules.hand_size is not None
    view = np.zeros(1, VIEW)
    record = view[0]
    record.hand = bits([number(card) for card in referee.hands[seat]])
    record.table = -1
    in_trick = len(referee.plays) % players
    on_table = referee.plays[len(referee.plays) - in_trick :]
    for other in range(players):
        played = [card for who, card in referee.plays if who == other]
        record.played[other] = bits([number(card) for card in played])
        record.hand_sizes[other] = rules.hand_size - len(played)
        record.totals[other] = referee.totals[other]
        record.tricks[other] = referee.trick_winners.count(other)
        record.jacks[other] = bits([SUITS.index(s) for s in jacks_of(referee)[other]])
        record.voids[other] = bits([SUITS.index(s) for s in voids_of(referee)[other]])
    for who, card in on_table:
        record.table[who] = number(card)
    record.deal = referee.deal_number
    record.seat = seat
    record.phase = PHASES[referee.phase]
    record.dealer = referee.dealer
    record.leader = referee.leader
    to_move = referee.to_move()
    record.turn = referee.trick_winners[-1] if to_move is None else to_move
    record.turned = -1 if referee.turned is None else number(referee.turned)
    record.trump = -1 if referee.trump is None else SUITS.index(referee.trump)
    record.general = -1 if referee.general is None else referee.general
    record.num_calls = len(referee.calls)
    record.num_plays = len(referee.plays)
    record.led, record.best_seat, record.best_card = -1, -1, -1
    if on_table:
        led = on_table[0][1][1]

        def strength(play: tuple[int, str]) -> tuple[bool, bool, int]:
            card = play[1]
            return card[1] == referee.trump, card[1] == led, order.index(card[0])

        record.led = SUITS.index(led)
        who, card = max(on_table, key=strength)
        record.best_seat, record.best_card = who, number(card)
    for place, (_, card) in enumerate(referee.plays):
        record.history[place] = number(card)
    return view


def assert_same_view(view: np.ndarray, expected: np.ndarray) -> None:
    if view.tobytes() != expected.tobytes():
        for name in VIEW.names or ():
            np.testing.assert_array_equal(view[name], expected[name], err_msg=name)
        raise AssertionError("the views differ between their fields")


@pytest.mark.parametrize("game", GAMES)
def test_a_view_is_what_the_seat_has_seen(game: str) -> None:
    rules = GAMES[game]
    for table, referee in follow_match(rules, seed=1, most_deals=2):
        for seat in range(rules.num_players):
            assert_same_view(view_of(table, seat), view_from(referee, rules, seat))


def test_a_view_is_what_the_seat_has_seen_under_all_options() -> None:
    for number in range(150):
        rules = random_rules(random.Random(number))
        for table, referee in follow_match(rules, number, general_odds=0.2, most_deals=2):
            seat = (len(referee.plays) + number) % rules.num_players
            assert_same_view(view_of(table, seat), view_from(referee, rules, seat))


@pytest.mark.plain
def test_a_view_of_a_deal_of_either_game_is_what_the_seat_has_seen() -> None:
    for game in ("valety", "polignac-3"):
        rules = GAMES[game]
        for table, referee in follow_match(rules, seed=4, most_deals=1):
            for seat in range(rules.num_players):
                expected = view_from(referee, rules, seat)
                assert_same_view(view_of(table, seat), expected)


def random_time(rules: Rules, seed: int) -> Table:
    """Return a table at a random time of a random match."""
    rng = random.Random(seed)
    table = Table(rules).start(seed)
    for _ in range(rng.randrange(3)):
        table.play_out(rng, general_odds=0.1)
        if table.phase == "over":
            table.start(seed, episode=1)
        else:
            table.deal_on()
    for _ in range(rng.randrange(len(rules.pack) + rules.num_players)):
        if table.phase in ("waiting for a deal", "over"):
            break
        if table.phase == "calls":
            action = GENERAL if rng.random() < 0.1 else PASS
        else:
            action = rng.choice(cards_of(legal_actions(table.record, table.state)))
        play(table.record, table.state, action)
    return table


def redealt(table: Table, seat: int, rng: random.Random) -> Table:
    """Return the table with all that a seat cannot see dealt anew, and another seed."""
    other = Table(table.rules)
    other.states[0] = table.states[0]
    state = other.state
    shown = -1
    if table.rules.trump == "last_card":
        shown = int(state.turned)
    hidden = table.names(0)
    for who in range(table.num_players):
        if who != seat:
            hidden += [card for card in table.hands[who] if table.number(card) != shown]
    hidden += table.undealt
    rng.shuffle(hidden)
    for who in range(table.num_players):
        if who != seat:
            keeps = [card for card in table.hands[who] if table.number(card) == shown]
            new = [hidden.pop() for _ in range(len(table.hands[who]) - len(keeps))]
            state.hand[who] = sum(1 << table.number(card) for card in keeps + new)
    state.seed = rng.getrandbits(64)
    state.episode = rng.getrandbits(32)
    return other


def rows_of(table: Table, seat: int) -> list[bytes]:
    """Return what every encoder makes of what a seat knows."""
    rows = []
    for name in ENCODERS:
        encoder = make_encoder(name, table.rules)
        row = np.zeros((1, encoder.layout.size), np.uint8)
        view = view_of(table, seat)
        encode_views(encoder.code, table.rules.packed, view, row)
        rows.append(row.tobytes())
    return rows


@pytest.mark.plain
@pytest.mark.parametrize("game", GAMES)
@given(seed=st.integers(0, 2**32 - 1), who=st.integers(0, 6))
def test_a_view_does_not_change_when_all_that_is_hidden_does(
    game: str, seed: int, who: int
) -> None:
    rules = GAMES[game]
    table = random_time(rules, seed)
    seat = who % rules.num_players
    other = redealt(table, seat, random.Random(seed))
    assert view_of(table, seat).tobytes() == view_of(other, seat).tobytes()
    assert rows_of(other, seat) == rows_of(table, seat)


def test_a_view_does_not_change_when_all_that_is_hidden_does_under_all_options() -> None:
    changed = 0
    for number in range(300):
        rules = random_rules(random.Random(number))
        table = random_time(rules, number)
        for seat in range(rules.num_players):
            other = redealt(table, seat, random.Random(number))
            changed += other.hands != table.hands
            assert view_of(table, seat).tobytes() == view_of(other, seat).tobytes()
    assert changed > 300


@pytest.mark.plain
def test_what_is_public_lies_first_and_alike_in_every_record() -> None:
    public = PUBLIC.names or ()
    end = 0
    for name in public:
        dtype, place = (PUBLIC.fields or {})[name][:2]
        # Without gaps: what is copied is the fields and no more.
        assert place == end
        end += dtype.itemsize
        for record in (STATE, VIEW):
            assert (record.fields or {})[name][:2] == (dtype, place)
    for record in (STATE, VIEW):
        for name in set(record.names or ()) - set(public):
            assert (record.fields or {})[name][1] >= end
    secret = {"hand", "seed", "episode", "winners"}
    assert set(STATE.names or ()) - set(public) == secret


@pytest.mark.plain
@pytest.mark.parametrize("game", ["valety", "polignac-3", "polignac-7"])
def test_no_byte_of_a_view_tells_what_is_hidden(game: str) -> None:
    rng = random.Random(4)
    rules = GAMES[game]
    for seed in range(5):
        table = random_time(rules, seed)
        seat = seed % rules.num_players
        views = []
        for _ in range(2):
            # Not a copy: numpy leaves the gaps between fields out.
            state = np.frombuffer(bytearray(rng.randbytes(STATE.itemsize)), STATE)
            for name in PUBLIC.names or ():
                state[name] = table.states[name]
            state[0].hand[seat] = table.state.hand[seat]
            view = np.frombuffer(bytearray(b"\xa5" * VIEW.itemsize), VIEW)
            look(table.record, state[0], seat, view[0])
            views.append(view.tobytes())
        # With the gaps between fields, which is where too many bytes would come to lie.
        assert views[0] == views[1]


@pytest.mark.plain
def test_the_legal_actions_of_a_view_are_those_of_the_table_for_the_seat_to_move() -> None:
    for game in ("valety", "polignac-5"):
        rules = GAMES[game]
        for table, referee in follow_match(rules, seed=8, most_deals=1):
            for seat in range(rules.num_players):
                legal = table.names(view_legal(table.record, view_of(table, seat)[0]))
                expected = table.legal() if seat == referee.to_move() else []
                assert legal == expected


# Imagining


class Imaginer:
    """Draws states behind a view."""

    def __init__(self, table: Table, seat: int) -> None:
        self.rules = table.rules
        self.seat = seat
        self.view = view_of(table, seat)
        self.scratch = np.full(SCRATCH_SIZE, np.nan)
        self.other = Table(table.rules)

    def draw(self, key: int) -> Table:
        """Return a table drawn, overwritten by the next draw."""
        self.other.states.view(np.uint8)[:] = 0xA5
        imagine(self.rules.record, self.view[0], np.uint64(key), self.scratch, self.other.state)
        return self.other

    def hands(self, key: int) -> tuple[int, ...]:
        """Return the hands drawn, as whole numbers."""
        state = self.draw(key).state
        return tuple(int(state.hand[seat]) for seat in range(self.rules.num_players))


def assert_consistent(table: Table, seat: int, keys: int) -> None:
    """Check that draws behind a seat's view are states that it could be looking at."""
    imaginer = Imaginer(table, seat)
    rules = table.rules
    pack = {table.number(card) for card in rules.pack}
    played = {table.number(card) for _, card in table.plays}
    turned_up = {int(table.state.turned)} if rules.trump == "turned" else set()
    for key in range(keys):
        drawn = imaginer.draw(key)
        assert view_of(drawn, seat).tobytes() == imaginer.view.tobytes()
        hands = [{table.number(card) for card in hand} for hand in drawn.hands]
        assert hands[seat] == {table.number(card) for card in table.hands[seat]}
        assert [len(hand) for hand in hands] == [len(hand) for hand in table.hands]
        everyone = [card for hand in hands for card in hand]
        assert len(set(everyone)) == len(everyone)
        assert set(everyone) <= pack - played - turned_up
        for other in range(rules.num_players):
            if other != seat:
                for card in drawn.hands[other]:
                    assert card[1] not in table.voids[other]
        if rules.trump == "last_card" and int(table.state.turned) not in played:
            assert table.turned in drawn.hands[table.dealer]
        for name in STATE.names or ():
            if name not in ("hand", "seed", "episode", "winners"):
                np.testing.assert_array_equal(drawn.states[name], table.states[name], err_msg=name)
        if table.phase == "plays":
            assert drawn.to_move() == table.to_move()
            if drawn.to_move() == seat:
                assert drawn.legal() == table.legal()
            else:
                assert drawn.legal()


@pytest.mark.parametrize("game", GAMES)
def test_imagined_states_are_consistent_with_the_view(game: str) -> None:
    for seed in range(40):
        table = random_time(GAMES[game], seed)
        assert_consistent(table, seed % table.num_players, keys=3)


def test_imagined_states_are_consistent_with_the_view_under_all_options() -> None:
    for number in range(300):
        rules = random_rules(random.Random(number))
        table = random_time(rules, number)
        assert_consistent(table, number % rules.num_players, keys=3)


@pytest.mark.plain
def test_P3_the_dealers_shown_card_stays_his_in_every_imagined_state_until_it_is_played() -> None:
    rules = make_rules(
        "polignac", trump="last_card", hand_size=4, pack=GAMES["polignac-7"].pack[:16]
    )
    for seed in range(6):
        table = Table(rules).start(seed)
        assert_consistent(table, (table.dealer + 1) % 4, keys=2)
        assert_consistent(table, table.dealer, keys=2)
        seat = (table.dealer + 1 + seed % 3) % 4
        unseen = table.names(unseen_cards(table.record, view_of(table, seat)[0]))
        hidden = [card for who in range(4) if who != seat for card in table.hands[who]]
        assert sorted(unseen) == sorted(card for card in hidden if card != table.turned)


def test_what_was_imagined_can_be_played_on_to_the_end_of_the_deal() -> None:
    rng = random.Random(6)
    for number in range(100):
        table = random_time(random_rules(rng), number)
        drawn = Imaginer(table, number % table.num_players).draw(number)
        drawn.play_out(rng)
        assert drawn.phase in ("waiting for a deal", "over")


def consistent_hands(table: Table, seat: int, most: int) -> list[tuple[int, ...]] | None:
    """Return every way to fill the other hands that fits what a seat knows, by trying all.

    None if there are more than `most` ways to try.
    """
    view = view_of(table, seat)[0]
    shown = -1
    if table.rules.trump == "last_card" and not view.played[view.dealer] >> np.uint64(
        view.turned
    ) & np.uint64(1):
        shown = int(view.turned)
    seen = {int(c) for s in range(table.num_players) for c in cards_of(view.played[s])}
    seen |= set(cards_of(view.hand)) | {int(view.turned)}
    unseen = [n for n in map(table.number, table.rules.pack) if n not in seen]
    others = [who for who in range(table.num_players) if who != seat]
    sizes = [int(view.hand_sizes[who]) - (shown >= 0 and who == view.dealer) for who in others]
    tries, left = 1, len(unseen)
    for size in sizes:
        tries *= comb(left, size)
        left -= size
    if tries > most:
        return None

    def fill(place: int, rest: list[int]) -> Iterator[dict[int, int]]:
        if place == len(others):
            yield {}
            return
        who = others[place]
        void = [SUITS.index(suit) for suit in table.voids[who]]
        for cards in combinations(rest, sizes[place]):
            if any(card // 13 in void for card in cards):
                continue
            held = sum(1 << card for card in cards)
            if shown >= 0 and who == view.dealer and seat != who:
                held |= 1 << shown
            for others_held in fill(place + 1, [card for card in rest if card not in cards]):
                yield {who: held} | others_held

    return [
        tuple(int(view.hand) if who == seat else held[who] for who in range(table.num_players))
        for held in fill(0, unseen)
    ]


def constrained(table: Table, seat: int) -> int:
    """Return how many other seats have shown a void and still hold cards."""
    return sum(
        bool(table.voids[who]) and bool(table.hands[who])
        for who in range(table.num_players)
        if who != seat
    )


# A small game of each kind, and how many seats with shown voids the position must have.
SMALL = {
    "two-most-cards-undealt": (make_rules("valety-L8"), 0),
    "two-a-void-cards-undealt": (make_rules("valety-L8"), 1),
    "three-a-void-cards-undealt": (
        make_rules("knaves", pack=GAMES["valety-L7"].pack, hand_size=4, trump="turned"),
        1,
    ),
    "three-two-voids-cards-undealt": (
        make_rules("knaves", pack=GAMES["valety-L7"].pack, hand_size=4, trump="none"),
        2,
    ),
    "four-one-void-all-dealt": (make_rules("polignac", pack=GAMES["valety-L7"].pack), 1),
    "four-two-voids-all-dealt": (make_rules("polignac", pack=GAMES["valety-L7"].pack), 2),
    "five-three-voids-all-dealt": (
        make_rules("polignac", num_players=5, pack=GAMES["polignac-4"].pack[-20:]),
        3,
    ),
    "four-a-card-shown-no-void": (
        make_rules("polignac", pack=GAMES["valety-L4"].pack, trump="last_card"),
        0,
    ),
    "four-a-card-shown-two-voids": (
        make_rules("polignac", pack=GAMES["valety-L7"].pack, trump="last_card"),
        2,
    ),
}


def find_position(
    rules: Rules, voids: int, shown: bool, some: range
) -> tuple[Table, int, list[tuple[int, ...]]]:
    """Return a random time, a seat, and all hands that fit, so many that a draw can be tested."""
    for seed in range(4000):
        table = random_time(rules, seed)
        seat = seed % rules.num_players
        if table.phase != "plays" or constrained(table, seat) != voids:
            continue
        if shown and (seat == table.dealer or table.turned not in table.hands[table.dealer]):
            continue
        hands = consistent_hands(table, seat, most=40_000)
        if hands is None or len(hands) not in some:
            continue
        # A void must rule something out, or it shows nothing.
        unseen = table.names(unseen_cards(table.record, view_of(table, seat)[0]))
        if voids and not any(
            card[1] in table.voids[who]
            for who in range(rules.num_players)
            if who != seat and table.hands[who]
            for card in unseen
        ):
            continue
        return table, seat, hands
    raise AssertionError("no such position was found")


@pytest.mark.parametrize("kind", SMALL)
def test_every_consistent_deal_is_imagined_equally_often(kind: str) -> None:
    rules, voids = SMALL[kind]
    table, seat, hands = find_position(rules, voids, rules.trump == "last_card", range(30, 500))
    assert len(set(hands)) == len(hands)
    assert tuple(int(table.state.hand[who]) for who in range(rules.num_players)) in hands
    imaginer = Imaginer(table, seat)
    drawn = Counter(imaginer.hands(key) for key in range(40 * len(hands)))
    assert set(drawn) == set(hands)
    assert chi_square(list(drawn.values())) < chi_square_bound(len(hands))


def test_every_consistent_deal_is_imagined_equally_often_in_many_positions() -> None:
    tried = 0
    for number in range(700):
        rules = random_rules(random.Random(number))
        table = random_time(rules, number)
        seat = number % rules.num_players
        if not constrained(table, seat):
            continue
        hands = consistent_hands(table, seat, most=3000)
        if hands is None or not 2 <= len(hands) <= 200:
            continue
        tried += 1
        imaginer = Imaginer(table, seat)
        drawn = Counter(imaginer.hands(key) for key in range(25 * len(hands)))
        assert set(drawn) == set(hands), number
        bound = chi_square_bound(len(hands), sigmas=5)
        assert chi_square(list(drawn.values())) < bound, number
    assert tried >= 25


@pytest.mark.plain
def test_a_shown_void_is_respected_and_every_other_hand_is_drawn() -> None:
    rules = make_rules("valety-L4", trump="none", hand_size=3)
    table = Table(rules).begin(0, "QH KH AD", "JD QC KC").act("QH JD")
    assert table.voids == [[], ["H"]]
    imaginer = Imaginer(table, 0)
    drawn = {frozenset(imaginer.draw(key).hands[1]) for key in range(200)}
    assert drawn == {frozenset(pair) for pair in combinations("JC QC KC AC QD KD".split(), 2)}


@pytest.mark.plain
def test_a_draw_is_fixed_by_its_key() -> None:
    imaginer = Imaginer(Table(GAMES["polignac-4"]).start(3), 1)
    drawn = [imaginer.hands(key) for key in range(50)]
    assert len(set(drawn)) == 50
    assert [imaginer.hands(key) for key in range(50)] == drawn


def test_late_deals_of_the_full_game_are_imagined_equally_often() -> None:
    found = 0
    for seed in range(3000):
        table = random_time(GAMES["polignac-4"], seed)
        seat = seed % 4
        if constrained(table, seat) < 2 or sum(map(len, table.hands)) < 9:
            continue
        hands = consistent_hands(table, seat, most=20_000)
        if hands is None or not 10 <= len(hands) <= 400:
            continue
        imaginer = Imaginer(table, seat)
        drawn = Counter(imaginer.hands(key) for key in range(30 * len(hands)))
        assert set(drawn) == set(hands)
        assert chi_square(list(drawn.values())) < chi_square_bound(len(hands), sigmas=5)
        found += 1
        if found == 6:
            return
    raise AssertionError("too few positions were found")

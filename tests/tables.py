"""Tables of the engine for tests: driven by card names, and read as a referee is read."""

import random
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from referee import Referee

from valety_env.cards import GENERAL, PASS, RANKS, SUITS, card_name, card_set, cards_of, parse_card
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    PLAYS,
    STATE,
    begin_deal,
    deal_points,
    deal_winner,
    first_leader,
    legal_actions,
    next_deal,
    play,
    seat_of_play,
    set_hands,
    start_match,
    undealt_cards,
)
from valety_env.episode import observe
from valety_env.observations import make_encoder
from valety_env.rules import PRESETS, Rules, make_rules
from valety_env.view import VIEW, look

# Every game, with every number of players that it has a pack for.
GAMES: dict[str, Rules] = {
    **{game: make_rules(game) for game in PRESETS if not game.startswith("polignac")},
    **{
        f"{game}-{players}": make_rules(game, num_players=players)
        for game in ("polignac", "polignac-classic")
        for players in range(3, 8)
    },
}

FULL_PACK = [rank + suit for suit in SUITS for rank in RANKS]
_PHASES = {CALLS: "calls", PLAYS: "plays", DEAL_OVER: "waiting for a deal", MATCH_OVER: "over"}


class Table:
    """One table of the engine. What a `Referee` has as well has the same name here."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.record = rules.record
        self.states = np.zeros(1, STATE)
        self.state = self.states[0]
        self.num_players = rules.num_players

    # How the table moves.

    def start(self, seed: int = 0, episode: int = 0) -> "Table":
        """Begin a match with the engine's own shuffle."""
        start_match(self.record, self.state, np.uint64(seed), episode)
        return self

    def begin(self, dealer: int, *hands: str, turned: str | None = None) -> "Table":
        """Begin a match with chosen cards."""
        begin_deal(self.record, self.state, dealer, first_leader(self.record, dealer))
        return self._give(hands, turned)

    def deal_on(self, *hands: str, turned: str | None = None) -> "Table":
        """Go on to the next deal; with hands, to chosen cards."""
        next_deal(self.record, self.state)
        return self._give(hands, turned) if hands else self

    def _give(self, hands: Sequence[str], turned: str | None) -> "Table":
        numbers = [[self.number(name) for name in hand.split()] for hand in hands]
        assert [len(hand) for hand in numbers] == [self.rules.hand_size] * self.num_players
        sets = np.array([card_set(hand) for hand in numbers], np.uint64)
        set_hands(self.record, self.state, sets, -1 if turned is None else self.number(turned))
        return self

    def act(self, words: str) -> "Table":
        """Make these calls and plays, which must be legal, one after another."""
        for word in words.split():
            assert word in self.legal(), f"{word} is not among {self.legal()}"
            play(self.record, self.state, self.number(word))
        return self

    def play_out(self, rng: random.Random | None = None, general_odds: float = 0.0) -> "Table":
        """Finish the deal: passes, then the lowest legal card or a random one."""
        while self.phase in ("calls", "plays"):
            if self.phase == "calls":
                general = rng is not None and rng.random() < general_odds
                action = GENERAL if general else PASS
            else:
                cards = cards_of(legal_actions(self.record, self.state))
                action = cards[0] if rng is None else rng.choice(cards)
            play(self.record, self.state, action)
        return self

    # What stands on it.

    def number(self, name: str) -> int:
        """Return the number of a card or call."""
        if name in ("pass", "general"):
            return PASS if name == "pass" else GENERAL
        return parse_card(name, self.rules.rank_order)

    def name(self, action: int) -> str:
        """Return the name of a card or call."""
        return card_name(int(action), self.rules.rank_order)

    def names(self, cards: Any) -> list[str]:
        """Return the names of the cards in a set."""
        return [self.name(card) for card in cards_of(cards)]

    def legal(self) -> list[str]:
        return self.names(legal_actions(self.record, self.state))

    def to_move(self) -> int | None:
        return int(self.state.turn) if self.phase in ("calls", "plays") else None

    @property
    def phase(self) -> str:
        return _PHASES[int(self.state.phase)]

    @property
    def hands(self) -> list[list[str]]:
        return [self.names(self.state.hand[seat]) for seat in range(self.num_players)]

    @property
    def undealt(self) -> list[str]:
        return self.names(undealt_cards(self.record, self.state))

    @property
    def turned(self) -> str | None:
        return None if self.state.turned < 0 else self.name(self.state.turned)

    @property
    def trump(self) -> str | None:
        return None if self.state.turned < 0 else SUITS[int(self.state.turned) // 13]

    @property
    def deal_number(self) -> int:
        return int(self.state.deal)

    @property
    def dealer(self) -> int:
        return int(self.state.dealer)

    @property
    def leader(self) -> int:
        return int(self.state.leader)

    @property
    def general(self) -> int | None:
        return None if self.state.general < 0 else int(self.state.general)

    @property
    def calls(self) -> list[tuple[int, str]]:
        seats = [(self.leader + i) % self.num_players for i in range(int(self.state.num_calls))]
        return [(seat, "general" if seat == self.general else "pass") for seat in seats]

    @property
    def plays(self) -> list[tuple[int, str]]:
        return [
            (int(seat_of_play(self.record, self.state, i)), self.name(self.state.history[i]))
            for i in range(int(self.state.num_plays))
        ]

    @property
    def trick_winners(self) -> list[int]:
        done = int(self.state.num_plays) // self.num_players
        leaders = [seat for seat, _ in self.plays[:: self.num_players]]
        if len(leaders) == done:
            leaders.append(int(self.state.turn))
        return leaders[1 : done + 1]

    @property
    def tricks(self) -> list[int]:
        return [int(self.state.tricks[seat]) for seat in range(self.num_players)]

    @property
    def points(self) -> list[int]:
        return [int(deal_points(self.record, self.state, seat)) for seat in range(self.num_players)]

    @property
    def totals(self) -> list[int]:
        return [int(self.state.totals[seat]) for seat in range(self.num_players)]

    @property
    def deal_winner(self) -> int:
        return int(deal_winner(self.record, self.state))

    @property
    def winners(self) -> list[int]:
        return cards_of(int(self.state.winners))

    @property
    def voids(self) -> list[list[str]]:
        """For each seat the suits that it has shown to lack."""
        return [
            [SUITS[suit] for suit in cards_of(int(self.state.voids[seat]))]
            for seat in range(self.num_players)
        ]

    @property
    def jacks(self) -> list[list[str]]:
        """For each seat the suits of the jacks in its tricks."""
        return [
            [SUITS[suit] for suit in cards_of(int(self.state.jacks[seat]))]
            for seat in range(self.num_players)
        ]


def referee_of(table: Table) -> Referee:
    """Return a referee at the same first deal as a table that has just been started."""
    referee = Referee(table.rules.to_dict(), table.dealer)
    referee.deal(table.hands, table.turned)
    return referee


def voids_of(referee: Referee) -> list[list[str]]:
    """Return for each seat the suits that it has shown to lack, in the order ♠ ♣ ♦ ♥."""
    shown: list[set[str]] = [set() for _ in range(referee.num_players)]
    for number, (seat, card) in enumerate(referee.plays):
        led = referee.plays[number - number % referee.num_players][1][1]
        if card[1] != led:
            shown[seat].add(led)
    return [[suit for suit in SUITS if suit in suits] for suits in shown]


def jacks_of(referee: Referee) -> list[list[str]]:
    """Return for each seat the suits of the jacks in its tricks, in the order ♠ ♣ ♦ ♥."""
    taken: list[set[str]] = [set() for _ in range(referee.num_players)]
    for number, (_, card) in enumerate(referee.plays):
        trick = number // referee.num_players
        if card[0] == "J" and trick < len(referee.trick_winners):
            taken[referee.trick_winners[trick]].add(card[1])
    return [[suit for suit in SUITS if suit in suits] for suits in taken]


def follow_match(
    rules: Rules, seed: int, general_odds: float = 0.1, most_deals: int = 1000
) -> Iterator[tuple[Table, Referee]]:
    """Play a random match at a table and before a referee; yield both at every step.

    The first time before anything was played, then after every call and play, and after every
    further deal.
    """
    rng = random.Random(seed)
    table = Table(rules).start(seed, episode=seed % 5)
    referee = referee_of(table)
    yield table, referee
    while True:
        while table.phase in ("calls", "plays"):
            legal = table.legal()
            if table.phase == "calls":
                word = "general" if rng.random() < general_odds else "pass"
            else:
                word = rng.choice(legal)
            play(table.record, table.state, table.number(word))
            referee.act(word)
            yield table, referee
        if table.phase == "over" or table.deal_number + 1 == most_deals:
            return
        table.deal_on()
        referee.deal(table.hands, table.turned)
        yield table, referee


def observed(
    table: Table, seat: int, name: str = "flat_v0", dtype: str = "uint8"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the flat row, the mask and the VIEW of what a seat observes."""
    encoder = make_encoder(name, table.rules)
    row = np.full(encoder.layout.size, 99, dtype)
    mask = np.full(table.rules.num_actions, 99, np.int8)
    views = np.zeros(1, VIEW)
    look(table.record, table.state, seat, views[0])
    observe(encoder.code, table.record, table.state, seat, row[None], mask[None], 0)
    return row, mask, views


def random_rules(rng: random.Random) -> Rules:
    """Return rules with every option drawn at random from what the others allow."""
    players = rng.randint(2, 7)
    ranks = rng.choice([RANKS, "23456789TAJQK", "".join(rng.sample(RANKS, 13))])
    pack = list(FULL_PACK)
    kind = rng.choice(["full", "grid", "subset"])
    if kind == "grid":
        some_suits, some_ranks = rng.randint(1, 4), rng.randint(2, 8)
        pack = [rank + suit for suit in SUITS[-some_suits:] for rank in RANKS[-some_ranks:]]
    elif kind == "subset":
        pack = rng.sample(FULL_PACK, rng.randint(8, 40))
    players = min(players, len(pack))
    most = len(pack) // players
    hand_size = rng.choice([most, rng.randint(1, most), rng.randint(1, min(most, 4))])
    left = len(pack) - players * hand_size
    scoring = rng.choice(["tricks", "penalties"])
    options: dict[str, Any] = {
        "trump": rng.choice(["none", "turned" if left else "last_card"]),
        "jack_penalties": rng.choice([(1, 2, 3, 4), (2, 1, 1, 1), (0, 0, 0, 0), (5, 0, 3, 1)]),
        "first_lead": rng.choice(["winner", "dealer", "left_of_dealer"]),
        "tie": rng.choice(["play_on", "draw"]),
        "max_deals": rng.choice([None, None, 1, 3]),
    }
    if scoring == "penalties":
        options["general"] = rng.random() < 0.7
        options["general_leads"] = rng.random() < 0.5
        options["general_charge"] = rng.choice([0, 1, 5, 8])
        options[rng.choice(["num_deals", "loss_limit"])] = rng.choice([1, 2, 5])
        costs = zip(SUITS, options["jack_penalties"], strict=True)
        jacks_cost = any(cost and "J" + suit in pack for suit, cost in costs)
        if not jacks_cost and not (options["general"] and options["general_charge"]):
            # Nobody is ever charged, so without this the match might have no end.
            options["max_deals"] = options["max_deals"] or 3
    elif rng.random() < 0.6:
        options["target"] = rng.choice([1, 2, 6])
        options["count"] = rng.choice(["deal", "trick"])
    else:
        options["num_deals"] = rng.choice([1, 2, 5])
    return Rules(
        num_players=players,
        pack=tuple(pack),
        rank_order=ranks,
        hand_size=hand_size,
        scoring=scoring,
        **options,
    )


def plain_mix(key: int, counter: int) -> int:
    """Return output number `counter` of SplitMix64 started at `key`, as Steele et al. print it."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def chi_square(counts: Sequence[int]) -> float:
    """Return the chi-square statistic of counts that should be equal."""
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts)


def chi_square_bound(outcomes: int, sigmas: float = 4.0) -> float:
    """Return what the statistic of so many equal outcomes exceeds by chance once in 30,000 times.

    Wilson and Hilferty's approximation. Draws are fixed by their seeds, so a test that passes once
    always does.
    """
    freedom = outcomes - 1
    return freedom * (1 - 2 / (9 * freedom) + sigmas * sqrt(2 / (9 * freedom))) ** 3


def third_deal(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """A table in a match's third deal, and the same cards as a match's first."""
    state, first = np.zeros(1, STATE), np.zeros(1, STATE)
    start_match(rules.packed[0], state[0], 5, 0)
    for _ in range(2):
        while state["phase"][0] < 2:
            legal = int(legal_actions(rules.packed[0], state[0]))
            play(rules.packed[0], state[0], legal.bit_length() - 1)
        next_deal(rules.packed[0], state[0])
    assert (state["totals"] != 0).any()
    first[:] = state
    first["deal"], first["totals"], first["dealer"] = 0, 0, first["leader"]
    views = np.zeros(2, VIEW)
    for i, table in enumerate((state, first)):
        look(rules.packed[0], table[0], int(table["turn"][0]), views[i])
    return views, np.repeat(legal_actions(rules.packed[0], state[0]), 2).astype(np.uint64)

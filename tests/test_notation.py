"""Records and positions: both ways without a loss, and nothing damaged gets through."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from valety_env.cards import cards_of, parse_card
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    STATE,
    legal_actions,
    next_deal,
    play,
    start_match,
)
from valety_env.notation import (
    NotationError,
    RecordError,
    deal_winners,
    game_from_text,
    game_to_text,
    make_record,
    position_from_text,
    position_to_text,
    read_record,
    record_from_text,
    record_to_text,
)
from valety_env.rules import PRESETS, Rules, make_rules
from valety_env.view import SCRATCH_SIZE, VIEW, imagine, look

ROOT = Path(__file__).resolve().parent.parent

# Every preset, every number of players and each option that records and positions depend on.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((game, {}) for game in PRESETS),
    *(("polignac", {"num_players": n}) for n in (3, 5, 6, 7)),
    *(("polignac-classic", {"num_players": n}) for n in (3, 5, 6, 7)),
    ("valety", {"target": 9, "tie": "draw"}),
    ("valety", {"count": "trick", "first_lead": "left_of_dealer"}),
    ("valety", {"num_deals": 2, "first_lead": "dealer"}),
    ("valety", {"trump": "none", "max_deals": 3}),
    ("valety", {"num_players": 4, "hand_size": 12}),
    ("valety-L3", {"jack_penalties": (0, 0, 1, 9), "rank_order": "23456789TAJQK"}),
    ("polignac", {"trump": "last_card", "general_leads": True}),
    ("polignac", {"loss_limit": 9, "tie": "play_on", "general_charge": 7}),
    ("polignac", {"general": False, "num_deals": 2}),
]


def play_some(
    rules: Rules, seed: int, choices: list[int], *, least: int = 0
) -> tuple[list[np.ndarray], int]:
    """Play by the choices, over and over until `least` actions; return the states of the deals."""
    states = np.zeros(1, STATE)
    start_match(rules.record, states[0], np.uint64(seed), 2)
    over: list[np.ndarray] = []
    step = 0
    while step < max(least, len(choices)) and states[0].phase != MATCH_OVER:
        if states[0].phase == DEAL_OVER:
            over.append(states.copy())
            next_deal(rules.record, states[0])
        legal = cards_of(legal_actions(rules.record, states[0]))
        play(rules.record, states[0], legal[(choices[step % len(choices)] + step) % len(legal)])
        step += 1
    return [*over, states], step


@st.composite
def games(draw: st.DrawFn) -> tuple[str, Rules, list[np.ndarray]]:
    """Draw a game at any moment."""
    game, options = draw(st.sampled_from(VARIANTS))
    rules = make_rules(game, **options)
    seed = draw(st.integers(0, (1 << 64) - 1))
    choices = draw(st.lists(st.integers(0, 60), min_size=1, max_size=8))
    states, _ = play_some(rules, seed, choices, least=draw(st.integers(0, 160)))
    return game, rules, states


def valety_record() -> dict[str, Any]:
    """Return the record of a match of Valety in its second deal."""
    rules = make_rules("valety")
    states, _ = play_some(rules, 7, [3, 1, 4], least=34 + 9)
    return make_record(rules, "valety", states)


def outcome(read: Callable[[Any], Any], value: Any) -> str:
    """Return what reading complains of, empty for nothing; any other error gets through."""
    try:
        read(value)
    except (NotationError, RecordError) as error:
        return str(error) or "an error without a message"
    return ""


def check_line(message: str) -> None:
    """A message is one line that fits a terminal."""
    assert "\n" not in message
    assert len(message) < 500


def refusal(record: Any) -> str:
    with pytest.raises(RecordError) as caught:
        read_record(record)
    check_line(str(caught.value))
    return str(caught.value)


def wrong_position(text: str) -> str:
    with pytest.raises(NotationError) as caught:
        position_from_text(text)
    check_line(str(caught.value))
    return str(caught.value)


# Records.


@given(games())
def test_a_record_gives_back_the_states_it_was_made_of(
    drawn: tuple[str, Rules, list[np.ndarray]],
) -> None:
    game, rules, states = drawn
    record = make_record(rules, game, states)
    replayed = read_record(json.loads(json.dumps(record)))
    assert (replayed.states == np.concatenate(states)).all()
    assert (replayed.game, replayed.rules, replayed.illegal) == (game, rules, None)
    assert list(replayed.winners) == record["winners"]
    assert not replayed.single_deal


@given(games())
def test_a_record_is_the_same_after_a_round_trip_through_text(
    drawn: tuple[str, Rules, list[np.ndarray]],
) -> None:
    game, rules, states = drawn
    record = make_record(rules, game, states)
    assert record_from_text(record_to_text(record)) == record


@pytest.mark.plain
def test_a_record_is_made_of_plain_values_in_the_documented_form() -> None:
    rules = make_rules("valety-L1", max_deals=None)
    states, _ = play_some(rules, 3, [0], least=5)
    record = make_record(rules, "valety-L1", states)
    assert list(record) == [
        *("format", "game", "rules", "seed", "episode", "deals"),
        *("totals", "winners", "illegal"),
    ]
    first = record["deals"][0]
    assert list(first) == [
        *("dealer", "leader", "turned", "hands", "calls", "plays", "tricks", "points"),
    ]
    assert record["seed"] == 3
    assert record["episode"] == 2
    assert sum(first["tricks"]) == 2
    assert first["hands"][0] == sorted(first["hands"][0], key=parse_card)
    assert json.loads(json.dumps(record)) == record


def test_a_record_is_played_from_its_hands_and_never_from_its_seed() -> None:
    record = valety_record()
    record["seed"] += 1
    record["episode"] += 1
    replayed = read_record(record)
    assert make_record(replayed.rules, "valety", replayed.states) == record


def test_a_finished_match_names_its_winners_and_a_running_one_nobody() -> None:
    rules = make_rules("valety-L2")
    states, _ = play_some(rules, 1, [0], least=6)
    assert make_record(rules, "valety-L2", states)["winners"] == cards_of(int(states[0][0].winners))
    running, _ = play_some(rules, 1, [0], least=5)
    assert make_record(rules, "valety-L2", running)["winners"] == []


def test_a_record_may_be_of_one_deal_whose_winner_is_that_of_the_deal() -> None:
    rules = make_rules("polignac")
    states, _ = play_some(rules, 5, [0, 2], least=36)
    assert states[0][0].phase == DEAL_OVER
    winners = deal_winners(rules, states[0])
    charges = make_record(rules, "polignac", states)["deals"][0]["points"]
    assert winners == [seat for seat in range(4) if charges[seat] == min(charges)]
    record = make_record(rules, "polignac", states[:1], winners=winners)
    replayed = read_record(record)
    assert replayed.single_deal
    assert list(replayed.winners) == winners
    record["winners"] = [seat for seat in range(4) if seat not in winners]
    assert "winners are" in refusal(record)


def test_V6_decides_the_winner_of_one_deal_even_where_a_match_would_be_shared() -> None:
    rules = make_rules("valety-L7")
    seed = next(
        seed
        for seed in range(100)
        if play_some(rules, seed, [1], least=8)[0][0][0].winners == 3  # both
    )
    states, _ = play_some(rules, seed, [1], least=8)
    winners = deal_winners(rules, states[0])
    assert len(winners) == 1
    assert read_record(make_record(rules, "valety-L7", states, winners=winners)).single_deal


def test_a_single_deal_goes_on_where_a_match_that_counts_tricks_would_end() -> None:
    rules = make_rules("valety", count="trick", target=1)
    alone = rules.replace(count="deal", max_deals=1)
    for least in (20, 34):
        states, _ = play_some(alone, 5, [2], least=least)
        winners = deal_winners(rules, states[0]) if least == 34 else []
        record = make_record(rules, "valety", states, winners=winners)
        replayed = read_record(record)
        assert replayed.single_deal
        assert replayed.states[0].num_plays == least
        assert replayed.rules == rules


def test_an_illegal_action_ends_a_record_and_must_be_one() -> None:
    record = valety_record()
    replayed = read_record(record)
    last = replayed.states[-1]
    seat = int(last.turn)
    rules = replayed.rules
    held = cards_of(legal_actions(rules.record, last))
    not_held = cards_of(int(rules.record.pack) & ~int(last.hand[seat]))[0]
    for action, name in ((not_held, "2S"), (77, "77"), (-1, "-1"), ("pass", "pass")):
        if isinstance(action, int) and 0 <= action < 52:
            name = next(c for c in rules.pack if parse_card(c) == action)
        made = make_record(
            rules, "valety", replayed.states, illegal={"seat": np.int64(seat), "action": action}
        )
        assert made["illegal"] == {"seat": seat, "action": name}
        assert read_record(made).illegal == (seat, name)
        assert record_from_text(record_to_text(made)) == made
    other = 1 - seat
    for wrong in (
        {"seat": other, "action": "2S"},
        {"seat": seat, "action": next(c for c in rules.pack if parse_card(c) == held[0])},
        {"seat": seat, "action": "5"},
        {"seat": seat, "action": None},
        {"seat": seat},
        "KD",
    ):
        assert "deal 2, illegal" in refusal(record | {"illegal": wrong})


@pytest.mark.plain
def test_an_illegal_play_is_named_with_its_deal_its_number_and_what_is_legal() -> None:
    record = valety_record()
    plays = record["deals"][1]["plays"]
    seat, led = plays[-1]
    rules = make_rules("valety")
    position = read_record(record).states[-1]
    assert position.num_plays == 9
    follower = 1 - seat
    hand = cards_of(int(position.hand[follower]))
    same = [c for c in hand if c // 13 == parse_card(led) // 13]
    other = next(c for c in hand if c // 13 != parse_card(led) // 13)
    assert same
    names = {parse_card(c): c for c in rules.pack}
    plays.append([follower, names[other]])
    legal = " ".join(names[c] for c in same)
    assert refusal(record) == (
        f"deal 2, play 10: player_{follower} may not play {names[other]}; legal here: {legal}"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(format=2), "format is 2, this version reads 1"),
        (lambda r: r.update(format=True), "format is True"),
        (lambda r: r.update(game="chess"), "game is 'chess', the games are: valety"),
        (lambda r: r.pop("seed"), "the key 'seed' is missing"),
        (lambda r: r.update(date=1), "the key 'date' is unknown"),
        (lambda r: r.update(seed=1 << 64), "seed is"),
        (lambda r: r.update(episode=-1), "episode is -1"),
        (lambda r: r.update(deals=[]), "the number of deals is 0"),
        (lambda r: r["rules"].update(target=0), "rules: target=0"),
        (lambda r: r["rules"].update(color=1), "rules: the key 'color' is unknown"),
        (lambda r: r["rules"].pop("count"), "rules: the key 'count' is missing"),
        (lambda r: r["rules"].update(pack=["2S", "2s"]), "rules, pack: '2s' is not the name"),
        (lambda r: r["rules"]["pack"].reverse(), "rules: pack is"),
        (lambda r: r["rules"].update(jack_penalties=5), "rules: jack_penalties must be a list"),
        (lambda r: r["deals"][0].update(dealer=7), "deal 1: dealer is 7"),
        (lambda r: r["deals"][0].update(leader=1 - r["deals"][0]["leader"]), "deal 1: leader is"),
        (lambda r: r["deals"][1].update(dealer=r["deals"][0]["dealer"]), "deal 2: dealer is"),
        (lambda r: r["deals"][1].update(leader=1 - r["deals"][1]["leader"]), "deal 2: leader is"),
        (lambda r: r["deals"][0].update(turned=None), "deal 1, turned: None is not the name"),
        (lambda r: r["deals"][0].update(turned=r["deals"][0]["hands"][0][3]), "is in a hand"),
        (lambda r: r["deals"][0]["hands"].pop(), "deal 1: hands must be a list of 2, not of 1"),
        (lambda r: r["deals"][0]["hands"][1].pop(), "the hand of player_1 must be a list of 17"),
        (lambda r: r["deals"][0]["hands"][1].reverse(), "is not in the order of the cards"),
        (
            lambda r: r["deals"][0]["hands"].__setitem__(1, r["deals"][0]["hands"][0]),
            "was dealt twice",
        ),
        (lambda r: r["deals"][0]["plays"].pop(), "deal 1: tricks are"),
        (lambda r: r["deals"][0]["plays"][6].__setitem__(1, "kd"), "deal 1, play 7: 'kd' is not"),
        (lambda r: r["deals"][0]["plays"][6].__setitem__(1, "pass"), "pass is not a card"),
        (
            lambda r: r["deals"][0]["plays"][6].__setitem__(0, 1 - r["deals"][0]["plays"][6][0]),
            "is to move",
        ),
        (lambda r: r["deals"][0]["plays"].append([0, "2S"]), "deal 1, play 35: player_0 may not"),
        (lambda r: r["deals"][0]["calls"].append([0, "pass"]), "there are no more announcements"),
        (lambda r: r["deals"][0]["tricks"].__setitem__(0, 0), "deal 1: tricks are [0,"),
        (lambda r: r["deals"][1]["points"].__setitem__(0, 99), "deal 2: points are [99,"),
        (lambda r: r["totals"].__setitem__(0, 99), "totals are [99,"),
        (lambda r: r["totals"].__setitem__(0, True), "one of totals is True"),
        (lambda r: r.update(winners=[1]), "winners are [1], by the plays []"),
        (lambda r: r.update(winners=[5]), "one of winners is 5"),
        (lambda r: r["deals"].append(r["deals"][1]), "deal 2: only 9 of 34 plays"),
    ],
)
def test_a_damaged_record_is_refused_where_it_is_damaged(change: Any, message: str) -> None:
    record = valety_record()
    change(record)
    assert message in refusal(record)


def test_no_deal_can_follow_the_end_of_the_match() -> None:
    rules = make_rules("valety-L1")
    states, _ = play_some(rules, 1, [0], least=4)
    record = make_record(rules, "valety-L1", states)
    record["deals"].append(record["deals"][0])
    assert refusal(record) == "deal 2: the match was over before it"


def test_P6_announcements_of_a_record_are_checked() -> None:
    rules = make_rules("polignac")
    states, _ = play_some(rules, 5, [0], least=8)
    record = make_record(rules, "polignac", states)
    calls = record["deals"][0]["calls"]
    for change, message in (
        ([[calls[0][0], "KD"]], "deal 1, call 1: KD is not an announcement"),
        (calls[1:], "is to move"),
        (calls[:1], "the announcements are not over"),
        ([[0, "double"]], "'double' is not the name of a card"),
    ):
        wrong = copy.deepcopy(record)
        wrong["deals"][0]["calls"] = change
        if calls[0][1] == "general":
            continue
        assert message in refusal(wrong)


def test_P3_the_shown_card_of_a_record_is_the_dealers() -> None:
    rules = make_rules("polignac", trump="last_card")
    states, _ = play_some(rules, 5, [0], least=8)
    record = make_record(rules, "polignac", states)
    told = record["deals"][0]
    told["turned"] = told["hands"][(told["dealer"] + 1) % 4][0]
    assert "which the dealer does not hold" in refusal(record)


def test_make_record_refuses_what_is_no_episode() -> None:
    rules = make_rules("valety")
    states, _ = play_some(rules, 5, [0], least=8)
    with pytest.raises(ValueError, match="is not a game"):
        make_record(rules, "bridge", states)
    with pytest.raises(ValueError, match="states is empty"):
        make_record(rules, "valety", [])
    _, position = position_from_text("valety hands=4S/2H turned=7D tricks=9/7")
    with pytest.raises(ValueError, match="does not know all plays"):
        make_record(rules, "valety", position)


def deep(depth: int = 100_000) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


JUNK: list[Any] = [
    *(None, True, -1, 0, 1, 3, 53, 1 << 40, 10**5000, float("nan"), float("inf"), 1.0, 2.5),
    *("", "KD", "pass", "general", "x" * 10_000, "\ud800", "K\nD", [], {}, [[]], {"a": 1}, ()),
    *(b"KD", object(), [None] * 100, {1: 2}, [float("nan")] * 2, {"seat": 0, "action": "77"}),
    *(deep(), np.int64(1), np.zeros((9, 9)), STATE),
]


def place(data: st.DataObject, record: Any) -> tuple[Any, ...]:
    """Draw the path to a part of a record, those of few parts as likely as those of many."""
    path: tuple[Any, ...] = ()
    while isinstance(record, (dict, list)) and record and data.draw(st.integers(0, 4)):
        keys = list(record) if isinstance(record, dict) else range(len(record))
        key = data.draw(st.sampled_from(keys))
        path, record = (*path, key), record[key]
    return path


def changed(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a record with another value at one place."""
    if not path:
        return value
    other = copy.copy(record)
    other[path[0]] = changed(record[path[0]], path[1:], value)
    return other


SAMPLES = [
    json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text("utf-8"))
    for name in ("valety-illegal", "polignac-last-card", "valety-count-trick", "valety-L2")
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all parts of a record."""
    keys: list[Any] = []
    if isinstance(value, (dict, list)):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [path, *(found for key in keys for found in paths(value[key], (*path, key)))]


def test_junk_at_any_place_of_a_small_record_is_refused_in_one_line() -> None:
    record = SAMPLES[-1]
    for path in paths(record):
        for junk in JUNK:
            check_line(outcome(read_record, changed(record, path, junk)))


@given(st.data())
def test_whatever_stands_in_a_record_it_is_read_or_refused(data: st.DataObject) -> None:
    record = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 3))):
        path = place(data, record)
        record = changed(record, path, data.draw(st.sampled_from(JUNK)))
    check_line(outcome(read_record, record))


@given(st.data())
def test_a_record_that_was_read_is_the_record_of_its_states(data: st.DataObject) -> None:
    # Swapping parts of a record for others of it makes damage that looks right.
    record = data.draw(st.sampled_from(SAMPLES))
    value: Any = record
    for key in place(data, record):
        value = value[key]
    record = changed(record, place(data, record), value)
    try:
        replayed = read_record(record)
    except RecordError:
        return
    again = make_record(
        replayed.rules,
        replayed.game,
        replayed.states,
        illegal=record["illegal"],
        winners=replayed.winners,
    )
    assert again == record


# Games and records as text.


@pytest.mark.parametrize(("game", "options"), VARIANTS)
def test_a_game_with_options_is_told_in_a_word_both_ways(
    game: str, options: dict[str, Any]
) -> None:
    rules = make_rules(game, **options)
    text = game_to_text(game, rules)
    assert game_from_text(text) == (game, rules)
    assert set(re.findall(r"(\w+)=", text)) <= {*options, "target"}


def test_an_option_can_be_taken_away_in_text() -> None:
    rules = make_rules("valety-L1").replace(max_deals=None)
    text = game_to_text("valety-L1", rules)
    assert text == "valety-L1,max_deals=none"
    assert game_from_text(text) == ("valety-L1", rules)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chess", "'chess' is not a game"),
        ("valety,colour=1", "'colour' is not a rule option"),
        ("valety,target", "'target' is not OPTION=VALUE"),
        ("valety,target=many", "target=many: it must be a whole number"),
        ("valety,target=3,target=4", "target is given twice"),
        ("valety,target=3,num_deals=4", "exactly one of"),
        ("polignac,general=1", "general=1: allowed are true and false"),
        ("valety,pack=KD+XD", "'XD' is not a card"),
        ("valety,target=" + "9" * 5000, "it must be a whole number"),
        ("valety,jack_penalties=1+2", "jack_penalties=(1, 2)"),
        (7, "a text is needed"),
    ],
)
def test_a_game_that_cannot_be_is_refused(text: Any, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        game_from_text(text)
    assert message in str(caught.value)


def test_a_text_record_is_read_as_people_write_it() -> None:
    rules = make_rules("polignac", num_players=7)
    states, _ = play_some(rules, 11, [1], least=12)
    record = make_record(rules, "polignac", states)
    text = record_to_text(record)
    assert "# " in text
    for letter, symbol in zip("SCDH", "♠♣♦♥", strict=True):
        text = re.sub(rf"\b([89TJQKA]){letter}\b", rf"\1{symbol}", text)
    text = text.replace("T♠", "10♠").replace("\n", "\n\n  ").replace("Q♦", "q♦, ")
    assert record_from_text("# a comment\n" + text) == record


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format: 1", "format: 9", "line 1: format is 9, this version reads 1"),
        ("seed: 7\n", "", "the record: the line 'seed: …' is missing"),
        ("seed: 7\n", "seed: 7\nseed: 8\n", "line 4: seed is told twice"),
        ("seed: 7\n", "seed: seven\n", "line 3: seed is 'seven'"),
        ("game: valety", "game: chess", "line 2: 'chess' is not a game"),
        ("episode: 2", "episode 2", "line 4: 'episode 2' is no line of a record"),
        ("deal: 2", "deal: 3", "deal 3 stands here, deal 2 was expected"),
        ("trick 2:", "trick 3:", "trick 3 is told twice"),
        ("trick 9:", "trick 99:", "trick 99 stands here, trick 9 was expected"),
        ("hand 1:", "hand 2:", "there is no player_2, 2 play"),
        ("hand 1: ", "hand 1: 11S ", "'11S' is not a card"),
        ("winners: -", "winners: 1", "winners are [1], by the plays []"),
    ],
)
def test_a_text_record_with_a_mistake_is_refused_with_its_line(
    old: str, new: str, message: str
) -> None:
    text = record_to_text(valety_record())
    assert old in text
    with pytest.raises((NotationError, RecordError)) as caught:
        record_from_text(text.replace(old, new, 1))
    assert message in str(caught.value)


@given(st.data())
def test_whatever_stands_in_a_text_record_it_is_read_or_refused(data: st.DataObject) -> None:
    text = record_to_text(data.draw(st.sampled_from(SAMPLES)))
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    junk = data.draw(st.one_of(st.text(max_size=20), st.sampled_from(["9" * 5000, "deal: 1\n"])))
    check_line(outcome(record_from_text, text[:at] + junk + text[at + length :]))


# Positions.


@given(games())
@example(("valety", make_rules("valety"), play_some(make_rules("valety"), 1, [0])[0]))
def test_a_position_is_the_same_after_a_round_trip(
    drawn: tuple[str, Rules, list[np.ndarray]],
) -> None:
    _, rules, states = drawn
    state = states[-1]
    if state[0].phase in (DEAL_OVER, MATCH_OVER):
        with pytest.raises(NotationError, match="the deal is over"):
            position_to_text(rules, state)
        return
    text = position_to_text(rules, state)
    assert len(text.splitlines()) == 1
    again_rules, again = position_from_text(text)
    assert again_rules == rules
    assert (again == state).all()
    assert position_to_text(again_rules, again) == text


@pytest.mark.plain
def test_a_position_needs_no_more_than_hands_trump_and_who_is_to_move() -> None:
    rules, state = position_from_text("valety hands=JS,AH/QS,QH turn=1 trump=H")
    table = state[0]
    assert rules == make_rules("valety", hand_size=2)
    assert table.turn == 1
    # The card turned up is one that nobody holds.
    assert table.turned == parse_card("2H")
    assert table.hand[0] == 1 << parse_card("JS") | 1 << parse_card("AH")
    assert table.num_plays == 0
    for card in ("QS", "JS", "QH", "AH"):
        play(rules.record, table, parse_card(card))
    assert table.phase == DEAL_OVER
    assert list(table.tricks[:2]) == [1, 1]


def test_cards_are_read_as_people_write_them() -> None:
    plain = position_from_text("valety hands=TS,AH/QH table=KD turned=7C")
    for hands in ("TSAH/QH", "10♠A♥/Q♥", "ts+ah/qh", "10S,A♥\ufe0f/QH,"):
        other = position_from_text(f"valety hands={hands} table=K♦ turned=7♣")
        assert other[0] == plain[0]
        assert (other[1] == plain[1]).all()


def test_the_cards_on_the_table_tell_who_is_to_move() -> None:
    _, state = position_from_text("knaves hands=2S,3S/4S/5S table=6S,7S trump=C")
    assert (state[0].turn, state[0].table.tolist()[:3]) == (0, [-1, 4, 5])
    assert state[0].best_seat == 2
    assert list(cards_of(int(state[0].played[1]))) == [parse_card("6S")]


def test_tricks_taken_stand_for_plays_that_are_not_known() -> None:
    text = "valety hands=4S,JH/2H,3C turned=7D turn=1 tricks=9/6 jacks=JD/JS voids=D/S"
    rules, state = position_from_text(text)
    table = state[0]
    assert rules == make_rules("valety")
    assert table.num_plays == 30
    assert list(table.tricks[:2]) == [9, 6]
    assert list(table.jacks[:2]) == [4, 1]
    assert list(table.voids[:2]) == [4, 1]
    for card in ("2H", "JH", "4S", "3C"):
        told = position_to_text(rules, state)
        again_rules, again = position_from_text(told)
        assert again_rules == rules
        assert (again == state).all()
        play(rules.record, table, parse_card(card))
    assert table.phase == DEAL_OVER
    # 11 tricks without J♦ and J♥; 6 without J♠ (V11).
    assert list(table.totals[:2]) == [11 - 7, 6 - 1]


def test_what_a_seat_knows_of_hands_holds_after_tricks_that_are_not_known() -> None:
    rules, state = position_from_text("valety hands=TS,AH,2C/QH,KH,3C turn=0 turned=7C tricks=8/6")
    view, drawn = np.zeros(1, VIEW), np.zeros(1, STATE)
    for card in ("TS", "KH"):
        play(rules.record, state[0], parse_card(card))
    look(rules.record, state[0], 1, view[0])
    assert view[0].hand_sizes.tolist() == [2, 2, 0, 0, 0, 0, 0]
    imagine(rules.record, view[0], np.uint64(1), np.zeros(SCRATCH_SIZE), drawn[0])
    assert int(drawn[0].hand[0]).bit_count() == 2
    assert drawn[0].hand[1] == state[0].hand[1]


def test_P10_a_general_can_be_made_after_tricks_that_are_not_known() -> None:
    rules, state = position_from_text(
        "polignac hands=AS,AC/KS,KC/QS,QC/JS,JC turn=0 leader=3 general=0 tricks=6/0/0/0"
    )
    assert rules == make_rules("polignac")
    for card in ("AS", "KS", "QS", "JS", "AC", "KC", "QC", "JC"):
        play(rules.record, state[0], parse_card(card))
    assert list(state[0].totals[:4]) == [0, 5, 5, 5]


def test_P6_a_position_can_be_among_the_announcements() -> None:
    rules, state = position_from_text(
        "polignac,num_players=3,hand_size=1 hands=AS/KS/QS leader=2 passes=2"
    )
    assert state[0].phase == CALLS
    assert state[0].turn == 1
    play(rules.record, state[0], 53)
    assert state[0].general == 1
    assert state[0].turn == 2


def test_the_rules_can_be_given_beside_the_text() -> None:
    given_rules = make_rules("valety", trump="none", target=50)
    rules, _ = position_from_text("hands=JS,AH/QS,QH", given_rules)
    assert rules == given_rules.replace(hand_size=2)
    rules, _ = position_from_text("knaves hands=2S/3S/4S trump=D", given_rules)
    assert rules.num_players == 3
    rules, _ = position_from_text("hands=JS/QS trump=C")
    assert rules == make_rules("valety", hand_size=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("valety", "hands=… is missing"),
        ("valety hands=JS/QS colour=3 trump=C", "'colour=3' is no field of a position"),
        ("valety hands=JS/QS turn=0 turn=1 trump=C", "turn is told twice"),
        ("valety hands=JS/QS", "turned=… is missing"),
        ("valety hands=JS/QS/KS trump=C", "hands tells of 3 seats, 2 play"),
        ("valety hands=JS/1S trump=C", "in the hand of player_1: '1S' is not a card"),
        ("valety hands=JS/JS trump=C", "JS is told twice: in the hand of player_0 and in the hand"),
        ("valety hands=JS,JS/QS,KS trump=C", "JS is told twice: in the hand of player_0 and in"),
        (
            "valety hands=JS/QS,KS table=JS trump=C",
            "JS is told twice: in the hand of player_0 and on",
        ),
        ("valety hands=JS/QS table=KS,AS trump=C", "2 cards are on the table, 2 play"),
        ("valety hands=JS/QS turned=QS", "turned is QS, which is in the hand of player_1"),
        ("valety hands=JS/QS turned=QC,KC", "it must be one card"),
        ("valety hands=JS/QS turned=QC trump=D", "trump is D, and yet QC is turned"),
        ("valety hands=JS/QS trump=X", "trump is 'X'"),
        ("valety-L1 hands=JD/2D trump=H", "2D, in the hand of player_1, is not in the pack"),
        ("valety-L1 hands=JD/QD turned=2D", "turned is 2D, which is not in the pack"),
        ("valety-L1 hands=JD,QD/KD,JH table=- turned=2D", "turned is 2D, which is not in the pack"),
        ("valety-L1 hands=JD,JH/QH,KH trump=H", "no card of trump H is left"),
        ("valety hands=-/- trump=C", "player_0 is to move and holds no card"),
        ("valety hands=JS,KS/QS trump=C", "player_1 holds 1 cards, it must be 2"),
        ("valety hands=JS/QS,2S table=KS turn=0 trump=C", "player_1 holds 2 cards, it must be 0"),
        ("valety hands=JS/QS turn=2 trump=C", "turn is 2"),
        (
            "valety hands=JS/QS turn=0 leader=1 trump=C",
            "player_0 cannot be to move: player_1 leads",
        ),
        ("valety hands=JS/QS plays=KS trump=C", "trick 1 of plays has 1 cards, 2 play"),
        (
            "valety hands=JS/2C plays=KD,AD turned=7H turn=0 leader=0",
            "player_0 cannot be to move: player_0 leads",
        ),
        (
            "valety hands=KD/- table=JS turned=7H turn=0 leader=1 plays=AD,QS",
            "play 2: player_0 may",
        ),
        (
            "valety,hand_size=5 hands=JS/QS trump=C",
            "hand_size is 5, tricks taken and cards held make 1",
        ),
        ("valety hands=JS/QS trump=C tricks=20/20", "tricks taken and cards held make hands of 41"),
        ("valety hands=JS/QS trump=C tricks=1", "tricks tells of 1 seats, 2 play"),
        ("valety hands=JS/QS trump=C jacks=JD/-", "nor are they in 0 earlier tricks"),
        ("valety hands=JS/QS trump=C tricks=1/0 jacks=QD/-", "QD is not a jack of the pack"),
        ("valety hands=JS/QS trump=C tricks=1/1 jacks=JD/JD", "JD is told twice"),
        ("valety hands=JS/QS trump=C tricks=1/1 jacks=JS/-", "JS is told twice"),
        ("valety hands=JS/QS turned=JD tricks=1/1 jacks=JD/-", "JD is both turned up and captured"),
        ("valety hands=JS/QS trump=C tricks=1/1 voids=S/-", "voids of player_0: but JS is of such"),
        ("valety hands=JS/QS trump=C voids=H/-", "voids of player_0 are not those that the plays"),
        ("valety hands=JS/QS trump=C voids=Z/-", "'Z' is not a suit"),
        ("valety hands=JS/QS trump=C totals=3/4 deal=1", "totals are [3, 4] in the first deal"),
        ("valety hands=JS/QS trump=C totals=23/4", "the match is over at totals [23, 4] in deal 2"),
        ("valety-L1 hands=JD/QD trump=H deal=2", "the match is over at totals [0, 0] in deal 2"),
        ("valety,count=trick hands=JS/QS trump=C totals=20/4 deal=2", "the match is over"),
        ("valety hands=JS/QS trump=C totals=3/x", "totals is 'x'"),
        ("valety hands=JS/QS trump=C general=1", "this game has no announcements"),
        ("polignac hands=KS/QS/JS/TS trump=C", "this game has no trump"),
        ("polignac hands=KS/QS/JS/TS passes=1 general=2", "passes=… is told"),
        ("polignac hands=KS/QS/JS/TS passes=4", "passes is 4"),
        ("polignac,trump=last_card hands=KS/QS/JS/TS trump=S", "turned=… is missing"),
        ("polignac,trump=last_card hands=KS/QS/JS/TS turned=KS", 'hands of 1: trump="last_card"'),
        (
            "polignac,trump=last_card hands=KS/QS/JS/TS turned=QS dealer=0 tricks=7/0/0/0",
            "turned is QS, which the dealer, player_0, neither holds nor has played",
        ),
        ("", "hands=… is missing"),
        (None, "a text is needed"),
    ],
)
def test_a_position_that_cannot_be_is_refused(text: Any, message: str) -> None:
    assert message in wrong_position(text)


def test_V13_a_position_after_a_tie_at_the_target_can_be() -> None:
    _, state = position_from_text("valety hands=JS/QS trump=C totals=21/21 deal=5")
    assert list(state[0].totals[:2]) == [21, 21]


POSITIONS = [
    position_to_text(rules, states[-1])
    for rules, states in (
        (rules, play_some(rules, 5, [2, 1], least=least)[0])
        for rules, least in (
            (make_rules("valety"), 50),
            (make_rules("polignac", trump="last_card"), 14),
            (make_rules("knaves", count="trick"), 20),
        )
    )
]


@given(st.data())
def test_whatever_stands_in_a_position_it_is_read_or_refused(data: st.DataObject) -> None:
    words = data.draw(st.sampled_from(POSITIONS)).split()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(words) - 1))
        key, _, value = words[place].partition("=")
        other = data.draw(st.sampled_from(" ".join(POSITIONS).split())).partition("=")[2]
        cut = data.draw(st.integers(0, len(value)))
        junk = ["", "-", "/", "0", "9" * 30, "1/0", "JD", value[:cut], value[cut:], other, "♥"]
        words[place] = f"{key}={data.draw(st.one_of(st.sampled_from(junk), st.text(max_size=9)))}"
    text = " ".join(words)
    complaint = outcome(position_from_text, text)
    if complaint:
        check_line(complaint)
        return
    rules, state = position_from_text(text)
    again_rules, again = position_from_text(position_to_text(rules, state))
    assert again_rules == rules
    assert (again == state).all()


# The documentation.


def examples(kind: str) -> list[str]:
    text = (ROOT / "docs" / "notation.md").read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_documentation_are_read_as_they_stand() -> None:
    (games_told,) = examples("text game")
    for line in games_told.splitlines():
        game, rules = game_from_text(line)
        assert game_to_text(game, rules) == line
    (record,) = examples("json record")
    assert read_record(json.loads(record)).winners == (0,)
    (text,) = examples("text record")
    assert record_to_text(record_from_text(text)) == text
    (positions,) = examples("text position")
    for line in positions.splitlines():
        rules, state = position_from_text(line)
        again_rules, again = position_from_text(position_to_text(rules, state))
        assert again_rules == rules
        assert (again == state).all()


def test_every_field_of_a_position_is_documented() -> None:
    documented = (ROOT / "docs" / "notation.md").read_text("utf-8").split("## Positions")[1]
    rows = re.findall(r"^\| (`[^|]*) \|", documented, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    complaint = wrong_position("valety hands=JS/QS colour=red")
    assert sorted(names) == sorted(complaint.split("they are: ")[1].split(", "))

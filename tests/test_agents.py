"""The agents without torch: what holds for each, the sense of the heuristic, and its strength."""

import hashlib
import random
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tables import GAMES, Table, chi_square, chi_square_bound, random_rules

from valety_env._jit import int64, kernel
from valety_env.agents import Agent, agent_names, make_agent, parse_agent_name
from valety_env.agents.heuristic import heuristic_action
from valety_env.agents.random import random_action
from valety_env.cards import GENERAL, PASS, bit, card_set, cards_of
from valety_env.engine import (
    DEAL_OVER,
    STATE,
    deal_points,
    legal_actions,
    play,
    start_match,
)
from valety_env.rng import mix
from valety_env.rules import Rules, make_rules
from valety_env.view import VIEW, look

NAMES = ["random", "random,general=0", "heuristic", "heuristic,general=0"]


def keys_of(seed: int, tables: int) -> np.ndarray:
    """Return one key a table."""
    return np.random.default_rng(seed).integers(2**64, size=tables, dtype=np.uint64)


def show(rules: Rules, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the views of the seats to act and their legal actions."""
    views = np.zeros(len(states), VIEW)
    legal = np.zeros(len(states), np.uint64)
    for i in range(len(states)):
        look(rules.record, states[i], int(states[i].turn), views[i])
        legal[i] = legal_actions(rules.record, states[i])
    return views, legal


def deals(agent: Agent, rules: Rules, seed: int, tables: int) -> list[tuple[np.ndarray, ...]]:
    """Let an agent play one deal at some tables; return (views, legal, keys, actions) of each turn.

    Every third action is replaced by a random one, so that it also meets what it would not do.
    """
    rng = random.Random(seed)
    states = np.zeros(tables, STATE)
    for i in range(tables):
        start_match(rules.record, states[i], np.uint64(seed), i)
    steps = []
    while (states["phase"] < DEAL_OVER).any():
        states = states[states["phase"] < DEAL_OVER]
        views, legal = show(rules, states)
        keys = keys_of(rng.randrange(2**32), len(states))
        actions = agent.act(views, legal, keys)
        steps.append((views, legal, keys, actions))
        for i in range(len(states)):
            others = rng.choice(cards_of(legal[i]))
            play(rules.record, states[i], others if rng.random() < 1 / 3 else int(actions[i]))
    return steps


def are_legal(actions: np.ndarray, legal: np.ndarray) -> bool:
    return all(int(legal[i]) >> int(actions[i]) & 1 for i in range(len(legal)))


# What holds for every agent.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("game", GAMES)
def test_an_agent_makes_legal_actions_in_every_game(game: str, name: str) -> None:
    agent = make_agent(name, GAMES[game])
    for _, legal, _, actions in deals(agent, GAMES[game], seed=1, tables=8):
        assert actions.dtype == np.int64
        assert actions.shape == legal.shape
        assert are_legal(actions, legal)


@pytest.mark.plain
@pytest.mark.parametrize("name", ["random", "heuristic"])
@pytest.mark.parametrize("game", ["valety-L4", "polignac-7"])
def test_an_agent_makes_legal_actions_as_plain_python_too(game: str, name: str) -> None:
    agent = make_agent(name, GAMES[game])
    for _, legal, _, actions in deals(agent, GAMES[game], seed=2, tables=2):
        assert are_legal(actions, legal)


def test_the_heuristic_makes_legal_actions_under_any_options() -> None:
    rng = random.Random(3)
    for _ in range(150):
        rules = random_rules(rng)
        agent = make_agent("heuristic", rules)
        for _, legal, _, actions in deals(agent, rules, seed=rng.randrange(1000), tables=2):
            assert are_legal(actions, legal), rules


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("game", ["valety", "polignac-4"])
def test_an_agent_chooses_in_a_batch_what_it_chooses_alone(game: str, name: str) -> None:
    agent = make_agent(name, GAMES[game])
    for views, legal, keys, actions in deals(agent, GAMES[game], seed=4, tables=6):
        alone = [
            agent.act(views[i : i + 1], legal[i : i + 1], keys[i : i + 1])[0]
            for i in range(len(legal))
        ]
        assert actions.tolist() == alone
        backwards = agent.act(views[::-1].copy(), legal[::-1].copy(), keys[::-1].copy())
        assert actions.tolist() == backwards[::-1].tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("game", ["valety", "polignac-4"])
def test_an_agent_repeats_its_choices_and_changes_nothing_it_is_given(game: str, name: str) -> None:
    agent = make_agent(name, GAMES[game])
    for views, legal, keys, actions in deals(agent, GAMES[game], seed=5, tables=6):
        given = [array.tobytes() for array in (views, legal, keys)]
        again = make_agent(name, GAMES[game]).act(views, legal, keys)
        assert again.tolist() == actions.tolist()
        assert [array.tobytes() for array in (views, legal, keys)] == given


def test_an_agent_takes_arrays_that_may_not_be_written() -> None:
    rules = GAMES["valety"]
    states = np.zeros(1, STATE)
    start_match(rules.record, states[0], np.uint64(1), 0)
    views, legal = show(rules, states)
    keys = keys_of(1, 1)
    for array in (views, legal, keys):
        array.flags.writeable = False
    for name in NAMES:
        assert are_legal(make_agent(name, rules).act(views, legal, keys), legal)


@pytest.mark.parametrize("game", ["valety", "polignac-4"])
def test_the_heuristic_reads_neither_keys_nor_totals_nor_the_order_of_plays(game: str) -> None:
    agent = make_agent("heuristic", GAMES[game])
    for views, legal, keys, actions in deals(agent, GAMES[game], seed=6, tables=6):
        other = views.copy()
        other["history"] = 0
        other["totals"] = 9
        other["deal"] = 3
        assert agent.act(other, legal, keys + np.uint64(1)).tolist() == actions.tolist()


# The choices of the first heuristic in 24 deals of each game, as digests: who is measured against
# it today can be compared with who was measured before.
CHOICES = {
    "valety": "2d6d2b9c2f603ba3",
    "knaves": "7c9029521ca522c0",
    "valety-L1": "212caed3b31d6f8c",
    "valety-L2": "62eef7fe6be9184c",
    "valety-L3": "87beec589b8adff5",
    "valety-L4": "7dc6d256dc5b37bb",
    "valety-L5": "7db8735499e5e34c",
    "valety-L6": "eacf0591657fe58a",
    "valety-L7": "64f3647ecd1bdde3",
    "valety-L8": "b937ed18e101b6e6",
    "polignac-3": "222b9d9a56a0d823",
    "polignac-4": "cec47c2ed8abec49",
    "polignac-5": "08378576427167be",
    "polignac-6": "f67f1e6d2750f504",
    "polignac-7": "7224255d738f9b1b",
    "polignac-classic-3": "a1de52e89a43051b",
    "polignac-classic-4": "56f7489b67069ac5",
    "polignac-classic-5": "863d02bd6ae6dd2e",
    "polignac-classic-6": "bf6c06c7f7143630",
    "polignac-classic-7": "2523e16a8a70041e",
}


@pytest.mark.parametrize("game", GAMES)
def test_the_heuristic_plays_as_it_always_has(game: str) -> None:
    agent = make_agent("heuristic", GAMES[game])
    digest = hashlib.blake2b(digest_size=8)
    for *_, actions in deals(agent, GAMES[game], seed=21, tables=24):
        digest.update(actions.tobytes())
    assert digest.hexdigest() == CHOICES[game]


# Random play.


def test_random_chooses_every_legal_card_equally_often() -> None:
    cards = [0, 3, 17, 18, 30, 50, 51]
    draws = 70_000
    agent = make_agent("random", "valety")
    legal = np.full(draws, card_set(cards), np.uint64)
    views = np.zeros(draws, VIEW)
    # Keys as they come from a generator, and keys that count up.
    for keys in (keys_of(7, draws), np.arange(draws, dtype=np.uint64)):
        actions = agent.act(views, legal, keys)
        counts = [int((actions == card).sum()) for card in cards]
        assert sum(counts) == draws
        assert chi_square(counts) < chi_square_bound(len(cards))
        # Pairs of successive choices are as even.
        places = np.searchsorted(cards, actions)
        pairs = np.bincount(7 * places[::2] + places[1::2], minlength=49)
        assert chi_square(pairs.tolist()) < chi_square_bound(49)


def test_random_announces_at_every_other_chance_and_never_with_general_0() -> None:
    draws = 4000
    views = np.zeros(draws, VIEW)
    legal = np.full(draws, bit(PASS) | bit(GENERAL), np.uint64)
    for general, share in ((1, 0.5), (0, 0.0)):
        actions = make_agent(f"random,general={general}", "polignac").act(
            views, legal, keys_of(8, draws)
        )
        assert (actions == GENERAL).mean() == pytest.approx(share, abs=0.03 * general)


# Names.


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("random", "random"),
        ("random,general=1", "random"),
        ("random:general=0", "random,general=0"),
        (" heuristic ", "heuristic"),
        ("heuristic,general=0", "heuristic,general=0"),
    ],
)
def test_an_agent_is_named_by_the_string_that_makes_it_again(given: str, name: str) -> None:
    agent = make_agent(given, "polignac")
    assert isinstance(agent, Agent)
    assert agent.name == name
    assert make_agent(agent.name, make_rules("polignac")).name == name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "pimc2",
            r"'pimc2' names no agent; the agents are: random, heuristic, pimc, clairvoyant, "
            r"checkpoint:PATH",
        ),
        ("", r"'' names no agent; the agents are: random"),
        (None, r"named by a string, not None"),
        ("random:7", r"'random:7': random takes options alone, and '7' is not KEY=VALUE"),
        ("random,", r"'' is not KEY=VALUE"),
        ("random,general=", r"'general=' is not KEY=VALUE"),
        ("random,genral=0", r"random has no option 'genral'; its options are: general"),
        ("random,general=0,general=0", r"general is given twice"),
        ("heuristic,general=maybe", r"general=maybe: allowed are 0 and 1"),
        ("checkpoint", r"checkpoint needs PATH, as in checkpoint:PATH"),
        ("checkpoint,a=1", r"checkpoint needs PATH"),
    ],
)
def test_a_wrong_name_is_refused_in_one_line_that_says_what_is_allowed(
    given: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        make_agent(given, "polignac")
    assert "\n" not in str(error.value)


def test_a_path_may_hold_what_separates_options() -> None:
    parsed = parse_agent_name("checkpoint:C:/lr=0.1,2,b/last,device=cpu")
    assert parsed == ("checkpoint", "C:/lr=0.1,2,b/last", {"device": "cpu"})
    own = ["random", "heuristic", "pimc", "clairvoyant", "checkpoint:PATH"]
    assert agent_names()[:5] == own
    assert agent_names()[5:] == ["onnx:FILE", "sb3:FILE", "rllib:DIR", "python:MODULE:FUNCTION"]


def test_agents_are_made_without_torch_and_a_checkpoint_says_what_it_needs() -> None:
    code = """if True:
        import sys
        sys.modules["torch"] = None  # as if it were not installed
        from valety_env.agents import make_agent
        make_agent("heuristic", "valety")
        make_agent("checkpoint:runs/a", "valety")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(
        r"ModuleNotFoundError: checkpoint:runs/a needs torch: pip install 'valety-env\[train\]'",
        last,
    ), done.stderr


# The heuristic's sense: one decision each.


def choice(rules: Rules, table: Table) -> str:
    """Return what the heuristic does at a table."""
    views, legal = show(rules, table.states)
    return table.name(make_agent("heuristic", rules).act(views, legal, keys_of(0, 1))[0])


def duel(leads: str, follows: str, turned: str, lead: str) -> str:
    """Return the answer of the second hand to a lead of the first in Valety, 5 cards each."""
    rules = make_rules("valety", hand_size=5)
    return choice(rules, Table(rules).begin(0, leads, follows, turned=turned).act(lead))


@pytest.mark.plain
def test_the_heuristic_throws_the_dearest_jack_on_a_trick_it_cannot_win() -> None:
    assert duel("AS 5S 6C 7D 8H", "JH JC 2C 3D 9D", "4D", "AS") == "JH"


@pytest.mark.plain
def test_the_heuristic_plays_the_jack_under_a_higher_card() -> None:
    assert duel("AH 5S 6C 7D 8S", "JH 2H QH 9C 9D", "4C", "AH") == "JH"


@pytest.mark.plain
def test_the_heuristic_does_not_take_a_jack_when_it_can_duck() -> None:
    assert duel("JD 5S 6C 7D 8H", "KD 9D 2C 3C 9S", "4S", "JD") == "9D"
    assert duel("JD 5S 6C 7C 8H", "KS 9S 2C 3C 9H", "4S", "JD") not in ("KS", "9S")


@pytest.mark.plain
def test_the_heuristic_takes_a_trick_without_a_jack_as_cheaply_as_it_can() -> None:
    assert duel("TS 5D 6C 7D 8H", "QS AS 2S 9C 3D", "4D", "TS") == "QS"


def polignac(*hands: str, plays: str, calls: str = "", **options: Any) -> str:
    """Return what the heuristic does in Polignac for four, 4 cards each, of a short pack."""
    pack = " ".join(hands)
    options = {"pack": pack, "general": bool(calls)} | options
    rules = make_rules("polignac", **options)
    return choice(rules, Table(rules).begin(0, *hands).act(f"{calls} {plays}"))


@pytest.mark.plain
def test_the_heuristic_plays_high_last_where_no_jack_lies() -> None:
    hands = ("7H KH 9S TS", "8H JH QS KS", "9H 7C 8C 9C", "AH TH 7D 8D")
    assert polignac(*hands, plays="7H 8H 9H") == "AH"


@pytest.mark.plain
def test_the_heuristic_ducks_a_trick_with_a_jack_in_it() -> None:
    hands = ("QH 8S 9S TS", "JH 7S QS KS", "9H 7C 8C 9C", "AH TH 7D 8D")
    assert polignac(*hands, plays="QH JH 9H") == "TH"


@pytest.mark.plain
def test_the_heuristic_throws_the_jack_of_spades_when_it_cannot_follow() -> None:
    hands = ("QH 8S 9S TS", "8H 7S QS KS", "9H 7C 8C 9C", "JS JD AD 8D")
    assert polignac(*hands, plays="QH 8H 9H") == "JS"


SURE = "AH KH AC KC"
REST = ("QH 8S 9S TS", "8H 7S QS KS", "9H QC 8C 9C")


@pytest.mark.plain
def test_the_heuristic_announces_a_general_that_is_certain_and_no_hopeless_one() -> None:
    rest = ("8S 9S TS QS", "QH 9H 8H 7H", "QC 9C 8C 7C")
    assert polignac(SURE, *rest, plays="", calls=" ", general=True) == "general"
    assert polignac(rest[1], SURE, rest[0], rest[2], plays="", calls=" ", general=True) == "pass"
    rules = make_rules("polignac", pack=" ".join((SURE, *rest)))
    table = Table(rules).begin(0, SURE, *rest)
    views, legal = show(rules, table.states)
    quiet = make_agent("heuristic,general=0", rules)
    assert table.name(quiet.act(views, legal, keys_of(0, 1))[0]) == "pass"


@pytest.mark.plain
def test_the_heuristic_as_general_leads_a_winner() -> None:
    hands = ("AH KH 7C 7D", "QH 9H 8H 7S", "AC 9C 8C 8S", "AD KD 9D 8D")
    assert polignac(*hands, plays="", calls="general") in ("AH", "KH")


@pytest.mark.plain
def test_the_heuristic_stops_a_general_even_with_a_trick_that_costs_jacks() -> None:
    hands = ("QH AC KC AS", "JH 9C 8C 7S", "9H 9S 8S TS", "AH 7H JD QD")
    assert polignac(*hands, plays="QH JH 9H", calls="general") == "AH"
    # Nobody announced: the jack is ducked.
    assert polignac(*hands, plays="QH JH 9H") == "7H"


@pytest.mark.plain
def test_the_heuristic_keeps_what_may_stop_a_general() -> None:
    hands = ("AH KH QH KS", "9H 8H 7H 7S", "TH 9S 8S TS", "AS JD TD 8D")
    assert polignac(*hands, plays="AH 9H TH", calls="general") != "AS"


# Strength, on duplicate deals: each deal is played from every seat.


@kernel
def play_deals(
    rules: np.ndarray,
    table: np.ndarray,
    view: np.ndarray,
    seed: int,
    general: bool,
    results: np.ndarray,
) -> None:
    """Play deals with one heuristic among random players who never announce.

    Args:
        rules: `RULES` (1,).
        table: `STATE` (1,), room to play in.
        view: `VIEW` (1,), room for a look.
        seed: fixes the deals and the random play.
        general: whether the heuristic may announce.
        results: float64 (deals, 2), overwritten: own points and the mean of the others', each a
            mean over the seats; charges count as they are.
    """
    players = int64(rules[0].num_players)
    for deal in range(results.shape[0]):
        results[deal, 0] = 0.0
        results[deal, 1] = 0.0
        for seat in range(players):
            # A new episode for each deal, the same one for each seat.
            start_match(rules[0], table[0], np.uint64(seed), deal)
            key = mix(np.uint64(seed + 1), np.uint64(deal))
            while table[0].phase < DEAL_OVER:
                legal = legal_actions(rules[0], table[0])
                if table[0].turn == seat:
                    look(rules[0], table[0], seat, view[0])
                    action = heuristic_action(rules[0], view[0], legal, general)
                else:
                    count = int64(table[0].num_plays) + int64(table[0].num_calls)
                    action = random_action(legal, mix(key, np.uint64(count)), False)
                play(rules[0], table[0], action)
            for other in range(players):
                points = deal_points(rules[0], table[0], other) / players
                if other == seat:
                    results[deal, 0] += points
                else:
                    results[deal, 1] += points / (players - 1)


def heuristic_among_randoms(
    rules: Rules, seed: int, deals: int, general: bool = True
) -> np.ndarray:
    """Return own points and the mean of the others', float64 (deals, 2)."""
    results = np.zeros((deals, 2))
    table, view = np.zeros(1, STATE), np.zeros(1, VIEW)
    play_deals(rules.packed, table, view, seed, general, results)
    return results


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of a mean."""
    mean, half = values.mean(), 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return mean - half, mean + half


def test_the_heuristic_beats_random_in_valety_by_far() -> None:
    own, others = heuristic_among_randoms(GAMES["valety"], seed=11, deals=4000).T
    low, _ = interval(own - others)
    assert low >= 4.5


def test_the_heuristic_is_charged_about_half_of_what_random_players_are() -> None:
    rules = make_rules("polignac", general=False)
    own, others = heuristic_among_randoms(rules, seed=12, deals=4000).T
    ratio = own.mean() / others.mean()
    # The ratio of two means: its error is that of the mean of own − ratio × others.
    _, high = interval(ratio + (own - ratio * others) / others.mean())
    assert high <= 0.55


@pytest.mark.parametrize("players", [3, 5, 6, 7])
def test_the_heuristic_is_charged_less_than_random_players_at_tables_of_all_sizes(
    players: int,
) -> None:
    rules = make_rules("polignac", num_players=players, general=False)
    own, others = heuristic_among_randoms(rules, seed=13, deals=2000).T
    assert own.mean() <= 0.6 * others.mean()


def test_the_heuristic_gains_by_the_generals_it_announces() -> None:
    rules = make_rules("polignac", num_players=6)
    # The same deals and random play with generals and without; most deals are the same twice.
    own, others = heuristic_among_randoms(rules, seed=14, deals=20_000).T
    quiet_own, quiet_others = heuristic_among_randoms(rules, seed=14, deals=20_000, general=False).T
    gain = (others - own) - (quiet_others - quiet_own)
    assert (gain != 0).sum() > 100
    low, _ = interval(gain)
    assert low > 0

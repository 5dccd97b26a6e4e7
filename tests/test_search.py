"""`pimc`, the best card on average over what is hidden, and `clairvoyant`, who sees it."""

import random
from itertools import combinations
from typing import Any

import gymnasium
import numpy as np
import pytest
from tables import Table
from test_agents import keys_of, show
from test_solver import Brute, by_brute_force, dealt

from valety_env import evaluate, make_agent
from valety_env.agents.heuristic import HeuristicAgent
from valety_env.agents.search import PimcAgent
from valety_env.cards import lowest
from valety_env.engine import PLAYS, STATE
from valety_env.rules import make_rules
from valety_env.view import VIEW


def middle_of_deals(number: int, **options: Any) -> list[Table]:
    """Return tables at random plays of random deals of a small game."""
    rules = make_rules("valety-L5", **options)
    rng = random.Random(7)
    tables = []
    while len(tables) < number:
        table = dealt(rules, rng)
        for _ in range(rng.randrange(5)):
            table.act(rng.choice(table.legal()))
        if len(table.legal()) > 1:
            tables.append(table)
    return tables


def mean_values(table: Table) -> dict[str, float]:
    """Return the mean value of each card over all hands that the other may hold, by brute force."""
    state = table.state
    seat = int(state.turn)
    own = frozenset(table.names(state.hand[seat]))
    gone = {table.name(c) for c in state.history[: int(state.num_plays)]}
    turned = table.name(state.turned)
    unseen = sorted(set(table.rules.pack) - own - gone - {turned})
    voids = {"SCDH"[s] for s in range(4) if int(state.voids[1 - seat]) >> s & 1}
    possible = [card for card in unseen if card[1] not in voids]
    brute = Brute(table.rules, turned[1])
    led = int(state.table[1 - seat])
    sums = dict.fromkeys(table.legal(), 0)
    worlds = 0
    for hand in combinations(possible, int(state.hand_sizes[1 - seat])):
        other = frozenset(hand)
        worlds += 1
        for card in sums:
            if led < 0:
                sums[card] += brute.lead(own, other, card)
            else:
                lead = table.name(led)
                sums[card] -= brute.after(other | {lead}, own, lead, card)
    return {card: total / worlds for card, total in sums.items()}


def test_the_choice_is_the_best_on_average_over_what_may_be_hidden() -> None:
    tables = middle_of_deals(60)
    rules = tables[0].rules
    views, legal = show(rules, np.concatenate([table.states for table in tables]))
    agent = make_agent("pimc,worlds=1500,model=none", rules)
    actions = agent.act(views, legal, keys_of(1, len(views)))
    clear = 0
    for table, action in zip(tables, actions, strict=True):
        means = mean_values(table)
        chosen = means[table.name(action)]
        # A mean of 1,500 worlds, of values that spread by 4 or less, is off by 0.1 on average.
        assert chosen >= max(means.values()) - 0.4, means
        clear += chosen > np.mean(list(means.values())) + 0.5
    assert clear > 20


def test_a_choice_depends_on_its_row_alone_and_not_on_threads() -> None:
    tables = middle_of_deals(12)
    rules = tables[0].rules
    views, legal = show(rules, np.concatenate([table.states for table in tables]))
    keys = keys_of(2, len(views))
    agent = make_agent("pimc,worlds=7", rules)
    actions = agent.act(views, legal, keys)
    for name in ("pimc,worlds=7,threads=2", "pimc,worlds=7,threads=3"):
        assert np.array_equal(make_agent(name, rules).act(views, legal, keys), actions)
    order = np.random.default_rng(0).permutation(len(views))
    assert np.array_equal(agent.act(views[order], legal[order], keys[order]), actions[order])
    one_by_one = [
        agent.act(views[i : i + 1], legal[i : i + 1], keys[i : i + 1])[0] for i in range(len(views))
    ]
    assert one_by_one == actions.tolist()
    # One world is not enough to be always of one mind.
    few = make_agent("pimc,worlds=1", rules)
    others = [few.act(views, legal, keys_of(seed, len(views))).tolist() for seed in range(5)]
    assert len({tuple(row) for row in others}) > 1


def test_nothing_that_is_hidden_is_looked_at() -> None:
    """The same view with other cards behind it: it gets views alone, which hold no more."""
    names = VIEW.names
    assert names is not None
    assert "seed" not in names
    table = middle_of_deals(1)[0]
    views, legal = show(table.rules, table.states)
    before = views.copy(), legal.copy()
    make_agent("pimc,worlds=3", table.rules).act(views, legal, keys_of(3, 1))
    assert np.array_equal(views, before[0])
    assert np.array_equal(legal, before[1])


def test_a_card_that_must_be_played_is_played_at_once() -> None:
    rules = make_rules("valety")
    table = dealt(rules, random.Random(3)).act(dealt(rules, random.Random(3)).legal()[0])
    views, _ = show(rules, table.states)
    only = np.array([1 << table.number(table.legal()[0])], np.uint64)
    agent: Any = make_agent("pimc,worlds=300", rules)
    assert agent.act(views, only, keys_of(1, 1)).tolist() == [table.number(table.legal()[0])]
    assert agent._solver.nodes == 0


def test_a_time_in_place_of_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = middle_of_deals(2)
    rules = tables[0].rules
    views, legal = show(rules, np.concatenate([table.states for table in tables]))
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return 0.05 * len(looks)

    monkeypatch.setattr("valety_env.agents.search.time.monotonic", clock)
    agent = make_agent("pimc,seconds=0.1", rules)
    assert agent.name == "pimc,seconds=0.1"
    actions = agent.act(views, legal, keys_of(1, 2))
    # Two tables have 0.2 s: begun at 0.05, two worlds each at every look until 0.25.
    assert len(looks) == 5
    same = make_agent("pimc,worlds=8", rules).act(views, legal, keys_of(1, 2))
    assert np.array_equal(actions, same)


@pytest.mark.parametrize(
    ("name", "game", "message"),
    [
        ("pimc", "polignac", r"num_players=4, scoring=.*two players"),
        ("pimc,worlds=0", "valety", r"worlds=0: it must be at least 1"),
        ("pimc,worlds=2.5", "valety", r"worlds=2.5: it must be a whole number"),
        ("pimc,seconds=0", "valety", r"seconds=0.0: it must be a number above 0"),
        ("pimc,seconds=nan", "valety", r"seconds=nan: it must be a number above 0"),
        ("pimc,seconds=x", "valety", r"seconds=x: it must be a number"),
        ("pimc,seconds=1,worlds=1", "valety", r"worlds and seconds: give one of them"),
        ("pimc,threads=0", "valety", r"threads=0: it must be at least 1"),
        ("pimc,threads=1000", "valety", r"threads=1000: it must be at most 256"),
        (
            "pimc,depth=3",
            "valety",
            r"no option 'depth'; its options are: worlds, seconds, model, threads",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name: str, game: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        make_agent(name, game)
    assert "\n" not in str(error.value)


def test_the_name_makes_it_again() -> None:
    assert make_agent("pimc", "valety").name == "pimc,worlds=40"
    assert make_agent("pimc:worlds=3,threads=2", "valety").name == "pimc,worlds=3"
    for name in (
        "pimc,worlds=3,model=none",
        "pimc,worlds=3,model=random",
        "pimc,seconds=0.5,model=random",
        "clairvoyant",
    ):
        assert make_agent(name, "valety").name == name
    assert make_agent("pimc,model=heuristic", "valety").name == "pimc,worlds=40"


def test_who_the_other_is_taken_to_be_changes_what_is_played() -> None:
    rules = make_rules("valety")
    rng = random.Random(5)
    states = []
    for _ in range(12):
        table = dealt(rules, rng)
        for _ in range(20):
            table.act(rng.choice(table.legal()))
        states.append(table.states)
    views, legal = show(rules, np.concatenate(states))
    keys = keys_of(1, len(views))
    choices = {
        model: make_agent(f"pimc,worlds=5,model={model}", rules).act(views, legal, keys).tolist()
        for model in ("none", "random", "heuristic")
    }
    assert choices["heuristic"] != choices["none"] != choices["random"]
    own = PimcAgent(rules, worlds=5, model=HeuristicAgent(rules))
    assert own.name == "pimc,worlds=5,model=heuristic"
    assert own.act(views, legal, keys).tolist() == choices["heuristic"]


def test_more_worlds_than_are_solved_at_once_are_the_same_worlds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = middle_of_deals(50)
    rules = tables[0].rules
    views, legal = show(rules, np.concatenate([table.states for table in tables]))
    keys = keys_of(4, 50)
    agent = make_agent("pimc,worlds=3", rules)
    actions = agent.act(views, legal, keys).tolist()
    for at_once in (1, 2, 3, 30):
        monkeypatch.setattr("valety_env.agents.search._MOST_WORLDS", at_once)
        assert agent.act(views, legal, keys).tolist() == actions


@pytest.mark.slow
def test_it_beats_random_play_by_far() -> None:
    result = evaluate("pimc,worlds=10", ["random"], deals=150, seed=11).results[0]
    # Independent throw-away versions: 7.0 ± 0.4.
    assert result.ci95 is not None
    assert result.ci95[0] > 5.0


def test_a_deal_is_played_to_its_end() -> None:
    rules = make_rules("valety")
    table = dealt(rules, random.Random(9))
    agent = make_agent("pimc,worlds=2", rules)
    plays = 0
    while table.state.phase == PLAYS:
        views, legal = show(rules, table.states)
        action = int(agent.act(views, legal, keys_of(plays, 1))[0])
        table.act(table.name(action))
        plays += 1
    assert plays == 34


# The player that sees all cards.


def test_clairvoyant_plays_the_best_card_of_all_hands() -> None:
    tables = middle_of_deals(60)
    rules = tables[0].rules
    states = np.concatenate([table.states for table in tables])
    _, legal = show(rules, states)
    agent = make_agent("clairvoyant", rules)
    actions = agent.act(states, legal, keys_of(1, len(states)))
    some_are_worse = 0
    for table, action in zip(tables, actions, strict=True):
        values = by_brute_force(table, Brute(rules, str(table.trump)))
        assert values[table.name(action)] == max(values.values())
        some_are_worse += min(values.values()) < max(values.values())
    assert some_are_worse > 20
    two = make_agent("clairvoyant,threads=2", rules).act(states, legal, keys_of(2, len(states)))
    assert two.tolist() == actions.tolist()


class Watched:
    """Plays the lowest card and remembers what it was shown."""

    def __init__(self, all_cards: bool) -> None:
        self.name = "watched"
        self.shown: list[np.ndarray] = []
        if all_cards:
            self.sees_all = True

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        self.shown.append(views.copy())
        if hasattr(self, "sees_all"):
            # A copy: it can change nothing.
            views["hand"] = 0
        return np.array([lowest(cards) for cards in legal], np.int64)


def whole_deal(watched: Any, where: str) -> None:
    """Let an agent play at one or more tables."""
    if where == "arena":
        evaluate(watched, "random", game="valety-L5", deals=3, seed=1)
        return
    if where == "gymnasium":
        env = gymnasium.make("valety/Valety-v0", opponent=watched, episode="deal")
        env.reset(seed=1)
        over = False
        while not over:
            mask = env.unwrapped.action_masks()  # type: ignore[attr-defined]
            _, _, over, _, _ = env.step(int(mask.argmax()))
        return
    batch = gymnasium.make_vec("valety/Valety-v0", num_envs=3, opponent=watched)
    _, info = batch.reset(seed=1)
    for _ in range(40):
        _, _, _, _, info = batch.step(info["action_mask"].argmax(axis=1))


@pytest.mark.parametrize("where", ["arena", "gymnasium", "vector"])
def test_only_who_asks_for_it_sees_all_cards(where: str) -> None:
    fair, clairvoyant = Watched(False), Watched(True)
    whole_deal(fair, where)
    assert len(fair.shown) > 3
    assert {views.dtype for views in fair.shown} == {VIEW}
    whole_deal(clairvoyant, where)
    assert {states.dtype for states in clairvoyant.shown} == {STATE}
    # What it is shown are the tables that the fair one was asked about, with the cards behind it.
    assert len(clairvoyant.shown) == len(fair.shown)
    for states, views in zip(clairvoyant.shown, fair.shown, strict=True):
        for state, view in zip(states, views, strict=True):
            assert state["turn"] == view["seat"]
            assert state["hand"][view["seat"]] == view["hand"]
            assert state["played"].tolist() == view["played"].tolist()
            other = 1 - int(view["seat"])
            assert int(state["hand"][other]).bit_count() == state["hand_sizes"][other]


@pytest.mark.slow
def test_pimc_beats_the_heuristic_and_who_sees_all_beats_pimc() -> None:
    for agent, opponent in (("pimc,worlds=10", "heuristic"), ("clairvoyant", "pimc,worlds=10")):
        result = evaluate(agent, opponent, deals=120, seed=11).results[0]
        assert result.ci95 is not None
        assert result.ci95[0] > 0

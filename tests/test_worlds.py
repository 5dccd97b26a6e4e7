"""Worlds as likely as what the others played makes them, and what tells how likely plays are."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from tables import Table
from test_agents import keys_of, show
from test_solver import dealt

from valety_env import make_agent
from valety_env.agents import Policy
from valety_env.agents.worlds import CANDIDATES, RANDOM_PLAYERS, RANDOM_PLAYS, imagine_worlds
from valety_env.notation import position_from_text
from valety_env.rules import Rules, make_rules
from valety_env.view import VIEW, look

# Games of two with few cards, some undealt; every way to find a trump and to count.
GAMES = [
    make_rules("valety-L5"),
    make_rules("valety-L5", trump="none", count="trick", target=20),
    make_rules("valety-L4", jack_penalties=(0, 5, 1, 3)),
]


class Spy:
    """A policy that remembers what it is asked, and says what it is told to."""

    def __init__(self, chance: float = 0.5) -> None:
        self.asked: list[tuple[np.ndarray, int, int]] = []
        self.chance = chance

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        for view, cards, card in zip(views.copy(), legal, actions, strict=True):
            self.asked.append((view, int(cards), int(card)))
        return np.full(len(legal), self.chance)


class Ranked:
    """A policy that plays a card five times as often as the one below it."""

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.array([ranked(int(s), int(a)) for s, a in zip(legal, actions, strict=True)])


def ranked(legal: int, card: int) -> float:
    place = (legal & (1 << card) - 1).bit_count()
    return float(5**place / sum(5**other for other in range(legal.bit_count())))


def fields(record: Any) -> list[Any]:
    """Return the values of a record; bytes between its fields are nobody's."""
    return [record[name].tolist() for name in record.dtype.names]


Choice = tuple[list[Any], int, int]


def played(rules: Rules, plays: int, seed: int) -> tuple[Table, list[Choice]]:
    """Play at random; return the table, and what every seat saw and did at its free choices."""
    rng = random.Random(seed)
    table = dealt(rules, rng)
    choices = []
    for _ in range(plays):
        legal = table.legal()
        card = rng.choice(legal)
        if len(legal) > 1:
            views, sets = show(rules, table.states)
            choices.append((fields(views[0]), int(sets[0]), table.number(card)))
        table.act(card)
    return table, choices


def tables(rules: Rules, number: int) -> Iterator[tuple[Table, list[Choice]]]:
    for seed in range(number):
        yield played(rules, seed % (2 * rules.hand_size - 1), seed)


@pytest.mark.parametrize("rules", GAMES)
@pytest.mark.parametrize("model", [None, "random", "heuristic"])
def test_every_world_looks_the_same_to_the_seat(rules: Rules, model: str | None) -> None:
    policy = None if model is None else make_agent(model, rules)
    assert policy is None or isinstance(policy, Policy)
    for table, _ in tables(rules, 20):
        views, _ = show(rules, table.states)
        worlds = imagine_worlds(rules, policy, views, keys_of(1, 1), 12)
        assert worlds.shape == (1, 12)
        seen = np.zeros(1, VIEW)
        hidden = set()
        for world in worlds[0]:
            look(rules.record, world, int(world.turn), seen[0])
            assert fields(seen[0]) == fields(views[0])
            hidden.add(int(world.hand[1 - int(world.turn)]))
        other = int(table.state.hand_sizes[1 - int(table.state.turn)])
        assert len(hidden) > 1 or other == 0


@pytest.mark.parametrize("trump", ["turned", "last_card", "none"])
@pytest.mark.parametrize("count", ["deal", "trick"])
def test_the_model_is_shown_what_the_other_saw(trump: str, count: str) -> None:
    """With no card undealt the only world is the truth: what was seen is known in full."""
    pack = ["JD", "QD", "KD", "AD", "JH", "QH", "KH", "AH", "TS"]
    pack = pack if trump == "turned" else pack[:-1]
    rules = make_rules("valety-L4", pack=pack, hand_size=4, trump=trump, count=count, target=20)
    for table, choices in tables(rules, 30):
        views, _ = show(rules, table.states)
        spy = Spy()
        imagine_worlds(rules, spy, views, keys_of(1, 1), 1)
        me = int(table.state.turn)
        seat = VIEW.names.index("seat")
        wanted = [choice for choice in choices if choice[0][seat] != me] * CANDIDATES
        assert [(fields(view), legal, card) for view, legal, card in spy.asked] == wanted


def exact_chances(weights: list[float]) -> list[float]:
    """Return how likely each world is kept, of CANDIDATES drawn from worlds of these weights."""
    number = len(weights)
    kept = [0.0] * number

    def spread(left: int, place: int, counts: list[int]) -> None:
        if place == number - 1:
            all_counts = [*counts, left]
            ways = factorial(CANDIDATES) / prod(factorial(count) for count in all_counts)
            chance = ways / number**CANDIDATES
            total = sum(n * w for n, w in zip(all_counts, weights, strict=True))
            for world, count in enumerate(all_counts):
                kept[world] += chance * count * weights[world] / total
            return
        for count in range(left + 1):
            spread(left - count, place + 1, [*counts, count])

    spread(CANDIDATES, 0, [])
    return kept


def test_worlds_are_as_likely_as_the_plays_make_them() -> None:
    """Importance resampling has a closed form where worlds are few."""
    pack = ["JD", "QD", "KD", "AD", "JH", "QH", "KH", "AH", "TS"]
    rules = make_rules("valety-L4", pack=pack, hand_size=3)
    told = 0
    for seed in range(40):
        table, _ = played(rules, 3 + seed % 3, seed)
        state = table.state
        me = int(state.turn)
        own = set(table.names(state.hand[me]))
        gone = {table.name(card) for card in state.history[: int(state.num_plays)]}
        unseen = sorted(set(pack) - own - gone - {table.turned})
        voids = {"SCDH"[s] for s in range(4) if int(state.voids[1 - me]) >> s & 1}
        possible = [card for card in unseen if card[1] not in voids]
        hands = list(combinations(possible, int(state.hand_sizes[1 - me])))
        if not 2 <= len(hands) <= 4:
            continue
        weights = []
        for hand in hands:
            follows, at_random = 1.0, 1.0
            left = set(hand) | {card for seat, card in table.plays if seat != me}
            for number, (seat, card) in enumerate(table.plays):
                if seat == me:
                    continue
                led = table.plays[number - 1][1][1] if number % 2 else card[1]
                legal = [c for c in left if c[1] == led] if number % 2 else list(left)
                legal = legal or list(left)
                cards = sum(1 << table.number(c) for c in legal)
                if len(legal) > 1:
                    chance = ranked(cards, table.number(card))
                    follows *= 0.9 * chance + 0.1 / len(legal)
                    at_random /= len(legal)
                left.remove(card)
            weights.append(0.9 * follows + 0.1 * at_random)
        assert (RANDOM_PLAYS, RANDOM_PLAYERS) == (0.1, 0.1)
        views, _ = show(rules, table.states)
        draws = 4000
        worlds = imagine_worlds(rules, Ranked(), views, keys_of(seed, 1), draws)
        found = Counter(frozenset(table.names(world.hand[1 - me])) for world in worlds[0])
        for hand, chance in zip(hands, exact_chances(weights), strict=True):
            sigma = (chance * (1 - chance) / draws) ** 0.5
            assert abs(found[frozenset(hand)] / draws - chance) < 4 * sigma, (seed, hands)
        told += max(weights) > 1.2 * min(weights)
    assert told > 5


def test_a_world_follows_from_view_key_and_number_alone() -> None:
    rules = make_rules("valety")
    states = np.concatenate([played(rules, 5 + i, i)[0].states for i in range(5)])
    views, _ = show(rules, states)
    keys = keys_of(3, 5)
    policy = make_agent("heuristic", rules)
    assert isinstance(policy, Policy)
    for model in (None, policy):
        worlds = imagine_worlds(rules, model, views, keys, 7)
        parts = [
            imagine_worlds(rules, model, views[i : i + 1], keys[i : i + 1], 1, w)
            for i in range(5)
            for w in range(7)
        ]
        assert [fields(part[0, 0]) for part in parts] == [fields(w) for w in worlds.reshape(-1)]


def test_a_policy_that_is_surprised_by_everything_forbids_no_world() -> None:
    rules = make_rules("valety")
    views, _ = show(rules, played(rules, 20, 1)[0].states)
    worlds = imagine_worlds(rules, Spy(0.0), views, keys_of(1, 1), 40)
    assert len({world.hand.tobytes() for world in worlds[0]}) > 30


def test_without_the_plays_before_nobody_is_asked() -> None:
    rules, states = position_from_text("valety hands=JS,AH,2C/QS,QH,3C turn=0 trump=H tricks=9/5")
    spy = Spy()
    views, _ = show(rules, states)
    assert imagine_worlds(rules, spy, views, keys_of(1, 1), 3).shape == (1, 3)
    assert spy.asked == []


# How likely agents say their choices are.


@pytest.mark.parametrize("name", ["random", "heuristic"])
@pytest.mark.parametrize("rules", GAMES)
def test_chances_of_all_cards_sum_to_1(name: str, rules: Rules) -> None:
    agent = make_agent(name, rules)
    assert isinstance(agent, Policy)
    for table, _ in tables(rules, 20):
        views, legal = show(rules, table.states)
        cards = [table.number(card) for card in table.legal()]
        chances = [float(agent.chances(views, legal, np.array([card]))[0]) for card in cards]
        assert sum(chances) == pytest.approx(1.0, abs=1e-12)
        if name == "random":
            assert chances == [1 / len(cards)] * len(cards)
        else:
            choice = int(agent.act(views, legal, keys_of(0, 1))[0])
            assert chances[cards.index(choice)] == max(chances)


def test_random_without_generals_never_announces() -> None:
    rules = make_rules("polignac")
    views, legal = show(rules, Table(rules).start().states)
    for general, wanted in ((1, [0.5, 0.5]), (0, [1.0, 0.0])):
        agent = make_agent(f"random,general={general}", rules)
        assert isinstance(agent, Policy)
        assert [agent.chances(views, legal, np.array([a]))[0] for a in (52, 53)] == wanted


def test_the_heuristic_tells_no_chances_with_generals() -> None:
    agent = make_agent("heuristic", "polignac")
    assert isinstance(agent, Policy)
    views, legal = show(make_rules("polignac"), Table(make_rules("polignac")).start().states)
    with pytest.raises(ValueError, match="without generals alone"):
        agent.chances(views, legal, np.array([52]))

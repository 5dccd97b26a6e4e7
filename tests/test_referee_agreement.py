"""The engine against the referee, at every play, in every game and under every option."""

import random
from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from referee import Referee
from tables import GAMES, Table, follow_match, jacks_of, random_rules, voids_of

from valety_env.rules import Rules

# What a referee and a table call by the same name.
SHARED = (
    "phase",
    "deal_number",
    "dealer",
    "leader",
    "turned",
    "trump",
    "general",
    "calls",
    "plays",
    "trick_winners",
    "tricks",
    "points",
    "totals",
    "winners",
)


def assert_agreement(table: Table, referee: Referee) -> None:
    for name in SHARED:
        assert getattr(table, name) == getattr(referee, name), name
    assert table.to_move() == referee.to_move()
    assert sorted(table.legal()) == sorted(referee.legal())
    assert [sorted(hand) for hand in table.hands] == [sorted(hand) for hand in referee.hands]
    assert table.voids == voids_of(referee)
    assert table.jacks == jacks_of(referee)
    if not any(referee.hands):
        assert table.deal_winner == referee.deal_winner


def compare_match(rules: Rules, seed: int, most_deals: int = 1000) -> Counter[str]:
    """Play a random match before both; return what happened in it, counted."""
    seen: Counter[str] = Counter()
    for table, referee in follow_match(rules, seed, most_deals=most_deals):
        try:
            assert_agreement(table, referee)
        except AssertionError as error:
            error.add_note(f"{rules.to_dict()}, seed {seed}, so far {referee.plays}")
            raise
        if referee.phase not in ("waiting for a deal", "over"):
            continue
        over = referee.phase == "over"
        best = max(referee.totals) if rules.scoring == "tricks" else min(referee.totals)
        seen["deals"] += 1
        seen["matches over"] += over
        seen["wins shared"] += len(referee.winners) > 1
        seen["matches ended within a deal"] += over and any(referee.hands)
        if referee.general is not None:
            made = referee.tricks[referee.general] == rules.hand_size
            seen["generals made" if made else "generals failed"] += 1
        if rules.tie == "play_on" and not over and referee.totals.count(best) > 1:
            ends = (
                (rules.num_deals is not None and referee.deal_number + 1 >= rules.num_deals)
                or (rules.target is not None and max(referee.totals) >= rules.target)
                or (rules.loss_limit is not None and max(referee.totals) >= rules.loss_limit)
            )
            seen["ties played on"] += ends
    return seen


@pytest.mark.parametrize("game", GAMES)
def test_random_matches_of_every_game_agree_with_the_referee(game: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(10):
        seen += compare_match(GAMES[game], seed)
    assert seen["matches over"] == 10


@pytest.mark.plain
@pytest.mark.parametrize("game", ["valety", "polignac-4"])
def test_a_deal_of_either_game_agrees_with_the_referee(game: str) -> None:
    assert compare_match(GAMES[game], seed=11, most_deals=1)["deals"] == 1


SAMPLE = [random_rules(random.Random(seed)) for seed in range(800)]


@pytest.mark.parametrize("part", range(8))
def test_random_matches_under_random_options_agree_with_the_referee(part: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(part * 100, part * 100 + 100):
        seen += compare_match(SAMPLE[seed], seed, most_deals=12)
    assert seen["deals"] >= 100


def test_the_random_options_bring_about_all_that_can_happen() -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        seen += compare_match(SAMPLE[seed], seed, most_deals=6)
    assert seen["deals"] > 400
    for event in (
        "matches over",
        "wins shared",
        "matches ended within a deal",
        "generals made",
        "generals failed",
        "ties played on",
    ):
        assert seen[event] >= 8, (event, seen)


def kinds(rules: Rules) -> dict[str, Any]:
    """Return the options that a sample is to combine, each as one of a few values."""
    cards, held = len(rules.pack), rules.num_players * (rules.hand_size or 0)
    return {
        "players": "two" if rules.num_players == 2 else "more",
        "pack": "full" if cards == 52 else "reduced",
        "rank_order": "usual" if rules.rank_order == "23456789TJQKA" else "other",
        "dealt": "whole" if held == cards else "in part",
        "trump": rules.trump,
        "scoring": rules.scoring,
        "penalties": rules.jack_penalties,
        "end": next(
            n for n in ("target", "num_deals", "loss_limit") if getattr(rules, n) is not None
        ),
        "max_deals": rules.max_deals,
        "count": rules.count,
        "first_lead": rules.first_lead,
        "tie": rules.tie,
        "general": rules.general,
        "general_leads": rules.general_leads,
        "charge": rules.general_charge == 5,
    }


# Pairs that no legal rules combine.
IMPOSSIBLE = [
    {"dealt": "whole", "trump": "turned"},
    {"dealt": "in part", "trump": "last_card"},
    {"scoring": "tricks", "general": True},
    {"scoring": "tricks", "end": "loss_limit"},
    {"scoring": "penalties", "end": "target"},
    {"scoring": "penalties", "count": "trick"},
    {"count": "trick", "end": "num_deals"},
    {"count": "trick", "end": "loss_limit"},
    {"count": "trick", "general": True},
    {"end": "target", "general": True},
]
# What means nothing where tricks score; the sample leaves it alone there.
NOT_TRIED = [("general_leads", True), ("charge", False)]


def test_the_random_options_come_in_every_pair_that_is_allowed() -> None:
    found = [kinds(rules) for rules in SAMPLE]
    values = {name: {one[name] for one in found} for name in found[0]}
    assert values["trump"] == {"none", "turned", "last_card"}
    assert values["first_lead"] == {"winner", "dealer", "left_of_dealer"}
    assert values["end"] == {"target", "num_deals", "loss_limit"}
    assert all(len(some) >= 2 for some in values.values()), values
    pairs = {
        ((a, one[a]), (b, one[b])) for one in found for a, b in combinations(list(found[0]), 2)
    }
    for a, b in combinations(list(found[0]), 2):
        for x in values[a]:
            for y in values[b]:
                combined = {a: x, b: y}
                if combined in IMPOSSIBLE:
                    continue
                where_tricks_score = (
                    ("scoring", "tricks"),
                    ("end", "target"),
                    ("count", "trick"),
                )
                if any(p in NOT_TRIED for p in combined.items()) and any(
                    p in where_tricks_score for p in combined.items()
                ):
                    continue
                assert ((a, x), (b, y)) in pairs, combined

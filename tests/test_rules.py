"""The rules as data: every option, every preset, every refusal."""

import pickle
import random
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from tables import FULL_PACK, GAMES, random_rules

from valety_env.rules import LADDER, PRESETS, RULES, Rules, make_rules

VALETY = {
    "num_players": 2,
    "pack": FULL_PACK,
    "rank_order": "23456789TJQKA",
    "hand_size": 17,
    "trump": "turned",
    "scoring": "tricks",
    "jack_penalties": [1, 2, 3, 4],
    "target": 20,
    "num_deals": None,
    "loss_limit": None,
    "max_deals": None,
    "count": "deal",
    "first_lead": "winner",
    "tie": "play_on",
    "general": False,
    "general_leads": False,
    "general_charge": 5,
}
POLIGNAC = VALETY | {
    "trump": "none",
    "scoring": "penalties",
    "jack_penalties": [2, 1, 1, 1],
    "target": None,
    "tie": "draw",
    "general": True,
}
# Players: the pack as one reads it, cards a hand.
PACKS = {
    3: ("89TJQKA 89TJQKA 789TJQKA 789TJQKA", 10),
    4: ("789TJQKA 789TJQKA 789TJQKA 789TJQKA", 8),
    5: ("89TJQKA 89TJQKA 789TJQKA 789TJQKA", 6),
    6: ("89TJQKA 89TJQKA 789TJQKA 789TJQKA", 5),
    7: ("89TJQKA 89TJQKA 89TJQKA 89TJQKA", 4),
}


def cards(ranks_by_suit: str, suits: str = "SCDH") -> list[str]:
    return [
        rank + suit
        for suit, ranks in zip(suits, ranks_by_suit.split(), strict=True)
        for rank in ranks
    ]


# Games


def test_valety_has_the_numbers_of_the_rules_page() -> None:
    assert make_rules().to_dict() == make_rules("valety").to_dict() == VALETY


@pytest.mark.parametrize("players", PACKS)
def test_polignac_has_the_packs_and_deals_of_the_rules_page(players: int) -> None:
    pack, hand = PACKS[players]
    changes = {"num_players": players, "pack": cards(pack), "hand_size": hand}
    rules = make_rules("polignac", num_players=players)
    assert rules.to_dict() == POLIGNAC | changes | {"num_deals": players}
    if players == 4:
        assert make_rules("polignac") == rules


@pytest.mark.parametrize("players", PACKS)
def test_polignac_classic_has_the_order_lead_and_limit_of_the_rules_page(players: int) -> None:
    pack, hand = PACKS[players]
    # The same packs; K Q J A 10 9 8 7 is their order from the top.
    classic = pack.replace("TJQKA", "TAJQK")
    rules = make_rules("polignac-classic", num_players=players)
    assert rules.to_dict() == POLIGNAC | {
        "num_players": players,
        "pack": cards(classic),
        "hand_size": hand,
        "rank_order": "23456789TAJQK",
        "first_lead": "left_of_dealer",
        "loss_limit": 20,
    }
    if players == 4:
        assert make_rules("polignac-classic") == rules


def test_knaves_is_valety_for_three_with_the_lead_left_of_the_dealer() -> None:
    expected = VALETY | {"num_players": 3, "first_lead": "left_of_dealer"}
    assert make_rules("knaves").to_dict() == expected


@pytest.mark.parametrize(
    ("level", "suits", "ranks", "hand"),
    [
        ("L1", "DH", "JQK", 2),
        ("L2", "DH", "JQKA", 3),
        ("L3", "CDH", "JQK", 3),
        ("L4", "CDH", "JQKA", 4),
        ("L5", "SCDH", "JQK", 4),
        ("L6", "CDH", "JQKA", 5),
        ("L7", "SCDH", "JQKA", 4),
        ("L8", "SCDH", "JQKA", 5),
    ],
)
def test_the_ladder_has_the_packs_of_the_rules_page(
    level: str, suits: str, ranks: str, hand: int
) -> None:
    pack = cards(" ".join([ranks] * len(suits)), suits)
    expected = VALETY | {"pack": pack, "hand_size": hand, "max_deals": 1}
    assert make_rules(f"valety-{level}").to_dict() == expected


def test_the_games_are_those_of_the_rules_page() -> None:
    ladder = [f"valety-L{level}" for level in range(1, 9)]
    assert list(PRESETS) == ["valety", "polignac", "polignac-classic", "knaves", *ladder]
    assert list(LADDER) == [f"L{level}" for level in range(1, 9)]


# Options


# For every option a value that a game does not have by itself, and what it needs beside it.
OTHER_VALUES: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("valety", "num_players", 3, {}),
    ("valety", "pack", tuple(FULL_PACK[-40:]), {}),
    ("valety", "rank_order", "A23456789TJQK", {}),
    ("valety", "hand_size", 5, {}),
    ("valety", "trump", "none", {}),
    ("valety", "trump", "last_card", {"hand_size": 26}),
    ("valety", "scoring", "penalties", {"num_deals": 3}),
    ("polignac", "scoring", "tricks", {"general": False}),
    ("valety", "jack_penalties", (0, 0, 20, 1), {}),
    ("valety", "target", 1000, {}),
    ("valety", "num_deals", 1000, {}),
    ("polignac", "num_deals", 1, {}),
    ("polignac", "loss_limit", 1, {}),
    ("valety", "max_deals", 1000, {}),
    ("valety", "count", "trick", {}),
    ("valety", "first_lead", "dealer", {}),
    ("valety", "first_lead", "left_of_dealer", {}),
    ("polignac-classic", "first_lead", "winner", {}),
    ("valety", "tie", "draw", {}),
    ("polignac", "tie", "play_on", {}),
    ("polignac", "general", False, {}),
    ("polignac", "general_leads", True, {}),
    ("polignac", "general_charge", 0, {}),
    ("polignac", "trump", "last_card", {}),
    ("polignac", "trump", "turned", {"hand_size": 7}),
]


@pytest.mark.parametrize(("game", "name", "value", "beside"), OTHER_VALUES)
def test_every_option_can_be_changed(
    game: str, name: str, value: Any, beside: dict[str, Any]
) -> None:
    rules = make_rules(game, **{name: value}, **beside)
    assert getattr(rules, name) == value
    unchanged = make_rules(game).to_dict()
    may_change = {name, *beside, "target", "num_deals", "loss_limit"}
    for other, before in unchanged.items():
        if other == "pack" and name != "pack":
            assert sorted(rules.pack) == sorted(before)
        elif other not in may_change:
            assert rules.to_dict()[other] == before


def test_every_option_has_been_tried() -> None:
    assert {name for _, name, _, _ in OTHER_VALUES} == {f.name for f in fields(Rules)}


def test_a_pack_is_put_into_the_order_of_card_numbers() -> None:
    rules = make_rules("valety", pack="AH 2S+KD js", hand_size=1)
    assert rules.pack == ("2S", "JS", "KD", "AH")
    lows = make_rules("valety", pack=["AS", "2S", "KS"], rank_order="A23456789TJQK", hand_size=1)
    assert lows.pack == ("AS", "2S", "KS")


def test_numbers_of_numpy_become_plain_ones() -> None:
    rules = make_rules(
        "valety",
        target=np.int64(5),
        jack_penalties=np.array([1, 1, 1, 1]),
        general=np.bool_(False),
        num_players=np.int8(2),
    )
    plain = make_rules("valety", target=5, jack_penalties=(1, 1, 1, 1))
    assert rules == plain
    assert [type(value) for value in rules.to_dict().values()] == [
        type(value) for value in plain.to_dict().values()
    ]


@pytest.mark.parametrize("end", ["target", "num_deals"])
def test_one_end_of_a_match_takes_the_place_of_the_games_own(end: str) -> None:
    rules = make_rules("valety", **{end: 7})
    ends = {"target": None, "num_deals": None, "loss_limit": None}
    assert {name: getattr(rules, name) for name in ends} == ends | {end: 7}


def test_an_option_of_none_leaves_the_games_own_value() -> None:
    assert make_rules("valety", target=None, pack=None, hand_size=None) == make_rules("valety")
    assert make_rules("polignac", num_players=None, num_deals=None) == make_rules("polignac")


def test_options_change_rules_that_are_given_as_they_change_a_game() -> None:
    base = make_rules("valety", tie="draw")
    assert make_rules(base) == base
    assert make_rules(base, hand_size=5, target=None).hand_size == 5
    assert make_rules(base, hand_size=5, target=None).target == 20
    by_number = make_rules(base, num_deals=3)
    assert (by_number.num_deals, by_number.target, by_number.tie) == (3, None, "draw")
    assert make_rules("polignac", num_deals=None) == make_rules(make_rules("polignac"))


@pytest.mark.parametrize("game", GAMES)
def test_rules_survive_the_way_through_a_dict_and_through_pickle(game: str) -> None:
    rules = GAMES[game]
    assert Rules.from_dict(rules.to_dict()) == rules
    assert rules.packed.size == 1
    copy = pickle.loads(pickle.dumps(rules))
    assert copy == rules
    assert hash(copy) == hash(rules)
    assert copy.packed.tobytes() == rules.packed.tobytes()


def test_rules_of_any_kind_survive_the_way_through_a_dict() -> None:
    for seed in range(200):
        rules = random_rules(random.Random(seed))
        again = Rules.from_dict(rules.to_dict())
        assert again == rules
        assert again.packed.tobytes() == rules.packed.tobytes()


def test_rules_cannot_be_changed() -> None:
    rules = make_rules("valety")
    with pytest.raises(FrozenInstanceError):
        rules.target = 5  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        rules.packed["target"] = 5


def test_rules_replace_gives_new_rules_and_checks_them() -> None:
    rules = make_rules("valety")
    assert rules.replace(target=30).target == 30
    assert rules.target == 20
    with pytest.raises(ValueError, match="hand_size"):
        rules.replace(hand_size=30)


# What is refused. Each message names the fields and the values given.

REFUSED: list[tuple[str, dict[str, Any], list[str]]] = [
    # combinations
    ("valety", {"hand_size": 26}, ["trump", "num_players=2", "hand_size=26", "52", "turn up"]),
    ("valety", {"num_players": 4}, ["num_players=4", "hand_size=17", "52", "pack"]),
    ("polignac", {"hand_size": 9}, ["num_players=4", "hand_size=9", "32", "pack"]),
    ("polignac", {"trump": "last_card", "hand_size": 7}, ["trump", "hand_size=7", "4 of the 32"]),
    ("polignac", {"pack": FULL_PACK, "num_players": 5}, ["hand_size", "52", "num_players=5"]),
    ("valety", {"general": True}, ["general=True", "scoring", "tricks"]),
    ("polignac", {"scoring": "tricks"}, ["general=True", "scoring", "tricks"]),
    ("valety", {"target": 20, "num_deals": 3}, ["target=20", "num_deals=3", "loss_limit"]),
    ("polignac", {"num_deals": 2, "loss_limit": 9}, ["num_deals=2", "loss_limit=9", "target"]),
    ("polignac", {"target": 20}, ["target=20", "scoring", "penalties", "loss_limit"]),
    ("valety", {"loss_limit": 20}, ["loss_limit=20", "scoring", "tricks", "target"]),
    ("valety", {"count": "trick", "num_deals": 2}, ["count", "trick", "target"]),
    ("polignac", {"count": "trick"}, ["count", "trick", "target"]),
    ("polignac", {"num_players": 2}, ["num_players=2", "3, 4, 5, 6, 7", "pack"]),
    ("polignac-classic", {"num_players": 8}, ["num_players=8", "3, 4, 5, 6, 7", "pack"]),
    (
        "polignac",
        {"jack_penalties": (0, 0, 0, 0), "general": False, "loss_limit": 5},
        ["loss_limit=5", "jack_penalties", "general", "no end"],
    ),
    (
        "polignac",
        {"jack_penalties": (0, 0, 0, 0), "general_charge": 0, "tie": "play_on"},
        ["tie", "play_on", "jack_penalties", "no end"],
    ),
    # single values
    ("valety", {"num_players": 1}, ["num_players=1", "2…7"]),
    ("valety", {"num_players": 8, "hand_size": 2}, ["num_players=8", "2…7"]),
    ("valety", {"num_players": 2.0}, ["num_players=2.0", "whole number"]),
    ("valety", {"num_players": True}, ["num_players=True", "whole number"]),
    ("valety", {"hand_size": 0}, ["hand_size=0", "1…26"]),
    ("valety", {"hand_size": 27}, ["hand_size=27", "1…26"]),
    ("valety", {"hand_size": "17"}, ["hand_size='17'", "whole number"]),
    ("valety", {"target": 0}, ["target=0", "1…1000"]),
    ("valety", {"target": 1001}, ["target=1001", "1…1000"]),
    ("valety", {"target": "20"}, ["target='20'", "whole number"]),
    ("polignac", {"num_deals": 0}, ["num_deals=0", "1…1000"]),
    ("polignac", {"num_deals": 1001}, ["num_deals=1001", "1…1000"]),
    ("polignac", {"loss_limit": -1}, ["loss_limit=-1", "1…1000"]),
    ("valety", {"max_deals": 0}, ["max_deals=0", "1…1000"]),
    ("polignac", {"general_charge": -1}, ["general_charge=-1", "0…20"]),
    ("polignac", {"general_charge": 21}, ["general_charge=21", "0…20"]),
    ("polignac", {"general": 1}, ["general=1", "True and False"]),
    ("polignac", {"general": "yes"}, ["general='yes'", "True and False"]),
    ("polignac", {"general_leads": "no"}, ["general_leads='no'", "True and False"]),
    ("valety", {"trump": "spades"}, ["trump='spades'", "none", "turned", "last_card"]),
    ("valety", {"scoring": "points"}, ["scoring='points'", "tricks", "penalties"]),
    ("valety", {"count": "tricks"}, ["count='tricks'", "deal", "trick"]),
    ("valety", {"first_lead": "loser"}, ["first_lead='loser'", "winner", "dealer", "left_of"]),
    ("valety", {"tie": "both"}, ["tie='both'", "play_on", "draw"]),
    ("valety", {"rank_order": "23456789TJQK"}, ["rank_order='23456789TJQK'", "once"]),
    ("valety", {"rank_order": "2345678910JQKA"}, ["rank_order", "once"]),
    ("valety", {"rank_order": 5}, ["rank_order=5", "once"]),
    ("valety", {"pack": ["2S", "2S", "AH"], "hand_size": 1}, ["pack", "2S", "twice"]),
    ("valety", {"pack": "2S AH js JS", "hand_size": 1}, ["pack", "JS", "twice"]),
    ("valety", {"pack": ["2S", "XX"], "hand_size": 1}, ["pack", "'XX'", "not a card"]),
    ("valety", {"pack": ["2S"], "hand_size": 1}, ["pack", "at least 2"]),
    ("valety", {"pack": [], "hand_size": 1}, ["pack", "at least 2"]),
    ("valety", {"pack": 5}, ["pack=5", "card"]),
    ("valety", {"jack_penalties": (1, 2, 3)}, ["jack_penalties=(1, 2, 3)", "four"]),
    ("valety", {"jack_penalties": (1, 2, 3, -1)}, ["jack_penalties", "four", "0…20"]),
    ("valety", {"jack_penalties": (1, 2, 3, 21)}, ["jack_penalties", "four", "0…20"]),
    ("valety", {"jack_penalties": (1, 2, 3, 4.0)}, ["jack_penalties", "four whole numbers"]),
    ("valety", {"jack_penalties": 5}, ["jack_penalties=5", "four"]),
    ("valety", {"jack_penalties": "1234"}, ["jack_penalties='1234'", "four"]),
    # what is no option or no game
    ("valety", {"target_points": 20}, ["'target_points'", "target", "num_deals"]),
    ("bridge", {}, ["'bridge'", "valety", "polignac", "knaves", "valety-L8"]),
]


@pytest.mark.parametrize(("game", "options", "told"), REFUSED)
def test_what_is_impossible_is_refused_with_the_names_of_the_fields(
    game: str, options: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ValueError) as caught:
        make_rules(game, **options)
    for words in told:
        assert words in str(caught.value), str(caught.value)


def test_rules_without_any_end_of_the_match_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly one of target, num_deals, loss_limit"):
        Rules(hand_size=17)
    with pytest.raises(ValueError, match="exactly one of target, num_deals, loss_limit"):
        Rules(hand_size=17, max_deals=1)


def test_an_uneven_pack_needs_a_hand_size() -> None:
    with pytest.raises(ValueError, match="hand_size is not given") as caught:
        Rules(num_players=3, num_deals=1)
    assert "num_players=3" in str(caught.value)
    assert Rules(num_players=3, num_deals=1, hand_size=17).hand_size == 17
    assert Rules(num_players=4, num_deals=1, trump="none").hand_size == 13


def test_an_unknown_field_of_a_dict_is_refused() -> None:
    with pytest.raises(ValueError, match="'colour' is not a rule option"):
        Rules.from_dict(VALETY | {"colour": "red"})
    with pytest.raises(ValueError, match="'colour' is not a rule option"):
        make_rules("valety").replace(colour="red")


# The packed form


@pytest.mark.plain
@pytest.mark.parametrize("game", GAMES)
def test_the_packed_form_holds_the_rules(game: str) -> None:
    rules = GAMES[game]
    record: Any = rules.record
    numbers = [13 * "SCDH".index(name[1]) + rules.rank_order.index(name[0]) for name in rules.pack]
    assert rules.packed.dtype == RULES
    assert int(record.pack) == sum(1 << n for n in numbers)
    assert [int(n) for n in record.pack_cards[: len(numbers)]] == numbers == sorted(numbers)
    assert int(record.num_cards) == len(numbers)
    jacks = [name for name in rules.pack if name[0] == "J"]
    assert int(record.jacks) == sum(1 << numbers[rules.pack.index(name)] for name in jacks)
    assert rules.rank_order[int(record.jack_rank)] == "J"
    for some in range(16):
        cost = sum(rules.jack_penalties[suit] for suit in range(4) if some >> suit & 1)
        assert int(record.penalty_of[some]) == cost
    for name in ("target", "num_deals", "loss_limit", "max_deals"):
        assert int(record[name]) == (getattr(rules, name) or 0)
    for name in ("num_players", "hand_size", "general", "general_leads", "general_charge"):
        assert int(record[name]) == getattr(rules, name)


@pytest.mark.parametrize(
    ("game", "size"), [("valety", 52), ("knaves", 52), ("polignac", 54), ("polignac-classic", 54)]
)
def test_charges_alone_have_two_announcements_among_their_actions(game: str, size: int) -> None:
    assert make_rules(game).num_actions == size
    assert make_rules(game).lowest_wins == (size == 54)


def test_announcements_are_among_the_actions_of_polignac_even_when_they_are_left_out() -> None:
    assert make_rules("polignac", general=False).num_actions == 54

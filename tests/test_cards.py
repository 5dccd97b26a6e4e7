"""Card sets and names: the kernels against plain Python, and names both ways."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import FULL_PACK

from valety_env import cards

NUMBERS = st.integers(0, 51)
SETS = st.sets(NUMBERS)


@pytest.mark.plain
@given(SETS)
def test_a_set_counts_and_lists_its_cards_in_order(numbers: set[int]) -> None:
    a_set = cards.card_set(numbers)
    ordered = sorted(numbers)
    assert isinstance(a_set, np.uint64)
    assert int(a_set) == sum(2**n for n in numbers)
    assert int(cards.count(a_set)) == len(numbers)
    assert cards.cards_of(a_set) == cards.cards_of(int(a_set)) == ordered
    assert [int(cards.nth(a_set, n)) for n in range(len(ordered))] == ordered
    if ordered:
        assert int(cards.lowest(a_set)) == ordered[0]
        assert int(cards.highest(a_set)) == ordered[-1]


@pytest.mark.plain
def test_the_nth_card_is_that_of_the_sorted_list_in_sets_of_every_size() -> None:
    rng = random.Random(1)
    for size in range(1, 65):
        numbers = sorted(rng.sample(range(64), size))
        a_set = cards.card_set(numbers)
        assert [int(cards.nth(a_set, n)) for n in range(size)] == numbers


@pytest.mark.plain
def test_the_kernels_reach_all_64_bits() -> None:
    everything = np.uint64(2**64 - 1)
    assert int(cards.count(everything)) == 64
    assert int(cards.count(np.uint64(0))) == 0
    for n in (0, 1, 51, 52, 53, 63):
        assert int(cards.bit(n)) == 1 << n
        alone = np.uint64(1 << n)
        assert (int(cards.lowest(alone)), int(cards.highest(alone))) == (n, n)
        assert int(cards.nth(everything, n)) == n


@pytest.mark.plain
def test_a_suit_is_thirteen_cards_and_the_suits_make_up_the_pack() -> None:
    suits = [cards.cards_of(cards.suit_cards(suit)) for suit in range(4)]
    assert suits == [list(range(13 * suit, 13 * suit + 13)) for suit in range(4)]


def test_cards_are_numbered_by_suit_and_then_by_strength() -> None:
    assert [cards.card_name(n) for n in range(52)] == FULL_PACK
    assert FULL_PACK[0] == "2S"
    assert FULL_PACK[51] == "AH"
    assert cards.card_name(52) == "pass"
    assert cards.card_name(53) == "general"


@given(NUMBERS, st.permutations(cards.RANKS).map("".join))
def test_names_and_numbers_are_one_to_one_in_every_order_of_ranks(number: int, order: str) -> None:
    name = cards.card_name(number, order)
    assert name == order[number % 13] + "SCDH"[number // 13]
    assert cards.parse_card(name, order) == number
    assert cards.parse_card(f" {name.lower()} ", order) == number


def test_the_names_of_a_set_come_in_the_order_of_their_numbers() -> None:
    a_set = cards.card_set([51, 0, 8])
    assert cards.set_names(a_set) == ["2S", "TS", "AH"]
    classic = "23456789TAJQK"
    assert cards.set_names(a_set, classic) == ["2S", "TS", "KH"]


@pytest.mark.parametrize("name", ["", "S", "10S", "1S", "TX", "ST", "pass", "AHH", 5, None])
def test_what_is_no_card_is_refused_by_name(name: object) -> None:
    with pytest.raises(ValueError, match="is not a card") as caught:
        cards.parse_card(name)  # type: ignore[arg-type]
    assert repr(name) in str(caught.value)

"""Positions as the search sees them: two hands, all cards known, nothing that does not matter.

Which cards are gone does not matter, only who holds the strongest card left of a suit, the next
and so on; nor who is who, so that the *leader* is always whoever leads now. A suit is 14 bits of a
uint64, from its weakest card left upwards, 1 for the leader's and 0 for the *follower's*, and above
them a 1 that ends it. So equal positions are equal numbers. A place is the number of a bit.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64

from valety_env._jit import inlined, int64, kernel
from valety_env.cards import (
    EMPTY,
    NO_CARD,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    bit,
    count,
    lowest,
    suit_cards,
)

MOST_CARDS = NUM_CARDS // 2
LANE = 14
_BASES = uint64(sum(1 << LANE * suit for suit in range(NUM_SUITS)))
_LANE_0 = uint64((1 << LANE) - 1)

# A position before a lead, and what is asked of it.
NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("cards", np.uint64),  # 14 bits a suit, as above
                ("ends", np.uint64),  # the bits that end the suits
                ("jacks", np.uint64),  # the places of the jacks left
                ("code", np.uint64),  # of the jacks, 4 bits a suit
                ("slot", np.int64),  # where the table keeps it
                ("need", np.int16),  # the question: does the leader get so many points from here?
                ("points", np.int16),  # what both get together from here
                ("worth", np.int32),  # when it is asked, the highest first
                ("stays", np.bool_),  # whether its leader led the trick before, too
            ],
            align=True,
        ),
    )
)


@inlined
def lane(suit: int) -> np.uint64:
    """Return all places of a suit."""
    return _LANE_0 << uint64(LANE * suit)


@inlined
def suit_of(place: int) -> int:
    """Return the suit of a place, as place // 14 would."""
    return place * 37 >> 9


@inlined
def all_places(ends: np.uint64) -> np.uint64:
    """Return the places of all cards left."""
    return ends - _BASES


@inlined
def without(word: np.uint64, place: int) -> np.uint64:
    """Take one place out: what lies above it in its suit moves down."""
    here = ONE << uint64(place)
    suit = lane(suit_of(place))
    lower = (here - ONE) | ~suit
    return (word & lower) | ((word & ~lower & ~here) >> ONE)


@inlined
def raise_jacks(cards: np.uint64, ends: np.uint64, jacks: np.uint64) -> np.uint64:
    """Return the places of jacks moved to the tops of their runs.

    A run is cards of one hand and suit with none of the other hand between them. They are equally
    strong, so that the jack may as well be the highest. By adding, a bit climbs over a row of ones.
    """
    joined = ~(cards ^ (cards >> ONE)) & (all_places(ends) >> ONE)
    return (joined + jacks) & ~joined


@inlined
def suits_with(places: np.uint64) -> int:
    """Return the suits of which there are places, bit = suit."""
    suits = EMPTY
    for suit in range(NUM_SUITS):
        suits |= (ONE if places & lane(suit) != EMPTY else EMPTY) << uint64(suit)
    return int64(suits)


@inlined
def jack_code(jacks: np.uint64) -> np.uint64:
    """Return the jacks' places within their suits, 4 bits each, 14 for none."""
    code = EMPTY
    none = ONE << uint64(LANE)
    for suit in range(NUM_SUITS):
        here = (jacks >> uint64(LANE * suit)) & _LANE_0 | none
        code |= uint64(lowest(here)) << uint64(4 * suit)
    return code


@inlined
def choices(own: np.uint64, jacks: np.uint64) -> np.uint64:
    """Return one card of each run of a hand, and each jack: all that it is worth trying.

    Args:
        own: places of the cards in question.
        jacks: places of all jacks, raised.
    """
    tops = own & ~(own >> ONE)
    # Under a jack, the best of its run that is none.
    return tops | (own & ((own & jacks) >> ONE))


@kernel
def choice_for(place: int, own: np.uint64, jacks: np.uint64, is_jack: bool) -> int:
    """Return which of `choices` stands for a card.

    Args:
        place: the card's.
        own: places of the hand that holds it.
        jacks: places of all jacks, raised.
        is_jack: whether it is one.
    """
    top = place
    while own >> uint64(top + 1) & ONE != EMPTY:
        top += 1
    return top - 1 if jacks >> uint64(top) & ONE != EMPTY and not is_jack else top


@inlined
def place_of(card: int, both: np.uint64) -> int:
    """Return the place of a card among those left of both hands."""
    suit = card // NUM_RANKS
    return LANE * suit + count(both & suit_cards(suit) & (bit(card) - ONE))


@kernel
def read_position(rules: np.record, state: np.record, node: np.record) -> int:
    """Write a table as a position before the lead of its current trick.

    Args:
        rules: one `RULES` record of a game of two.
        state: one `STATE` record in the phase PLAYS.
        node: one `NODE` record; `cards`, `ends`, `jacks` and `points` are written.

    Returns:
        the place that stands for the card that has been led, or NO_CARD.
    """
    turn = int64(state.turn)
    led = int64(state.table[1 - turn])
    leader = turn if led == NO_CARD else 1 - turn
    mine = state.hand[leader]
    if led != NO_CARD:
        mine |= bit(led)
    both = mine | state.hand[1 - leader]
    cards = EMPTY
    ends = EMPTY
    jacks = EMPTY
    penalties = 0
    for suit in range(NUM_SUITS):
        place = LANE * suit
        for card in range(NUM_RANKS * suit, NUM_RANKS * (suit + 1)):
            if both & bit(card) == EMPTY:
                continue
            if mine & bit(card) != EMPTY:
                cards |= ONE << uint64(place)
            if rules.jacks & bit(card) != EMPTY:
                jacks |= ONE << uint64(place)
                penalties += int64(rules.penalty_of[1 << suit])
            place += 1
        ends |= ONE << uint64(place)
    node.cards = cards | ends
    node.ends = ends
    node.jacks = raise_jacks(cards | ends, ends, jacks)
    node.points = count(mine) - penalties
    if led == NO_CARD:
        return NO_CARD
    is_jack = rules.jacks & bit(led) != EMPTY
    return choice_for(place_of(led, both), cards, node.jacks, is_jack)

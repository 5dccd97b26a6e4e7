"""What the others may hold, as chances: the counting that players by sense do.

Unseen cards are taken as dealt at random among the hands that may hold them, shown voids and the
undealt cards considered. Nothing here looks beyond a VIEW.
"""

from __future__ import annotations

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.cards import EMPTY, NUM_RANKS, NUM_SUITS, bit, count, suit_cards
from valety_env.engine import penalty, shown_card_is_held


@kernel
def jack_cost(rules: np.record, card: int) -> float:
    """Return the penalty of a card: 0 unless it is a jack of the pack."""
    if rules.jacks & bit(card) == EMPTY:
        return 0.0
    return float(penalty(rules, 1 << (card // NUM_RANKS)))


@kernel
def shown_elsewhere(rules: np.record, view: np.record) -> int:
    """Return the shown trump card while another seat, the dealer, holds it (P3), else -1."""
    if shown_card_is_held(rules, view) and view.dealer != view.seat:
        return int64(view.turned)
    return -1


@kernel
def unknown_size(rules: np.record, view: np.record, seat: int) -> int:
    """Return how many cards of another seat's hand are unknown."""
    size = int64(view.hand_sizes[seat])
    return size - 1 if seat == view.dealer and shown_card_is_held(rules, view) else size


@kernel
def _room(unseen: np.uint64, voids: int) -> int:
    """Return how many of the unseen cards are not of the suits in `voids`."""
    if voids == 0:
        return count(unseen)
    allowed = unseen
    for suit in range(NUM_SUITS):
        if voids >> suit & 1 != 0:
            allowed &= ~suit_cards(suit)
    return count(allowed)


@kernel
def claim_of(rules: np.record, view: np.record, unseen: np.uint64, seat: int) -> float:
    """Return how much of each card that it may hold another seat would get if it were alone."""
    size = unknown_size(rules, view, seat)
    return size / max(1, _room(unseen, int64(view.voids[seat])))


@kernel
def claims_of(
    rules: np.record, view: np.record, unseen: np.uint64
) -> tuple[float, float, float, float]:
    """Return the sum of all claims to an unseen card, by suit, that of the undealt cards included.

    With two players, or as long as nobody has shown a void, claim ÷ sum is the exact chance that a
    seat holds the card; otherwise it is near it.
    """
    spades = 0.0
    clubs = 0.0
    diamonds = 0.0
    hearts = 0.0
    dealt = 0
    void_everywhere = (1 << NUM_SUITS) - 1
    for seat in range(int64(rules.num_players)):
        if seat == view.seat:
            continue
        claim = claim_of(rules, view, unseen, seat)
        voids = int64(view.voids[seat])
        void_everywhere &= voids
        dealt += unknown_size(rules, view, seat)
        spades += 0.0 if voids & 1 != 0 else claim
        clubs += 0.0 if voids & 2 != 0 else claim
        diamonds += 0.0 if voids & 4 != 0 else claim
        hearts += 0.0 if voids & 8 != 0 else claim
    # Of the undealt cards those are certain that no seat may hold; the rest are like a hand.
    room = _room(unseen, void_everywhere)
    undealt = (room - dealt) / max(1, room)
    return spades + undealt, clubs + undealt, diamonds + undealt, hearts + undealt


@kernel
def holds(
    view: np.record,
    claims: tuple[float, float, float, float],
    claim: float,
    seat: int,
    suit: int,
) -> float:
    """Return the chance that another seat, of `claim_of` claim, holds a given unseen card."""
    if claim <= 0.0 or int64(view.voids[seat]) >> suit & 1 != 0:
        return 0.0
    return claim / claims[suit]


@kernel
def lacks(cards: int, size: int, chance: float) -> float:
    """Return the chance that hands hold none of some unseen cards of one suit.

    Args:
        cards: how many cards.
        size: how many unknown cards the hands have.
        chance: that they hold a given one of the cards.

    Returns:
        0..1, by the hypergeometric distribution over as many cards as give that chance.
    """
    if chance <= 0.0 or size == 0:
        return 1.0
    pool = size / chance
    # One division at the end instead of one a card: this is most of the work of a decision.
    ways = 1.0
    of_all = 1.0
    for i in range(cards):
        left = pool - size - i
        if left < 1e-6:
            return 0.0
        ways *= left
        of_all *= pool - i
    return ways / of_all


@kernel
def falls(others: int, rounds: int, view: np.record, unseen: np.uint64) -> float:
    """Return the chance that the holder of an outside card has to play it within some rounds.

    Args:
        others: how many further cards of the suit are outside.
        rounds: how often the suit is led.
        view: one `VIEW` record, of a deal not yet begun.
        unseen: the cards outside.

    Returns:
        the chance that he holds fewer than `rounds` of the others.
    """
    if rounds == 0:
        return 0.0
    seat = 1 if view.seat == 0 else 0
    size = int64(view.hand_sizes[seat]) - 1
    pool = count(unseen) - 1
    total = 0.0
    for held in range(min(rounds, others + 1)):
        total += _hypergeometric(held, others, size, pool)
    return min(1.0, total)


@kernel
def _hypergeometric(held: int, marked: int, size: int, pool: int) -> float:
    """Return the chance of exactly `held` of `marked` cards in a hand of `size` out of `pool`."""
    if held > size or marked - held > pool - size:
        return 0.0
    chance = 1.0
    for i in range(marked):
        if i < held:
            chance *= (size - i) * (marked - i) / ((pool - i) * (i + 1.0))
        else:
            chance *= (pool - size - (i - held)) / (pool - i)
    return chance

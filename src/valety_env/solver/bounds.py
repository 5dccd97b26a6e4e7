"""What can be said of a position without searching it: tricks nobody can be kept from.

Who has the lead and the best cards of a suit cashes them, as quick tricks are counted in bridge
(Chang, "Building a Fast Double-Dummy Bridge Solver", 1996). But the other throws his jacks on
tricks that he loses anyway: what sure tricks are worth is a question of who holds which jacks.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy import uint64

from valety_env._jit import inlined, int64
from valety_env.cards import EMPTY, NO_SUIT, NUM_SUITS
from valety_env.solver.positions import LANE, MOST_CARDS, lane, suits_with

PROVEN, REFUTED, OPEN = 1, 0, -1


@cache
def floors(costs: tuple[int, ...]) -> np.ndarray:
    """Return the fewest points that come with some tricks, however badly the jacks fall.

    Args:
        costs: `Rules.jack_penalties`.

    Returns:
        int16 (16, 16, 27) by own jacks, the other's jacks (bit = suit) and tricks: the fewest
        points of who takes at least so many tricks, each with a card that is no jack. On any trick
        the other can throw a jack; an own jack falls only on a trick that it takes itself, and
        that is one more.
    """
    found = np.zeros((1 << NUM_SUITS, 1 << NUM_SUITS, MOST_CARDS + 1), np.int16)
    for own in range(1 << NUM_SUITS):
        for other in range(1 << NUM_SUITS):
            if own & other:
                continue
            kept = [costs[suit] for suit in range(NUM_SUITS) if own >> suit & 1]
            thrown = sorted((costs[s] for s in range(NUM_SUITS) if other >> s & 1), reverse=True)
            for sure in range(MOST_CARDS + 1):
                found[own, other, sure] = min(
                    tricks - sum(taken) - sum(thrown[:tricks])
                    for number in range(len(kept) + 1)
                    for taken in combinations(kept, number)
                    # More tricks than these only add points.
                    for tricks in range(sure + number, sure + number + NUM_SUITS + 1)
                )
    return found


@cache
def leasts(costs: tuple[int, ...]) -> np.ndarray:
    """Return the fewest points that come with some tricks, whatever cards took them.

    Args:
        costs: `Rules.jack_penalties`.

    Returns:
        int16 (16, 27) by the jacks left (bit = suit) and tricks: the fewest points of who takes at
        least so many tricks. Two jacks can fall on each.
    """
    found = np.zeros((1 << NUM_SUITS, MOST_CARDS + 1), np.int16)
    for jacks in range(1 << NUM_SUITS):
        thrown = sorted((costs[s] for s in range(NUM_SUITS) if jacks >> s & 1), reverse=True)
        for tricks in range(MOST_CARDS + 1):
            found[jacks, tricks] = min(
                more - sum(thrown[: 2 * more]) for more in range(tricks, tricks + NUM_SUITS + 1)
            )
    return found


@cache
def suit_facts() -> np.ndarray:
    """Return what the search asks of a suit, by its 14 bits, 4 bits each.

    How many cards the leader has, and the follower; how many of the highest are the leader's, and
    the follower's.
    """
    facts = np.zeros(1 << LANE, np.uint16)
    for bits in range(1, 1 << LANE):
        length = bits.bit_length() - 1
        own = bits ^ 1 << length
        other = own ^ (1 << length) - 1
        top, other_top = length - other.bit_length(), length - own.bit_length()
        facts[bits] = own.bit_count() | other.bit_count() << 4 | top << 8 | other_top << 12
    return facts


@inlined
def facts_of(facts: np.ndarray, cards: np.uint64, suit: int) -> tuple[int, int, int, int]:
    """Return the cards of the leader, of the follower, and the highest of each, in a suit."""
    found = int64(facts[int64((cards >> uint64(LANE * suit)) & uint64((1 << LANE) - 1))])
    return found & 15, found >> 4 & 15, found >> 8 & 15, found >> 12


@inlined
def _has_top(jacks: np.uint64, ends: np.uint64, suit: int, top: int) -> bool:
    """Return whether there is a jack among the `top` highest places of a suit."""
    end = ends & lane(suit)
    return jacks & (end - (end >> uint64(top))) != EMPTY


@inlined
def judge(deal: np.record, facts: np.ndarray, node: np.record, left: int) -> int:
    """Return whether the leader is sure to get the points asked for, or sure not to, or OPEN.

    Args:
        deal: one `DEAL` record.
        facts: `suit_facts()`.
        node: one `NODE` record.
        left: tricks left, at least 1.
    """
    trump = int64(deal.trump)
    cards = node.cards
    ends = node.ends
    own_jacks = node.jacks & (cards ^ ends)
    # Tricks that the leader can cash at once, and those that the follower could if he had the lead,
    # each as a number and how many jacks may be among their cards; whether the other's trumps are
    # drawn by then; and the leader's cards that can only lose to the follower's highest.
    sure = jacks = his = losers = 0
    drawn = his_drawn = True
    his_trumps = 0
    takes_all = True
    if trump != NO_SUIT:
        own, other, top, other_top = facts_of(facts, cards, trump)
        drawn = top >= other and (top > 0 or other == 0)
        sure = own if top >= other else top
        if own_jacks & lane(trump) != EMPTY and (
            top >= other or _has_top(own_jacks, ends, trump, top)
        ):
            jacks = 1
        his_drawn = other_top >= own and (other_top > 0 or own == 0)
        his = other if other_top >= own else other_top
        his_trumps = other_top
        takes_all = other == 0
        losers = own if other_top > 0 else 0
    for suit in range(NUM_SUITS):
        if suit == trump:
            continue
        own, other, top, other_top = facts_of(facts, cards, suit)
        has_jack = own_jacks & lane(suit) != EMPTY
        if drawn:
            sure += own if top >= other else top
            jacks += has_jack and (top >= other or _has_top(own_jacks, ends, suit, top))
        else:
            sure += min(top, other)
            jacks += has_jack and top <= other and _has_top(own_jacks, ends, suit, top)
        if his_drawn:
            his += other if other_top >= own else other_top
        else:
            his += min(other_top, own)
        if other_top > 0:
            losers += own
        takes_all &= top == own or other == 0
    need = int64(node.need)
    points = int64(node.points)
    if left == 1:
        gets = points if sure == 1 else 0
        return PROVEN if gets >= need else REFUTED
    if sure >= left:
        # All of them; but to take fewer may be worth more, where jacks are among them.
        if points >= need:
            return PROVEN
        if takes_all:
            return REFUTED
    mine = suits_with(own_jacks)
    theirs = suits_with(node.jacks & ~own_jacks)
    if int64(deal.floor[mine, theirs, sure - jacks]) >= need:
        return PROVEN
    # His highest trumps take tricks whatever happens. And the leader must lead a loser at last, or
    # has nothing else: then the follower cashes his.
    takes = max(his_trumps, min(his, losers))
    if points - int64(deal.least[mine | theirs, takes]) < need:
        return REFUTED
    return OPEN

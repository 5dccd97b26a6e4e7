"""What the others may hold, as chances: the counting that players by sense do.

Unseen cards are taken as dealt at random among the hands that may hold them, shown voids and the
undealt cards considered. Nothing here looks beyond a VIEW.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64

from valety_env._intrinsics import local_record
from valety_env._jit import inlined, int64, kernel
from valety_env.cards import EMPTY, NUM_RANKS, NUM_SUITS, bit, count, suit_cards
from valety_env.engine import penalty, shown_card_is_held, suits_of_jacks
from valety_env.rules import MAX_PLAYERS
from valety_env.view import unseen_cards

# A hand is one of the other seats', or at this place all of theirs together.
TOGETHER = MAX_PLAYERS
# A hand's table of chances to hold none of 0, 1, …, 13 given cards.
_TABLE = NUM_RANKS + 1

# What a seat can say of the others' cards: by suit, by hand, by hand and suit; tables by hand.
ODDS = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("unseen", np.uint64),  # the cards whose place is unknown
                ("jacks", np.float64, (NUM_SUITS,)),  # the penalty of each suit's unseen jack
                ("shown", np.int64),  # the shown trump card while the dealer, another, holds it
                ("sizes", np.int64, (MAX_PLAYERS,)),  # how many cards of a hand are unknown
                ("claims", np.float64, (NUM_SUITS,)),  # of all hands and the undealt cards
                ("chance", np.float64, (MAX_PLAYERS * NUM_SUITS,)),  # that it holds a given card
                ("table_size", np.int64, (MAX_PLAYERS + 1,)),  # for which size a table was made
                ("table_chance", np.float64, (MAX_PLAYERS + 1,)),  # and for which chance
                ("lacks", np.float64, ((MAX_PLAYERS + 1) * _TABLE,)),
            ],
            align=True,
        ),
    )
)
new_odds = local_record(ODDS)


@inlined
def penalty_of_cards(rules: np.record, cards: np.uint64) -> float:
    """Return the penalties of the jacks among some cards, together."""
    return float(penalty(rules, suits_of_jacks(rules, cards & rules.jacks)))


@inlined
def shown_elsewhere(rules: np.record, view: np.record) -> int:
    """Return the shown trump card while another seat, the dealer, holds it (P3), else -1."""
    if shown_card_is_held(rules, view) and view.dealer != view.seat:
        return int64(view.turned)
    return -1


@inlined
def unknown_size(view: np.record, seat: int, shown: int) -> int:
    """Return how many cards of another seat's hand are unknown; `shown` as in ODDS."""
    size = int64(view.hand_sizes[seat])
    return size - 1 if shown >= 0 and seat == view.dealer else size


@inlined
def _room(unseen: np.uint64, voids: int) -> int:
    """Return how many of the unseen cards are not of the suits in `voids`."""
    excluded = EMPTY
    for suit in range(NUM_SUITS):
        excluded |= suit_cards(suit) if voids >> suit & 1 != 0 else EMPTY
    return count(unseen & ~excluded)


@kernel
def weigh_odds(rules: np.record, view: np.record, odds: np.record) -> None:
    """Write what a seat can say of the others' cards into `odds`, without any table yet.

    A hand's claim is how much of each card that it may hold it would get if it were alone; its
    chance is its claim ÷ all claims to cards of the suit, that of the undealt cards included. With
    two players, or as long as nobody has shown a void, that is exact; otherwise it is near it.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record.
        odds: one `ODDS` record, overwritten.
    """
    players = int64(rules.num_players)
    unseen = unseen_cards(rules, view)
    shown = shown_elsewhere(rules, view)
    odds.unseen = unseen
    odds.shown = shown
    for suit in range(NUM_SUITS):
        jack = bit(NUM_RANKS * suit + int64(rules.jack_rank))
        odds.jacks[suit] = float(penalty(rules, 1 << suit)) if unseen & jack != EMPTY else 0.0
        odds.claims[suit] = 0.0
    odds.table_size[TOGETHER] = -1
    dealt = 0
    void_everywhere = (1 << NUM_SUITS) - 1
    for seat in range(players):
        odds.table_size[seat] = -1
        size = unknown_size(view, seat, shown) if seat != view.seat else 0
        voids = int64(view.voids[seat])
        claim = size / max(1, _room(unseen, voids))
        odds.sizes[seat] = size
        dealt += size
        void_everywhere &= voids if seat != view.seat else void_everywhere
        for suit in range(NUM_SUITS):
            claimed = claim if voids >> suit & 1 == 0 else 0.0
            odds.chance[NUM_SUITS * seat + suit] = claimed
            odds.claims[suit] += claimed
    # Of the undealt cards those are certain that no seat may hold; the rest are like a hand.
    room = _room(unseen, void_everywhere)
    undealt = (room - dealt) / max(1, room)
    for suit in range(NUM_SUITS):
        odds.claims[suit] += undealt
    for seat in range(players):
        for suit in range(NUM_SUITS):
            # Where nobody claims anything no hand has a chance.
            claims = odds.claims[suit] if odds.claims[suit] > 0.0 else 1.0
            odds.chance[NUM_SUITS * seat + suit] /= claims


@inlined
def chance_of(odds: np.record, seat: int, suit: int) -> float:
    """Return the chance that another seat holds a given unseen card of a suit."""
    # Unsigned: a number that could be negative would be checked for counting from the end.
    return odds.chance[uint64(NUM_SUITS * seat + suit)]


@inlined
def lacks(odds: np.record, hand: int, cards: int) -> float:
    """Return the chance that a hand holds none of so many cards, by the table `prepare` made."""
    return odds.lacks[uint64(_TABLE * hand + cards)]


@inlined
def prepare(odds: np.record, hand: int, size: int, chance: float) -> None:
    """Have the table of a hand's chances to hold none of some unseen cards of one suit.

    A table that is there already stays: with two players all suits not known void share one.

    Args:
        odds: one `ODDS` record.
        hand: a seat or TOGETHER.
        size: how many unknown cards it has.
        chance: that it holds a given one of the cards.
    """
    if odds.table_size[hand] != size or odds.table_chance[hand] != chance:
        _make_table(odds, hand, size, chance)


@kernel
def _make_table(odds: np.record, hand: int, size: int, chance: float) -> None:
    """Make a hand's table, as `prepare`.

    The chances are 0..1, by the hypergeometric distribution over as many cards as give `chance`.
    """
    odds.table_size[hand] = size
    odds.table_chance[hand] = chance
    at = _TABLE * hand
    if chance <= 0.0 or size == 0:
        for cards in range(_TABLE):
            odds.lacks[at + cards] = 1.0
        return
    pool = size / chance
    ways = 1.0
    of_all = 1.0
    for cards in range(_TABLE):
        # Zero from there on where not so many cards are left for the undealt and other hands.
        odds.lacks[at + cards] = ways / of_all if pool - size - (cards - 1) >= 1e-6 else 0.0
        ways *= pool - size - cards
        of_all *= pool - cards


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

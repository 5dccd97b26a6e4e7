"""In which order cards are tried: the ones most likely to decide first.

A position in which the leader gets what is asked is done with the first lead that gets it, so good
guesses are most of the speed. A lead's worth is a weighted sum of what can be seen of it, a reply's
too. The weights are fitted to make the searched positions few (tools/fit_solver.py); they change
how long a search takes, never what it finds.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64

from valety_env._jit import inlined, int64
from valety_env.cards import EMPTY, NO_SUIT, NUM_SUITS, ONE, count, lowest
from valety_env.solver.bounds import facts_of
from valety_env.solver.positions import LANE, all_places, choices, lane, suit_of

# What a lead is judged by. `JACK` and the like are counted in penalty points.
(
    ABOVE,  # higher cards that the follower has in the suit
    OTHERS,  # cards that he has in it
    HEIGHT,  # the card's place in the suit, as a part of its length
    JACK,  # the card is a jack
    JACK_KEPT,  # it is another of a suit with an own jack
    # It takes the trick whatever is played.
    WINS_TOP,  # own highest cards in the suit
    WINS_OTHERS_JACK,  # the follower's jack in the suit
    WINS_LEFT,  # tricks left
    WINS_LAST,  # no other card in the suit
    WINS_TRUMP_LEFT,  # tricks left, and it is a trump
    WINS_DRAWING_TRUMP,  # a trump, and the follower has one
    WINS_ALL,  # own highest cards as many as the follower has cards
    WINS_FREELY,  # the follower has none of the suit, and can throw anything
    WINS_TRUMP_FREELY,  # the same, and it is a trump
    # It may lose.
    LOSES,
    LOSES_TO_TRUMP,  # the follower has none of the suit, but trumps
    LOSES_OTHERS_TOP,  # the follower's highest cards in the suit
    LOSES_OTHERS_JACK,  # his jack in it
    LOSES_JACKS_HELD,  # all own jacks
    LOSES_JACK_SURELY,  # the card is a jack that all his cards of the suit beat
    LOSES_OTHERS_JACK_SURELY,  # they beat the card, and one of them is his jack
    LOSES_SURPLUS,  # own cards in the suit less his
    LOSES_WITH_TRUMPS,  # the leader has trumps
    # What a reply is judged by: one that takes the trick,
    TAKES,
    TAKES_JACKS,  # jacks in the trick
    TAKES_HEIGHT,  # the card's place in its suit
    # and one that does not.
    THROWS_JACK,  # the card is a jack
    LEAVES_JACK,  # a jack was led
    NUM_WEIGHTS,
) = range(29)

# Only their ratios matter.
WEIGHTS = np.array(
    [
        *(-30, -163, 232, -148, -41),
        *(155, -189, 6, 264, -19, 294, 32, -2758, -1763),
        *(273, -1266, 115, 20, -25, 142, -13, 16, -61),
        *(47, 17, 1),
        *(18, 41),
    ],
    np.int32,
)
_FIRST = 1 << 30


@inlined
def rank_leads(
    deal: np.record,
    facts: np.ndarray,
    node: np.record,
    left: int,
    hint: int,
    level: np.record,
) -> None:
    """Write the leads worth trying, and how much each is.

    Args:
        deal: one `DEAL` record.
        facts: `suit_facts()`.
        node: one `NODE` record.
        left: tricks left.
        hint: the lead that was right before, or a number that is no place.
        level: one `LEVEL` record; `leads`, `worth` and `num_leads` are written.
    """
    weights = deal.weights
    trump = int64(deal.trump)
    mine = node.cards ^ node.ends
    theirs = mine ^ all_places(node.ends)
    trumps = other_trumps = 0
    if trump != NO_SUIT:
        trumps, other_trumps, _, _ = facts_of(facts, node.cards, trump)
    jacks_held = 0
    for suit in range(NUM_SUITS):
        if node.jacks & mine & lane(suit) != EMPTY:
            jacks_held += int64(deal.penalty[suit])
    number = 0
    for suit in range(NUM_SUITS):
        leads = choices(mine & lane(suit), node.jacks)
        if leads == EMPTY:
            continue
        own, other, top, other_top = facts_of(facts, node.cards, suit)
        theirs_here = theirs & lane(suit)
        jack = node.jacks & lane(suit)
        cost = int64(deal.penalty[suit])
        own_jack = cost if jack & mine != EMPTY else 0
        other_jack = cost if jack & theirs != EMPTY else 0
        is_trump = suit == trump
        is_trumped = not is_trump and other == 0 and other_trumps > 0
        wins = weights[WINS_TOP] * top + weights[WINS_OTHERS_JACK] * other_jack
        wins += weights[WINS_LEFT] * left
        if own == 1:
            wins += weights[WINS_LAST]
        if is_trump:
            wins += weights[WINS_TRUMP_LEFT] * left
        if other == 0:
            wins += weights[WINS_TRUMP_FREELY if is_trump else WINS_FREELY]
        else:
            if is_trump:
                wins += weights[WINS_DRAWING_TRUMP]
            if top >= other:
                wins += weights[WINS_ALL]
        loses = weights[LOSES_TO_TRUMP if is_trumped else LOSES]
        loses += weights[LOSES_OTHERS_TOP] * other_top + weights[LOSES_OTHERS_JACK] * other_jack
        loses += weights[LOSES_JACKS_HELD] * jacks_held + weights[LOSES_SURPLUS] * (own - other)
        if trumps > 0:
            loses += weights[LOSES_WITH_TRUMPS]
        while leads != EMPTY:
            place = lowest(leads)
            leads &= leads - ONE
            here = ONE << uint64(place)
            above = count(theirs_here & ~(here - ONE))
            is_jack = jack & here != EMPTY
            worth = weights[OTHERS] * other + weights[ABOVE] * above
            worth += weights[HEIGHT] * (place - LANE * suit) // (own + other)
            worth += weights[JACK if is_jack else JACK_KEPT] * own_jack
            if above == 0 and not is_trumped:
                worth += wins
            else:
                worth += loses
                if above == other:
                    worth += weights[LOSES_OTHERS_JACK_SURELY] * other_jack
                    if is_jack:
                        worth += weights[LOSES_JACK_SURELY] * cost
            level.leads[number] = place
            level.worth[number] = _FIRST if place == hint else worth
            number += 1
    level.num_leads = number


@inlined
def reply_worth(deal: np.record, node: np.record, lead: int, reply: int, takes: bool) -> int:
    """Return how much a reply to a lead, both places, is worth trying, if it `takes` or not."""
    weights = deal.weights
    suit, led = suit_of(reply), suit_of(lead)
    thrown = left = 0
    if node.jacks & ONE << uint64(reply) != EMPTY:
        thrown = int64(deal.penalty[suit])
    if node.jacks & ONE << uint64(lead) != EMPTY:
        left = int64(deal.penalty[led])
    if takes:
        worth = weights[TAKES] - weights[TAKES_JACKS] * (thrown + left)
        return worth - weights[TAKES_HEIGHT] * (reply - LANE * suit)
    return weights[THROWS_JACK] * thrown + weights[LEAVES_JACK] * left

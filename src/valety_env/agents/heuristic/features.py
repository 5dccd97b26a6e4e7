"""What the heuristic asks of a card: the features that the weights multiply."""

from __future__ import annotations

import numpy as np

from valety_env._intrinsics import local_record, record_head
from valety_env._jit import inlined, int64, kernel
from valety_env.agents.chances import TOGETHER, chance_of, lacks, penalty_of_cards, prepare
from valety_env.agents.heuristic.weights import DISCARD, FOLLOW, IF_TRUMP, LEAD
from valety_env.cards import (
    EMPTY,
    NO_SUIT,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    bit,
    count,
    one_of,
    suit_cards,
)
from valety_env.engine import beats, penalty
from valety_env.rules import MAX_PLAYERS

# What the cards of a suit have in common when one of them is to be played; with a row for each seat
# that is yet to play in the trick, in their order.
SUIT = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("suit", np.int64),
                ("others", np.uint64),  # the unseen cards of the suit
                ("length", np.float64),  # how many the hand has
                ("jack", np.int64),
                ("jack_is_about", np.bool_),  # in the hand or unseen
                ("own_cost", np.float64),  # the jack's penalty if it is in the hand
                ("out_cost", np.float64),  # the penalty × chance that another holds it
                ("low_cards", np.float64),  # 1 + own cards below the jack
                ("other_jacks", np.float64),  # the penalties of the other jacks in the hand
                ("held", np.float64),  # the chance that any of them holds a given one
                ("together", np.int64),  # the hand whose table tells what all of them lack
                ("follows", np.bool_),  # whether the suit is led, or leads
                ("dumped", np.float64),  # penalties thrown on the trick for want of the suit led
                ("ducked", np.float64),  # the penalty of the jack led or following, if it is lower
                ("to_play", np.int64),  # how many seats are yet to play
                ("seat", np.int64, (MAX_PLAYERS,)),
                ("void", np.float64, (MAX_PLAYERS,)),  # the chance that it lacks the suit led
                ("discards", np.float64, (MAX_PLAYERS,)),  # the same, but of a shown card
                ("ruffs", np.float64, (MAX_PLAYERS,)),  # that it lacks it and trumps
                ("shows", np.uint8, (MAX_PLAYERS,)),  # whether its shown card is of the suit led
            ],
            align=True,
        ),
    )
)
new_suit = local_record(SUIT)

# The answers that the weights multiply, in the weights' order: by name, and as numbers.
_PLAIN_FEATURES = (
    "wins",
    "contested",
    "takes_jacks",
    "takes_own_jack",
    "takes_thrown_jacks",
    "takes_ducked_jack",
    "risks_other_jacks",
    "master",
    "master_early",
    "share_below",
    "share_below_length",
    "beaten_length",
    "above",
    "last",
)
_JACK_FEATURES = (
    "over_jack",
    "over_jack_length",
    "under_jack",
    "above_own_jack",
    "guards_jack",
    "guards_jack_below",
    "is_jack",
    "is_jack_length",
    "jack_low",
    "jack_beaten",
    "jack_below",
)
FEATURES = np.dtype(
    (np.record, np.dtype([(name, np.float64) for name in (*_PLAIN_FEATURES, *_JACK_FEATURES)]))
)
NUM_PLAIN = len(_PLAIN_FEATURES)
NUM_FEATURES = NUM_PLAIN + len(_JACK_FEATURES)
_NUMBERS = np.dtype((np.record, np.dtype([("of", np.float64, (NUM_FEATURES,))])))
new_features = local_record(FEATURES)
numbers_of = record_head(_NUMBERS)


@inlined
def situation(view: np.record, legal: np.uint64, suit: int) -> int:
    """Return which column of the weights, 0..5, judges a legal card of a suit."""
    column = LEAD
    if view.led != NO_SUIT:
        column = FOLLOW if legal & suit_cards(int64(view.led)) != EMPTY else DISCARD
    return column + IF_TRUMP if suit == view.trump else column


@inlined
def jacks_about(rules: np.record, view: np.record) -> tuple[float, float]:
    """Return the penalties lying in the current trick, and those of the seat's own jacks."""
    on_table = EMPTY
    for seat in range(int64(rules.num_players)):
        on_table |= one_of(int64(view.table[seat]))
    return penalty_of_cards(rules, on_table), penalty_of_cards(rules, view.hand)


@kernel
def weigh_suit(
    rules: np.record,
    view: np.record,
    odds: np.record,
    suit: int,
    in_hand: float,
    found: np.record,
) -> None:
    """Write what the cards of a suit have in common, if one of them is to be played.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act.
        odds: one `ODDS` record by `weigh_odds`; its tables of the suit are made.
        suit: 0..3.
        in_hand: the penalties of the seat's own jacks.
        found: one `SUIT` record, overwritten.
    """
    players = int64(rules.num_players)
    own = view.hand & suit_cards(suit)
    others = odds.unseen & suit_cards(suit)
    jack = suit * NUM_RANKS + int64(rules.jack_rank)

    # The other hands taken as one: can any of them beat a card when its suit is led later?
    size = 0
    held = 0.0
    for seat in range(players):
        chance = chance_of(odds, seat, suit)
        held += chance
        size += odds.sizes[seat] if chance > 0.0 else 0

    found.suit = suit
    found.others = others
    found.length = float(count(own))
    found.jack = jack
    found.jack_is_about = (own | others) & bit(jack) != EMPTY
    found.own_cost = float(penalty(rules, 1 << suit)) if own & rules.jacks != EMPTY else 0.0
    found.out_cost = odds.jacks[suit] * held
    found.low_cards = 1.0 + count(own & (bit(jack) - ONE))
    found.other_jacks = in_hand - found.own_cost
    found.held = held
    _weigh_trick(rules, view, odds, suit, found)
    # With two players the other hands are one.
    found.together = TOGETHER if players > 2 else 1 - int64(view.seat)
    prepare(odds, found.together, size, held)


@inlined
def _weigh_trick(
    rules: np.record, view: np.record, odds: np.record, suit: int, found: np.record
) -> None:
    """Write what the seats that are yet to play do if a card of a suit is played now."""
    players = int64(rules.num_players)
    trump = int64(view.trump)
    led = suit if view.led == NO_SUIT else int64(view.led)
    found.follows = suit == led
    found.to_play = 0
    found.dumped = 0.0
    found.ducked = 0.0
    if suit != led and suit != trump:
        return
    # The other suit that counts: what could ruff the lead, or what the trump ruffs.
    other = trump if suit == led else led
    others_of_it = count(odds.unseen & suit_cards(other)) if other != NO_SUIT else 0
    shown_suit = odds.shown // NUM_RANKS
    seat = int64(view.seat)
    for place in range(players):
        seat = seat + 1 if seat + 1 < players else 0
        if seat == view.seat or view.table[seat] >= 0:
            break
        size = odds.sizes[seat]
        void = 1.0
        if other != NO_SUIT:
            prepare(odds, seat, size, chance_of(odds, seat, other))
            void = lacks(odds, seat, others_of_it)
        ruffs = 0.0
        chance = chance_of(odds, seat, suit)
        prepare(odds, seat, size, chance)
        if suit == led:
            ruffs = 1.0 - void if suit != trump else 0.0
            void = lacks(odds, seat, count(found.others))
            found.ducked += chance * odds.jacks[suit]
        # Who is known to hold the suit led neither ruffs nor discards.
        shows = seat == view.dealer and shown_suit == led
        discards = 0.0 if shows else void
        found.seat[place] = seat
        found.shows[place] = shows
        found.void[place] = void
        found.discards[place] = discards
        found.ruffs[place] = discards * ruffs
        found.to_play = place + 1
        for thrown in range(NUM_SUITS):
            if thrown != led:
                found.dumped += discards * chance_of(odds, seat, thrown) * odds.jacks[thrown]


@inlined
def chances_to_win(
    view: np.record, odds: np.record, suit: np.record, card: int
) -> tuple[float, float]:
    """Return how likely a card of a suit that was weighed wins the current trick.

    Returns:
        the chance if all after it duck when they can, and the chance if they beat it when they can.
    """
    if view.led != NO_SUIT and not beats(card, int64(view.best_card), int64(view.trump)):
        return 0.0, 0.0
    above = count(suit.others & ~(bit(card) - ONE))
    beneath = count(suit.others) - above
    wins = 1.0
    contested = 1.0
    for place in range(suit.to_play):
        seat = suit.seat[place]
        higher = 1.0 - lacks(odds, seat, above)
        if suit.follows:
            wins *= 1.0 - max(0.0, lacks(odds, seat, beneath) - suit.void[place])
            if suit.shows[place] != 0 and odds.shown > card:
                higher = 1.0
            contested *= 1.0 - higher - suit.ruffs[place]
        else:
            contested *= 1.0 - suit.discards[place] * higher
    return wins, contested


@inlined
def judge(
    view: np.record,
    odds: np.record,
    suit: np.record,
    on_table: float,
    early: float,
    card: int,
    found: np.record,
) -> None:
    """Write the answers that the weights multiply.

    Chances take the unseen cards as dealt at random among the hands that may hold them. Penalties
    are in points.

    Args:
        view: one `VIEW` record of the seat to act.
        odds: one `ODDS` record by `weigh_odds`.
        suit: one `SUIT` record by `weigh_suit`, of the card's suit.
        on_table: the penalties lying in the current trick.
        early: the share of the deal's tricks still to come.
        card: the card to judge.
        found: one `FEATURES` record, overwritten; those of the jack are 0 unless it is about.
    """
    length = suit.length
    jack = suit.jack
    above = count(suit.others & ~(bit(card) - ONE))
    beneath = count(suit.others) - above
    own_cost = suit.own_cost if card == jack else 0.0
    guarded_cost = suit.own_cost if card != jack else 0.0
    wins, contested = chances_to_win(view, odds, suit, card)
    ducked = suit.ducked if card > jack else 0.0
    master = lacks(odds, suit.together, above)
    if odds.shown // NUM_RANKS == suit.suit and odds.shown > card:
        master = 0.0
    share_below = beneath / (above + beneath) if above + beneath > 0 else 1.0
    beats_cards = beneath * suit.held
    over_jack = suit.out_cost if card > jack else 0.0
    jack_guard = guarded_cost / suit.low_cards if card < jack else 0.0
    found.wins = wins
    found.contested = contested
    found.takes_jacks = on_table * wins
    found.takes_own_jack = own_cost * wins
    found.takes_thrown_jacks = suit.dumped * wins
    found.takes_ducked_jack = ducked * wins * length
    found.risks_other_jacks = suit.other_jacks * contested
    found.master = master
    found.master_early = master * early
    found.share_below = share_below
    found.share_below_length = share_below * length
    found.beaten_length = beats_cards * length
    found.above = above * suit.held
    found.last = 1.0 if length == 1.0 and suit.others != EMPTY else 0.0
    found.over_jack = over_jack
    found.over_jack_length = over_jack * length
    found.under_jack = suit.out_cost / suit.low_cards if card < jack else 0.0
    found.above_own_jack = guarded_cost if card > jack else 0.0
    found.guards_jack = jack_guard
    found.guards_jack_below = jack_guard * share_below
    found.is_jack = 1.0 if card == jack else 0.0
    found.is_jack_length = length if card == jack else 0.0
    found.jack_low = own_cost / suit.low_cards
    found.jack_beaten = own_cost * beats_cards
    found.jack_below = own_cost * share_below

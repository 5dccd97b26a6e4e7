"""Generals in the heuristic's eyes: whether to announce one, how to play it, how to stop it."""

from __future__ import annotations

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.agents.chances import falls, new_odds, shown_elsewhere, weigh_odds
from valety_env.agents.heuristic.features import chances_to_win, new_suit, weigh_suit
from valety_env.cards import (
    EMPTY,
    NO_SUIT,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    bit,
    count,
    highest,
    lowest,
    one_of,
    suit_cards,
)
from valety_env.engine import beats
from valety_env.view import unseen_cards

# A general is announced from this chance of making it on.
ENOUGH_FOR_GENERAL = 0.4


@kernel
def has_taken_all(rules: np.record, view: np.record, seat: int) -> bool:
    """Return whether a seat has won every trick so far."""
    return int64(view.tricks[seat]) == int64(view.num_plays) // int64(rules.num_players)


@kernel
def general_chance(rules: np.record, view: np.record) -> float:
    """Return roughly the chance to take all tricks with the hand as dealt.

    A suit is played from the top. A card wins if each higher one outside lies in a hand so short in
    the suit that it has fallen by then. Without the lead the first trick must be won as well.
    """
    unseen = unseen_cards(rules, view)
    outside = unseen | one_of(shown_elsewhere(rules, view))
    made = 1.0
    first = 0.0
    for suit in range(NUM_SUITS):
        own = view.hand & suit_cards(suit)
        others = outside & suit_cards(suit)
        runs = 1.0
        led = 0
        left = own
        while left != EMPTY:
            card = highest(left)
            left &= ~bit(card)
            higher = count(others & ~(bit(card) - ONE))
            if higher > 0:
                runs = min(runs, falls(count(others) - 1, led, view, unseen) ** higher)
            led += 1
        made *= runs
        if suit == view.trump and others != EMPTY:
            # All trumps must be drawn, or a plain card could be ruffed.
            made *= falls(count(others) - 1, led, view, unseen)
        if own != EMPTY and others & ~(bit(highest(own)) - ONE) == EMPTY:
            first += count(others)
    if rules.general_leads == 0 and view.leader != view.seat:
        made *= first / max(1, count(unseen))
    return made


@kernel
def surest_card(rules: np.record, view: np.record, cards: np.uint64, is_general: bool) -> int:
    """Return of some cards the one most likely to win the trick, though the others beat it.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act.
        cards: the cards to choose from, never empty.
        is_general: whether the seat is the general, who of equal cards leads that of the longest
            suit, and otherwise plays the lowest; whoever stops him plays the highest.

    Returns:
        one of `cards`.
    """
    odds = new_odds()
    suit = new_suit()
    weigh_odds(rules, view, odds)
    by_length = 0.001 if is_general and view.led == NO_SUIT else 0.0
    best = lowest(cards)
    best_worth = -np.inf
    while cards != EMPTY:
        card = lowest(cards)
        cards &= cards - ONE
        weigh_suit(rules, view, odds, card // NUM_RANKS, 0.0, suit)
        worth = chances_to_win(view, odds, suit, card)[1] + by_length * suit.length
        if worth > best_worth or (worth == best_worth and not is_general):
            best, best_worth = card, worth
    return best


@kernel
def stopping_cards(rules: np.record, view: np.record, legal: np.uint64) -> np.uint64:
    """Return those of the legal cards that best serve to take a trick from the general.

    One trick lost costs him the charge, so whoever can beats him; who can't keeps what may do so
    later: the highest cards, and beside each as many of its suit as are outside and higher.
    """
    general = int64(view.general)
    trump = int64(view.trump)
    unseen = unseen_cards(rules, view)
    waits = view.table[general] < 0
    if view.led != NO_SUIT and not waits and view.best_seat != general:
        return legal
    winning = EMPTY
    left = legal
    while left != EMPTY:
        card = lowest(left)
        left &= left - ONE
        if view.led == NO_SUIT or beats(card, int64(view.best_card), trump):
            winning |= bit(card)
    if winning != EMPTY:
        if not waits:
            return winning
        # The general is still to play: what he is least likely to beat.
        return bit(surest_card(rules, view, winning, False))
    kept = EMPTY
    least = np.inf
    left = legal
    while left != EMPTY:
        card = lowest(left)
        left &= left - ONE
        loss = _stopper(view.hand, unseen, card // NUM_RANKS)
        loss -= _stopper(view.hand & ~bit(card), unseen, card // NUM_RANKS)
        if loss < least - 1e-9:
            least = loss
            kept = EMPTY
        if loss <= least + 1e-9:
            kept |= bit(card)
    return kept


@kernel
def _stopper(hand: np.uint64, unseen: np.uint64, suit: int) -> float:
    """Return how well a hand stops a suit that another runs from the top, 0..1."""
    own = hand & suit_cards(suit)
    if own == EMPTY:
        return 0.0
    outside = unseen & suit_cards(suit)
    higher = count(outside & ~(bit(highest(own)) - ONE))
    if outside == EMPTY or count(own) <= higher:
        return 0.0
    return 1.0 / (1.0 + higher)

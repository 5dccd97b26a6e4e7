"""The heuristic's choice: the kernels that answer a batch, a seat's decision, its best card."""

from __future__ import annotations

import numpy as np

from valety_env._jit import inlined, int64, kernel
from valety_env.agents.chances import new_odds, weigh_odds
from valety_env.agents.choosing import chance_to_draw
from valety_env.agents.heuristic.features import (
    NUM_FEATURES,
    NUM_PLAIN,
    jacks_about,
    judge,
    new_features,
    new_suit,
    numbers_of,
    situation,
    weigh_suit,
)
from valety_env.agents.heuristic.generals import (
    ENOUGH_FOR_GENERAL,
    general_chance,
    has_taken_all,
    stopping_cards,
    surest_card,
)
from valety_env.agents.heuristic.weights import WEIGHTS
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    PASS,
    bit,
    count,
    lowest,
    one_of,
    suit_cards,
)
from valety_env.engine import CALLS, NOBODY


@inlined
def best_card(rules: np.record, view: np.record, legal: np.uint64, weights: np.ndarray) -> int:
    """Return the card of a set with the greatest weighted sum of features, of equals the lowest.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act.
        legal: the cards to choose from, never empty.
        weights: float64 (6, 25): by situation, for the features.

    Returns:
        one of `legal`.
    """
    if legal & (legal - ONE) == EMPTY:
        return lowest(legal)
    odds = new_odds()
    suit = new_suit()
    features = new_features()
    weigh_odds(rules, view, odds)
    on_table, in_hand = jacks_about(rules, view)
    early = count(view.hand) / float(int64(rules.hand_size))
    # Neighbours with nothing between them that matters are worth the same: one stands for all.
    matters = odds.unseen | rules.jacks | one_of(int64(view.best_card)) | one_of(int64(view.turned))
    best = lowest(legal)
    best_worth = -np.inf
    for number in range(NUM_SUITS):
        left = legal & suit_cards(number)
        if left == EMPTY:
            continue
        weigh_suit(rules, view, odds, number, in_hand, suit)
        row = weights[situation(view, legal, number)]
        while left != EMPTY:
            card = lowest(left)
            bound = (matters | bit(NUM_RANKS * (number + 1))) & ~(bit(card) - ONE)
            left &= ~(bit(card) | (bit(lowest(bound)) - ONE))
            judge(view, odds, suit, on_table, early, card, features)
            worth = _weighted_sum(suit, features, row)
            if worth > best_worth:
                best, best_worth = card, worth
    return best


@inlined
def _weighted_sum(suit: np.record, features: np.record, row: np.ndarray) -> float:
    """Return what a card is worth; where the jack of its suit is gone its features are 0."""
    numbers = numbers_of(features)
    worth = 0.0
    for i in range(NUM_PLAIN):
        worth += row[i] * numbers.of[i]
    if suit.jack_is_about:
        for i in range(NUM_PLAIN, NUM_FEATURES):
            worth += row[i] * numbers.of[i]
    return worth


@kernel
def weigh_cards(
    rules: np.record, view: np.record, legal: np.uint64, weights: np.ndarray, worths: np.ndarray
) -> None:
    """Write the weighted sum of features of every card of a set.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act.
        legal: the cards.
        weights: as in `best_card`, which looks for the greatest.
        worths: float64 (52,); entries of other cards are left as they are.
    """
    odds = new_odds()
    suit = new_suit()
    features = new_features()
    weigh_odds(rules, view, odds)
    on_table, in_hand = jacks_about(rules, view)
    early = count(view.hand) / float(int64(rules.hand_size))
    for number in range(NUM_SUITS):
        left = legal & suit_cards(number)
        if left == EMPTY:
            continue
        weigh_suit(rules, view, odds, number, in_hand, suit)
        row = weights[situation(view, legal, number)]
        while left != EMPTY:
            card = lowest(left)
            left &= left - ONE
            judge(view, odds, suit, on_table, early, card, features)
            worths[card] = _weighted_sum(suit, features, row)


# In points: how much less a card may be worth and still be played now and then. With it the plays
# of `pimc` are likeliest, a tenth of them taken to be at random (tools/fit_model.py).
TEMPERATURE = 0.25


@kernel
def card_chances(
    rules: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    cards: np.ndarray,
    worths: np.ndarray,
    chances: np.ndarray,
) -> None:
    """Write how likely a player is to play given cards who thinks as the heuristic does.

    Chances are proportional to exp(worth / TEMPERATURE).

    Args:
        rules: `RULES` (1,), without generals.
        views: `VIEW` (N,).
        legal: uint64 (N,).
        cards: int64 (N,), one of `legal` each.
        worths: float64 (52,), scratch.
        chances: float64 (N,), overwritten.
    """
    weights = WEIGHTS[int64(rules[0].scoring)]
    for row in range(legal.size):
        weigh_cards(rules[0], views[row], legal[row], weights, worths)
        chances[row] = chance_to_draw(worths, legal[row], cards[row], TEMPERATURE)


@kernel
def heuristic_action(rules: np.record, view: np.record, legal: np.uint64, general: bool) -> int:
    """Return the action of the seat to act.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act; its history is not read.
        legal: the legal actions, never empty.
        general: whether a general may be announced (P6).

    Returns:
        one of `legal`.
    """
    if view.phase == CALLS:
        if general and general_chance(rules, view) >= ENOUGH_FOR_GENERAL:
            return GENERAL
        return PASS
    announced = int64(view.general)
    if announced != NOBODY and has_taken_all(rules, view, announced):
        if announced == view.seat:
            return surest_card(rules, view, legal, True)
        legal = stopping_cards(rules, view, legal)
    return best_card(rules, view, legal, WEIGHTS[int64(rules.scoring)])


@kernel
def heuristic_actions(
    rules: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    general: bool,
    actions: np.ndarray,
) -> None:
    """Write the `heuristic_action` of each row into `actions`, int64 (N,).

    Args:
        rules: `RULES` (1,).
        views: `VIEW` (N,).
        legal: uint64 (N,).
        general: as in `heuristic_action`.
        actions: int64 (N,), overwritten.
    """
    for row in range(legal.shape[0]):
        actions[row] = heuristic_action(rules[0], views[row], legal[row], general)


@kernel
def plain_actions(
    rules: np.ndarray, views: np.ndarray, legal: np.ndarray, actions: np.ndarray
) -> None:
    """As `heuristic_actions` in games without generals; what these need is then not compiled."""
    weights = WEIGHTS[int64(rules[0].scoring)]
    for row in range(legal.shape[0]):
        actions[row] = best_card(rules[0], views[row], legal[row], weights)

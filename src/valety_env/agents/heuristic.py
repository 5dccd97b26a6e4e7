"""`heuristic`: a player by rules of sense, for all games of the package."""

from __future__ import annotations

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.cards import EMPTY, NO_SUIT, NUM_RANKS, ONE, PASS, bit, count, lowest, suit_cards
from valety_env.engine import CALLS, beats, penalty
from valety_env.rules import SCORING_TRICKS, Rules
from valety_env.view import unseen_cards


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
        return PASS
    best = -1
    best_value = -1e9
    left = legal
    while left != EMPTY:
        card = lowest(left)
        left &= left - ONE
        value = _value(rules, view, card)
        if value > best_value:
            best, best_value = card, value
    return best


@kernel
def _value(rules: np.record, view: np.record, card: int) -> float:
    """Return what playing a card seems worth."""
    suit = card // NUM_RANKS
    strength = card % NUM_RANKS
    is_jack = strength == rules.jack_rank
    trick = 1.0 if rules.scoring == SCORING_TRICKS else 0.0
    higher = count(unseen_cards(rules, view) & suit_cards(suit) & ~(bit(card + 1) - ONE))
    cost = 0.05 * strength if rules.scoring == SCORING_TRICKS else -0.05 * strength
    jacks = 0
    if is_jack:
        jacks |= 1 << suit
    if view.led == NO_SUIT:
        wins = 1.0 / (1.0 + higher)
    else:
        for seat in range(int64(rules.num_players)):
            other = int64(view.table[seat])
            if other >= 0 and other % NUM_RANKS == rules.jack_rank:
                jacks |= 1 << (other // NUM_RANKS)
        if beats(card, int64(view.best_card), int64(view.trump)):
            wins = 1.0 if rules.num_players == 2 else 1.0 / (1.0 + higher)
        else:
            wins = 0.0
    trick -= penalty(rules, jacks)
    return trick * (2.0 * wins - 1.0) - cost


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


class HeuristicAgent:
    """A player by rules of sense.

    Attributes:
        name: `heuristic`, or `heuristic,general=0`.
    """

    def __init__(self, rules: Rules, general: bool = True) -> None:
        """Make the player.

        Args:
            rules: the rules it will play.
            general: False: it never announces.
        """
        self.general = general
        self.name = "heuristic" if general else "heuristic,general=0"
        self._rules = rules.packed

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`; keys are not read."""
        actions = np.empty(len(legal), np.int64)
        heuristic_actions(self._rules, views, legal, self.general, actions)
        return actions

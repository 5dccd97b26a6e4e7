"""From what seats scored to points and shares of a win."""

from __future__ import annotations

import numpy as np

from valety_env.rules import Rules


def relative_points(rules: Rules, scores: np.ndarray) -> np.ndarray:
    """Return own points minus the mean of the others', charges negative.

    Args:
        rules: of the game.
        scores: (…, players), deal points or, in Polignac, charges.

    Returns:
        float64 (…, players); they sum to 0.
    """
    others = scores.sum(axis=-1, keepdims=True) - scores
    points = scores - others / (scores.shape[-1] - 1.0)
    # Not -points: nothing is plain 0, of either sign.
    return np.asarray(0.0 - points if rules.lowest_wins else points)


def win_shares(winners: np.ndarray, players: int) -> np.ndarray:
    """Return each seat's share of a win, 1/w for each of w winners.

    Args:
        winners: uint8 (…,), bit = seat.
        players: how many seats there are.

    Returns:
        float64 (…, players).
    """
    won = winners[..., None] >> np.arange(players, dtype=np.uint8) & 1
    return np.asarray(won / won.sum(axis=-1, keepdims=True))

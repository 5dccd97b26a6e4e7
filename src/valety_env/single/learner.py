"""What the environments share about the learner: his seat, his encoding, how he stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.engine import MATCH_OVER
from valety_env.observations import ENCODERS
from valety_env.rules import SCORING_TRICKS

# In place of a seat: in episode e of a seed, seat e modulo the players.
ALTERNATE = -1


def check_seat(seat: int | str, players: int) -> int:
    """Return a seat, or ALTERNATE.

    Raises:
        ValueError: for anything else than a seat or `"alternate"`.
    """
    if isinstance(seat, str) and seat == "alternate":
        return ALTERNATE
    whole = isinstance(seat, (int, np.integer)) and not isinstance(seat, bool)
    if not whole or not 0 <= int(seat) < players:
        raise ValueError(f"seat={seat!r}: allowed are 0…{players - 1} and 'alternate'")
    return int(seat)


def check_encoding(observation: Any) -> str:
    """Return the name of the one encoding that is needed: the learner alone observes.

    Raises:
        ValueError: if several are named, or none.
    """
    if not isinstance(observation, str):
        raise ValueError(
            f"observation={observation!r}: the learner alone observes, so it must be one of "
            f"{', '.join(ENCODERS)}"
        )
    return observation


@kernel
def tally(
    rules: np.ndarray,
    states: np.ndarray,
    learners: np.ndarray,
    totals: np.ndarray,
    points: np.ndarray,
    win: np.ndarray,
) -> None:
    """Write how each table stands, seen from its learner.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (N,).
        learners: (N,), seats.
        totals: int64 (N, players), the totals, the learner's first, then clockwise.
        points: float (N,), the learner's total minus the mean of the others', charges negative.
        win: float (N,), the learner's share of the win: 0 or one divided by the winners.
    """
    players = int64(rules[0].num_players)
    sign = 1.0 if rules[0].scoring == SCORING_TRICKS else -1.0
    for i in range(states.size):
        state = states[i]
        others = 0
        for place in range(players):
            total = int64(state.totals[(int64(learners[i]) + place) % players])
            totals[i, place] = total
            others += total
        own = totals[i, 0]
        points[i] = sign * (own - (others - own) / (players - 1.0))
        win[i] = 0.0
        if state.phase == MATCH_OVER:
            sharers = 0
            for seat in range(players):
                sharers += int64(state.winners) >> seat & 1
            if int64(state.winners) >> int64(learners[i]) & 1:
                win[i] = 1.0 / sharers

"""What the environments share about the learner: his seat, his encoding, how he stands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from valety_env._jit import inlined, int64, kernel
from valety_env.cards import count
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


@inlined
def tally(
    rules: np.record,
    state: np.record,
    learner: int,
    totals: np.ndarray,
    points: np.ndarray,
    win: np.ndarray,
    i: int,
) -> None:
    """Write how a table stands, seen from its learner.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record.
        learner: his seat.
        totals: int64 (N, players); row `i` are the totals, the learner's first, then clockwise.
        points: float (N,); entry `i` is the learner's total minus the mean of the others', charges
            negative.
        win: float (N,); entry `i` is the learner's share of the win: 0 or one divided by the
            winners.
        i: which row.
    """
    players = int64(rules.num_players)
    others = 0
    seat = learner
    for place in range(players):
        total = int64(state.totals[seat])
        totals[i, place] = total
        others += total if place > 0 else 0
        seat = seat + 1 if seat + 1 < players else 0
    ahead = totals[i, 0] - others / (players - 1.0)
    points[i] = ahead if rules.scoring == SCORING_TRICKS else -ahead
    win[i] = 0.0
    if state.phase == MATCH_OVER:
        winners = int64(state.winners)
        if winners >> learner & 1:
            win[i] = 1.0 / count(uint64(winners))


@kernel
def tally_table(
    rules: np.ndarray,
    states: np.ndarray,
    learner: int,
    totals: np.ndarray,
    points: np.ndarray,
    win: np.ndarray,
) -> None:
    """Write how the table `states[0]` stands, as `tally`, into arrays of one row."""
    tally(rules[0], states[0], learner, totals, points, win, 0)

"""Tables of different rules, solved together, with word of how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from valety_env.cards import NUM_CARDS
from valety_env.engine import STATE
from valety_env.rules import Rules
from valety_env.solver import Solver

Progress = Callable[[int, int], None]
"""Called with how many tables are solved, and of how many."""

# Tables solved in one call, on each thread; few, so that progress shows.
_AT_ONCE = 16


def solve_mixed(
    solvers: Mapping[Rules, Solver],
    tables: Sequence[tuple[Rules, Any]],
    progress: Progress | None = None,
) -> np.ndarray:
    """Return what each card leads to at tables of different rules.

    Those of the same rules stand in one line, whatever is between them, so that threads share them
    well.

    Args:
        solvers: one for all rules that occur.
        tables: of each its rules and its `STATE` record.
        progress: told how far it is.

    Returns:
        int16 (N, 52), as `Solver.values`.
    """
    values = np.empty((len(tables), NUM_CARDS), np.int16)
    done = 0
    for rules, solver in solvers.items():
        mine = [i for i, (of, _) in enumerate(tables) if of == rules]
        at_once = _AT_ONCE * solver.threads
        for low in range(0, len(mine), at_once):
            part = mine[low : low + at_once]
            states = np.empty(len(part), STATE)
            for row, i in enumerate(part):
                states[row] = tables[i][1]
            values[part] = solver.values(states)
            done += len(part)
            if progress is not None:
                progress(done, len(tables))
    return values

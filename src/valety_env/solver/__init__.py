"""Exact search for games of two with all cards known: the value of every legal card.

A deal's value is the difference of deal points when both see everything and play their best.
"""

from __future__ import annotations

import threading

import numpy as np

from valety_env.cards import NUM_CARDS
from valety_env.engine import PLAYS
from valety_env.rules import Rules, make_rules
from valety_env.solver.bounds import floors, leasts, suit_facts
from valety_env.solver.order import WEIGHTS
from valety_env.solver.positions import MOST_CARDS, NODE
from valety_env.solver.search import (
    DEAL,
    LEVEL,
    NO_VALUE,
    TABLE_COLUMNS,
    Memory,
    solve_in_parallel,
    solve_tables,
)
from valety_env.threads import share_out, usable_threads

__all__ = ["NO_VALUE", "Solver", "can_solve"]

_LEAST_MEMORY = 1 << 10
# Each has memory of its own.
_MOST_THREADS = 256


def can_solve(rules: Rules) -> bool:
    """Return whether games of these rules can be solved: those of two in which tricks score."""
    return rules.num_players == 2 and rules.scoring == "tricks"


class Solver:
    """Solves tables of a game of two in which tricks score.

    What it finds does not depend on what it was asked before, on threads or memory. Several Python
    threads may ask the same solver: they take turns.

    Args:
        rules: the rules, or a game's name.
        threads: how many share many tables; each has memory of its own.
        memory: bytes for what is remembered of positions, a thread; rounded down to a power of 2.

    Attributes:
        threads: how many.
        memory: bytes for what is remembered of positions, a thread.

    Raises:
        ValueError: for a game with more than two players or with penalties alone, or a number
            that is too small.
    """

    def __init__(self, rules: Rules | str, threads: int = 1, memory: int = 1 << 22) -> None:
        self.rules = make_rules(rules)
        if not can_solve(self.rules):
            raise ValueError(
                f'num_players={self.rules.num_players}, scoring="{self.rules.scoring}": solved are '
                'games of two players with scoring="tricks", as Valety is'
            )
        if threads < 1:
            raise ValueError(f"threads={threads}: it must be at least 1")
        if threads > _MOST_THREADS:
            raise ValueError(f"threads={threads}: it must be at most {_MOST_THREADS}")
        if memory < _LEAST_MEMORY:
            raise ValueError(f"memory={memory}: it must be at least {_LEAST_MEMORY} bytes")
        self.threads = threads
        slots = 1 << (memory // (8 * TABLE_COLUMNS)).bit_length() - 1
        self.memory = 8 * TABLE_COLUMNS * slots
        deals = np.zeros(threads, DEAL)
        deals["penalty"] = self.rules.jack_penalties
        deals["floor"] = floors(self.rules.jack_penalties)
        deals["least"] = leasts(self.rules.jack_penalties)
        deals["weights"] = WEIGHTS
        self._memory = Memory(
            deals,
            suit_facts(),
            np.zeros((threads, slots, TABLE_COLUMNS), np.uint64),
            np.zeros((threads, MOST_CARDS + 1), LEVEL),
            np.zeros((threads, MOST_CARDS + 1, MOST_CARDS + 1), NODE),
        )
        self._lock = threading.Lock()

    @property
    def nodes(self) -> int:
        """Positions looked at so far."""
        return int(self._memory.deals["nodes"].sum())

    def values(self, states: np.ndarray) -> np.ndarray:
        """Return what each card of the seat to play leads to, with best play by both afterwards.

        Args:
            states: `STATE` (N,), in the middle of a deal.

        Returns:
            int16 (N, 52): own deal points minus the other's at the deal's end, points so far
            included; NO_VALUE of cards that are not legal.

        Raises:
            ValueError: for a table whose deal is over.
        """
        return self._solve(states, NUM_CARDS)

    def best(self, states: np.ndarray) -> np.ndarray:
        """Return the value of the best card at each table, int16 (N,): as `values`, but sooner."""
        return self._solve(states, 1)[:, 0]

    def set_weights(self, weights: np.ndarray) -> None:
        """Order cards by other weights than `order.WEIGHTS`; no value depends on them."""
        self._memory.deals["weights"] = weights

    def _solve(self, states: np.ndarray, columns: int) -> np.ndarray:
        """Return values, of every card or of the best alone."""
        if (states["phase"] != PLAYS).any():
            table = int(np.flatnonzero(states["phase"] != PLAYS)[0])
            raise ValueError(f"table {table}: its deal is over")
        values = np.empty((len(states), columns), np.int16)
        given = (self.rules.packed, states, values)
        with self._lock:
            if self.threads > 1 and usable_threads(self.threads) > 1:
                share_out(solve_in_parallel, self.threads, *self._memory, *given)
            else:
                for thread in range(self.threads):
                    solve_tables(self._memory, thread, *given)
        return values

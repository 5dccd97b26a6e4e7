"""`pimc`: a player that imagines the hidden cards, over and over, and solves what it imagines.

Perfect-information Monte Carlo (Ginsberg, "GIB: Imperfect Information in a Computationally
Challenging Game", JAIR 2001): worlds are drawn from all that agree with what the seat knows, every
card is solved in each, and the card with the best mean is played. It believes that it will know
the hidden cards from the next play on, and that the other knows its own; so it never plays to find
out or to hide something (Frank and Basin, "Search in games with incomplete information", 1998).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import prange
from numpy import uint64

from valety_env._jit import int64, kernel, parallel_kernel
from valety_env.cards import EMPTY, NUM_CARDS, ONE, count, lowest
from valety_env.engine import STATE
from valety_env.rng import mix
from valety_env.rules import Rules
from valety_env.solver import Solver
from valety_env.solver.search import Memory, search_of, solve_table
from valety_env.view import SCRATCH_SIZE, imagine

# Worlds between two looks at the clock.
_AT_ONCE = 2


@kernel
def add_worlds(
    memory: Memory,
    thread: int,
    rules: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
    first: int,
    worlds: int,
    sums: np.ndarray,
    scratch: np.ndarray,
    states: np.ndarray,
    values: np.ndarray,
) -> None:
    """Imagine worlds of each table and add up what the cards are worth in them.

    The threads share the worlds out, so that they are all at work on a single table, too.

    Args:
        memory: the solver's, of all threads.
        thread: which.
        rules: `RULES` (1,).
        views: `VIEW` (N,).
        legal: uint64 (N,); where it is one card nothing is done.
        keys: uint64 (N,); world w is drawn by `mix(key, w)`.
        first: the first world.
        worlds: how many.
        sums: int64 (threads, N, 52), added to.
        scratch: float64 (threads, SCRATCH_SIZE).
        states: `STATE` (threads, 1), scratch.
        values: int16 (threads, 1, 52), scratch.
    """
    search = search_of(memory, thread)
    state = states[thread, 0]
    for unit in range(thread, views.size * worlds, memory.deals.size):
        i = unit // worlds
        if count(legal[i]) == 1:
            continue
        key = mix(keys[i], uint64(first + unit % worlds))
        imagine(rules[0], views[i], key, scratch[thread], state)
        solve_table(rules[0], state, search, values[thread], 0)
        left = legal[i]
        while left != EMPTY:
            card = lowest(left)
            left &= left - ONE
            sums[thread, i, card] += int64(values[thread, 0, card])


@parallel_kernel
def add_worlds_in_parallel(
    deals: np.ndarray,
    facts: np.ndarray,
    tables: np.ndarray,
    levels: np.ndarray,
    nodes: np.ndarray,
    *arguments: Any,
) -> None:
    """Do what `add_worlds` does for all threads, as `solve_in_parallel` is made."""
    for thread in prange(deals.size):
        add_worlds(Memory(deals, facts, tables, levels, nodes), thread, *arguments)


@kernel
def choose_highest(legal: np.ndarray, sums: np.ndarray, actions: np.ndarray) -> None:
    """Write the legal card with the highest sum, the lowest of equal ones.

    Args:
        legal: uint64 (N,).
        sums: int64 (N, 52).
        actions: int64 (N,), overwritten.
    """
    for i in range(legal.size):
        left = legal[i]
        best = lowest(left)
        while left != EMPTY:
            card = lowest(left)
            left &= left - ONE
            if sums[i, card] > sums[i, best]:
                best = card
        actions[i] = best


class PimcAgent:
    """A player that solves worlds it imagines.

    Attributes:
        name: `pimc,worlds=N`, or `pimc,seconds=S`.
    """

    def __init__(
        self,
        rules: Rules,
        worlds: int | None = None,
        seconds: float | None = None,
        threads: int = 1,
    ) -> None:
        """Make the player.

        Args:
            rules: of a game of two in which tricks score.
            worlds: how many are imagined at each choice, 40 unless told; then a choice follows
                from the view and the key.
            seconds: in place of worlds, how long a choice takes, or a little more: N tables take
                N times as long, and share it evenly. Choices then depend on the machine.
            threads: how many share the worlds; with `worlds` no choice depends on it.

        Raises:
            ValueError: for another game, or a number that is out of range.
        """
        if worlds is not None and seconds is not None:
            raise ValueError("worlds and seconds: give one of them")
        if worlds is not None and worlds < 1:
            raise ValueError(f"worlds={worlds}: it must be at least 1")
        if seconds is not None and not 0 < seconds < np.inf:
            raise ValueError(f"seconds={seconds}: it must be a number above 0")
        self._worlds = 40 if worlds is None else worlds
        self._seconds = seconds
        self.name = f"pimc,worlds={self._worlds}" if seconds is None else f"pimc,seconds={seconds}"
        self._solver = Solver(rules, threads)

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`."""
        threads = self._solver.threads
        sums = np.zeros((threads, len(legal), NUM_CARDS), np.int64)
        scratch = (
            np.empty((threads, SCRATCH_SIZE)),
            np.zeros((threads, 1), STATE),
            np.empty((threads, 1, NUM_CARDS), np.int16),
        )

        def add(first: int, worlds: int) -> None:
            given = (self._solver.rules.packed, views, legal, keys, first, worlds, sums, *scratch)
            self._solver.run(add_worlds, add_worlds_in_parallel, *given)

        if self._seconds is None:
            add(0, self._worlds)
        else:
            end = time.monotonic() + self._seconds * len(legal)
            done = 0
            while done == 0 or time.monotonic() < end:
                add(done, _AT_ONCE * threads)
                done += _AT_ONCE * threads
        actions = np.empty(len(legal), np.int64)
        choose_highest(legal, sums.sum(axis=0), actions)
        return actions

"""Players that search: `pimc`, which imagines what is hidden, and `clairvoyant`, which sees it.

Perfect-information Monte Carlo (Ginsberg, "GIB: Imperfect Information in a Computationally
Challenging Game", JAIR 2001): worlds are drawn from all that agree with what the seat knows, every
card is solved in each, and the card with the best mean is played. It believes that it will know
the hidden cards from the next play on, and that the other knows its own; so it never plays to find
out or to hide something (Frank and Basin, "Search in games with incomplete information", 1998).
"""

from __future__ import annotations

import time

import numpy as np

from valety_env._jit import kernel
from valety_env.agents import Policy, agent_name, make_agent
from valety_env.agents.worlds import imagine_worlds
from valety_env.cards import EMPTY, NUM_CARDS, ONE, lowest
from valety_env.rules import Rules
from valety_env.solver import Solver

# Worlds between two looks at the clock.
_AT_ONCE = 2
# Tables and worlds solved in one call: 2 MB of states.
_MOST_WORLDS = 8192
_MODEL = "heuristic"


@kernel
def choose_highest(legal: np.ndarray, values: np.ndarray, actions: np.ndarray) -> None:
    """Write the legal card with the highest value, the lowest of equal ones.

    Args:
        legal: uint64 (N,).
        values: of any integers (N, 52); those of other cards are not read.
        actions: int64 (N,), overwritten.
    """
    for i in range(legal.size):
        left = legal[i]
        best = lowest(left)
        while left != EMPTY:
            card = lowest(left)
            left &= left - ONE
            if values[i, card] > values[i, best]:
                best = card
        actions[i] = best


class PimcAgent:
    """A player that solves worlds it imagines.

    Attributes:
        name: `pimc,worlds=N`, or `pimc,seconds=S`, and `,model=…` unless that is the heuristic.
    """

    def __init__(
        self,
        rules: Rules,
        worlds: int | None = None,
        seconds: float | None = None,
        model: str | Policy | None = _MODEL,
        threads: int = 1,
    ) -> None:
        """Make the player.

        Args:
            rules: of a game of two in which tricks score.
            worlds: how many are imagined at each choice, 40 unless told; then a choice follows
                from the view and the key.
            seconds: in place of worlds, how long a choice takes, or a little more: N tables take
                N times as long, and share it evenly. Choices then depend on the machine.
            model: an agent that is a `Policy`, or its name: worlds in which it would hardly have
                played as the other did are imagined less often. None or `"none"`: all worlds are
                equally likely.
            threads: how many solve; with `worlds` no choice depends on it.

        Raises:
            ValueError: for another game, a number that is out of range, or an agent that is no
                policy.
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
        self._model = _policy(model, rules)
        if model != _MODEL:
            self.name += f",model={'none' if self._model is None else agent_name(self._model)}"

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`."""
        sums = np.zeros((len(legal), NUM_CARDS), np.int64)
        rows = np.flatnonzero(legal & (legal - ONE))
        if self._seconds is None:
            self._add(views, keys, rows, 0, self._worlds, sums)
        elif rows.size:
            end = time.monotonic() + self._seconds * len(rows)
            at_once = _AT_ONCE * self._solver.threads
            done = 0
            while done == 0 or time.monotonic() < end:
                self._add(views, keys, rows, done, at_once, sums)
                done += at_once
        actions = np.empty(len(legal), np.int64)
        choose_highest(legal, sums, actions)
        return actions

    def _add(
        self,
        views: np.ndarray,
        keys: np.ndarray,
        rows: np.ndarray,
        first: int,
        worlds: int,
        sums: np.ndarray,
    ) -> None:
        """Add to `sums` what the cards of some tables are worth in worlds from `first` on.

        What it adds for cards that are not legal means nothing.
        """
        tables = max(1, _MOST_WORLDS // worlds)
        for low in range(0, len(rows), tables):
            part = rows[low : low + tables]
            for begin in range(first, first + worlds, _MOST_WORLDS):
                number = min(_MOST_WORLDS, first + worlds - begin)
                found = imagine_worlds(
                    self._solver.rules, self._model, views[part], keys[part], number, begin
                )
                values = self._solver.values(found.reshape(-1))
                sums[part] += values.reshape(*found.shape, NUM_CARDS).sum(axis=1, dtype=np.int64)


def _policy(model: str | Policy | None, rules: Rules) -> Policy | None:
    """Return the policy that is named, or None for none."""
    if model is None or model == "none":
        return None
    agent = make_agent(model, rules) if isinstance(model, str) else model
    if not isinstance(agent, Policy):
        raise ValueError(
            f"model={model}: it does not tell how likely its choices are; what does is random, "
            "heuristic, checkpoint:PATH, or an object with chances(views, legal, actions)"
        )
    return agent


class ClairvoyantAgent:
    """A player that sees all hands and plays the best card, as the solver finds it.

    What it gains over others is what the hidden cards are worth to them. It believes that the other
    sees everything, too: of cards that are equally good then it plays the lowest.

    Attributes:
        name: `clairvoyant`.
        sees_all: it is shown `STATE`s in place of `VIEW`s.
    """

    name = "clairvoyant"
    sees_all = True

    def __init__(self, rules: Rules, threads: int = 1) -> None:
        """Make the player.

        Args:
            rules: of a game of two in which tricks score.
            threads: how many share the tables; no choice depends on it.

        Raises:
            ValueError: for another game, or a number that is out of range.
        """
        self._solver = Solver(rules, threads)

    def act(self, states: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`, but shown `STATE` (N,)."""
        values = np.zeros((len(legal), NUM_CARDS), np.int16)
        rows = np.flatnonzero(legal & (legal - ONE))
        values[rows] = self._solver.values(states[rows])
        actions = np.empty(len(legal), np.int64)
        choose_highest(legal, values, actions)
        return actions

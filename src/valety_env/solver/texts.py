"""Positions as text, solved: what `valety-env solve` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from valety_env.cards import card_name
from valety_env.engine import PLAYS
from valety_env.notation import NotationError, position_from_text, position_to_text
from valety_env.rules import Rules
from valety_env.solver import NO_VALUE, Solver

__all__ = ["Solution", "solve_texts"]

Progress = Callable[[int, int], None]
"""Called with how many positions are solved, and of how many."""

# Positions solved in one call, on each thread; few, so that progress shows.
_AT_ONCE = 16


@dataclass(frozen=True)
class Solution:
    """What the cards of a position lead to.

    Attributes:
        position: in the notation, complete.
        seat: who is to play.
        values: of each legal card the difference of deal points at the deal's end, own minus the
            other's, if both see everything and play their best; the best card first.
    """

    position: str
    seat: int
    values: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        cards = [{"card": card, "value": value} for card, value in self.values.items()]
        return {"position": self.position, "seat": self.seat, "cards": cards}


def solve_texts(
    texts: Iterable[str],
    threads: int = 1,
    progress: Progress | None = None,
    places: Sequence[str] | None = None,
) -> list[Solution]:
    """Solve positions, of the same rules or of different ones.

    Args:
        texts: in the notation of `position_from_text`.
        threads: how many share the positions.
        progress: told how far it is.
        places: what errors call each position; by default `position 1`, ….

    Returns:
        a solution each, in order.

    Raises:
        NotationError: if one is no position, or not of a game that can be solved, or its deal is
            over; all are read before the first is solved.
    """
    solvers: dict[Rules, Solver] = {}
    read: list[tuple[Rules, np.ndarray]] = []
    for number, text in enumerate(texts):
        place = f"position {number + 1}" if places is None else places[number]
        start = f"{place}: " if place else ""
        try:
            rules, state = position_from_text(text)
            if rules not in solvers:
                solvers[rules] = Solver(rules, threads)
        except ValueError as error:
            raise NotationError(f"{start}{error}") from None
        if state[0].phase != PLAYS:
            raise NotationError(f"{start}the deal is over: there is nothing to play")
        read.append((rules, state))
    found: dict[int, Solution] = {}
    for rules, solver in solvers.items():
        mine = [i for i, (of, _) in enumerate(read) if of == rules]
        for low in range(0, len(mine), _AT_ONCE * threads):
            part = mine[low : low + _AT_ONCE * threads]
            values = solver.values(np.concatenate([read[i][1] for i in part]))
            for i, row in zip(part, values, strict=True):
                found[i] = _solution(rules, read[i][1], row)
            if progress is not None:
                progress(len(found), len(read))
    return [found[i] for i in range(len(read))]


def _solution(rules: Rules, state: np.ndarray, values: np.ndarray) -> Solution:
    """Return the solution of one position."""
    cards = np.flatnonzero(values != NO_VALUE)
    best_first = cards[np.argsort(-values[cards].astype(np.int64), kind="stable")]
    return Solution(
        position_to_text(rules, state),
        int(state[0].turn),
        {card_name(int(card), rules.rank_order): int(values[card]) for card in best_first},
    )

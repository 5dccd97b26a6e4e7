"""Positions as text, solved: what `valety-env solve` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from valety_env.cards import card_name
from valety_env.engine import PLAYS
from valety_env.notation import NotationError, position_from_text, position_to_text
from valety_env.rules import Rules
from valety_env.solver import NO_VALUE, Solver
from valety_env.solver.batches import Progress, solve_mixed

__all__ = ["Solution", "solve_texts"]


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
    values = solve_mixed(solvers, [(rules, state[0]) for rules, state in read], progress)
    return [_solution(rules, state, row) for (rules, state), row in zip(read, values, strict=True)]


def _solution(rules: Rules, state: np.ndarray, values: np.ndarray) -> Solution:
    """Return the solution of one position."""
    cards = np.flatnonzero(values != NO_VALUE)
    best_first = cards[np.argsort(-values[cards].astype(np.int64), kind="stable")]
    return Solution(
        position_to_text(rules, state),
        int(state[0].turn),
        {card_name(int(card), rules.rank_order): int(values[card]) for card in best_first},
    )

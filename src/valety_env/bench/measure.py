"""Measuring: cases in turn, round after round, and ratios within a round.

What else a machine does changes from second to second, so that two speeds compare only where they
were measured next to each other. All cases take their turn in every round, a ratio is taken within
each round, and what is told is the median over the rounds, with the spread.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from valety_env.bench.machine import one_core
from valety_env.bench.peer_programs.serve import Steps, measure

Measure = Callable[[float], tuple[int, float]]
"""Called with about how many seconds to measure; returns steps and the seconds they took."""

Progress = Callable[[str, float, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

# Seconds: the first call of a case compiles and fills caches; it is not counted.
WARM_UP = 0.1


class CaseError(Exception):
    """A case can't be measured; the message says why, in one line."""


@dataclass(frozen=True)
class Case:
    """Something whose speed is measured.

    Attributes:
        name: unique in a run.
        title: what is stepped.
        kind: `"bound"`, `"batch"`, `"scalar"` or `"vector"`: what can be compared with it.
        start: begins it and returns its measurement; both may raise CaseError.
        unit: what is counted.
        note: what a step has more or less than others, in a few words.
        over: the case that its speed is compared with.
        one_core: whether it has to do with one core.
    """

    name: str
    title: str
    kind: str
    start: Callable[[], Measure]
    unit: str = "plays"
    note: str = ""
    over: str | None = None
    one_core: bool = True


def stepping(start: Callable[[], Steps]) -> Callable[[], Measure]:
    """Return what `Case.start` wants, of something that yields how many steps it made."""
    return lambda: partial(measure, start())


@dataclass(frozen=True)
class Spread:
    """A median and how far the single values lie from it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of one or more values."""
        return cls(statistics.median(values), min(values), max(values))

    def to_dict(self) -> dict[str, float]:
        """Return it as JSON values."""
        return {"median": self.median, "min": self.low, "max": self.high}


def ratio_within_rounds(values: Sequence[float], others: Sequence[float]) -> Spread:
    """Return how many times the others the values are.

    Args:
        values: one a round.
        others: of the same rounds.
    """
    return Spread.of([value / other for value, other in zip(values, others, strict=True)])


@dataclass(frozen=True)
class Series:
    """What was measured of a case.

    Attributes:
        case: the case.
        rates: steps a second, one a round.
    """

    case: Case
    rates: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.case.name,
            "title": self.case.title,
            "kind": self.case.kind,
            "unit": f"{self.case.unit}/s",
            "note": self.case.note,
            **Spread.of(self.rates).to_dict(),
            "all": list(self.rates),
        }


@dataclass(frozen=True)
class NotRun:
    """What could not be measured, and why, in one line."""

    name: str
    why: str


def measure_rounds(
    cases: Sequence[Case],
    rounds: int,
    seconds: float,
    progress: Progress = lambda what, done, total: None,
) -> tuple[list[Series], list[NotRun]]:
    """Measure the cases in turn, round after round.

    Args:
        cases: in the order in which they take their turns.
        rounds: at least 1.
        seconds: of one measurement, about.
        progress: told before each measurement.

    Returns:
        what was measured of the cases that never failed, and those that did.
    """
    running: dict[str, Measure] = {}
    rates: dict[str, list[float]] = {case.name: [] for case in cases}
    failed: dict[str, str] = {}

    def take_turn(case: Case, long: float) -> None:
        if case.name in failed:
            return
        try:
            with one_core() if case.one_core else contextlib.nullcontext():
                if case.name not in running:
                    running[case.name] = case.start()
                steps, took = running[case.name](long)
            rates[case.name].append(steps / took)
        except CaseError as error:
            failed[case.name] = str(error)

    for number, case in enumerate(cases):
        progress("preparing", number, len(cases))
        take_turn(case, WARM_UP)
        rates[case.name].clear()
    for round_number in range(rounds):
        for number, case in enumerate(cases):
            progress("measuring", round_number * len(cases) + number, rounds * len(cases))
            take_turn(case, seconds)
    return (
        [Series(case, tuple(rates[case.name])) for case in cases if case.name not in failed],
        [NotRun(name, why) for name, why in failed.items()],
    )

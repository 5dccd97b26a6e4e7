"""How many games to play: a number, a precision, or until a question is answered.

The question is answered by a confidence sequence: intervals for the mean that all hold together
with the stated chance, however often and whenever one looks, and whatever one does then. It rests
on bets against a mean (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", JRSS B 2024): who bets that observations lie above m cannot, if their mean is m or less,
ever multiply his money by 1/α with a chance of more than α (Ville's inequality). It needs no normal
distribution, but only that observations are bounded and independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from valety_env.arena.intervals import Interval, mean_interval

# The money is divided among these bets, each a part of the most that can't be lost at once: the
# best one for a mean μ above m is about (μ − m)(m − low)/variance.
_BETS = 0.9 * 0.5 ** np.arange(9)
# A question is looked at after so many observations first, then after so many times more.
_FIRST_LOOK = 50
_GROWTH = 1.1
# A precision is believed from so many observations on.
_LEAST = 200

BETTER, WORSE, EQUAL, UNDECIDED = "better", "worse", "equal", "undecided"


class ConfidenceSequence:
    """Intervals for the mean of bounded independent observations; all of them hold at once.

    The order of observations does not matter.

    Args:
        low: no observation is less.
        high: nor is one more.
        error: the chance that the mean is ever outside, at most.
    """

    def __init__(self, low: float, high: float, error: float = 0.05) -> None:
        self.low = low
        self.high = high
        self.error = error
        # Each value once, and how often it was observed.
        self._values = np.empty(0)
        self._counts: np.ndarray = np.empty(0)

    def add(self, observations: np.ndarray) -> None:
        """Take in observations, float64 (n,)."""
        values = np.concatenate([self._values, observations])
        counts = np.concatenate([self._counts, np.ones(len(observations))])
        self._values, places = np.unique(values, return_inverse=True)
        self._counts = np.bincount(places, counts)

    def evidence(self, mean: float) -> tuple[float, float]:
        """Return the logarithms of what bets against a mean have made of 1.

        Args:
            mean: between `low` and `high`.

        Returns:
            of bets that the mean is more, and that it is less.
        """
        away = self._values - mean
        return (
            self._log_money(away / (mean - self.low)),
            self._log_money(-away / (self.high - mean)),
        )

    def is_more(self, mean: float) -> bool:
        """Return whether what is estimated is known to be more than `mean`."""
        return self.evidence(mean)[0] >= math.log(2.0 / self.error)

    def is_less(self, mean: float) -> bool:
        """Return whether what is estimated is known to be less than `mean`."""
        return self.evidence(mean)[1] >= math.log(2.0 / self.error)

    def interval(self) -> Interval:
        """Return the interval as it is now."""
        return (
            self._bound(self.is_more, self.low, self.high),
            self._bound(self.is_less, self.high, self.low),
        )

    def _log_money(self, gains: np.ndarray) -> float:
        """Return the logarithm of the mean money of all bets; gains are at least −1."""
        by_bet = np.log1p(_BETS[:, None] * gains) @ self._counts
        most = float(by_bet.max())
        return most + math.log(float(np.exp(by_bet - most).mean()))

    def _bound(self, refuted: Callable[[float], bool], end: float, other: float) -> float:
        """Return the last refuted mean on the way from one end to the other, or the end."""
        for _ in range(50):
            middle = (end + other) / 2.0
            if refuted(middle):
                end = middle
            else:
                other = middle
        return end


@dataclass(frozen=True)
class Verdict:
    """The answer to the question whether an agent is better.

    Attributes:
        answer: `"better"`, `"worse"`, `"equal"`: neither is better by the margin or more; or
            `"undecided"`: all games have been played without an answer.
        error: the chance of a wrong answer is at most this, `"undecided"` being none.
        margin: points a deal that would matter; None: however little.
        interval: where the mean lies, with a chance of error of `error` at any time.
    """

    answer: str
    error: float
    margin: float | None
    interval: Interval


class Stopping(Protocol):
    """When enough has been played."""

    def wanted(self, observations: np.ndarray) -> int:
        """Return how many observations are wanted before the next look.

        Args:
            observations: float64 (n,), those so far, in order.

        Returns:
            a number that follows from the observations; n or less: they are enough.
        """
        ...


@dataclass(frozen=True)
class Number:
    """Stop after a number of observations."""

    most: int

    def wanted(self, observations: np.ndarray) -> int:
        """As `Stopping.wanted`."""
        del observations
        return self.most


@dataclass(frozen=True)
class Precision:
    """Stop when half of the 95% interval is small enough (Chow and Robbins 1965).

    Attributes:
        half: how small.
        most: after so many observations stop anyhow.
    """

    half: float
    most: int

    def wanted(self, observations: np.ndarray) -> int:
        """As `Stopping.wanted`."""
        n = len(observations)
        if n < _LEAST:
            return min(_LEAST, self.most)
        interval = mean_interval(observations)
        assert interval is not None
        half = (interval[1] - interval[0]) / 2.0
        if half <= self.half:
            return n
        # What is wanted if the deviation is what it seems; never a leap on its word alone.
        aim = math.ceil(n * (half / self.half) ** 2)
        return min(max(n + 1, min(aim, 2 * n)), self.most)


class Question:
    """Stop when it is known who is better.

    Args:
        bound: no observation is further from 0.
        most: after so many observations stop anyhow.
        margin: also stop when neither is better by this much, points a deal.
        error: the chance of a wrong answer, at most.
    """

    def __init__(
        self, bound: float, most: int, margin: float | None = None, error: float = 0.05
    ) -> None:
        self._most = most
        self._sequence = ConfidenceSequence(-bound, bound, error)
        self._margin = margin
        self._seen = 0

    def wanted(self, observations: np.ndarray) -> int:
        """As `Stopping.wanted`; the observations are those of the last call and more."""
        self._sequence.add(observations[self._seen :])
        self._seen = n = len(observations)
        if self._answer() != UNDECIDED:
            return n
        return min(max(_FIRST_LOOK, math.ceil(n * _GROWTH)), self._most)

    def end(self) -> None:
        """Want no more observations; what is said of those there are holds all the same."""
        self._most = 0

    @property
    def ended(self) -> bool:
        """Whether it was ended without an answer."""
        return self._most == 0

    def verdict(self) -> Verdict:
        """Return the answer, or that there is none."""
        sequence = self._sequence
        return Verdict(self._answer(), sequence.error, self._margin, sequence.interval())

    def _answer(self) -> str:
        margin = self._margin
        if self._sequence.is_more(0.0):
            return BETTER
        if self._sequence.is_less(0.0):
            return WORSE
        if margin and self._sequence.is_more(-margin) and self._sequence.is_less(margin):
            return EQUAL
        return UNDECIDED

"""95% intervals for the mean of independent observations.

An observation is a whole pair, the mean over all rotations of one deal or match: the games within
a pair share their cards, so they are no independent observations.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

LEVEL = 0.95
_TAIL = (1.0 + LEVEL) / 2.0
# From here on the expansion in 1/df is exact to 9 digits.
_MANY = 60

Interval = tuple[float, float]


def student_t(df: int) -> float:
    """Return the 97.5% quantile of Student's t with `df` >= 1 degrees of freedom."""
    if df < _MANY:
        low, high = 0.0, 13.0
        for _ in range(60):
            middle = (low + high) / 2.0
            if _within(middle, df) < LEVEL:
                low = middle
            else:
                high = middle
        return (low + high) / 2.0
    # Abramowitz and Stegun 26.7.5.
    z = NormalDist().inv_cdf(_TAIL)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / df**power for power, term in enumerate(terms, 1))


def _within(t: float, df: int) -> float:
    """Return the chance that Student's t lies in −t…t (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan2(t, math.sqrt(df))
    cosine = math.cos(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, df, 2):
        total += term
        term *= cosine**2 * k / (k + 1)
    total *= math.sin(angle)
    return (angle + total) * 2.0 / math.pi if odd else total


def mean_interval(observations: np.ndarray) -> Interval | None:
    """Return the 95% interval of the mean by Student's t; None for fewer than two observations."""
    n = len(observations)
    if n < 2:
        return None
    mean = float(np.mean(observations))
    half = student_t(n - 1) * float(np.std(observations, ddof=1)) / math.sqrt(n)
    return mean - half, mean + half


def rate_interval(observations: np.ndarray) -> Interval | None:
    """Return the 95% interval of the mean of observations that lie in 0…1.

    Student's t, with one observation of 0 and one of 1 added, as Agresti and Coull do for
    proportions: without them an agent that wins all of a few matches would be told to win always,
    with no doubt left. Among many observations they count for nothing.
    """
    if len(observations) < 2:
        return None
    interval = mean_interval(np.append(observations, (0.0, 1.0)))
    assert interval is not None
    return max(interval[0], 0.0), min(interval[1], 1.0)

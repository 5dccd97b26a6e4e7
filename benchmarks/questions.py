"""How many deals the question "who is better?" takes, by simulation.

    python benchmarks/questions.py

Duplicate deals are drawn as those of competent agents of Valety come out: halves, with a standard
deviation of 1.6 points. Beside it: how many a test of fixed size needs to find the difference with
a chance of 80%, at the same error of 5%.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tyro

from valety_env.arena.evaluation import most_points
from valety_env.arena.sequential import Question
from valety_env.rules import make_rules

DEVIATION = 1.6
DIFFERENCES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.0)
MOST = 100_000
# The quantiles of the normal distribution for an error of 5% and a chance of 80%.
FIXED = (1.95996 + 0.84162) ** 2


@dataclass(frozen=True)
class Args:
    """Simulate questions."""

    runs: int = 200
    """of each difference"""
    seed: int = 1
    """of the draws"""


def ask(observations: np.ndarray) -> tuple[str, int]:
    """Return the answer, and after how many deals."""
    question = Question(most_points(make_rules("valety")), len(observations))
    n = 0
    while (wanted := question.wanted(observations[:n])) > n:
        n = wanted
    return question.verdict().answer, n


def main(args: Args) -> None:
    rng = np.random.default_rng(args.seed)
    print("| better by, points a deal | deals, median | nine in ten by | answers | fixed size |")
    print("|---:|---:|---:|---|---:|")
    for difference in DIFFERENCES:
        most = MOST if difference else MOST // 10
        found = [
            ask(np.rint(2 * rng.normal(difference, DEVIATION, most)) / 2) for _ in range(args.runs)
        ]
        counts = [n for _, n in found]
        answers = {name: sum(a == name for a, _ in found) for name, _ in found}
        told = ", ".join(f"{number} {name}" for name, number in sorted(answers.items()))
        fixed = f"{FIXED * (DEVIATION / difference) ** 2:,.0f}" if difference else ""
        print(
            f"| {difference:g} | {np.median(counts):,.0f} | {np.quantile(counts, 0.9):,.0f} "
            f"| {told} | {fixed} |"
        )


if __name__ == "__main__":
    main(tyro.cli(Args))

"""Fit the weights by which the solver orders cards, and print them as solver/order.py has them.

Weights change how many positions a search looks at, so that number is what is made small: the mean
over random deals of Valety, with what is far above the others damped, so that no single deal leads.
One weight after the other is tried a step up and a step down; steps that help grow, others shrink.
What a fit is worth is told by deals it has not seen.

    python tools/fit_solver.py --minutes 15
"""

import argparse
import time

import numpy as np

from valety_env.engine import STATE, start_match
from valety_env.rules import make_rules
from valety_env.solver import Solver
from valety_env.solver.order import NUM_WEIGHTS, WEIGHTS

# The mean is taken of numbers of positions to this power.
_DAMPING = 0.85


def deals(seed: int, number: int) -> np.ndarray:
    """Return tables of Valety before the first lead, STATE (number,)."""
    rules = make_rules("valety")
    states = np.zeros(number, STATE)
    for i in range(number):
        start_match(rules.record, states[i], np.uint64(seed), i)
    return states


def positions(solver: Solver, weights: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return how many positions the search of each table looks at, (N,)."""
    solver.set_weights(weights)
    numbers = []
    for i in range(len(states)):
        before = solver.nodes
        solver.best(states[i : i + 1])
        numbers.append(solver.nodes - before)
    return np.array(numbers)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--deals", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    solver = Solver("valety")
    seen, unseen = deals(options.seed, options.deals), deals(options.seed + 1, options.deals)

    def cost(weights: np.ndarray) -> float:
        return float((positions(solver, weights, seen) ** _DAMPING).mean())

    weights = WEIGHTS.astype(int)
    least = cost(weights)
    print(f"as they are: {positions(solver, weights, unseen).mean():.0f} positions an unseen deal")
    steps = np.maximum(np.abs(weights) * 0.3, 5)
    rng = np.random.default_rng(options.seed)
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        for i in rng.permutation(NUM_WEIGHTS):
            if time.monotonic() > end:
                break
            for sign in rng.permutation([-1, 1]):
                tried = weights.copy()
                tried[i] += sign * max(round(steps[i]), 1)
                found = cost(tried)
                if found < least:
                    weights, least = tried, found
                    steps[i] *= 1.3
                    break
            else:
                steps[i] *= 0.6
        number = positions(solver, weights, unseen).mean()
        print(f"{number:.0f} positions an unseen deal\n{weights.tolist()}", flush=True)


if __name__ == "__main__":
    main()

"""What control variates save, and what they cost.

    python benchmarks/control.py --checkpoint runs/leaderboard/valety-ppo-1

For each pairing: the variance of plain points ÷ that of corrected ones, that is how many times as
many deals would be needed without; and how long a deal takes with and without them. They pay where
the saving is more than the times' ratio.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import tyro

from valety_env import evaluate
from valety_env.arena import Result


@dataclass(frozen=True)
class Args:
    """Measure control variates."""

    checkpoint: str
    """a network of Valety"""
    deals: int = 2000
    """of each pairing of agents that are fast"""
    slow_deals: int = 200
    """of each pairing with a player that searches"""
    seed: int = 101
    """of the deals"""


def timed(*agents: str, **options: Any) -> tuple[Result, float]:
    """Return a result, and how many milliseconds a deal took."""
    # What must be compiled is compiled before.
    evaluate(*agents, **{**options, "deals": 2})
    begin = time.perf_counter()
    result = evaluate(*agents, **options).results[0]
    return result, 1e3 * (time.perf_counter() - begin) / result.pairs


def interval_of_saving(plain: np.ndarray, corrected: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of a ratio of variances, by bootstrap over deals."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(1000):
        chosen = rng.integers(0, len(plain), len(plain))
        ratios.append(plain[chosen].var() / corrected[chosen].var())
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def main(args: Args) -> None:
    drawn = f"checkpoint:{args.checkpoint},temperature=1"
    likeliest = f"checkpoint:{args.checkpoint}"
    cases: list[tuple[str, str, str, dict[str, Any]]] = [
        ("play", "random", "heuristic", {}),
        ("play", drawn, "heuristic", {}),
        ("play", drawn, "random", {}),
        ("play", drawn, drawn, {}),
        ("deal", "heuristic", "random", {"duplicate": False}),
        ("deal", likeliest, "heuristic", {"duplicate": False}),
        ("deal", "pimc,worlds=10", "heuristic", {"duplicate": False}),
        ("all", drawn, "heuristic", {"duplicate": False}),
        ("play", "random", "heuristic", {"game": "polignac"}),
        ("deal", "heuristic", "random", {"game": "polignac", "duplicate": False}),
        ("all", "random", "heuristic", {"game": "polignac", "duplicate": False}),
    ]
    names = {drawn: "network, drawn", likeliest: "network"}
    print("| game | deals | control | agents | saving [95%] | a deal, without and with it |")
    print("|---|---|---|---|---:|---:|")
    for control, one, other, options in cases:
        deals = args.slow_deals if "pimc" in one else args.deals
        given = {"deals": deals, "seed": args.seed, **options}
        plain, before = timed(one, other, **given)
        corrected, after = timed(one, other, control=control, **given)
        low, high = interval_of_saving(plain.pair_points, corrected.pair_points)
        kind = "once" if "duplicate" in options else "duplicate"
        print(
            f"| {options.get('game', 'valety')} | {kind} | {control} "
            f"| {names.get(one, one)} over {names.get(other, other)} "
            f"| {corrected.saving:.2f} [{low:.2f}, {high:.2f}] | {before:.3g}, {after:.3g} ms |",
            flush=True,
        )


if __name__ == "__main__":
    main(tyro.cli(Args))

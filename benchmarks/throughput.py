"""Steps per second of the environments and of two things that bound them, measured in turn.

    python benchmarks/throughput.py --seconds 1 --rounds 7

Times of one machine at one moment mean little; the ratios within a run are what to compare.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import tyro
from rich.console import Console
from rich.table import Table

import valety_env
from valety_env import polignac_v0, valety_v0
from valety_env._jit import kernel
from valety_env.vector import SelfPlayEnv


@dataclass
class Args:
    """Measure the environments' speed.

    Example: python benchmarks/throughput.py --seconds 1 --rounds 7 --json out.json
    """

    seconds: float = 1.0
    """how long one measurement lasts, about"""
    rounds: int = 7
    """measurements of each; all are measured in turn"""
    tables: int = 4096
    """tables of the batch environment"""
    json: Path | None = None
    """where to write the numbers"""


class NoGame(pettingzoo.AECEnv):  # type: ignore[misc]
    """An AEC environment with the spaces of Valety and PettingZoo's bookkeeping, but no game."""

    metadata = {"name": "no_game", "render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["player_0", "player_1"]
        self._row = np.zeros(464, np.float32)
        self._mask = np.zeros(52, np.int8)
        self._mask[:9] = 1

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._steps = 0

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        return {"observation": self._row.copy(), "action_mask": self._mask.copy()}

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[self.agent_selection] = 0
        self._clear_rewards()
        self._steps += 1
        if self._steps == 136:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[self._steps % 2]
        self._accumulate_rewards()


@kernel
def copy_rows(source: np.ndarray, target: np.ndarray, times: int) -> None:
    """Copy a row of 256 bytes again and again, within the cache: the limit of writing rows."""
    for i in range(times):
        for j in range(32):
            target[i & 63, j] = source[(7 * i) & 63, j]


def aec_loop(env: Any, rng: np.random.Generator) -> Callable[[float], tuple[int, float]]:
    """Return a measurement of the loop of PettingZoo's documentation, random legal actions."""
    draws = rng.random(1 << 16).tolist()

    def measure(seconds: float) -> tuple[int, float]:
        steps = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            env.reset()
            for _ in env.agent_iter():
                observation, _, termination, truncation, _ = env.last()
                if termination or truncation:
                    action = None
                else:
                    legal = np.flatnonzero(observation["action_mask"])
                    action = legal[int(draws[steps & 0xFFFF] * len(legal))]
                    steps += 1
                env.step(action)
        return steps, time.perf_counter() - start

    return measure


def batch_loop(env: SelfPlayEnv) -> Callable[[float], tuple[int, float]]:
    """Return a measurement of stepping all tables with random legal actions, all counted."""
    env.reset()

    def measure(seconds: float) -> tuple[int, float]:
        steps = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(20):
                env.step(env.sample())
            steps += 20 * env.num_envs
        return steps, time.perf_counter() - start

    return measure


def row_loop() -> Callable[[float], tuple[int, float]]:
    """Return a measurement of copying rows of 256 bytes."""
    source, target = np.ones((64, 32), np.uint64), np.zeros((64, 32), np.uint64)
    copy_rows(source, target, 1)

    def measure(seconds: float) -> tuple[int, float]:
        rows = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            copy_rows(source, target, 1_000_000)
            rows += 1_000_000
        return rows, time.perf_counter() - start

    return measure


def main(args: Args) -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    reuse = {"seed": 0, "reuse_buffers": True}
    measured: dict[str, Callable[[float], tuple[int, float]]] = {
        "AEC without a game, standard bookkeeping": aec_loop(NoGame(), rng),
        "AEC valety": aec_loop(valety_v0.env(), rng),
        "AEC polignac, 4 players": aec_loop(polignac_v0.env(), rng),
        "AEC polignac, 6 players": aec_loop(polignac_v0.env(num_players=6), rng),
        "copying a row of 256 bytes": row_loop(),
        "batch valety": batch_loop(SelfPlayEnv("valety", args.tables, **reuse)),  # type: ignore[arg-type]
        "batch polignac, 4 players": batch_loop(
            SelfPlayEnv("polignac", args.tables, **reuse)  # type: ignore[arg-type]
        ),
        "batch valety, 2 threads": batch_loop(
            SelfPlayEnv("valety", args.tables, threads=2, **reuse)  # type: ignore[arg-type]
        ),
    }
    for measure in measured.values():
        measure(0.01)
    rates: dict[str, list[float]] = {name: [] for name in measured}
    console = Console(stderr=True)
    with console.status("measuring") as status:
        for round_number in range(args.rounds):
            for name, measure in measured.items():
                status.update(f"round {round_number + 1} of {args.rounds}: {name}")
                steps, seconds = measure(args.seconds)
                rates[name].append(steps / seconds)
    bounds = {
        "AEC": "AEC without a game, standard bookkeeping",
        "batch": "copying a row of 256 bytes",
    }
    table = Table("what is stepped", "steps/s, median", "min … max", "of its bound")
    results = []
    for name, values in rates.items():
        bound = bounds.get(name.split()[0])
        ratio = None
        if bound is not None:
            ratio = statistics.median(v / b for v, b in zip(values, rates[bound], strict=True))
        median = statistics.median(values)
        spread = f"{min(values):,.0f} … {max(values):,.0f}"
        table.add_row(name, f"{median:,.0f}", spread, "" if ratio is None else f"{ratio:.3f}")
        results.append({"name": name, "median": median, "all": values, "of_bound": ratio})
    Console().print(table)
    versions = {
        "valety_env": valety_env.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "gymnasium": gymnasium.__version__,
        "pettingzoo": pettingzoo.__version__,
    }
    print(f"{args.tables} tables; versions: " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    if args.json:
        args.json.write_text(json.dumps({"results": results, "versions": versions}, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Args))

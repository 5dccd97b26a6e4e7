"""How long a new process takes to import the package and to make its first step."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from valety_env.bench.measure import Progress, Spread

_AEC = """
from valety_env import {module} as game
env = game.env()
env.reset(seed=0)
observation = env.last()[0]
env.step(int(observation["action_mask"].argmax()))
"""
_BATCH = """
from valety_env.vector import SelfPlayEnv
env = SelfPlayEnv("valety", 4096, seed=0)
env.reset()
env.step(env.sample())
"""
_GYMNASIUM = """
import gymnasium, valety_env
env = gymnasium.make("valety/Valety-v0", opponent="heuristic")
_, info = env.reset(seed=0)
env.step(int(info["action_mask"].argmax()))
"""
_VECTOR = """
import gymnasium, valety_env
envs = gymnasium.make_vec("valety/Valety-v0", num_envs=4096, opponent="heuristic")
_, infos = envs.reset(seed=0)
envs.step(infos["action_mask"].argmax(axis=1))
"""
BASE = "base"
# name → (title, what the process does)
STARTS = {
    BASE: (
        "import numpy, numba, gymnasium, pettingzoo",
        "import numpy, numba, gymnasium, pettingzoo",
    ),
    "import": ("import valety_env", "import valety_env"),
    "aec": ("first step, AEC, Valety", _AEC.format(module="valety_v0")),
    "aec-polignac": ("first step, AEC, Polignac", _AEC.format(module="polignac_v0")),
    "batch": ("first step, batch", _BATCH),
    "gymnasium": ("first step, Gymnasium against heuristic", _GYMNASIUM),
    "vector": ("first step, Gymnasium vector against heuristic", _VECTOR),
}
COLD = ("aec", "aec-polignac", "batch", "gymnasium", "vector")
# A cold start compiles for seconds: it varies less, and a few times are enough.
COLD_ROUNDS = 3


class StartError(RuntimeError):
    """A process that was to be timed failed."""


@dataclass(frozen=True)
class Start:
    """The times of one kind of start.

    Attributes:
        name: unique.
        title: what the process does.
        cold: whether it had to compile.
        seconds: from before the process is started until it has done that, one a round.
        more: the median of how much longer that is than the round's import of what the package
            stands on; None for cold starts.
    """

    name: str
    title: str
    cold: bool
    seconds: tuple[float, ...]
    more: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "cold": self.cold,
            "unit": "s",
            **Spread.of(self.seconds).to_dict(),
            "more_than_base": self.more,
            "all": list(self.seconds),
        }


def time_process(code: str, **environment: str) -> float:
    """Return the seconds from starting a process until it has run `code`."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint('done', flush=True)"],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    seconds = time.perf_counter() - begun
    _, complaint = process.communicate()
    if said != "done\n":
        last = complaint.strip().splitlines()[-1:] or ["no message"]
        raise StartError(f"a process that was to be timed ended: {last[0]}")
    return seconds


def measure_starts(
    rounds: int,
    progress: Progress = lambda what, done, total: None,
    timer: Callable[..., float] = time_process,
) -> list[Start]:
    """Time all kinds of starts in turn, round after round.

    Args:
        rounds: of the warm ones; the cold ones have three at most.
        progress: told before each start.
        timer: of one process.

    Raises:
        StartError: if one of the processes fails.
    """
    warm: dict[str, list[float]] = {name: [] for name in STARTS}
    cold: dict[str, list[float]] = {name: [] for name in COLD}
    cold_rounds = min(rounds, COLD_ROUNDS)
    total = (rounds + 1) * len(warm) + cold_rounds * len(cold)
    done = 0
    # The first round fills the caches, those of compiled kernels among them, and doesn't count.
    for round_number in range(rounds + 1):
        for name, seconds in warm.items():
            progress("starting processes", done, total)
            took = timer(STARTS[name][1])
            if round_number:
                seconds.append(took)
            done += 1
    for _ in range(cold_rounds):
        for name, seconds in cold.items():
            progress("starting processes", done, total)
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(timer(STARTS[name][1], VALETY_ENV_CACHE_DIR=folder))
            done += 1

    def more(seconds: list[float]) -> float:
        return statistics.median(a - b for a, b in zip(seconds, warm[BASE], strict=True))

    return [
        Start(name, STARTS[name][0], False, tuple(seconds), more(seconds))
        for name, seconds in warm.items()
    ] + [
        Start(f"{name}-cold", f"{STARTS[name][0]}, compiling", True, tuple(seconds), None)
        for name, seconds in cold.items()
    ]

"""The batch environment on a GPU: whether it plays as the CPU does, then how fast.

    python benchmarks/gpu.py --json gpu.json

Some two minutes on one GPU. Every play is compared first, all that the environment tells of it;
the speeds that follow are told only if nothing differs. Without a GPU it runs in numba-cuda's
simulator, NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1, with --compare 3 --plays 20 --tables 8.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from valety_env.arena import versions
from valety_env.bench.loops import stagger
from valety_env.bench.machine import describe_machine
from valety_env.bench.measure import Case, Measure, Spread, measure_rounds, ratio_within_rounds
from valety_env.vector import Batch, SelfPlayEnv

# What is compared: the game and options.
COMPARED: list[tuple[str, dict[str, Any]]] = [
    ("valety", {"target": 3}),
    ("valety", {"dtype": "float32", "illegal": "penalise", "reward": "points"}),
    ("valety", {"observation": "planes_v0", "episode": "deal"}),
    ("polignac", {"num_deals": 1}),
    ("polignac", {"num_players": 6, "observation": "tokens_v0", "reward": "points"}),
    ("polignac", {"num_players": 5, "observation": "pieces_v0", "num_deals": 1}),
]


@dataclass
class Args:
    """Compare a GPU with the CPU, then measure it.

    Example: python benchmarks/gpu.py --tables 4096 1000000 --json gpu.json
    """

    device: str = "cuda"
    """the GPU, as torch calls it"""
    compare: int = 4096
    """tables that are compared"""
    plays: int = 130
    """plays that are compared"""
    tables: tuple[int, ...] = (4096, 16384, 65536, 262144, 1000000)
    """numbers of tables that are measured"""
    seconds: float = 0.4
    """how long one measurement lasts, about"""
    rounds: int = 7
    """measurements of each number of tables, in turn"""
    seed: int = 0
    """of the games"""
    json: Path | None = None
    """where to write the numbers"""


def on_host(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: on_host(piece) for name, piece in value.items()}
    return value.cpu().numpy() if isinstance(value, torch.Tensor) else value


def everything(env: SelfPlayEnv, batch: Batch) -> Iterator[tuple[str, Any]]:
    for name in ("observation", "action_mask", "seat", "rewards", "terminated", "truncated"):
        yield name, on_host(getattr(batch, name))
    yield "states", env.states.view(np.uint8)
    yield "state", on_host(env.state())
    final = env.final()
    for name in ("tables", "observation", "totals", "winners", "deals"):
        yield f"final {name}", getattr(final, name)


def compare(game: str, options: dict[str, Any], args: Args) -> int:
    """Play on both; return how many episodes ended.

    Half of the plays are made in a stream of their own, half into arrays that are given.
    """
    here = SelfPlayEnv(game, args.compare, seed=args.seed, **options)
    there = SelfPlayEnv(game, args.compare, seed=args.seed, device=args.device, **options)
    stream = torch.cuda.Stream() if torch.cuda.is_available() else None
    batches = here.reset(), there.reset()
    ended = 0
    for play in range(args.plays):
        for (name, expected), (_, given) in zip(
            everything(here, batches[0]), everything(there, batches[1]), strict=True
        ):
            np.testing.assert_equal(given, expected, f"{game} {options}, play {play}: {name}")
        actions, drawn = here.sample(), there.sample()
        np.testing.assert_equal(on_host(drawn), actions, f"{game} {options}, play {play}: sample")
        if play % 50 == 7:
            actions[1::3] = drawn[1::3] = 63  # illegal
        synchronize()
        with torch.cuda.stream(stream) if play % 2 else contextlib.nullcontext():
            out = there.empty_batch() if play // 2 % 2 else None
            batches = here.step(actions), there.step(drawn, out=out)
            synchronize()
        ended += int(batches[0].terminated.sum())
    return ended


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(work: Callable[[], None], steps: int) -> Measure:
    """Return the measurement of work that makes so many steps, and is waited for at the end."""

    def measure(seconds: float) -> tuple[int, float]:
        calls, took = 1, 0.0
        while True:
            synchronize()
            began = time.perf_counter()
            for _ in range(calls):
                work()
            synchronize()
            took = time.perf_counter() - began
            if took > seconds / 2:
                return calls * steps, took
            calls = max(2 * calls, int(calls * seconds / max(took, 1e-6) * 0.8))

    return measure


def playing(game: str, tables: int, device: str, seed: int) -> Callable[[], Measure]:
    def start() -> Measure:
        env = SelfPlayEnv(game, tables, seed=seed, device=device, reuse_buffers=True)
        stagger(env, 30)

        def play_on() -> None:
            env.step(env.sample())

        return timed(play_on, tables)

    return start


def copying(tables: int, device: str) -> Callable[[], Measure]:
    """Copy rows of 464 bytes on the device: what an observation of Valety takes at the least."""

    def start() -> Measure:
        here = torch.zeros((tables, 464), dtype=torch.uint8)
        source = here.to(device) if torch.cuda.is_available() else here
        target = torch.zeros_like(source)

        def copy() -> None:
            target.copy_(source)

        return timed(copy, tables)

    return start


def cases_of(args: Args) -> list[Case]:
    most = max(args.tables)
    bound = "copying rows of 464 bytes"
    cases = [Case("copy", f"{bound}, {most:,}", "bound", copying(most, args.device), "rows")]
    for game in ("valety", "polignac"):
        few = min(args.tables)
        start = playing(game, few, "cpu", args.seed)
        cases.append(Case(f"{game} cpu", f"one thread, {few:,} tables", "batch", start))
        for tables in args.tables:
            start = playing(game, tables, args.device, args.seed)
            title = f"{args.device}, {tables:,} tables"
            cases.append(Case(f"{game} {tables}", title, "batch", start, over=f"{game} cpu"))
    return cases


def profile(args: Args) -> list[dict[str, Any]]:
    """Return the time of each kernel at the largest number of tables, µs a launch."""
    if not torch.cuda.is_available():
        return []
    from torch.profiler import ProfilerActivity

    env = SelfPlayEnv("valety", max(args.tables), seed=args.seed, device=args.device)
    env.reset()
    env.step(env.sample())
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(20):
            env.step(env.sample())
        synchronize()
    return [
        {"kernel": event.key, "launches": event.count, "µs": event.device_time}
        for event in found.key_averages()
    ]


def main(args: Args) -> None:
    told = Console(width=110)
    console = Console(stderr=True)
    for game, options in COMPARED:
        ended = compare(game, options, args)
        told.print(f"{game} {options}: {args.plays} plays at {args.compare} tables are equal, "
                   f"{ended} episodes ended")  # fmt: skip
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("measuring")
        found, failed = measure_rounds(
            cases_of(args),
            args.rounds,
            args.seconds,
            lambda what, done, total: bar.update(task, completed=done, total=total),
        )
    assert not failed, failed
    rates = {series.case.name: series.rates for series in found}
    table = Table("case", "what", "million/s", "min … max", "times", box=box.MARKDOWN)
    for series in found:
        case, speeds = series.case, Spread.of(series.rates)
        times = ""
        if case.over:
            times = f"{ratio_within_rounds(series.rates, rates[case.over]).median:.1f}"
        table.add_row(
            case.name,
            case.title,
            f"{speeds.median / 1e6:,.1f}",
            f"{speeds.low / 1e6:,.1f} … {speeds.high / 1e6:,.1f}",
            times,
        )
    told.print(table)
    gpu = torch.cuda.is_available()
    results = {
        "equal": len(COMPARED),
        "cases": [series.to_dict() for series in found],
        "seed": args.seed,
        "gpu": torch.cuda.get_device_name(args.device) if gpu else "simulated",
        "cuda": torch.version.cuda,
        "machine": describe_machine(),
        "versions": versions() | {"numba-cuda": importlib.metadata.version("numba-cuda")},
    }
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    # After the rest has been told: a profiler needs rights that not every machine gives.
    results["kernels"] = profile(args)
    for kernel in results["kernels"]:
        told.print(f"{kernel['kernel'][:60]:60} {kernel['launches']:4} × {kernel['µs']:8.1f} µs")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(tyro.cli(Args))

"""What a second thread gives the batch environment, beside what a second core can give.

    python benchmarks/threads.py --rounds 25

Two threads take turns with one, and with two processes of one thread each, which share nothing but
the machine and do twice the work. A virtual machine's second core may give less at times, and both
share a cache and memory; what the processes gain in the same rounds is what could be had. A loop of
nothing on two threads tells how far the cores are from each other at the time: where they have no
cache in common, all that one writes and the other reads takes four times as long.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
import tyro
from numba import prange
from rich import box
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from valety_env._jit import parallel_kernel
from valety_env.bench.loops import batch_steps, stagger
from valety_env.bench.measure import (
    Case,
    Measure,
    Spread,
    measure_rounds,
    ratio_within_rounds,
)
from valety_env.bench.peer_programs.serve import measure
from valety_env.threads import share_out
from valety_env.vector import SelfPlayEnv

_HANDOVERS = 1000


@dataclass
class Args:
    """Measure one thread, two threads and two processes in turn.

    Example: python benchmarks/threads.py --tables 4096 --rounds 9
    """

    tables: tuple[int, ...] = (4096, 16_384)
    """of the environments"""
    seconds: float = 0.4
    """how long one measurement lasts, about"""
    rounds: int = 25
    """measurements of each, in turn"""
    seed: int = 0
    """of the games"""


def playing(tables: int, threads: int, seed: int) -> Measure:
    env = SelfPlayEnv("valety", tables, seed, threads, reuse_buffers=True)
    stagger(env)
    return partial(measure, batch_steps(env))


@parallel_kernel
def do_nothing(rounds: np.ndarray) -> None:
    for i in prange(rounds.size):
        rounds[i] = i


def handing_over() -> Measure:
    """Return a measurement of loops of nothing on two threads."""
    # A line of the cache for each.
    rounds = np.zeros((2, 8), np.int64)[:, 0]

    def steps() -> Iterator[int]:
        while True:
            for _ in range(_HANDOVERS):
                share_out(do_nothing, 2, rounds)
            yield _HANDOVERS

    return partial(measure, steps())


def serve(asked: Connection, core: int, tables: int, seed: int) -> None:
    """Play on one core for as long as is asked, time after time."""
    os.sched_setaffinity(0, {core})
    play_for = playing(tables, 1, seed)
    while True:
        asked.send(play_for(asked.recv()))


@contextmanager
def process(core: int, tables: int, seed: int) -> Iterator[Connection]:
    """Run `serve` in a process of its own; gives what to ask."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=serve, args=(theirs, core, tables, seed), daemon=True)
    child.start()
    try:
        yield ours
    finally:
        child.kill()
        child.join()


def playing_by(processes: list[Connection]) -> Measure:
    def play_for(seconds: float) -> tuple[int, float]:
        for asked in processes:
            asked.send(seconds)
        told = [asked.recv() for asked in processes]
        # Speeds add up, whatever each takes to end.
        return round(sum(steps / took for steps, took in told) * seconds), seconds

    return play_for


def cases_of(tables: int, seed: int, processes: list[Connection]) -> list[Case]:
    def case(name: str, start: Callable[[], Measure], one_core: bool) -> Case:
        return Case(f"{name}, {tables:,} tables", name, "batch", start, one_core=one_core)

    return [
        case("one thread", lambda: playing(tables, 1, seed), True),
        case("two threads", lambda: playing(tables, 2, seed), False),
        case("two processes", lambda: playing_by(processes), False),
        case("nothing on two threads", handing_over, False),
    ]


def show(bar: Progress, task: TaskID, what: str, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


def main(args: Args) -> None:
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("benchmarks/threads.py needs two cores, and a system that binds to them")
    cores = sorted(os.sched_getaffinity(0))[:2]
    table = Table("", "million plays/s", "times one thread", "min … max", box=box.MARKDOWN)
    with Progress(console=Console(stderr=True), transient=True) as bar, ExitStack() as stack:
        for tables in args.tables:
            task = bar.add_task(f"{tables:,} tables", total=None)
            processes = [
                stack.enter_context(process(core, tables, args.seed + core)) for core in cores
            ]
            found, failed = measure_rounds(
                cases_of(tables, args.seed, processes),
                args.rounds,
                args.seconds,
                partial(show, bar, task),
            )
            assert not failed, failed
            *played, nothing = found
            for series in played:
                times = ratio_within_rounds(series.rates, found[0].rates)
                speed = Spread.of(series.rates).median / 1e6
                spread = f"{times.low:.2f} … {times.high:.2f}"
                table.add_row(series.case.name, f"{speed:.1f}", f"{times.median:.2f}", spread)
            call = Spread.of([1e6 / rate for rate in nothing.rates])
            spread = f"{call.low:.1f} … {call.high:.1f} µs"
            table.add_row(nothing.case.name, "", f"{call.median:.1f} µs a call", spread)
    Console(width=100).print(table)


if __name__ == "__main__":
    main(tyro.cli(Args))

"""How long the solver takes: whole deals of a game, one after the other on one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from valety_env.arena import versions
from valety_env.bench.machine import describe_machine, one_core
from valety_env.bench.measure import Progress
from valety_env.engine import STATE, start_match
from valety_env.episode import parse_seed
from valety_env.rules import parse_game
from valety_env.solver import Solver

# Seconds between words of how far it is.
_PAUSE = 0.5


@dataclass(frozen=True)
class Times:
    """Of one question, asked of every deal.

    Attributes:
        ms: milliseconds, float64 (deals,).
        nodes: positions that the search looked at, int64 (deals,).
    """

    ms: np.ndarray
    nodes: np.ndarray

    def to_dict(self) -> dict[str, float]:
        """Return means and percentiles."""
        return {
            "mean_ms": float(self.ms.mean()),
            "p50_ms": float(np.percentile(self.ms, 50)),
            "p99_ms": float(np.percentile(self.ms, 99)),
            "max_ms": float(self.ms.max()),
            "nodes_mean": float(self.nodes.mean()),
        }


@dataclass(frozen=True)
class SolverReport:
    """What was found.

    Attributes:
        settings: of the run.
        value: the value of the deal.
        every_card: the value of every card of the first lead.
    """

    settings: dict[str, Any]
    value: Times
    every_card: Times

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON values: at the top what the deal's value takes."""
        return {
            "deals": len(self.value.ms),
            **self.value.to_dict(),
            "every_card": self.every_card.to_dict(),
            "settings": self.settings,
            "machine": describe_machine(),
            "versions": versions(),
        }


@dataclass(frozen=True)
class SolverPlan:
    """A run whose options have been checked.

    Attributes:
        settings: as they were given.
        solver: what is measured.
        states: the deals, `STATE` (deals,).
    """

    settings: dict[str, Any]
    solver: Solver
    states: np.ndarray

    def run(self, progress: Progress | None = None) -> SolverReport:
        """Solve all deals twice: their values, then the values of all cards."""
        solver, states = self.solver, self.states
        with one_core():
            value = _timed(solver, solver.best, states, "deals", progress)
            every_card = _timed(solver, solver.values, states, "deals, every card", progress)
        return SolverReport(self.settings, value, every_card)


def plan_solver_bench(game: str, deals: int, seed: int, memory: int) -> SolverPlan:
    """Check what is asked for.

    Args:
        game: a game of two in which tricks score, with its options.
        deals: how many, at least 1.
        seed: of the deals.
        memory: bytes of the solver's table.

    Raises:
        ValueError: for a game that can't be solved, or a number that is out of range.
    """
    if deals < 1:
        raise ValueError(f"deals={deals}: it must be at least 1")
    rules = parse_game(game)[1]
    solver = Solver(rules, memory=memory)
    states = np.zeros(deals, STATE)
    key = np.uint64(parse_seed(seed))
    for i in range(deals):
        start_match(rules.record, states[i], key, i)
    return SolverPlan({"game": game, "seed": seed, "memory": solver.memory}, solver, states)


def _timed(
    solver: Solver,
    ask: Callable[[np.ndarray], np.ndarray],
    states: np.ndarray,
    what: str,
    progress: Progress | None,
) -> Times:
    """Ask of one table after another, the first once more before: it compiles."""
    ask(states[:1])
    ms, nodes = np.empty(len(states)), np.empty(len(states), np.int64)
    said = time.perf_counter()
    for i in range(len(states)):
        before = solver.nodes
        start = time.perf_counter()
        ask(states[i : i + 1])
        now = time.perf_counter()
        ms[i], nodes[i] = 1000 * (now - start), solver.nodes - before
        if progress is not None and now - said > _PAUSE:
            said = now
            progress(what, i + 1, len(states))
    return Times(ms, nodes)


def print_solver_report(report: SolverReport, console: Console) -> None:
    """Print a line a question, and what is needed to ask it again."""
    table = Table(box=box.SIMPLE_HEAD)
    headings = ("of a deal", "mean ms", "median", "99th percentile", "most", "positions", "ns each")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for name, times in (("value", report.value), ("every card", report.every_card)):
        told = times.to_dict()
        milliseconds = [told[key] for key in ("mean_ms", "p50_ms", "p99_ms", "max_ms")]
        each = 1e6 * told["mean_ms"] / told["nodes_mean"]
        shown = [f"{ms:.2f}" for ms in milliseconds]
        table.add_row(name, *shown, f"{told['nodes_mean']:,.0f}", f"{each:.0f}")
    console.print(table)
    machine = describe_machine()
    told_settings = ", ".join(f"{key} {value}" for key, value in report.settings.items())
    console.print(f"{len(report.value.ms)} deals, {told_settings}; one core of {machine['cpu']}")
    console.print(", ".join(f"{name} {version}" for name, version in versions().items()))

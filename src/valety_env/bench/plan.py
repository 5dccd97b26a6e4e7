"""A run of the benchmarks: what is asked for, checked, and then measured."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from valety_env.arena import versions
from valety_env.bench.cases import COPY_ROW, NEAREST, SWEEP_TABLES, own_cases, sweep_cases
from valety_env.bench.machine import describe_machine
from valety_env.bench.measure import (
    Case,
    NotRun,
    Progress,
    Series,
    Spread,
    measure_rounds,
    ratio_within_rounds,
)
from valety_env.bench.peers import PEERS, Peer, Say, peers_folder, running_peers
from valety_env.bench.startup import Start, measure_starts
from valety_env.episode import parse_seed
from valety_env.vector import SelfPlayEnv


@dataclass(frozen=True)
class Point:
    """What was measured of one interface with so many tables.

    Attributes:
        tables: how many.
        series: the speeds.
        of_bound: how many times the speed of copying a row, measured in the same rounds.
    """

    tables: int
    series: Series
    of_bound: Spread

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "tables": self.tables,
            **self.series.to_dict(),
            "ratio": {"over": COPY_ROW.name, **self.of_bound.to_dict()},
        }


@dataclass(frozen=True)
class Report:
    """What was found.

    Attributes:
        settings: of the run.
        machine: its facts.
        versions: of this package and of what it stands on.
        state_bytes: game → bytes of the state of one table.
        own: our own cases and their bounds.
        peers: those of the peers.
        peer_versions: peer → package → version.
        not_run: what could not be measured.
        starts: of processes, if asked for.
        points: of the sweep over numbers of tables, if asked for.
    """

    settings: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, str]
    state_bytes: dict[str, int]
    own: list[Series] = field(default_factory=list)
    peers: list[Series] = field(default_factory=list)
    peer_versions: dict[str, dict[str, str]] = field(default_factory=dict)
    not_run: list[NotRun] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    def ratio(self, series: Series) -> Spread | None:
        """Return how a speed compares with that of its `case.over`, within rounds.

        Of our own, how many times the speed of that it has; of a peer, how many times its speed
        ours has. None if that was not measured.
        """
        others = [other.rates for other in self.own if other.case.name == series.case.over]
        if not others:
            return None
        if series in self.peers:
            return ratio_within_rounds(others[0], series.rates)
        return ratio_within_rounds(series.rates, others[0])

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON values."""

        def rows(found: list[Series], key: str) -> list[dict[str, Any]]:
            told = []
            for series in found:
                row = series.to_dict()
                ratio = self.ratio(series)
                if ratio is not None:
                    row[key] = {"over": series.case.over, **ratio.to_dict()}
                told.append(row)
            return told

        return {
            "settings": self.settings,
            "machine": self.machine,
            "versions": self.versions,
            "state_bytes": self.state_bytes,
            "results": rows(self.own, "ratio"),
            "peers": rows(self.peers, "ours_over_peer"),
            "peer_versions": self.peer_versions,
            "not_run": [{"name": one.name, "why": one.why} for one in self.not_run],
            "startup": [start.to_dict() for start in self.starts],
            "sweep": [point.to_dict() for point in self.points],
        }


@dataclass(frozen=True)
class BenchPlan:
    """A run whose options have been checked; `run` measures.

    Attributes:
        seconds: of one measurement, about.
        rounds: measurements of each.
        tables: where there are many.
        seed: of the games.
        cases: of our own.
        peers: which.
        startup: whether starts of processes are timed.
        sweep: whether numbers of tables are gone through.
    """

    seconds: float
    rounds: int
    tables: int
    seed: int
    cases: tuple[Case, ...]
    peers: tuple[Peer, ...]
    startup: bool
    sweep: bool

    def run(
        self,
        progress: Progress = lambda what, done, total: None,
        say: Say = lambda line: None,
    ) -> Report:
        """Measure.

        Args:
            progress: told what is being measured.
            say: told, in a line, what takes long.

        Raises:
            StartError: if a process whose start is timed fails.
        """
        report = Report(
            settings={
                "seconds": self.seconds,
                "rounds": self.rounds,
                "tables": self.tables,
                "seed": self.seed,
            },
            machine=describe_machine(),
            versions=versions(),
            state_bytes={
                game: SelfPlayEnv(game).states.itemsize for game in ("valety", "polignac")
            },
        )
        with contextlib.ExitStack() as stack:
            cases = list(self.cases)
            if self.peers:
                running = stack.enter_context(
                    running_peers(self.peers, peers_folder(), self.seed, say)
                )
                cases += running.cases
                report.peer_versions.update(running.versions)
                report.not_run.extend(running.not_run)
            measured, failed = measure_rounds(cases, self.rounds, self.seconds, progress)
        own = {case.name for case in self.cases}
        for series in measured:
            (report.own if series.case.name in own else report.peers).append(series)
        report.not_run.extend(failed)
        if self.startup:
            report.starts.extend(measure_starts(self.rounds, progress))
        if self.sweep:
            report.points.extend(self._sweep(progress))
        return report

    def _sweep(self, progress: Progress) -> list[Point]:
        """Measure every interface with every number of tables.

        One at a time, for a million tables fill gigabytes; beside each the bound, in turn.
        """
        wanted = [
            (tables, case) for tables in SWEEP_TABLES for case in sweep_cases(tables, self.seed)
        ]
        points = []
        for number, (tables, case) in enumerate(wanted):
            progress("going through numbers of tables", number, len(wanted))
            rows, series = measure_rounds([COPY_ROW, case], self.rounds, self.seconds)[0]
            ratio = ratio_within_rounds(series.rates, rows.rates)
            points.append(Point(tables, series, ratio))
        return points


def plan_bench(
    *,
    seconds: float = 1.0,
    rounds: int = 5,
    tables: int = 4096,
    seed: int = 0,
    only: Sequence[str] | None = None,
    peers: Sequence[str] | None = None,
    startup: bool = False,
    sweep: bool = False,
) -> BenchPlan:
    """Check what is asked for.

    Args:
        seconds: of one measurement, more than 0.
        rounds: at least 1.
        tables: at least 1.
        seed: 0…2^64−1.
        only: names of our own cases, `*` for any letters; None: all. Those that peers are compared
            with are measured in any case if there are peers.
        peers: names of `PEERS`; empty: all; None: none.
        startup: time the starts of processes too.
        sweep: go through numbers of tables too.

    Raises:
        ValueError: if one of them is impossible.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds={seconds:g}: it must be more than 0")
    for name, value in (("rounds", rounds), ("tables", tables)):
        if value < 1:
            raise ValueError(f"{name}={value}: it must be a whole number of at least 1")
    seed = parse_seed(seed)
    cases = own_cases(tables, seed)
    known = [case.name for case in cases]
    wanted = set(known)
    if only is not None:
        wanted = set(NEAREST.values()) if peers is not None else set()
        for pattern in only:
            matching = fnmatch.filter(known, pattern)
            if not matching:
                raise ValueError(f"only={pattern}: no such case; the cases are {', '.join(known)}")
            wanted.update(matching)
    for name in peers or ():
        if name not in PEERS:
            raise ValueError(f"peers={name}: no such peer; the peers are {', '.join(PEERS)}")
    chosen = () if peers is None else tuple(dict.fromkeys(peers)) or tuple(PEERS)
    return BenchPlan(
        seconds=seconds,
        rounds=rounds,
        tables=tables,
        seed=seed,
        cases=tuple(case for case in cases if case.name in wanted),
        peers=tuple(PEERS[name] for name in chosen),
        startup=startup,
        sweep=sweep,
    )

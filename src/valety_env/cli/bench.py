"""`valety-env bench`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, ClassVar, Literal

import tyro

from valety_env.bench import plan_bench, print_report
from valety_env.bench.solver import plan_solver_bench, print_solver_report
from valety_env.cli.console import Bar, check_writable, err, input_errors, out, say, write_json


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure how fast the environments are here, and their peers, or how fast the solver is.

    Random legal play on every interface, all counted. The cases take turns, round after round, and
    ratios are taken within a round: compare those, not speeds of different runs or machines.
    Each peer is installed with pip into a virtual environment of its own in the user's cache
    folder (VALETY_ENV_CACHE_DIR names another): 2.3 GB in all, half of it EnvPool, once.

    Examples:
      valety-env bench
      valety-env bench --only 'batch-*' copy-row --rounds 9
      valety-env bench --peers --json out.json
      valety-env bench --only aec-valety --peers pettingzoo rlcard
      valety-env bench --startup --sweep --rounds 3
      valety-env bench solver --deals 1000 --json solver.json
    """

    name: ClassVar[str] = "bench"

    what: Annotated[Literal["environments", "solver"], tyro.conf.Positional] = "environments"
    """What is measured. Of the solver: whole deals, one after the other on one core; it heeds
    --deals, --game, --memory, --seed and --json alone."""
    deals: Annotated[int, tyro.conf.arg(metavar="N")] = 1000
    """Deals that are solved."""
    game: Annotated[str, tyro.conf.arg(metavar="GAME[,OPTION=VALUE...]")] = "valety"
    """Whose deals."""
    memory: Annotated[int, tyro.conf.arg(metavar="BYTES")] = 1 << 22
    """Of the solver's table."""
    seconds: Annotated[float, tyro.conf.arg(metavar="S")] = 1.0
    """How long one measurement lasts, about."""
    rounds: Annotated[int, tyro.conf.arg(metavar="N")] = 5
    """Measurements of each, in turn."""
    tables: Annotated[int, tyro.conf.arg(metavar="N")] = 4096
    """Tables of the environments that have many."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """Of the games, 0...2^64-1."""
    only: Annotated[
        tuple[str, ...] | None,
        tyro.conf.arg(metavar="CASE [CASE ...]", help_behavior_hint="(default: all)"),
    ] = None
    """Measure these cases alone; * stands for any letters."""
    peers: Annotated[
        tuple[str, ...] | None,
        tyro.conf.arg(metavar="[PEER ...]", help_behavior_hint="(default: none)"),
    ] = None
    """Measure other libraries in turn with ours: openspiel, pgx, rlcard, pettingzoo, envpool,
    pufferlib; all if none is named."""
    startup: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Time imports and first steps of new processes too, with compiled kernels and without."""
    sweep: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Measure every interface with 1 to 1,000,000 tables too: it takes 10 GB of memory."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as JSON; with - they are all that standard output gets."""

    def run(self) -> int:
        """Measure and report; returns the exit code."""
        if self.what == "solver":
            return self._run_solver()
        with input_errors():
            plan = plan_bench(
                seconds=self.seconds,
                rounds=self.rounds,
                tables=self.tables,
                seed=self.seed,
                only=self.only,
                peers=self.peers,
                startup=self.startup,
                sweep=self.sweep,
            )
            check_writable(self.json)
        with Bar() as bar:
            report = plan.run(bar.update, lambda line: say(err(), line))
        console = err() if self.json == "-" else out()
        print_report(report, console)
        if self.json is not None:
            write_json(report.to_dict(), self.json)
        return 0

    def _run_solver(self) -> int:
        with input_errors():
            check_writable(self.json)
            plan = plan_solver_bench(self.game, self.deals, self.seed, self.memory)
        with Bar() as bar:
            report = plan.run(bar.update)
        console = err() if self.json == "-" else out()
        print_solver_report(report, console)
        if self.json is not None:
            write_json(report.to_dict(), self.json)
        return 0

"""`valety-env solve`."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated, ClassVar

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from valety_env.cli.console import (
    Bar,
    InputError,
    check_writable,
    err,
    input_errors,
    out,
    say,
    write_json,
)
from valety_env.solver.texts import Solution, solve_texts


@dataclasses.dataclass(frozen=True)
class Solve:
    """Say what each card of a position leads to, if both players see all cards and play their best.

    The value of a card is the difference of deal points at the end of the deal, own minus the
    other's. The game must have two players and score tricks, as Valety does. docs/notation.md says
    how positions are written.

    Examples:
      valety-env solve hands=JS,AH/QS,QH turn=1 trump=H
      valety-env solve valety,jack_penalties=0+0+0+0 hands=JS,2C/QS,AC turn=0 turned=4D
      valety-env solve - --json values.json < positions.txt
    """

    name: ClassVar[str] = "solve"

    position: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="POSITION", help_behavior_hint="(required)"),
    ]
    """The position: the game (valety if it is left out), then KEY=VALUE ...; or -: standard input,
    a position a line."""
    threads: int = 1
    """How many threads share the positions."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as JSON; with - they are all that standard output gets."""

    def run(self) -> int:
        """Solve and report; returns the exit code."""
        with input_errors():
            check_writable(self.json)
            if self.position == ("-",):
                lines = [(n, line) for n, line in enumerate(sys.stdin, 1) if line.strip()]
            else:
                lines = [(0, " ".join(self.position))] if self.position else []
            if not lines:
                raise InputError("no position is given")
            with Bar() as bar:
                found = solve_texts(
                    [line for _, line in lines],
                    self.threads,
                    lambda done, total: bar.update("positions", done, total),
                    [f"line {number}" if number else "" for number, _ in lines],
                )
        console = err() if self.json == "-" else out()
        for solution in found:
            print_solution(solution, console)
        if self.json is not None:
            write_json({"positions": [solution.to_dict() for solution in found]}, self.json)
        return 0


def print_solution(solution: Solution, console: Console) -> None:
    """Print the values of a position's cards."""
    say(console, solution.position)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(f"player_{solution.seat}")
    table.add_column("difference of deal points", justify="right")
    best = max(solution.values.values())
    for card, value in solution.values.items():
        mark = "  best" if value == best else f"  {value - best:+d}"
        table.add_row(card, f"{value:+d}{mark:>8}")
    console.print(table)

"""`valety-env annotate`."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar

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
from valety_env.notation import record_from_text
from valety_env.solver.annotations import Annotation, annotate_all


@dataclasses.dataclass(frozen=True)
class Annotate:
    """Go through a record and say at each play what the best card was, with all cards known.

    What a play cost is the difference of deal points that the best card would have kept. A player
    does not see all cards: a play that cost something need not have been a mistake.

    Examples:
      valety-env annotate game.json
      valety-env annotate game.txt --only-costly
      valety-env annotate - --json - < game.json
    """

    name: ClassVar[str] = "annotate"

    record: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECORD")]
    """The record's file, as JSON or as text, or -: standard input."""
    only_costly: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Show only plays that cost something."""
    threads: int = 1
    """How many threads share the plays."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as JSON; with - they are all that standard output gets."""

    def run(self) -> int:
        """Annotate and report; returns the exit code."""
        with input_errors():
            check_writable(self.json)
            with Bar() as bar:
                (annotations,) = annotate_all(
                    [read_file(self.record)],
                    self.threads,
                    lambda done, total: bar.update("plays", done, total),
                )
        console = err() if self.json == "-" else out()
        shown = [a for a in annotations if a.cost or not self.only_costly]
        print_annotations(shown, console)
        print_costs(annotations, console)
        if self.json is not None:
            write_json({"plays": [a.to_dict() for a in annotations]}, self.json)
        return 0


def read_file(name: str) -> dict[str, Any]:
    """Return the record in a file, not yet checked.

    Raises:
        InputError: if it is neither JSON nor a record as text.
    """
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    if not text.lstrip().startswith("{"):
        return record_from_text(text)
    try:
        found: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: {error}") from None
    return found


def print_annotations(annotations: list[Annotation], console: Console) -> None:
    """Print a line a play, deal by deal."""
    for deal in sorted({a.deal for a in annotations}):
        table = Table(title=f"deal {deal}", title_justify="left", box=box.SIMPLE_HEAD)
        for heading in ("play", "player", "card"):
            table.add_column(heading)
        table.add_column("value", justify="right")
        table.add_column("cost", justify="right")
        table.add_column("better")
        for a in annotations:
            if a.deal == deal:
                cost = str(a.cost) if a.cost else ""
                better = " ".join(a.best) if a.cost else ""
                row = (str(a.play), f"player_{a.seat}", a.card, f"{a.value:+d}", cost, better)
                table.add_row(*row)
        console.print(table)


def print_costs(annotations: list[Annotation], console: Console) -> None:
    """Print what each player's plays cost in all."""
    for seat in sorted({a.seat for a in annotations}):
        mine = [a.cost for a in annotations if a.seat == seat]
        costly = sum(cost > 0 for cost in mine)
        say(
            console,
            f"player_{seat}: {costly} of {len(mine)} plays cost something, {sum(mine)} in all",
        )

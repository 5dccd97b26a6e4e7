"""`valety-env solve`."""

from __future__ import annotations

import dataclasses
import sys
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from valety_env.cards import card_name
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
from valety_env.engine import PLAYS
from valety_env.notation import position_from_text, position_to_text
from valety_env.rules import Rules
from valety_env.solver import NO_VALUE, Solver


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
            given = [
                read_position(line, f"line {number}: " if number else "") for number, line in lines
            ]
        console = err() if self.json == "-" else out()
        found = []
        with Bar() as bar:
            for number, (rules, state) in enumerate(given, 1):
                found.append(solved(rules, state))
                bar.update("positions", number, len(given))
        for told in found:
            print_solved(told, console)
        if self.json is not None:
            write_json({"positions": found}, self.json)
        return 0


# Many positions of the same rules share one.
solver_of = lru_cache(maxsize=8)(Solver)


def read_position(text: str, place: str = "") -> tuple[Rules, np.ndarray]:
    """Return the rules and the state of a position.

    Raises:
        InputError: if it is no position, or not of a game that can be solved.
    """
    try:
        rules, state = position_from_text(text)
        solver_of(rules)
    except ValueError as error:
        raise InputError(f"{place}{error}") from None
    if state[0].phase != PLAYS:
        raise InputError(f"{place}the deal is over: there is nothing to play")
    return rules, state


def solved(rules: Rules, state: np.ndarray) -> dict[str, Any]:
    """Return the values of a position's cards as JSON values, the best first."""
    values = solver_of(rules).values(state)[0]
    cards = [card for card in range(len(values)) if values[card] != NO_VALUE]
    cards.sort(key=lambda card: -int(values[card]))
    return {
        "position": position_to_text(rules, state),
        "seat": int(state[0].turn),
        "cards": [
            {"card": card_name(card, rules.rank_order), "value": int(values[card])}
            for card in cards
        ],
    }


def print_solved(told: dict[str, Any], console: Console) -> None:
    """Print what `solved` returns."""
    say(console, told["position"])
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(f"player_{told['seat']}")
    table.add_column("difference of deal points", justify="right")
    best = told["cards"][0]["value"]
    for card in told["cards"]:
        mark = "  best" if card["value"] == best else f"  {card['value'] - best:+d}"
        table.add_row(card["card"], f"{card['value']:+d}{mark:>8}")
    console.print(table)

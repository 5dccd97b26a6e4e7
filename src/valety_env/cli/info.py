"""`valety-env info`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, ClassVar

import tyro
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from valety_env._cache import cache_folder
from valety_env.agents import agent_names
from valety_env.arena import versions
from valety_env.cards import SUIT_SYMBOLS
from valety_env.cli.console import (
    InputError,
    check_writable,
    err,
    input_errors,
    out,
    say,
    write_json,
)
from valety_env.observations import ENCODERS, make_encoder
from valety_env.rules import PRESETS, Rules, parse_game


@dataclasses.dataclass(frozen=True)
class Info:
    """Say what is here: versions, games, agents, encoders, where compiled kernels are kept.

    Examples:
      valety-env info
      valety-env info --game polignac,num_players=5
      valety-env info --game polignac --layout flat_v0
    """

    name: ClassVar[str] = "info"

    game: Annotated[
        str | None,
        tyro.conf.arg(metavar="GAME[,OPTION=VALUE...]", help_behavior_hint="(default: all)"),
    ] = None
    """Show all rules of this game."""
    layout: Annotated[
        str | None, tyro.conf.arg(metavar="ENCODER", help_behavior_hint="(default: none)")
    ] = None
    """Show what each entry of this encoder's observations means, in Valety or the game given."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write all of it as JSON; with - it is all that standard output gets."""

    def run(self) -> int:
        """Print; returns the exit code."""
        with input_errors():
            check_writable(self.json)
            games = {
                game: parse_game(game)[1]
                for game in (PRESETS if self.game is None else [self.game])
            }
            layout = None
            if self.layout is not None:
                if self.layout not in ENCODERS:
                    known = ", ".join(ENCODERS)
                    raise InputError(f"--layout {self.layout}: the encoders are {known}")
                layout = make_encoder(self.layout, parse_game(self.game or "valety")[1]).layout
        console = err() if self.json == "-" else out()
        if layout is not None:
            say(console, layout.table())
        elif self.game is not None:
            console.print(_rules_table(self.game, games[self.game]))
        else:
            _print_overview(console, games)
        if self.json is not None:
            write_json(_overview(games), self.json)
        return 0


def _overview(games: dict[str, Rules]) -> dict[str, Any]:
    """Return what `info` knows as JSON values."""
    return {
        "versions": versions(),
        "games": {name: rules.to_dict() for name, rules in games.items()},
        "agents": agent_names(),
        "encoders": list(ENCODERS),
        "kernels": str(cache_folder()),
    }


def _print_overview(console: Console, games: dict[str, Rules]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("game", "players", "cards", "a hand", "trump", f"J{SUIT_SYMBOLS}", "match"):
        table.add_column(heading, no_wrap=True)
    for name, rules in games.items():
        table.add_row(name, *_short(rules))
    console.print(table)
    for title, text in (
        ("agents", ", ".join(agent_names())),
        ("encoders", ", ".join(ENCODERS)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions().items())),
        ("compiled kernels", str(cache_folder())),
    ):
        say(console, f"{title}: {text}")


def _short(rules: Rules) -> list[str]:
    """Return the rules of a game in a few words each."""
    ends = (
        f"at {rules.target}"
        if rules.target is not None
        else f"at {rules.loss_limit}"
        if rules.loss_limit is not None
        else f"{rules.num_deals} deals"
    )
    if rules.max_deals is not None:
        ends = f"{rules.max_deals} deal" + ("s" if rules.max_deals > 1 else "")
    return [
        str(rules.num_players),
        str(len(rules.pack)),
        str(rules.hand_size),
        rules.trump.replace("_", " "),
        " ".join(map(str, rules.jack_penalties)),
        ends,
    ]


def _rules_table(game: str, rules: Rules) -> Table:
    """Return all options of a game's rules with their values."""
    table = Table(title=Text(game, style="bold"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("option")
    table.add_column("value")
    for name, value in rules.to_dict().items():
        shown = " ".join(map(str, value)) if isinstance(value, list) else str(value).lower()
        if name == "rank_order":
            shown = str(value)
        table.add_row(name, Text(shown))
    return table

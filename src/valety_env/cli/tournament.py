"""`valety-env tournament`."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import chain
from typing import Annotated, ClassVar

import tyro

from valety_env.agents import needs_extra
from valety_env.agents.files import replacing
from valety_env.arena.reports.markdown import make_markdown
from valety_env.arena.reports.terminal import print_standings
from valety_env.arena.tournament import (
    Standings,
    Store,
    checkpoints_in,
    cores,
    plan_tournament,
    processes,
    read_standings,
)
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


@dataclasses.dataclass(frozen=True)
class Tournament:
    """Let agents meet each other, all against all, and say who is stronger.

    Every game is kept in one file as soon as it is played: a run that was stopped, or killed, goes
    on with the same command, and agents that join later play without the others playing again.
    Deals are duplicate, and the same for everybody.

    Examples:
      valety-env tournament random heuristic pimc,worlds=10 --deals 2000 --report out.html
      valety-env tournament random heuristic --curves runs/a runs/b --report out.html
      valety-env tournament random heuristic --checkpoints runs/a --until 0.05
      valety-env tournament checkpoint:runs/c/last --add --report out.html
      valety-env tournament random heuristic --game polignac,num_players=5 --matches 200
      valety-env tournament --config configs/leaderboard/valety.toml
      valety-env tournament --results tournament.sqlite --behaviour
    """

    name: ClassVar[str] = "tournament"

    agents: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[AGENT [AGENT ...]]")
    ] = ()
    """Who takes part: NAME[:TARGET][,KEY=VALUE...] each, as for evaluate. None: nothing is
    played, and all in the results file are told of."""
    checkpoints: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FOLDER [FOLDER ...]")] = ()
    """Folders whose checkpoints all take part."""
    curves: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FOLDER [FOLDER ...]")] = ()
    """Folders of runs whose checkpoints meet the other agents alone, for learning curves."""
    deals: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: 1000)")
    ] = None
    """Duplicate deals of each pairing; with --until the most, a million unless told."""
    until: Annotated[
        float | None, tyro.conf.arg(metavar="POINTS", help_behavior_hint="(default: none)")
    ] = None
    """Play each pairing until the 95% interval of its points is this much to either side."""
    matches: Annotated[int, tyro.conf.arg(metavar="M")] = 0
    """Duplicate matches of each pairing."""
    mixed: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """With more than two players: also every set of different agents at a table."""
    game: Annotated[
        str | None,
        tyro.conf.arg(metavar="GAME[,OPTION=VALUE...]", help_behavior_hint="(default: valety)"),
    ] = None
    """The game and its rule options."""
    seed: Annotated[
        int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: a new one, told)")
    ] = None
    """The same seed plays the same again, 0...2^64-1; the results file remembers it."""
    config: Annotated[
        str | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")
    ] = None
    """A TOML file with options, agents among them; flags win over it."""
    results: Annotated[str, tyro.conf.arg(metavar="FILE")] = "tournament.sqlite"
    """The file in which every game is kept."""
    add: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """The agents join those who are in the results file already."""
    processes: Annotated[int, tyro.conf.arg(metavar="P", help_behavior_hint="(default: cores)")] = 0
    """How many play at the same time; no result depends on it."""
    ray: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Let a Ray cluster play: the one that RAY_ADDRESS names or that runs here, else a new one."""
    report: Annotated[
        str | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")
    ] = None
    """Write an HTML page with all results, pictures and how everybody plays."""
    markdown: Annotated[
        str | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as Markdown."""
    behaviour: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Tell how everybody plays: how often they trump, capture jacks, ..."""
    trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Load files that can run code when they are loaded: those of sb3 and rllib."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as JSON; with - they are all that standard output gets."""

    def run(self) -> int:
        """Play what is missing and report; returns the exit code."""
        console = err() if self.json == "-" else out()
        with input_errors():
            self._check()
            players = self._players()
            write_page = self._page_writer()
            names = [*self.agents, *chain.from_iterable(map(checkpoints_in, self.checkpoints))]
            runs = list(chain.from_iterable(map(checkpoints_in, self.curves)))
            tournament = None
            if names or runs:
                tournament = plan_tournament(
                    self.results,
                    names,
                    game=self.game,
                    seed=self.seed,
                    curves=runs,
                    add=self.add,
                    deals=self.deals,
                    until=self.until,
                    matches=self.matches,
                    mixed=self.mixed,
                    trust=self.trust,
                    skipped=lambda text: say(err(), text),
                )
            store = tournament.store if tournament else Store(self.results)
        with store, Bar() as bar:
            if tournament is not None:
                command = self._again(tournament.seed)
                executor, at_once = players()
                try:
                    with executor:
                        tournament.run(executor, at_once, command, bar.update)
                except KeyboardInterrupt:
                    say(err(), f"What was played is in {self.results}; the same command goes on.")
                    raise
            with input_errors():
                standings = read_standings(
                    store,
                    None if tournament is None or self.add else list(tournament.entrants),
                    behaviour=self.behaviour or any((self.report, self.markdown, self.json)),
                    threads=cores(),
                    progress=bar.update,
                )
        print_standings(standings, console, self.behaviour)
        if write_page is not None and self.report is not None:
            write_page(standings, self.report)
            say(console, f"Report: {self.report}")
        if self.markdown is not None:
            with replacing(self.markdown) as temporary:
                temporary.write_text(make_markdown(standings), encoding="utf-8")
            say(console, f"Report: {self.markdown}")
        say(console, f"Again, or for more: {self._again(standings.seed)}")
        if self.json is not None:
            write_json(standings.to_dict(), self.json)
        return 0

    def _check(self) -> None:
        """Refuse what can't be before anything is read."""
        if self.processes < 0:
            raise InputError(f"--processes {self.processes}: it must be at least 0")
        if self.ray and self.processes:
            raise InputError("--ray and --processes: give one of them")
        check_writable(self.json)
        check_writable(self.report, "--report")
        check_writable(self.markdown, "--markdown")
        check_writable(self.results, "--results")

    def _players(self) -> Callable[[], tuple[Executor, int]]:
        """Return what makes those who play, and tells how many they are."""
        if self.ray:
            with needs_extra("--ray", "rllib", ("ray",)):
                from valety_env.integrations.ray_cluster import RayExecutor

            def on_cluster() -> tuple[Executor, int]:
                executor = RayExecutor()
                return executor, executor.cores

            return on_cluster
        number = self.processes or cores()
        return lambda: (processes(number), number)

    def _page_writer(self) -> Callable[[Standings, str], None] | None:
        """Return what writes the report; what it needs may be missing, which is told at once."""
        if self.report is None:
            return None
        with needs_extra("--report", "report", ("jinja2", "matplotlib")):
            from valety_env.arena.reports.page import write_page

        return write_page

    def _again(self, seed: int) -> str:
        """Return the command that does the same, or goes on."""
        words = ["valety-env", "tournament", *self.agents]
        for name in ("checkpoints", "curves"):
            given = getattr(self, name)
            words += [f"--{name}", *given] if given else []
        for name in ("deals", "until", "matches", "game", "results"):
            value = getattr(self, name)
            words += [f"--{name}", str(value)] if value else []
        for name in ("mixed", "add", "trust"):
            words += [f"--{name}"] if getattr(self, name) else []
        return shlex.join([*words, "--seed", str(seed)])

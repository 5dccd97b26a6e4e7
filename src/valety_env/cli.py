"""The command line, `valety-env COMMAND …`.

Results go to standard output, all else to standard error. Bad input is one line and exit code 2, a
run that fails one line and 1.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import inspect
import io
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Union

import tyro
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from valety_env._cache import cache_folder
from valety_env.agents import AgentError, agent_names, needs_extra, parse_agent_name
from valety_env.arena import plan_evaluation, versions
from valety_env.arena.report import print_evaluation
from valety_env.bench import plan_bench, print_report
from valety_env.bench.startup import StartError
from valety_env.cards import SUIT_SYMBOLS
from valety_env.episode import ActionTypeError, IllegalActionError
from valety_env.observations import ENCODERS, make_encoder
from valety_env.rules import PRESETS, Rules, parse_game

PROGRAM = "valety-env"
BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130
# What the terminal's encoding lacks, in letters that every one has.
_PLAIN = {
    "…": "...",
    "×": "x",
    "÷": "/",
    "–": "-",
    "−": "-",
    "♠": "S",
    "♣": "C",
    "♦": "D",
    "♥": "H",
}


class InputError(ValueError):
    """What the user gave is wrong; the message says what is allowed."""


def _out() -> Console:
    return Console(highlight=False)


def _err() -> Console:
    return Console(stderr=True, highlight=False)


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Say how strong an agent is: play it against others, with 95% intervals.

    Every deal and every match is played once per rotation of the seats: the agent sits at each
    seat in turn, the opponent at all others, and the cards are the same.

    Examples:
      valety-env evaluate heuristic --against random --deals 2000
      valety-env evaluate checkpoint:runs/a/last --against heuristic --matches 500
      valety-env evaluate onnx:model.onnx,encoder=flat_v0 --against heuristic
      valety-env evaluate sb3:model.zip --trust --json out.json
      valety-env evaluate heuristic --game polignac,num_players=5
    """

    name: ClassVar[str] = "evaluate"

    agent: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AGENT")]
    """The agent: NAME[:TARGET][,KEY=VALUE...], such as heuristic, checkpoint:runs/a/last or
    onnx:model.onnx; valety-env info lists them."""
    against: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AGENT [AGENT ...]")] = (
        "random",
        "heuristic",
    )
    """The opponents, one after another."""
    deals: Annotated[int, tyro.conf.arg(metavar="N")] = 1000
    """Duplicate deals against each."""
    matches: Annotated[int, tyro.conf.arg(metavar="M")] = 0
    """Duplicate matches against each."""
    game: Annotated[str, tyro.conf.arg(metavar="GAME[,OPTION=VALUE...]")] = "valety"
    """The game and its rule options."""
    seed: Annotated[
        int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: a new one, told)")
    ] = None
    """The same seed plays the same again, 0...2^64-1."""
    trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Load files that can run code when they are loaded: those of sb3 and rllib."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as JSON; with - they are all that standard output gets."""

    def run(self) -> int:
        """Play and report; returns the exit code."""
        with _input_errors():
            plan = plan_evaluation(
                self.agent,
                self.against,
                game=self.game,
                deals=self.deals,
                matches=self.matches,
                seed=self.seed,
                trust=self.trust,
            )
            _check_writable(self.json)
        with _Bar() as bar:
            evaluation = plan.run(bar.update)
        console = _err() if self.json == "-" else _out()
        print_evaluation(evaluation, console)
        again = [PROGRAM, "evaluate", self.agent, "--against", *self.against]
        again += ["--deals", str(self.deals), "--matches", str(self.matches)]
        again += ["--game", self.game, "--seed", str(evaluation.seed)]
        again += ["--trust"] if self.trust else []
        _say(console, f"Again: {shlex.join(again)}")
        if self.json is not None:
            _write_json(evaluation.to_dict(), self.json)
        return 0


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure how fast the environments are here, beside what bounds them, and their peers.

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
    """

    name: ClassVar[str] = "bench"

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
        with _input_errors():
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
            _check_writable(self.json)
        with _Bar() as bar:
            report = plan.run(bar.update, lambda line: _say(_err(), line))
        console = _err() if self.json == "-" else _out()
        print_report(report, console)
        if self.json is not None:
            _write_json(report.to_dict(), self.json)
        return 0


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a checkpoint as an ONNX model, with all that evaluate needs to know of it.

    Other programs can run the file; here it plays as onnx:FILE. It reads observations,
    float32 (N, entries), and gives the logits of the actions (N, actions), not masked, then the
    value (N,).

    Examples:
      valety-env export checkpoint:runs/a/last a.onnx
    """

    name: ClassVar[str] = "export"

    checkpoint: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="checkpoint:PATH")]
    """One of our own checkpoints, such as checkpoint:runs/a/last."""
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.onnx")]
    """Where to write."""

    def run(self) -> int:
        """Write; returns the exit code."""
        with _input_errors():
            given = parse_agent_name(self.checkpoint)
            if given.name != "checkpoint" or given.target is None or given.options:
                raise InputError(
                    f"{self.checkpoint}: export takes checkpoint:PATH, without options"
                )
            if not self.file.endswith(".onnx"):
                raise InputError(f"{self.file}: the file's name must end in .onnx")
            _check_writable(self.file, "export")
            with needs_extra("export", "onnx,train", ("onnx", "torch", "safetensors")):
                from valety_env.agents.foreign.onnx import export_onnx

                told = export_onnx(given.target, self.file)
        out = f"{self.file}: {told['game']}, {told['encoder']}"
        if "step" in told:
            out += f", step {told['step']}"
        _say(_out(), out)
        return 0


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
        with _input_errors():
            _check_writable(self.json)
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
        console = _err() if self.json == "-" else _out()
        if layout is not None:
            _say(console, layout.table())
        elif self.game is not None:
            console.print(_rules_table(self.game, games[self.game]))
        else:
            _print_overview(console, games)
        if self.json is not None:
            _write_json(_overview(games), self.json)
        return 0


COMMANDS: tuple[Any, ...] = (Evaluate, Bench, Export, Info)


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
        _say(console, f"{title}: {text}")


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


class _Bar:
    """Progress on standard error of work that takes longer than a moment.

    A terminal gets a bar, anything else a line now and then.
    """

    patience = 1.0
    pause = 15.0

    def __init__(self) -> None:
        self._console = _err()
        self._started = time.monotonic()
        self._said = self._started
        self._bar: Progress | None = None
        self._what = ""
        self._updated = self._since = self._started
        self._task: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, what: str, done: float, total: int) -> None:
        """Show that `done` of `total` of `what` is done."""
        now = time.monotonic()
        if what != self._what:
            # It was begun when what came before it had ended.
            self._what, self._since, self._task = what, self._updated, None
        self._updated = now
        if now - self._started < self.patience:
            return
        rate = done / max(now - self._since, 1e-3)
        if self._console.is_terminal:
            if self._bar is None:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                    TextColumn("{task.fields[rate]:,.1f}/s"),
                    TimeRemainingColumn(),
                    console=self._console,
                    transient=True,
                )
                self._bar.start()
            if self._task is None:
                for old in self._bar.task_ids:
                    self._bar.remove_task(old)
                self._task = self._bar.add_task(what, total=total, rate=0.0)
            self._bar.update(self._task, completed=done, rate=rate)
        elif now - self._said >= self.pause:
            self._said = now
            line = f"{what} {done:.0f}/{total}"
            if rate > 0:
                line += f", {rate:,.1f}/s, about {(total - done) / rate:.0f} s left"
            _say(self._console, line)


def _say(console: Console, text: str) -> None:
    """Print a text as it is, without wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _check_writable(target: str | None, what: str = "--json") -> None:
    """Refuse a file that can't be written before any work is done."""
    if target is None or target == "-":
        return
    path = Path(target)
    folder = path.parent
    if path.is_dir():
        also = ", or -" if what == "--json" else ""
        raise InputError(f"{what} {target}: it is a folder; name a file{also}")
    if not folder.is_dir():
        raise InputError(f"{what} {target}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{what} {target}: it can't be written")


def _write_json(value: dict[str, Any], target: str) -> None:
    text = json.dumps(value, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(target).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _input_errors() -> Iterator[None]:
    """Turn what is raised while input is read and checked into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, ModuleNotFoundError) as error:
        raise InputError(str(error)) from error


def _parse(arguments: Sequence[str]) -> Any:
    """Read the command line.

    Raises:
        InputError: if it is wrong.
        SystemExit: after printing help.
    """
    commands = []
    for command in COMMANDS:
        description = inspect.cleandoc(command.__doc__)
        if list(arguments[:1]) != [command.name]:
            # In the list of commands the first sentence is enough.
            description = description.partition("\n")[0]
        commands.append(
            Annotated[command, tyro.conf.subcommand(command.name, description=description)]
        )
    one_of: Any = Union[tuple(commands)]  # noqa: UP007
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                one_of,
                prog=PROGRAM,
                description="Valety and Polignac: card games for reinforcement learning.",
                args=list(arguments),
            )
    except SystemExit as end:
        if not end.code:
            raise
        command = next((f" {c.name}" for c in COMMANDS if [c.name] == list(arguments[:1])), "")
        told = _first_words(complaint.getvalue())
        raise InputError(f"{told}; see {PROGRAM}{command} --help") from None


def _first_words(complaint: str) -> str:
    """Return a complaint of tyro's, a box of several lines, as one line."""
    parts: list[list[str]] = [[]]
    title = ""
    for line in complaint.splitlines():
        words = line.strip(" │╭╮╰╯─|+")
        if words.strip("-") == "":
            parts.append([])
        elif not title:
            title = words
        else:
            parts[-1].append(words)
    told = [" ".join(part) for part in parts if part] or [title]
    message = told[0].rstrip(".").removesuffix(" (required)")
    if message.startswith("Expected"):
        message = f"{title}: {message}"
    for part in told[1:]:
        if part.startswith("Available"):
            message += f"; {part}"
        elif part.startswith("Perhaps you meant"):
            options = re.findall(r"--[a-z][a-z-]*(?= [^h])", part.split(" in ")[0])
            if options:
                message += f"; perhaps you meant {options[0]}"
    return re.sub(r"invalid literal for int.*?: ('.*?')", r"\1 is no whole number", message)


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream can't encode."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in wrong), error.end


def _make_streams_safe() -> None:
    """Let output to an ASCII terminal lose letters, never crash."""
    codecs.register_error("valety_env_plain", _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="valety_env_plain")


def _complain(message: str) -> None:
    print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; None: those of the process.

    Returns:
        the exit code: 0; 1 if a run failed, 2 for bad input, 130 if interrupted.
    """
    _make_streams_safe()
    try:
        return int(_parse(sys.argv[1:] if arguments is None else arguments).run())
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except InputError as error:
        _complain(str(error))
        return BAD_INPUT
    except (IllegalActionError, ActionTypeError, AgentError, StartError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read the output has seen enough; nothing is left to flush into.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

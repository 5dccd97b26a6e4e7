"""The command line, `valety-env COMMAND …`; a module a command.

Results go to standard output, all else to standard error. Bad input is one line and exit code 2, a
run that fails one line and 1.
"""

from __future__ import annotations

import codecs
import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Union

import tyro

from valety_env.agents import AgentError
from valety_env.arena.tournament import StoreError
from valety_env.bench.startup import StartError
from valety_env.cli.annotate import Annotate
from valety_env.cli.bench import Bench
from valety_env.cli.console import InputError
from valety_env.cli.evaluate import Evaluate
from valety_env.cli.export import Export
from valety_env.cli.info import Info
from valety_env.cli.solve import Solve
from valety_env.cli.tournament import Tournament
from valety_env.episode import ActionTypeError, IllegalActionError
from valety_env.learning.runs import find_config, flags_from_toml

__all__ = ["COMMANDS", "main"]

PROGRAM = "valety-env"
BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130
# What ends a run, and is told in one line.
FAILURES = (IllegalActionError, ActionTypeError, AgentError, StoreError, StartError, OSError)
COMMANDS: tuple[Any, ...] = (Evaluate, Tournament, Solve, Annotate, Bench, Export, Info)
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

# What tyro says of values of a wrong type, and what is said in its place.
_PLAINLY = {
    r"invalid literal for int.*?: ('.*?')": r"\1 is no whole number",
    r"no type matching \{None\}\|INT .*? from \[('.*?')\]": r"\1 is no whole number",
    r"no type matching \{None\}\|FLOAT .*? from \[('.*?')\]": r"\1 is no number",
    r"could not convert string to float: ('.*?')": r"\1 is no number",
}


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
    given = _with_config(list(arguments))
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                one_of,
                prog=PROGRAM,
                description="Valety and Polignac: card games for reinforcement learning.",
                args=given,
            )
    except SystemExit as end:
        if not end.code:
            raise
        command = next((f" {c.name}" for c in COMMANDS if [c.name] == list(arguments[:1])), "")
        told = _first_words(complaint.getvalue())
        raise InputError(f"{told}; see {PROGRAM}{command} --help") from None


def _with_config(arguments: list[str]) -> list[str]:
    """Return arguments with those of the TOML file that `--config` names.

    Raises:
        InputError: if the file can't be read, or for what it says.
    """
    command: Any = next((c for c in COMMANDS if [c.name] == arguments[:1]), None)
    path = find_config(arguments)
    if path is None or not hasattr(command, "config"):
        return arguments
    try:
        flags = flags_from_toml(command, path)
    except ValueError as error:
        raise InputError(f"--config: {error}") from None
    agents: list[str] = []
    others: list[str] = []
    for flag in flags:
        if flag.startswith("--"):
            # What is given beside the file wins over it.
            kept = [] if flag in arguments else others
            if flag == "--agents":
                kept = agents
                continue
            kept.append(flag)
        else:
            kept.append(flag)
    return [*arguments[:1], *agents, *arguments[1:], *others]


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
    for complaint_of_type, plainly in _PLAINLY.items():
        message = re.sub(complaint_of_type, plainly, message)
    return message


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
    except FAILURES as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read the output has seen enough; nothing is left to flush into.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED

"""A training run's options, its folder, and who is told of it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import tyro

Options = TypeVar("Options")


def read_options(
    kind: type[Options], arguments: Sequence[str] | None = None, description: str = ""
) -> Options:
    """Read a script's options: defaults < the TOML file named by `--config` < flags.

    Args:
        kind: a dataclass of simple fields, one of them `config: str | None`.
        arguments: the command line without the program's name; None: that of the process.
        description: what `--help` says before the options.

    Returns:
        the options. A wrong flag, key or value ends the program with a message.
    """
    flags = list(sys.argv[1:] if arguments is None else arguments)
    path = find_config(flags)
    if path is not None:
        try:
            # Later flags win over earlier ones.
            flags = flags_from_toml(kind, path) + flags
        except ValueError as error:
            raise SystemExit(f"--config: {error}") from None
    return tyro.cli(kind, args=flags, description=description)


def find_config(arguments: Sequence[str]) -> str | None:
    """Return the file that `--config` names among arguments, if it does."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    path: str | None = finder.parse_known_args(list(arguments))[0].config
    return path


def flags_from_toml(kind: type, path: str | Path) -> list[str]:
    """Return the values of a TOML file as flags, for tyro to check as it does others.

    Raises:
        ValueError: in one line, if the file cannot be read, or for an unknown key or a value that
            no option can have.
    """
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    known = [f.name for f in dataclasses.fields(kind) if f.name != "config"]
    flags: list[str] = []
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{path}: {name!r} is not an option; they are: {', '.join(known)}")
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, (int, float, str)):
            flags += [f"--{flag}", str(value)]
        elif isinstance(value, list) and not any(isinstance(v, (list, dict)) for v in value):
            flags += [f"--{flag}", *map(str, value)]
        else:
            raise ValueError(f"{path}: {name} must be a number, a text, true, false or a list")
    return flags


def to_toml(options: Any) -> str:
    """Return a dataclass of simple fields as TOML, which `read_options` reads; None is left out."""
    lines = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if value is None or field.name == "config":
            continue
        plain = list(value) if isinstance(value, tuple) else value
        # JSON writes numbers, texts, lists, true and false as TOML does.
        lines.append(f"{field.name} = {json.dumps(plain, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def make_run_folder(runs: str | Path, game: str, exp_name: str, seed: int) -> Path:
    """Make the folder of a new run, `{game}__{exp_name}__{seed}__{time}`.

    Args:
        runs: where runs lie.
        game: as given to `--game`; its options become part of the name.
        exp_name: the experiment's name.
        seed: the run's seed.

    Returns:
        the folder.

    Raises:
        ValueError: if another run of the same names began in the same second.
    """
    plain = [
        "".join(c if c.isalnum() or c in "-_." else "_" for c in name) for name in (game, exp_name)
    ]
    folder = Path(runs) / f"{plain[0]}__{plain[1]}__{seed}__{int(time.time())}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(f"{folder} belongs to another run; try again in a second") from None
    return folder


def import_wandb() -> Any:
    """Return the module of Weights & Biases.

    Raises:
        ValueError: if it is not installed; the message says what to do.
    """
    try:
        import wandb
    except ModuleNotFoundError as error:
        if error.name != "wandb":
            raise
        raise ValueError("--track needs wandb: pip install 'valety-env[track]'") from None
    return wandb


def track_run(folder: Path, options: Any, project: str, entity: str | None) -> Any:
    """Show a run in Weights & Biases: its options, and all that TensorBoard is told from now on.

    The environment variables of Weights & Biases have their usual meaning: with
    `WANDB_MODE=offline` nothing is sent, and nobody is asked to log in.

    Args:
        folder: of the run; its name is the run's. What is kept on disk lies in `wandb/` beside it.
        options: a dataclass.
        project: the project in Weights & Biases.
        entity: the user or team there; None: as Weights & Biases is set up.

    Returns:
        the run, to be ended by `finish()`.

    Raises:
        ValueError: if wandb is not installed.
    """
    return import_wandb().init(
        project=project,
        entity=entity,
        name=folder.name,
        config=vars(options),
        # Not in the folder itself: its copies of TensorBoard's files would be found there, copied
        # again, and so on.
        dir=folder.parent,
        sync_tensorboard=True,
        save_code=True,
    )

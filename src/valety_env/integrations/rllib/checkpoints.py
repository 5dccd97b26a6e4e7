"""Checkpoints of an algorithm that say what was played."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core.rl_module.rl_module import RLModule

from valety_env.agents import Agent
from valety_env.agents.foreign.rllib import METADATA_FILE, play_module
from valety_env.integrations.rllib.environment import TableEnv, make_table


def module_agent(module: RLModule, table: TableEnv, name: str) -> Agent:
    """Return a module as a player of what is played at a table, named `rllib:NAME`."""
    return play_module(module, table.table.rules, table.table.setup.metadata(), name)


def find_algorithm(path: str | Path) -> Path:
    """Return the whole checkpoint that `save_algorithm` left at a path, whenever it was killed.

    Raises:
        ValueError: if there is none.
    """
    path = Path(path).absolute()
    for found in (path, path.with_name(f".{path.name}.old")):
        if (found / METADATA_FILE).is_file():
            return found
    raise ValueError(f"no checkpoint at {path}: it must be a folder with {METADATA_FILE} in it")


def save_algorithm(algorithm: Algorithm, path: str | Path, **more: Any) -> Path:
    """Write an algorithm's checkpoint and what was played; `rllib:PATH` makes its player.

    At any moment there is a whole checkpoint, the old one or the new, which `find_algorithm` finds.

    Args:
        algorithm: of an environment of this package.
        path: the folder; replaced if it exists.
        **more: JSON values that the metadata are to hold too, such as `seed`.

    Returns:
        the folder.
    """
    path = Path(path).absolute()
    new, old = (path.with_name(f".{path.name}.{what}") for what in ("new", "old"))
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
    algorithm.save_to_path(str(new))
    told = make_table(algorithm.config).table.setup.metadata(step=algorithm.iteration, **more)
    (new / METADATA_FILE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    if path.exists():
        path.rename(old)
    new.rename(path)
    shutil.rmtree(old, ignore_errors=True)
    return path

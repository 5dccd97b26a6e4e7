"""`python:MODULE:FUNCTION`: a player that a function of the user's own code makes."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from valety_env.agents.foreign.policy import name_of, one_line
from valety_env.rules import Rules

_THIS = Path(__file__)


def load_python_agent(target: str, rules: Rules, **options: Any) -> Any:
    """Call `FUNCTION(rules, **options)` and return the agent that it makes.

    The module is imported as by `python -m`: the current folder comes first.

    Args:
        target: `MODULE:FUNCTION`; a class will do for a function.
        rules: the rules it will play.
        **options: handed on.

    Returns:
        an object with `act(views, legal, keys)`; if it has no `name`, it gets one.

    Raises:
        ValueError: in one line, if there is no such function or it fails.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise ValueError(f"python:{target}: it must be python:MODULE:FUNCTION")
    place = f"python:{target}"
    here = str(Path.cwd())
    if sys.path[:1] not in ([""], [here]):
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module_name)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name is not None
        if missing and f"{module_name}.".startswith(f"{error.name}."):  # type: ignore[attr-defined]
            raise ValueError(
                f"{place}: there is no module {module_name}, neither in the current folder nor "
                "among the installed packages"
            ) from None
        raise ValueError(f"{place}: importing {module_name} fails: {_what(error)}") from error
    make = found
    for part in attribute.split("."):
        if not hasattr(make, part):
            raise ValueError(f"{place}: {module_name} has no {attribute}")
        make = getattr(make, part)
    if not callable(make):
        raise ValueError(
            f"{place}: {attribute} is of type {type(make).__name__}; it must be a function of the "
            "rules that returns an agent, or a class"
        )
    try:
        agent = make(rules, **options)
    except Exception as error:
        raise ValueError(f"{place}: {attribute} fails: {_what(error)}") from error
    if isinstance(agent, type) or not callable(getattr(agent, "act", None)):
        raise ValueError(
            f"{place}: {attribute} returned {agent!r}; it must be an object with "
            "act(views, legal, keys)"
        )
    if not isinstance(getattr(agent, "name", None), str):
        # If it cannot be given one, its class will do.
        with contextlib.suppress(AttributeError):
            agent.name = name_of("python", target, options)
    return agent


def _what(error: Exception) -> str:
    """Return an error in one line with the place where it was raised."""
    told = f"{type(error).__name__}: {one_line(error)}"
    if isinstance(error, SyntaxError):
        return told
    frames = traceback.extract_tb(error.__traceback__)
    here = Path.cwd()
    for frame in reversed(frames):
        # The user's own mistake, not the line of a library where it came to light.
        file = Path(frame.filename)
        if file.is_relative_to(here) and "site-packages" not in file.parts and file != _THIS:
            return f"{told} ({file.relative_to(here)}, line {frame.lineno})"
    return told

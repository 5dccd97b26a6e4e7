"""Players: the protocol that all of them share, and `make_agent`, which makes one from its name.

A name is `NAME[:TARGET][,KEY=VALUE…]`, as in `random`, `random,general=0` or
`checkpoint:runs/a/last`. The same string names an agent on the command line, in configs and in
reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from valety_env.agents.heuristic import HeuristicAgent
from valety_env.agents.random import RandomAgent
from valety_env.rules import Rules, make_rules

__all__ = [
    "Agent",
    "AgentName",
    "agent_name",
    "agent_names",
    "make_agent",
    "parse_agent_name",
]


@runtime_checkable
class Agent(Protocol):
    """A player without memory: what it does follows from what it is shown and from the keys.

    Attributes:
        name: the string that makes it again with `make_agent`.
    """

    name: str

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables; a choice depends on its own row alone.

        Args:
            views: `VIEW` (N,), each that of the seat to act, taken with history; not changed.
            legal: uint64 (N,), the legal actions of each as a set (bits 0..53), never empty; not
                changed.
            keys: uint64 (N,), the only source of randomness; not changed.

        Returns:
            int64 (N,), a legal action each.
        """
        ...


def agent_name(agent: Agent) -> str:
    """Return the string that makes an agent again, or for a stranger its class."""
    return str(getattr(agent, "name", type(agent).__name__))


class AgentName(NamedTuple):
    """The parts of an agent's name; values are still text."""

    name: str
    target: str | None
    options: dict[str, str]


@dataclass(frozen=True)
class _Kind:
    """How agents of one name are made.

    Attributes:
        make: called with the rules and the options, before them the target if there is one.
        target: what a target is called in messages; None: the agent takes none.
        options: allowed options, each with what reads its text and raises ValueError; None: the
            agent checks them itself.
    """

    make: Callable[..., Agent]
    target: str | None = None
    options: Mapping[str, Callable[[str], Any]] | None = None


def _switch(text: str) -> bool:
    """Read an option that is on or off."""
    if text not in ("0", "1"):
        raise ValueError("allowed are 0 and 1")
    return text == "1"


def _plain_value(text: str) -> bool | int | float | str:
    """Read a value whose type only the agent knows: true, false, a number, else a text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _make_checkpoint(path: str, rules: Rules, **options: Any) -> Agent:
    """Load a trained agent; torch is imported only here."""
    try:
        neural = import_module("valety_env.agents.neural")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("torch", "safetensors"):
            raise
        raise ModuleNotFoundError(
            f"checkpoint:{path} needs {error.name}: pip install 'valety-env[train]'",
            name=error.name,
        ) from error
    agent: Agent = neural.load_checkpoint_agent(path, rules, **options)
    return agent


_KINDS: dict[str, _Kind] = {
    "random": _Kind(RandomAgent, options={"general": _switch}),
    "heuristic": _Kind(HeuristicAgent, options={"general": _switch}),
    "checkpoint": _Kind(_make_checkpoint, target="PATH"),
}


def agent_names() -> list[str]:
    """Return the names that `make_agent` knows: `random`, …, `checkpoint:PATH`."""
    return [f"{name}:{kind.target}" if kind.target else name for name, kind in _KINDS.items()]


def parse_agent_name(text: str) -> AgentName:
    """Split an agent's name into its parts and check them against the agents that exist.

    A comma starts an option only where KEY= follows, so that a path may hold commas.

    Args:
        text: `NAME[:TARGET][,KEY=VALUE…]`, or `NAME:KEY=VALUE,…` for an agent without a target.

    Returns:
        the parts.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    known = ", ".join(agent_names())
    if not isinstance(text, str):
        raise ValueError(f"an agent is named by a string, not {text!r}; the agents are: {known}")
    given = text.strip()
    match = re.match(r"[^:,]*", given)
    name = match.group() if match else ""
    if name not in _KINDS:
        raise ValueError(f"{text!r} names no agent; the agents are: {known}")
    kind = _KINDS[name]
    rest = given[len(name) :]
    parts = re.split(r",(?=[A-Za-z_]\w*=)", rest[1:]) if rest else []
    target = None
    if kind.target:
        target = parts.pop(0) if rest.startswith(":") else ""
        if not target:
            raise ValueError(f"{text!r}: {name} needs {kind.target}, as in {name}:{kind.target}")
    options: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            takes = "" if kind.target else f"{name} takes options alone, and "
            raise ValueError(f"{text!r}: {takes}{part!r} is not KEY=VALUE")
        if key in options:
            raise ValueError(f"{text!r}: {key} is given twice")
        if kind.options is not None and key not in kind.options:
            allowed = ", ".join(kind.options)
            raise ValueError(f"{text!r}: {name} has no option {key!r}; its options are: {allowed}")
        options[key] = value
    return AgentName(name, target, options)


def make_agent(name: str, rules: Rules | str) -> Agent:
    """Make an agent from its name.

    Args:
        name: `NAME[:TARGET][,KEY=VALUE…]`.
        rules: the rules it will play, or a game's name.

    Returns:
        the agent.

    Raises:
        ValueError: for a name, target or option that does not exist; it says what does.
        ModuleNotFoundError: for `checkpoint` without torch; it says what to install.
    """
    parsed = parse_agent_name(name)
    kind = _KINDS[parsed.name]
    options: dict[str, Any] = {}
    for key, value in parsed.options.items():
        read = _plain_value if kind.options is None else kind.options[key]
        try:
            options[key] = read(value)
        except ValueError as error:
            raise ValueError(f"{name!r}: {key}={value}: {error}") from None
    target = () if parsed.target is None else (parsed.target,)
    return kind.make(*target, make_rules(rules), **options)

"""Players: the protocol that all of them share, and `make_agent`, which makes one from its name.

A name is `NAME[:TARGET][,KEY=VALUE…]`, as in `random`, `random,general=0` or
`checkpoint:runs/a/last`. The same string names an agent on the command line, in configs and in
reports. Packages that only some agents need are imported when one of those is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from valety_env.agents.choosing import AgentError
from valety_env.agents.files import digest_of, find_checkpoint
from valety_env.agents.heuristic import HeuristicAgent
from valety_env.agents.metadata import EPISODES
from valety_env.agents.random import RandomAgent
from valety_env.observations import ENCODERS
from valety_env.rules import Rules, make_rules

__all__ = [
    "Agent",
    "AgentError",
    "AgentName",
    "Policy",
    "UntrustedError",
    "agent_about",
    "agent_digest",
    "agent_name",
    "agent_names",
    "known_policy",
    "make_agent",
    "names_code",
    "needs_extra",
    "parse_agent_name",
    "sees_all",
]


class UntrustedError(ValueError):
    """An agent of a file that can run code when it is loaded, without a word that it is trusted."""


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


@runtime_checkable
class Policy(Protocol):
    """What tells how likely a player's choices are: some agents do."""

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return how likely given actions are at N tables, float64 (N,), 0…1.

        Args:
            views: `VIEW` (N,), as for `Agent.act`.
            legal: uint64 (N,).
            actions: int64 (N,), one of `legal` each.
        """
        ...


def known_policy(agent: Agent) -> Policy | None:
    """Return an agent as the policy that it follows itself, if its chances are known; else None.

    The `chances` of other agents are a model of players like them. Those of one whose attribute
    `draws` is True are what its own choices are drawn by.
    """
    if getattr(agent, "draws", False) is True and isinstance(agent, Policy):
        return agent
    return None


def sees_all(agent: Agent) -> bool:
    """Return whether an agent is shown all cards: `STATE`s in place of `VIEW`s.

    Such a one has an attribute `sees_all` that is True. It is no fair player but a measure.
    """
    return getattr(agent, "sees_all", False) is True


def agent_name(agent: Agent | Policy) -> str:
    """Return the string that makes an agent again, or for a stranger its class."""
    return str(getattr(agent, "name", type(agent).__name__))


def agent_about(agent: Agent) -> dict[str, Any]:
    """Return what the file of an agent says of it, JSON values; nothing for most."""
    return dict(getattr(agent, "about", {}))


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
        file: what finds the file or folder that a target names; None: it names none.
        runs_code: whether its files can run code when they are loaded.
        extra: the extra of this package that installs what it needs.
        packages: what that is.
    """

    make: Callable[..., Agent]
    target: str | None = None
    options: Mapping[str, Callable[[str], Any]] | None = None
    file: Callable[[str], Path] | None = None
    runs_code: bool = False
    extra: str = ""
    packages: Collection[str] = ()


def _switch(text: str) -> bool:
    """Read an option that is on or off."""
    if text not in ("0", "1"):
        raise ValueError("allowed are 0 and 1")
    return text == "1"


def _whole_number(text: str) -> int:
    """Read a whole number."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError("it must be a whole number")
    return int(text)


def _number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("it must be a number") from None


def _plain_value(text: str) -> bool | int | float | str:
    """Read a value whose type only the agent knows: true, false, a number, else a text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _one_of(allowed: Collection[str]) -> Callable[[str], str]:
    """Return what reads one of some words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"allowed are {', '.join(allowed)}")
        return text

    return read


def _later(module: str, function: str) -> Callable[..., Agent]:
    """Return what makes an agent by a function of a module that is imported only then."""

    def make(*arguments: Any, **options: Any) -> Agent:
        found = getattr(import_module(f"valety_env.agents.{module}"), function)
        agent: Agent = found(*arguments, **options)
        return agent

    return make


@contextmanager
def needs_extra(what: str, extra: str, packages: Collection[str]) -> Iterator[None]:
    """Say of a missing package what to install.

    Args:
        what: needs it, for the message.
        extra: of this package, which installs it.
        packages: those that the extra installs; others that are missing are not our affair.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in packages:
            raise
        raise ModuleNotFoundError(
            f"{what} needs {package}: pip install 'valety-env[{extra}]'", name=error.name
        ) from error


_SHOWN: dict[str, Callable[[str], Any]] = {
    "encoder": _one_of(ENCODERS),
    "episode": _one_of(EPISODES),
    "temperature": _plain_value,
}
_KINDS: dict[str, _Kind] = {
    "random": _Kind(RandomAgent, options={"general": _switch}),
    "heuristic": _Kind(HeuristicAgent, options={"general": _switch}),
    "pimc": _Kind(
        _later("search", "PimcAgent"),
        options={
            "worlds": _whole_number,
            "seconds": _number,
            "model": str,
            "threads": _whole_number,
        },
    ),
    "clairvoyant": _Kind(_later("search", "ClairvoyantAgent"), options={"threads": _whole_number}),
    "checkpoint": _Kind(
        _later("neural", "load_checkpoint_agent"),
        target="PATH",
        file=find_checkpoint,
        extra="train",
        packages=("torch", "safetensors"),
    ),
    "onnx": _Kind(
        _later("foreign.onnx", "load_onnx_agent"),
        target="FILE",
        file=Path,
        options=_SHOWN,
        extra="onnx",
        packages=("onnx", "onnxruntime"),
    ),
    "sb3": _Kind(
        _later("foreign.sb3", "load_sb3_agent"),
        target="FILE",
        file=Path,
        options=_SHOWN,
        runs_code=True,
        extra="sb3",
        packages=("stable_baselines3", "sb3_contrib", "torch"),
    ),
    "rllib": _Kind(
        _later("foreign.rllib", "load_rllib_agent"),
        target="DIR",
        file=Path,
        options={"module": str, **_SHOWN},
        runs_code=True,
        extra="rllib",
        packages=("ray", "torch"),
    ),
    # Who names a function wants it to run.
    "python": _Kind(_later("foreign.python", "load_python_agent"), target="MODULE:FUNCTION"),
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


def _all_named(name: str) -> Iterator[AgentName]:
    """Return the parts of an agent's name, and of those of the models that it asks."""
    parsed = parse_agent_name(name)
    yield parsed
    model = parsed.options.get("model")
    if parsed.name == "pimc" and model not in (None, "none"):
        yield from _all_named(str(model))


def names_code(name: str) -> bool:
    """Return whether making an agent of this name can run code that is not this package's."""
    return any(
        parsed.name == "python" or _KINDS[parsed.name].runs_code for parsed in _all_named(name)
    )


def agent_digest(name: str) -> str:
    """Return a digest of the files that an agent's name names; empty if it names none.

    The same name with another digest is another agent: a run writes its `last` again and again.

    Raises:
        ValueError: if the name names no agent, or a file is missing.
        OSError: if a file can't be read.
    """
    files = []
    for parsed in _all_named(name):
        find = _KINDS[parsed.name].file
        if find is not None and parsed.target is not None:
            files.append(find(parsed.target))
    return digest_of(files) if files else ""


def make_agent(name: str, rules: Rules | str, trust: bool = False) -> Agent:
    """Make an agent from its name.

    Args:
        name: `NAME[:TARGET][,KEY=VALUE…]`.
        rules: the rules it will play, or a game's name.
        trust: whether files that can run code when they are loaded, `sb3:` and `rllib:`, may be.

    Returns:
        the agent.

    Raises:
        ValueError: for a name, target or option that does not exist; it says what does.
        UntrustedError: if the file can run code, and `trust` is False; nothing of it is read then.
        ModuleNotFoundError: if what such an agent needs is missing; it says what to install.
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
    source = parsed.name if parsed.target is None else f"{parsed.name}:{parsed.target}"
    if kind.runs_code and trust is not True:
        raise UntrustedError(
            f"{source} can run code when it is loaded; if you trust where it comes from, add "
            "--trust (in Python: make_agent(name, rules, trust=True))"
        )
    target = () if parsed.target is None else (parsed.target,)
    with needs_extra(source, kind.extra, kind.packages):
        return kind.make(*target, make_rules(rules), **options)

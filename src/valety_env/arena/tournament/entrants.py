"""Who takes part in a tournament, and who meets whom."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from valety_env.agents import agent_digest

LineUp = tuple[int, ...]
"""For each place at a table the number of an entrant, from 1."""

# Beside its steps a run keeps the newest of them under this name as well.
_LAST = "last.safetensors"


@dataclass(frozen=True)
class Entrant:
    """An agent in a tournament.

    Attributes:
        name: as for `make_agent`.
        digest: of the files that the name names, as `agent_digest`.
        copy: 1, or which copy of the same agent it is: each has random numbers of its own.
        about: what its file says of it, JSON values.
    """

    name: str
    digest: str = ""
    copy: int = 1
    about: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def identity(self) -> tuple[str, str, int]:
        """What tells it from others."""
        return self.name, self.digest, self.copy

    @property
    def stream(self) -> int:
        """The counter of its random numbers, 0…2^62−1: they depend on nobody else in the field."""
        text = f"{self.name}\0{self.copy}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 2


def enter(names: Iterable[str]) -> list[Entrant]:
    """Return the entrants of some names; a name that occurs again is a copy.

    Raises:
        ValueError: if a name names no agent, or a file is missing.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for name in names:
        digest = agent_digest(name)
        seen[name, digest] += 1
        found.append(Entrant(name.strip(), digest, seen[name, digest]))
    return found


def labels(entrants: Sequence[Entrant]) -> list[str]:
    """Return what the entrants are called: their names, and what else tells them apart."""
    digests: dict[str, set[str]] = {}
    for entrant in entrants:
        digests.setdefault(entrant.name, set()).add(entrant.digest)
    return [
        entrant.name
        + (f"@{entrant.digest[:6]}" if len(digests[entrant.name]) > 1 else "")
        + (f" ({entrant.copy})" if entrant.copy > 1 else "")
        for entrant in entrants
    ]


def checkpoints_in(folder: str | Path) -> list[str]:
    """Return the names of the checkpoints in a run's folder, the oldest first.

    Raises:
        ValueError: if there are none.
    """
    files = sorted(Path(folder).glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder}: there is no checkpoint, a file *.safetensors, in this folder")
    steps = [file for file in files if file.name != _LAST]
    known = {file.read_bytes() for file in steps}
    kept = steps + [file for file in files if file.name == _LAST and file.read_bytes() not in known]
    return [f"checkpoint:{file.with_suffix('')}" for file in kept]


def round_robin(members: Sequence[int], seats: int, mixed: bool = False) -> list[LineUp]:
    """Return the line-ups in which everybody meets everybody.

    Args:
        members: the entrants.
        seats: how many a table has.
        mixed: whether, at tables of more than two, all sets of different entrants meet as well.

    Returns:
        with two seats one line-up a pair; with more, for both of a pair one in which it is alone
        among copies of the other.
    """
    if seats == 2:
        return list(combinations(sorted(members), 2))
    found: list[LineUp] = [(one, *[other] * (seats - 1)) for one, other in permutations(members, 2)]
    if mixed:
        found += combinations(sorted(members), seats)
    return found


def against(newcomers: Sequence[int], members: Sequence[int], seats: int) -> list[LineUp]:
    """Return the line-ups in which each newcomer meets each member, alone at the table."""
    met = [(new, old) for new in newcomers for old in members if new != old]
    if seats == 2:
        return [(min(pair), max(pair)) for pair in met]
    return [(new, *[old] * (seats - 1)) for new, old in met]

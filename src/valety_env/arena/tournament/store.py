"""Every game of a tournament in one SQLite file.

Results lie there as they were played: who sat where, the scores, and of single deals every card, so
that whatever is asked later can be counted without playing anything again. The cards dealt follow
from the tournament's seed. Reading the file runs no code from it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from valety_env.arena.tournament.entrants import Entrant, LineUp

FORMAT = 1
DEAL, MATCH = "deal", "match"
# How SQLite files of ours are told from others: `file` shows it, and so do we.
_APPLICATION = int.from_bytes(b"VlAr", "big")
_SCHEMA = """
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entrants (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    copy INTEGER NOT NULL,
    about TEXT NOT NULL,
    UNIQUE (name, digest, copy)
);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    command TEXT NOT NULL,
    versions TEXT NOT NULL
);
CREATE TABLE blocks (
    lineup TEXT NOT NULL,
    kind TEXT NOT NULL,
    first INTEGER NOT NULL,
    number INTEGER NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions (id),
    seconds REAL NOT NULL,
    thought TEXT NOT NULL,
    scores BLOB NOT NULL,
    winners BLOB NOT NULL,
    lengths BLOB NOT NULL,
    plays BLOB NOT NULL,
    generals BLOB NOT NULL,
    PRIMARY KEY (lineup, kind, first)
) WITHOUT ROWID;
"""

_FOREIGN = "it holds no results of tournaments"


class StoreError(ValueError):
    """A results file that can't be used; the message says why."""


@dataclass(frozen=True)
class Block:
    """Some deals or matches of one line-up, in all rotations.

    Attributes:
        lineup: who sat at each place.
        kind: DEAL or MATCH.
        first: the number of the first one.
        scores: int16 (N, R, places), as `Games.scores`.
        winners: uint8 (N, R), bit = place.
        lengths: uint16 (N, R), deals in each match.
        plays: uint8 (N, R, plays): the cards of single deals in the order they were played; of
            matches none, (N, R, 0).
        generals: int8 (N, R): the seat that announced in a single deal, or −1.
        seconds: how long it took.
        thought: for each entrant how often it was asked, and how many seconds it took to answer.
    """

    lineup: LineUp
    kind: str
    first: int
    scores: np.ndarray
    winners: np.ndarray
    lengths: np.ndarray
    plays: np.ndarray
    generals: np.ndarray
    seconds: float
    thought: Mapping[int, tuple[int, float]]

    @property
    def number(self) -> int:
        """How many deals or matches."""
        return len(self.scores)


# The arrays of a block and how they are kept.
_ARRAYS = {"scores": "<i2", "winners": "u1", "lengths": "<u2", "plays": "u1", "generals": "i1"}


class Store:
    """A results file, open for one process at a time.

    Args:
        path: the file; it is made if it is missing and `facts` are given.
        facts: of a new tournament, JSON values; they must be those of an existing one.

    Attributes:
        path: as given.
        facts: of the tournament: `game`, `seed`, …

    Raises:
        StoreError: if it is missing, no results file, one of other facts, or in use.
    """

    def __init__(self, path: str | Path, facts: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        if facts is None and not self.path.is_file():
            raise StoreError(f"{path}: there is no such results file")
        try:
            self._db = sqlite3.connect(self.path, timeout=1.0, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}") from None
        try:
            # Held until the file is closed or the process ends, however it does.
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("BEGIN EXCLUSIVE")
            self._begin(facts)
            self._db.execute("COMMIT")
            told = self._db.execute("SELECT key, value FROM facts")
            self.facts: dict[str, Any] = {key: json.loads(value) for key, value in told}
        except (sqlite3.Error, ValueError) as error:
            self._db.close()
            if isinstance(error, StoreError):
                raise
            told_error = str(error)
            if "locked" in told_error:
                told_error = "it is in use by another tournament"
            if "not a database" in told_error:
                told_error = _FOREIGN
            raise StoreError(f"{path}: {told_error}") from None

    def _begin(self, facts: Mapping[str, Any] | None) -> None:
        """Make the tables of a new file, or check those of an old one."""
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == 0 and tables == 0 and facts is not None:
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            self._db.executemany(
                "INSERT INTO facts VALUES (?, ?)",
                [(key, json.dumps(value)) for key, value in facts.items()],
            )
            return
        if application != _APPLICATION:
            raise StoreError(f"{self.path}: {_FOREIGN}")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise StoreError(
                f"{self.path}: its format is {version}; this version reads format {FORMAT}"
            )

    def close(self) -> None:
        """Let others use the file."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def entrants(self) -> dict[int, Entrant]:
        """Return all who take part, by number."""
        rows = self._db.execute("SELECT id, name, digest, copy, about FROM entrants ORDER BY id")
        return {
            number: Entrant(name, digest, copy, json.loads(about))
            for number, name, digest, copy, about in rows
        }

    def number_of(self, entrant: Entrant) -> int:
        """Return an entrant's number, a new one if it has none."""
        self._db.execute(
            "INSERT OR IGNORE INTO entrants (name, digest, copy, about) VALUES (?, ?, ?, ?)",
            (*entrant.identity, json.dumps(entrant.about)),
        )
        (number,) = self._db.execute(
            "SELECT id FROM entrants WHERE name = ? AND digest = ? AND copy = ?", entrant.identity
        ).fetchone()
        return int(number)

    def begin_session(self, started: str, command: str, versions: Mapping[str, str]) -> int:
        """Note that games are going to be played; return the session's number."""
        done = self._db.execute(
            "INSERT INTO sessions (started, command, versions) VALUES (?, ?, ?)",
            (started, command, json.dumps(versions)),
        )
        assert done.lastrowid is not None
        return done.lastrowid

    def sessions(self) -> list[dict[str, Any]]:
        """Return when games were played, by which command, with which versions."""
        rows = self._db.execute("SELECT started, command, versions FROM sessions ORDER BY id")
        return [
            {"started": started, "command": command, "versions": json.loads(versions)}
            for started, command, versions in rows
        ]

    def add(self, block: Block, session: int) -> None:
        """Keep a block; when this returns it is on disk.

        Raises:
            StoreError: if it can't be written; what is there already stays as it is.
        """
        thought = {str(key): list(value) for key, value in block.thought.items()}
        values = (
            _lineup_text(block.lineup),
            block.kind,
            block.first,
            block.number,
            session,
            block.seconds,
            json.dumps(thought),
            *(
                np.ascontiguousarray(getattr(block, name), kind).tobytes()
                for name, kind in _ARRAYS.items()
            ),
        )
        try:
            self._db.execute(f"INSERT INTO blocks VALUES ({', '.join('?' * len(values))})", values)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from None

    def ranges(self) -> dict[tuple[LineUp, str], list[tuple[int, int, float]]]:
        """Return what has been played, by line-up and kind: first, number and seconds."""
        rows = self._db.execute(
            "SELECT lineup, kind, first, number, seconds FROM blocks ORDER BY lineup, kind, first"
        )
        found: dict[tuple[LineUp, str], list[tuple[int, int, float]]] = {}
        for lineup, kind, first, number, seconds in rows:
            found.setdefault((_lineup(lineup), kind), []).append((first, number, seconds))
        return found

    def blocks(self, lineup: Sequence[int], kind: str) -> Iterator[Block]:
        """Return the blocks of a line-up, in order.

        Raises:
            StoreError: if one is damaged.
        """
        rows = self._db.execute(
            f"SELECT first, number, seconds, thought, {', '.join(_ARRAYS)} FROM blocks "
            "WHERE lineup = ? AND kind = ? ORDER BY first",
            (_lineup_text(lineup), kind),
        )
        for first, number, seconds, thought, *blobs in rows:
            arrays = {
                name: np.frombuffer(blob, dtype)
                for (name, dtype), blob in zip(_ARRAYS.items(), blobs, strict=True)
            }
            places = len(lineup)
            times = arrays["winners"].size // max(number, 1)
            shapes = {
                "scores": (number, times, places),
                "winners": (number, times),
                "lengths": (number, times),
                "plays": (number, times, -1),
                "generals": (number, times),
            }
            try:
                arrays = {name: arrays[name].reshape(shape) for name, shape in shapes.items()}
            except ValueError:
                raise StoreError(
                    f"{self.path}: the games of line-up {_lineup_text(lineup)} from {first} on are "
                    "damaged"
                ) from None
            yield Block(
                lineup=tuple(lineup),
                kind=kind,
                first=first,
                seconds=seconds,
                thought={int(key): tuple(value) for key, value in json.loads(thought).items()},
                **arrays,
            )


def _lineup_text(lineup: Sequence[int]) -> str:
    return ",".join(map(str, lineup))


def _lineup(text: str) -> LineUp:
    return tuple(map(int, text.split(",")))

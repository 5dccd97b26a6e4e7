"""Files of agents: whole at any moment, found by what names them, and told apart by content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a path beside `path` to write a file to, which takes its place at the end.

    At any moment `path` holds a whole file, the old one or the new. If writing fails, the old one
    stays, and nothing else is left.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def find_checkpoint(path: str | Path) -> Path:
    """Return the file that a path names: itself, with `.safetensors`, or `last` of a run's folder.

    Raises:
        ValueError: if there is none.
    """
    given = Path(path)
    last = given / "last.safetensors"
    named = given if given.suffix == ".safetensors" else Path(f"{given}.safetensors")
    for candidate in (last, named):
        if candidate.is_file():
            return candidate
    allowed = "a .safetensors file, or a run's folder with last.safetensors in it"
    if given.is_file():
        raise ValueError(f"{given} is no checkpoint: it must be {allowed}")
    raise ValueError(f"no checkpoint at {given}: it must be {allowed}")


def digest_of(paths: Iterable[str | Path]) -> str:
    """Return a digest of files and of all files in folders, 32 hexadecimal digits.

    Raises:
        OSError: if one can't be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    for given in map(Path, paths):
        inside = sorted(file for file in given.rglob("*") if file.is_file())
        for file in inside if given.is_dir() else [given]:
            content = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
            # The folder may be moved, what is in it not.
            name = file.relative_to(given).as_posix() if given.is_dir() else ""
            digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()

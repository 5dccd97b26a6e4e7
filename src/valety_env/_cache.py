"""The cache of machine code on disk: one file a compiled kernel, in a folder of the user's own.

Why not numba's: its cache keeps an index file a function, which two processes that compile at once
can leave pointing at each other's code; a file cut short stops the program; and where its folder
can't be written to it goes on beside the sources, where an edit of a callee goes unnoticed.

Machine code is run by whoever loads it. So the folder is made for its user alone, and one that
others can write to is not read. Files are written under a name of their own and renamed, and
begin with a digest of the rest, so that a reader sees a whole file or none.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

__all__ = ["cache_folder", "load", "save", "say_compiling"]

PREFIX = "valety_env-"
UNUSED_DAYS = 30
DIGEST_SIZE = 16

_DAY = 24 * 60 * 60
_log = logging.getLogger("valety_env")
_config: Any = numba.config


@cache
def source_digest() -> str:
    """Return a short digest of the package's sources and of what compiles them.

    A kernel holds the code of the kernels that it calls, in whatever file they are: any edit of the
    package starts an empty cache.
    """
    versions = (sys.implementation.cache_tag, np.__version__, llvmlite.__version__)
    digest = hashlib.blake2b(repr((numba.__version__, *versions)).encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _user_cache_folder() -> Path:
    """Return the folder for caches that the user's system prescribes, or one for what is temporary.

    The latter is for users without a home, as containers have them.
    """
    try:
        if sys.platform == "win32":
            folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            folder = Path.home() / "Library" / "Caches"
        else:
            folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return Path(tempfile.gettempdir())
    return folder / "valety_env"


@cache
def cache_folder() -> Path:
    """Return where compiled kernels are kept; found once a process.

    `VALETY_ENV_CACHE_DIR` names another parent folder, before `NUMBA_CACHE_DIR` and the user's own
    cache folder.
    """
    chosen = os.environ.get("VALETY_ENV_CACHE_DIR") or _config.CACHE_DIR
    parent = Path(chosen) if chosen else _user_cache_folder()
    return parent / (PREFIX + source_digest())


@cache
def _why_unread() -> str:
    """Return why the folder's files are not to be loaded, empty if they are; mark it as used."""
    try:
        folder = cache_folder()
        found = folder.stat()
    except FileNotFoundError:
        return "there is none yet"
    except OSError as error:
        return str(error)
    if os.name == "posix":
        if found.st_uid not in (0, os.geteuid()):
            return f"{folder} belongs to another user"
        if found.st_mode & 0o022:
            return f"others than its owner can write to {folder}"
    if found.st_mtime < time.time() - _DAY:
        with suppress(OSError):
            os.utime(folder)
    return ""


@cache
def _why_unkept() -> str:
    """Return why nothing can be kept, empty if it can; the folder is made if there is none."""
    try:
        folder = cache_folder()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            _remove_unused(folder.parent)
        _why_unread.cache_clear()
        reason = _why_unread()
        if not reason:
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        return str(error)
    return reason


def _remove_unused(parent: Path) -> None:
    """Remove this user's folders of other versions that no process has used for some time.

    A process that still uses one compiles anew what it misses.
    """
    for folder in parent.glob(PREFIX + "*"):
        with suppress(OSError):
            found = folder.lstat()
            own = os.name != "posix" or found.st_uid == os.geteuid()
            if own and found.st_mtime < time.time() - UNUSED_DAYS * _DAY:
                shutil.rmtree(folder, ignore_errors=True)


@cache
def say_compiling() -> None:
    """Say, once a process, that it compiles and whether the result is kept."""
    reason = _why_unkept()
    if reason:
        _log.warning(
            "valety_env: compiling for this machine, some 10 s at every start, as nothing can be "
            "kept: %s; VALETY_ENV_CACHE_DIR names another folder",
            reason,
        )
    else:
        _log.warning(
            "valety_env: compiling for this machine, once for this version, some 10 s; kept in %s",
            cache_folder(),
        )


@cache
def _say_unkept(reason: str) -> None:
    """Say, once a process and reason, that what was compiled is not kept."""
    _log.warning("valety_env: what is compiled is not kept: %s", reason)


def load(name: str) -> bytes | None:
    """Return what was saved under a name, None if nothing was or the file is damaged."""
    if _why_unread():
        return None
    try:
        content = (cache_folder() / name).read_bytes()
    except OSError:
        return None
    digest, data = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
    return data if digest == _digest(data) else None


def save(name: str, data: bytes) -> None:
    """Keep data under a name, if that is possible; in place of what was there."""
    if _why_unkept():
        return
    folder = cache_folder()
    try:
        # It may have been removed since, by hand or as unused.
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_digest(data) + data)
            Path(temporary).replace(folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        # On Windows a file that another process reads can't be replaced, and need not be.
        if load(name) is None:
            _say_unkept(str(error))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_SIZE).digest()

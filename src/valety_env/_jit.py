"""`kernel`: the only compile decorator of the package.

A kernel is a scalar function of a few records and integers, compiled by numba without the GIL and
without allocations. Its machine code is cached in a folder of the user's, so that only the first
start on a machine compiles.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba

if TYPE_CHECKING:

    def int64(value: Any) -> int:
        """Widen a small field of a record; a plain number to the type checker."""
else:
    from numpy import int64

__all__ = ["JIT_DISABLED", "cache_folder", "inlined", "int64", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

_config: Any = numba.config
JIT_DISABLED = bool(_config.DISABLE_JIT)


def _source_digest() -> str:
    """Return a short digest of the package's sources and numba's version.

    numba notices an edit of a kernel's own file only, not of a file that the kernel calls into;
    with the digest in the folder's name any edit of the package starts an empty cache.
    """
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _user_cache_folder() -> Path:
    """Return the folder for caches that the user's system prescribes."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache_folder() -> Path:
    """Return where compiled kernels are kept.

    `VALETY_ENV_CACHE_DIR` names another parent folder, before `NUMBA_CACHE_DIR` and the user's own
    cache folder.
    """
    chosen = os.environ.get("VALETY_ENV_CACHE_DIR") or _config.CACHE_DIR
    parent = Path(chosen) if chosen else _user_cache_folder() / "valety_env"
    return parent / _source_digest()


# The numpy model leaves out the checks for division by zero: no kernel divides by what could be 0.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_CACHE_FOLDER = str(cache_folder())


def kernel(function: Function) -> Function:
    """Compile `function` at its first call; with the JIT off return it unchanged."""
    return _compile(function)


def inlined(function: Function) -> Function:
    """As `kernel`, and built into each kernel that calls it: for the hottest, most called ones."""
    return _compile(function, forceinline=True)


def _compile(function: Function, **more: Any) -> Function:
    if JIT_DISABLED:
        return function
    # numba reads its cache folder when a function is decorated: the setting of the process is put
    # back at once, so that other users of numba in it keep theirs.
    before = _config.CACHE_DIR
    _config.CACHE_DIR = _CACHE_FOLDER
    try:
        compiled: Function = numba.njit(function, cache=True, **_OPTIONS, **more)
    except RuntimeError:
        # There is no file to know the source by, or no folder that can be written to.
        compiled = numba.njit(function, **_OPTIONS, **more)
    finally:
        _config.CACHE_DIR = before
    return compiled

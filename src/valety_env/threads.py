"""Threads for kernels with `prange` loops, and where they can't be had.

numba's threading layer is loaded by the first call of such a kernel, never by one thread's work.
The layer that most systems have, GNU OpenMP, ends a child process that uses it after a fork; so a
child of a process that had loaded one works on one thread.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numba as _numba

from valety_env._jit import JIT_DISABLED

__all__ = ["share_out", "usable_threads"]

numba: Any = _numba

# numba's simplest layer can't be called from two Python threads at once.
_lock = threading.Lock()
_lost = False


def _after_fork_in_child() -> None:
    global _lock, _lost
    _lock = threading.Lock()
    try:
        numba.threading_layer()
    except ValueError:
        return  # not loaded: the child can load its own
    _lost = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def usable_threads(wanted: int) -> int:
    """Return how many threads can share work here: `wanted`, or 1 in a child that lost them.

    Warns:
        RuntimeWarning: in such a child.
    """
    if _lost and wanted > 1:
        warnings.warn(
            f"threads={wanted}: this process was forked from one that had used threads, so it "
            "steps on one; results are the same. Start processes with spawn or forkserver, or "
            "before the first step with threads",
            RuntimeWarning,
            stacklevel=5,
        )
        return 1
    return 1 if JIT_DISABLED else wanted


def share_out(kernel: Callable[..., None], threads: int, *arguments: Any) -> None:
    """Call a kernel with `prange` loops on at most so many threads.

    Nor are there more than cores, or than `numba.set_num_threads` allows in this thread.
    """
    with _lock:
        # What numba allows is asked only if it can matter: it takes 0.5 µs, of the 70 µs in which
        # two threads step 4,096 tables.
        allowed = threads if threads >= numba.config.NUMBA_NUM_THREADS else numba.get_num_threads()
        if threads < allowed:
            numba.set_num_threads(threads)
        try:
            kernel(*arguments)
        finally:
            if threads < allowed:
                numba.set_num_threads(allowed)

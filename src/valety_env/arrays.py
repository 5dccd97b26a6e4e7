"""Arrays for results: used again once nobody holds them any more."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["ArrayPool"]


class ArrayPool:
    """Gives out arrays that are nobody else's, each of one shape and dtype.

    An array that was given out before is used again when no array, view, tensor or buffer holds its
    memory any more, which Python's count of references tells; memory that somebody still holds is
    never written. New memory costs a page fault for every 4096 bytes, more than half of the time
    of a step of many tables.

    Args:
        shape: of the arrays.
        dtype: of the arrays.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._arrays: list[np.ndarray] = []

    def empty(self) -> np.ndarray:
        """Return an array of undefined content."""
        for i in range(len(self._arrays)):
            if _references(self._arrays, i) == _UNUSED:
                return self._arrays[i]
        array = np.empty(self._shape, self._dtype)
        # Two are enough for a loop that holds the step before; more are somebody's collection.
        if len(self._arrays) < 2:
            self._arrays.append(array)
        else:
            self._arrays[0], self._arrays[1] = self._arrays[1], array
        return array


def _references(arrays: list[np.ndarray], i: int) -> int:
    return sys.getrefcount(arrays[i])


# Of an array that the list alone holds, as this version of Python counts.
_UNUSED = _references([np.empty(0)], 0)

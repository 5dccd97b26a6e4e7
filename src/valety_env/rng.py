"""Counter-based random numbers: every draw is a function of a key and a counter.

The generator is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
OOPSLA 2014) read as a function of its position.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from valety_env._jit import JIT_DISABLED, inlined, int64

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_LOW_HALF = np.uint64(0xFFFFFFFF)


@inlined
def mix(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return output number `counter` (from 0) of SplitMix64 started at `key`.

    Used both to draw 64 random bits and to derive an independent key: `mix(mix(seed, episode),
    deal)`.
    """
    z = key + _GAMMA * (counter + np.uint64(1))
    z = (z ^ (z >> np.uint64(30))) * _FACTOR_1
    z = (z ^ (z >> np.uint64(27))) * _FACTOR_2
    return z ^ (z >> np.uint64(31))


if JIT_DISABLED:

    def _wrapping(function: Callable[..., np.uint64]) -> Callable[..., np.uint64]:
        @wraps(function)
        def wrapped(key: np.uint64, counter: np.uint64) -> np.uint64:
            # The arithmetic is modulo 2**64 on purpose; plain numpy warns of it, compiled code
            # does not.
            with np.errstate(over="ignore"):
                return function(key, counter)

        return wrapped

    mix = _wrapping(mix)


@inlined
def below(bits: np.uint64, bound: int) -> int:
    """Return an integer in 0..bound-1 from the low 32 of `bits`.

    No value is likelier than another by more than bound / 2**32.
    """
    return int64(((bits & _LOW_HALF) * np.uint64(bound)) >> np.uint64(32))

"""Rows of bits: composed in a record of words, then written as numbers 0 and 1."""

from __future__ import annotations

import numpy as np
from numpy import uint64

from valety_env._intrinsics import bit_writer
from valety_env._jit import inlined, specialised
from valety_env.cards import EMPTY, ONE

# A row of bits, with room for the longest, 75 planes of 52.
BITS = np.dtype((np.record, np.dtype([("words", np.uint64, (63,))])))


@specialised
def clear(row: np.record, size: int) -> None:
    """Set the first `size` bits of a `BITS` record to zero, and the rest of their last word."""
    for word in range((size >> 6) + 1):
        row.words[word] = EMPTY


@inlined
def put(row: np.record, offset: int, width: int, bits: np.uint64) -> None:
    """Set `width` <= 64 bits of a `BITS` record from position `offset` on; they were zero."""
    word = offset >> 6
    shift = offset & 63
    row.words[word] |= bits << uint64(shift)
    if shift + width > 64:
        row.words[word + 1] |= bits >> uint64(64 - shift)


@inlined
def ones(n: int) -> np.uint64:
    """Return the lowest `n` bits set, 0 <= n < 64: a thermometer."""
    return (ONE << uint64(n)) - ONE


_write_64, _write_32, _write_16, _write_8 = (bit_writer(lanes) for lanes in (64, 32, 16, 8))
_write_4, _write_2 = bit_writer(4), bit_writer(2)


@specialised
def spread(row: np.record, size: int, rows: np.ndarray, i: int) -> None:
    """Write a bit row as numbers 0 and 1, one an entry.

    Args:
        row: one `BITS` record, at least `size` bits.
        size: entries to write.
        rows: (N, size) of any dtype; row `i` is overwritten.
        i: which row.
    """
    whole = size >> 6
    for word in range(whole):
        _write_64(rows, i, word << 6, row.words[word])
    if size & 63:
        spread_word(row.words[whole], size & 63, rows, i, whole << 6)


@specialised
def spread_word(bits: np.uint64, size: int, rows: np.ndarray, i: int, column: int) -> None:
    """Write the lowest `size` < 64 bits, an even number, as `spread` does, from `column` on."""
    done = 0
    if size & 32:
        _write_32(rows, i, column, bits)
        done += 32
    if size & 16:
        _write_16(rows, i, column + done, bits >> uint64(done))
        done += 16
    if size & 8:
        _write_8(rows, i, column + done, bits >> uint64(done))
        done += 8
    if size & 4:
        _write_4(rows, i, column + done, bits >> uint64(done))
        done += 4
    if size & 2:
        _write_2(rows, i, column + done, bits >> uint64(done))

"""What kernels need and numba does not offer: instructions, stack records, copies, wide stores.

Here alone memory is reached without numba knowing of it. Nothing is checked: the functions are
safe for arguments that are what the docstrings say. Each has a plain twin for
NUMBA_DISABLE_JIT=1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

from valety_env._jit import JIT_DISABLED

__all__ = [
    "bit_writer",
    "leading_zeros",
    "local_record",
    "population",
    "record_copier",
    "record_head",
    "trailing_zeros",
]

# Without types, as numba has none for these.
cgutils: Any = _cgutils
intrinsic: Any = _intrinsic

_BOOL, _WORD = ir.IntType(1), ir.IntType(64)


def _instruction(name: str, *constants: Any) -> Any:
    """Return an LLVM instruction from a uint64 to a number, callable in kernels alone."""

    def typed(_typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            flags = [context.get_constant(types.boolean, c) for c in constants]
            return getattr(builder, name)(arguments[0], *flags)

        return types.int64(types.uint64), generate

    return intrinsic(typed)


# numpy's bitwise_count does not compile; counting zeros may leave the empty set undefined.
population = _instruction("ctpop")
trailing_zeros = _instruction("cttz", 1)
leading_zeros = _instruction("ctlz", 1)


def local_record(dtype: np.dtype[Any]) -> Callable[[], Any]:
    """Return a function that gives a kernel a record of its own, of undefined content.

    It lies on the stack of the kernel that calls the function, so it must not outlive that. What
    its fields hold can then stay in registers: a row of bits is composed in 15 ns in place of 25
    in an array that is handed in.
    """
    if JIT_DISABLED:
        return lambda: np.zeros(1, dtype)[0]
    record = from_dtype(dtype)

    def typed(_typing: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            # Words, so that it is aligned as a record in an array is.
            memory = cgutils.alloca_once(builder, ir.ArrayType(_WORD, -(-record.size // 8)))
            return builder.bitcast(memory, context.get_value_type(record))

        return record(), generate

    made: Callable[[], Any] = intrinsic(typed)
    return made


def record_copier(size: int) -> Callable[[Any, Any], None]:
    """Return a function that copies the first `size` bytes of a record over those of another.

    2 ns for the public part of a table; field by field it takes 12.
    """
    if JIT_DISABLED:

        def copy(source: Any, target: Any) -> None:
            for name, (_, offset, *_) in source.dtype.fields.items():
                if offset < size:
                    target[name] = source[name]

        return copy

    def typed(_typing: Any, source: Any, target: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            source, target = arguments
            cgutils.raw_memcpy(builder, target, source, ir.Constant(_WORD, size), 1)

        return types.void(source, target), generate

    copier: Callable[[Any, Any], None] = intrinsic(typed)
    return copier


def record_head(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Return a function from a record to its first fields as a record of `dtype`, the same memory.

    The fields of `dtype` must be the first of the record's, in the same places. It costs nothing,
    where a copy costs 2 ns and 4 more for reading back at once what was just written.
    """
    if JIT_DISABLED:
        return lambda record: np.frombuffer(record, dtype, 1)[0]
    head = from_dtype(dtype)

    def typed(_typing: Any, record: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(head))

        return head(record), generate

    cast: Callable[[Any], Any] = intrinsic(typed)
    return cast


def bit_writer(lanes: int) -> Callable[[np.ndarray, int, int, np.uint64], None]:
    """Return a function that writes bits as numbers 0 and 1, one an entry, in one wide store.

    It takes rows (N, size) of any dtype, each row contiguous; which row; its first column; and a
    uint64 of which the lowest `lanes` bits are written. A row of 464 bytes takes 4 ns; byte by
    byte, vectorised by the compiler, it takes 50, and with eight bytes from a table 13.
    """
    if JIT_DISABLED:

        def write(rows: np.ndarray, row: int, column: int, bits: np.uint64) -> None:
            for k in range(lanes):
                rows[row, column + k] = int(bits) >> k & 1

        return write

    def typed(_typing: Any, rows: Any, row: Any, column: Any, bits: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            element = context.get_data_type(signature.args[0].dtype)
            size = context.get_abi_sizeof(element)
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            place = builder.mul(arguments[1], stride)
            place = builder.add(place, builder.mul(arguments[2], ir.Constant(_WORD, size)))
            address = builder.add(builder.ptrtoint(array.data, _WORD), place)
            bits = arguments[3]
            if lanes < 64:
                bits = builder.trunc(bits, ir.IntType(lanes))
            flags = builder.bitcast(bits, ir.VectorType(_BOOL, lanes))
            vector = ir.VectorType(element, lanes)
            widen = builder.zext if isinstance(element, ir.IntType) else builder.uitofp
            target = builder.inttoptr(address, vector.as_pointer())
            # As an element is: rows begin anywhere.
            builder.store(widen(flags, vector), target, align=size)

        return types.void(rows, types.int64, types.int64, types.uint64), generate

    writer: Callable[[np.ndarray, int, int, np.uint64], None] = intrinsic(typed)
    return writer

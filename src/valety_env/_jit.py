"""`kernel`: the only compile decorator of the package.

A kernel is a scalar function of a few records and integers, compiled by numba without the GIL and
without allocations. Its machine code is kept (`_cache`), so that only the first start on a machine
compiles.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
from numba.core import sigutils, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps

from valety_env import _cache

if TYPE_CHECKING:

    def int64(value: Any) -> int:
        """Widen a small field of a record; a plain number to the type checker."""
else:
    from numpy import int64

__all__ = [
    "JIT_DISABLED",
    "inlined",
    "int64",
    "kernel",
    "parallel_kernel",
    "specialised",
]

Function = TypeVar("Function", bound=Callable[..., Any])

_config: Any = numba.config
JIT_DISABLED = bool(_config.DISABLE_JIT)

# The numpy model leaves out the checks for division by zero: no kernel divides by what could be 0.
# Nothing calls a kernel from C: without that wrapper a cold start takes an eighth less. No kernel
# allocates, so none needs to count references.
_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


@cache
def _file_digest(path: str) -> bytes:
    """Return a digest of a source, empty if there is no such file."""
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).digest()
    except OSError:
        return b""


class _KernelCache(NullCache):
    """The machine code of one kernel on disk; what the dispatcher asks before it compiles."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options

    def _name(self, arguments: tuple[Any, ...], codegen: Any) -> str:
        """Return the file's name, which holds all that the code depends on; empty if not kept.

        That is what is called with which types, the processor, what numba's settings change, and
        the source, as a kernel need not be one of the package.
        """
        code = self._function.__code__
        source = _file_digest(code.co_filename)
        if not source or self._function.__closure__:
            return ""
        key = (
            source,
            code.co_firstlineno,
            self._options,
            repr(arguments),
            codegen.magic_tuple(),
            int(_config.OPT),
            _config.BOUNDSCHECK,
        )
        digest = hashlib.blake2b(repr(key).encode(), digest_size=16).hexdigest()
        return f"{self._function.__name__}-{digest}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        arguments, _ = sigutils.normalize_signature(sig)
        name = self._name(arguments, target_context.codegen())
        data = _cache.load(name) if name else None
        if data is None:
            _cache.say_compiling()
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, data: Any) -> None:
        arguments, _ = sigutils.normalize_signature(sig)
        name = self._name(arguments, data.codegen)
        # Addresses in this process's memory can't be kept.
        if name and not data.library.has_dynamic_globals:
            _cache.save(name, dumps(data._reduce()))


class _Dispatcher(CPUDispatcher):
    """numba's, with our cache.

    Attributes:
        literals: whether it is compiled anew for each literal that it is given.
    """

    literals = False

    def __init__(
        self,
        py_func: Callable[..., Any],
        locals: Any = None,  # noqa: A002  # numba makes unpickled ones by these names
        targetoptions: Any = None,
    ) -> None:
        super().__init__(py_func, locals or {}, targetoptions)
        self._cache = _KernelCache(py_func, targetoptions)


class _Inner(_Dispatcher):
    """A kernel as other kernels call it: Python can't."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        # numba would compile anew for every literal that is passed, some kernels two dozen times.
        if not self.literals:
            args = [types.unliteral(argument) for argument in args]
            kws = {name: types.unliteral(argument) for name, argument in dict(kws).items()}
        return super().get_call_template(args, kws)


class _Kernel(_Dispatcher):
    """A kernel as Python calls it.

    Kernels that call it get another, `_Inner`, that has no wrapper for Python: most kernels are
    called by kernels alone, and their wrappers are a sixth of a cold start.
    """

    _inner: Any = None

    @property
    def is_compiling(self) -> Any:
        return self._compiling_counter or (self._inner and self._inner.is_compiling)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if self._inner is None:
            options = self.targetoptions | {"no_cpython_wrapper": True}
            self._inner = _Inner(self.py_func, targetoptions=options)
            self._inner.literals = self.literals
        return self._inner.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self._inner.get_overload(sig)


def _compile(function: Function, literals: bool = False, **options: Any) -> Function:
    if JIT_DISABLED:
        return function
    compiled: Any = _Kernel(function, targetoptions=_OPTIONS | options)
    compiled.literals = literals
    return compiled


def kernel(function: Function) -> Function:
    """Compile `function` at its first call; with the JIT off return it unchanged."""
    return _compile(function)


def inlined(function: Function) -> Function:
    """As `kernel`, and built into each kernel that calls it: for the hottest, most called ones."""
    return _compile(function, forceinline=True)


def specialised(function: Function) -> Function:
    """As `inlined`, and compiled anew for each literal number it is given, such as a length.

    Loops over a length that is known are unrolled. Each literal costs a compile of its own.
    """
    return _compile(function, forceinline=True, literals=True)


def parallel_kernel(function: Function) -> Function:
    """As `kernel`, with the rounds of its `prange` loops on several threads.

    The first call loads numba's threading layer, after which a forked child must not use it.
    """
    return _compile(function, parallel=True)

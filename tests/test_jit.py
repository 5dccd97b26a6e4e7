"""The compile decorators: what they compile, how often, and where the result is kept."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event

import valety_env
from valety_env import _cache, _jit
from valety_env._jit import inlined, kernel, specialised
from valety_env.cards import highest

PACKAGE = Path(valety_env.__file__).parent


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def some_of_the_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the modules that `cards` needs."""
    folder = tmp_path_factory.mktemp("copy")
    (folder / "valety_env").mkdir()
    (folder / "valety_env" / "__init__.py").touch()
    for name in ("_cache.py", "_jit.py", "cards.py"):
        shutil.copy(PACKAGE / name, folder / "valety_env" / name)
    return folder


def folder_of(copy: Path) -> str:
    code = "from valety_env import _cache; print(_cache.cache_folder())"
    return run_python(code, PYTHONPATH=str(copy), VALETY_ENV_CACHE_DIR=str(copy / "cache"))


def test_an_edit_of_any_source_starts_a_new_cache(some_of_the_package: Path) -> None:
    before = folder_of(some_of_the_package)
    assert folder_of(some_of_the_package) == before
    with (some_of_the_package / "valety_env" / "cards.py").open("a") as source:
        source.write("# edited\n")
    assert folder_of(some_of_the_package) != before


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"VALETY_ENV_CACHE_DIR": "/a", "NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, "/a"),
        ({"VALETY_ENV_CACHE_DIR": "", "NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, "/b"),
        pytest.param(
            {"VALETY_ENV_CACHE_DIR": "", "NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "/c"},
            "/c/valety_env",
            marks=pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG is Linux's"),
        ),
    ],
    ids=["our own", "numba's", "the user's"],
)
def test_the_cache_lies_in_the_folder_asked_for(variables: dict[str, str], folder: str) -> None:
    code = "from valety_env import _cache; print(_cache.cache_folder().parent)"
    assert Path(run_python(code, **variables)) == Path(folder)


@pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
def test_a_kernel_is_compiled_without_the_gil_and_kept_in_one_file(tmp_path: Path) -> None:
    code = (
        "import numpy as np; from valety_env.cards import highest\n"
        "print(highest(np.uint64(5)), highest.nopython_signatures)"
    )
    assert run_python(code, VALETY_ENV_CACHE_DIR=str(tmp_path)) == "2 [(uint64,) -> int64]"
    (kept,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert kept.name.startswith("highest-")
    assert highest.targetoptions["nogil"]
    assert isinstance(highest, numba.core.dispatcher.Dispatcher)


@kernel
def factorial(n: int) -> int:
    return 1 if n <= 1 else n * factorial(n - 1)


@kernel
def quotient(n: int, by: int = 2) -> int:
    return n // by


@specialised
def power(base: int, exponent: int) -> int:
    value = 1
    for _ in range(exponent):
        value *= base
    return value


@inlined
def successor(n: int) -> int:
    return n + 1


@kernel
def outer(n: int) -> int:
    first = factorial(n) + quotient(n) + quotient(n, by=3)
    return first + power(n, 2) + power(n, 3) + successor(1) + successor(2)


@pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
def test_kernels_call_kernels_and_only_the_specialised_are_compiled_for_each_literal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_cache, "load", lambda name: None)
    with event.install_recorder("numba:compile") as compiles:
        assert outer(np.int64(4)) == 24 + 2 + 1 + 16 + 64 + 2 + 3
    counted = Counter(
        heard.data["dispatcher"].py_func.__name__
        for _, heard in compiles.buffer
        if heard.is_start and heard.data["dispatcher"].py_func.__module__ == __name__
    )
    # quotient: with its default for `by` and with a number.
    assert counted == {"outer": 1, "factorial": 1, "quotient": 2, "power": 2, "successor": 1}
    assert quotient(9, by=3) == 3
    assert factorial(5) == 120


@pytest.mark.plain
def test_with_the_jit_off_a_kernel_is_the_function_itself() -> None:
    code = (
        "from valety_env._jit import JIT_DISABLED, inlined, kernel, specialised\n"
        "def f(x): return x\n"
        "print(JIT_DISABLED, kernel(f) is inlined(f) is specialised(f) is f)"
    )
    assert run_python(code, NUMBA_DISABLE_JIT="1") == "True True"

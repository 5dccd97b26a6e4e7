"""The compile decorator: its cache follows the sources, and it leaves numba's settings alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import valety_env
from valety_env import _jit
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
    for name in ("_jit.py", "cards.py"):
        shutil.copy(PACKAGE / name, folder / "valety_env" / name)
    return folder


def folder_of(copy: Path) -> str:
    code = "from valety_env import _jit; print(_jit.cache_folder())"
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
    code = "from valety_env import _jit; print(_jit.cache_folder().parent)"
    assert Path(run_python(code, **variables)) == Path(folder)


@pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
def test_kernels_are_compiled_with_numbas_own_settings_put_back(tmp_path: Path) -> None:
    code = (
        "import numba; before = numba.config.CACHE_DIR\n"
        "import numpy as np; from valety_env.cards import highest\n"
        "print(highest(np.uint64(5)), numba.config.CACHE_DIR == before)\n"
        "print(highest.nopython_signatures)"
    )
    told = run_python(code, VALETY_ENV_CACHE_DIR=str(tmp_path))
    assert told == "2 True\n[(uint64,) -> int64]"
    kept = [path for path in tmp_path.rglob("*.nbc") if "highest" in path.name]
    assert len(kept) == 1
    assert highest.targetoptions["nogil"]
    assert isinstance(highest, numba.core.dispatcher.Dispatcher)


@pytest.mark.plain
def test_with_the_jit_off_a_kernel_is_the_function_itself() -> None:
    code = (
        "from valety_env._jit import JIT_DISABLED, kernel\n"
        "def f(x): return x\n"
        "print(JIT_DISABLED, kernel(f) is f)"
    )
    assert run_python(code, NUMBA_DISABLE_JIT="1") == "True True"


@pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
def test_without_a_folder_to_write_to_kernels_are_compiled_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code = "import numpy as np; from valety_env.cards import highest; print(highest(np.uint64(5)))"
    assert run_python(code, VALETY_ENV_CACHE_DIR=str(tmp_path / "file")) == "2"

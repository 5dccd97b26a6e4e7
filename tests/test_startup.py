"""Starting up: nothing is loaded or compiled that is not needed, and compiled code is kept safely.

Each test starts processes. A module of two kernels stands for the package where it can: it takes a
fraction of a second to compile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import valety_env
from valety_env import _cache
from valety_env._jit import JIT_DISABLED

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

TINY = """
from valety_env._jit import kernel

@kernel
def inner(n):
    return n + 1

@kernel
def outer(n):
    return inner(n) / 4
"""
CALL = "import tiny; print(tiny.outer(7))"
COUNTED = """
from numba.core import event
with event.install_recorder("numba:compile") as heard:
    exec({code!r})
print(sum(1 for _, e in heard.buffer if e.is_start))
"""
# Root may write anywhere; without its capabilities it obeys the permissions as everybody does.
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
NEEDS_PERMISSIONS = pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="permissions bind nobody here",
)
POSIX = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
OTHERS_OFTEN_ASKED_FOR = (
    "IPython",
    "gymnasium.envs.mujoco",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pandas",
    "pygame",
    "ray",
    "rich",
    "safetensors",
    "sb3_contrib",
    "scipy",
    "stable_baselines3",
    "supersuit",
    "tensorboard",
    "torch",
    "tyro",
    "wandb",
)
ENVIRONMENTS = {
    "aec": (
        "from valety_env import valety_v0\n"
        "env = valety_v0.env(); env.reset(seed=0)\n"
        "env.step(int(env.last()[0]['action_mask'].argmax())); env.last()"
    ),
    "aec-polignac": (
        "from valety_env import polignac_v0\n"
        "env = polignac_v0.env(); env.reset(seed=0)\n"
        "env.step(int(env.last()[0]['action_mask'].argmax())); env.last()"
    ),
    "batch": (
        "from valety_env.vector import SelfPlayEnv\n"
        "env = SelfPlayEnv('valety', 4, seed=0); env.reset(); env.step(env.sample())"
    ),
    "batch-threads": (
        "from valety_env.vector import SelfPlayEnv\n"
        "env = SelfPlayEnv('polignac', 4, seed=0, threads=2); env.reset(); env.step(env.sample())\n"
        "env.close()"
    ),
    **{
        f"gymnasium-{opponent}": (
            "import gymnasium, valety_env\n"
            f"env = gymnasium.make('valety/Valety-v0', opponent='{opponent}')\n"
            "_, info = env.reset(seed=0); env.step(int(info['action_mask'].argmax()))"
        )
        for opponent in ("random", "heuristic")
    },
    **{
        f"vector-{opponent}": (
            "import gymnasium, valety_env\n"
            f"env = gymnasium.make_vec('valety/Valety-v0', num_envs=4, opponent='{opponent}')\n"
            "_, infos = env.reset(seed=0); env.step(infos['action_mask'].argmax(axis=1))"
        )
        for opponent in ("random", "heuristic")
    },
}


class Told(NamedTuple):
    """What a process printed, how many kernels it compiled, and its lines on standard error."""

    printed: str
    compiled: int
    said: list[str]


class Starter:
    """Starts processes that find the module `tiny` and keep compiled code in a folder."""

    def __init__(self, folder: Path) -> None:
        (folder / "modules").mkdir()
        (folder / "modules" / "tiny.py").write_text(TINY)
        self.parent = folder / "cache"
        self.parent.mkdir()
        path = [str(folder / "modules"), str(Path(valety_env.__file__).parent.parent)]
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path),
            "VALETY_ENV_CACHE_DIR": str(self.parent),
        }

    @property
    def folder(self) -> Path:
        """The one folder of compiled code."""
        (found,) = self.parent.glob("valety_env-*")
        return found

    def start(self, code: str, *before: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*before, sys.executable, "-c", COUNTED.format(code=code)],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str = CALL, *before: str, **environment: str) -> Told:
        return told_by(self.start(code, *before, **environment))


def told_by(process: subprocess.Popen[str]) -> Told:
    printed, complaint = process.communicate()
    assert process.returncode == 0, complaint
    *lines, compiled = printed.splitlines()
    return Told("\n".join(lines), int(compiled), complaint.splitlines())


@pytest.fixture
def starter(tmp_path: Path) -> Starter:
    return Starter(tmp_path)


def test_a_first_start_says_once_that_it_compiles_and_the_next_compiles_nothing(
    starter: Starter,
) -> None:
    first = starter.run()
    assert (first.printed, first.compiled) == ("2.0", 2)
    assert first.said == [
        "valety_env: compiling for this machine, once for this version, some 10 s; kept in "
        f"{starter.folder}"
    ]
    assert starter.run() == ("2.0", 0, [])


def test_the_message_can_be_silenced_and_sent_elsewhere(starter: Starter) -> None:
    silent = "import logging; logging.getLogger('valety_env').setLevel('ERROR'); " + CALL
    assert starter.run(silent) == ("2.0", 2, [])
    elsewhere = "import logging, sys; logging.basicConfig(stream=sys.stdout); import tiny\n"
    told = starter.run(elsewhere + "tiny.outer(7.5)")
    assert told.printed.startswith("WARNING:valety_env:valety_env: compiling")
    assert told.said == []


def test_the_import_compiles_and_writes_nothing_and_loads_no_more_than_it_needs(
    starter: Starter,
) -> None:
    code = f"import sys, valety_env; print(set({OTHERS_OFTEN_ASKED_FOR!r}) & set(sys.modules))"
    assert starter.run(code) == ("set()", 0, [])
    assert list(starter.parent.iterdir()) == []


@pytest.mark.slow
def test_a_second_process_compiles_nothing_for_any_environment(starter: Starter) -> None:
    for name, code in ENVIRONMENTS.items():
        cold = starter.run(code)
        # Several environments share their kernels.
        assert len(cold.said) == (cold.compiled > 0), name
        assert starter.run(code) == ("", 0, []), name


@pytest.mark.slow
def test_json_on_standard_output_stays_pure_when_it_compiles(starter: Starter) -> None:
    command = [sys.executable, "-m", "valety_env", "evaluate", "heuristic"]
    done = subprocess.run(
        [*command, "--against", "random", "--deals", "8", "--json", "-"],
        env=starter.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    json.loads(done.stdout)
    assert done.stderr.count("compiling for this machine") == 1


def test_processes_that_start_at_once_leave_a_cache_that_is_whole(starter: Starter) -> None:
    # The same kernel for different types, which must not be taken for one another.
    values = {"7": "2.0", "7.5": "2.125", "np.uint8(7)": "2.0"}
    codes = [f"import numpy as np, tiny; print(float(tiny.outer({value})))" for value in values]
    processes = [starter.start(code) for code in [*codes, codes[0]]]
    for process, result in zip(processes, [*values.values(), "2.0"], strict=True):
        told = told_by(process)
        assert told.printed == result
        assert len(told.said) <= 1
    for code, result in zip(codes, values.values(), strict=True):
        assert starter.run(code) == (result, 0, [])
    kept = [path.name for path in starter.folder.iterdir()]
    assert len(kept) == 6
    assert not [name for name in kept if name.endswith(".tmp")]


@pytest.mark.parametrize("damage", ["cut", "empty", "garbage"])
def test_damaged_files_are_compiled_anew_and_replaced(starter: Starter, damage: str) -> None:
    starter.run()
    for path in starter.folder.iterdir():
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(
            {
                "cut": whole[:middle],
                "empty": b"",
                "garbage": whole[:middle] + bytes(64) + whole[middle + 64 :],
            }[damage]
        )
    assert starter.run()[:2] == ("2.0", 2)
    assert starter.run() == ("2.0", 0, [])


def without_power() -> tuple[str, ...]:
    return POWERLESS if os.geteuid() == 0 else ()


@NEEDS_PERMISSIONS
def test_a_cache_that_can_only_be_read_is_used(starter: Starter) -> None:
    starter.run()
    starter.folder.chmod(0o500)
    assert starter.run(CALL, *without_power()) == ("2.0", 0, [])
    more = starter.run("import tiny; print(tiny.outer(7.5))", *without_power())
    starter.folder.chmod(0o700)
    assert more[:2] == ("2.125", 2)
    (line,) = more.said
    assert "nothing can be kept: [Errno 13] Permission denied" in line
    assert len(list(starter.folder.iterdir())) == 2


@NEEDS_PERMISSIONS
def test_where_no_folder_can_be_made_it_is_said_and_all_works(starter: Starter) -> None:
    starter.parent.chmod(0o500)
    told = starter.run(CALL, *without_power())
    starter.parent.chmod(0o700)
    assert told[:2] == ("2.0", 2)
    (line,) = told.said
    assert "some 10 s at every start, as nothing can be kept: [Errno 13] Permission denied" in line
    assert str(starter.parent) in line
    assert "VALETY_ENV_CACHE_DIR names another folder" in line


@NEEDS_PERMISSIONS
def test_an_install_that_can_only_be_read_keeps_compiled_code_elsewhere(
    starter: Starter, tmp_path: Path
) -> None:
    install = tmp_path / "install"
    source = Path(valety_env.__file__).parent
    shutil.copytree(source, install / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    folders = [install, *(path for path in install.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    path = os.pathsep.join([str(install), str(tmp_path / "modules")])
    code = f"import valety_env; print(valety_env.__file__.startswith({str(install)!r})); {CALL}"
    for compiled in (2, 0):
        told = starter.run(code, *without_power(), PYTHONPATH=path)
        assert told[:2] == ("True\n2.0", compiled)
    for folder in folders:
        folder.chmod(0o700)
    assert not list(install.rglob("__pycache__"))


@POSIX
def test_a_write_that_fails_is_said_once_and_leaves_nothing(starter: Starter) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)); " + CALL
    told = starter.run(limited)
    assert told[:2] == ("2.0", 2)
    assert [line.startswith("valety_env: what is compiled is not kept") for line in told.said] == [
        False,
        True,
    ]
    assert list(starter.folder.iterdir()) == []


@POSIX
def test_only_the_user_can_write_to_the_cache(starter: Starter) -> None:
    starter.run("import os; os.umask(0); " + CALL)
    assert starter.folder.stat().st_mode & 0o777 == 0o700


@POSIX
def test_what_others_can_write_to_is_not_loaded(starter: Starter) -> None:
    starter.run()
    before = {path.name: path.stat().st_mtime_ns for path in starter.folder.iterdir()}
    starter.folder.chmod(0o777)
    told = starter.run()
    assert told[:2] == ("2.0", 2)
    (line,) = told.said
    assert f"nothing can be kept: others than its owner can write to {starter.folder}" in line
    assert {path.name: path.stat().st_mtime_ns for path in starter.folder.iterdir()} == before


def test_each_processor_has_its_own_code(starter: Starter) -> None:
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    starter.run()
    assert starter.run(**other)[:2] == ("2.0", 2)
    assert len(list(starter.folder.iterdir())) == 4
    assert starter.run(**other) == starter.run() == ("2.0", 0, [])


def test_folders_of_other_versions_go_when_they_were_not_used_for_a_month(
    starter: Starter,
) -> None:
    now, day = time.time(), 24 * 60 * 60
    for name, days in (("valety_env-old", 31), ("valety_env-new", 29), ("others", 99)):
        folder = starter.parent / name
        folder.mkdir()
        (folder / "file").touch()
        os.utime(folder, (now, now - days * day))
    starter.run()
    left = {path.name for path in starter.parent.iterdir()} - {f"valety_env-{digest()}"}
    assert left == {"valety_env-new", "others"}


def digest() -> str:
    return _cache.source_digest()


def test_use_keeps_a_folder_from_being_removed(starter: Starter) -> None:
    starter.run()
    long_ago = time.time() - 40 * 24 * 60 * 60
    os.utime(starter.folder, (long_ago, long_ago))
    assert starter.run().compiled == 0
    assert starter.folder.stat().st_mtime > long_ago


def test_a_user_without_a_home_keeps_it_among_what_is_temporary(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "VALETY_ENV_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _cache.cache_folder.__wrapped__().parent == tmp_path

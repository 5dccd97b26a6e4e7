"""The package in new environments: with the oldest and newest versions it supports, and alone.

Each environment is made by pip as a user makes it, with the wheel; the newest versions are those
that constraints.txt pins.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text("utf-8").splitlines()

# Those that meet Gymnasium and PettingZoo and need no torch.
MEETING_THE_FRAMEWORKS = [
    "test_env_batch.py",
    "test_env_illegal.py",
    "test_env_pettingzoo.py",
    "test_env_rewards.py",
    "test_env_state.py",
    "test_env_walk.py",
    "test_episode.py",
    "test_registries.py",
    "test_single.py",
    "test_vector.py",
]
# Those that meet numba, numpy, rich, tyro and pygame as well.
MEETING_THE_REST = [
    "test_agents.py",
    "test_cli.py",
    "test_golden.py",
    "test_observations.py",
    "test_render.py",
    "test_rng.py",
]
NO_SUPERSUIT = "could not import 'supersuit': No module named 'supersuit'"
NO_TORCH = "could not import 'torch': No module named 'torch'"
NO_REGISTRY = "this PettingZoo has no registry"
# Replaying records is the longest part, and no framework has a part in it.
NOT_THESE = "not record"


def run(command: list[str | Path], **options: Any) -> str:
    """Run a command; return its standard output, or fail with all it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def lowest(*extras: str) -> dict[str, str]:
    """Return the lowest versions that pyproject.toml allows, of the core and some extras."""
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    found = {}
    for requirement in map(Requirement, lines):
        (version,) = [s.version for s in requirement.specifier if s.operator == ">="]
        found[requirement.name] = version
    return found


def newest(name: str) -> str:
    """Return the version of a package that constraints.txt pins."""
    (version,) = [line.split("==")[1] for line in CONSTRAINTS if line.startswith(f"{name}==")]
    return version


class Environment:
    """A new virtual environment with the wheel and what it needs.

    Args:
        folder: for the environment; one that is there is removed.
        wheel: of the package.
        extras: of the package, as in "[render]".
        versions: of packages that shall not have the version that constraints.txt pins.
        tools: further packages.
    """

    def __init__(
        self,
        folder: Path,
        wheel: Path,
        extras: str = "",
        versions: dict[str, str] | None = None,
        tools: Collection[str] = (),
    ) -> None:
        chosen = versions or {}
        venv.create(folder, clear=True)
        self.folder = folder
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.script = self.python.with_name("valety-env")
        free = {canonicalize_name(name) for name in chosen}
        if "numba" in free:
            free.add("llvmlite")  # each numba has its own
        pins = [
            line
            for line in CONSTRAINTS
            if "==" in line and canonicalize_name(line.split("==")[0]) not in free
        ]
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(pins), "utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        pip += ["--python", str(self.python), "install", "--quiet", "--no-compile"]
        exact = [f"{name}=={version}" for name, version in chosen.items()]
        run([*pip, "-c", constraints, f"{wheel}{extras}", *exact, *tools])
        found = self.run(
            "import importlib.metadata, json, pathlib, valety_env",
            f"names = {[*chosen]}",
            "versions = {name: importlib.metadata.version(name) for name in names}",
            "print(json.dumps([valety_env.__file__, versions]))",
        )
        package, installed = json.loads(found)
        self.package = Path(package).parent
        assert self.package.is_relative_to(folder)
        assert {n: Version(v) for n, v in installed.items()} == {
            n: Version(v) for n, v in chosen.items()
        }
        # numba knows a source again by its path and time: an environment made anew in the same
        # folder finds the kernels that the one before it compiled.
        for source in self.package.rglob("*.py"):
            os.utime(source, (10**9, 10**9))

    def variables(self) -> dict[str, str]:
        """Return the environment variables for its Python: none that leads to other packages."""
        strangers = ("PYTHON", "PYTEST", "NUMBA")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strangers)}
        return kept | {
            "VALETY_ENV_CACHE_DIR": str(self.folder.parent / "kernels"),
            "COLUMNS": "120",
        }

    def run(self, *lines: str) -> str:
        """Run lines of Python; return what they print."""
        command = [self.python, "-W", "error::DeprecationWarning:valety_env", "-c"]
        return run([*command, "\n".join(lines)], cwd=self.folder, env=self.variables())

    def fails(self, *command: str | Path) -> str:
        """Run a command that must fail; return what it says on standard error."""
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.variables(),
        )
        assert done.returncode != 0, done.stdout
        return done.stderr.strip()

    def test(self, files: Collection[str], *options: str) -> tuple[int, set[str]]:
        """Run tests; return how many passed, and why others were skipped or failed as they must."""
        command = ["-m", "pytest", "-q", "-rsx", "-p", "no:cacheprovider", "--color=no"]
        tests = [f"tests/{file}" for file in files]
        printed = run(
            [self.python, *command, "-m", "not slow", *options, *tests],
            cwd=ROOT,
            env=self.variables(),
        )
        passed = re.search(r"^(\d+) passed\b", printed, re.MULTILINE)
        assert passed, printed
        skipped = re.findall(r"^SKIPPED \[\d+\] \S+: (.*)$", printed, re.MULTILINE)
        expected = re.findall(r"^XFAIL \S+ - (.*)$", printed, re.MULTILINE)
        return int(passed[1]), {*skipped, *expected}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For environments one after another, and the kernels that they share."""
    return tmp_path_factory.mktemp("versions")


@pytest.mark.parametrize("zoo", ["lowest", "newest"])
@pytest.mark.parametrize("gym", ["lowest", "newest"])
def test_the_environments_pass_their_tests_with_the_gymnasium_and_pettingzoo(
    wheel: Path, folder: Path, gym: str, zoo: str
) -> None:
    ends = {"lowest": lowest(), "newest": {n: newest(n) for n in ("gymnasium", "pettingzoo")}}
    versions = {"gymnasium": ends[gym]["gymnasium"], "pettingzoo": ends[zoo]["pettingzoo"]}
    made = Environment(folder / "venv", wheel, "[render]", versions, ["hypothesis", "pytest"])
    passed, reasons = made.test(MEETING_THE_FRAMEWORKS, "-k", NOT_THESE)
    assert passed > 800
    told = {NO_SUPERSUIT}
    if zoo == "lowest":
        told.add(NO_REGISTRY)
    if gym == "lowest":
        told.add("this Gymnasium leaves out the first step after a reset in a step")
    assert reasons == told
    examples, _ = made.test(["test_readme.py", "test_examples.py"], "-k", "runs")
    assert examples >= 10


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the lowest versions are those of the lowest Python"
)
def test_the_lowest_versions_of_all_that_is_needed_do(wheel: Path, folder: Path) -> None:
    versions = lowest("render")
    made = Environment(folder / "venv", wheel, "[render]", versions, ["hypothesis", "pytest"])
    passed, reasons = made.test([*MEETING_THE_FRAMEWORKS, *MEETING_THE_REST], "-k", NOT_THESE)
    assert passed > 1000
    assert reasons >= {NO_SUPERSUIT, NO_REGISTRY, NO_TORCH}


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package with what it needs, and nothing else."""
    return Environment(tmp_path_factory.mktemp("alone") / "venv", wheel)


# What a new user does first.
USE = """
import json, subprocess, sys
import numpy as np
import pettingzoo, gymnasium
import valety_env
from valety_env import polignac_v0, valety_v0

def play(env):
    env.reset(seed=7)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        done = termination or truncation
        env.step(None if done else int(np.flatnonzero(observation["action_mask"])[0]))
    env.close()

play(valety_v0.env(render_mode="ansi"))
play(polignac_v0.env(num_players=5, episode="deal"))
play(pettingzoo.make("aec", "valety/valety-v0"))
play(pettingzoo.make("aec", "valety/polignac-v0", num_players=5))
env = gymnasium.make("valety/Valety-v0", opponent="random")
env.reset(seed=7)
env.step(int(np.flatnonzero(env.unwrapped.action_masks())[0]))
batch = valety_env.vector.SelfPlayEnv("valety", num_envs=8, seed=0)
batch.reset()
batch.step(batch.sample())
command = [sys.executable, "-m", "valety_env.cli", "evaluate", "heuristic", "--against", "random"]
done = subprocess.run(
    [*command, "--deals", "50", "--matches", "2", "--json", "-"], capture_output=True, text=True
)
assert done.returncode == 0, done.stderr
assert json.loads(done.stdout)["results"][0]["points_per_deal"] > 0
"""


def test_with_no_framework_installed_the_package_plays_and_evaluates(alone: Environment) -> None:
    alone.run(USE)
    info = run([alone.script, "info"], env=alone.variables(), cwd=alone.folder)
    assert f"valety_env {PROJECT['version']}" in re.sub(r"\s+", " ", info)


# The parts that need more than the core, and the extra that each must name.
PARTS = {
    "agents.neural": "train",
    "arena.reports.figures": "report",
    "arena.reports.page": "report",
    "cuda": "cuda",
    "integrations.cleanrl": "train",
    "integrations.ray_cluster": "rllib",
    "integrations.rllib": "rllib",
    "integrations.sb3": "sb3",
    "learning.distributions": "train",
}


def test_each_module_can_be_imported_or_names_the_extra_that_it_needs(alone: Environment) -> None:
    files = [path.relative_to(alone.package) for path in sorted(alone.package.rglob("*.py"))]
    names = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
    # Those of the peers run under Pythons of their own, which have nothing of ours.
    names = [name for name in names if not name.startswith("bench.peer_programs.play_")]
    modules = [f"valety_env.{name}" for name in names if name not in ("__init__", "__main__")]
    printed = alone.run(
        "import importlib, json",
        "failed = {}",
        f"for name in {modules}:",
        "    try:",
        "        importlib.import_module(name)",
        "    except ModuleNotFoundError as error:",
        "        failed[name] = str(error)",
        "print(json.dumps(failed))",
    )
    failed = json.loads(printed)
    assert len(modules) > 40
    parts = [*failed]
    # A package that cannot be imported takes its modules with it.
    parts = [name for name in parts if not any(name.startswith(f"{other}.") for other in parts)]
    assert sorted(parts) == [f"valety_env.{name}" for name in sorted(PARTS)]
    for name, extra in PARTS.items():
        told = failed[f"valety_env.{name}"]
        command = re.escape(f"pip install 'valety-env[{extra}]'")
        assert re.fullmatch(rf"valety_env\.{re.escape(name)} needs \w+: {command}", told)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["evaluate", "checkpoint:runs/a", "--against", "random"], "train"),
        (["evaluate", "random", "--against", "onnx:a.onnx"], "onnx"),
        (["evaluate", "sb3:a.zip", "--trust"], "sb3"),
        (["evaluate", "rllib:runs/a", "--trust"], "rllib"),
        (["export", "checkpoint:runs/a", "a.onnx"], "onnx,train"),
        (["tournament", "random", "heuristic", "--report", "out.html"], "report"),
        (["tournament", "random", "heuristic", "--ray"], "rllib"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_names_the_extra_that_an_agent_needs_in_one_line(
    alone: Environment, command: list[str], extra: str
) -> None:
    told = alone.fails(alone.script, *command)
    assert re.fullmatch(rf"valety-env: .* pip install 'valety-env\[{extra}\]'", told)


def test_drawing_names_its_extra(alone: Environment) -> None:
    printed = alone.run(
        "import json",
        "from valety_env import polignac_v0, valety_v0",
        "from valety_env.single import SingleEnv, VectorSingleEnv",
        "told = []",
        "for make in (valety_v0.env, polignac_v0.env, SingleEnv, VectorSingleEnv):",
        "    for mode in ('human', 'rgb_array'):",
        "        if (make, mode) == (VectorSingleEnv, 'human'):",
        "            continue",
        "        try:",
        "            env = make(render_mode=mode)",
        "            env.reset(seed=0)",
        "            env.render()",
        "        except ImportError as error:",
        "            told.append(str(error))",
        "print(json.dumps(told))",
    )
    needs = "windows and pictures need pygame, which is not installed: "
    assert json.loads(printed) == [needs + "pip install 'valety-env[render]'"] * 7


SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for name in ("examples", "training")
    for path in (ROOT / name).glob("*.py")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs_or_says_in_one_line_what_to_install(alone: Environment, script: str) -> None:
    needs = re.findall(
        r"^\s*(?:import|from) (torch|sb3_contrib|ray)\b",
        (ROOT / script).read_text("utf-8"),
        re.MULTILINE,
    )
    if not needs:
        run([alone.python, ROOT / script, "--help"], env=alone.variables(), cwd=alone.folder)
        return
    told = alone.fails(alone.python, ROOT / script, "--help")
    assert re.fullmatch(r"\w+ is missing: pip install 'valety-env\[(train|sb3|rllib)\]'", told)

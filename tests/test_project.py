"""The project itself: versions, the wheel, what an import loads, what the files do not name."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import valety_env

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def run(command: list[str | Path], **options: Any) -> str:
    """Run a command; return its standard output, or fail with all it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def committed_files() -> list[Path]:
    """Return the files git tracks; in a copy without git, all files."""
    if (ROOT / ".git").exists():
        names = run(["git", "ls-files", "-z"], cwd=ROOT).split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    hidden = re.compile(r"/(\.(?!ci)[^/]*|__pycache__)(/|$)")
    files = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in files if not hidden.search("/" + str(path.relative_to(ROOT)))]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_torch_is_pinned_to_what_was_tested() -> None:
    assert pins()["torch"] == "2.13.0"


def test_each_dependency_is_pinned() -> None:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"].values()
    named = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {re.match(r"[A-Za-z0-9_-]+", line)[0].lower() for line in named}  # type: ignore[index]
    assert names - {"valety-env"} - pins().keys() == set()


def test_the_version_is_one() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    cited = re.findall(r"^version: (\S+)$", citation, re.MULTILINE)
    assert cited == [PYPROJECT["project"]["version"]] == [valety_env.__version__]


def test_the_changelog_has_a_place_for_what_comes() -> None:
    assert "## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_no_file_names_a_machine() -> None:
    # Written so that this file does not name them either.
    places = re.compile(
        r"(?<![\w.~)}])/(?:work|root|opt|home|Users|mnt)(?:/|\b)"
        r"|(?:pypi|pythonhosted|npmjs|debian)\.(?:org|com)\b"
        r"|\b(?:localhost|127\.0\.0\.1):\d"
    )
    named = []
    for path in committed_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if found := places.search(line):
                named.append(f"{path.relative_to(ROOT)}:{number}: {found[0]}")
    assert named == []


@pytest.mark.parametrize(
    "package", ["torch", "numba.cuda", "numba_cuda", "pygame", "supersuit", "tensorboard"]
)
def test_importing_the_package_does_not_load(package: str) -> None:
    code = f"import sys, valety_env; print({package!r} in sys.modules)"
    assert run([sys.executable, "-c", code]) == "False\n"


def test_a_guard_of_the_imports_fails_when_it_should(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "src"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    lint = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
    ]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    run(lint, cwd=tmp_path, env=environment)
    for file, line, contract in [
        ("cards.py", "import valety_env.engine", "Imports go one way BROKEN"),
        ("unlisted.py", "", "Imports go one way BROKEN"),
        ("engine.py", "def f():\n    import torch", "torch is imported only by what learns BROKEN"),
        ("engine.py", "import gymnasium", "The games know no framework BROKEN"),
        ("view.py", "import pygame", "pygame is imported only by the renderers BROKEN"),
    ]:
        path = tmp_path / "src" / "valety_env" / file
        before = path.read_text("utf-8") if path.exists() else None
        path.write_text(f"{before or ''}\n{line}\n", "utf-8")
        done = subprocess.run(
            lint, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, (file, line)
        assert contract in re.sub(r"\s+", " ", done.stdout), (file, line, done.stdout)
        if before is None:
            path.unlink()
        else:
            path.write_text(before, "utf-8")


TIMED = """
import time

def test_first():
    assert {first}

def test_second():
    time.sleep(60)

def test_third():
    pass
"""


@pytest.mark.parametrize(("first", "code"), [("True", 0), ("False", 1)])
def test_a_time_limit_is_no_failure_but_a_failed_test_is(
    tmp_path: Path, first: str, code: int
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_timed.py").write_text(TIMED.format(first=first), "utf-8")
    command = [sys.executable, "-m", "pytest", "--minutes=0.05", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert "1 of 3 tests ran, 2 did not fit" in done.stdout
    assert ("1 passed" if code == 0 else "1 failed") in done.stdout


def test_the_wheel_has_the_package_whole_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    tracked = [path for path in committed_files() if path.is_relative_to(source)]
    assert names >= {str(path.relative_to(source)) for path in tracked}
    assert "valety_env/py.typed" in names
    assert all(name.startswith("valety_env/") for name in names)
    assert not any(name.endswith((".pyc", ".patch")) or "/test" in name for name in names)

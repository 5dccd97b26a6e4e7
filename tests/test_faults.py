"""The planted faults are in order, and the tool that plants them tells good from bad."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATCHES = sorted((ROOT / "tests" / "faults").glob("*.patch"))


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_planted_fault_applies_and_names_tests_that_exist(patch: Path) -> None:
    done = git(ROOT, "apply", "--check", str(patch))
    assert done.returncode == 0, done.stderr
    tests = re.findall(r"^# test:\s*(\S+?)::(\S+)$", patch.read_text("utf-8"), re.MULTILINE)
    assert tests, "the header needs '# test: FILE::TEST'"
    for file, test in tests:
        function = test.split("::")[-1].split("[")[0]
        assert f"def {function}(" in (ROOT / file).read_text("utf-8")


# A tiny project: one function, one test that notices a change of it, one that does not.
SOURCE = "def double(x):\n    return 2 * x\n"
TESTS = """
import pytest
from thing import double

def test_double():
    assert double(3) == 6

@pytest.mark.parametrize("x", [0, 1])
def test_even(x):
    assert double(x) % 2 == 0

def test_blind():
    double(3)
"""
DIFF = """diff --git a/src/thing.py b/src/thing.py
--- a/src/thing.py
+++ b/src/thing.py
@@ -1,2 +1,2 @@
 def double(x):
-    return 2 * x
+    return {}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("src", "tests/faults"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/thing.py").write_text(SOURCE)
    (tmp_path / "tests/test_thing.py").write_text(TESTS)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    return tmp_path


def run_faults(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/faults.py"), "--root", str(project), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_fault(project: Path, name: str, tests: list[str], diff: str) -> None:
    header = "".join(f"# test: tests/test_thing.py::{test}\n" for test in tests)
    (project / "tests/faults" / f"{name}.patch").write_text(f"# A fault.\n{header}\n{diff}")


def test_a_noticed_fault_is_a_success(project: Path) -> None:
    write_fault(project, "triple", ["test_double", "test_even"], DIFF.format("3 * x"))
    write_fault(project, "odd", ["test_even[1]"], DIFF.format("1 * x"))
    done = run_faults(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "triple: noticed" in done.stdout
    assert "2 faults noticed, 0 not" in done.stdout
    assert (project / "src/thing.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("tests", "diff", "complaint"),
    [
        (["test_blind"], DIFF.format("3 * x"), "WENT UNNOTICED: the tests pass"),
        (["test_double", "test_blind"], DIFF.format("3 * x"), "UNNOTICED by tests/test_thing.py::"),
        (["test_double"], DIFF.format("3 * x").replace("2 * x", "4 * x"), "does not apply"),
        (["test_double"], DIFF.format("(("), "not with failed tests"),
        (["test_double"], DIFF.format("3 * y"), "fails by accident: NameError: name 'y'"),
        (["test_double"], DIFF.format("double(1, x)"), "fails by accident: takes 1 positional"),
        (["test_absent"], DIFF.format("3 * x"), "must pass before a fault"),
        ([], DIFF.format("3 * x"), "its header needs"),
    ],
    ids=[
        "blind",
        "one blind of two",
        "stale",
        "does not import",
        "misnamed",
        "miscalled",
        "no such test",
        "no test",
    ],
)
def test_a_fault_that_shows_nothing_is_a_failure(
    project: Path, tests: list[str], diff: str, complaint: str
) -> None:
    write_fault(project, "fault", tests, diff)
    done = run_faults(project)
    assert done.returncode == 1
    assert complaint in done.stdout + done.stderr


def test_faults_are_chosen_by_name(project: Path) -> None:
    write_fault(project, "triple", ["test_double"], DIFF.format("3 * x"))
    write_fault(project, "blind", ["test_blind"], DIFF.format("3 * x"))
    done = run_faults(project, "tri")
    assert done.returncode == 0
    assert "1 faults noticed, 0 not" in done.stdout
    assert run_faults(project, "absent").returncode == 1

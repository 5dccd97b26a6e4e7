"""Plant each fault of tests/faults/ in a copy of the project and see that its tests fail.

A guard is worth something when it has been seen to fail. `tests/faults/NAME.patch` begins with the
lines below, then comes a unified diff as `git diff` prints it, paths from the root:

    # What is wrong, in a sentence or two.
    # test: tests/test_rules.py::test_V7_a_seat_that_can_follow_suit_must
    # jit: off
    # venv: .venv-rllib

`test:` names a test that must fail, once or more; `jit: off`, which may be left out, runs them as
plain Python, which is quicker where little is computed; `venv:`, which may be left out, runs them
in that virtual environment of the project's. A fault is noticed when pytest ends with 1 (tests
failed) and reports each named test as failed: an error of collection or of a fixture is not enough,
nor a patch that has gone stale and calls what is not there. Before that, each named test must pass
without the fault.

    python tools/faults.py             # all
    python tools/faults.py jack suit   # those whose name contains one of the words
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = re.compile(r"^# (test|jit|venv):\s*(.*?)\s*$", re.MULTILINE)

# What a patch stumbles over that names or calls what has changed since.
ACCIDENT = re.compile(
    r"^E .*?(NameError: .*|takes \d+ positional .*|too many positional .*"
    r"|missing a required argument.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Fault:
    """One patch: its name, its text, the tests that must notice it, and how these run."""

    name: str
    patch: Path
    tests: tuple[str, ...]
    jit: bool
    python: str


def read_fault(patch: Path) -> Fault:
    """Read the header of a patch; raises ValueError when it names no test."""
    header = re.split(r"^(?:diff |--- )", patch.read_text(encoding="utf-8"), flags=re.MULTILINE)[0]
    fields = HEADER.findall(header)
    tests = tuple(value for key, value in fields if key == "test")
    if not tests or not all("::" in test for test in tests):
        raise ValueError(f"{patch.name}: its header needs '# test: FILE::TEST'")
    jit = [value for key, value in fields if key == "jit"]
    if jit not in ([], ["off"]):
        raise ValueError(f"{patch.name}: '# jit:' can only be 'off'")
    venvs = [value for key, value in fields if key == "venv"]
    python = patch.resolve().parents[2].joinpath(*venvs[:1], "bin", "python")
    if venvs and not python.exists():
        raise ValueError(f"{patch.name}: its tests run in {venvs[0]}, which is not there")
    return Fault(patch.stem, patch, tests, not jit, str(python) if venvs else sys.executable)


def copy_tree(root: Path, target: Path) -> None:
    """Copy the files that git tracks, as they are in the work tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        source = root / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def apply(copy: Path, patch: Path, *options: str) -> str:
    """Apply a patch in the copy; return git's complaint, empty when all went well."""
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(copy.parent)}
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *options, str(patch)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stderr.strip() or "git apply failed"


def run_tests(copy: Path, tests: Sequence[str], jit: bool, python: str) -> tuple[int, str]:
    """Run the tests on the copy's sources; return pytest's exit code and what it printed."""
    environment = os.environ | {
        "COLUMNS": "300",
        "PYTHONPATH": str(copy / "src"),
        # A .pyc is taken for current when size and second of its source agree; a fault keeps both.
        "PYTHONDONTWRITEBYTECODE": "1",
        # Each fault compiles anew: what it leaves goes with the copy.
        "VALETY_ENV_CACHE_DIR": str(copy.parent / "cache"),
    }
    environment.pop("PYTEST_ADDOPTS", None)
    if not jit:
        environment["NUMBA_DISABLE_JIT"] = "1"
    command = [python, "-m", "pytest", "-q", "-rfE", "--tb=short", "--color=no"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *tests],
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def failed(test: str, output: str) -> bool:
    """Return whether pytest's summary reports the test, or one of its parametrisations, failed."""
    return bool(re.search(rf"^FAILED {re.escape(test)}(?:\[.*|\s.*)?$", output, re.MULTILINE))


def tail(output: str, lines: int = 15) -> str:
    """Return the last lines, indented."""
    return "\n".join("    " + line for line in output.strip().splitlines()[-lines:])


def plant(copy: Path, fault: Fault) -> str:
    """Plant a fault, run its tests, take it out again; return what is wrong, empty for nothing."""
    complaint = apply(copy, fault.patch)
    if complaint:
        return f"does not apply:\n{tail(complaint)}"
    code, output = run_tests(copy, fault.tests, fault.jit, fault.python)
    complaint = apply(copy, fault.patch, "--reverse")
    if complaint:
        raise RuntimeError(f"{fault.name} cannot be taken out again: {complaint}")
    missed = [test for test in fault.tests if not failed(test, output)]
    if code == 0:
        return "WENT UNNOTICED: the tests pass with it"
    if code != 1:
        return f"pytest ended with {code}, not with failed tests (1):\n{tail(output)}"
    if missed:
        return f"WENT UNNOTICED by {', '.join(missed)}:\n{tail(output)}"
    accident = ACCIDENT.search(output)
    return f"fails by accident: {accident[1]}" if accident else ""


def check(root: Path, faults: Sequence[Fault], jobs: int) -> int:
    """Check the faults, print a line for each; return how many are not as they should be."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy = Path(folder).resolve() / str(number) / "tree"
            copy_tree(root, copy)
            copies.put(copy)

        def work(fault: Fault) -> str:
            copy = copies.get()
            try:
                return plant(copy, fault)
            finally:
                copies.put(copy)

        first = Path(folder).resolve() / "0" / "tree"
        for jit, python in sorted({(fault.jit, fault.python) for fault in faults}, reverse=True):
            alike = [fault for fault in faults if (fault.jit, fault.python) == (jit, python)]
            tests = sorted({test for fault in alike for test in fault.tests})
            how = "compiled" if jit else "as plain Python"
            print(f"without a fault, {how}: {len(tests)} tests", end=" ", flush=True)
            code, output = run_tests(first, tests, jit, python)
            print("pass" if code == 0 else f"do not pass:\n{tail(output, 40)}", flush=True)
            wrong += code != 0
        if wrong:
            print("The tests must pass before a fault can show anything.")
            return wrong

        with ThreadPoolExecutor(jobs) as pool:
            for fault, complaint in zip(faults, pool.map(work, faults), strict=True):
                print(f"{fault.name}: {complaint or 'noticed'}", flush=True)
                wrong += bool(complaint)
    print(f"{len(faults) - wrong} faults noticed, {wrong} not")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only patches whose name contains one of these")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project (default: this one)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time (default: cores)"
    )
    options = parser.parse_args(arguments)
    patches = sorted((options.root / "tests" / "faults").glob("*.patch"))
    names = options.names
    chosen = [p for p in patches if not names or any(name in p.stem for name in names)]
    if not chosen:
        print("no such fault" if names else "no faults in tests/faults/", file=sys.stderr)
        return 1 if names else 0
    try:
        faults = [read_fault(patch) for patch in chosen]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return int(check(options.root.resolve(), faults, min(options.jobs, len(faults))) > 0)


if __name__ == "__main__":
    sys.exit(main())

"""What all tests share: no screen, repeatable hypothesis runs, a limit of time on request."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import pytest

os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["SDL_AUDIODRIVER"] = "dummy"
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

# Compiled and as plain Python the same properties hold; the latter runs thousands of times slower.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

hypothesis.settings.register_profile(
    "compiled", deadline=None, derandomize=True, database=None, max_examples=100
)
hypothesis.settings.register_profile(
    "plain",
    hypothesis.settings.get_profile("compiled"),
    max_examples=10,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# Looks for new counterexamples: pytest --hypothesis-profile=search
hypothesis.settings.register_profile(
    "search", deadline=None, derandomize=False, database=None, max_examples=2000
)
hypothesis.settings.load_profile("plain" if PLAIN else "compiled")


class TimeLimit:
    """Stops the run after so many minutes; tests left over are counted, and are no failure."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.up = False
        self.collected = 0
        self.finished = 0

    def alarm(self, signum: int, frame: FrameType | None) -> None:
        self.up = True
        raise KeyboardInterrupt(f"the time limit of {self.minutes:g} minutes is up")

    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGALRM, self.alarm)
        signal.setitimer(signal.ITIMER_REAL, self.minutes * 60)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = len(session.items)

    def pytest_runtest_logfinish(self) -> None:
        self.finished += 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.up and session.exitstatus == pytest.ExitCode.INTERRUPTED:
            failed = session.testsfailed > 0
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if failed else pytest.ExitCode.OK
        yield

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.up:
            left = self.collected - self.finished
            terminalreporter.section("time limit")
            terminalreporter.line(
                f"{self.minutes:g} minutes are up: {self.finished} of {self.collected} tests ran, "
                f"{left} did not fit, which is no failure"
            )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minutes",
        type=float,
        metavar="M",
        help="stop after M minutes (without -n); tests that did not fit are no failure",
    )


def pytest_configure(config: pytest.Config) -> None:
    minutes = config.getoption("minutes")
    if minutes is not None:
        config.pluginmanager.register(TimeLimit(minutes), "time-limit")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as users install it, built once."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--quiet", "--wheel-dir", str(folder), str(Path(__file__).resolve().parent.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built

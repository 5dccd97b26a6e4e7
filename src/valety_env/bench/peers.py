"""The peers: each has a virtual environment of its own and a process that waits for its turn."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from valety_env._cache import cache_folder
from valety_env.bench.cases import NEAREST
from valety_env.bench.machine import one_core
from valety_env.bench.measure import Case, CaseError, Measure, NotRun

Say = Callable[[str], None]
"""Called with a line that says what is being done."""

_PROGRAMS = Path(__file__).parent / "peer_programs"
_STAMP = "installed.json"
# Seconds: until a program says what it has, for what an answer takes beyond the time that was asked
# for (the first has to compile), and for an installation.
START_PATIENCE = 120.0
ANSWER_PATIENCE = 120.0
INSTALL_PATIENCE = 1800.0


class PeerError(Exception):
    """A peer can't be had; the message says why, in one line."""


@dataclass(frozen=True)
class Peer:
    """Another library of environments.

    Attributes:
        name: as in `--peers`.
        title: what it calls itself.
        requirements: what pip installs, pinned.
        program: in `peer_programs/`; None: it can't be installed from its package alone.
        why_not: why it can't.
    """

    name: str
    title: str
    requirements: tuple[str, ...] = ()
    program: str | None = None
    why_not: str = ""


_NUMPY = "numpy==2.4.6"
PEERS = {
    peer.name: peer
    for peer in (
        Peer("openspiel", "OpenSpiel", ("open_spiel==2.0.2", _NUMPY), "play_open_spiel.py"),
        Peer("pgx", "PGX", ("pgx==2.6.0", "jax==0.10.2", "jaxlib==0.10.2", _NUMPY), "play_pgx.py"),
        Peer("rlcard", "RLCard", ("rlcard==1.2.0", _NUMPY), "play_rlcard.py"),
        Peer(
            "pettingzoo",
            "PettingZoo Classic",
            (
                "pettingzoo[classic]==1.27.0",
                "open_spiel==2.0.2",
                "rlcard==1.2.0",
                "shimmy==2.0.1",
                _NUMPY,
            ),
            "play_pettingzoo.py",
        ),
        Peer("envpool", "EnvPool", ("envpool==1.2.5", _NUMPY), "play_envpool.py"),
        Peer(
            "pufferlib",
            "PufferLib",
            why_not="its package has no wheels: building it needs PyTorch and other files",
        ),
    )
}


def peers_folder() -> Path:
    """Return where the virtual environments of peers are: beside the compiled kernels.

    `VALETY_ENV_CACHE_DIR` moves both.
    """
    return cache_folder().parent / "peers"


def _last_words(text: str) -> str:
    """Return the line of a failed program's output that says most, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it says nothing"])[-1]


def _run(command: Sequence[str | Path]) -> None:
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=INSTALL_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(f"it can't be installed: {error}") from None
    if done.returncode:
        raise PeerError(f"it can't be installed: {_last_words(done.stdout)}")


def install(peer: Peer, folder: Path, say: Say = lambda line: None) -> Path:
    """Install a peer into `folder/NAME`, unless it is there already.

    Args:
        peer: what to install.
        folder: of all peers' environments, made if needed.
        say: told before it begins to install.

    Returns:
        the Python of the environment.

    Raises:
        PeerError: if it can't be installed.
    """
    if peer.program is None:
        raise PeerError(f"it can't be installed: {peer.why_not}")
    home = folder / peer.name
    scripts = home / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / Path("python").with_suffix(".exe" if sys.platform == "win32" else "")
    # What is there must have been installed to the end, by this Python.
    wanted = {"requirements": list(peer.requirements), "python": sys.version}
    stamp = home / _STAMP
    with contextlib.suppress(OSError, ValueError):
        if json.loads(stamp.read_text("utf-8")) == wanted and python.exists():
            return python
    say(f"installing {peer.title} into {home}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", home])
        pip: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--quiet",
        ]
        _run(pip + list(peer.requirements))
        stamp.write_text(json.dumps(wanted), "utf-8")
    except OSError as error:
        raise PeerError(f"it can't be installed: {error}") from None
    return python


class PeerProcess:
    """A peer's program, running; used as a context, since it must be ended.

    Args:
        command: what to run.
        patience: seconds to wait for its first words.

    Attributes:
        cases: what it has to measure, as the program tells it.
        versions: of its packages.

    Raises:
        PeerError: if it doesn't start.
    """

    def __init__(self, command: Sequence[str | Path], patience: float = START_PATIENCE) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._ended = ""
        try:
            # What is started on one core stays there, with all its threads.
            with one_core():
                self._process = subprocess.Popen(
                    [str(word) for word in command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._complaints,
                    text=True,
                    encoding="utf-8",
                )
        except OSError as error:
            self._complaints.close()
            raise PeerError(f"it doesn't start: {error}") from None
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            greeting = self._hear(patience)
        except CaseError as error:
            self.close()
            raise PeerError(f"it doesn't start: {error}") from None
        self.cases: list[dict[str, str]] = greeting["cases"]
        self.versions: dict[str, str] = greeting["versions"]

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _end(self, why: str) -> CaseError:
        """Kill the process; from now on every case fails for this reason."""
        self._ended = why
        self._process.kill()
        self._process.wait()
        return CaseError(why)

    def _hear(self, patience: float) -> dict[str, Any]:
        """Return its next words.

        Raises:
            CaseError: if there are none, or none in time.
        """
        until = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise self._end(f"it has not answered for {patience:.1f} s") from None
            if line is None:
                code = self._process.wait()
                self._complaints.seek(0)
                said = _last_words(self._complaints.read().decode("utf-8", "replace"))
                raise self._end(f"it ended with {code}: {said}")
            # A package may greet while it is imported: only objects are answers.
            if line.startswith("{"):
                with contextlib.suppress(ValueError):
                    return dict(json.loads(line))

    def measure(self, name: str, seconds: float) -> tuple[int, float]:
        """Let it measure one of its cases; returns steps and the seconds they took.

        Raises:
            CaseError: if it can't.
        """
        if self._ended:
            raise CaseError(self._ended)
        assert self._process.stdin is not None
        # If it has ended, reading its answer tells why.
        with contextlib.suppress(OSError):
            request = {"measure": name, "seconds": seconds}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        answer = self._hear(seconds + ANSWER_PATIENCE)
        if "error" in answer:
            raise CaseError(str(answer["error"]).partition("\n")[0])
        return int(answer["steps"]), float(answer["seconds"])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._complaints.close()


@dataclass(frozen=True)
class Running:
    """The peers that run.

    Attributes:
        cases: of all of them, their names as PEER/CASE.
        versions: peer → package → version.
        not_run: the peers that don't run.
    """

    cases: list[Case]
    versions: dict[str, dict[str, str]]
    not_run: list[NotRun]


@contextlib.contextmanager
def running_peers(
    peers: Sequence[Peer], folder: Path, seed: int, say: Say = lambda line: None
) -> Iterator[Running]:
    """Install and start peers; what can't be had is told, and the rest goes on.

    Args:
        peers: which.
        folder: of their virtual environments.
        seed: of their random choices.
        say: told what is installed.
    """
    running = Running([], {}, [])
    with contextlib.ExitStack() as stack:
        for peer in peers:
            try:
                python = install(peer, folder, say)
                # -s: nothing of the user's own packages.
                process = stack.enter_context(
                    PeerProcess([python, "-s", _PROGRAMS / str(peer.program), str(seed)])
                )
            except PeerError as error:
                running.not_run.append(NotRun(peer.name, str(error)))
                continue
            running.versions[peer.name] = process.versions
            running.cases.extend(_case(peer, process, told) for told in process.cases)
        yield running


def _case(peer: Peer, process: PeerProcess, told: dict[str, str]) -> Case:
    def start() -> Measure:
        return partial(process.measure, told["name"])

    return Case(
        f"{peer.name}/{told['name']}",
        f"{peer.title}: {told['title']}",
        told["kind"],
        start,
        unit="steps",
        note=told["note"],
        over=NEAREST[told["kind"]],
    )

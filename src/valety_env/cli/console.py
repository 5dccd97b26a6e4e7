"""What the commands share: standard output and standard error, progress, files of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class InputError(ValueError):
    """What the user gave is wrong; the message says what is allowed."""


def out() -> Console:
    """Return where results go."""
    return Console(highlight=False)


def err() -> Console:
    """Return where all else goes."""
    return Console(stderr=True, highlight=False)


class Bar:
    """Progress on standard error of work that takes longer than a moment.

    A terminal gets a bar, anything else a line now and then.
    """

    patience = 1.0
    pause = 15.0

    def __init__(self) -> None:
        self._console = err()
        self._started = time.monotonic()
        self._said = self._started
        self._bar: Progress | None = None
        self._what = ""
        self._updated = self._since = self._started
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, what: str, done: float, total: int) -> None:
        """Show that `done` of `total` of `what` is done."""
        now = time.monotonic()
        if what != self._what:
            # It was begun when what came before it had ended.
            self._what, self._since, self._task = what, self._updated, None
        self._updated = now
        if now - self._started < self.patience:
            return
        rate = done / max(now - self._since, 1e-3)
        if self._console.is_terminal:
            if self._bar is None:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                    TextColumn("{task.fields[rate]:,.1f}/s"),
                    TimeRemainingColumn(),
                    console=self._console,
                    transient=True,
                )
                self._bar.start()
            if self._task is None:
                for old in self._bar.task_ids:
                    self._bar.remove_task(old)
                self._task = self._bar.add_task(what, total=total, rate=0.0)
            self._bar.update(self._task, completed=done, total=total, rate=rate)
        elif now - self._said >= self.pause:
            self._said = now
            line = f"{what} {done:.0f}/{total}"
            if rate > 0:
                line += f", {rate:,.1f}/s, about {(total - done) / rate:.0f} s left"
            say(self._console, line)


def say(console: Console, text: str) -> None:
    """Print a text as it is, without wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def check_writable(target: str | None, what: str = "--json") -> None:
    """Refuse a file that can't be written before any work is done."""
    if target is None or target == "-":
        return
    path = Path(target)
    folder = path.parent
    if path.is_dir():
        also = ", or -" if what == "--json" else ""
        raise InputError(f"{what} {target}: it is a folder; name a file{also}")
    if not folder.is_dir():
        raise InputError(f"{what} {target}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{what} {target}: it can't be written")


def write_json(value: dict[str, Any], target: str) -> None:
    """Write JSON into a file, or with - to standard output."""
    text = json.dumps(value, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(target).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def input_errors() -> Iterator[None]:
    """Turn what is raised while input is read and checked into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, ModuleNotFoundError) as error:
        raise InputError(str(error)) from error

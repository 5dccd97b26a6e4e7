"""What a training run shows on the terminal, and how it is asked to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

# Where nobody watches, in a log file, a line comes so often.
LOG_SECONDS = 30.0


class StopRequest:
    """Turns the first Ctrl-C, or a request to terminate, into a wish; a second one interrupts.

    Used as a context, since it changes what the signals do.

    Attributes:
        requested: whether the run should end after what it is doing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def minutes_and_seconds(seconds: float) -> str:
    """Return a span of time as m:ss."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"


class RunProgress:
    """One line that shows how far a run is: a bar on a terminal, else a line now and then.

    Used as a context.
    """

    def __init__(self) -> None:
        console = Console()
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), console=console
            )
            self._task = self._bar.add_task("starting", total=1.0)
        self._start = self._last_line = time.monotonic()
        self._measured = ""

    def __enter__(self) -> RunProgress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def measured(self, points: Mapping[str, float]) -> None:
        """Show from now on what was measured: opponent → points a deal."""
        self._measured = "".join(
            f", {value:+.2f} against {opponent}" for opponent, value in points.items()
        )

    def update(self, fraction: float, steps: int, rate: float) -> None:
        """Show how far the run is.

        Args:
            fraction: of the whole, 0…1; more counts as 1.
            steps: done.
            rate: steps a second.
        """
        now = time.monotonic()
        fraction = min(max(fraction, 1e-9), 1.0)
        left = (now - self._start) * (1 / fraction - 1)
        line = (
            f"{steps:,} steps, {rate:,.0f} steps/s, {minutes_and_seconds(left)} left"
            f"{self._measured}"
        )
        if self._bar:
            self._bar.update(self._task, completed=fraction, description=line)
        elif now - self._last_line >= LOG_SECONDS:
            self._last_line = now
            print(f"{fraction:4.0%} {line}", flush=True)

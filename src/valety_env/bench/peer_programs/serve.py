"""What every program here shares: it measures when it is asked to, over a pipe, one JSON a line.

The programs run under the Python of a peer's own virtual environment, so they import nothing but
the standard library and that peer. A program is started with a seed, and says first what it has,

    {"cases": [{"name": …, "title": …, "kind": "batch" or "scalar", "note": …}, …], "versions": {…}}

and answers every `{"measure": NAME, "seconds": S}` by `{"steps": n, "seconds": t}` or by
`{"error": WHY}`. At the end of its input it ends.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Steps = Iterator[int]
"""Plays for as long as it is asked for more, and yields how many steps it made each time."""


@dataclass(frozen=True)
class Case:
    """One thing to step.

    Attributes:
        name: unique within the peer.
        title: what is stepped.
        kind: `"batch"`, many games by one call, or `"scalar"`, one game.
        play: starts it.
        note: what a step has less, or more, than one of ours.
    """

    name: str
    title: str
    kind: str
    play: Callable[[], Steps]
    note: str = ""


def measure(playing: Steps, seconds: float) -> tuple[int, float]:
    """Step for about so many seconds; returns the steps and the seconds they took."""
    steps = 0
    start = now = time.perf_counter()
    while now - start < seconds:
        steps += next(playing)
        now = time.perf_counter()
    return steps, now - start


def seed() -> int:
    """Return the seed the program was started with."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else 0


def serve(cases: list[Case], packages: list[str]) -> None:
    """Say what there is and measure until the input ends."""
    # Some packages print: what they say goes to standard error, out of the way of the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(value: object) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer(
        {
            "cases": [
                {"name": c.name, "title": c.title, "kind": c.kind, "note": c.note} for c in cases
            ],
            "versions": {name: importlib.metadata.version(name) for name in packages},
        }
    )
    named = {case.name: case for case in cases}
    playing: dict[str, Steps] = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["measure"]
        try:
            if name not in playing:
                playing[name] = named[name].play()
            steps, seconds = measure(playing[name], request["seconds"])
            answer({"steps": steps, "seconds": seconds})
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})

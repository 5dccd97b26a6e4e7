"""PettingZoo Classic: the loop of its documentation."""

import importlib
from collections.abc import Iterator

from aec_loop import aec_steps
from serve import Case, seed, serve


def play(module: str) -> Iterator[int]:
    """Play episode after episode of an environment."""
    return aec_steps(importlib.import_module(f"pettingzoo.classic.{module}").env(), seed())


NOTE = "observation of {} numbers"
CASES = [
    Case("leduc", "leduc_holdem_v4", "scalar", lambda: play("leduc_holdem_v4"), NOTE.format(36)),
    Case("hanabi", "hanabi_v5", "scalar", lambda: play("hanabi_v5"), NOTE.format(658)),
    Case("tictactoe", "tictactoe_v3", "scalar", lambda: play("tictactoe_v3"), NOTE.format(18)),
]

if __name__ == "__main__":
    serve(CASES, ["pettingzoo", "rlcard", "shimmy", "open_spiel"])

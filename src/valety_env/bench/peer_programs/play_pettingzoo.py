"""PettingZoo Classic: the loop of its documentation."""

import importlib
import random
from collections.abc import Iterator

import numpy as np
from serve import Case, seed, serve


def play(module: str) -> Iterator[int]:
    """Play episode after episode through `agent_iter`, `last` and `step`."""
    environment = importlib.import_module(f"pettingzoo.classic.{module}").env()
    draw = random.Random(seed()).random
    environment.reset(seed=seed())
    while True:
        steps = 0
        for _ in environment.agent_iter():
            observation, _, termination, truncation, _ = environment.last()
            if termination or truncation:
                action = None
            else:
                legal = np.flatnonzero(observation["action_mask"])
                action = legal[int(draw() * len(legal))]
                steps += 1
            environment.step(action)
        yield steps
        environment.reset()


NOTE = "observation of {} numbers"
CASES = [
    Case("leduc", "leduc_holdem_v4", "scalar", lambda: play("leduc_holdem_v4"), NOTE.format(36)),
    Case("hanabi", "hanabi_v5", "scalar", lambda: play("hanabi_v5"), NOTE.format(658)),
    Case("tictactoe", "tictactoe_v3", "scalar", lambda: play("tictactoe_v3"), NOTE.format(18)),
]

if __name__ == "__main__":
    serve(CASES, ["pettingzoo", "rlcard", "shimmy", "open_spiel"])

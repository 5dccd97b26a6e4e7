"""The loop of PettingZoo's documentation, by which its environments and ours are played.

Like `serve` it runs in the virtual environments of peers too: it imports numpy alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def draws(seed: int) -> list[float]:
    """Return 65,536 numbers in [0, 1) to choose by, as plain floats: Python's quickest."""
    return np.random.default_rng(seed).random(1 << 16).tolist()


def aec_steps(env: Any, seed: int) -> Iterator[int]:
    """Play random legal actions, episode after episode; yields the steps of each."""
    drawn = draws(seed)
    steps = 0
    env.reset(seed=seed)
    while True:
        before = steps
        for _ in env.agent_iter():
            observation, _, termination, truncation, _ = env.last()
            if termination or truncation:
                action = None
            else:
                legal = np.flatnonzero(observation["action_mask"])
                action = legal[int(drawn[steps & 0xFFFF] * len(legal))]
                steps += 1
            env.step(action)
        yield steps - before
        env.reset()

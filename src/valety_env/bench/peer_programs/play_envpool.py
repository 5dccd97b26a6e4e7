"""EnvPool's card games: a batch of games stepped by one thread."""

from collections.abc import Iterator

import envpool
import numpy as np
from serve import Case, seed, serve

GAMES = 1024


def play(name: str) -> Iterator[int]:
    """Play random legal actions; finished games start anew at the step after."""
    environment = envpool.make_gymnasium(name, num_envs=GAMES, num_threads=1, seed=seed())
    rng = np.random.default_rng(seed())
    _, info = environment.reset()
    while True:
        legal = info["legal_action_mask"]
        # The largest of one draw an action, over the legal ones, is a uniform choice.
        draws = rng.random(legal.shape, np.float32)
        actions = (draws * legal + legal).argmax(axis=1).astype(np.int32)
        info = environment.step(actions)[4]
        yield GAMES


NOTE = f"{GAMES:,} games; starting anew is a step"
CASES = [
    Case("leduc", "LeducHoldem-v1", "batch", lambda: play("LeducHoldem-v1"), NOTE),
    Case("connect-four", "ConnectFour-v1", "batch", lambda: play("ConnectFour-v1"), NOTE),
    Case("kuhn", "KuhnPoker-v1", "batch", lambda: play("KuhnPoker-v1"), NOTE),
]

if __name__ == "__main__":
    serve(CASES, ["envpool"])

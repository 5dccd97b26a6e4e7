"""RLCard: one game stepped by hand."""

import random
from collections.abc import Iterator

import rlcard
from serve import Case, seed, serve


def play(name: str) -> Iterator[int]:
    """Play game after game; every step gives the observation and legal actions of the next."""
    environment = rlcard.make(name, config={"seed": seed()})
    draw = random.Random(seed()).random
    while True:
        state, _ = environment.reset()
        steps = 0
        while not environment.is_over():
            legal = list(state["legal_actions"])
            state, _ = environment.step(legal[int(draw() * len(legal))])
            steps += 1
        environment.get_payoffs()
        yield steps


NOTE = "legal actions as a dict"
CASES = [
    Case("bridge", "bridge", "scalar", lambda: play("bridge"), NOTE),
    Case("doudizhu", "Dou Dizhu", "scalar", lambda: play("doudizhu"), NOTE),
]

if __name__ == "__main__":
    serve(CASES, ["rlcard"])

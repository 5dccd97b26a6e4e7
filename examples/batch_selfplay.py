"""Step many tables together and count what each seat earns.

python examples/batch_selfplay.py --tables 4096 --steps 1000
"""

import time

import numpy as np
import tyro

from valety_env.vector import SelfPlayEnv


def main(game: str = "valety", tables: int = 1024, steps: int = 500, seed: int = 0) -> None:
    """Let random players play.

    Args:
        game: a game's name.
        tables: how many are stepped together.
        steps: plays at each table.
        seed: fixes everything.
    """
    env = SelfPlayEnv(game, num_envs=tables, seed=seed, episode="deal", reward="points")
    batch = env.reset()
    earned = np.zeros(env.num_players)
    deals = 0
    start = time.perf_counter()
    for _ in range(steps):
        # A policy would map batch.observation and batch.action_mask, of the seats batch.seat, to
        # actions.
        batch = env.step(env.sample())
        earned += batch.rewards.sum(axis=0)
        deals += int(batch.terminated.sum())
        if batch.terminated.any():
            final = env.final()
            assert len(final.tables) == batch.terminated.sum()
    seconds = time.perf_counter() - start
    print(f"{tables * steps / seconds:,.0f} plays/s, {deals} deals")
    print("points a deal, by seat:", np.round(earned / max(deals, 1), 3))


if __name__ == "__main__":
    tyro.cli(main)

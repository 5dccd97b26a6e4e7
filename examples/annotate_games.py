"""Play some deals, and see what each play cost with all cards known.

python examples/annotate_games.py --deals 20
"""

import numpy as np
import tyro

from valety_env import valety_v0
from valety_env.solver.annotations import annotate_all


def main(deals: int = 20, seed: int = 0, threads: int = 2) -> None:
    """Let player_0 play the highest legal card, player_1 a random one.

    Args:
        deals: how many.
        seed: of the first; the same seed gives the same result.
        threads: how many solve.
    """
    env = valety_v0.env(episode="deal")
    rng = np.random.default_rng(seed)
    records = []
    for deal in range(deals):
        env.reset(seed=seed + deal)
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            cards = np.flatnonzero(observation["action_mask"])
            env.step(cards[-1] if agent == "player_0" else rng.choice(cards))
        records.append(env.unwrapped.record())

    annotations = annotate_all(records, threads)
    for player in range(2):
        costs = [a.cost for game in annotations for a in game if a.seat == player]
        costly = np.count_nonzero(costs)
        print(
            f"player_{player}: {sum(costs) / deals:.1f} points a deal given away, "
            f"by {costly} of {len(costs)} plays"
        )
    worst = max((a for game in annotations for a in game), key=lambda a: a.cost)
    print(f"the dearest: {worst.card} in place of {' '.join(worst.best)} cost {worst.cost}")


if __name__ == "__main__":
    tyro.cli(main)

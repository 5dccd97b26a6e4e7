"""One learner against a given opponent, with Gymnasium: one table, then many.

python examples/gym_loop.py --opponent heuristic --episodes 10
"""

import gymnasium
import numpy as np
import tyro

import valety_env  # noqa: F401  (registers the environments)


def main(opponent: str = "heuristic", episodes: int = 5, tables: int = 64, seed: int = 0) -> None:
    """Play random legal actions.

    Args:
        opponent: an agent's name.
        episodes: matches at the single table.
        tables: how many are stepped together afterwards.
        seed: fixes everything.
    """
    env = gymnasium.make("valety/Valety-v0", opponent=opponent)
    env.action_space.seed(seed)
    for episode in range(episodes):
        # A seed once; then each reset goes on to the next episode of that seed.
        _observation, info = env.reset(seed=seed if episode == 0 else None)
        terminated = False
        while not terminated:
            action = env.action_space.sample(info["action_mask"])
            _observation, _reward, terminated, _truncated, info = env.step(action)
        print(f"match {episode}: seat {info['seat']}, totals {info['totals']}, win {info['win']}")

    envs = gymnasium.make_vec("valety/Valety-v0", num_envs=tables, opponent=opponent)
    envs.action_space.seed(seed)
    _observations, infos = envs.reset(seed=seed)
    wins = []
    for _ in range(200):
        actions = envs.action_space.sample(mask=tuple(infos["action_mask"]))
        _observations, _rewards, terminated, _truncated, infos = envs.step(actions)
        if terminated.any():
            wins.extend(infos["final_info"]["win"][terminated])
    print(f"{len(wins)} matches at {tables} tables, won {np.mean(wins):.3f} of them")


if __name__ == "__main__":
    tyro.cli(main)

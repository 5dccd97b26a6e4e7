"""Play one match with random legal actions in the PettingZoo AEC environment.

python examples/aec_loop.py --game polignac --seed 3
"""

import numpy as np
import tyro

from valety_env import polignac_v0, valety_v0


def main(game: str = "valety", seed: int = 0) -> None:
    """Play one match.

    Args:
        game: valety or polignac.
        seed: fixes the deals and the actions.
    """
    env = {"valety": valety_v0, "polignac": polignac_v0}[game].env(render_mode="ansi")
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, _info = env.last()
        returns[agent] += reward
        if termination or truncation:
            action = None
        else:
            action = rng.choice(np.flatnonzero(observation["action_mask"]))
        env.step(action)
    print(env.render())
    print("returns:", returns)


if __name__ == "__main__":
    tyro.cli(main)

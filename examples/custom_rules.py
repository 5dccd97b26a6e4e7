"""Register a rule variant of your own under a name of yours, in Gymnasium and PettingZoo.

A short Valety: every jack costs 3, the first to 12 wins, and the dealer leads every deal.

python examples/custom_rules.py
"""

import gymnasium
import numpy as np
import pettingzoo

from valety_env.rules import make_rules

RULES = {"jack_penalties": (3, 3, 3, 3), "target": 12, "first_lead": "dealer"}


def register() -> None:
    """Make the variant known; once in a program."""
    gymnasium.register(
        "home/ShortValety-v0",
        entry_point="valety_env.single:SingleEnv",
        vector_entry_point="valety_env.single:VectorSingleEnv",
        kwargs={"game": "valety", **RULES},
    )
    # PettingZoo has a registry from 1.27 on; before, call valety_v0.env(**RULES).
    if hasattr(pettingzoo, "register"):
        pettingzoo.register(
            "aec",
            "home/short-valety-v0",
            "valety_env.valety_v0:env",
            kwargs={"game": "valety", **RULES},
        )


def main() -> None:
    """Register the variant and play a match of it."""
    register()
    env = gymnasium.make("home/ShortValety-v0", opponent="random")
    assert env.unwrapped.rules == make_rules("valety", **RULES)
    _observation, info = env.reset(seed=0)
    terminated = False
    while not terminated:
        action = np.flatnonzero(info["action_mask"])[0]
        _observation, _reward, terminated, _truncated, info = env.step(action)
    print(f"learner {info['totals'][0]}, opponent {info['totals'][1]}")

    envs = gymnasium.make_vec("home/ShortValety-v0", num_envs=8)
    print("vectorised:", envs.reset(seed=0)[0].shape)
    if hasattr(pettingzoo, "make"):
        table = pettingzoo.make("aec", "home/short-valety-v0")
        table.reset(seed=0)
        print("AEC:", table.rules.jack_penalties, table.rules.target)


if __name__ == "__main__":
    main()

"""MaskablePPO of sb3-contrib against a given opponent; with --vector at tables stepped together.

python examples/sb3_maskable_ppo.py --vector --eval-deals 2000
valety-env evaluate sb3:runs/sb3_maskable_ppo__1.zip --trust --against random heuristic
"""

from pathlib import Path

import gymnasium
import tyro

try:
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecMonitor
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'valety-env[sb3]'") from None

from valety_env import evaluate
from valety_env.arena.reports.terminal import print_evaluation
from valety_env.integrations.sb3 import SB3VecEnv


def main(
    opponent: str = "random",
    vector: bool = False,
    num_envs: int = 64,
    total_timesteps: int = 1_000_000,
    n_steps: int = 128,
    seed: int = 1,
    eval_deals: int = 0,
    runs: str = "runs",
) -> Path:
    """Train, save the model, and return its file.

    Args:
        opponent: who plays the other seats, an agent's name.
        vector: step all tables in one call, in place of one after another.
        num_envs: tables.
        total_timesteps: decisions of the learner, at all tables together.
        n_steps: decisions at each table in a rollout.
        seed: fixes deals, network and learning.
        eval_deals: duplicate deals of an evaluation at the end; 0: none.
        runs: the folder to write into.
    """
    torch.set_num_threads(1)  # more gain nothing in a network so small
    options = {"opponent": opponent, "episode": "deal", "reward": "points"}
    if vector:
        tables = gymnasium.make_vec("valety/Valety-v0", num_envs=num_envs, **options)
        env = VecMonitor(SB3VecEnv(tables))
    else:
        env = make_vec_env("valety/Valety-v0", n_envs=num_envs, env_kwargs=options)
    # The environments have the method `action_masks`, by which MaskablePPO finds the masks.
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=n_steps,
        batch_size=512,
        n_epochs=2,
        learning_rate=lambda left: 2e-3 * left,
        gamma=1.0,
        gae_lambda=0.9,
        ent_coef=0.01,
        # Returns are points, some -10 to 10, and their loss would drown the rest.
        vf_coef=0.02,
        policy_kwargs={"net_arch": [256, 256], "activation_fn": torch.nn.ReLU},
        tensorboard_log=runs,
        seed=seed,
        verbose=1,
        device="cpu",
    )
    # What the model was trained on, for those who load it; SB3 writes it as JSON into the zip.
    table = gymnasium.make("valety/Valety-v0", **options).unwrapped
    model.valety_env = table.setup.metadata(seed=seed)
    model.learn(total_timesteps, log_interval=10)
    path = Path(runs) / f"sb3_maskable_ppo__{seed}.zip"
    model.save(path)
    env.close()
    print(f"model saved to {path}")
    if eval_deals:
        # To load such a file is to unpickle parts of it; this one is our own.
        opponents = ["random", "heuristic"]
        result = evaluate(f"sb3:{path}", opponents, deals=eval_deals, seed=seed, trust=True)
        print_evaluation(result)
    return path


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

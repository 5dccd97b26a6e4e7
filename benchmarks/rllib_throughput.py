"""How fast RLlib trains on Valety: steps a second, playing and learning together, in one process.

    .venv-rllib/bin/python benchmarks/rllib_throughput.py
    .venv-rllib/bin/python benchmarks/rllib_throughput.py --rounds 9 --json out.json

Three ways to the same games, with the same network and the same settings of PPO, one iteration of
each in turn, so that what else the machine does hits all alike:

- Ray's own wrapper of a PettingZoo environment, one table;
- this package's TableEnv in RLlib's own runner, with as many tables as it takes well;
- this package's BatchEnvRunner.

A step is one play. Each number is the median over the rounds, with its quartiles.
"""

import dataclasses
import json
import logging
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import ray
import torch
import tyro
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune.registry import register_env
from rich.console import Console
from rich.table import Table

from valety_env import valety_v0
from valety_env.arena.evaluation import versions
from valety_env.integrations import rllib

OPTIONS = {"episode": "deal", "reward": "points"}


@dataclasses.dataclass(frozen=True)
class Args:
    rounds: int = 7
    """measured iterations of each way, after one that is not measured"""
    tables: int = 256
    """tables of BatchEnvRunner"""
    few_tables: int = 8
    """tables of RLlib's own runner"""
    seed: int = 0
    """seed of the games and networks"""
    json: str | None = None
    """write the measurements into this file; with - they are all that standard output gets"""


def make_config(args: Args, way: str) -> PPOConfig:
    """Return PPO's configuration for one of the ways."""
    config = PPOConfig().environment("valety_v0", env_config={**OPTIONS, "reward_scale": 0.1})
    # As many plays in an iteration as each way takes about two seconds for, in minibatches of the
    # same size.
    if way == "wrapper":
        config.environment("pettingzoo").env_runners(num_envs_per_env_runner=1)
        batch = 1020
    elif way == "own runner":
        config.env_runners(num_envs_per_env_runner=args.few_tables)
        batch = 4080
    else:
        config.env_runners(
            env_runner_cls=rllib.BatchEnvRunner,
            num_envs_per_env_runner=args.tables,
            rollout_fragment_length=4 * 34,
        )
        batch = 4 * 34 * args.tables
    return (
        config.env_runners(num_env_runners=0)
        .multi_agent(policies={"main"}, policy_mapping_fn=lambda agent, episode, **more: "main")
        .rl_module(rl_module_spec=RLModuleSpec(rllib.MaskedModule))
        .training(
            train_batch_size=batch,
            minibatch_size=min(1024, batch),
            num_epochs=2,
            gamma=1.0,
            lambda_=0.9,
            use_kl_loss=False,
        )
        .debugging(seed=args.seed, log_level="ERROR")
    )


def main(args: Args) -> None:
    """Measure and print."""
    ray.init(include_dashboard=False, configure_logging=False, log_to_driver=False)
    logging.getLogger("ray").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    register_env("pettingzoo", lambda config: PettingZooEnv(valety_v0.env(**OPTIONS)))
    ways = {
        "wrapper": "Ray's PettingZooEnv, 1 table",
        "own runner": f"TableEnv in RLlib's own runner, {args.few_tables} tables",
        "batch runner": f"BatchEnvRunner, {args.tables} tables",
    }
    algorithms = {way: make_config(args, way).build_algo() for way in ways}
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for round_ in range(args.rounds + 1):
        for way, algorithm in algorithms.items():
            start = time.perf_counter()
            result = algorithm.train()
            seconds = time.perf_counter() - start
            if round_:
                rates[way].append(float(result["env_runners"]["num_env_steps_sampled"]) / seconds)
        print(f"round {round_} of {args.rounds}", file=sys.stderr, flush=True)
    for algorithm in algorithms.values():
        algorithm.stop()

    console = Console(stderr=args.json == "-", highlight=False)
    table = Table("way", "steps/s", "quartiles", "times the first", title="RLlib's PPO on Valety")
    first = np.array(rates["wrapper"])
    for way, told in ways.items():
        low, middle, high = np.percentile(rates[way], [25, 50, 75])
        ratio = np.median(np.array(rates[way]) / first)
        table.add_row(told, f"{middle:,.0f}", f"{low:,.0f}–{high:,.0f}", f"{ratio:.1f}")
    console.print(table)
    told = {**versions(), "threads": torch.get_num_threads()}
    console.print(", ".join(f"{name} {version}" for name, version in told.items()))
    if args.json:
        text = json.dumps({"rates": rates, "options": dataclasses.asdict(args), "versions": told})
        if args.json == "-":
            print(text)
        else:
            Path(args.json).write_text(text + "\n", encoding="utf-8")
    ray.shutdown()


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))

"""Train an agent with Ray RLlib's PPO, by self-play against a growing league of its past.

    make rllib      # sets up .venv-rllib
    .venv-rllib/bin/python training/rllib_selfplay.py --total-timesteps 6000000
    .venv-rllib/bin/python training/rllib_selfplay.py --resume runs/NAME
    .venv-rllib/bin/valety-env evaluate rllib:runs/NAME/last --trust

A run writes into runs/NAME its options, RLlib's checkpoint `last`, and what TensorBoard shows:
`tensorboard --logdir runs`. Ctrl-C ends it early with a checkpoint; one that was killed goes on
from its last one with --resume.
"""

import dataclasses
import json
import logging
import math
import numbers
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Literal

# RLlib's processes and PyTorch's threads share the cores; one thread each waits least.
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import ray
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.tune.utils import flatten_dict
    from torch.utils.tensorboard import SummaryWriter
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'valety-env[rllib]'") from None

from valety_env.arena import evaluate
from valety_env.arena.reports.terminal import print_evaluation
from valety_env.integrations import rllib
from valety_env.learning.progress import RunProgress, StopRequest
from valety_env.learning.runs import make_run_folder, read_options, to_toml
from valety_env.rules import parse_game

BASELINES = ("random", "heuristic")


@dataclasses.dataclass(frozen=True)
class Args:
    game: str = "valety"
    """the game and its rule options, as in polignac,num_players=5"""
    exp_name: str = "rllib"
    """the experiment, a part of the run's name"""
    seed: int = 1
    """seed of deals, network and learning"""
    config: str | None = None
    """a TOML file with options; flags win over it"""
    runs: str = "runs"
    """the folder in which the run gets its own"""
    resume: str | None = None
    """go on with the run in this folder, with its options; --minutes, --final-deals and
    --final-matches may be new"""

    total_timesteps: int = 6_000_000
    """plays of all seats at all tables together; the learning rate falls to 0 towards their end"""
    minutes: float | None = None
    """stop after so long, wherever the run is"""
    num_env_runners: int = 0
    """processes that play; 0: the one that learns plays too, best on few cores"""
    num_gpus: float = 0
    """GPUs for learning"""

    episode: Literal["deal", "match"] = "deal"
    """what the agent learns to win: single deals or whole matches"""
    reward: Literal["points", "win"] = "points"
    """points at each deal's end, or who has won at the end of the episode"""
    reward_scale: float = 0.1
    """rewards are multiplied by it"""
    observation: Literal["flat_v0", "planes_v0", "tokens_v0"] = "flat_v0"
    """the encoder"""
    hidden: tuple[int, ...] = (256, 256)
    """sizes of the network's hidden layers"""

    num_envs: int = 256
    """tables that each playing process steps together"""
    train_batch_size: int = 32768
    """plays in one iteration"""
    minibatch_size: int = 1024
    """decisions in one step of the optimiser"""
    num_epochs: int = 2
    """how often each decision is learned from"""
    lr: float = 2e-3
    """learning rate of Adam at the beginning"""
    gamma: float = 1.0
    """discount, a seat's decision"""
    gae_lambda: float = 0.9
    """lambda of generalised advantage estimation, a seat's decision"""
    clip_param: float = 0.2
    """how far the new policy's probability of an action may leave the old one's, as a ratio"""
    entropy_coeff: float = 0.01
    """weight of the policy's entropy"""
    vf_loss_coeff: float = 0.5
    """weight of the value's loss"""
    grad_clip: float = 0.5
    """longest gradient"""

    self_share: float = 0.8
    """share of the episodes in which the agent plays at every seat; in the others against one
    policy of the league"""
    league_every: int = 20
    """iterations between one member of the league and the next"""
    league_most: int = 10
    """past policies in the league"""

    checkpoint_every: int = 20
    """iterations between checkpoints"""
    eval_every: int = 20
    """iterations between measurements against the baselines"""
    eval_deals: int = 300
    """duplicate deals of such a measurement"""
    eval_matches: int = 50
    """duplicate matches of it"""
    final_deals: int = 2000
    """duplicate deals of the evaluation at the end; 0: none"""
    final_matches: int = 500
    """duplicate matches of it"""

    def __post_init__(self) -> None:
        for name, least in (
            ("total_timesteps", 1),
            ("num_env_runners", 0),
            ("num_envs", 1),
            ("train_batch_size", 1),
            ("minibatch_size", 1),
            ("num_epochs", 1),
            ("league_every", 1),
            ("league_most", 1),
            ("checkpoint_every", 1),
            ("eval_every", 1),
            ("eval_deals", 1),
            ("eval_matches", 0),
            ("final_deals", 0),
            ("final_matches", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)}: it must be at least {least}")


def make_config(args: Args) -> PPOConfig:
    """Return the algorithm's configuration."""
    rules = parse_game(args.game)[1]
    agents = [f"player_{seat}" for seat in range(rules.num_players)]
    # A rollout is as many whole deals as make up the batch: nothing is cut where it need not be.
    deal = rules.num_players * rules.hand_size
    tables = args.num_envs * max(1, args.num_env_runners)
    deals = max(1, round(args.train_batch_size / (tables * deal)))
    modules = {
        "main": RLModuleSpec(rllib.MaskedModule, model_config={"hidden": args.hidden}),
        "random": RLModuleSpec(rllib.RandomModule),
    }
    return (
        PPOConfig()
        .environment(
            "polignac_v0" if rules.lowest_wins else "valety_v0",
            env_config={
                "game": args.game,
                "episode": args.episode,
                "reward": args.reward,
                "reward_scale": args.reward_scale,
                "observation": args.observation,
            },
        )
        .env_runners(
            env_runner_cls=rllib.BatchEnvRunner,
            num_env_runners=args.num_env_runners,
            num_envs_per_env_runner=args.num_envs,
            rollout_fragment_length=deal * deals,
        )
        .multi_agent(
            policies=set(modules),
            policies_to_train=["main"],
            policy_mapping_fn=rllib.SeatMapping(agents, ["random"], args.self_share),
        )
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=modules))
        .learners(num_gpus_per_learner=args.num_gpus)
        .training(
            train_batch_size=tables * deal * deals,
            minibatch_size=args.minibatch_size,
            num_epochs=args.num_epochs,
            lr=[[0, args.lr], [args.total_timesteps, 0.0]],
            gamma=args.gamma,
            lambda_=args.gae_lambda,
            clip_param=args.clip_param,
            entropy_coeff=args.entropy_coeff,
            vf_loss_coeff=args.vf_loss_coeff,
            grad_clip=args.grad_clip,
            use_kl_loss=False,
        )
        .callbacks(
            [
                partial(rllib.LeagueCallback, every=args.league_every, most=args.league_most),
                partial(
                    rllib.BaselineCallback,
                    against=BASELINES,
                    deals=args.eval_deals,
                    matches=args.eval_matches,
                    every=args.eval_every,
                    seed=args.seed,
                ),
            ]
        )
        .debugging(seed=args.seed, log_level="ERROR")
    )


def main(args: Args) -> Path:
    """Train, evaluate the last checkpoint, and return the run's folder."""
    resumed = args.resume is not None
    if args.resume is None:
        folder = make_run_folder(args.runs, args.game, args.exp_name, args.seed)
        (folder / "config.toml").write_text(to_toml(args), encoding="utf-8")
    else:
        folder = Path(args.resume)
        kept = {name: getattr(args, name) for name in ("minutes", "final_deals", "final_matches")}
        args = dataclasses.replace(
            read_options(Args, ["--config", f"{folder}/config.toml"]), **kept
        )
    last = folder / "last"
    ray.init(
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        ignore_reinit_error=True,
    )
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if resumed:
        algorithm = PPO.from_checkpoint(str(rllib.find_algorithm(last)))
    else:
        algorithm = make_config(args).build_algo()
    print(f"{folder}: iteration {algorithm.iteration}", flush=True)

    writer = SummaryWriter(str(folder))
    seconds = math.inf if args.minutes is None else 60 * args.minutes
    start = time.monotonic()
    lifetime = ("env_runners", "num_env_steps_sampled_lifetime")
    steps = int(algorithm.metrics.peek(lifetime, default=0))
    fraction = steps / args.total_timesteps
    with RunProgress() as progress, StopRequest() as stop:
        while fraction < 1 and not stop.requested:
            result = algorithm.train()
            steps = int(result["env_runners"]["num_env_steps_sampled_lifetime"])
            for name, value in flatten_dict({**result, "config": None}).items():
                if isinstance(value, numbers.Real) and not isinstance(value, bool):
                    writer.add_scalar(name, value, steps)
            if measured := result.get("baselines"):
                progress.measured({name: m["points_per_deal"] for name, m in measured.items()})
            if algorithm.iteration % args.checkpoint_every == 0:
                rllib.save_algorithm(algorithm, last, seed=args.seed)
            now = time.monotonic() - start
            fraction = max(now / seconds, steps / args.total_timesteps)
            rate = result["env_runners"]["num_env_steps_sampled"] / result["time_this_iter_s"]
            progress.update(fraction, steps, rate)

    rllib.save_algorithm(algorithm, last, seed=args.seed)
    writer.close()
    algorithm.stop()
    print(f"{steps:,} steps in {algorithm.iteration} iterations; {last}")
    name = f"rllib:{last}"
    if stop.requested:
        print(f"stopped early; go on: --resume {folder}")
    elif args.final_deals:
        final = evaluate(
            name,
            BASELINES,
            game=args.game,
            deals=args.final_deals,
            matches=args.final_matches,
            seed=args.seed,
            trust=True,
        )
        print_evaluation(final)
        text = json.dumps(final.to_dict(), indent=2) + "\n"
        (folder / "evaluation.json").write_text(text, encoding="utf-8")
    ray.shutdown()
    return folder


if __name__ == "__main__":
    try:
        main(read_options(Args, description=__doc__))
    except ValueError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{Path(__file__).name}: interrupted; the last checkpoint stays as it is")

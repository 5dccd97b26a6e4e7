"""Train an agent by self-play with proximal policy optimisation (PPO).

One network plays every seat of many tables at once. Each seat learns from its own decisions: the
advantage of one is taken over the decisions of the same seat that follow it (`seat_advantages`).

    python training/ppo_selfplay.py --minutes 10
    python training/ppo_selfplay.py --game polignac,num_players=5 --config configs/polignac.toml
    valety-env evaluate checkpoint:runs/NAME/last --against random heuristic

A run writes into runs/NAME its options, checkpoints, and what TensorBoard shows:
`tensorboard --logdir runs`. Ctrl-C ends it early with a checkpoint.
"""

import dataclasses
import json
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy import uint64

try:
    import torch
    from torch import nn
    from torch.utils.tensorboard import SummaryWriter
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'valety-env[train]'") from None

import valety_env
from valety_env.agents.neural import ActorCritic, NetworkConfig, NeuralAgent, save_checkpoint
from valety_env.arena import evaluate
from valety_env.arena.reports.terminal import print_evaluation
from valety_env.learning.distributions import entropy, masked_log_probs, sample_actions
from valety_env.learning.progress import RunProgress, StopRequest
from valety_env.learning.rollout import Rollout
from valety_env.learning.runs import (
    import_wandb,
    make_run_folder,
    read_options,
    to_toml,
    track_run,
)
from valety_env.rng import mix
from valety_env.rules import parse_game
from valety_env.vector import SelfPlayEnv

# Used when neither --minutes nor --total-timesteps says how long to train.
DEFAULT_MINUTES = 10.0
BASELINES = ("random", "heuristic")
# What each minibatch tells; the charts show means over an update.
STATISTICS = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclasses.dataclass(frozen=True)
class Args:
    game: str = "valety"
    """the game and its rule options, as in polignac,num_players=5,general=false"""
    exp_name: str = "ppo"
    """the experiment, a part of the run's name"""
    seed: int = 1
    """seed of deals, network and learning"""
    config: str | None = None
    """a TOML file with options; flags win over it"""
    runs: str = "runs"
    """the folder in which the run gets its own"""
    track: bool = False
    """show the run in Weights & Biases; WANDB_MODE=offline keeps it on this machine"""
    wandb_project_name: str = "valety_env"
    """the project in Weights & Biases"""
    wandb_entity: str | None = None
    """the user or team there"""

    minutes: float | None = None
    """train for so long; 10 if --total-timesteps is not given either, and the first to come if
    both are"""
    total_timesteps: int | None = None
    """train for so many steps, plays of all seats at all tables together; without --minutes a run
    is then repeatable bit by bit"""
    threads: int = 2
    """threads that play and learn; each learns from its part of a minibatch"""

    episode: Literal["deal", "match"] = "deal"
    """what the agent learns to win: single deals or whole matches"""
    reward: Literal["points", "win"] = "points"
    """points at each deal's end, or who has won at the end of the episode"""
    reward_scale: float = 0.1
    """rewards are multiplied by it"""
    observation: Literal["flat_v0", "planes_v0"] = "flat_v0"
    """the encoder"""
    hidden: tuple[int, ...] = (256, 256)
    """sizes of the network's hidden layers"""

    num_envs: int = 1024
    """tables played at once"""
    num_steps: int = 0
    """plays at each table in one rollout; 0: as many as a deal has"""
    minibatch_size: int = 1024
    """decisions in one step of the optimiser"""
    update_epochs: int = 2
    """how often each decision is learned from"""
    learning_rate: float = 2e-3
    """of Adam"""
    anneal_lr: bool = True
    """let the learning rate fall to 0 in the course of training"""
    gamma: float = 1.0
    """discount, a seat's decision"""
    gae_lambda: float = 0.9
    """lambda of generalised advantage estimation, a seat's decision"""
    norm_adv: bool = True
    """bring the advantages of a minibatch to mean 0 and deviation 1"""
    clip_coef: float = 0.2
    """how far the new policy's probability of an action may leave the old one's, as a ratio"""
    ent_coef: float = 0.01
    """weight of the policy's entropy"""
    vf_coef: float = 0.5
    """weight of the value's loss"""
    max_grad_norm: float = 0.5
    """longest gradient"""

    checkpoint_minutes: float = 2.0
    """how often a checkpoint is kept; last.safetensors is the newest"""
    eval_minutes: float = 1.0
    """how often the agent is measured against the baselines; 0: never"""
    eval_deals: int = 300
    """duplicate deals of such a measurement"""
    final_deals: int = 2000
    """duplicate deals of the evaluation at the end; 0: none"""
    final_matches: int = 500
    """duplicate matches of it"""

    def __post_init__(self) -> None:
        for name, least in (
            ("threads", 1),
            ("num_envs", 1),
            ("num_steps", 0),
            ("minibatch_size", 1),
            ("update_epochs", 1),
            ("eval_minutes", 0),
            ("eval_deals", 1),
            ("final_deals", 0),
            ("final_matches", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)}: it must be at least {least}")
        for name in ("minutes", "total_timesteps", "checkpoint_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value}: it must be more than 0")


class TrainingError(Exception):
    """Training has come to numbers that are none."""


def main(args: Args) -> Path:
    """Train, evaluate the last checkpoint, and return the run's folder."""
    game, rules = parse_game(args.game)
    if args.track:
        import_wandb()  # before anything is written
    minutes = args.minutes
    if minutes is None:
        minutes = math.inf if args.total_timesteps is not None else DEFAULT_MINUTES
    total_timesteps = math.inf if args.total_timesteps is None else args.total_timesteps

    # The threads are this script's own: PyTorch's wait for each other in every operation, and where
    # cores are shared with other programs they do little else.
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(args.threads, initializer=torch.set_num_threads, initargs=(1,))
    torch.manual_seed(args.seed)
    env = SelfPlayEnv(
        rules,
        num_envs=args.num_envs,
        seed=args.seed,
        threads=args.threads,
        episode=args.episode,
        reward=args.reward,
        observation=args.observation,
    )
    num_steps = args.num_steps or rules.num_players * rules.hand_size
    rollout = Rollout(env, num_steps, args.reward_scale)
    rollout.start(env.reset())
    sample_key = uint64(mix(uint64(args.seed), uint64(1)))
    bounds = np.linspace(0, env.num_envs, env.threads + 1).astype(int).tolist()
    parts_of_tables = [slice(low, high) for low, high in pairwise(bounds)]

    inputs = rollout.observation.shape[-1]
    network = ActorCritic(NetworkConfig(inputs, env.num_actions, args.hidden))
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=args.learning_rate, eps=1e-5)

    folder = make_run_folder(args.runs, args.game, args.exp_name, args.seed)
    (folder / "config.toml").write_text(to_toml(args), encoding="utf-8")
    tracked = None
    if args.track:
        # Only writers made after it are listened to.
        tracked = track_run(folder, args, args.wandb_project_name, args.wandb_entity)
    writer = SummaryWriter(str(folder))
    print(f"{folder}: a network of {sum(p.numel() for p in parameters):,} weights")

    # All rows that a rollout can hold decisions in, one after another, as the same memory.
    rows = slice(0, rollout.steps.stop)
    observations = torch.from_numpy(rollout.observation[rows]).flatten(0, 1)
    masks = torch.from_numpy(rollout.mask[rows]).flatten(0, 1)
    actions = torch.from_numpy(rollout.action[rows]).flatten(0, 1)
    old_log_probs = torch.from_numpy(rollout.log_prob[rows]).flatten(0, 1)
    values = torch.from_numpy(rollout.value[rows]).flatten(0, 1)

    @torch.inference_mode()
    def act(row: int, key: np.uint64, tables: slice) -> None:
        """Let the seats to move at some tables choose their actions."""
        logits, value = network(torch.from_numpy(rollout.observation[row, tables]))
        rollout.value[row, tables] = value.numpy()
        sample_actions(
            logits.numpy(),
            rollout.mask[row, tables],
            key,
            tables.start,
            rollout.action[row, tables],
            rollout.log_prob[row, tables],
        )

    def learn_from(
        batch: torch.Tensor, advantage: torch.Tensor, weight: float
    ) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        """Return the gradients and the statistics of a part of a minibatch."""
        logits, new_values = network(observations[batch])
        log_probs = masked_log_probs(logits, masks[batch])
        new_log_prob = log_probs.gather(1, actions[batch, None]).squeeze(1)
        log_ratio = new_log_prob - old_log_probs[batch]
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
        policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
        value_loss = 0.5 * (new_values - returns[batch]).square().mean()
        entropy_mean = entropy(log_probs).mean()
        loss = policy_loss - args.ent_coef * entropy_mean + args.vf_coef * value_loss
        gradients = torch.autograd.grad(weight * loss, parameters)
        with torch.no_grad():
            statistics = (
                value_loss,
                policy_loss,
                entropy_mean,
                -log_ratio.mean(),
                (ratio - 1 - log_ratio).mean(),
                ((ratio - 1).abs() > args.clip_coef).float().mean(),
            )
            return gradients, weight * torch.stack(statistics)

    def save(name: str) -> Path:
        path = folder / f"{name}.safetensors"
        metadata = {
            "game": game,
            "rules": rules.to_dict(),
            "episode": args.episode,
            "reward": args.reward,
            "encoder": args.observation,
            "step": global_step,
            "seed": args.seed,
            "version": valety_env.__version__,
        }
        save_checkpoint(path, network, metadata)
        return path

    def fraction_done() -> float:
        return max((time.monotonic() - start) / (60 * minutes), global_step / total_timesteps)

    global_step = 0
    update = 0
    save("last")
    start = last_checkpoint = last_eval = time.monotonic()
    with RunProgress() as progress, StopRequest() as stop:
        while (fraction := fraction_done()) < 1 and not stop.requested:
            update += 1
            if args.anneal_lr:
                optimizer.param_groups[0]["lr"] = (1 - fraction) * args.learning_rate

            # Play: each step is one play at each table, by the seat to move.
            for row in rollout.steps:
                key = uint64(mix(sample_key, uint64(global_step)))
                list(pool.map(partial(act, row, key), parts_of_tables))
                env.step(rollout.action[row], out=rollout.batch_after(row))
                global_step += env.num_envs
            with torch.inference_mode():
                next_value = network(torch.from_numpy(rollout.observation[-1]))[1].numpy()

            episodes = rollout.episodes()
            found = rollout.advantages(next_value, args.gamma, args.gae_lambda)
            complete = torch.from_numpy(np.flatnonzero(found.complete))
            if not len(complete):
                rollout.carry_over(found)
                continue
            advantages = torch.from_numpy(found.advantage).flatten()
            returns = advantages + values

            # Learn from every complete decision, in random minibatches.
            minibatches = max(1, round(len(complete) / args.minibatch_size))
            statistics = torch.zeros(len(STATISTICS))
            for _ in range(args.update_epochs):
                shuffled = complete[torch.randperm(len(complete))]
                for batch in shuffled.tensor_split(minibatches):
                    advantage = advantages[batch]
                    if args.norm_adv:
                        advantage -= advantage.mean()
                        advantage /= advantage.std(correction=0) + 1e-8
                    batches = batch.chunk(args.threads)
                    weights = [len(part) / len(batch) for part in batches]
                    found_by = pool.map(learn_from, batches, advantage.chunk(args.threads), weights)
                    gradients, sums = zip(*found_by, strict=True)
                    for parameter, of_parts in zip(
                        parameters, zip(*gradients, strict=True), strict=True
                    ):
                        parameter.grad = sum(of_parts[1:], of_parts[0])
                    grad_norm = nn.utils.clip_grad_norm_(parameters, args.max_grad_norm)
                    of_batch = torch.stack(sums).sum(0)
                    if not (of_batch.isfinite().all() and grad_norm.isfinite()):
                        told = ", ".join(
                            f"{name} {number:g}"
                            for name, number in zip(STATISTICS, of_batch.tolist(), strict=True)
                        )
                        raise TrainingError(
                            f"step {global_step:,}, update {update}: {told}, gradient "
                            f"{grad_norm.item():g}; the last good checkpoint is "
                            f"{folder / 'last.safetensors'}"
                        )
                    optimizer.step()
                    statistics += of_batch / (args.update_epochs * minibatches)

            target = returns[complete]
            errors = (target - values[complete]).var(correction=0)
            explained = 1 - errors / target.var(correction=0).clamp(min=1e-8)
            rollout.carry_over(found)

            now = time.monotonic()
            rate = global_step / (now - start)
            if episodes.number:
                writer.add_scalar("charts/episodic_return", episodes.first_return, global_step)
                writer.add_scalar("charts/episodic_length", episodes.length, global_step)
            numbers = {
                "charts/SPS": rate,
                "charts/learning_rate": optimizer.param_groups[0]["lr"],
                "losses/explained_variance": explained.item(),
            }
            for name, number in zip(STATISTICS, statistics.tolist(), strict=True):
                numbers[f"losses/{name}"] = number
            for name, number in numbers.items():
                writer.add_scalar(name, number, global_step)
            if now - last_checkpoint >= 60 * args.checkpoint_minutes:
                last_checkpoint = now
                save(f"step-{global_step:012d}")
                save("last")
            if args.eval_minutes and now - last_eval >= 60 * args.eval_minutes:
                last_eval = now
                agent = NeuralAgent(
                    network,
                    rules,
                    encoder=args.observation,
                    episode=args.episode,
                    max_deals=rules.max_deals,
                )
                measured = evaluate(
                    agent, BASELINES, game=rules, deals=args.eval_deals, seed=args.seed
                )
                for result in measured.results:
                    name = f"eval/points_per_deal_{result.opponent}"
                    writer.add_scalar(name, result.points_per_deal, global_step)
                progress.measured({r.opponent: r.points_per_deal for r in measured.results})
            progress.update(fraction_done(), global_step, rate)

    path = save("last")
    writer.close()
    env.close()
    pool.shutdown()
    print(f"{global_step:,} steps in {update} updates; {path}")
    name = f"checkpoint:{folder / 'last'}"
    if stop.requested:
        print(f"stopped early; how strong it is: valety-env evaluate {name} --game {args.game}")
    elif args.final_deals:
        final = evaluate(
            name,
            BASELINES,
            game=args.game,
            deals=args.final_deals,
            matches=args.final_matches,
            seed=args.seed,
        )
        (folder / "evaluation.json").write_text(json.dumps(final.to_dict()), encoding="utf-8")
        print_evaluation(final)
    if tracked:
        tracked.finish()
    return folder


if __name__ == "__main__":
    try:
        main(read_options(Args, description=__doc__))
    except (TrainingError, ValueError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{Path(__file__).name}: interrupted; the last checkpoint stays as it is")

"""PPO in the shape of CleanRL's `ppo.py`, by self-play on the PettingZoo AEC environment.

One network plays every seat of a list of tables. Whoever knows CleanRL knows this file; what
self-play needs says so at its line, after `# valety_env:`.

    python examples/cleanrl_ppo_selfplay.py --eval-deals 2000
    python examples/cleanrl_ppo_selfplay.py --track --wandb-project-name cards
    valety-env evaluate checkpoint:runs/NAME/last --against random heuristic
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

try:
    import torch
    import torch.nn as nn
    import torch.optim as optim
    from torch.distributions.categorical import Categorical
    from torch.utils.tensorboard import SummaryWriter
except ModuleNotFoundError as error:  # valety_env: PyTorch does not come with it unasked
    raise SystemExit(f"{error.name} is missing: pip install 'valety-env[train]'") from None

from valety_env import evaluate, polignac_v0, valety_v0
from valety_env.arena.reports.terminal import print_evaluation
from valety_env.integrations.cleanrl import save_agent

ENVIRONMENTS = {"valety_v0": valety_v0, "polignac_v0": polignac_v0}


@dataclass
class Args:
    exp_name: str = "cleanrl_ppo_selfplay"
    """the experiment, a part of the run's name"""
    seed: int = 1
    """seed of deals, network and learning"""
    torch_deterministic: bool = True
    """let PyTorch choose only operations that give the same result again"""
    cuda: bool = True
    """use a GPU if there is one"""
    track: bool = False
    """show the run in Weights & Biases"""
    wandb_project_name: str = "valety_env"
    """its project there"""
    wandb_entity: str | None = None
    """its team there"""
    save_model: bool = True
    """write runs/NAME/last.safetensors at the end"""
    eval_deals: int = 0
    """duplicate deals of an evaluation of it; 0: none"""

    env_id: str = "valety_v0"
    """the environment: valety_v0 or polignac_v0"""
    total_timesteps: int = 2_000_000
    """plays of all seats at all tables together"""
    learning_rate: float = 2e-3
    """of Adam"""
    num_envs: int = 64
    """tables"""
    num_steps: int = 136
    """plays at each table in a rollout; of Valety's 34 a deal a multiple, so that no decision at
    its end waits for its reward"""
    anneal_lr: bool = True
    """let the learning rate fall to 0"""
    gamma: float = 1.0
    """discount, from a seat's decision to its next"""
    gae_lambda: float = 0.9
    """lambda of generalised advantage estimation, likewise"""
    num_minibatches: int = 16
    """minibatches in a rollout"""
    update_epochs: int = 2
    """how often a rollout is learned from"""
    norm_adv: bool = True
    """normalise the advantages of a minibatch"""
    clip_coef: float = 0.2
    """clips the ratio of the policies"""
    clip_vloss: bool = False
    """clip the change of the value too"""
    ent_coef: float = 0.01
    """weight of the entropy"""
    vf_coef: float = 0.5
    """weight of the value's loss"""
    max_grad_norm: float = 0.5
    """longest gradient"""
    target_kl: float | None = None
    """ends the epochs of a rollout when the policy has moved so far"""


def layer_init(layer, std=2**0.5, bias_const=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, inputs, num_actions):
        super().__init__()
        self.network = nn.Sequential(
            layer_init(nn.Linear(inputs, 256)),
            nn.ReLU(),
            layer_init(nn.Linear(256, 256)),
            nn.ReLU(),
        )
        self.actor = layer_init(nn.Linear(256, num_actions), std=0.01)
        self.critic = layer_init(nn.Linear(256, 1), std=1.0)

    def get_value(self, x):
        return self.critic(self.network(x))

    def get_action_and_value(self, x, mask, action=None):  # valety_env: mask
        hidden = self.network(x)
        logits = self.actor(hidden)
        logits = logits.masked_fill(mask == 0, -1e8)  # valety_env: only legal actions have a chance
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(hidden)


def main(args: Args) -> Path:
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    num_iterations = args.total_timesteps // batch_size
    run_name = f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}"
    folder = Path("runs") / run_name
    if args.track:
        try:
            import wandb
        except ModuleNotFoundError:  # valety_env: an extra of its own
            raise SystemExit("wandb is missing: pip install 'valety-env[track]'") from None
    folder.mkdir(parents=True)
    if args.track:
        wandb.init(
            project=args.wandb_project_name,
            entity=args.wandb_entity,
            sync_tensorboard=True,
            config=vars(args),
            name=run_name,
            save_code=True,
            dir="runs",
        )
    writer = SummaryWriter(str(folder))
    rows = "".join(f"|{name}|{value}|\n" for name, value in vars(args).items())
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{rows}")

    random.seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = args.torch_deterministic
    torch.set_num_threads(1)  # valety_env: more gain nothing in a network so small
    device = torch.device("cuda" if torch.cuda.is_available() and args.cuda else "cpu")

    # valety_env: AEC tables of one deal each, with the points of the deal as reward
    make = ENVIRONMENTS[args.env_id].env
    envs = [make(episode="deal", reward="points") for _ in range(args.num_envs)]
    table_seeds = np.random.SeedSequence(args.seed).generate_state(args.num_envs, np.uint64)
    for env, table_seed in zip(envs, table_seeds, strict=True):
        env.reset(seed=int(table_seed))
    num_seats = len(envs[0].possible_agents)
    space = envs[0].observation_space("player_0")
    inputs, num_actions = space["observation"].shape[0], space["action_mask"].shape[0]
    agent = Agent(inputs, num_actions).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros((*shape, inputs), device=device)
    masks = torch.zeros((*shape, num_actions), device=device)  # valety_env
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs = torch.zeros(shape, device=device)
    rewards = np.zeros(shape, np.float32)  # valety_env: arrays, as they are written table by table
    values = np.zeros(shape, np.float32)
    ends = np.zeros(shape, np.float32)  # valety_env: in place of dones: the row was a seat's last
    seats = np.zeros(shape, np.int64)  # valety_env: whose decision the row is
    tables = np.arange(args.num_envs)

    # valety_env: the row of each seat's decision that waits for its reward, -1: none. The reward is
    # all that the seat gets until it is to act again, some rows later, or the deal is over
    waiting = np.full((args.num_envs, num_seats), -1)

    def last(i):
        """Return whose turn it is at a table and what it sees; settle its decision before."""
        observation, reward, termination, _truncation, _info = envs[i].last()
        seat = envs[i].possible_agents.index(envs[i].agent_selection)
        row = waiting[i, seat]
        if row >= 0:
            rewards[row, i] = 0.1 * reward  # valety_env: points, some -10 to 10
            ends[row, i] = termination
        return seat, observation["observation"], observation["action_mask"]

    def last_of_all():
        """Return the seats, obs and masks of all tables."""
        found = [last(i) for i in range(args.num_envs)]
        seat, x, mask = (np.stack(column) for column in zip(*found, strict=True))
        return seat, torch.from_numpy(x).to(device), torch.from_numpy(mask).to(device)

    global_step = 0
    start_time = time.time()
    episodic_return, episodic_length = np.zeros((2, args.num_envs))
    finished = []

    for iteration in range(1, num_iterations + 1):
        if args.anneal_lr:
            fraction = 1.0 - (iteration - 1.0) / num_iterations
            optimizer.param_groups[0]["lr"] = fraction * args.learning_rate

        waiting[:] = -1
        for step in range(args.num_steps):
            global_step += args.num_envs
            seats[step], obs[step], masks[step] = last_of_all()  # valety_env
            waiting[tables, seats[step]] = step
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(obs[step], masks[step])
                values[step] = value.flatten().cpu().numpy()
            actions[step] = action
            logprobs[step] = logprob

            for i, (env, card) in enumerate(zip(envs, action.tolist(), strict=True)):
                env.step(card)
                episodic_return[i] += env.rewards["player_0"]
                episodic_length[i] += 1
                if all(env.terminations.values()):
                    for _agent in env.agent_iter():  # valety_env: each seat gets its last reward
                        last(i)
                        env.step(None)
                    waiting[i] = -1
                    finished.append((episodic_return[i], episodic_length[i]))
                    episodic_return[i] = episodic_length[i] = 0
                    env.reset()

        # valety_env: of each seat the value of the decision after, and the advantage from there on
        nextvalues, lastgaelam = np.zeros((2, args.num_envs, num_seats), np.float32)
        next_seat, next_obs, _ = last_of_all()
        with torch.no_grad():
            nextvalues[tables, next_seat] = agent.get_value(next_obs).flatten().cpu().numpy()
        waiting[tables, next_seat] = -1
        # valety_env: what still waits is left out: its reward is not known yet
        complete = np.ones(shape, np.bool_)
        complete[waiting[waiting >= 0], np.nonzero(waiting >= 0)[0]] = False
        advantages = np.zeros(shape, np.float32)
        for t in reversed(range(args.num_steps)):
            own = tables, seats[t]  # valety_env: the seat's next decision, not the table's next row
            nextnonterminal = 1.0 - ends[t]
            delta = rewards[t] + args.gamma * nextvalues[own] * nextnonterminal - values[t]
            advantage = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam[own]
            advantages[t] = lastgaelam[own] = np.where(complete[t], advantage, 0.0)
            nextvalues[own] = values[t]
        returns = advantages + values

        b_obs = obs.flatten(0, 1)
        b_masks = masks.flatten(0, 1)  # valety_env
        b_actions = actions.flatten()
        b_logprobs = logprobs.flatten()
        b_advantages = torch.from_numpy(advantages).flatten().to(device)
        b_returns = torch.from_numpy(returns).flatten().to(device)
        b_values = torch.from_numpy(values).flatten().to(device)
        b_inds = torch.from_numpy(np.flatnonzero(complete)).to(device)  # valety_env

        clipfracs = []
        for _epoch in range(args.update_epochs):
            b_inds = b_inds[torch.randperm(len(b_inds), device=device)]
            for mb_inds in b_inds.split(minibatch_size):
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                    b_obs[mb_inds],
                    b_masks[mb_inds],  # valety_env: as they were when the action was chosen
                    b_actions[mb_inds],
                )
                logratio = newlogprob - b_logprobs[mb_inds]
                ratio = logratio.exp()
                with torch.no_grad():
                    old_approx_kl = (-logratio).mean()
                    approx_kl = (ratio - 1 - logratio).mean()
                    clipfracs.append(((ratio - 1).abs() > args.clip_coef).float().mean().item())

                mb_advantages = b_advantages[mb_inds]
                if args.norm_adv:
                    mb_advantages = mb_advantages - mb_advantages.mean()
                    mb_advantages = mb_advantages / (mb_advantages.std() + 1e-8)
                clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                pg_loss = -torch.min(mb_advantages * ratio, mb_advantages * clipped).mean()

                newvalue = newvalue.flatten()
                v_loss = (newvalue - b_returns[mb_inds]) ** 2
                if args.clip_vloss:
                    change = (newvalue - b_values[mb_inds]).clamp(-args.clip_coef, args.clip_coef)
                    v_clipped = (b_values[mb_inds] + change - b_returns[mb_inds]) ** 2
                    v_loss = torch.max(v_loss, v_clipped)
                v_loss = 0.5 * v_loss.mean()

                entropy_loss = entropy.mean()
                loss = pg_loss - args.ent_coef * entropy_loss + args.vf_coef * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
            if args.target_kl is not None and approx_kl > args.target_kl:
                break

        errors = (b_returns - b_values)[b_inds].var().item()
        spread = b_returns[b_inds].var().item()
        writer.add_scalar("charts/learning_rate", optimizer.param_groups[0]["lr"], global_step)
        writer.add_scalar("losses/value_loss", v_loss.item(), global_step)
        writer.add_scalar("losses/policy_loss", pg_loss.item(), global_step)
        writer.add_scalar("losses/entropy", entropy_loss.item(), global_step)
        writer.add_scalar("losses/old_approx_kl", old_approx_kl.item(), global_step)
        writer.add_scalar("losses/approx_kl", approx_kl.item(), global_step)
        writer.add_scalar("losses/clipfrac", np.mean(clipfracs), global_step)
        explained = 1 - errors / spread if spread else float("nan")
        writer.add_scalar("losses/explained_variance", explained, global_step)
        if finished:
            mean_return, mean_length = np.mean(finished, axis=0)
            print(f"global_step={global_step}, entropy={entropy_loss.item():.3f}")
            # valety_env: of player_0; that of all seats together is 0
            writer.add_scalar("charts/episodic_return", mean_return, global_step)
            writer.add_scalar("charts/episodic_length", mean_length, global_step)
            finished.clear()
        sps = global_step / (time.time() - start_time)
        writer.add_scalar("charts/SPS", sps, global_step)

    for env in envs:
        env.close()
    writer.close()
    print(f"SPS: {sps:.0f}" if num_iterations else "no rollout fits into --total-timesteps")
    if args.save_model:
        path = folder / "last.safetensors"  # valety_env: a checkpoint that plays by its name
        networks = agent.network, agent.actor, agent.critic
        save_agent(path, envs[0], *networks, step=global_step, seed=args.seed)
        print(f"model saved to {path}")
        if args.eval_deals:
            result = evaluate(
                f"checkpoint:{path}",
                ["random", "heuristic"],
                game=envs[0].unwrapped.rules,
                deals=args.eval_deals,
                seed=args.seed,
            )
            print_evaluation(result)
    return folder


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))

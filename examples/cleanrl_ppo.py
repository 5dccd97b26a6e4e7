"""PPO in the shape of CleanRL's `ppo.py`: one learner against a given opponent, with Gymnasium.

Whoever knows CleanRL knows this file; what is there for the card game says so at its line, after
`# valety_env:`.

    python examples/cleanrl_ppo.py --eval-deals 2000
    python examples/cleanrl_ppo.py --opponent heuristic --track --wandb-project-name cards
    valety-env evaluate checkpoint:runs/NAME/last --against random heuristic
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
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

from valety_env import evaluate  # valety_env: the import also registers the environments
from valety_env.arena.reports.terminal import print_evaluation
from valety_env.integrations.cleanrl import save_agent


@dataclass
class Args:
    exp_name: str = "cleanrl_ppo"
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

    env_id: str = "valety/Valety-v0"
    """the environment"""
    opponent: str = "random"
    """who plays the other seats: an agent's name"""
    total_timesteps: int = 1_500_000
    """decisions of the learner, at all tables together"""
    learning_rate: float = 2e-3
    """of Adam"""
    num_envs: int = 64
    """tables stepped together"""
    num_steps: int = 128
    """decisions at each table in a rollout"""
    anneal_lr: bool = True
    """let the learning rate fall to 0"""
    gamma: float = 1.0
    """discount"""
    gae_lambda: float = 0.9
    """lambda of generalised advantage estimation"""
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
    def __init__(self, envs):
        super().__init__()
        inputs = int(np.prod(envs.single_observation_space.shape))
        self.network = nn.Sequential(
            layer_init(nn.Linear(inputs, 256)),
            nn.ReLU(),
            layer_init(nn.Linear(256, 256)),
            nn.ReLU(),
        )
        self.actor = layer_init(nn.Linear(256, int(envs.single_action_space.n)), std=0.01)
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
    env_name = args.env_id.replace("/", "_")  # valety_env: an id has a namespace
    run_name = f"{env_name}__{args.exp_name}__{args.seed}__{int(time.time())}"
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

    # valety_env: make_vec finds the compiled batch environment; with vectorization_mode="sync" and
    # vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP} it works too, slower
    envs = gym.make_vec(
        args.env_id,
        num_envs=args.num_envs,
        opponent=args.opponent,  # valety_env: who plays the other seats
        episode="deal",  # valety_env: one deal; "match" is the whole game
        reward="points",  # valety_env: those of the deal; "win" is who has won
    )
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    agent = Agent(envs).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + envs.single_observation_space.shape, device=device)
    masks = torch.zeros((*shape, int(envs.single_action_space.n)), device=device)  # valety_env
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs = torch.zeros(shape, device=device)
    rewards = torch.zeros(shape, device=device)
    dones = torch.zeros(shape, device=device)
    values = torch.zeros(shape, device=device)

    global_step = 0
    start_time = time.time()
    next_obs, infos = envs.reset(seed=args.seed)
    next_obs = torch.as_tensor(next_obs, device=device)
    next_mask = torch.as_tensor(infos["action_mask"], device=device)  # valety_env
    next_done = torch.zeros(args.num_envs, device=device)
    episodic_return, episodic_length = np.zeros((2, args.num_envs))
    finished = []

    for iteration in range(1, num_iterations + 1):
        if args.anneal_lr:
            fraction = 1.0 - (iteration - 1.0) / num_iterations
            optimizer.param_groups[0]["lr"] = fraction * args.learning_rate

        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step] = next_obs
            masks[step] = next_mask  # valety_env
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs, next_mask)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob

            # valety_env: a table that has finished starts anew in the same step (SAME_STEP), so
            # that every row is a decision and next_obs of a finished one begins the next deal
            next_obs, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
            next_done = np.logical_or(terminations, truncations)
            rewards[step] = torch.as_tensor(0.1 * reward)  # valety_env: points, some -10 to 10
            # valety_env: counted here, as RecordEpisodeStatistics of Gymnasium 1.2 miscounts
            # SAME_STEP, and told once a rollout, as hundreds of deals end in one
            episodic_return += reward
            episodic_length += 1
            finished += np.stack((episodic_return, episodic_length), 1)[next_done].tolist()
            episodic_return[next_done] = episodic_length[next_done] = 0
            next_obs = torch.as_tensor(next_obs, device=device)
            next_mask = torch.as_tensor(infos["action_mask"], device=device)  # valety_env
            next_done = torch.as_tensor(next_done, dtype=torch.float32, device=device)

        with torch.no_grad():
            next_value = agent.get_value(next_obs).flatten()
            advantages = torch.zeros_like(rewards)
            lastgaelam = torch.zeros_like(next_value)
            for t in reversed(range(args.num_steps)):
                nextnonterminal = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                nextvalues = next_value if t == args.num_steps - 1 else values[t + 1]
                delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
                lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
                advantages[t] = lastgaelam
            returns = advantages + values

        b_obs = obs.flatten(0, 1)
        b_masks = masks.flatten(0, 1)  # valety_env
        b_actions = actions.flatten()
        b_logprobs = logprobs.flatten()
        b_advantages = advantages.flatten()
        b_returns = returns.flatten()
        b_values = values.flatten()

        clipfracs = []
        for _epoch in range(args.update_epochs):
            for mb_inds in torch.randperm(batch_size, device=device).split(minibatch_size):
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

        errors, spread = (b_returns - b_values).var().item(), b_returns.var().item()
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
            print(f"global_step={global_step}, episodic_return={mean_return:.2f}")
            writer.add_scalar("charts/episodic_return", mean_return, global_step)
            writer.add_scalar("charts/episodic_length", mean_length, global_step)
            finished.clear()
        sps = global_step / (time.time() - start_time)
        writer.add_scalar("charts/SPS", sps, global_step)

    envs.close()
    writer.close()
    print(f"SPS: {sps:.0f}" if num_iterations else "no rollout fits into --total-timesteps")
    if args.save_model:
        path = folder / "last.safetensors"  # valety_env: a checkpoint that plays by its name
        networks = agent.network, agent.actor, agent.critic
        save_agent(path, envs, *networks, step=global_step, seed=args.seed)
        print(f"model saved to {path}")
        if args.eval_deals:
            result = evaluate(
                f"checkpoint:{path}",
                ["random", "heuristic"],
                game=envs.unwrapped.rules,
                deals=args.eval_deals,
                seed=args.seed,
            )
            print_evaluation(result)
    return folder


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))

"""`examples/cleanrl_*.py`: what is learned from, repeatability, checkpoints, that they learn."""

import functools
import os
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from scripts import load_script
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn

from valety_env import evaluate, valety_v0
from valety_env.agents.neural import read_checkpoint
from valety_env.integrations.cleanrl import save_agent
from valety_env.rng import mix
from valety_env.rules import Rules, make_rules
from valety_env.single import SingleEnv, VectorSingleEnv

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ["cleanrl_ppo", "cleanrl_ppo_selfplay"]
GAMMA, LAMBDA = 0.9, 0.7
# Not a part of a deal's 17 decisions of a seat or 34 plays, so that rollouts cut deals.
TABLES, STEPS, ROLLOUTS = 3, 25, 4


@pytest.fixture
def script(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    """Return an example as a module, run in an empty folder, where illegal actions raise."""
    monkeypatch.chdir(tmp_path)
    module = load_script(f"examples/{request.param}.py")
    if request.param == "cleanrl_ppo":
        make_vec = functools.partial(gymnasium.make_vec, illegal="raise")
        monkeypatch.setattr(
            module, "gym", SimpleNamespace(make_vec=make_vec, spaces=gymnasium.spaces)
        )
    else:
        strict = SimpleNamespace(env=functools.partial(valety_v0.env, illegal="raise"))
        monkeypatch.setitem(module.ENVIRONMENTS, "valety_v0", strict)
    return module


def charts(folder: Path, name: str) -> list[float]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return [event.value for event in events.Scalars(name)]


def value_of(observation: np.ndarray) -> float:
    """Return a value that tells nearly all observations of a game apart."""
    return float(np.sin(np.arange(observation.size)) @ observation.astype(np.float64)) / 10


class Scripted(nn.Module):
    """Plays the highest legal card, learns nothing, and has the values of `value_of`."""

    def __init__(self, *sizes: Any) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(1))

    def get_value(self, x: torch.Tensor) -> torch.Tensor:
        values = [value_of(row.numpy()) for row in x]
        return torch.tensor(values, dtype=torch.float32)[:, None] + 0 * self.nothing

    def get_action_and_value(self, x: torch.Tensor, mask: torch.Tensor, action: Any = None) -> Any:
        highest = mask.shape[1] - 1 - mask.flip(1).argmax(1)
        if action is not None:
            # What is learned from is what was played, with the masks of that moment.
            assert (action == highest).all()
        nothing = 0 * self.nothing.expand(len(x))
        return highest, nothing, nothing, self.get_value(x)


def learned(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[tuple[float, float]]:
    """Return of each rollout the means of the advantages and of their squares."""
    monkeypatch.setattr(script, "Agent", Scripted)
    args = script.Args(
        seed=5,
        total_timesteps=TABLES * STEPS * ROLLOUTS,
        num_envs=TABLES,
        num_steps=STEPS,
        learning_rate=0.0,
        gamma=GAMMA,
        gae_lambda=LAMBDA,
        num_minibatches=1,
        update_epochs=1,
        norm_adv=False,
        save_model=False,
        **options,
    )
    folder = script.main(args)
    # The policy stays as it is: the ratio is 1, and the value is as it was.
    means = [-number for number in charts(folder, "losses/policy_loss")]
    squares = [2 * number for number in charts(folder, "losses/value_loss")]
    return list(zip(means, squares, strict=True))


def expected(rollouts: list[list[float]]) -> list[Any]:
    return [
        pytest.approx((np.mean(rollout), np.mean(np.square(rollout))), rel=1e-4, abs=1e-6)
        for rollout in rollouts
    ]


def discounted(errors: list[float]) -> float:
    return sum((GAMMA * LAMBDA) ** k * error for k, error in enumerate(errors))


@pytest.mark.parametrize("script", ["cleanrl_ppo"], indirect=True)
def test_a_learner_learns_from_each_decision_what_came_of_it_in_its_episode(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts: list[list[float]] = [[] for _ in range(ROLLOUTS)]
    for i in range(TABLES):
        env = SingleEnv("valety", opponent="heuristic", episode="deal", reward="points")
        observation, info = env.reset(seed=int(mix(np.uint64(5), np.uint64(i))))
        values, errors, ends = [value_of(observation)], [], []
        for _ in range(STEPS * ROLLOUTS):
            highest = int(np.flatnonzero(info["action_mask"])[-1])
            observation, reward, end, _, info = env.step(highest)
            after = 0.0 if end else GAMMA * value_of(observation)
            errors.append(0.1 * reward + after - values[-1])
            ends.append(end)
            if end:
                observation, info = env.reset()
            values.append(value_of(observation))
        for t in range(STEPS * ROLLOUTS):
            stop = (t // STEPS + 1) * STEPS
            if any(ends[t:stop]):
                stop = t + ends[t:stop].index(True) + 1
            rollouts[t // STEPS].append(discounted(errors[t:stop]))
    assert learned(script, monkeypatch, opponent="heuristic") == expected(rollouts)


@pytest.mark.parametrize("script", ["cleanrl_ppo_selfplay"], indirect=True)
def test_in_self_play_a_seat_learns_from_its_own_decisions_and_rewards(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts: list[list[float]] = [[] for _ in range(ROLLOUTS)]
    seeds = np.random.SeedSequence(5).generate_state(TABLES, np.uint64)
    for seed in seeds.tolist():
        env = valety_v0.env(episode="deal", reward="points", illegal="raise")
        env.reset(seed=seed)
        # Of each seat's decisions: when, the value, what came until the next, in which deal.
        streams: dict[str, list[list[Any]]] = defaultdict(list)
        last_play = []
        # A deal more than is learned from, so that what comes next is known of every decision.
        for t in range(STEPS * ROLLOUTS + 40):
            seen = env.observe(env.agent_selection)
            value = value_of(seen["observation"])
            streams[env.agent_selection].append([t, value, 0.0, len(last_play)])
            env.step(int(np.flatnonzero(seen["action_mask"])[-1]))
            for seat, reward in env.rewards.items():
                if reward:
                    streams[seat][-1][2] += 0.1 * reward
            if all(env.terminations.values()):
                last_play.append(t)
                env.reset()
        for stream in streams.values():
            for n, (t, _, _, deal) in enumerate(stream):
                end = (t // STEPS + 1) * STEPS
                errors = []
                for one, following in pairwise(stream[n:]):
                    same_deal = following[3] == one[3]
                    known = following[0] <= end if same_deal else last_play[one[3]] < end
                    if one[0] >= end or one[3] != deal or not known:
                        break
                    errors.append(one[2] + GAMMA * following[1] * same_deal - one[1])
                if errors and t < STEPS * ROLLOUTS:
                    rollouts[t // STEPS].append(discounted(errors))
    # Some decision waits at the end of each of these rollouts, or the test would show little.
    assert all(len(rollout) < TABLES * STEPS for rollout in rollouts)
    assert learned(script, monkeypatch) == expected(rollouts)


@pytest.mark.parametrize("script", SCRIPTS, indirect=True)
def test_the_same_seed_gives_the_same_agent_and_another_seed_another(script: ModuleType) -> None:
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        args = script.Args(
            exp_name=name, seed=seed, total_timesteps=1600, num_envs=8, num_steps=100
        )
        folder = script.main(args)
        assert folder.name.split("__")[1:3] == [name, str(seed)]
        network, told = read_checkpoint(folder)
        assert (told["step"], told["seed"]) == (1600, seed)
        weights.append({name: tensor.numpy() for name, tensor in network.state_dict().items()})
    for name in weights[0]:
        np.testing.assert_array_equal(weights[0][name], weights[1][name])
    assert not np.array_equal(weights[0]["head.weight"], weights[2]["head.weight"])


@pytest.mark.parametrize("script", SCRIPTS, indirect=True)
def test_the_charts_have_the_names_that_cleanrl_uses(script: ModuleType) -> None:
    folder = script.main(script.Args(total_timesteps=800, num_envs=8, num_steps=50))
    names = "episodic_return episodic_length SPS learning_rate".split()
    for name in names:
        charts(folder, f"charts/{name}")
    for name in (
        "value_loss policy_loss entropy old_approx_kl approx_kl clipfrac explained_variance"
    ).split():
        assert np.isfinite(charts(folder, f"losses/{name}")).all()
    length = 17 if script.__name__ == "cleanrl_ppo" else 34
    assert charts(folder, "charts/episodic_length") == [length] * 2
    rates = charts(folder, "charts/learning_rate")
    assert rates == pytest.approx([script.Args().learning_rate, script.Args().learning_rate / 2])


@pytest.mark.parametrize("wrap", [False, True])
def test_a_saved_agent_is_the_agent(tmp_path: Path, wrap: bool) -> None:
    torch.manual_seed(3)
    env = VectorSingleEnv("valety", num_envs=5, episode="deal", reward="points", target=15)
    given = gymnasium.wrappers.vector.RecordEpisodeStatistics(env) if wrap else env
    network = nn.Sequential(nn.Linear(464, 11), nn.ReLU(), nn.Linear(11, 7), nn.ReLU())
    actor, critic = nn.Linear(7, 52), nn.Linear(7, 1)
    path = save_agent(tmp_path / "some.safetensors", given, network, actor, critic, step=9)
    x = torch.from_numpy(env.reset(seed=0)[0])
    copy, told = read_checkpoint(path)
    logits, values = copy(x)
    torch.testing.assert_close(logits, actor(network(x)))
    torch.testing.assert_close(values, critic(network(x))[:, 0])
    assert Rules.from_dict(told["rules"]) == make_rules("valety", target=15)
    wanted = {"game": "valety", "episode": "deal", "reward": "points", "encoder": "flat_v0"}
    assert told | wanted | {"step": 9} == told


@pytest.mark.parametrize(
    ("network", "outputs", "said"),
    [
        ((nn.Linear(464, 7), nn.Tanh()), 52, "Linear, Tanh: a checkpoint holds Linear and ReLU"),
        ((nn.Linear(464, 7),), 52, "made of Linear:"),
        ((nn.Linear(464, 7, bias=False), nn.ReLU()), 52, "Linear and ReLU in turn"),
        ((), 52, "made of nothing"),
        ((nn.Linear(464, 7), nn.ReLU()), 54, "464 inputs, 54 and 1 outputs: this environment need"),
        ((nn.Linear(465, 7), nn.ReLU()), 52, "needs 464, 52 and 1"),
    ],
)
def test_networks_that_no_checkpoint_can_hold_are_refused(
    tmp_path: Path, network: tuple[nn.Module, ...], outputs: int, said: str
) -> None:
    path = tmp_path / "some.safetensors"
    heads = nn.Linear(7, outputs), nn.Linear(7, 1)
    with pytest.raises(ValueError) as caught:
        save_agent(path, valety_v0.env(), nn.Sequential(*network), *heads)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not path.exists()


# Runs a script as if wandb were not installed.
WITHOUT_WANDB = """
import runpy, sys
sys.modules["wandb"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def track(folder: Path, script: str, *flags: str, program: tuple[str, ...] = ()) -> Any:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    return subprocess.run(
        [sys.executable, *program, str(ROOT / script), *flags, "--track"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        # No account is at hand, and no address can be reached.
        env=environment | {"WANDB_MODE": "offline", "HOME": str(folder), "NETRC": "/dev/null"},
    )


TRACKED = {
    "examples/cleanrl_ppo.py": "--total-timesteps 800 --num-envs 8 --num-steps 50".split(),
    "examples/cleanrl_ppo_selfplay.py": "--total-timesteps 800 --num-envs 8 --num-steps 50".split(),
    "training/ppo_selfplay.py": (
        "--game valety-L1 --total-timesteps 2000 --num-envs 64 --hidden 16 --final-deals 0"
    ).split(),
}


@pytest.mark.parametrize("script", TRACKED)
def test_a_tracked_run_leaves_its_options_and_charts_for_weights_and_biases(
    tmp_path: Path, script: str
) -> None:
    pytest.importorskip("wandb")
    flags = [*TRACKED[script], "--exp-name", "tracked-run", "--wandb-project-name", "some-project"]
    done = track(tmp_path, script, *flags)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["runs"]
    (run,) = (tmp_path / "runs").glob("*__tracked-run__1__*")
    # The files of TensorBoard are in it as they were, not copied into themselves.
    assert len(list(run.glob("events*"))) == 1
    assert not (run / "wandb").exists()
    (file,) = (tmp_path / "runs" / "wandb").glob("offline-run-*/run-*.wandb")
    told = file.read_bytes()
    for part in ("some-project", run.name, "gae_lambda", "losses/value_loss", "charts/SPS"):
        assert part.encode() in told, part


def test_a_run_that_cannot_be_tracked_says_what_to_install_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    done = track(tmp_path, "training/ppo_selfplay.py", program=("-c", WITHOUT_WANDB))
    assert done.returncode == 1
    message = "ppo_selfplay.py: --track needs wandb: pip install 'valety-env[track]'\n"
    assert done.stderr == message
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options", "least"),
    [
        # The lower ends of seeds 1, 2 and 3 were 3.2, 3.3, 3.3 and 3.4, 3.4, 3.4.
        ("cleanrl_ppo", {"opponent": "random", "total_timesteps": 400_000}, 2.5),
        ("cleanrl_ppo_selfplay", {"total_timesteps": 500_000}, 2.5),
    ],
    indirect=["script"],
)
def test_a_minute_of_training_beats_random_clearly(
    script: ModuleType, options: dict[str, Any], least: float
) -> None:
    folder = script.main(script.Args(**options))
    (result,) = evaluate(f"checkpoint:{folder}", "random", deals=1000, seed=1).results
    assert result.ci95 is not None
    assert result.ci95[0] > least

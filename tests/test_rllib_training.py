"""RLlib trains: the league, what callbacks report, checkpoints, a run that is killed.

Run in .venv-rllib (`make rllib`); where Ray is missing they are skipped.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

import ray
import torch
import tree
from ray import tune
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from valety_env.arena import evaluate
from valety_env.integrations import rllib

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "training" / "rllib_selfplay.py"

pytestmark = [
    pytest.mark.slow,
    # What Ray and the packages it starts say of themselves.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module", autouse=True)
def one_ray():
    torch.set_num_threads(1)
    ray.init(include_dashboard=False, num_cpus=2, log_to_driver=False, ignore_reinit_error=True)
    yield
    ray.shutdown()


def make_config(
    every: int = 2, most: int = 3, opponents: tuple = ("random",), **runner
) -> PPOConfig:
    modules = {
        "main": RLModuleSpec(rllib.MaskedModule, model_config={"hidden": (64, 64)}),
        "random": RLModuleSpec(rllib.RandomModule),
    }
    return (
        PPOConfig()
        .environment(
            "valety_v0", env_config={"episode": "deal", "reward": "points", "reward_scale": 0.1}
        )
        .env_runners(
            **{
                "env_runner_cls": rllib.BatchEnvRunner,
                "num_env_runners": 0,
                "num_envs_per_env_runner": 64,
                "rollout_fragment_length": 34,
                **runner,
            }
        )
        .multi_agent(
            policies=set(modules),
            policies_to_train=["main"],
            policy_mapping_fn=rllib.SeatMapping(["player_0", "player_1"], ["random"], 0.6),
        )
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=modules))
        .training(
            train_batch_size=64 * 34,
            minibatch_size=512,
            num_epochs=2,
            lr=2e-3,
            gamma=1.0,
            lambda_=0.9,
            use_kl_loss=False,
        )
        .callbacks(
            [
                partial(rllib.LeagueCallback, every=every, most=most),
                partial(rllib.BaselineCallback, against=("random",), deals=50, matches=5, every=3),
            ]
        )
        .debugging(seed=3, log_level="ERROR")
    )


def weights(algorithm, module_id: str, where: str = "learner") -> np.ndarray:
    if where == "learner":
        state = algorithm.learner_group.get_weights([module_id])[module_id]
    else:
        state = algorithm.env_runner.module[module_id].get_state()
    return np.concatenate([np.ravel(state[name]) for name in sorted(state)])


def test_the_league_grows_by_the_policy_as_it_was_and_the_oldest_leaves() -> None:
    algorithm = make_config(every=2, most=3).build_algo()
    was: dict[int, np.ndarray] = {}
    sizes = []
    try:
        for iteration in range(1, 11):
            result = algorithm.train()
            was[iteration] = weights(algorithm, "main")
            sizes.append(result["league"]["size"])
        # `random` and the past policies of iterations 2, 4, 6, 8, 10, of which three stay.
        assert sizes == [1, 2, 2, 3, 3, 4, 4, 4, 4, 4]
        mapping = algorithm.config.policy_mapping_fn
        assert mapping.opponents == ("random", "past_00003", "past_00004", "past_00005")
        for number in (3, 4, 5):
            past = f"past_{number:05d}"
            for where in ("learner", "runner"):
                assert (weights(algorithm, past, where) == was[2 * number]).all()
        assert not (was[10] == was[9]).all()
        assert algorithm.env_runner.config.policy_mapping_fn.opponents == mapping.opponents
        assert "past_00001" not in algorithm.env_runner.module
        # They do play.
        steps = algorithm.train()["env_runners"]["num_module_steps_sampled"]
        # RLlib keeps the counters of those who left, with nothing in them.
        assert {name for name, n in steps.items() if n > 0} == {"main", *mapping.opponents}
    finally:
        algorithm.stop()


TRAIN_A_LITTLE = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import ray, torch
import test_rllib_training as tests
torch.set_num_threads(1)
ray.init(include_dashboard=False, num_cpus=1, log_to_driver=False)
algorithm = tests.make_config(every=2).build_algo()
for _ in range(5):
    algorithm.train()
names = ("main", "past_00001", "past_00002")
print([hashlib.sha256(tests.weights(algorithm, name).tobytes()).hexdigest() for name in names])
"""


def test_a_seed_fixes_training_with_all_that_the_league_does() -> None:
    told = []
    # What the order of a set changes, these two processes would do otherwise.
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", TRAIN_A_LITTLE, str(Path(__file__).parent)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        told.append(done.stdout.splitlines()[-1])
    assert told[0] == told[1]
    # Three policies, and each is another one.
    assert len(set(re.findall(r"[0-9a-f]{64}", told[0]))) == 3


def test_a_restored_algorithm_goes_on_with_its_league(tmp_path: Path) -> None:
    algorithm = make_config(every=2, most=3).build_algo()
    try:
        for _ in range(5):
            algorithm.train()
        path = rllib.save_algorithm(algorithm, tmp_path / "last", seed=3)
        names = ["main", "past_00001", "past_00002"]
        before = {name: weights(algorithm, name) for name in names}
        steps = algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
        learner = algorithm.learner_group._learner
        moments = learner.get_state()["optimizer"]
    finally:
        algorithm.stop()
    restored = PPO.from_checkpoint(str(path))
    try:
        assert restored.iteration == 5
        for where in ("learner", "runner"):
            for name in names:
                assert (weights(restored, name, where) == before[name]).all()
        state = restored.learner_group._learner.get_state()["optimizer"]
        tree.map_structure(np.testing.assert_array_equal, state, moments)
        assert restored.config.policy_mapping_fn.opponents == ("random", *names[1:])
        result = restored.train()
        assert result["env_runners"]["num_env_steps_sampled_lifetime"] == steps + 64 * 34
        assert result["training_iteration"] == 6
        # It grew again in iteration 6, after the two it had.
        assert result["league"]["size"] == 4
        assert (weights(restored, "past_00003") == weights(restored, "main")).all()
    finally:
        restored.stop()


def test_a_checkpoint_in_our_evaluation_has_the_result_that_the_callback_reported(
    tmp_path: Path,
) -> None:
    algorithm = make_config().build_algo()
    try:
        for _ in range(3):
            result = algorithm.train()
        reported = result["baselines"]["random"]
        path = rllib.save_algorithm(algorithm, tmp_path / "last")
    finally:
        algorithm.stop()
    # Ours: loaded from its files, in a process that knows nothing of the algorithm.
    code = (
        "import json, sys; from valety_env import evaluate;"
        "r = evaluate(sys.argv[1], ['random'], game='valety', deals=50, matches=5, seed=0,"
        " trust=True).results[0];"
        "print(json.dumps([r.points_per_deal, *r.ci95, r.match_win_rate, *r.match_ci95]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"rllib:{path}"], capture_output=True, text=True, check=True
    )
    names = ("points_per_deal", "points_low", "points_high", "win_rate", "win_low", "win_high")
    assert json.loads(done.stdout.splitlines()[-1]) == [reported[name] for name in names]


def test_an_evaluations_means_are_over_all_its_episodes() -> None:
    seen = []

    class Watch(RLlibCallback):
        def on_episode_end(self, *, episode, prev_episode_chunks, env_runner, **kwargs) -> None:
            if env_runner.config.in_evaluation:
                chunks = [*prev_episode_chunks, episode]
                mains = [c.agent_episodes[a] for c in chunks for a in c.agent_ids]
                seen.append(sum(m.get_return() for m in mains if m.module_id == "main"))

    mapping = rllib.SeatMapping(["player_0", "player_1"], ["random"], 0.0)
    config = make_config().callbacks(Watch)
    config.evaluation(
        evaluation_interval=1000,
        evaluation_duration=400,
        evaluation_num_env_runners=0,
        evaluation_config={"policy_mapping_fn": mapping},
    )
    algorithm = config.build_algo()
    try:
        found = algorithm.evaluate()["env_runners"]
    finally:
        algorithm.stop()
    assert found["num_episodes"] == len(seen) == 400
    assert found["module_episode_returns_mean"]["main"] == pytest.approx(np.mean(seen), abs=1e-6)


@pytest.mark.parametrize(("explore", "option"), [(True, ",temperature=1"), (False, "")])
def test_rllibs_own_evaluation_and_ours_agree(tmp_path: Path, explore: bool, option: str) -> None:
    """What RLlib's workers measure by playing is what the checkpoint's player gets."""
    config = make_config().evaluation(
        evaluation_interval=1000,
        evaluation_duration=4000,
        evaluation_duration_unit="episodes",
        evaluation_num_env_runners=0,
        evaluation_config={
            "explore": explore,
            # The main module plays one seat, the random one the other.
            "policy_mapping_fn": rllib.SeatMapping(["player_0", "player_1"], ["random"], 0.0),
        },
    )
    algorithm = config.build_algo()
    try:
        for _ in range(40):
            algorithm.train()
        found = algorithm.evaluate()["env_runners"]
        path = rllib.save_algorithm(algorithm, tmp_path / "last")
    finally:
        algorithm.stop()
    assert found["num_episodes"] == 4000
    theirs = found["module_episode_returns_mean"]["main"] / 0.1
    result = evaluate(f"rllib:{path}{option}", ["random"], deals=2000, seed=1, trust=True).results[
        0
    ]
    # A deal of theirs spreads as one of ours: 2,000 pairs have half the variance or less. Five
    # standard deviations of the difference.
    spread = result.pair_points.std() / np.sqrt(2000)
    assert abs(theirs - result.points_per_deal) < 5 * np.hypot(spread, 2 * spread)
    assert result.ci95[0] > 0


def test_tune_shows_the_callbacks_numbers_in_tensorboard(tmp_path: Path) -> None:
    tuner = tune.Tuner(
        "PPO",
        param_space=make_config(),
        run_config=tune.RunConfig(
            name="x",
            storage_path=str(tmp_path),
            stop={"training_iteration": 3},
            verbose=0,
        ),
    )
    results = tuner.fit()
    assert not results.errors
    events = EventAccumulator(results[0].path)
    events.Reload()
    tags = events.Tags()["scalars"]
    for name in ("points_per_deal", "points_low", "win_rate"):
        assert f"ray/tune/baselines/random/{name}" in tags
    (shown,) = events.Scalars("ray/tune/baselines/random/points_per_deal")
    reported = results[0].metrics["baselines"]["random"]["points_per_deal"]
    assert shown.value == pytest.approx(reported, rel=1e-6)
    assert "ray/tune/league/size" in tags


def test_rllibs_own_runner_and_processes_of_the_batch_runner_train_too() -> None:
    own = make_config(
        env_runner_cls=None, num_envs_per_env_runner=4, rollout_fragment_length="auto"
    )
    spread = make_config(num_env_runners=1, num_envs_per_env_runner=64)
    for config in (own.training(train_batch_size=1000), spread):
        algorithm = config.build_algo()
        try:
            before = weights(algorithm, "main")
            for _ in range(2):
                result = algorithm.train()
            assert not (weights(algorithm, "main") == before).all()
            assert result["league"]["size"] == 2
            assert result["env_runners"]["episode_len_mean"] == 34
            assert result["env_runners"]["episode_return_mean"] == pytest.approx(0, abs=1e-5)
        finally:
            algorithm.stop()


def test_the_example_of_the_documentation_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?ray\.rllib.*?)^```", text, re.MULTILINE | re.DOTALL)
    scope: dict = {"__name__": "documentation"}
    exec(compile(example, "docs/frameworks.md", "exec"), scope)
    scope["algorithm"].stop()
    result = evaluate("rllib:rllib-checkpoint", ["random"], deals=100, seed=0, trust=True)
    measured = scope["result"]["baselines"]["random"]["points_per_deal"]
    assert result.results[0].points_per_deal == measured


def run_script(*arguments: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, **more
    )


def points(text: str, opponent: str) -> list[float]:
    """Return points a deal and the ends of their interval from a printed evaluation."""
    line = next(line for line in text.splitlines() if line.strip().startswith(opponent))
    return [float(number) for number in re.findall(r"[-+]\d+\.\d+", line)]


def test_a_run_that_was_killed_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    options = [
        *("--runs", str(tmp_path), "--total-timesteps", "200000", "--train-batch-size", "4352"),
        *("--num-envs", "128", "--hidden", "32", "--checkpoint-every", "3", "--league-every", "4"),
        *("--eval-every", "1000", "--final-deals", "100", "--final-matches", "0"),
    ]
    running = subprocess.Popen(
        [sys.executable, str(SCRIPT), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 240
    try:
        # Until the second checkpoint replaces the first: any moment may be the last.
        seen: set[int] = set()
        while len(seen) < 2 and time.monotonic() < deadline and running.poll() is None:
            for file in tmp_path.glob("*/last/valety_env.json"):
                with contextlib.suppress(OSError, ValueError):
                    seen.add(json.loads(file.read_text())["step"])
            time.sleep(0.01)
        assert len(seen) == 2, running.poll()
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    (folder,) = tmp_path.iterdir()
    done = run_script("--resume", str(folder), "--final-deals", "100", "--final-matches", "0")
    assert done.returncode == 0, done.stderr
    begun = int(re.search(r"iteration (\d+)", done.stdout)[1])
    assert begun in {*seen, max(seen) + 3, max(seen) + 6}
    steps = int(re.search(r"([\d,]+) steps in", done.stdout)[1].replace(",", ""))
    iterations = int(re.search(r"steps in (\d+) iterations", done.stdout)[1])
    assert 200_000 <= steps < 204_352
    assert iterations * 4352 == steps
    told = json.loads((folder / "evaluation.json").read_text())
    assert told["results"][0]["points_per_deal"] > 0
    # It has come to its end: there is nothing to go on with.
    again = run_script("--resume", str(folder), "--final-deals", "0")
    assert f"steps in {iterations} iterations" in again.stdout


def test_ctrl_c_ends_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [
            *(sys.executable, str(SCRIPT), "--runs", str(tmp_path), "--checkpoint-every", "1"),
            *("--train-batch-size", "2176", "--num-envs", "64", "--hidden", "16"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("*/last/valety_env.json")):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    printed, _ = running.communicate(timeout=120)
    assert running.returncode == 0
    (folder,) = tmp_path.iterdir()
    assert f"stopped early; go on: --resume {folder}" in printed
    iterations = int(re.search(r"steps in (\d+) iterations", printed)[1])
    assert json.loads((folder / "last" / "valety_env.json").read_text())["step"] == iterations


def test_a_wrong_option_is_one_line() -> None:
    for arguments, word in (
        (("--game", "vallety"), "vallety"),
        (("--num-envs", "0"), "num_envs"),
        (("--resume", "runs/none"), "runs/none"),
    ):
        done = run_script(*arguments)
        assert done.returncode != 0
        assert word in done.stderr
        assert "Traceback" not in done.stderr


def test_a_trained_agent_beats_random_by_four_points_a_deal(tmp_path: Path) -> None:
    done = run_script(
        *("--runs", str(tmp_path), "--total-timesteps", "1500000", "--seed", "1"),
        *("--eval-every", "20", "--final-deals", "1000", "--final-matches", "0"),
    )
    assert done.returncode == 0, done.stderr
    mean, low, high = points(done.stdout, "random")
    assert low > 4
    assert high > mean > low
    # What it tells TensorBoard on the way: the learning curve, and the league's growth.
    (folder,) = tmp_path.iterdir()
    events = EventAccumulator(str(folder))
    events.Reload()
    curve = [event.value for event in events.Scalars("baselines/random/points_per_deal")]
    assert len(curve) == 2
    assert 0 < curve[0] < curve[1]
    # `random` is its first member, and after 20 and 40 iterations the policy of then joins.
    assert [event.value for event in events.Scalars("league/size")][18:20] == [1, 2]

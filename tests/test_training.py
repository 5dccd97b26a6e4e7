"""`training/ppo_selfplay.py`: options, what a run writes, how it ends, that it learns."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import torch
from scripts import complaints, load_script
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from valety_env.agents.neural import ActorCritic, NetworkConfig, read_checkpoint
from valety_env.arena import evaluate
from valety_env.learning.runs import flags_from_toml, make_run_folder, read_options, to_toml
from valety_env.rules import Rules, parse_game

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "training" / "ppo_selfplay.py"

# A run of about a second.
TINY = (
    "--game valety-L1 --total-timesteps 4000 --num-envs 64 --hidden 16 --minibatch-size 128 "
    "--threads 1 --final-deals 20 --final-matches 5"
).split()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("training/ppo_selfplay.py")


def train(script: ModuleType, runs: Path, *flags: str) -> Path:
    return script.main(read_options(script.Args, [*TINY, "--runs", str(runs), *flags]))


@pytest.fixture(scope="module")
def run(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(script, tmp_path_factory.mktemp("runs"), "--eval-minutes", "0.0001")


def call(*flags: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *flags]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options
    )


def test_help_explains_every_option_and_shows_an_example(script: ModuleType) -> None:
    done = call("--help", env=os.environ | {"COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    assert "python training/ppo_selfplay.py --minutes 10" in done.stdout
    told = " ".join(done.stdout.replace("│", " ").split())
    for field in dataclasses.fields(script.Args):
        assert f"--{field.name.replace('_', '-')}" in told
    source = SCRIPT.read_text("utf-8")
    docstrings = re.findall(r'^    \w+: .*\n    """((?:.|\n)*?)"""', source, re.MULTILINE)
    assert len(docstrings) == len(dataclasses.fields(script.Args))
    for docstring in docstrings:
        assert " ".join(docstring.split()) in told


def test_a_run_writes_its_options_its_checkpoint_and_its_evaluation(run: Path) -> None:
    assert run.name.startswith("valety-L1__ppo__1__")
    options = tomllib.loads((run / "config.toml").read_text("utf-8"))
    assert options["game"] == "valety-L1"
    assert options["hidden"] == [16]
    assert options["learning_rate"] > 0
    network, told = read_checkpoint(run)
    assert network.config.hidden == (16,)
    assert told["step"] >= 4000
    assert told["game"] == "valety-L1"
    assert Rules.from_dict(told["rules"]) == parse_game("valety-L1")[1]
    results = json.loads((run / "evaluation.json").read_text("utf-8"))["results"]
    assert [result["opponent"] for result in results] == ["random", "heuristic"]
    assert results[0]["agent"] == f"checkpoint:{run}/last"
    assert [(result["pairs"], result["match_pairs"]) for result in results] == [(20, 5)] * 2


def test_tensorboard_gets_the_names_that_cleanrl_uses(run: Path) -> None:
    events = EventAccumulator(str(run))
    events.Reload()
    names = set(events.Tags()["scalars"])
    charts = "episodic_return episodic_length SPS learning_rate".split()
    losses = (
        "value_loss policy_loss entropy old_approx_kl approx_kl clipfrac explained_variance"
    ).split()
    assert {f"charts/{name}" for name in charts} | {f"losses/{name}" for name in losses} <= names
    assert {"eval/points_per_deal_random", "eval/points_per_deal_heuristic"} <= names
    rates = [event.value for event in events.Scalars("charts/learning_rate")]
    assert rates == sorted(rates, reverse=True)
    assert events.Scalars("charts/episodic_length")[0].value == 4


@pytest.mark.parametrize(
    "flags",
    [
        ["--game", "polignac,num_players=5,general=false", "--episode", "match", "--reward", "win"],
        ["--game", "polignac,num_players=4", "--num-steps", "5"],
        ["--game", "knaves", "--observation", "planes_v0", "--num-steps", "7"],
    ],
)
def test_every_game_can_be_trained(script: ModuleType, tmp_path: Path, flags: list[str]) -> None:
    folder = train(script, tmp_path, "--total-timesteps", "1500", *flags, "--final-deals", "6")
    assert read_checkpoint(folder)[1]["step"] >= 1500


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    script: ModuleType, tmp_path: Path, threads: str
) -> None:
    quick = ["--total-timesteps", "2000", "--final-deals", "0", "--threads", threads]
    weights = []
    for i, seed in enumerate(("1", "1", "2")):
        folder = train(script, tmp_path / str(i), *quick, "--seed", seed)
        weights.append((folder / "last.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert weights[0] != weights[2]


def test_threads_that_share_a_minibatch_learn_what_one_learns(
    script: ModuleType, tmp_path: Path
) -> None:
    flags = "--total-timesteps 250 --final-deals 0 --threads".split()
    first, second, third = (
        read_checkpoint(train(script, tmp_path / threads, *flags, threads))[0].state_dict()
        for threads in ("1", "2", "3")
    )
    torch.manual_seed(1)
    start = ActorCritic(NetworkConfig(464, 52, (16,))).state_dict()
    for name, weights in first.items():
        for others in (second, third):
            # Sums are rounded in another order; Adam makes much of gradients near 0.
            assert (others[name] - weights).abs().mean() < 1e-4
        assert (start[name] - weights).abs().mean() > 1e-4


def test_a_config_file_stands_between_defaults_and_flags(
    script: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "some.toml"
    path.write_text('game = "knaves"\nhidden = [8, 9]\nanneal_lr = false\nminutes = 3\n')
    options = read_options(script.Args, ["--config", str(path), "--hidden", "7"])
    assert (options.game, options.hidden, options.anneal_lr) == ("knaves", (7,), False)
    assert options.minutes == 3
    assert options.seed == script.Args().seed
    path.write_text(to_toml(options))
    again = read_options(script.Args, [f"--config={path}"])
    assert dataclasses.replace(again, config=options.config) == options


@pytest.mark.parametrize("config", sorted((ROOT / "configs").glob("*.toml")), ids=lambda p: p.stem)
def test_the_committed_configs_hold_only_what_differs_from_the_defaults(
    script: ModuleType, config: Path
) -> None:
    options = read_options(script.Args, ["--config", str(config)])
    parse_game(options.game)
    for name in tomllib.loads(config.read_text("utf-8")):
        assert getattr(options, name) != getattr(script.Args(), name), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("learning_rates = 3", "'learning_rates' is not an option; they are: game"),
        ("seed = ", "is not TOML"),
        ("[hidden]\na = 1", "hidden must be a number, a text, true, false or a list"),
    ],
)
def test_a_wrong_config_file_is_refused(
    script: ModuleType, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "some.toml"
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        flags_from_toml(script.Args, path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(SystemExit) as stopped:
        read_options(script.Args, ["--config", str(path)])
    assert said in str(stopped.value)


def test_a_missing_config_file_is_refused(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="cannot be read"):
        read_options(script.Args, ["--config", str(tmp_path / "none.toml")])


@pytest.mark.parametrize("flags", [["--learning-rates", "1"], ["--seed", "x"], ["--reward", "no"]])
def test_a_wrong_flag_is_refused(script: ModuleType, flags: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        read_options(script.Args, flags)
    assert stopped.value.code == 2
    assert flags[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--num-envs", "0", "num_envs=0: it must be at least 1"),
        ("--minutes", "0", "minutes=0.0: it must be more than 0"),
        ("--final-deals", "-1", "final_deals=-1: it must be at least 0"),
    ],
)
def test_a_value_out_of_range_is_refused(script: ModuleType, capsys, flag, value, said) -> None:
    try:
        read_options(script.Args, [flag, value])
    except ValueError as error:
        told = str(error)
    except SystemExit:
        told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert said in told


def test_a_rollout_too_short_for_any_decision_is_no_error(
    script: ModuleType, tmp_path: Path
) -> None:
    flags = "--num-envs 1 --num-steps 1 --total-timesteps 40 --final-deals 0".split()
    assert read_checkpoint(train(script, tmp_path, *flags))[1]["step"] == 40


def test_a_wrong_value_in_a_config_file_is_refused(
    script: ModuleType, tmp_path: Path, capsys
) -> None:
    path = tmp_path / "some.toml"
    path.write_text("seed = 1.5")
    with pytest.raises(SystemExit):
        read_options(script.Args, ["--config", str(path)])
    assert "seed" in capsys.readouterr().err


def test_a_wrong_game_ends_the_script_with_one_line(tmp_path: Path) -> None:
    done = call("--game", "bridge", "--runs", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("ppo_selfplay.py: 'bridge' is not a game")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_run_never_writes_into_the_folder_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.5)
    folder = make_run_folder(tmp_path, "polignac,num_players=5", "a/b", 3)
    assert folder == tmp_path / "polignac_num_players_5__a_b__3__1000"
    assert folder.is_dir()
    with pytest.raises(ValueError, match="another run"):
        make_run_folder(tmp_path, "polignac,num_players=5", "a/b", 3)


def test_numbers_that_are_none_stop_the_run_and_the_last_good_checkpoint_stays(
    tmp_path: Path,
) -> None:
    flags = ["--learning-rate", "1e25", "--no-anneal-lr"]
    done = call(*TINY, "--runs", str(tmp_path), *flags)
    assert done.returncode == 1
    (message,) = complaints(done.stderr)
    (folder,) = tmp_path.iterdir()
    for part in ("step ", "update ", "nan", str(folder / "last.safetensors")):
        assert part in message
    read_checkpoint(folder)
    assert not (folder / "evaluation.json").exists()


def test_ctrl_c_saves_the_checkpoint_and_ends_without_an_error(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), *TINY, "--total-timesteps", "1000000000"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "300"}
    process = subprocess.Popen(
        [*command, "--runs", str(tmp_path), "--eval-minutes", "0.005"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        deadline = time.monotonic() + 120
        events = []
        while not events and time.monotonic() < deadline:
            time.sleep(0.2)
            files = list(tmp_path.glob("*/events*"))
            # TensorBoard writes its header first; the run is under way when there is more.
            events = [file for file in files if file.stat().st_size > 1000]
        assert events, "the run did not begin"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert err == ""
    (folder,) = tmp_path.iterdir()
    assert read_checkpoint(folder)[1]["step"] > 0
    assert f"valety-env evaluate checkpoint:{folder}" in out
    assert not (folder / "evaluation.json").exists()


def test_training_on_a_tiny_game_beats_random(script: ModuleType, tmp_path: Path) -> None:
    flags = "--game valety-L2 --total-timesteps 60000 --num-envs 256 --hidden 32 --final-deals 0"
    folder = train(script, tmp_path, *flags.split(), "--minibatch-size", "512")
    (result,) = evaluate(
        f"checkpoint:{folder}", ["random"], game="valety-L2", deals=2000, seed=1
    ).results
    assert result.ci95 is not None
    assert result.ci95[0] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "minibatch_size", "least"),
    [
        # The heuristic has 0.74 here.
        ("valety-L5", "256", 0.4),
        ("polignac,num_players=4,general=false", "512", 0.5),
    ],
)
def test_half_a_minute_of_training_beats_random_clearly(
    script: ModuleType, tmp_path: Path, game: str, minibatch_size: str, least: float
) -> None:
    flags = ["--game", game, "--total-timesteps", "800000", "--num-envs", "256", "--hidden", "128"]
    flags += ["--minibatch-size", minibatch_size, "--final-deals", "0"]
    folder = train(script, tmp_path, *flags)
    (result,) = evaluate(f"checkpoint:{folder}", ["random"], game=game, deals=2000, seed=1).results
    assert result.ci95 is not None
    assert result.ci95[0] > least

"""The environments are found by name, in Gymnasium and in PettingZoo."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import valety_env
from valety_env import polignac_v0, valety_v0
from valety_env.env import AECTable
from valety_env.rules import make_rules
from valety_env.single import SingleEnv, VectorSingleEnv, register_all

ROOT = Path(__file__).resolve().parent.parent

needs_registry = pytest.mark.skipif(
    not hasattr(pettingzoo, "make"), reason="this PettingZoo has no registry"
)


def in_new_process(*lines: str) -> str:
    """Run lines of Python in a new process, warnings being errors, and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("name", "game"), [("valety/Valety-v0", "valety"), ("valety/Polignac-v0", "polignac")]
)
def test_gymnasium_makes_both_games(name: str, game: str) -> None:
    env = gymnasium.make(name, opponent="random", seat=1)
    assert isinstance(env.unwrapped, SingleEnv)
    assert env.unwrapped.rules == make_rules(game)
    assert env.reset(seed=0)[1]["seat"] == 1
    envs = gymnasium.make_vec(name, num_envs=7, opponent="random", dtype="uint8")
    assert isinstance(envs, VectorSingleEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, infos = envs.reset(seed=0)
    assert observations.dtype == np.uint8
    assert infos["action_mask"].shape == (7, envs.single_action_space.n)
    again = gymnasium.make_vec(envs.spec, num_envs=7)
    assert np.array_equal(again.reset(seed=0)[0], observations)
    plain = gymnasium.make_vec(name, num_envs=2, vectorization_mode="sync")
    assert isinstance(plain, SyncVectorEnv)


def test_make_vec_passes_the_limit_of_steps_on() -> None:
    envs = gymnasium.make_vec("valety/Valety-v0", num_envs=2, max_episode_steps=3)
    _, infos = envs.reset(seed=0)
    for step in range(1, 7):
        actions = infos["action_mask"].argmax(axis=1)
        _, _, terminated, truncated, infos = envs.step(actions)
        assert truncated.all() == (step % 3 == 0)
        assert not terminated.any()


def test_a_new_process_finds_the_games_by_module_and_name() -> None:
    made = in_new_process(
        "import gymnasium",
        "env = gymnasium.make('valety_env:valety/Valety-v0')",
        "envs = gymnasium.make_vec('valety_env:valety/Polignac-v0', num_envs=3)",
        "print(env.spec.id, len(envs.reset(seed=0)[0]))",
    )
    assert made == "valety/Valety-v0 3"


def test_a_second_import_and_a_reload_say_nothing() -> None:
    register_all()
    importlib.reload(valety_env)
    registered = in_new_process(
        "import importlib, valety_env",
        "importlib.reload(valety_env)",
        "import gymnasium, valety_env",
        "print([name for name in gymnasium.registry if name.startswith('valety/')])",
    )
    assert registered == "['valety/Valety-v0', 'valety/Polignac-v0']"


def test_the_registered_environments_can_be_named_in_json() -> None:
    spec = gymnasium.make("valety/Valety-v0", opponent="random", episode="deal").spec
    assert spec is not None
    env = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert json.loads(spec.to_json())["kwargs"]["opponent"] == "random"
    assert env.unwrapped.setup.episode == "deal"  # type: ignore[attr-defined]


@needs_registry
def test_pettingzoo_makes_both_games() -> None:
    env = pettingzoo.make("aec", "valety/valety-v0")
    assert isinstance(env, AECTable)
    assert env.rules == valety_v0.env().rules
    env = pettingzoo.make("aec", "valety/polignac-v0", num_players=5)
    assert env.rules == polignac_v0.env(num_players=5).rules
    env = pettingzoo.make("aec", "valety/polignac_v0", episode="deal")
    assert env.setup.episode == "deal"


def test_without_pettingzoos_registry_gymnasiums_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("aec_registry", "register", "make"):
        monkeypatch.delattr(pettingzoo, name, raising=False)
    names = ["valety/Valety-v0", "valety/Polignac-v0"]
    for name in names:
        monkeypatch.delitem(gymnasium.registry, name)
    register_all()
    assert [name in gymnasium.registry for name in names] == [True, True]


@needs_registry
def test_a_user_registers_a_variant_under_a_name_of_his(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", {}, raising=True)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = importlib.import_module("custom_rules")
    monkeypatch.delitem(pettingzoo.aec_registry, "home/short-valety-v0", raising=False)
    example.register()
    rules = make_rules("valety", target=12, jack_penalties=(3, 3, 3, 3), first_lead="dealer")
    env: Any = gymnasium.make("home/ShortValety-v0", opponent="random")
    assert env.unwrapped.rules == rules
    envs: Any = gymnasium.make_vec("home/ShortValety-v0", num_envs=2)
    assert isinstance(envs, VectorSingleEnv)
    assert envs.rules == rules
    assert pettingzoo.make("aec", "home/short-valety-v0").rules == rules
    monkeypatch.delitem(pettingzoo.aec_registry, "home/short-valety-v0")

"""Stable-Baselines3: the adapter of the vector environment, and that MaskablePPO learns."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from scripts import load_script

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from valety_env import evaluate
from valety_env.integrations.sb3 import SB3VecEnv

ROOT = Path(__file__).resolve().parent.parent


class Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that has a seed of its own for its first episode."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int) -> None:
        super().__init__(env)
        self.first: int | None = seed

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seed, self.first = self.first, None
        return self.env.reset(seed=seed)


def assert_same(got: Any, wanted: Any) -> None:
    """Compare observations and infos, with their types."""
    if isinstance(wanted, dict):
        assert set(got) == set(wanted)
        for key in wanted:
            assert_same(got[key], wanted[key])
    elif isinstance(wanted, np.ndarray):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
    else:
        assert type(got) is type(wanted)
        assert got == wanted


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Valety", {"episode": "deal", "reward": "points"}),
        ("Valety", {"episode": "match", "reward": "points", "target": 8, "opponent": "random"}),
        ("Valety", {"episode": "deal", "reward": "points", "max_episode_steps": 6}),
        ("Valety", {"episode": "deal", "reward": "win", "max_episode_steps": 17}),
        ("Valety", {"episode": "deal", "observation": "pieces_v0", "dtype": "int8"}),
        ("Valety", {"episode": "deal", "mask": "observation"}),
        ("Polignac", {"episode": "deal", "reward": "points", "opponent": "random"}),
    ],
)
def test_the_tables_are_what_single_environments_are(name: str, options: dict[str, Any]) -> None:
    n = 3
    tables = gymnasium.make_vec(f"valety/{name}-v0", num_envs=n, **options)
    together = SB3VecEnv(tables)
    together.seed(11)
    observation = together.reset()

    def make(seed: int) -> gymnasium.Env[Any, Any]:
        return Seeded(gymnasium.make(f"valety/{name}-v0", **options), seed)

    seeds = tables.unwrapped.seeds.tolist()
    single = DummyVecEnv([lambda seed=seed: make(seed) for seed in seeds])
    assert together.observation_space == single.observation_space
    assert together.action_space == single.action_space
    assert_same(observation, single.reset())
    assert_same(dict(enumerate(together.reset_infos)), dict(enumerate(single.reset_infos)))
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(150):
        masks = get_action_masks(single)
        assert_same(get_action_masks(together), masks)
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        if rng.random() < 0.02:
            actions[0] = np.flatnonzero(~masks[0])[0]  # an illegal one ends the episode
        observation, rewards, dones, infos = together.step(actions)
        wanted = single.step(actions)
        assert_same(observation, wanted[0])
        assert_same(rewards, wanted[1])
        assert_same(dones, wanted[2])
        assert_same(dict(enumerate(infos)), dict(enumerate(wanted[3])))
        assert_same(dict(enumerate(together.reset_infos)), dict(enumerate(single.reset_infos)))
        ended += int(dones.sum())
    assert ended > n
    together.close()


def vec_env(n: int, **options: Any) -> SB3VecEnv:
    given = {"episode": "deal", "reward": "points", "opponent": "random", "illegal": "raise"}
    tables = gymnasium.make_vec("valety/Valety-v0", num_envs=n, **given | options)
    return SB3VecEnv(tables)


def test_a_seed_fixes_the_deals_and_neighbouring_seeds_share_no_table() -> None:
    first, second = vec_env(8), vec_env(8)
    first.seed(1)
    assert second.seed(2) == [2] * 8
    assert not set(map(bytes, first.reset())) & set(map(bytes, second.reset()))
    second.seed(1)
    again = second.reset()
    first.seed(1)
    assert_same(first.reset(), again)
    # Without a seed each table goes on to its next deal.
    assert not np.array_equal(first.reset(), again)
    assert first.seed() != first.seed()


def test_what_the_tables_cannot_be_asked_is_refused_in_one_line() -> None:
    env = vec_env(2)
    env.reset()
    assert is_masking_supported(env)
    assert [len(mask) for mask in env.env_method("action_masks", indices=1)] == [52]
    assert env.env_is_wrapped(gymnasium.Wrapper, indices=[0]) == [False]
    assert env.get_attr("rules") == [env.env.unwrapped.rules] * 2
    for ask in (
        lambda: env.env_method("shuffle"),
        lambda: env.set_attr("seat", 1),
        lambda: env.get_attr("shuffle"),
    ):
        with pytest.raises(AttributeError) as caught:
            ask()
        assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="env is a DummyVecEnv: it must be the vector environment"):
        SB3VecEnv(DummyVecEnv([lambda: gymnasium.make("valety/Valety-v0")]))
    with pytest.raises(TypeError, match="env is a SyncVectorEnv"):
        SB3VecEnv(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))


def test_tables_can_be_seen() -> None:
    env = vec_env(2, render_mode="rgb_array")
    env.reset()
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert (picture.dtype, picture.ndim) == (np.uint8, 3)
    env.close()


def test_the_single_environment_passes_the_check_of_stable_baselines() -> None:
    check_env(gymnasium.make("valety/Valety-v0", opponent="random").unwrapped)


def small_model(env: Any, seed: int) -> MaskablePPO:
    return MaskablePPO(
        "MlpPolicy", env, n_steps=40, batch_size=80, n_epochs=2, seed=seed, device="cpu"
    )


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    weights = []
    for seed in (1, 1, 2):
        # Illegal actions raise: the masks reach the policy, in play and in learning.
        model = small_model(VecMonitor(vec_env(4)), seed).learn(480)
        assert model.ep_info_buffer is not None
        assert {episode["l"] for episode in model.ep_info_buffer} == {17}
        weights.append([tensor.numpy() for tensor in model.policy.state_dict().values()])
    for first, second in zip(weights[0], weights[1], strict=True):
        np.testing.assert_array_equal(first, second)
    assert any(not np.array_equal(a, b) for a, b in zip(weights[0], weights[2], strict=True))


def test_models_are_evaluated_on_the_tables_by_sb3s_own_means(tmp_path: Path) -> None:
    model = small_model(VecMonitor(vec_env(4)), 1)
    watched = VecMonitor(vec_env(4))
    callback = MaskableEvalCallback(
        watched, n_eval_episodes=8, eval_freq=40, log_path=str(tmp_path), verbose=0
    )
    model.learn(160, callback=callback)
    saved = np.load(tmp_path / "evaluations.npz")
    assert (saved["ep_lengths"] == 17).all()
    returns, lengths = evaluate_policy(model, watched, 8, return_episode_rewards=True)
    assert (len(returns), set(lengths)) == (8, {17})


@pytest.mark.slow
@pytest.mark.parametrize("vector", [False, True])
def test_a_minute_of_maskable_ppo_beats_random_clearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vector: bool
) -> None:
    options = gymnasium.registry["valety/Valety-v0"].kwargs
    monkeypatch.setitem(options, "illegal", "raise")
    example = load_script("examples/sb3_maskable_ppo.py")
    path = example.main(vector=vector, total_timesteps=200_000, runs=str(tmp_path))
    (result,) = evaluate(f"sb3:{path}", "random", deals=1000, seed=1, trust=True).results
    assert result.ci95 is not None
    # The lower ends of seeds 1, 2 and 3 were 2.4, 2.7 and 2.5 with the vector environment.
    assert result.ci95[0] > 1.75

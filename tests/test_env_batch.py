"""The AEC environment equals the batch environment, table by table."""

from typing import Any

import numpy as np
import pytest
from aec import arrays_in, assert_equal_observations, is_over

from valety_env import polignac_v0, valety_v0
from valety_env.env import AECTable
from valety_env.observations import ENCODERS
from valety_env.vector import Batch, SelfPlayEnv

TABLES = 3
ENDS = 4

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "valety": ("valety", {}),
    "valety by tricks": ("valety", {"count": "trick"}),
    "knaves": ("knaves", {}),
    "valety-L5": ("valety-L5", {}),
    **{f"polignac-{n}": ("polignac", {"num_players": n}) for n in (3, 4, 7)},
    "polignac-classic": ("polignac-classic", {"num_players": 5}),
}
MIXED = ["tokens_v0", "flat_v0", "pieces_v0", "planes_v0", "flat_v0", "tokens_v0", "flat_v0"]


def aec(game: str, **options: Any) -> AECTable:
    module = polignac_v0 if game.startswith("polignac") else valety_v0
    return module.env(game, **options)


def row(batch: Batch, table: int, encoder: str) -> Any:
    """Return the observation of one table, from a batch of one encoding or of several."""
    observation: Any = batch.observation
    index = table
    if batch.rows:
        observation = observation[encoder]
        (index,) = np.flatnonzero(batch.rows[encoder] == table)
    if isinstance(observation, dict):
        return {name: array[index] for name, array in observation.items()}
    return observation[index]


def assert_rows_equal(env: AECTable, batch: Batch, table: int) -> None:
    """Check that the next decision at a table is the same in both."""
    seat = int(batch.seat[table])
    agent = env.agent_selection
    assert agent == f"player_{seat}"
    observation = env.last()[0]
    encoder = env.setup.encoders[seat].name
    assert_equal_observations(observation["observation"], row(batch, table, encoder))
    np.testing.assert_array_equal(observation["action_mask"], batch.action_mask[table])
    np.testing.assert_array_equal(env.infos[agent]["action_mask"], batch.action_mask[table])


def compare(game: str, *, illegal_odds: float = 0.0, ends: int = ENDS, **options: Any) -> int:
    """Play a batch and as many AEC environments with the same actions; return episodes ended."""
    batch_env = SelfPlayEnv(game, num_envs=TABLES, seed=41, **options)
    batch = batch_env.reset()
    envs = [aec(game, dtype="uint8", **options) for _ in range(TABLES)]
    for env, seed in zip(envs, batch_env.seeds, strict=True):
        env.reset(seed=int(seed))
    rng = np.random.default_rng(0)
    ended = fined = 0
    for _ in range(100_000):
        actions = batch_env.sample()
        wrong = rng.random(TABLES) < illegal_odds
        actions[wrong] = rng.integers(-3, 70, wrong.sum())
        for table, env in enumerate(envs):
            assert_rows_equal(env, batch, table)
        if rng.random() < 0.05:
            states = batch_env.state()
            for env, state in zip(envs, states, strict=True):
                np.testing.assert_array_equal(env.state(), state)
        batch = batch_env.step(actions)
        final = batch_env.final()
        for table, env in enumerate(envs):
            env.step(int(actions[table]))
            rewards = np.array(list(env.rewards.values()), np.float32)
            np.testing.assert_array_equal(rewards, batch.rewards[table])
            assert is_over(env) == batch.terminated[table]
            assert not batch.truncated[table]
            if not is_over(env):
                fined += bool(wrong[table]) and batch.rewards[table].any()
                continue
            ended += 1
            fined += env.record()["illegal"] is not None
            (at,) = np.flatnonzero(final.tables == table)
            for seat, agent in enumerate(env.possible_agents):
                at_end = arrays_in(env.observe(agent)["observation"])
                for one, other in zip(at_end, arrays_in(final.observation[seat]), strict=True):
                    np.testing.assert_array_equal(one, other[at])
            record = env.record()
            assert record["totals"] == final.totals[at].tolist()
            assert record["winners"] == np.flatnonzero(final.winners[at]).tolist()
            assert len(record["deals"]) == final.deals[at]
            env.reset()
        if ended >= ends:
            break
    for env in envs:
        assert env.record()["episode"] >= (1 if ends >= 3 * TABLES else 0)
    assert (fined > 0) == (illegal_odds > 0)
    return ended


@pytest.mark.parametrize("episode", ["match", "deal"])
@pytest.mark.parametrize("reward", ["win", "points"])
@pytest.mark.parametrize("case", CASES)
def test_a_batch_equals_environments_with_the_seeds_of_its_tables(
    case: str, reward: str, episode: str
) -> None:
    game, options = CASES[case]
    ends = 4 * TABLES if episode == "deal" else 2 * TABLES
    assert compare(game, ends=ends, reward=reward, episode=episode, **options) >= ends


@pytest.mark.parametrize("encoder", [*ENCODERS, "mixed"])
@pytest.mark.parametrize("case", ["valety", "knaves", "polignac-4", "polignac-7"])
def test_a_batch_equals_environments_in_every_encoding_and_mixed_ones(
    case: str, encoder: str
) -> None:
    game, options = CASES[case]
    observation: Any = encoder
    if encoder == "mixed":
        players = aec(game, **options).max_num_agents
        observation = {f"player_{seat}": MIXED[seat] for seat in range(players)}
    assert compare(game, episode="deal", observation=observation, **options) >= ENDS


@pytest.mark.parametrize("illegal", ["terminate", "penalise"])
@pytest.mark.parametrize("reward", ["win", "points"])
@pytest.mark.parametrize("case", ["valety", "polignac-4"])
def test_a_batch_equals_environments_under_illegal_actions_too(
    case: str, reward: str, illegal: str
) -> None:
    game, options = CASES[case]
    ended = compare(
        game, illegal_odds=0.03, ends=12, reward=reward, episode="match", illegal=illegal, **options
    )
    assert ended >= 12


@pytest.mark.plain
@pytest.mark.parametrize("game", ["valety-L1", "valety-L5"])
def test_a_small_batch_equals_environments(game: str) -> None:
    assert compare(game, ends=2, reward="points") >= 2

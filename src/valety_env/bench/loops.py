"""The loops that are measured: random legal play, with all it needs, on every interface.

Each yields how many steps it has made since the last time, for as long as it is asked. The loop of
one AEC environment is in `peer_programs`, as PettingZoo's own are played by it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy import uint64

from valety_env._jit import kernel
from valety_env.bench.peer_programs.aec_loop import draws
from valety_env.bench.peer_programs.serve import Steps
from valety_env.cards import EMPTY, ONE, count, nth
from valety_env.rng import below, mix
from valety_env.single import VectorSingleEnv
from valety_env.vector import Batch, SelfPlayEnv

# A match of Valety, and one of Polignac, is about so many plays.
MATCH_PLAYS = 136
# Tables that are brought out of step by playing, at most. Enough that no processor learns by heart
# how they go on.
PLAYED_TABLES = 128 * MATCH_PLAYS
# It ends an episode: so tables are brought out of step.
_ILLEGAL = -1


@kernel
def choose_legal(masks: np.ndarray, key: np.uint64, actions: np.ndarray) -> None:
    """Draw a uniformly random legal action a row.

    Args:
        masks: int8 (N, A), A at most 64, a one in every row.
        key: another one at every call.
        actions: int64 (N,), written.
    """
    for i in range(masks.shape[0]):
        legal = EMPTY
        for action in range(masks.shape[1]):
            if masks[i, action]:
                legal |= ONE << uint64(action)
        actions[i] = nth(legal, below(mix(key, uint64(i)), count(legal)))


def aec_tables_steps(envs: Sequence[Any], seed: int) -> Steps:
    """Play a step at each of several AEC environments in turn."""
    drawn = cycle(draws(seed))
    for number, env in enumerate(envs):
        env.reset(seed=seed + number)
    while True:
        steps = 0
        for env in envs:
            observation, _, termination, truncation, _ = env.last()
            if termination or truncation:
                env.reset()
                continue
            legal = np.flatnonzero(observation["action_mask"])
            env.step(legal[int(next(drawn) * len(legal))])
            steps += 1
        yield steps


def scalar_steps(envs: Sequence[gymnasium.Env[Any, Any]], seed: int) -> Steps:
    """Play a step at each of one or more Gymnasium environments in turn."""
    drawn = cycle(draws(seed))
    infos = [env.reset(seed=seed + number)[1] for number, env in enumerate(envs)]
    while True:
        for i, env in enumerate(envs):
            legal = np.flatnonzero(infos[i]["action_mask"])
            action = legal[int(next(drawn) * len(legal))]
            _, _, terminated, truncated, infos[i] = env.step(action)
            if terminated or truncated:
                infos[i] = env.reset()[1]
        yield len(envs)


def stagger(env: SelfPlayEnv, plays: int = MATCH_PLAYS) -> Batch:
    """Start all tables, and bring them to different plays of their matches; return the last batch.

    Tables that started together deal together, and a short measurement would see too many deals or
    none: with a million tables a second is a few plays.
    """
    batch = env.reset()
    for play in range(plays):
        actions = env.sample()
        actions[play::plays] = _ILLEGAL
        batch = env.step(actions)
    return batch


def spread_batch(make: Callable[[int], SelfPlayEnv], tables: int) -> SelfPlayEnv:
    """Return an environment with so many tables, at different plays of their matches.

    Args:
        make: returns one with a given number of tables.
        tables: of more than `PLAYED_TABLES` only so many are played, and the rest are copies with
            seeds of their own: no further deal of theirs is the same.
    """
    few = make(min(tables, PLAYED_TABLES))
    stagger(few)
    if few.num_envs == tables:
        return few
    env = make(tables)
    env.reset()
    env.states[:] = np.resize(few.states, tables)
    env.states["seed"] = env.seeds
    return env


def spread_vector(
    make: Callable[[int], VectorSingleEnv], tables: int, seed: int
) -> tuple[VectorSingleEnv, dict[str, Any]]:
    """Do the same for the Gymnasium vector environment; returns it with its last infos."""
    few = make(min(tables, PLAYED_TABLES))
    _, infos = few.reset(seed=seed)
    for step in range(MATCH_PLAYS // 2):
        actions = infos["action_mask"].argmax(axis=1)
        actions[step :: MATCH_PLAYS // 2] = _ILLEGAL
        infos = few.step(actions)[4]
    if few.num_envs == tables:
        return few, infos
    envs = make(tables)
    envs.reset(seed=seed)
    envs._states[:] = np.resize(few._states, tables)
    envs._states["seed"] = envs.seeds
    # All wait for their learners.
    envs._learners[:] = envs._states["turn"]
    # Starting one table anew shows how all stand.
    return envs, envs.reset(options={"reset_mask": np.arange(tables) == 0})[1]


def batch_steps(env: SelfPlayEnv) -> Steps:
    """Step all tables of a batch environment that was started."""
    while True:
        env.step(env.sample())
        yield env.num_envs


def rollout_steps(env: SelfPlayEnv, rows: Sequence[Batch]) -> Steps:
    """Step all tables into the rows of a rollout, which are kept and in time filled again."""
    for row in cycle(rows):
        env.step(env.sample(), out=row)
        yield env.num_envs


def vector_steps(envs: VectorEnv[Any, Any, Any], infos: dict[str, Any], seed: int) -> Steps:
    """Step all learners of a Gymnasium vector environment, from the infos of its last step."""
    actions = np.empty(envs.num_envs, np.int64)
    calls = 0
    while True:
        key = uint64(mix(uint64(seed), uint64(calls)))
        choose_legal(infos["action_mask"], key, actions)
        calls += 1
        infos = envs.step(actions)[4]
        yield envs.num_envs

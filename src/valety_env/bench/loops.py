"""The loops that are measured: random legal play, with all it needs, on every interface.

Each yields how many steps it has made since the last time, for as long as it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy import uint64

from valety_env._jit import kernel
from valety_env.bench.peer_programs.serve import Steps
from valety_env.cards import EMPTY, ONE, count, nth
from valety_env.rng import below, mix
from valety_env.vector import Batch, SelfPlayEnv

# A match of Valety, and one of Polignac, is about so many plays.
_MATCH_PLAYS = 136
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


def _draws(seed: int) -> list[float]:
    """Return random numbers to choose by, as plain floats, which Python multiplies fastest."""
    return np.random.default_rng(seed).random(1 << 16).tolist()


def aec_steps(env: Any, seed: int) -> Steps:
    """Play episode after episode by the loop of PettingZoo's documentation."""
    draws = _draws(seed)
    steps = 0
    env.reset(seed=seed)
    while True:
        before = steps
        for _ in env.agent_iter():
            observation, _, termination, truncation, _ = env.last()
            if termination or truncation:
                action = None
            else:
                legal = np.flatnonzero(observation["action_mask"])
                action = legal[int(draws[steps & 0xFFFF] * len(legal))]
                steps += 1
            env.step(action)
        yield steps - before
        env.reset()


def aec_tables_steps(envs: Sequence[Any], seed: int) -> Steps:
    """Play a step at each of several AEC environments in turn."""
    draws = cycle(_draws(seed))
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
            env.step(legal[int(next(draws) * len(legal))])
            steps += 1
        yield steps


def scalar_steps(envs: Sequence[gymnasium.Env[Any, Any]], seed: int) -> Steps:
    """Play a step at each of one or more Gymnasium environments in turn."""
    draws = cycle(_draws(seed))
    infos = [env.reset(seed=seed + number)[1] for number, env in enumerate(envs)]
    while True:
        for i, env in enumerate(envs):
            legal = np.flatnonzero(infos[i]["action_mask"])
            action = legal[int(next(draws) * len(legal))]
            _, _, terminated, truncated, infos[i] = env.step(action)
            if terminated or truncated:
                infos[i] = env.reset()[1]
        yield len(envs)


def spread_batch(env: SelfPlayEnv) -> SelfPlayEnv:
    """Start all tables, and bring them to different plays of their matches.

    Tables that started together deal together, and a short measurement would see too many deals or
    none: with a million tables a second is a few plays.
    """
    env.reset()
    for play in range(_MATCH_PLAYS):
        actions = env.sample()
        actions[play::_MATCH_PLAYS] = _ILLEGAL
        env.step(actions)
    return env


def spread_vector(envs: VectorEnv[Any, Any, Any], seed: int) -> dict[str, Any]:
    """Do the same for a Gymnasium vector environment; returns the last infos."""
    _, infos = envs.reset(seed=seed)
    for step in range(_MATCH_PLAYS // 2):
        actions = infos["action_mask"].argmax(axis=1)
        actions[step :: _MATCH_PLAYS // 2] = _ILLEGAL
        infos = envs.step(actions)[4]
    return infos


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

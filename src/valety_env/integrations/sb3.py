"""Stable-Baselines3: the vector environment as the `VecEnv` that its algorithms take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from valety_env.agents import needs_extra
from valety_env.single import VectorSingleEnv

with needs_extra(__name__, "sb3", ("stable_baselines3", "torch")):
    from stable_baselines3.common.vec_env import VecEnv

Observation = Any  # an array (N, …), or a dict of such arrays


class SB3VecEnv(VecEnv):
    """N tables of a `VectorSingleEnv` as Stable-Baselines3 steps them.

    They give what a `DummyVecEnv` of N `SingleEnv`s with the same seeds gives, in one call for all
    of them: float32 rewards, an info each, in that of a finished table `terminal_observation` and
    how its episode ended, in `reset_infos` how the next began, and the masks that MaskablePPO asks
    for. A seed gives table i the seed `mix(seed, i)`, where `DummyVecEnv` takes `seed + i`, so that
    the tables of two runs are never the same.

    Args:
        env: as `gymnasium.make_vec("valety/Valety-v0", …)` makes it; wrappers of it are allowed.

    Raises:
        TypeError: for another environment.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        tables = getattr(env, "unwrapped", None)
        if not isinstance(tables, VectorSingleEnv):
            raise TypeError(
                f"env is a {type(env).__name__}: it must be the vector environment that "
                "gymnasium.make_vec('valety/Valety-v0', num_envs=...) makes"
            )
        self.env = env
        self._tables = tables
        self._seed: int | None = None
        self._actions: np.ndarray | None = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata = dict(env.metadata)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next reset; None: 32 random bits.

        Returns:
            the seed once for each table; the tables' own are in `env.unwrapped.seeds` after it.
        """
        self._seed = int(np.random.default_rng().integers(1 << 32)) if seed is None else int(seed)
        return [self._seed] * self.num_envs

    def reset(self) -> Observation:
        """Start an episode at every table; the next of its seed if no seed was set."""
        observations, infos = self.env.reset(seed=self._seed)
        self._seed = None
        self._reset_options()
        self.reset_infos = _rows(infos, self.num_envs)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions (N,) that `step_wait` plays."""
        self._actions = actions

    def step_wait(self) -> tuple[Observation, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play them.

        Returns:
            observations, those of the next episode at a finished table; rewards, float32 (N,);
            whether an episode has ended, bool (N,); the infos.
        """
        observations, rewards, terminated, truncated, told = self.env.step(self._actions)
        dones = terminated | truncated
        infos = _rows(told, self.num_envs)
        for i in range(self.num_envs):
            infos[i]["TimeLimit.truncated"] = False
        if dones.any():
            finals = _rows(told["final_info"], self.num_envs)
            for i in np.flatnonzero(dones).tolist():
                del infos[i]["TimeLimit.truncated"]
                self.reset_infos[i] = infos[i]
                infos[i] = finals[i]
                infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
                infos[i]["terminal_observation"] = told["final_obs"][i]
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return a picture of each table; needs `render_mode="rgb_array"`."""
        pictures: Any = self.env.render()
        return [None] * self.num_envs if pictures is None else list(pictures)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Ask some tables, all by default, for their `action_masks` or to `render`.

        Raises:
            AttributeError: for any other method: the tables have none of their own.
        """
        if method_name not in ("action_masks", "render"):
            raise AttributeError(
                f"env_method({method_name!r}): tables that are stepped together can be asked for "
                "'action_masks' and 'render' alone"
            )
        answers = getattr(self._tables, method_name)(*method_args, **method_kwargs)
        return [answers[i] for i in self._indices(indices)]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector environment, which all tables share, once for each.

        Raises:
            AttributeError: if it has none of that name.
        """
        value = getattr(self._tables, attr_name)
        return [value for _ in self._indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse to set an attribute: the tables have none of their own.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"set_attr({attr_name!r}): tables that are stepped together have no attributes of "
            "their own; give options to gymnasium.make_vec"
        )

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each table: none is wrapped by itself."""
        return [False for _ in self._indices(indices)]

    def _indices(self, indices: Any) -> Iterable[int]:
        found: Iterable[int] = self._get_indices(indices)
        return found


def _rows(infos: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """Return arrays of infos as one dict a table, its single numbers as Python's."""
    keys = ("action_mask", "seat", "totals", "points", "win")
    columns = [infos[key].tolist() if infos[key].ndim == 1 else list(infos[key]) for key in keys]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)][:n]

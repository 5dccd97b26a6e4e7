"""What a model observes, as its Gymnasium space says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from valety_env.agents.foreign.policy import Shape

MASK = "action_mask"


class Observed:
    """How observations are laid out for a model.

    A space is an array, a dict of the pieces of `pieces_v0`, or a dict of either and of
    `action_mask`.

    Attributes:
        shape: of one observation, as in `policy.Model`.
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        """Read a space.

        Raises:
            ValueError: in words that fit after "it observes", for any other space.
        """
        self._mask: gymnasium.Space[Any] | None = None
        self._key: str | None = None
        self._space = space
        if isinstance(space, gymnasium.spaces.Dict) and MASK in space.spaces:
            others = [name for name in space.spaces if name != MASK]
            if len(others) != 1:
                raise ValueError(
                    f"a dict of {', '.join(space.spaces)}; beside {MASK} there must be one entry"
                )
            self._mask = space[MASK]
            self._key = others[0]
            self._space = space[self._key]
        self.shape: Shape | Mapping[str, Shape]
        if isinstance(self._space, gymnasium.spaces.Dict):
            self.shape = {name: _shape(piece) for name, piece in self._space.spaces.items()}
        else:
            self.shape = _shape(self._space)

    def lay_out(self, shown: Any, masks: np.ndarray) -> Any:
        """Return what `policy.Model.ask` was given in the space's layout and dtypes, copied."""
        if isinstance(shown, Mapping):
            observation: Any = {
                name: array.astype(self._space[name].dtype)  # type: ignore[index]
                for name, array in shown.items()
            }
        else:
            observation = shown.astype(self._space.dtype)
        if self._key is None or self._mask is None:
            return observation
        return {self._key: observation, MASK: masks.astype(self._mask.dtype)}


def _shape(space: gymnasium.Space[Any]) -> tuple[int, ...]:
    if not isinstance(space, gymnasium.spaces.Box):
        raise ValueError(f"a space of type {type(space).__name__}; it must be Box, or a Dict of it")
    return tuple(space.shape)


def read_spaces(
    source: str, observation: gymnasium.Space[Any], action: gymnasium.Space[Any]
) -> tuple[Observed, int]:
    """Return how observations are laid out for a model, and how many actions it has.

    Args:
        source: the model's name, for messages.
        observation: the space of what it observes.
        action: the space of what it gives.

    Raises:
        ValueError: in one line, for spaces that no encoder and no game have.
    """
    try:
        observed = Observed(observation)
    except ValueError as error:
        raise ValueError(f"{source} observes {error}") from None
    try:
        return observed, count_actions(action)
    except ValueError as error:
        raise ValueError(f"{source} acts in {error}") from None


def count_actions(space: gymnasium.Space[Any]) -> int:
    """Return how many actions a space has.

    Raises:
        ValueError: in words that fit after "it acts in", if they are not numbered from 0.
    """
    if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise ValueError(f"{space}; it must be Discrete, from 0 on")
    return int(space.n)

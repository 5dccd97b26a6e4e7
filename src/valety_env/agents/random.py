"""`random`: every legal action is equally likely."""

from __future__ import annotations

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.cards import EMPTY, GENERAL, bit, count, nth
from valety_env.rng import below, mix
from valety_env.rules import Rules


@kernel
def random_action(legal: np.uint64, key: np.uint64, general: bool) -> int:
    """Return a uniformly random action of a set.

    Args:
        legal: the legal actions, never empty.
        key: fixes the draw.
        general: whether a general may be announced (P6).

    Returns:
        one of `legal`.
    """
    allowed = _allowed(legal, general)
    return nth(allowed, below(mix(key, EMPTY), count(allowed)))


@kernel
def _allowed(legal: np.uint64, general: bool) -> np.uint64:
    """Return the actions that are chosen from."""
    return legal if general or legal == bit(GENERAL) else legal & ~bit(GENERAL)


@kernel
def random_actions(legal: np.ndarray, keys: np.ndarray, general: bool, actions: np.ndarray) -> None:
    """Write a `random_action` for each row into `actions`, int64 (N,)."""
    for row in range(legal.shape[0]):
        actions[row] = random_action(legal[row], keys[row], general)


@kernel
def random_chances(
    legal: np.ndarray, actions: np.ndarray, general: bool, chances: np.ndarray
) -> None:
    """Write how likely `random_action` is to give each row's action, float64 (N,)."""
    for row in range(legal.shape[0]):
        allowed = _allowed(legal[row], general)
        is_allowed = allowed & bit(int64(actions[row])) != EMPTY
        chances[row] = 1.0 / count(allowed) if is_allowed else 0.0


class RandomAgent:
    """A player that chooses among its legal actions with equal chances.

    Attributes:
        name: `random`, or `random,general=0`.
        draws: its `chances` are those of its choices.
    """

    draws = True

    def __init__(self, rules: Rules, general: bool = True) -> None:
        """Make the player.

        Args:
            rules: any; random play is the same under all.
            general: False: it never announces; otherwise it does so at every other chance.
        """
        self.general = general
        self.name = "random" if general else "random,general=0"

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`; views are not read."""
        actions = np.empty(len(legal), np.int64)
        random_actions(legal, keys, self.general, actions)
        return actions

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Say how likely given actions are, as `Policy`; views are not read."""
        chances = np.empty(len(legal))
        random_chances(legal, actions, self.general, chances)
        return chances

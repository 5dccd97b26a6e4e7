"""What bounds the environments: writing a row, and the bookkeeping that PettingZoo asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
from pettingzoo import AECEnv

from valety_env._jit import kernel
from valety_env.bench.peer_programs.serve import Steps

ROW_BYTES = 256
_ROWS = 64
_WORDS = ROW_BYTES // 8


@kernel
def copy_rows(source: np.ndarray, target: np.ndarray, times: int) -> None:
    """Copy rows again and again, within the cache.

    Args:
        source: uint64 (64, 32).
        target: likewise, written.
        times: rows to copy.
    """
    for i in range(times):
        for j in range(_WORDS):
            target[i & 63, j] = source[(7 * i) & 63, j]


def row_steps(times: int = 100_000) -> Steps:
    """Copy rows of 256 bytes, `times` between two yields."""
    source, target = np.ones((_ROWS, _WORDS), np.uint64), np.zeros((_ROWS, _WORDS), np.uint64)
    while True:
        copy_rows(source, target, times)
        yield times


class NoGame(AECEnv[str, Any, int]):  # type: ignore[misc]
    """An AEC environment with the spaces of Valety and PettingZoo's bookkeeping, but no game."""

    metadata = {"name": "no_game", "render_modes": []}  # noqa: RUF012  (PettingZoo's attribute)

    # Plays of a match of Valety, and legal cards a play, about.
    episode_steps = 136
    legal_cards = 9

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["player_0", "player_1"]
        self._row = np.zeros(464, np.float32)
        self._mask = np.zeros(52, np.int8)
        self._mask[: self.legal_cards] = 1

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode."""
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._steps = 0

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """Return new arrays, always of the same numbers."""
        return {"observation": self._row.copy(), "action_mask": self._mask.copy()}

    def step(self, action: Any) -> None:
        """Let the other agent be next, and end the episode when it is time."""
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[self.agent_selection] = 0
        self._clear_rewards()
        self._steps += 1
        if self._steps == self.episode_steps:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[self._steps % 2]
        self._accumulate_rewards()

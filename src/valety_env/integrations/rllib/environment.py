"""One table as a multi-agent environment of RLlib."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import ENV_CREATOR, _global_registry, register_env

from valety_env.env import AECTable
from valety_env.rules import parse_game

# Name in Ray's registry → the game played if the configuration names none.
ENVIRONMENTS = {"valety_v0": "valety", "polignac_v0": "polignac"}

AgentValues = dict[str, Any]


class TableEnv(MultiAgentEnv):  # type: ignore[misc]
    """One table; a step is one play, by the seat that was shown an observation.

    Observations are those of the AEC environment, `{"observation": …, "action_mask": …}`, of the
    agent to move alone; at the end of an episode of every agent, with masks that are all zero.
    Rewards are of the step just made, of every agent that got one, so that none is lost or given
    twice when a seat moves twice in a row or another seat ends the deal.

    Args:
        config: the environment's configuration: `game` (a game and its rule options, as in
            `polignac,num_players=5`), `reward_scale` (rewards are multiplied by it, 1 by default),
            and options of `env.AECTable`: `episode`, `reward`, `observation`, `dtype`, `illegal`,
            and fields of `rules.Rules`.
        game: the game if the configuration names none.

    Raises:
        ValueError: for an unknown option or value.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, game: str = "valety") -> None:
        super().__init__()
        self.options = dict(config or {})
        self.game, rules = parse_game(self.options.pop("game", game))
        self.reward_scale = float(self.options.pop("reward_scale", 1.0))
        self.table = AECTable(rules, **self.options)
        self.possible_agents = list(self.table.possible_agents)
        # RLlib's checker wants those here who get the last observation, at the end of an episode.
        self.agents = list(self.possible_agents)
        self._over = False
        self.observation_spaces = self.table.observation_spaces
        self.action_spaces = self.table.action_spaces
        self.observation_space = gymnasium.spaces.Dict(self.observation_spaces)
        self.action_space = gymnasium.spaces.Dict({**self.action_spaces})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[AgentValues, AgentValues]:
        """Start an episode.

        Args:
            seed: as in `AECTable.reset`.
            options: ignored.

        Returns:
            agent → observation and agent → info, of the agent to move.
        """
        self.table.reset(seed)
        self._over = False
        return self._observe(), self._infos()

    def step(
        self, action_dict: AgentValues
    ) -> tuple[AgentValues, AgentValues, AgentValues, AgentValues, AgentValues]:
        """Play for the agent to move.

        Args:
            action_dict: its name → its action.

        Returns:
            five dicts with agents as keys: observations, rewards, terminations, truncations, infos.

        Raises:
            ValueError: if the action is not that of the agent to move alone.
        """
        table = self.table
        mover = table.agent_selection
        if list(action_dict) != [mover]:
            raise ValueError(f"actions of {', '.join(action_dict) or 'nobody'}: {mover} is to move")
        table.step(action_dict[mover])
        rewards = {
            agent: reward * self.reward_scale
            for agent, reward in table.rewards.items()
            if reward or agent == mover
        }
        self._over = all(table.terminations.values())
        terminations = {"__all__": self._over}
        if self._over:
            terminations.update(table.terminations)
        return self._observe(), rewards, terminations, {"__all__": False}, self._infos()

    def _shown(self) -> list[str]:
        """Return the agents that get an observation."""
        return self.possible_agents if self._over else [self.table.agent_selection]

    def _observe(self) -> AgentValues:
        return {agent: self.table.observe(agent) for agent in self._shown()}

    def _infos(self) -> AgentValues:
        return {agent: {} for agent in self._shown()}

    def close(self) -> None:
        """Close the table."""
        self.table.close()


def _create(config: Mapping[str, Any], game: str) -> TableEnv:
    return TableEnv(config, game)


def make_table(config: AlgorithmConfig) -> TableEnv:
    """Make the environment that an algorithm is configured for.

    Raises:
        ValueError: if it is none of this package.
    """
    make = config.env
    if make in ENVIRONMENTS:
        make = partial(_create, game=ENVIRONMENTS[make])
    elif isinstance(make, str) and _global_registry.contains(ENV_CREATOR, make):
        make = _global_registry.get(ENV_CREATOR, make)
    made = make(config.env_config) if callable(make) else None
    if not isinstance(made, TableEnv):
        raise ValueError(
            f"environment {config.env!r}: it must be one of {', '.join(ENVIRONMENTS)}, or another "
            "that makes a TableEnv"
        )
    return made


def register() -> None:
    """Register the environments with Ray, by the names in `ENVIRONMENTS`.

    Importing the package does it once; after `ray.shutdown()` Ray knows them no more.
    """
    for name, game in ENVIRONMENTS.items():
        register_env(name, partial(_create, game=game))

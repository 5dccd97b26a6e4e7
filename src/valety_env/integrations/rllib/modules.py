"""Networks and random players as RLlib's modules; both play legal actions alone."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.core.rl_module.torch import TorchRLModule

from valety_env.agents.neural import ActorCritic, NetworkConfig

# The logit of an illegal action: low enough for the probability 0, high enough for sums with it to
# stay finite.
ILLEGAL = torch.finfo(torch.float32).min / 4


def mask_logits(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return logits (N, actions) with those of illegal actions made very low.

    RLlib runs modules on observations that nobody acts on, with masks that are all zero: at the
    end of an episode, and on rows of zeros to find out shapes. Their logits stay as they are.
    """
    legal = mask != 0
    nobody = ~legal.any(-1, keepdim=True)
    return torch.where(legal | nobody, logits, torch.full_like(logits, ILLEGAL))


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """A policy and a value of observations with masks: the network of the project's own training.

    The observation space is a Dict of `observation`, of any encoder but `pieces_v0`, and
    `action_mask`, as PettingZoo has it. `model_config` may hold `hidden`, the sizes of the hidden
    layers, (256, 256) by default.

    Attributes:
        network: `agents.neural.ActorCritic`.
    """

    network: ActorCritic

    def setup(self) -> None:
        """Make the network; RLlib calls it."""
        space = self.observation_space
        box = space["observation"] if isinstance(space, gymnasium.spaces.Dict) else None
        if not isinstance(box, gymnasium.spaces.Box) or "action_mask" not in space.spaces:
            raise ValueError(
                f"observation space {space}: it must be a Dict of a Box observation and an "
                "action_mask"
            )
        given = self.model_config if isinstance(self.model_config, dict) else {}
        hidden = tuple(given.get("hidden", NetworkConfig.hidden))
        actions = int(self.action_space.n)
        self.network = ActorCritic(NetworkConfig(math.prod(box.shape), actions, hidden))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        observation = batch[Columns.OBS]
        logits, value = self.network(observation["observation"].flatten(1))
        return {
            Columns.ACTION_DIST_INPUTS: mask_logits(logits, observation["action_mask"]),
            # The loss asks for values of the same rows: they are handed on in place of the
            # features that RLlib expects here.
            Columns.EMBEDDINGS: value,
        }

    def _forward_inference(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._forward_to_act(batch)

    def _forward_exploration(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._forward_to_act(batch)

    def _forward_to_act(self, batch: dict[str, Any]) -> dict[str, Any]:
        with torch.no_grad():
            found = self._forward(batch)
        # What else is given out here is stored with every step.
        return {Columns.ACTION_DIST_INPUTS: found[Columns.ACTION_DIST_INPUTS]}

    def compute_values(
        self, batch: dict[str, Any], embeddings: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the values (N,) of a batch of observations."""
        if embeddings is not None:
            return embeddings
        value: torch.Tensor = self.network(batch[Columns.OBS]["observation"].flatten(1))[1]
        return value


class RandomModule(RLModule):  # type: ignore[misc]
    """A player to whom every legal action is equally likely, exploring or not: as `random`.

    There is nothing to train in it: leave it out of `policies_to_train`.
    """

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        mask = batch[Columns.OBS]["action_mask"]
        players = TorchCategorical(mask_logits(torch.zeros(mask.shape), mask))
        actions = players.sample()
        return {Columns.ACTIONS: actions, Columns.ACTION_LOGP: players.logp(actions)}

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing; RLlib calls it of every module."""

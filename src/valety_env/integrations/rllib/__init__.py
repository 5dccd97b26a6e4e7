"""The games in Ray RLlib, on its new API stack.

`valety_v0` and `polignac_v0` are registered with Ray when this is imported, as multi-agent
environments with PettingZoo's agents and observations. What they need beside them:

- `MaskedModule` and `RandomModule`: networks, and random players, that play legal actions alone;
- `BatchEnvRunner`: samples from the batch environment, many times faster than one table after
  another, for PPO and other algorithms that learn from episodes;
- `LeagueCallback` with `SeatMapping`: self-play against a growing league of past policies;
- `BaselineCallback`: strength against the baselines, in RLlib's results and TensorBoard;
- `save_algorithm`: a checkpoint that names its game, so that `rllib:DIR` plays it anywhere.

`training/rllib_selfplay.py` puts them together.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("ray") is None:
    raise ModuleNotFoundError(
        "valety_env.integrations.rllib needs ray: pip install 'valety-env[rllib]'", name="ray"
    )

from valety_env.integrations.rllib.checkpoints import find_algorithm, save_algorithm
from valety_env.integrations.rllib.environment import ENVIRONMENTS, TableEnv, register
from valety_env.integrations.rllib.league import BaselineCallback, LeagueCallback, SeatMapping
from valety_env.integrations.rllib.modules import MaskedModule, RandomModule
from valety_env.integrations.rllib.runner import BatchEnvRunner

__all__ = [
    "ENVIRONMENTS",
    "BaselineCallback",
    "BatchEnvRunner",
    "LeagueCallback",
    "MaskedModule",
    "RandomModule",
    "SeatMapping",
    "TableEnv",
    "find_algorithm",
    "register",
    "save_algorithm",
]

register()

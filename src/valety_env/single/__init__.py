"""Gymnasium environments: one learner against given opponents, alone and vectorised.

`SingleEnv` plays at one AEC table; `VectorSingleEnv` steps N tables together and gives table by
table what N `SingleEnv`s give. `register_all` makes them known to Gymnasium, and the AEC
environments to PettingZoo.
"""

from __future__ import annotations

import gymnasium
import pettingzoo

from valety_env.single.batch import VectorSingleEnv
from valety_env.single.scalar import SingleEnv

__all__ = ["SingleEnv", "VectorSingleEnv", "register_all"]


def register_all() -> None:
    """Register the environments with Gymnasium, and PettingZoo where it has a registry.

    What is registered already stays, so that a second import says nothing.
    """
    for name, game in (("Valety", "valety"), ("Polignac", "polignac")):
        if f"valety/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"valety/{name}-v0",
                entry_point="valety_env.single:SingleEnv",
                vector_entry_point="valety_env.single:VectorSingleEnv",
                kwargs={"game": game},
            )
        # PettingZoo has a registry from 1.27 on.
        tables = getattr(pettingzoo, "aec_registry", None)
        if tables is not None and f"valety/{game}-v0" not in tables:
            pettingzoo.register("aec", f"valety/{game}-v0", f"valety_env.{game}_v0:env")

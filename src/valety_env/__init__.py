"""Two trick-taking card games, Valety and Polignac, as reinforcement-learning environments."""

from valety_env import polignac_v0, valety_v0, vector
from valety_env.agents import make_agent
from valety_env.arena import evaluate
from valety_env.env import replay
from valety_env.rules import PRESETS, Rules, make_rules
from valety_env.single import register_all

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "Rules",
    "evaluate",
    "make_agent",
    "make_rules",
    "polignac_v0",
    "replay",
    "valety_v0",
    "vector",
]

register_all()

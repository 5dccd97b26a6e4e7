"""Two trick-taking card games, Valety and Polignac, as reinforcement-learning environments."""

from valety_env import polignac_v0, valety_v0, vector
from valety_env._version import __version__
from valety_env.agents import make_agent
from valety_env.arena import evaluate
from valety_env.env import replay
from valety_env.rules import PRESETS, Rules, make_rules
from valety_env.single import register_all

__all__ = [
    "PRESETS",
    "Rules",
    "__version__",
    "evaluate",
    "make_agent",
    "make_rules",
    "polignac_v0",
    "replay",
    "valety_v0",
    "vector",
]

register_all()

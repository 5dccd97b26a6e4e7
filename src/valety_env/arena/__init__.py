"""The arena: which agent is stronger, and how sure that is."""

from valety_env.arena.evaluation import (
    Evaluation,
    Plan,
    Result,
    evaluate,
    plan_evaluation,
    versions,
)
from valety_env.arena.intervals import mean_interval, rate_interval, student_t
from valety_env.arena.tables import Played, play_tables

__all__ = [
    "Evaluation",
    "Plan",
    "Played",
    "Result",
    "evaluate",
    "mean_interval",
    "plan_evaluation",
    "play_tables",
    "rate_interval",
    "student_t",
    "versions",
]

"""The arena: which agent is stronger, and how sure that is."""

from valety_env.arena.evaluation import (
    Evaluation,
    Plan,
    Result,
    SeatResult,
    evaluate,
    plan_evaluation,
    versions,
)
from valety_env.arena.intervals import mean_interval, rate_interval, student_t
from valety_env.arena.sequential import ConfidenceSequence, Verdict
from valety_env.arena.tables import Played, play_tables

__all__ = [
    "ConfidenceSequence",
    "Evaluation",
    "Plan",
    "Played",
    "Result",
    "SeatResult",
    "Verdict",
    "evaluate",
    "mean_interval",
    "plan_evaluation",
    "play_tables",
    "rate_interval",
    "student_t",
    "versions",
]

"""Positions and records of games as plain values and as text, both ways."""

from valety_env.notation.records import (
    RecordError,
    Replayed,
    deal_winners,
    make_record,
    read_record,
)

__all__ = ["RecordError", "Replayed", "deal_winners", "make_record", "read_record"]

"""Positions and records of games as plain values and as text, both ways.

`docs/notation.md` has the grammar.
"""

from valety_env.notation.positions import position_from_text, position_to_text
from valety_env.notation.records import (
    RecordError,
    Replayed,
    calls_of,
    deal_winners,
    make_record,
    read_record,
)
from valety_env.notation.texts import record_from_text, record_to_text
from valety_env.notation.words import (
    NotationError,
    game_from_text,
    game_to_text,
    name_game,
    with_options,
)

__all__ = [
    "NotationError",
    "RecordError",
    "Replayed",
    "calls_of",
    "deal_winners",
    "game_from_text",
    "game_to_text",
    "make_record",
    "name_game",
    "position_from_text",
    "position_to_text",
    "read_record",
    "record_from_text",
    "record_to_text",
    "with_options",
]

"""What the encoders write: the fields of a row, their places, shapes and meanings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from valety_env.cards import GENERAL, NUM_CARDS, NUM_RANKS, NUM_SUITS
from valety_env.rules import MAX_PLAYERS, Rules

TOTAL_LOW, TOTAL_HIGH = -8, 20
TOTAL_SPAN = TOTAL_HIGH - TOTAL_LOW
DISTANCE_SPAN = 24
DEALS_LEFT_SPAN = 8


@dataclass(frozen=True)
class Field:
    """One named part of a row: its place, shape and meaning."""

    name: str
    shape: tuple[int, ...]
    meaning: str
    offset: int = 0

    @property
    def size(self) -> int:
        """Entries of the row that the field takes."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """Where each field of an encoder's row lies.

    Attributes:
        name: the encoder.
        shape: the shape of the whole observation.
        high: the largest value an entry can have; the lowest is 0.
        fields: in the order of the row, without gaps.
    """

    name: str
    shape: tuple[int, ...]
    high: int
    fields: tuple[Field, ...]

    @property
    def size(self) -> int:
        """Entries of a row."""
        return math.prod(self.shape)

    @property
    def pieces(self) -> tuple[Field, ...]:
        """The fields that `pieces_v0` gives out, each as an array: all but the padding."""
        return tuple(field for field in self.fields if field.name != "padding")

    def __getitem__(self, name: str) -> Field:
        """Return the field called `name`."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(
            f"{self.name} has no field {name!r}; it has: {', '.join(f.name for f in self.fields)}"
        )

    def slice(self, name: str) -> slice:
        """Return where a field lies in a flat row."""
        field = self[name]
        return slice(field.offset, field.offset + field.size)

    def table(self) -> str:
        """Return the documentation of the layout, a Markdown table."""
        lines = ["| entries | field | shape | meaning |", "|---|---|---|---|"]
        for field in self.fields:
            shape = " × ".join(map(str, field.shape))
            last = field.offset + field.size - 1
            lines.append(f"| {field.offset}–{last} | `{field.name}` | {shape} | {field.meaning} |")
        return "\n".join(lines)


def _placed(fields: list[Field]) -> tuple[Field, ...]:
    """Return the fields one after another."""
    placed = []
    offset = 0
    for field in fields:
        placed.append(Field(field.name, field.shape, field.meaning, offset))
        offset += field.size
    return tuple(placed)


_TOTALS_TWO = (
    f"each seat's total, a thermometer of {TOTAL_LOW}…{TOTAL_HIGH}: as many ones as it is above "
    f"{TOTAL_LOW}; with another target than {TOTAL_HIGH}, shifted to be as far from {TOTAL_HIGH}"
)
_TOTALS_MORE = (
    f"each seat's distance from the lowest total, a thermometer of 0…{DISTANCE_SPAN}, clipped"
)
_DEALS_LEFT = (
    f"deals still to come after this one, a thermometer of 0…{DEALS_LEFT_SPAN}, clipped; full when "
    "no number is agreed"
)


def flat_layout(seats: int) -> Layout:
    """Return the layout of `flat_v0` for `seats` seats, 2 or MAX_PLAYERS."""
    tricks = NUM_CARDS // 2 if seats == 2 else NUM_CARDS // 3
    fields = [
        Field("hand", (NUM_CARDS,), "the viewer's cards"),
        Field("plays", (seats, NUM_CARDS), "the cards each seat has played in this deal"),
        Field("table", (seats, NUM_CARDS), "each seat's card in the current trick"),
        Field("turned", (NUM_CARDS,), "the card turned up, or the dealer's shown card (V2, P3)"),
        Field("trump", (NUM_SUITS,), "the trump suit"),
        Field("led", (NUM_SUITS,), "the suit led in the current trick"),
        Field("voids", (seats, NUM_SUITS), "suits each seat has shown to lack by not following"),
        Field("jacks", (seats, NUM_SUITS), "jacks each seat has captured, by suit"),
        Field("tricks", (seats, tricks), "tricks each seat has taken in this deal, a thermometer"),
        Field(
            "totals",
            (seats, TOTAL_SPAN if seats == 2 else DISTANCE_SPAN),
            _TOTALS_TWO if seats == 2 else _TOTALS_MORE,
        ),
        Field("deals_left", (DEALS_LEFT_SPAN,), _DEALS_LEFT),
        Field("dealer", (seats,), "the dealer's seat"),
        Field("leader", (seats,), "the seat that leads the deal, before announcements (V5, P5)"),
        Field("passed", (seats,), "seats that have said pass (P6)"),
        Field("general", (seats,), "the seat that has announced the general (P6)"),
    ]
    used = sum(f.size for f in fields)
    # Rows of whole 8-byte words, for what is faster on those.
    fields.append(Field("padding", (-used % 8,), "always zero"))
    placed = _placed(fields)
    size = placed[-1].offset + placed[-1].size
    return Layout("flat_v0", (size,), 1, placed)


_GRID = (NUM_SUITS, NUM_RANKS)


def planes_layout(seats: int) -> Layout:
    """Return the layout of `planes_v0`, likewise."""
    per_seat = (seats, *_GRID)
    placed = _placed(
        [
            Field("hand", (1, *_GRID), "the viewer's cards"),
            Field("plays", per_seat, "the cards each seat has played in this deal"),
            Field("table", per_seat, "each seat's card in the current trick"),
            Field("turned", (1, *_GRID), "the card turned up, or the dealer's shown card"),
            Field("trump", (1, *_GRID), "the trump suit's row filled"),
            Field("led", (1, *_GRID), "the row of the suit led filled"),
            Field("voids", per_seat, "rows of the suits each seat has shown to lack filled"),
            Field("jacks", per_seat, "the jacks each seat has captured, as cards"),
            Field("tricks", per_seat, "tricks each seat has taken: as many cells, row by row"),
            Field(
                "totals",
                per_seat,
                (_TOTALS_TWO if seats == 2 else _TOTALS_MORE) + "; cells row by row",
            ),
            Field("deals_left", (1, *_GRID), _DEALS_LEFT + "; cells row by row"),
            Field("dealer", per_seat, "the dealer's plane filled"),
            Field("leader", per_seat, "the plane of the seat that leads the deal filled"),
            Field("passed", per_seat, "planes of the seats that have said pass filled"),
            Field("general", per_seat, "the plane of the seat that announced the general filled"),
        ]
    )
    planes = sum(f.shape[0] for f in placed)
    return Layout("planes_v0", (planes, *_GRID), 1, placed)


# Kinds of tokens. A token is (kind, relative seat + 1 or 0, value).
(
    TOKEN_NONE,
    TOKEN_DEALER,
    TOKEN_LEADER,
    TOKEN_DEALS_LEFT,
    TOKEN_TOTAL,
    TOKEN_HOLD,
    TOKEN_SHOWN,
    TOKEN_CALL,
    TOKEN_PLAY,
) = range(9)
TOKEN_KINDS = {
    TOKEN_NONE: "padding; seat and value are 0",
    TOKEN_DEALER: "the dealer; value 0",
    TOKEN_LEADER: "the seat that leads the deal, before announcements; value 0",
    TOKEN_DEALS_LEFT: f"seat 0; value: deals still to come, 0…{DEALS_LEFT_SPAN}, clipped",
    TOKEN_TOTAL: "a seat's total; value: as many as its thermometer in `flat_v0` has ones",
    TOKEN_HOLD: "a card of the viewer's hand as dealt; value: card + 1",
    TOKEN_SHOWN: "the card turned up (seat 0) or shown by the dealer; value: card + 1",
    TOKEN_CALL: "an announcement; value: 53 pass, 54 general (action + 1)",
    TOKEN_PLAY: "a play; value: card + 1",
}
TOKEN_WIDTH = 3


def tokens_layout(seats: int) -> Layout:
    """Return the layout of `tokens_v0`, likewise."""
    hand = NUM_CARDS // 2 if seats == 2 else NUM_CARDS // 3
    counts = 3 + seats + hand + 1 + seats + NUM_CARDS
    meaning = (
        "the events of the deal in order, each (kind, relative seat + 1, value): "
        + "; ".join(f"{kind} {text}" for kind, text in TOKEN_KINDS.items())
    )
    placed = _placed([Field("tokens", (counts, TOKEN_WIDTH), meaning)])
    return Layout("tokens_v0", (counts, TOKEN_WIDTH), GENERAL + 1, placed)


FLAT, PLANES, TOKENS, PIECES = range(4)

_LAYOUTS: dict[str, Callable[[int], Layout]] = {
    "flat_v0": flat_layout,
    "planes_v0": planes_layout,
    "tokens_v0": tokens_layout,
    "pieces_v0": flat_layout,
}
ENCODERS: dict[str, int] = {
    "flat_v0": FLAT,
    "planes_v0": PLANES,
    "tokens_v0": TOKENS,
    "pieces_v0": PIECES,
}


def _address(array: np.ndarray) -> int:
    """Return where the memory of an array begins."""
    address: int = array.__array_interface__["data"][0]
    return address


def seats_of(rules: Rules) -> int:
    """Return how many seats an observation has room for: one shape for two, one for more."""
    return 2 if rules.num_players == 2 else MAX_PLAYERS


@dataclass(frozen=True)
class Encoder:
    """An encoder for some rules.

    Attributes:
        name: as in `ENCODERS`.
        code: its number.
        layout: of one row. `pieces_v0` has the row of `flat_v0`, given out as a dict of its fields.
    """

    name: str
    code: int
    layout: Layout

    @property
    def kernel_code(self) -> int | None:
        """What kernels are given of it: its number, but None for rows of `flat_v0`.

        For None they are compiled without the other encoders, a second sooner.
        """
        return None if self.code in (FLAT, PIECES) else self.code

    @property
    def is_dict(self) -> bool:
        """Whether an observation is a dict of named arrays."""
        return self.code == PIECES

    def flat(self, observation: np.ndarray | dict[str, np.ndarray]) -> np.ndarray:
        """Return the flat rows (…, size) behind an observation that `shaped` made; the same memory.

        Raises:
            ValueError: if the observation is not such a view.
        """
        if isinstance(observation, dict):
            return self._rows_behind(observation)
        ahead = observation.shape[: observation.ndim - len(self.layout.shape)]
        if observation.shape[len(ahead) :] != self.layout.shape:
            raise ValueError(self._otherwise())
        rows = observation.reshape(*ahead, self.layout.size)
        if not np.shares_memory(rows, observation) or rows.strides[-1] != rows.itemsize:
            raise ValueError("the observation must be contiguous")
        return rows

    def _rows_behind(self, pieces: dict[str, np.ndarray]) -> np.ndarray:
        """Return the rows of which all pieces are slices; those may be part of a larger array."""
        first = pieces.get(self.layout.fields[0].name)
        owner = None if first is None else first.base
        if first is None or not isinstance(owner, np.ndarray):
            raise ValueError(self._otherwise())
        start = _address(first)
        for field in self.layout.pieces:
            piece = pieces.get(field.name)
            if piece is None or _address(piece) != start + field.offset * first.itemsize:
                raise ValueError(self._otherwise())
        shape = (*first.shape[:-1], self.layout.size)
        try:
            # Refuses what would reach beyond the owner's memory.
            return np.ndarray(shape, first.dtype, owner, start - _address(owner), first.strides)
        except (TypeError, ValueError, BufferError):
            raise ValueError(self._otherwise()) from None

    def _otherwise(self) -> str:
        size = self.layout.size
        return f"the observation is not laid out as {self.name} rows of {size} entries"

    def shaped(self, rows: np.ndarray) -> np.ndarray | dict[str, np.ndarray]:
        """Return flat rows (…, size) in the observation's shape, as a view of them."""
        ahead = rows.shape[:-1]
        if self.is_dict:
            return {
                f.name: rows[..., f.offset : f.offset + f.size].reshape(*ahead, *f.shape)
                for f in self.layout.pieces
            }
        return rows.reshape(*ahead, *self.layout.shape)


def make_encoder(name: str, rules: Rules) -> Encoder:
    """Return an encoder by name.

    Raises:
        ValueError: for an unknown name.
    """
    if not isinstance(name, str) or name not in ENCODERS:
        raise ValueError(f"observation={name!r}: the encoders are {', '.join(ENCODERS)}")
    return Encoder(name, ENCODERS[name], _LAYOUTS[name](seats_of(rules)))

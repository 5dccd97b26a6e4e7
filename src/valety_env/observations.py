"""Named, versioned encoders: a VIEW becomes an array.

Every encoder writes small whole numbers into one flat row; its `Layout` says where each field
lies, prints the documentation and drives the offsets. Seats are relative: seat 0 of a field is the
viewer, 1 the next clockwise; unused seats are zero. A released encoder never changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import uint64

from valety_env._intrinsics import bit_writer, local_record
from valety_env._jit import inlined, int64, kernel, specialised
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NO_SUIT,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    PASS,
    bit,
    lowest,
    suit_cards,
)
from valety_env.engine import public_of, seat_of_play, trump_of
from valety_env.rules import MAX_PLAYERS, TRUMP_TURNED, Rules

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


def _flat_layout(seats: int) -> Layout:
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


def _planes_layout(seats: int) -> Layout:
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
_TOKEN_WIDTH = 3


def _tokens_layout(seats: int) -> Layout:
    hand = NUM_CARDS // 2 if seats == 2 else NUM_CARDS // 3
    counts = 3 + seats + hand + 1 + seats + NUM_CARDS
    meaning = (
        "the events of the deal in order, each (kind, relative seat + 1, value): "
        + "; ".join(f"{kind} {text}" for kind, text in TOKEN_KINDS.items())
    )
    placed = _placed([Field("tokens", (counts, _TOKEN_WIDTH), meaning)])
    return Layout("tokens_v0", (counts, _TOKEN_WIDTH), GENERAL + 1, placed)


FLAT, PLANES, TOKENS, PIECES = range(4)

_LAYOUTS: dict[str, Callable[[int], Layout]] = {
    "flat_v0": _flat_layout,
    "planes_v0": _planes_layout,
    "tokens_v0": _tokens_layout,
    "pieces_v0": _flat_layout,
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
        code: the number that kernels know it by.
        layout: of one row. `pieces_v0` has the row of `flat_v0`, given out as a dict of its fields.
    """

    name: str
    code: int
    layout: Layout

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
        for field in self.layout.fields:
            piece = pieces.get(field.name)
            if field.name == "padding":
                continue
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
                for f in self.layout.fields
                if f.name != "padding"
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


# A row of bits, with room for the longest, 75 planes of 52, and a word more that `put` may touch.
BITS = np.dtype((np.record, np.dtype([("words", np.uint64, (63,))])))
_new_bits = local_record(BITS)

_FLAT_FIELDS = tuple(f.name for f in _flat_layout(2).fields)
(
    _HAND,
    _PLAYS,
    _TABLE,
    _TURNED,
    _TRUMP,
    _LED,
    _VOIDS,
    _JACKS,
    _TRICKS,
    _TOTALS,
    _DEALS_LEFT_FIELD,
    _DEALER,
    _LEADER,
    _PASSED,
    _GENERAL_FIELD,
    _PADDING,
) = range(len(_FLAT_FIELDS))


def _offsets(layout: Layout) -> tuple[int, ...]:
    return tuple(f.offset for f in layout.fields)


_FLAT_2, _FLAT_7 = _offsets(_flat_layout(2)), _offsets(_flat_layout(MAX_PLAYERS))
_PLANES_2, _PLANES_7 = _offsets(_planes_layout(2)), _offsets(_planes_layout(MAX_PLAYERS))
FLAT_SIZE_2, FLAT_SIZE_7 = _flat_layout(2).size, _flat_layout(MAX_PLAYERS).size
_PLANES_SIZE_2, _PLANES_SIZE_7 = _planes_layout(2).size, _planes_layout(MAX_PLAYERS).size
_TRICKS_2, _TRICKS_7 = NUM_CARDS // 2, NUM_CARDS // 3
_ALL_CARDS = uint64((1 << NUM_CARDS) - 1)


@inlined
def put(row: np.record, offset: int, width: int, bits: np.uint64) -> None:
    """Set `width` <= 64 bits of a `BITS` record from position `offset` on; they were zero."""
    word = offset >> 6
    shift = offset & 63
    row.words[word] |= bits << uint64(shift)
    if shift + width > 64:
        row.words[word + 1] |= bits >> uint64(64 - shift)


@inlined
def ones(n: int) -> np.uint64:
    """Return the lowest `n` bits set, 0 <= n < 64: a thermometer."""
    return (ONE << uint64(n)) - ONE


@inlined
def _clip(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


@inlined
def least_total(rules: np.record, public: np.record) -> int:
    """Return the lowest total of any seat."""
    least = int64(public.totals[0])
    for seat in range(1, int64(rules.num_players)):
        least = min(least, int64(public.totals[seat]))
    return least


@inlined
def total_level(rules: np.record, public: np.record, seat: int, least: int) -> int:
    """Return how many ones a seat's total has as a thermometer; `least` is `least_total`."""
    total = int64(public.totals[seat])
    if rules.num_players == 2:
        shift = TOTAL_HIGH - int64(rules.target) if rules.target > 0 else 0
        return _clip(total + shift - TOTAL_LOW, 0, TOTAL_SPAN)
    return _clip(total - least, 0, DISTANCE_SPAN)


@inlined
def deals_left(rules: np.record, public: np.record) -> int:
    """Return how many deals are to come after this one, at most DEALS_LEFT_SPAN."""
    left = DEALS_LEFT_SPAN
    dealt = int64(public.deal) + 1
    if rules.num_deals > 0:
        left = min(left, int64(rules.num_deals) - dealt)
    if rules.max_deals > 0:
        left = min(left, int64(rules.max_deals) - dealt)
    return max(left, 0)


@inlined
def one_of(place: int) -> np.uint64:
    """Return a set of one, a card, suit or seat; the empty set of none, −1."""
    return bit(place) if place >= 0 else EMPTY


@inlined
def relative_seat(rules: np.record, me: int, seat: int) -> int:
    """Return how many places after `me` a seat is, 0..players-1; −1 of NOBODY."""
    places = seat - me
    places = places if places >= 0 else places + int64(rules.num_players)
    return places if seat >= 0 else seat


@inlined
def seat_at(rules: np.record, me: int, places: int) -> int:
    """Return the seat so many places after `me`, 0..players-1 of them."""
    seat = me + places
    return seat if seat < rules.num_players else seat - int64(rules.num_players)


@inlined
def passed_seats(rules: np.record, public: np.record, me: int) -> np.uint64:
    """Return who has said pass, as relative seats: all who spoke, but for the general (P6)."""
    passes = int64(public.num_calls) - (1 if public.general >= 0 else 0)
    seats = ones(passes) << uint64(relative_seat(rules, me, int64(public.leader)))
    players = int64(rules.num_players)
    return (seats | seats >> uint64(players)) & ones(players)


@kernel
def suits_filled(suits: int) -> np.uint64:
    """Return all cards of a set of suits."""
    cards = EMPTY
    for suit in range(NUM_SUITS):
        if suits >> suit & 1:
            cards |= suit_cards(suit)
    return cards


@inlined
def write_flat(
    rules: np.record,
    public: np.record,
    me: int,
    hand: np.uint64,
    seats: int,
    at: tuple[int, ...],
    row: np.record,
) -> None:
    """Write the bits of `flat_v0`, for `seats` seats; `at` are its offsets."""
    put(row, at[_HAND], NUM_CARDS, hand)
    put(row, at[_TURNED], NUM_CARDS, one_of(int64(public.turned)))
    put(row, at[_TRUMP], NUM_SUITS, one_of(trump_of(int64(public.turned))))
    put(row, at[_LED], NUM_SUITS, one_of(int64(public.led)))
    put(row, at[_DEALS_LEFT_FIELD], DEALS_LEFT_SPAN, ones(deals_left(rules, public)))
    put(row, at[_DEALER], seats, one_of(relative_seat(rules, me, int64(public.dealer))))
    put(row, at[_LEADER], seats, one_of(relative_seat(rules, me, int64(public.leader))))
    put(row, at[_PASSED], seats, passed_seats(rules, public, me))
    put(row, at[_GENERAL_FIELD], seats, one_of(relative_seat(rules, me, int64(public.general))))
    least = least_total(rules, public)
    _write_seat(rules, public, me, 0, seats, at, least, row)
    _write_seat(rules, public, me, 1, seats, at, least, row)
    if seats > 2:
        _write_seat(rules, public, me, 2, seats, at, least, row)
        for places in range(3, int64(rules.num_players)):
            _write_seat(rules, public, me, places, seats, at, least, row)


@inlined
def _write_seat(
    rules: np.record,
    public: np.record,
    me: int,
    places: int,
    seats: int,
    at: tuple[int, ...],
    least: int,
    row: np.record,
) -> None:
    """Write what `flat_v0` tells of the seat so many places after `me`."""
    tricks = _TRICKS_2 if seats == 2 else _TRICKS_7
    totals = TOTAL_SPAN if seats == 2 else DISTANCE_SPAN
    seat = seat_at(rules, me, places)
    put(row, at[_PLAYS] + places * NUM_CARDS, NUM_CARDS, public.played[seat])
    put(row, at[_TABLE] + places * NUM_CARDS, NUM_CARDS, one_of(int64(public.table[seat])))
    put(row, at[_VOIDS] + places * NUM_SUITS, NUM_SUITS, uint64(public.voids[seat]))
    put(row, at[_JACKS] + places * NUM_SUITS, NUM_SUITS, uint64(public.jacks[seat]))
    put(row, at[_TRICKS] + places * tricks, tricks, ones(int64(public.tricks[seat])))
    level = total_level(rules, public, seat, least)
    put(row, at[_TOTALS] + places * totals, totals, ones(level))


@inlined
def write_planes(
    rules: np.record,
    public: np.record,
    me: int,
    hand: np.uint64,
    at: tuple[int, ...],
    row: np.record,
) -> None:
    """Write the bits of `planes_v0`, 52 a plane; `at` are its offsets."""
    put(row, at[_HAND], NUM_CARDS, hand)
    put(row, at[_TURNED], NUM_CARDS, one_of(int64(public.turned)))
    trump, led = trump_of(int64(public.turned)), int64(public.led)
    put(row, at[_TRUMP], NUM_CARDS, suit_cards(trump) if trump != NO_SUIT else EMPTY)
    put(row, at[_LED], NUM_CARDS, suit_cards(led) if led != NO_SUIT else EMPTY)
    put(row, at[_DEALS_LEFT_FIELD], NUM_CARDS, ones(deals_left(rules, public)))
    least = least_total(rules, public)
    passed = passed_seats(rules, public, me)
    for places in range(int64(rules.num_players)):
        plane = places * NUM_CARDS
        seat = seat_at(rules, me, places)
        put(row, at[_PLAYS] + plane, NUM_CARDS, public.played[seat])
        put(row, at[_TABLE] + plane, NUM_CARDS, one_of(int64(public.table[seat])))
        put(row, at[_VOIDS] + plane, NUM_CARDS, suits_filled(int64(public.voids[seat])))
        jacks = suits_filled(int64(public.jacks[seat])) & rules.jacks
        put(row, at[_JACKS] + plane, NUM_CARDS, jacks)
        put(row, at[_TRICKS] + plane, NUM_CARDS, ones(int64(public.tricks[seat])))
        level = total_level(rules, public, seat, least)
        put(row, at[_TOTALS] + plane, NUM_CARDS, ones(level))
        if seat == public.dealer:
            put(row, at[_DEALER] + plane, NUM_CARDS, _ALL_CARDS)
        if seat == public.leader:
            put(row, at[_LEADER] + plane, NUM_CARDS, _ALL_CARDS)
        if passed >> uint64(places) & ONE:
            put(row, at[_PASSED] + plane, NUM_CARDS, _ALL_CARDS)
        if seat == public.general:
            put(row, at[_GENERAL_FIELD] + plane, NUM_CARDS, _ALL_CARDS)


_write_64, _write_32, _write_16, _write_8 = (bit_writer(lanes) for lanes in (64, 32, 16, 8))
_write_4, _write_2 = bit_writer(4), bit_writer(2)


@specialised
def spread(row: np.record, size: int, rows: np.ndarray, i: int) -> None:
    """Write a bit row as numbers 0 and 1, one an entry.

    Args:
        row: one `BITS` record, at least `size` bits.
        size: entries to write.
        rows: (N, size) of any dtype; row `i` is overwritten.
        i: which row.
    """
    whole = size >> 6
    for word in range(whole):
        _write_64(rows, i, word << 6, row.words[word])
    if size & 63:
        spread_word(row.words[whole], size & 63, rows, i, whole << 6)


@specialised
def spread_word(bits: np.uint64, size: int, rows: np.ndarray, i: int, column: int) -> None:
    """Write the lowest `size` < 64 bits, an even number, as `spread` does, from `column` on."""
    done = 0
    if size & 32:
        _write_32(rows, i, column, bits)
        done += 32
    if size & 16:
        _write_16(rows, i, column + done, bits >> uint64(done))
        done += 16
    if size & 8:
        _write_8(rows, i, column + done, bits >> uint64(done))
        done += 8
    if size & 4:
        _write_4(rows, i, column + done, bits >> uint64(done))
        done += 4
    if size & 2:
        _write_2(rows, i, column + done, bits >> uint64(done))


@kernel
def _token(row: np.ndarray, n: int, kind: int, seat: int, value: int) -> int:
    """Write token number `n` and return n + 1."""
    row[_TOKEN_WIDTH * n] = kind
    row[_TOKEN_WIDTH * n + 1] = seat
    row[_TOKEN_WIDTH * n + 2] = value
    return n + 1


@inlined
def write_tokens(
    rules: np.record, public: np.record, me: int, hand: np.uint64, rows: np.ndarray, i: int
) -> None:
    """Write `tokens_v0`: what was known when the deal began, then its calls and plays in order."""
    players = int64(rules.num_players)
    row = rows[i]
    for entry in range(row.size):
        row[entry] = 0
    n = 0
    n = _token(row, n, TOKEN_DEALER, (int64(public.dealer) - me) % players + 1, 0)
    n = _token(row, n, TOKEN_LEADER, (int64(public.leader) - me) % players + 1, 0)
    n = _token(row, n, TOKEN_DEALS_LEFT, 0, deals_left(rules, public))
    least = least_total(rules, public)
    for relative in range(players):
        level = total_level(rules, public, (me + relative) % players, least)
        n = _token(row, n, TOKEN_TOTAL, relative + 1, level)
    dealt = hand | public.played[me]
    while dealt != EMPTY:
        card = lowest(dealt)
        dealt &= dealt - ONE
        n = _token(row, n, TOKEN_HOLD, 1, card + 1)
    if public.turned >= 0:
        shown_by = 0 if rules.trump == TRUMP_TURNED else (int64(public.dealer) - me) % players + 1
        n = _token(row, n, TOKEN_SHOWN, shown_by, int64(public.turned) + 1)
    for call in range(int64(public.num_calls)):
        seat = (int64(public.leader) + call) % players
        action = GENERAL if seat == public.general else PASS
        n = _token(row, n, TOKEN_CALL, (seat - me) % players + 1, action + 1)
    for play in range(int64(public.num_plays)):
        seat = seat_of_play(rules, public, play)
        n = _token(row, n, TOKEN_PLAY, (seat - me) % players + 1, int64(public.history[play]) + 1)


@inlined
def encode(
    code: int,
    rules: np.record,
    public: np.record,
    me: int,
    hand: np.uint64,
    rows: np.ndarray,
    i: int,
) -> None:
    """Write one observation.

    Args:
        code: a value of `ENCODERS`.
        rules: one `RULES` record.
        public: one `PUBLIC` record.
        me: the seat that observes.
        hand: its cards.
        rows: (N, layout.size) of any dtype; row `i` is overwritten.
        i: which row.
    """
    if code == TOKENS:
        write_tokens(rules, public, me, hand, rows, i)
        return
    bits = _new_bits()
    write_bits(code, rules, public, me, hand, bits)
    if code == PLANES:
        spread(bits, _PLANES_SIZE_2 if rules.num_players == 2 else _PLANES_SIZE_7, rows, i)
    elif rules.num_players == 2:
        spread(bits, FLAT_SIZE_2, rows, i)
    else:
        spread(bits, FLAT_SIZE_7, rows, i)


@inlined
def write_bits(
    code: int, rules: np.record, public: np.record, me: int, hand: np.uint64, row: np.record
) -> None:
    """Write one observation of an encoder of bits, all but `tokens_v0`, into a `BITS` record."""
    if code == PLANES:
        two = rules.num_players == 2
        _clear(row, _PLANES_SIZE_2 if two else _PLANES_SIZE_7)
        write_planes(rules, public, me, hand, _PLANES_2 if two else _PLANES_7, row)
    elif rules.num_players == 2:
        _clear(row, FLAT_SIZE_2)
        write_flat(rules, public, me, hand, 2, _FLAT_2, row)
    else:
        _clear(row, FLAT_SIZE_7)
        write_flat(rules, public, me, hand, MAX_PLAYERS, _FLAT_7, row)


@specialised
def _clear(row: np.record, size: int) -> None:
    for word in range((size >> 6) + 1):
        row.words[word] = EMPTY


@inlined
def encode_view(code: int, rules: np.record, view: np.record, rows: np.ndarray, i: int) -> None:
    """Write what one `VIEW` record tells into row `i` of `rows`, as `encode` does."""
    encode(code, rules, public_of(view), int64(view.seat), view.hand, rows, i)


@kernel
def encode_views(code: int, rules: np.ndarray, views: np.ndarray, rows: np.ndarray) -> None:
    """Encode views (N,) into `rows` (N, layout.size), overwritten; `rules` is of length 1."""
    for i in range(views.size):
        encode_view(code, rules[0], views[i], rows, i)

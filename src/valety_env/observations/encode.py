"""How the encoders write a row: kernels from what a seat knows to numbers.

What a seat knows comes as its parts, so that nothing is copied: the PUBLIC record of a table, the
seat, and its hand. A VIEW consists of these.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64

from valety_env._intrinsics import local_record
from valety_env._jit import inlined, int64, kernel
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NO_SUIT,
    NUM_CARDS,
    NUM_SUITS,
    ONE,
    PASS,
    lowest,
    one_of,
    suit_cards,
)
from valety_env.engine import public_of, seat_of_play, trump_of
from valety_env.observations.bits import BITS, clear, ones, put, spread
from valety_env.observations.layouts import (
    DEALS_LEFT_SPAN,
    DISTANCE_SPAN,
    PLANES,
    TOKEN_CALL,
    TOKEN_DEALER,
    TOKEN_DEALS_LEFT,
    TOKEN_HOLD,
    TOKEN_LEADER,
    TOKEN_PLAY,
    TOKEN_SHOWN,
    TOKEN_TOTAL,
    TOKEN_WIDTH,
    TOKENS,
    TOTAL_HIGH,
    TOTAL_LOW,
    TOTAL_SPAN,
    Layout,
    flat_layout,
    planes_layout,
)
from valety_env.rules import MAX_PLAYERS, TRUMP_TURNED

_new_bits = local_record(BITS)

_FLAT_FIELDS = tuple(f.name for f in flat_layout(2).fields)
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


_FLAT_2, _FLAT_7 = _offsets(flat_layout(2)), _offsets(flat_layout(MAX_PLAYERS))
_PLANES_2, _PLANES_7 = _offsets(planes_layout(2)), _offsets(planes_layout(MAX_PLAYERS))
FLAT_SIZE_2, FLAT_SIZE_7 = flat_layout(2).size, flat_layout(MAX_PLAYERS).size
_PLANES_SIZE_2, _PLANES_SIZE_7 = planes_layout(2).size, planes_layout(MAX_PLAYERS).size
_TRICKS_2, _TRICKS_7 = NUM_CARDS // 2, NUM_CARDS // 3
_ALL_CARDS = uint64((1 << NUM_CARDS) - 1)


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


@kernel
def _token(row: np.ndarray, n: int, kind: int, seat: int, value: int) -> int:
    """Write token number `n` and return n + 1."""
    row[TOKEN_WIDTH * n] = kind
    row[TOKEN_WIDTH * n + 1] = seat
    row[TOKEN_WIDTH * n + 2] = value
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
def flat_bits(
    rules: np.record, public: np.record, me: int, hand: np.uint64, row: np.record
) -> None:
    """Write one observation of `flat_v0` into a `BITS` record."""
    # The sizes are told apart here, so that all places are known when it is compiled.
    if rules.num_players == 2:
        clear(row, FLAT_SIZE_2)
        write_flat(rules, public, me, hand, 2, _FLAT_2, row)
    else:
        clear(row, FLAT_SIZE_7)
        write_flat(rules, public, me, hand, MAX_PLAYERS, _FLAT_7, row)


@inlined
def planes_bits(
    rules: np.record, public: np.record, me: int, hand: np.uint64, row: np.record
) -> None:
    """Write one observation of `planes_v0` into a `BITS` record."""
    two = rules.num_players == 2
    clear(row, _PLANES_SIZE_2 if two else _PLANES_SIZE_7)
    write_planes(rules, public, me, hand, _PLANES_2 if two else _PLANES_7, row)


@inlined
def _encode_flat(
    rules: np.record, public: np.record, me: int, hand: np.uint64, rows: np.ndarray, i: int
) -> None:
    bits = _new_bits()
    flat_bits(rules, public, me, hand, bits)
    if rules.num_players == 2:
        spread(bits, FLAT_SIZE_2, rows, i)
    else:
        spread(bits, FLAT_SIZE_7, rows, i)


@inlined
def _encode_planes(
    rules: np.record, public: np.record, me: int, hand: np.uint64, rows: np.ndarray, i: int
) -> None:
    bits = _new_bits()
    planes_bits(rules, public, me, hand, bits)
    spread(bits, _PLANES_SIZE_2 if rules.num_players == 2 else _PLANES_SIZE_7, rows, i)


@inlined
def encode(
    code: int | None,
    rules: np.record,
    public: np.record,
    me: int,
    hand: np.uint64,
    rows: np.ndarray,
    i: int,
) -> None:
    """Write one observation.

    Args:
        code: `Encoder.kernel_code`: None for a row of `flat_v0`, or any value of `ENCODERS`.
        rules: one `RULES` record.
        public: one `PUBLIC` record.
        me: the seat that observes.
        hand: its cards.
        rows: (N, layout.size) of any dtype; row `i` is overwritten.
        i: which row.
    """
    # Told by its type, the first alone is compiled.
    if code is None:
        _encode_flat(rules, public, me, hand, rows, i)
    elif code == TOKENS:
        write_tokens(rules, public, me, hand, rows, i)
    elif code == PLANES:
        _encode_planes(rules, public, me, hand, rows, i)
    else:
        _encode_flat(rules, public, me, hand, rows, i)


@inlined
def encode_view(
    code: int | None, rules: np.record, view: np.record, rows: np.ndarray, i: int
) -> None:
    """Write what one `VIEW` record tells into row `i` of `rows`, as `encode` does."""
    encode(code, rules, public_of(view), int64(view.seat), view.hand, rows, i)


@kernel
def encode_views(code: int | None, rules: np.ndarray, views: np.ndarray, rows: np.ndarray) -> None:
    """Encode views (N,) into `rows` (N, layout.size), overwritten; `rules` is of length 1."""
    for i in range(views.size):
        encode_view(code, rules[0], views[i], rows, i)

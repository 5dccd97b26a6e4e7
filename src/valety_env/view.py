"""What one seat knows: the VIEW record, and states that could lie behind it.

`look` copies from a STATE exactly what a seat has seen, the whole information set of the deal;
everything that decides or encodes gets a VIEW, so that it cannot leak. `imagine` goes the other
way.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64

from valety_env._intrinsics import record_copier
from valety_env._jit import inlined, int64, kernel
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NO_SUIT,
    NUM_RANKS,
    NUM_SUITS,
    PASS,
    bit,
    count,
    nth,
    suit_cards,
)
from valety_env.engine import (
    CALLS,
    PLAYS,
    PUBLIC_FIELDS,
    PUBLIC_SIZE,
    follow,
    shown_card_is_held,
    trump_of,
)
from valety_env.rng import below, mix
from valety_env.rules import MAX_PLAYERS

# What one seat knows. Fields are those of STATE where they have the same name; seats are absolute.
VIEW = np.dtype(
    (
        np.record,
        np.dtype(
            [
                *PUBLIC_FIELDS,
                ("seat", np.uint8),  # whose view this is
                ("trump", np.int8),  # the suit of the card turned up, or NO_SUIT
                ("hand", np.uint64),
            ],
            align=True,
        ),
    )
)

_copy_public = record_copier(PUBLIC_SIZE)


@inlined
def look(rules: np.record, state: np.record, seat: int, view: np.record) -> None:
    """Write what `seat` knows of a table into `view`, at any time of a match.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record.
        seat: 0..num_players-1.
        view: one `VIEW` record, overwritten.
    """
    _copy_public(state, view)
    view.hand = state.hand[seat]
    view.seat = seat
    view.trump = trump_of(int64(state.turned))


@inlined
def view_legal(rules: np.record, view: np.record) -> np.uint64:
    """Return the actions open to the viewing seat, as a set; empty when it is not its turn."""
    if view.turn != view.seat:
        return EMPTY
    if view.phase == PLAYS:
        if view.led == NO_SUIT:
            return view.hand
        return follow(view.hand, int64(view.led))
    if view.phase == CALLS:
        return bit(PASS) | bit(GENERAL)
    return EMPTY


@kernel
def unseen_cards(rules: np.record, view: np.record) -> np.uint64:
    """Return the cards whose place the viewing seat does not know: in the others' hands or undealt.

    The dealer's shown card is not among them (P3, `trump="last_card"`).
    """
    seen = view.hand
    for seat in range(int64(rules.num_players)):
        seen |= view.played[seat]
    if view.turned >= 0:
        seen |= bit(int64(view.turned))
    return rules.pack & ~seen


# A count of ways by (constrained seat, number of ♠, ♣, ♦ left); the ♥ follow from the total.
_SIDE = NUM_RANKS + 1
SCRATCH_SIZE = (MAX_PLAYERS + 1) * _SIDE**3


@kernel
def imagine(
    rules: np.record, view: np.record, key: np.uint64, scratch: np.ndarray, state: np.record
) -> None:
    """Draw a state uniformly from all deals consistent with a view, shown voids included.

    Seats that have shown no void and the undealt cards take whatever is left, in equally many ways
    whatever that is; so only the seats with voids need weights: the number of ways to fill them
    and those after them, by how many cards of each suit are left.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record.
        key: fixes the draw.
        scratch: float64 (SCRATCH_SIZE,), overwritten.
        state: one `STATE` record, overwritten; its seed and episode are 0.
    """
    players = int64(rules.num_players)
    me = int64(view.seat)
    _copy_public(view, state)
    state.seed = EMPTY
    state.episode = 0
    state.winners = 0
    for seat in range(MAX_PLAYERS):
        state.hand[seat] = EMPTY
    state.hand[me] = view.hand
    unseen = unseen_cards(rules, view)
    shown_is_held = shown_card_is_held(rules, view)
    left = unseen
    draws = 0

    if _need_weights(rules, view):
        _count_ways(rules, view, unseen, shown_is_held, scratch)
        for seat in range(players):
            voids = int64(view.voids[seat])
            wanted = _unknown_size(view, seat, shown_is_held)
            if seat == me or voids == 0 or wanted == 0:
                continue
            # Choose how many cards of each suit, then which.
            chosen = _choose_split(seat, wanted, voids, left, scratch, mix(key, uint64(draws)))
            draws += 1
            for suit in range(NUM_SUITS):
                for _ in range((chosen >> (8 * suit)) & 255):
                    of_suit = left & suit_cards(suit)
                    card = nth(of_suit, below(mix(key, uint64(draws)), count(of_suit)))
                    draws += 1
                    left &= ~bit(card)
                    state.hand[seat] |= bit(card)
    for seat in range(players):
        if seat == me or view.voids[seat] != 0:
            continue
        for _ in range(_unknown_size(view, seat, shown_is_held)):
            card = nth(left, below(mix(key, uint64(draws)), count(left)))
            draws += 1
            left &= ~bit(card)
            state.hand[seat] |= bit(card)
    if shown_is_held and view.dealer != me:
        state.hand[int64(view.dealer)] |= bit(int64(view.turned))


@kernel
def _unknown_size(view: np.record, seat: int, shown_is_held: bool) -> int:
    """Return how many cards of a seat's hand are unknown."""
    size = int64(view.hand_sizes[seat])
    return size - 1 if shown_is_held and seat == view.dealer else size


@kernel
def _need_weights(rules: np.record, view: np.record) -> bool:
    """Return whether any other seat that still holds cards has shown a void."""
    for seat in range(int64(rules.num_players)):
        if seat != view.seat and view.voids[seat] != 0 and view.hand_sizes[seat] > 0:
            return True
    return False


@kernel
def _choose(n: int, k: int) -> float:
    """Return the binomial coefficient, exact for n <= 13."""
    ways = 1.0
    for i in range(k):
        ways = ways * (n - i) / (i + 1)
    return ways


@kernel
def _count_ways(
    rules: np.record, view: np.record, unseen: np.uint64, shown_is_held: bool, scratch: np.ndarray
) -> None:
    """Fill `scratch[seat, a, b, c]`: the ways to fill the constrained seats from `seat` on.

    a, b, c are the numbers of ♠ ♣ ♦ then left; the number of ♥ follows, as the cards given before
    are known.
    """
    players = int64(rules.num_players)
    s0 = count(unseen & suit_cards(0))
    s1 = count(unseen & suit_cards(1))
    s2 = count(unseen & suit_cards(2))
    s3 = count(unseen & suit_cards(3))
    # Cards left before a seat is served; walked from the last seat to the first.
    total = s0 + s1 + s2 + s3
    for seat in range(players):
        if seat != view.seat and view.voids[seat] != 0:
            total -= _unknown_size(view, seat, shown_is_held)
    for i in range(players * _SIDE**3, (players + 1) * _SIDE**3):
        scratch[i] = 1.0
    for seat in range(players - 1, -1, -1):
        voids = int64(view.voids[seat])
        wanted = _unknown_size(view, seat, shown_is_held)
        constrained = seat != view.seat and voids != 0
        if constrained:
            total += wanted
        for a in range(s0 + 1):
            for b in range(s1 + 1):
                for c in range(s2 + 1):
                    d = total - a - b - c
                    if d < 0 or d > s3:
                        continue
                    here = _place(seat, a, b, c)
                    if constrained:
                        scratch[here] = _ways(seat, wanted, voids, a, b, c, d, scratch)
                    else:
                        scratch[here] = scratch[_place(seat + 1, a, b, c)]


@kernel
def _ways(
    seat: int, wanted: int, voids: int, a: int, b: int, c: int, d: int, scratch: np.ndarray
) -> float:
    """Return the ways to fill a constrained seat and those after it from a, b, c, d cards."""
    ways = 0.0
    for i in range(min(a, wanted) + 1):
        for j in range(min(b, wanted - i) + 1):
            for k in range(min(c, wanted - i - j) + 1):
                m = wanted - i - j - k
                if m <= d and not _breaks_void(voids, i, j, k, m):
                    here = _choose(a, i) * _choose(b, j) * _choose(c, k) * _choose(d, m)
                    ways += here * scratch[_place(seat + 1, a - i, b - j, c - k)]
    return ways


@kernel
def _place(seat: int, a: int, b: int, c: int) -> int:
    """Return the index into the table of ways."""
    return ((seat * _SIDE + a) * _SIDE + b) * _SIDE + c


@kernel
def _breaks_void(voids: int, a: int, b: int, c: int, d: int) -> bool:
    """Return whether numbers of ♠ ♣ ♦ ♥ include a suit of the set `voids`."""
    return (
        (a > 0 and voids & 1 != 0)
        or (b > 0 and voids & 2 != 0)
        or (c > 0 and voids & 4 != 0)
        or (d > 0 and voids & 8 != 0)
    )


@kernel
def _choose_split(
    seat: int, wanted: int, voids: int, left: np.uint64, scratch: np.ndarray, bits: np.uint64
) -> int:
    """Draw how many cards of each suit a constrained seat holds; 8 bits a suit."""
    a = count(left & suit_cards(0))
    b = count(left & suit_cards(1))
    c = count(left & suit_cards(2))
    d = count(left & suit_cards(3))
    at = scratch[_place(seat, a, b, c)] * (float(bits >> uint64(11)) / 9007199254740992.0)
    found = 0
    for i in range(min(a, wanted) + 1):
        for j in range(min(b, wanted - i) + 1):
            for k in range(min(c, wanted - i - j) + 1):
                m = wanted - i - j - k
                if m > d or _breaks_void(voids, i, j, k, m):
                    continue
                ways = _choose(a, i) * _choose(b, j) * _choose(c, k) * _choose(d, m)
                ways *= scratch[_place(seat + 1, a - i, b - j, c - k)]
                if ways == 0.0:
                    continue
                found = i | j << 8 | k << 16 | m << 24
                at -= ways
                if at < 0.0:
                    return found
    return found

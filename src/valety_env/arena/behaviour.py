"""How agents play: what they do in the games they have played, as rates with intervals.

Everything is counted from the cards that were played; a game that does not follow from its seed and
its cards is found out on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.arena.intervals import Interval, mean_interval, student_t
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NO_SUIT,
    NUM_RANKS,
    NUM_SUITS,
    PASS,
    bit,
    count,
    suit_cards,
)
from valety_env.engine import (
    CALLS,
    NOBODY,
    PLAYS,
    STATE,
    deal_points,
    legal_cards,
    play,
    start_match,
    suits_of_jacks,
    trump_of,
)
from valety_env.rules import Rules
from valety_env.solver import Solver
from valety_env.solver.annotations import positions_of_deal

# What is counted of each place in a game. A jack is dealt if anybody holds it.
(
    TRICKS,
    TRICKS_PLAYED,
    JACKS,
    JACKS_DEALT,
    TRUMPED,
    COULD_TRUMP,
    JACKS_THROWN,
    COULD_THROW,
    LED_LONGEST,
    COULD_LEAD_LONGEST,
    LED_TRUMP,
    COULD_LEAD_TRUMP,
    GENERALS,
    ASKED,
    GENERALS_MADE,
    NUM_COUNTS,
) = (0, 1, 2, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)

RATES: dict[str, tuple[int, int]] = {
    "tricks won": (TRICKS, TRICKS_PLAYED),
    "J♠ captured": (JACKS, JACKS_DEALT),
    "J♣ captured": (JACKS + 1, JACKS_DEALT + 1),
    "J♦ captured": (JACKS + 2, JACKS_DEALT + 2),
    "J♥ captured": (JACKS + 3, JACKS_DEALT + 3),
    "trumps when void": (TRUMPED, COULD_TRUMP),
    "throws a jack when void": (JACKS_THROWN, COULD_THROW),
    "leads its longest suit": (LED_LONGEST, COULD_LEAD_LONGEST),
    "leads trumps": (LED_TRUMP, COULD_LEAD_TRUMP),
    "announces a general": (GENERALS, ASKED),
    "makes its generals": (GENERALS_MADE, GENERALS),
}
"""What is told: how often, of how many chances for it.

Tricks won of all; each jack of those dealt; trumping, and throwing off a jack, of the plays in
which the suit led could not be followed and the hand had such a card and others; leads from the
longest suit of those from hands whose suits are not all equally long; leads of trumps of those from
hands with trumps and others; generals of the times asked, and those made.
"""

# Deals whose plays are solved at once.
_AT_ONCE = 64


@kernel
def _note_play(rules: np.record, state: np.record, card: int, counts: np.ndarray) -> None:
    """Count what a play is, before it is made.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record.
        card: what its seat to act plays.
        counts: int32 (NUM_COUNTS,), added to.
    """
    hand = state.hand[int64(state.turn)]
    led = int64(state.led)
    trump = trump_of(int64(state.turned))
    suit = card // NUM_RANKS
    trumps = hand & suit_cards(trump) if trump != NO_SUIT else EMPTY
    if led == NO_SUIT:
        longest = 0
        shortest = NUM_RANKS
        for each in range(NUM_SUITS):
            length = count(hand & suit_cards(each))
            if length > 0:
                longest = max(longest, length)
                shortest = min(shortest, length)
        if shortest < longest:
            counts[COULD_LEAD_LONGEST] += 1
            if count(hand & suit_cards(suit)) == longest:
                counts[LED_LONGEST] += 1
        if trumps != EMPTY and trumps != hand:
            counts[COULD_LEAD_TRUMP] += 1
            if suit == trump:
                counts[LED_TRUMP] += 1
    elif hand & suit_cards(led) == EMPTY:
        if trumps != EMPTY and trumps != hand:
            counts[COULD_TRUMP] += 1
            if suit == trump:
                counts[TRUMPED] += 1
        jacks = hand & rules.jacks
        if jacks != EMPTY and jacks != hand:
            counts[COULD_THROW] += 1
            if jacks & bit(card) != EMPTY:
                counts[JACKS_THROWN] += 1


@kernel
def _replay_deal(
    rules: np.record,
    state: np.record,
    seed: np.uint64,
    rotation: int,
    plays: np.ndarray,
    general: int,
    counts: np.ndarray,
) -> bool:
    """Play a deal again and count what everybody does in it.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record, overwritten: the table at the end.
        seed: of the table.
        rotation: place p sits at seat (p + rotation) mod players.
        plays: uint8 (plays,), the cards in order.
        general: the seat that announced, or NOBODY.
        counts: int32 (places, NUM_COUNTS), added to.

    Returns:
        whether every card was legal, and the deal over with the last.
    """
    players = int64(rules.num_players)
    start_match(rules, state, seed, 0)
    dealt = EMPTY
    for seat in range(players):
        dealt |= state.hand[seat]
    jacks = suits_of_jacks(rules, dealt & rules.jacks)
    while state.phase == CALLS:
        seat = int64(state.turn)
        own = counts[(seat - rotation) % players]
        own[ASKED] += 1
        own[GENERALS] += 1 if seat == general else 0
        play(rules, state, GENERAL if seat == general else PASS)
    if state.general != general:
        return False
    for number in range(plays.size):
        card = int64(plays[number])
        if state.phase != PLAYS or card >= 64 or legal_cards(state) & bit(card) == EMPTY:
            return False
        _note_play(rules, state, card, counts[(int64(state.turn) - rotation) % players])
        play(rules, state, card)
    if state.phase <= PLAYS:
        return False
    for seat in range(players):
        own = counts[(seat - rotation) % players]
        own[TRICKS] += int64(state.tricks[seat])
        own[TRICKS_PLAYED] += int64(rules.hand_size)
        for suit in range(NUM_SUITS):
            own[JACKS + suit] += int64(state.jacks[seat]) >> suit & 1
            own[JACKS_DEALT + suit] += jacks >> suit & 1
    if general != NOBODY and state.tricks[general] == int64(rules.hand_size):
        counts[(general - rotation) % players, GENERALS_MADE] += 1
    return True


@kernel
def _replay_deals(
    rules: np.ndarray,
    states: np.ndarray,
    seeds: np.ndarray,
    rotations: np.ndarray,
    plays: np.ndarray,
    generals: np.ndarray,
    scores: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Play deals again, as `replay_deals`; return the first that is wrong, or −1."""
    players = int64(rules[0].num_players)
    for i in range(seeds.size):
        for j in range(rotations.shape[1]):
            rotation = int64(rotations[i, j])
            if not _replay_deal(
                rules[0],
                states[i, j],
                seeds[i],
                rotation,
                plays[i, j],
                int64(generals[i, j]),
                counts[i],
            ):
                return i
            for place in range(players):
                seat = (place + rotation) % players
                if deal_points(rules[0], states[i, j], seat) != scores[i, j, place]:
                    return i
    return -1


def replay_deals(
    rules: Rules,
    seeds: np.ndarray,
    rotations: np.ndarray,
    plays: np.ndarray,
    generals: np.ndarray,
    scores: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Play single deals again and count what everybody did in them.

    Args:
        rules: those of single deals, `Setup.played`.
        seeds: uint64 (N,), of the tables.
        rotations: int64 (N, R).
        plays: uint8 (N, R, plays), the cards in order.
        generals: int8 (N, R), the seat that announced, or −1.
        scores: int (N, R, places), what each place scored.

    Returns:
        `STATE` (N, R), the tables at the end, and int32 (N, places, NUM_COUNTS), what was counted
        in all rotations of a deal together.

    Raises:
        ValueError: if a card is not legal, or a score is not what the cards come to.
    """
    states = np.zeros(rotations.shape, STATE)
    counts = np.zeros((len(seeds), rules.num_players, NUM_COUNTS), np.int32)
    wrong = _replay_deals(
        rules.packed, states, seeds, rotations, plays, generals, scores.astype(np.int64), counts
    )
    if wrong >= 0:
        raise ValueError(f"the deal of the table with seed {seeds[wrong]} was not played like that")
    return states, counts


@dataclass(frozen=True)
class Rate:
    """How often somebody does something.

    Attributes:
        rate: 0…1.
        ci95: its 95% interval; None for fewer than two deals with a chance for it.
        chances: how many there were.
    """

    rate: float
    ci95: Interval | None
    chances: int


def rate_of(done: np.ndarray, chances: np.ndarray) -> Rate | None:
    """Return a rate over deals, each of which may offer any number of chances.

    Args:
        done: int (deals,), how often it was done.
        chances: int (deals,), how often it could have been.

    Returns:
        None without any chance. The interval is that of a ratio of means (Cochran, "Sampling
        Techniques", 1977, 6.4), with one deal more in which all was done and one in which nothing
        was, as in `rate_interval`.
    """
    met = chances > 0
    n = int(met.sum())
    total = float(chances[met].sum())
    if n == 0:
        return None
    rate = float(done[met].sum()) / total
    if n < 2:
        return Rate(rate, None, int(total))
    usual = total / n
    parts = np.append(chances[met], (usual, usual))
    made = np.append(done[met], (0.0, usual))
    middle = float(made.sum() / parts.sum())
    spread = float(((made - middle * parts) ** 2).sum()) * (n + 2) / (n + 1)
    half = student_t(n + 1) * math.sqrt(spread) / float(parts.sum())
    return Rate(rate, (max(0.0, middle - half), min(1.0, middle + half)), int(total))


def losses_of(
    solver: Solver,
    states: np.ndarray,
    rotations: np.ndarray,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Return what plays lost against the best card, all cards known.

    Args:
        solver: of the deals' rules.
        states: `STATE` (N, R), tables at the end of single deals.
        rotations: int64 (N, R).
        progress: told after how many more deals.

    Returns:
        float64 (N, places, tricks): by trick, points less than with the best card, means over the
        rotations.
    """
    rules = solver.rules
    players = rules.num_players
    number, times = rotations.shape
    assert rules.hand_size is not None
    found = np.zeros((number, players, rules.hand_size))
    for low in range(0, number, _AT_ONCE):
        part = states[low : low + _AT_ONCE].reshape(-1)
        positions = np.concatenate([positions_of_deal(rules, state) for state in part])
        values = solver.values(positions)
        cards = np.concatenate([state["history"][: int(state["num_plays"])] for state in part])
        lost = values.max(axis=1) - values[np.arange(len(cards)), cards]
        turned = np.repeat(rotations[low : low + _AT_ONCE].reshape(-1), players * rules.hand_size)
        deals = np.arange(len(cards)) // (times * players * rules.hand_size)
        np.add.at(
            found[low : low + _AT_ONCE],
            (
                deals,
                (positions["turn"].astype(np.int64) - turned) % players,
                positions["num_plays"].astype(np.int64) // players,
            ),
            lost / times,
        )
        if progress is not None:
            progress(len(part) // times)
    return found


@dataclass(frozen=True)
class Behaviour:
    """How an agent plays.

    Attributes:
        rates: what it does how often, by a key of `RATES`; None: never had the chance.
        deals: of which that was counted.
        loss: points a deal lost by its plays against the best cards, all cards known, with its 95%
            interval; None for games that are not solved.
        loss_by_trick: the same for each trick.
        loss_deals: of which that was found.
    """

    rates: dict[str, Rate | None]
    deals: int
    loss: tuple[float, Interval | None] | None
    loss_by_trick: tuple[tuple[float, Interval | None], ...]
    loss_deals: int


def describe(counts: np.ndarray, losses: np.ndarray | None) -> Behaviour:
    """Return the behaviour that follows from counts.

    Args:
        counts: int (deals, NUM_COUNTS).
        losses: float64 (deals, tricks), as `losses_of`, or None.
    """
    solved = losses if losses is not None and len(losses) else None
    return Behaviour(
        rates={
            name: rate_of(counts[:, done], counts[:, chances])
            for name, (done, chances) in RATES.items()
        },
        deals=len(counts),
        loss=None if solved is None else _mean(solved.sum(axis=1)),
        loss_by_trick=() if solved is None else tuple(map(_mean, solved.T)),
        loss_deals=0 if solved is None else len(solved),
    )


def _mean(values: np.ndarray) -> tuple[float, Interval | None]:
    return float(values.mean()), mean_interval(values)

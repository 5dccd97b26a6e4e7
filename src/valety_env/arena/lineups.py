"""Line-ups: who sits at a table, and their games on duplicate deals or on each deal once.

A line-up names a player for every place. In rotation r place p sits at seat (p + r) mod players; a
duplicate deal is played in all rotations, so that everybody holds every hand once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import uint64

from valety_env.agents import Agent
from valety_env.arena.control import Control
from valety_env.arena.points import relative_points, win_shares
from valety_env.arena.tables import play_tables
from valety_env.episode import Setup
from valety_env.rng import mix
from valety_env.rules import Rules
from valety_env.tables import mix_all

# Table i of the deals has the seed `mix(seed, DEALS + i)`, and likewise the matches; agents have
# the counters from AGENTS on. No two of these streams meet, nor do they meet the tables of a batch
# environment with the same seed, which are numbered from 0: what an agent was trained on is not
# what it is judged by.
DEALS = 1 << 32
MATCHES = 1 << 33
AGENTS = 1 << 63

# Tables played at once: enough to keep agents busy, few enough to stay in a few megabytes.
TABLES = 4096

# Points are multiples of 1/(players − 1), shares of a win are 1/w: with up to 7 players all are
# multiples of 1/420.
_UNIT = 420


@dataclass(frozen=True)
class Games:
    """N deals or matches of a line-up, each in R rotations.

    Attributes:
        rotations: int64 (N, R).
        scores: int64 (N, R, places): what each place scored, as `Played.scores`.
        winners: uint8 (N, R), who won, bit = place.
        lengths: int64 (N, R), deals in each episode.
        states: `STATE` (N, R): the tables at the end.
        decisions: int64 (players,), how often each player was asked.
        seconds: float64 (players,), how long it took each of them to answer.
        corrections: float64 (N, R, places): what is to be added to points; 0 without control
            variates.
    """

    rotations: np.ndarray
    scores: np.ndarray
    winners: np.ndarray
    lengths: np.ndarray
    states: np.ndarray
    decisions: np.ndarray
    seconds: np.ndarray
    corrections: np.ndarray

    def points(self, rules: Rules) -> np.ndarray:
        """Return what each place has over the mean of the others, float64 (N, R, places)."""
        return relative_points(rules, self.scores)

    def shares(self) -> np.ndarray:
        """Return each place's share of the wins, float64 (N, R, places)."""
        return win_shares(self.winners, self.scores.shape[-1])


def over_rotations(values: np.ndarray) -> np.ndarray:
    """Return the mean over rotations of points or shares.

    Halves, thirds, … are counted as whole numbers, so that what cancels out gives exactly 0.

    Args:
        values: float64 (N, R, places).

    Returns:
        float64 (N, places).
    """
    return np.asarray(np.rint(values * _UNIT).sum(axis=1) / (_UNIT * values.shape[1]))


def points_of(rules: Rules, scores: np.ndarray) -> np.ndarray:
    """Return each place's points in each deal or match, means over the rotations.

    Args:
        rules: of the game.
        scores: int (N, R, places), what each place scored.

    Returns:
        float64 (N, places).
    """
    return over_rotations(relative_points(rules, scores.astype(np.int64)))


def rotations_of(players: int, first: int, number: int, duplicate: bool) -> np.ndarray:
    """Return the rotations in which deals are played.

    Args:
        players: how many seats there are.
        first: the number of the first deal.
        number: how many deals.
        duplicate: whether each is played in all rotations; else in one, the next for the next deal.

    Returns:
        int64 (number, players), or (number, 1).
    """
    if duplicate:
        return np.tile(np.arange(players), (number, 1))
    return np.arange(first, first + number)[:, None] % players


def table_seeds(seed: int, stream: int, numbers: np.ndarray) -> np.ndarray:
    """Return the seeds of tables, uint64 (N,).

    Args:
        seed: of all.
        stream: DEALS or MATCHES.
        numbers: int (N,), of the deals or matches.
    """
    seeds = np.empty(len(numbers), np.uint64)
    mix_all(uint64(seed), uint64(stream) + numbers.astype(np.uint64), seeds)
    return seeds


def agent_seeds(seed: int, counters: Sequence[int]) -> np.ndarray:
    """Return the seeds of the agents with some counters, 0…2^63−1 each, uint64 (agents,)."""
    return np.array(
        [mix(uint64(seed), uint64(AGENTS + counter)) for counter in counters], np.uint64
    )


def play_lineup(
    setup: Setup,
    players: Sequence[Agent],
    lineup: Sequence[int],
    keys: np.ndarray,
    seed: int,
    first: int,
    end: int,
    *,
    duplicate: bool = True,
    tables: int = TABLES,
    progress: Callable[[float], None] | None = None,
    control: Control | None = None,
) -> Iterator[Games]:
    """Play some deals or matches of a line-up, in parts.

    Args:
        setup: the game and its episode.
        players: who plays.
        lineup: for each place the index in `players`.
        keys: uint64 (players,), the players' seeds.
        seed: of the tables.
        first: the number of the first deal or match.
        end: that after the last.
        duplicate: whether each is played in all rotations.
        tables: how many are played at once, at most, or one deal's; results don't depend on it.
        progress: called now and then with the number up to which all is done, a float.
        control: control variates, for single deals.

    Yields:
        the games, in order.

    Raises:
        IllegalActionError: if an agent chooses an action that is not legal.
        ActionTypeError: if an agent does not give one whole number a table.
    """
    places = setup.rules.num_players
    at_once = max(1, tables // (places if duplicate else 1))
    stream = DEALS if setup.single_deal else MATCHES
    for low in range(first, end, at_once):
        high = min(end, low + at_once)

        def told(part: float, low: int = low, high: int = high) -> None:
            assert progress is not None
            progress(low + part * (high - low))

        yield play_part(
            setup,
            players,
            lineup,
            keys,
            table_seeds(seed, stream, np.arange(low, high)),
            rotations_of(places, low, high - low, duplicate),
            None if progress is None else told,
            control,
        )


def play_part(
    setup: Setup,
    players: Sequence[Agent],
    lineup: Sequence[int],
    keys: np.ndarray,
    seeds: np.ndarray,
    rotations: np.ndarray,
    progress: Callable[[float], None] | None = None,
    control: Control | None = None,
) -> Games:
    """Play some tables of a line-up at once.

    Args:
        setup: as in `play_lineup`, likewise `players`, `lineup`, `keys` and `control`.
        players: likewise.
        lineup: likewise.
        keys: likewise.
        seeds: uint64 (N,), the tables' seeds.
        rotations: int64 (N, R), in which rotations each is played.
        progress: called now and then with the part of the work that is done, 0…1.
        control: likewise.

    Returns:
        the games.
    """
    number, times = rotations.shape
    places = setup.rules.num_players
    flat = rotations.reshape(-1)[:, None]
    # Place p sits at seat p + r, so at seat s sits place s − r.
    seat_of = (np.arange(places) + flat) % places
    place_at = (np.arange(places) - flat) % places
    played = play_tables(
        setup,
        players,
        np.asarray(lineup)[place_at],
        np.repeat(seeds, times),
        keys,
        progress,
        control,
    )
    shape = (number, times, places)
    winners = np.take_along_axis(played.winners[:, None] >> np.arange(places) & 1, seat_of, axis=1)
    return Games(
        rotations=rotations,
        scores=np.take_along_axis(played.scores, seat_of, axis=1).reshape(shape),
        winners=(winners << np.arange(places)).sum(axis=1).astype(np.uint8).reshape(number, times),
        lengths=played.deals.reshape(number, times),
        states=played.states.reshape(number, times),
        decisions=played.decisions,
        seconds=played.seconds,
        corrections=np.take_along_axis(played.corrections, seat_of, axis=1).reshape(shape),
    )

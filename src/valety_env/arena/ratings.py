"""Bradley–Terry ratings with intervals, from games of two or from rankings of more.

A player with strength θ beats one with strength φ with the chance 1/(1 + exp(φ − θ)) (Bradley and
Terry 1952). A game of more than two is taken apart into a comparison of every two at the table;
under Plackett and Luce's model of rankings that finds the same strengths as all of it would (Azari
Soufiani and others, "Generalized Method-of-Moments for Rank Aggregation", NeurIPS 2013). A tie is
half a win for both.

Games on the same cards are not independent, so intervals are made over deals: by the sandwich
estimate of the variance with the deals as clusters (Liang and Zeger 1986). It does not rely on the
model being right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from valety_env.arena.intervals import Interval, student_t

# Ratings are told on Elo's scale: 400 points are odds of 10.
ELO = 400.0 / math.log(10.0)
# For every two that have met, one more game is counted as a tie: without it who has lost all games
# would have no rating.
_PRIOR = 1.0
_STEPS = 100
_ENOUGH = 1e-10


@dataclass(frozen=True)
class Rating:
    """How strong a player is.

    Attributes:
        elo: on Elo's scale; the mean of all players is 0.
        ci95: its 95% interval, None for fewer than two deals.
        games: in how many comparisons with others it was.
    """

    elo: float
    ci95: Interval | None
    games: int


class Comparisons:
    """Comparisons of K players, from which ratings are made.

    Args:
        players: K.
    """

    def __init__(self, players: int) -> None:
        self.wins = np.zeros((players, players))
        self._parts: list[tuple[int, int, np.ndarray, np.ndarray, int]] = []

    def add(self, one: int, other: int, deals: np.ndarray, wins: np.ndarray, games: int) -> None:
        """Take in the games of two players.

        Args:
            one: a player.
            other: another.
            deals: int64 (N,), the numbers of the deals; those with the same number have the same
                cards, whoever plays.
            wins: float64 (N,), how many of its games on a deal the one has won, ties being halves.
            games: how many that were, on each deal.
        """
        if one == other:
            return
        total = float(wins.sum())
        self.wins[one, other] += total
        self.wins[other, one] += games * len(wins) - total
        self._parts.append((one, other, deals, wins, games))

    def ratings(self) -> list[Rating | None]:
        """Return the ratings; None of players without games.

        Players who have met in no way, not even through others, are rated apart, each group around
        0.
        """
        players = len(self.wins)
        found: list[Rating | None] = [None] * players
        games = self.wins + self.wins.T
        for group in _groups(games > 0):
            if len(group) < 2:
                continue
            place = {player: i for i, player in enumerate(group)}
            strengths, information = fit_bradley_terry(self.wins[np.ix_(group, group)])
            errors = self._errors(place, strengths, information)
            for player, i in place.items():
                elo = ELO * float(strengths[i])
                half = None if errors is None else ELO * float(errors[i])
                found[player] = Rating(
                    elo,
                    None if half is None else (elo - half, elo + half),
                    round(float(games[player].sum())),
                )
        return found

    def _errors(
        self, place: dict[int, int], strengths: np.ndarray, information: np.ndarray
    ) -> np.ndarray | None:
        """Return half of each 95% interval; None if there are fewer than two deals."""
        parts = [part for part in self._parts if part[0] in place]
        numbers = np.unique(np.concatenate([deals for _, _, deals, _, _ in parts]))
        if len(numbers) < 2:
            return None
        # What each deal adds to the derivative of the likelihood.
        scores = np.zeros((len(numbers), len(place)))
        for one, other, deals, wins, games in parts:
            i, j = place[one], place[other]
            chance = 1.0 / (1.0 + math.exp(strengths[j] - strengths[i]))
            surprise = wins - games * chance
            rows = np.searchsorted(numbers, deals)
            np.add.at(scores[:, i], rows, surprise)
            np.add.at(scores[:, j], rows, -surprise)
        inverse = np.linalg.pinv(information, hermitian=True)
        influence = scores @ inverse
        influence -= influence.mean(axis=1, keepdims=True)
        count = len(numbers)
        variance = (influence**2).sum(axis=0) * count / (count - 1)
        return np.asarray(student_t(count - 1) * np.sqrt(variance))


def fit_bradley_terry(wins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest strengths, with one tie more for every two that have met.

    Args:
        wins: float64 (K, K): how often the player of the row has beaten the one of the column.

    Returns:
        float64 (K,), strengths with a mean of 0 on the scale of natural logarithms of odds, and
        the information matrix, float64 (K, K).
    """
    games = wins + wins.T
    met = (games > 0) & ~np.eye(len(wins), dtype=bool)
    wins = wins + np.where(met, _PRIOR / 2.0, 0.0)
    games = games + np.where(met, _PRIOR, 0.0)
    strengths = np.zeros(len(wins))

    def likelihood(at: np.ndarray) -> float:
        return float(-(wins * np.logaddexp(0.0, at[None, :] - at[:, None])).sum())

    now = likelihood(strengths)
    information = np.zeros_like(games)
    for _ in range(_STEPS):
        chances = 1.0 / (1.0 + np.exp(strengths[None, :] - strengths[:, None]))
        gradient = (wins - games * chances).sum(axis=1)
        weights = games * chances * (1.0 - chances)
        information = np.diag(weights.sum(axis=1)) - weights
        step = np.linalg.pinv(information, hermitian=True) @ gradient
        if np.abs(step).max(initial=0.0) < _ENOUGH:
            break
        # Newton's step may go too far where everybody always wins or loses.
        size = 1.0
        while likelihood(strengths + size * step) < now and size > 1e-9:
            size /= 2.0
        strengths = strengths + size * step
        now = likelihood(strengths)
    return strengths - strengths.mean(), information


def _groups(met: np.ndarray) -> list[list[int]]:
    """Return who has met whom, directly or through others, bool (K, K), as groups."""
    left = set(range(len(met)))
    groups = []
    while left:
        group: set[int] = set()
        todo = {min(left)}
        while todo:
            player = todo.pop()
            group.add(player)
            todo |= {int(other) for other in np.flatnonzero(met[player])} - group
        left -= group
        groups.append(sorted(group))
    return groups

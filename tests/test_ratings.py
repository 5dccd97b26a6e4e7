"""Bradley-Terry ratings: against a closed form, published ones, and simulated players."""

import math

import numpy as np
import pytest

from valety_env.arena import ratings
from valety_env.arena.ratings import ELO, Comparisons, fit_bradley_terry

TRUE = np.array([1.2, 0.4, -0.3, -1.3])


def chance(one: float, other: float) -> float:
    return 1.0 / (1.0 + math.exp(other - one))


def rated(
    strengths: np.ndarray, deals: int, rng: np.random.Generator, luck: float = 0.0
) -> Comparisons:
    """Return comparisons of all pairs, two games on each deal, which has its luck for both."""
    found = Comparisons(len(strengths))
    for i in range(len(strengths)):
        for j in range(i):
            draws = rng.random((deals, 2))
            together = rng.random(deals) < luck
            draws[together, 1] = draws[together, 0]
            wins = (draws < chance(strengths[i], strengths[j])).sum(axis=1).astype(float)
            found.add(i, j, np.arange(deals), wins, 2)
    return found


def test_two_players_have_the_odds_of_their_games() -> None:
    comparisons = Comparisons(2)
    # 300 of 400 games, one of them a tie counted half to each; and one tie more, as always.
    comparisons.add(0, 1, np.arange(200), np.tile([2.0, 1.0], 100), 2)
    first, second = comparisons.ratings()
    assert first is not None
    assert second is not None
    assert first.elo - second.elo == pytest.approx(400 * math.log10(300.5 / 100.5))
    assert first.elo == -second.elo
    assert first.games == second.games == 400
    assert first.ci95 is not None
    # The variance of a log odds over deals: deviation 1/2 of a game of mean 3/4, over 200 deals.
    slope = 401 * (300.5 / 401) * (100.5 / 401)
    half = 1.972 * ELO * math.sqrt(200 * 0.5**2) / slope / 2
    assert (first.ci95[1] - first.ci95[0]) / 2 == pytest.approx(half, rel=0.01)


# The American League's eastern division in 1987: row beats column so often. Agresti, "Categorical
# Data Analysis", 2nd edition, table 10.10; strengths over Baltimore and their standard errors as
# Turner and Firth print them ("Bradley-Terry Models in R", Journal of Statistical Software 2012).
BASEBALL = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],  # Milwaukee
        [6, 0, 7, 5, 11, 9, 9],  # Detroit
        [4, 6, 0, 7, 7, 8, 12],  # Toronto
        [6, 8, 6, 0, 6, 7, 10],  # New York
        [6, 2, 6, 7, 0, 7, 12],  # Boston
        [4, 4, 5, 6, 6, 0, 6],  # Cleveland
        [2, 4, 1, 3, 1, 7, 0],  # Baltimore
    ],
    float,
)
PUBLISHED = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]
ERRORS = [0.3433, 0.3396, 0.3367, 0.3359, 0.3339, 0.3319]


def test_strengths_are_those_that_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody has added ties to these.
    monkeypatch.setattr(ratings, "_PRIOR", 0.0)
    strengths, information = fit_bradley_terry(BASEBALL)
    assert strengths - strengths[-1] == pytest.approx(PUBLISHED, abs=6e-5)
    covariance = np.linalg.inv(information[:-1, :-1])
    assert np.sqrt(np.diag(covariance)) == pytest.approx(ERRORS, abs=6e-5)


def test_the_likelihood_is_highest_at_the_strengths() -> None:
    rng = np.random.default_rng(1)
    for players in (2, 3, 8):
        wins = rng.integers(0, 50, (players, players)).astype(float)
        np.fill_diagonal(wins, 0.0)
        found, _ = fit_bradley_terry(wins)
        assert found.mean() == pytest.approx(0.0, abs=1e-9)
        # One tie more for every pair that has met.
        told = wins + np.where(wins + wins.T > 0, 0.5, 0.0)
        expected = [
            sum((told[i, j] + told[j, i]) * chance(found[i], found[j]) for j in range(players))
            for i in range(players)
        ]
        # As many wins as the model expects: where the derivative of the likelihood is 0.
        assert told.sum(axis=1) == pytest.approx(expected, abs=1e-6)


def test_rankings_taken_apart_give_the_strengths_of_plackett_and_luce() -> None:
    # Rankings of all four, drawn by Luce's rule; the strengths are those they were drawn by.
    rng = np.random.default_rng(2)
    deals = 20_000
    keys = TRUE + rng.gumbel(size=(deals, 4))
    comparisons = Comparisons(4)
    for i in range(4):
        for j in range(i):
            comparisons.add(i, j, np.arange(deals), (keys[:, i] > keys[:, j]).astype(float), 1)
    for rating, strength in zip(comparisons.ratings(), TRUE - TRUE.mean(), strict=True):
        assert rating is not None
        assert rating.elo == pytest.approx(ELO * strength, abs=4.0)
        assert rating.ci95 is not None
        assert 2.0 < rating.ci95[1] - rating.ci95[0] < 20.0


@pytest.mark.parametrize("luck", [0.0, 1.0])
def test_95_percent_of_intervals_hold_the_rating(luck: float) -> None:
    rng = np.random.default_rng(3)
    runs = 1500
    held = np.zeros(4)
    for _ in range(runs):
        for i, rating in enumerate(rated(TRUE, 80, rng, luck).ratings()):
            assert rating is not None
            assert rating.ci95 is not None
            held[i] += rating.ci95[0] <= ELO * (TRUE[i] - TRUE.mean()) <= rating.ci95[1]
    assert (held / runs >= 0.93).all()
    assert (held / runs <= 0.97).all()


def test_games_on_the_same_cards_are_no_independent_games() -> None:
    # The same number of games; where the cards decide, the intervals are wider by √2.
    widths = []
    for luck in (0.0, 1.0):
        (first, *_) = rated(TRUE, 4000, np.random.default_rng(4), luck).ratings()
        assert first is not None
        assert first.ci95 is not None
        widths.append(first.ci95[1] - first.ci95[0])
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(2), rel=0.05)


def test_who_loses_every_game_still_has_a_rating() -> None:
    comparisons = Comparisons(2)
    comparisons.add(0, 1, np.arange(1000), np.full(1000, 2.0), 2)
    first, last = comparisons.ratings()
    assert first is not None
    assert last is not None
    assert first.elo - last.elo == pytest.approx(400 * math.log10(2000.5 / 0.5))


def test_who_has_met_nobody_has_no_rating_and_groups_stand_apart() -> None:
    comparisons = Comparisons(5)
    comparisons.add(0, 2, np.arange(10), np.full(10, 1.5), 2)
    comparisons.add(1, 4, np.arange(10), np.full(10, 0.5), 2)
    comparisons.add(3, 3, np.arange(10), np.full(10, 1.0), 2)
    ratings = comparisons.ratings()
    assert ratings[3] is None
    told = [0.0 if rating is None else rating.elo for rating in ratings]
    assert told[0] == pytest.approx(-told[2])
    assert told[1] == pytest.approx(-told[4])
    assert told[0] == pytest.approx(told[4])


def test_one_deal_has_no_interval() -> None:
    comparisons = Comparisons(2)
    comparisons.add(0, 1, np.array([7]), np.array([2.0]), 2)
    first, _ = comparisons.ratings()
    assert first is not None
    assert first.ci95 is None

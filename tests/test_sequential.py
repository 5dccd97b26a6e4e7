"""When enough has been played: intervals that hold at all times, precision, and questions."""

import math
from itertools import product

import numpy as np
import pytest

from valety_env import evaluate
from valety_env.arena import ConfidenceSequence, mean_interval, plan_evaluation
from valety_env.arena.evaluation import most_points
from valety_env.arena.sequential import Number, Precision, Question
from valety_env.cards import cards_of
from valety_env.rules import parse_game

RNG = np.random.default_rng


def pairs_like(rng: np.random.Generator, mean: float, shape: tuple[int, ...]) -> np.ndarray:
    """Return observations like duplicate pairs of Valety: halves, a deviation of 1.6."""
    return np.clip(np.rint(2 * rng.normal(mean, 1.6, shape)) / 2, -23, 23)


def money_of_a_gambler(observations: list[float], mean: float, low: float, part: float) -> float:
    """Return what 1 becomes for one who bets a part of all he has on more than the mean."""
    money = 1.0
    for each in observations:
        money *= 1.0 + part * (each - mean) / (mean - low)
    return money


@pytest.mark.plain
def test_evidence_is_the_money_of_gamblers() -> None:
    observations = [1.0, -0.5, 2.5, 0.0, 2.5]
    sequence = ConfidenceSequence(-3.0, 4.0)
    sequence.add(np.array(observations[:2]))
    sequence.add(np.array(observations[2:]))
    parts = [0.9 / 2**k for k in range(9)]
    for mean in (-1.0, 0.0, 0.7, 2.0):
        more = [money_of_a_gambler(observations, mean, -3.0, part) for part in parts]
        # Who bets on less bets on the opposite numbers.
        less = [money_of_a_gambler([-x for x in observations], -mean, -4.0, p) for p in parts]
        found = sequence.evidence(mean)
        assert found == pytest.approx((math.log(np.mean(more)), math.log(np.mean(less))), abs=1e-12)


@pytest.mark.plain
def test_no_gambler_gains_in_a_fair_game() -> None:
    # All sequences of four fair throws: the mean money is 1, so that Ville's inequality holds.
    total = 0.0
    for throws in product((-1.0, 2.0), repeat=4):
        chance = math.prod(2 / 3 if throw < 0 else 1 / 3 for throw in throws)
        sequence = ConfidenceSequence(-1.0, 2.0)
        sequence.add(np.array(throws))
        total += chance * math.exp(sequence.evidence(0.0)[0])
    assert total == pytest.approx(1.0)


@pytest.mark.plain
def test_the_interval_is_where_neither_gambler_has_enough() -> None:
    sequence = ConfidenceSequence(-23.0, 23.0, 0.1)
    assert sequence.interval() == pytest.approx((-23.0, 23.0))
    sequence.add(pairs_like(RNG(1), 0.5, (300,)))
    low, high = sequence.interval()
    assert -23.0 < low < 0.5 < high < 23.0
    enough = math.log(2 / 0.1)
    assert sequence.evidence(low)[0] == pytest.approx(enough)
    assert sequence.evidence(high)[1] == pytest.approx(enough)


def test_who_looks_all_the_time_is_seldom_deceived() -> None:
    # Both at 5% together: 600 runs of 3000 pairs of equals, looked at after every one of them.
    observations = pairs_like(RNG(2), 0.0, (600, 3000))
    deceived = 0
    parts = 0.9 / 2.0 ** np.arange(9)
    for run in observations:
        for sign in (1.0, -1.0):
            money = np.cumsum(np.log1p(parts[:, None] * sign * run / 23.0), axis=1)
            mean_money = np.exp(money).mean(axis=0)
            deceived += bool((mean_money >= 40.0).any())
    assert deceived / len(observations) <= 0.05
    # The sum above is what the sequence says.
    sequence = ConfidenceSequence(-23.0, 23.0)
    sequence.add(observations[0])
    first = np.exp(np.log1p(parts[:, None] * observations[0] / 23.0).sum(axis=1)).mean()
    assert sequence.evidence(0.0)[0] == pytest.approx(math.log(first))


def asked(observations: np.ndarray, margin: float | None = None) -> tuple[str, int]:
    """Return the answer to a question, and after how many observations."""
    question = Question(23.0, len(observations), margin)
    n = 0
    while (wanted := question.wanted(observations[:n])) > n:
        n = wanted
    return question.verdict().answer, n


def test_who_is_better_is_found_out_and_by_how_much_tells_how_soon() -> None:
    rng = RNG(3)
    needed = {}
    for mean in (-1.0, 0.2, 0.1):
        answers = [asked(pairs_like(rng, mean, (20_000,))) for _ in range(30)]
        assert {answer for answer, _ in answers} == {"better" if mean > 0 else "worse"}
        needed[mean] = float(np.median([n for _, n in answers]))
    assert needed[-1.0] < needed[0.2] < needed[0.1]
    # A test of fixed size needs 7.85 (1.6 / 0.1)² = 2010 to have a chance of 80%.
    assert needed[0.1] < 2 * 2010


def test_equals_within_a_margin_are_told_to_be_so() -> None:
    rng = RNG(4)
    assert asked(pairs_like(rng, 0.0, (20_000,)), 0.2)[0] == "equal"
    assert asked(pairs_like(rng, 0.0, (5000,)))[0] == "undecided"
    answer, n = asked(pairs_like(rng, 0.5, (20_000,)), 0.2)
    assert (answer, n < 2000) == ("better", True)


def test_the_error_of_a_question_is_what_was_asked_for() -> None:
    sure, hasty = Question(23.0, 100, error=0.01), Question(23.0, 100, error=0.2)
    observations = pairs_like(RNG(5), 0.3, (2000,))
    for question in (sure, hasty):
        question.wanted(observations)
    inner, outer = hasty.verdict().interval, sure.verdict().interval
    assert outer[0] < inner[0] < inner[1] < outer[1]
    assert (sure.verdict().error, hasty.verdict().error) == (0.01, 0.2)


def until(half: float, observations: np.ndarray) -> int:
    """Return after how many observations a precision is reached."""
    stopping = Precision(half, len(observations))
    n = 0
    while (wanted := stopping.wanted(observations[:n])) > n:
        n = wanted
    return n


def test_95_percent_of_intervals_that_were_waited_for_hold_the_mean() -> None:
    rng = RNG(6)
    held = 0
    runs = 2000
    for _ in range(runs):
        # Skewed, as points against a weak opponent are.
        observations = np.minimum(rng.gamma(4.0, 0.8, 3000), 23.0)
        n = until(0.1, observations)
        interval = mean_interval(observations[:n])
        assert interval is not None
        assert (interval[1] - interval[0]) / 2 <= 0.1
        held += interval[0] <= 3.2 <= interval[1]
    assert 0.93 <= held / runs <= 0.97


def test_a_precision_is_waited_for_no_longer_than_needed() -> None:
    observations = pairs_like(RNG(7), 0.0, (40_000,))
    # The half interval 1.96 · 1.6 / √n is 0.05 at n = 3934; looks are at most 5% further.
    assert 3934 * 0.9 < until(0.05, observations) < 3934 * 1.1
    assert until(1.0, observations) == 200
    assert until(0.001, observations[:300]) == 300


@pytest.mark.plain
def test_a_number_is_a_number() -> None:
    assert Number(7).wanted(np.empty(0)) == 7
    assert Number(7).wanted(np.empty(9)) == 7


def test_evaluation_stops_at_a_precision() -> None:
    result = evaluate("heuristic", "random", until=0.3, seed=1).results[0]
    assert result.ci95 is not None
    assert (result.ci95[1] - result.ci95[0]) / 2 <= 0.3
    # The deals are those of an evaluation that was told their number.
    told = evaluate("heuristic", "random", deals=result.pairs, seed=1).results[0]
    assert np.array_equal(told.pair_points, result.pair_points)
    assert 200 <= result.pairs < 1000
    assert evaluate("heuristic", "random", until=0.01, deals=300, seed=1).results[0].pairs == 300


def test_evaluation_answers_a_question() -> None:
    results = evaluate("heuristic", ["random", "heuristic"], question=True, deals=400, seed=2)
    better, undecided = results.results
    assert better.verdict is not None
    assert better.verdict.answer == "better"
    assert better.pairs < 100
    assert better.ci95 == better.verdict.interval
    assert better.ci95[0] > 0
    assert undecided.verdict is not None
    assert (undecided.verdict.answer, undecided.pairs) == ("undecided", 400)
    told = better.to_dict()["verdict"]
    assert told["answer"] == "better"
    assert told["error"] == 0.05
    # Twins that play alike never differ, which even this many deals make sure of.
    twins = evaluate("heuristic", "heuristic", question=True, margin=2.0, seed=2).results[0]
    assert twins.verdict is not None
    assert twins.verdict.answer == "equal"


class Impatient:
    """Plays the lowest card, until somebody presses Ctrl-C."""

    name = "impatient"

    def __init__(self, choices: int) -> None:
        self.left = choices

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        self.left -= len(legal)
        if self.left < 0:
            raise KeyboardInterrupt
        return np.array([cards_of(int(actions))[0] for actions in legal])


def test_a_question_may_be_looked_at_when_somebody_interrupts_it() -> None:
    options = {"game": "valety-L4", "question": True, "matches": 5, "seed": 4}
    # 4 choices on each of 200 duplicate deals; then it is at its next lot, whatever that is.
    opponents = [Impatient(10**9), "random"]
    try:
        evaluation = evaluate(Impatient(2 * 4 * 200), opponents, **options)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        pytest.fail("nothing is said of what was played")
    (result,) = evaluation.results
    assert evaluation.interrupted
    assert 100 < result.pairs <= 200
    assert result.verdict is not None
    assert result.verdict.answer == "undecided"
    assert result.match_pairs == 0
    # All that is said is what so many deals say.
    told = evaluate(
        Impatient(10**9), Impatient(10**9), game="valety-L4", deals=result.pairs, seed=4
    ).results[0]
    assert np.array_equal(told.pair_points, result.pair_points)
    # Other intervals would not hold.
    with pytest.raises(KeyboardInterrupt):
        evaluate(Impatient(2000), "random", game="valety-L4", until=0.001, seed=4)
    with pytest.raises(KeyboardInterrupt):
        evaluate(Impatient(20), "random", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "game",
    [
        "valety",
        pytest.param("valety-L1", marks=pytest.mark.plain),
        "valety-L8",
        "knaves",
        "polignac",
        "polignac,num_players=6",
    ],
)
def test_no_points_exceed_the_bound(game: str) -> None:
    rules = parse_game(game)[1]
    bound = most_points(rules)
    assert bound >= -rules.worst_points
    agents = ("random", "heuristic", "random,general=0")
    for agent, opponent in product(agents[:2], agents):
        points = evaluate(agent, opponent, game=rules, deals=40, seed=3).results[0].pair_points
        assert np.abs(points).max() <= bound


@pytest.mark.plain
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"until": 0.0}, "until=0.0: it must be a number of points above 0"),
        ({"until": math.nan}, "until=nan"),
        ({"question": True, "until": 0.1}, "until and question: give one of them"),
        ({"margin": 0.1}, "margin=0.1: it belongs to question"),
        ({"question": True, "margin": -1.0}, "margin=-1.0"),
        ({"question": True, "error": 0.0}, "error=0.0: it must be a chance above 0"),
        ({"question": True, "control": "play"}, "question: its answer rests on plain points"),
        ({"deals": 0, "until": 0.1}, "deals=0"),
        ({"control": "luck"}, "control='luck': allowed are deal, play, all"),
        ({"control": "deal"}, 'control="deal": nothing is left of the luck'),
        ({"together": True, "game": "polignac"}, "together: 1 opponents are given; 4 players"),
    ],
)
def test_what_can_not_be_evaluated_is_told_in_one_line(
    options: dict[str, object], told: str
) -> None:
    with pytest.raises(ValueError) as error:
        plan_evaluation("random", ["random"], **options)  # type: ignore[arg-type]
    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)

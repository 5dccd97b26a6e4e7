"""What a tournament's games come to: the matrix, ratings, learning curves, behaviour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from valety_env.agents import parse_agent_name
from valety_env.arena.behaviour import NUM_COUNTS, Behaviour, describe, losses_of, replay_deals
from valety_env.arena.intervals import Interval, mean_interval, rate_interval, student_t
from valety_env.arena.lineups import DEALS, over_rotations, points_of, rotations_of, table_seeds
from valety_env.arena.points import win_shares
from valety_env.arena.ratings import Comparisons, Rating
from valety_env.arena.tournament.entrants import Entrant, LineUp, labels
from valety_env.arena.tournament.jobs import setup_of
from valety_env.arena.tournament.store import DEAL, MATCH, Store, StoreError
from valety_env.rules import Rules
from valety_env.solver import Solver, can_solve

Progress = Callable[[str, float, int], None]
"""Called with what is being done, how many deals of it are done, and of how many."""

# Games whose plays are judged by the solver, some 40 ms each, and the fewest deals of a line-up.
_SOLVED_GAMES = 1000
_LEAST_SOLVED = 5


@dataclass(frozen=True)
class Cell:
    """What one entrant got where another sat at all other seats.

    Attributes:
        deals: duplicate deals.
        points: a deal, own minus the mean of the others', charges negative.
        ci95: their 95% interval.
        matches: duplicate matches.
        win_rate: the mean share of a match's win; None without matches.
        win_ci95: its 95% interval.
    """

    deals: int
    points: float
    ci95: Interval | None
    matches: int
    win_rate: float | None
    win_ci95: Interval | None


@dataclass(frozen=True)
class Standing:
    """How an entrant has done.

    Attributes:
        label: what it is called here.
        entrant: who it is.
        field: its points against each of the others, all opponents counting the same, with their
            95% interval; None if it has not met anybody alone.
        mixed: its points at tables where all are different, likewise.
        deal_rating: from single deals; None without any.
        match_rating: from matches.
        ms_a_move: how long its choices took while the games were played, with whatever else the
            machine did; None if it was never asked.
        behaviour: how it plays; None if that was not asked for.
    """

    label: str
    entrant: Entrant
    field: tuple[float, Interval | None] | None
    mixed: tuple[float, Interval | None] | None
    deal_rating: Rating | None
    match_rating: Rating | None
    ms_a_move: float | None
    behaviour: Behaviour | None


@dataclass(frozen=True)
class CurvePoint:
    """A checkpoint on a learning curve.

    Attributes:
        step: of training.
        deals: duplicate deals.
        points: a deal.
        ci95: their 95% interval.
    """

    step: int
    deals: int
    points: float
    ci95: Interval | None


@dataclass(frozen=True)
class Curve:
    """A run's checkpoints against one opponent that does not learn.

    Attributes:
        run: the folder.
        opponent: what the opponent is called.
        points: in the order of steps.
    """

    run: str
    opponent: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True)
class Standings:
    """All that a tournament's games come to.

    Attributes:
        game: the game and its options.
        seed: with it the same games are played again.
        standings: the best first, by their ratings from matches if all have such, else from deals.
        cells: by the places in `standings` of who is told of and of who sat at the other seats.
        curves: of runs.
        sessions: when games were played, by which command, with which versions.
    """

    game: str
    seed: int
    standings: tuple[Standing, ...]
    cells: Mapping[tuple[int, int], Cell]
    curves: tuple[Curve, ...]
    sessions: Sequence[Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON values."""
        return {
            "game": self.game,
            "seed": self.seed,
            "standings": [_told(standing) for standing in self.standings],
            "matrix": [
                {
                    "agent": self.standings[one].label,
                    "opponent": self.standings[other].label,
                    **asdict(cell),
                }
                for (one, other), cell in sorted(self.cells.items())
            ],
            "curves": [asdict(curve) for curve in self.curves],
            "sessions": [dict(session) for session in self.sessions],
        }


def _told(standing: Standing) -> dict[str, Any]:
    """Return a standing as JSON values."""
    entrant = standing.entrant
    value: dict[str, Any] = {
        "agent": standing.label,
        "name": entrant.name,
        "digest": entrant.digest,
        "about": entrant.about,
    }
    for key in ("field", "mixed"):
        found = getattr(standing, key)
        value[key] = None if found is None else {"points": found[0], "ci95": found[1]}
    for key in ("deal_rating", "match_rating"):
        rating = getattr(standing, key)
        value[key] = None if rating is None else asdict(rating)
    value["ms_a_move"] = standing.ms_a_move
    if standing.behaviour is not None:
        value["behaviour"] = asdict(standing.behaviour)
    return value


@dataclass(frozen=True)
class _Played:
    """All deals, or all matches, of a line-up; deal `numbers[i]` is row i of each array.

    Attributes:
        lineup: for each place the index of who sat there.
        numbers: int64 (N,).
        points: float64 (N, places), means over rotations.
        shares: float64 (N, places), of the win, likewise.
        scores: int64 (N, R, places).
        winners: uint8 (N, R).
        plays: uint8 (N, R, plays).
        generals: int8 (N, R).
    """

    lineup: LineUp
    numbers: np.ndarray
    points: np.ndarray
    shares: np.ndarray
    scores: np.ndarray
    winners: np.ndarray
    plays: np.ndarray
    generals: np.ndarray


def read_standings(
    store: Store,
    only: Sequence[int] | None = None,
    behaviour: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> Standings:
    """Return what the games in a results file come to.

    Args:
        store: the file.
        only: the numbers of those who are told of, with the games among them; None: all.
        behaviour: whether to tell how they play, for which the deals are played again card by card
            and, in games that can be solved, some of them solved.
        threads: how many solve.
        progress: told how far that is.

    Raises:
        StoreError: if the file is damaged.
    """
    everybody = store.entrants()
    numbers = list(everybody if only is None else dict.fromkeys(only))
    places = {number: place for place, number in enumerate(numbers)}
    game, seed = str(store.facts["game"]), int(store.facts["seed"])
    played: dict[str, list[_Played]] = {DEAL: [], MATCH: []}
    asked = np.zeros(len(numbers), np.int64)
    seconds = np.zeros(len(numbers))
    for (lineup, kind), _ in store.ranges().items():
        if not set(lineup) <= set(numbers):
            continue
        rules = setup_of(game, kind).rules
        found, thought = _read(store, rules, lineup, kind)
        for number, (times, took) in thought.items():
            asked[places[number]] += times
            seconds[places[number]] += took
        there = tuple(places[number] for number in lineup)
        played[kind].append(_Played(there, *found))
    rules = setup_of(game, DEAL).rules
    ratings = {kind: _ratings(rules, games, len(numbers)) for kind, games in played.items()}
    behaviours: list[Behaviour | None] = [None] * len(numbers)
    if behaviour:
        behaviours = list(_behaviours(store, seed, played[DEAL], len(numbers), threads, progress))
    names = labels([everybody[number] for number in numbers])
    alone = [games for games in played[DEAL] if len(set(games.lineup[1:])) == 1]
    apart = [games for games in played[DEAL] if len(set(games.lineup[1:])) > 1]
    standings = [
        Standing(
            label=names[place],
            entrant=everybody[number],
            field=_mean_of(_own_points(alone, place)),
            mixed=_mean_of(_own_points(apart, place)),
            deal_rating=ratings[DEAL][place],
            match_rating=ratings[MATCH][place],
            ms_a_move=1e3 * seconds[place] / asked[place] if asked[place] else None,
            behaviour=behaviours[place],
        )
        for place, number in enumerate(numbers)
    ]
    order = _best_first(standings)
    moved = {place: new for new, place in enumerate(order)}
    cells = {(moved[one], moved[other]): cell for (one, other), cell in _cells(played).items()}
    best_first = tuple(standings[place] for place in order)
    return Standings(
        game=game,
        seed=seed,
        standings=best_first,
        cells=cells,
        curves=_curves(best_first, cells),
        sessions=store.sessions(),
    )


def _best_first(standings: Sequence[Standing]) -> list[int]:
    """Return the places of standings in order: by matches if all have played such, else by deals.

    Who has no rating is last, and those with the same one are told apart by their points.
    """
    by_matches = all(standing.match_rating for standing in standings)

    def merit(place: int) -> tuple[float, float]:
        standing = standings[place]
        rating = standing.match_rating if by_matches else standing.deal_rating
        field = standing.field or standing.mixed
        return (
            -np.inf if rating is None else rating.elo,
            -np.inf if field is None else field[0],
        )

    return sorted(range(len(standings)), key=merit, reverse=True)


def _read(
    store: Store, rules: Rules, lineup: LineUp, kind: str
) -> tuple[tuple[np.ndarray, ...], dict[int, tuple[int, float]]]:
    """Return the games of a line-up, as `_Played` has them, and how long everybody thought."""
    blocks = list(store.blocks(lineup, kind))
    thought: dict[int, tuple[int, float]] = {}
    for block in blocks:
        for number, (times, took) in block.thought.items():
            before = thought.get(number, (0, 0.0))
            thought[number] = (before[0] + times, before[1] + took)
    scores = np.concatenate([block.scores for block in blocks]).astype(np.int64)
    winners = np.concatenate([block.winners for block in blocks])
    found = (
        np.concatenate([np.arange(b.first, b.first + b.number) for b in blocks]),
        points_of(rules, scores),
        over_rotations(win_shares(winners, len(lineup))),
        scores,
        winners,
        np.concatenate([block.plays for block in blocks]),
        np.concatenate([block.generals for block in blocks]),
    )
    return found, thought


def _ratings(rules: Rules, played: Sequence[_Played], players: int) -> list[Rating | None]:
    """Return the ratings that follow from deals or from matches."""
    comparisons = Comparisons(players)
    for games in played:
        times = games.winners.shape[1]
        for p, one in enumerate(games.lineup):
            for q, other in enumerate(games.lineup[:p]):
                won = games.winners >> p & 1
                lost = games.winners >> q & 1
                ahead = np.sign(games.scores[..., p] - games.scores[..., q])
                # Who has won is ahead of who has not, even at equal points (V6).
                ahead = np.where(
                    won != lost,
                    won.astype(np.int64) - lost,
                    (-ahead if rules.lowest_wins else ahead),
                )
                comparisons.add(one, other, games.numbers, ((ahead + 1) / 2).sum(axis=1), times)
    return comparisons.ratings()


def _own_points(played: Sequence[_Played], player: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the numbers and points of a player's deals, by line-up.

    Where it sits alone; of line-ups of two that is both.
    """
    found = []
    for games in played:
        at = [place for place, who in enumerate(games.lineup) if who == player]
        if len(at) == 1:
            found.append((games.numbers, games.points[:, at[0]]))
    return found


def _mean_of(
    by_lineup: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[float, Interval | None] | None:
    """Return the mean over line-ups of their mean points, and its interval over deals."""
    if not by_lineup:
        return None
    mean = float(np.mean([points.mean() for _, points in by_lineup]))
    numbers = np.unique(np.concatenate([numbers for numbers, _ in by_lineup]))
    count = len(numbers)
    if count < 2:
        return mean, None
    # What each deal adds to the mean, beyond its share.
    influence = np.zeros(count)
    for of_deals, points in by_lineup:
        rows = np.searchsorted(numbers, of_deals)
        influence[rows] += (points - points.mean()) / (len(points) * len(by_lineup))
    half = student_t(count - 1) * float(np.sqrt((influence**2).sum() * count / (count - 1)))
    return mean, (mean - half, mean + half)


def _cells(played: Mapping[str, Sequence[_Played]]) -> dict[tuple[int, int], Cell]:
    """Return the matrix: who got what where all the others are one other entrant."""
    deals: dict[tuple[int, int], np.ndarray] = {}
    wins: dict[tuple[int, int], np.ndarray] = {}
    for kind, found in ((DEAL, deals), (MATCH, wins)):
        for games in played[kind]:
            values = games.points if kind == DEAL else games.shares
            for place, who in enumerate(games.lineup):
                others = set(games.lineup[:place] + games.lineup[place + 1 :])
                if len(others) == 1 and who not in others:
                    found[who, others.pop()] = values[:, place]
    cells = {}
    for pair in sorted(deals.keys() | wins.keys()):
        points = deals.get(pair, np.empty(0))
        shares = wins.get(pair, np.empty(0))
        cells[pair] = Cell(
            deals=len(points),
            points=float(points.mean()) if len(points) else 0.0,
            ci95=mean_interval(points),
            matches=len(shares),
            win_rate=float(shares.mean()) if len(shares) else None,
            win_ci95=rate_interval(shares),
        )
    return cells


def _curves(
    standings: Sequence[Standing], cells: Mapping[tuple[int, int], Cell]
) -> tuple[Curve, ...]:
    """Return the learning curves of runs of which there are several checkpoints."""
    runs: dict[tuple[str, str], list[int]] = {}
    fixed = []
    for place, standing in enumerate(standings):
        parsed = parse_agent_name(standing.entrant.name)
        about = standing.entrant.about
        if parsed.name == "checkpoint" and "step" in about:
            folder = Path(str(parsed.target)).parent
            options = "".join(f",{key}={value}" for key, value in parsed.options.items())
            # Networks that only lie beside each other are of different runs.
            runs.setdefault((f"{folder}{options}", str(about.get("seed"))), []).append(place)
        else:
            fixed.append(place)
    curves = []
    for (run, _), members in sorted(runs.items()):
        by_step = {int(standings[place].entrant.about["step"]): place for place in members}
        for other in fixed:
            points = tuple(
                CurvePoint(step, cell.deals, cell.points, cell.ci95)
                for step, place in sorted(by_step.items())
                if (cell := cells.get((place, other))) is not None and cell.deals
            )
            if len(points) > 1:
                curves.append(Curve(run, standings[other].label, points))
    return tuple(curves)


def _behaviours(
    store: Store,
    seed: int,
    played: Sequence[_Played],
    players: int,
    threads: int,
    progress: Progress | None,
) -> list[Behaviour]:
    """Return how everybody plays."""
    setup = setup_of(str(store.facts["game"]), DEAL)
    rules = setup.played
    solver = Solver(rules, threads) if can_solve(rules) else None
    most = max(_LEAST_SOLVED, _SOLVED_GAMES // max(1, len(played) * rules.num_players))
    counts = [_ByDeal(NUM_COUNTS) for _ in range(players)]
    tricks = rules.hand_size or 0
    losses = [_ByDeal(tricks) for _ in range(players)]
    done = 0
    total = sum(min(most, len(games.numbers)) for games in played)
    for order, games in enumerate(played):
        seeds = table_seeds(seed, DEALS, games.numbers)
        rotations = rotations_of(rules.num_players, 0, len(seeds), duplicate=True)
        try:
            states, counted = replay_deals(
                rules, seeds, rotations, games.plays, games.generals, games.scores
            )
        except ValueError as error:
            raise StoreError(f"{store.path}: {error}") from None
        for place, who in enumerate(games.lineup):
            counts[who].add(games.numbers, counted[:, place])
        if solver is None:
            continue

        def told(deals: int) -> None:
            nonlocal done
            done += deals
            if progress is not None:
                progress("deals solved", done, total)

        # Others for every line-up: more deals tell more than more games on the same.
        some = np.unique((np.arange(most) + most * order) % len(seeds))
        lost = losses_of(solver, states[some], rotations[some], told)
        for place, who in enumerate(games.lineup):
            losses[who].add(games.numbers[some], lost[:, place])
    found = []
    for player in range(players):
        lost, times = losses[player].sums()
        found.append(describe(counts[player].sums()[0], lost / times if solver else None))
    return found


class _ByDeal:
    """Rows of numbers by deal, over line-ups that meet on the same deals.

    Args:
        columns: how many numbers a row has.
    """

    def __init__(self, columns: int) -> None:
        self._numbers: list[np.ndarray] = [np.empty(0, np.int64)]
        self._rows: list[np.ndarray] = [np.empty((0, columns))]

    def add(self, numbers: np.ndarray, rows: np.ndarray) -> None:
        """Take in a row for each of some deals."""
        self._numbers.append(numbers)
        self._rows.append(rows)

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of the rows of each deal, (deals, columns), and how many they are."""
        rows = np.concatenate(self._rows)
        deals, places = np.unique(np.concatenate(self._numbers), return_inverse=True)
        sums = np.zeros((len(deals), rows.shape[1]))
        np.add.at(sums, places, rows)
        return sums, np.bincount(places, minlength=len(deals))[:, None]

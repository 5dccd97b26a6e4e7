"""`evaluate`: an agent against others on duplicate deals and matches, with 95% intervals."""

from __future__ import annotations

import importlib.metadata
import math
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from valety_env._version import __version__
from valety_env.agents import Agent, agent_name, make_agent
from valety_env.arena.control import Control
from valety_env.arena.intervals import Interval, mean_interval, rate_interval
from valety_env.arena.lineups import (
    TABLES,
    agent_seeds,
    over_rotations,
    play_lineup,
    rotations_of,
)
from valety_env.arena.sequential import Number, Precision, Question, Stopping, Verdict
from valety_env.episode import Setup, make_setup, parse_seed
from valety_env.notation import game_to_text, name_game, with_options
from valety_env.rules import Rules, make_rules, parse_game

MAX_PAIRS = 1 << 31
# Duplicate deals, unless told; and the most, where a precision or an answer is waited for.
DEALS_UNLESS_TOLD = 1000
MOST_UNLESS_TOLD = 1_000_000

Progress = Callable[[str, float, int], None]
"""Called with what is being played, how many pairs of it are done, and of how many."""


@dataclass(frozen=True)
class SeatResult:
    """What an agent got at one seat.

    Attributes:
        seat: which.
        deals: how often it sat there.
        points_per_deal: its mean points there.
        ci95: their 95% interval; None for fewer than two deals.
    """

    seat: int
    deals: int
    points_per_deal: float
    ci95: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "seat": self.seat,
            "deals": self.deals,
            "points_per_deal": self.points_per_deal,
            "ci95": _listed(self.ci95),
        }


@dataclass(frozen=True)
class Result:
    """One agent against some opponents.

    A pair is one deal or match played once per rotation of the seats, the agent in every seat in
    turn; its mean is one observation. Without duplicates an observation is one deal or match.

    Attributes:
        agent: its name.
        opponent: the name of who sits at all other seats, or those of all who do, joined by ` + `.
        game: the game and its options, as `rules.parse_game` reads them.
        duplicate: whether deals were played in all rotations.
        pairs: duplicate deals; without duplicates, deals.
        points_per_deal: own deal points minus the mean of the others', charges negative.
        ci95: its 95% interval; None for a single pair. If a question was asked it is the one that
            holds at any time, `verdict.interval`.
        match_pairs: duplicate matches; without duplicates, matches.
        match_win_rate: the mean share of the win, 1/w when w share it; None without matches.
        match_ci95: its 95% interval; None for fewer than two pairs.
        by_seat: the points at each seat.
        saving: how many times as many deals would have been needed without control variates, as
            far as these deals tell: the variance of plain points ÷ that of those told here.
        verdict: the answer, if a question was asked.
        pair_points: float64 (pairs,), the observations; not part of `to_dict`.
        pair_wins: float64 (match_pairs,), likewise.
    """

    agent: str
    opponent: str
    game: str
    duplicate: bool
    pairs: int
    points_per_deal: float
    ci95: Interval | None
    match_pairs: int
    match_win_rate: float | None
    match_ci95: Interval | None
    by_seat: tuple[SeatResult, ...]
    saving: float | None
    verdict: Verdict | None
    pair_points: np.ndarray = field(repr=False, compare=False)
    pair_wins: np.ndarray = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, without the single observations."""
        told = {
            "agent": self.agent,
            "opponent": self.opponent,
            "game": self.game,
            "duplicate": self.duplicate,
            "pairs": self.pairs,
            "points_per_deal": self.points_per_deal,
            "ci95": _listed(self.ci95),
            "match_pairs": self.match_pairs,
            "match_win_rate": self.match_win_rate,
            "match_ci95": _listed(self.match_ci95),
            "by_seat": [seat.to_dict() for seat in self.by_seat],
        }
        if self.saving is not None:
            told["saving"] = self.saving
        if self.verdict is not None:
            told["verdict"] = {**asdict(self.verdict), "interval": _listed(self.verdict.interval)}
        return told


def _listed(interval: Interval | None) -> list[float] | None:
    """Return an interval as JSON has it."""
    return None if interval is None else list(interval)


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    Attributes:
        results: one for each opponent, in the order given.
        seed: with it the same tables are played again.
        versions: of this package and of what it stands on.
        interrupted: whether Ctrl-C ended a question; its results hold all the same.
    """

    results: tuple[Result, ...]
    seed: int
    versions: dict[str, str]
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON values: `{"results": […], "seed": …, "versions": {…}}`."""
        return {
            "results": [result.to_dict() for result in self.results],
            "seed": self.seed,
            "versions": dict(self.versions),
        }


def versions() -> dict[str, str]:
    """Return the versions that results depend on; those of what runs models only if loaded."""
    found = {"valety_env": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "gymnasium", "pettingzoo"):
        found[name] = importlib.metadata.version(name)
    for name in ("torch", "onnxruntime", "stable_baselines3", "ray"):
        loaded = sys.modules.get(name)
        if loaded is not None:
            found[name] = str(loaded.__version__)
    return found


@dataclass(frozen=True)
class _Observed:
    """What the places of a line-up got.

    Attributes:
        plain: float64 (N, R, places), points in each rotation of a deal or match.
        corrections: float64 (N, R, places), what control variates add to them.
        wins: float64 (N, places), shares of the win, means over the rotations.
        rotations: int64 (N, R).
    """

    plain: np.ndarray
    corrections: np.ndarray
    wins: np.ndarray
    rotations: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """The points that are told, means over the rotations, float64 (N, places)."""
        return np.asarray(over_rotations(self.plain) + self.corrections.mean(axis=1))


@dataclass(frozen=True)
class Table:
    """A line-up: who meets whom.

    Attributes:
        players: the agents, each for single deals and for matches: it is told the game it plays.
        lineup: for each place the index of who sits there.
    """

    players: tuple[tuple[Agent, Agent], ...]
    lineup: tuple[int, ...]

    def name(self, place: int) -> str:
        """Return the name of who sits at a place."""
        return agent_name(self.players[self.lineup[place]][0])

    def others(self, place: int) -> str:
        """Return the name of who sits at all other places, or the names of all who do."""
        if len({who for other, who in enumerate(self.lineup) if other != place}) == 1:
            return self.name(1 if place == 0 else 0)
        return " + ".join(self.name(other) for other in range(len(self.lineup)) if other != place)


@dataclass(frozen=True)
class Plan:
    """An evaluation whose game, agents and numbers have been checked; `run` plays it.

    Attributes:
        game: the game and its options.
        line_ups: what is played, one after another.
        everybody: whether there are results for all at a table; else for the first alone.
        deals: the game as single deals.
        matches: the game as matches.
        stopping: makes what says when deals enough have been played.
        num_matches: matches of each table.
        duplicate: whether each is played in all rotations.
        control: the control variates of deals.
        seed: of the tables and of the agents.
        tables: how many are played at once, at most.
    """

    game: str
    line_ups: tuple[Table, ...]
    everybody: bool
    deals: Setup
    matches: Setup
    stopping: Callable[[], Stopping]
    num_matches: int
    duplicate: bool
    control: Control | None
    seed: int
    tables: int

    def run(self, progress: Progress | None = None) -> Evaluation:
        """Play all of it; arguments and errors as in `evaluate`."""
        results: list[Result] = []
        interrupted = False
        for table in self.line_ups:
            others = table.others(0)
            stopping = self.stopping()
            deals = self._observe(self.deals, table, stopping, f"{others}: deals", progress)
            interrupted = isinstance(stopping, Question) and stopping.ended
            number = Number(0 if interrupted else self.num_matches)
            matches = self._observe(self.matches, table, number, f"{others}: matches", progress)
            places = range(len(table.lineup)) if self.everybody else range(1)
            results += [self._result(table, place, deals, matches, stopping) for place in places]
            if interrupted:
                break
        return Evaluation(tuple(results), self.seed, versions(), interrupted)

    def _result(
        self,
        table: Table,
        place: int,
        deals: _Observed,
        matches: _Observed,
        stopping: Stopping,
    ) -> Result:
        """Return what one place got."""
        seats = range(len(table.lineup))
        points = np.ascontiguousarray(deals.points[:, place])
        at_seats = (deals.plain + deals.corrections)[..., place]
        wins = np.ascontiguousarray(matches.wins[:, place])
        seated = (place + deals.rotations) % len(seats)
        verdict = stopping.verdict() if isinstance(stopping, Question) else None
        return Result(
            agent=table.name(place),
            opponent=table.others(place),
            game=self.game,
            duplicate=self.duplicate,
            pairs=len(points),
            points_per_deal=float(points.mean()),
            ci95=mean_interval(points) if verdict is None else verdict.interval,
            match_pairs=len(wins),
            match_win_rate=float(wins.mean()) if len(wins) else None,
            match_ci95=rate_interval(wins),
            by_seat=tuple(_at_seat(seat, at_seats[seated == seat]) for seat in seats),
            saving=self._saving(over_rotations(deals.plain)[:, place], points),
            verdict=verdict,
            pair_points=points,
            pair_wins=wins,
        )

    def _saving(self, plain: np.ndarray, points: np.ndarray) -> float | None:
        """Return how much less points vary than plain ones."""
        if self.control is None or len(points) < 2 or not points.var():
            return None
        return float(plain.var() / points.var())

    def _observe(
        self,
        setup: Setup,
        table: Table,
        stopping: Stopping,
        what: str,
        progress: Progress | None,
    ) -> _Observed:
        """Play deals or matches until there are enough."""
        single = setup.single_deal
        players = [for_deals if single else for_matches for for_deals, for_matches in table.players]
        keys = agent_seeds(self.seed, range(len(players)))
        seats = setup.rules.num_players
        rotations = rotations_of(seats, 0, 0, self.duplicate)
        nothing = np.empty((*rotations.shape, seats))
        observed = _Observed(nothing, nothing, nothing[:, 0], rotations)
        while (wanted := stopping.wanted(observed.points[:, 0])) > (n := len(observed.plain)):

            def told(done: float, wanted: int = wanted) -> None:
                assert progress is not None
                progress(what, done, wanted)

            parts = [observed]
            lot = play_lineup(
                setup,
                players,
                table.lineup,
                keys,
                self.seed,
                n,
                wanted,
                duplicate=self.duplicate,
                tables=self.tables,
                progress=None if progress is None else told,
                control=self.control if single else None,
            )
            try:
                for games in lot:
                    points = games.points(setup.rules)
                    wins = over_rotations(games.shares())
                    parts.append(_Observed(points, games.corrections, wins, games.rotations))
            except KeyboardInterrupt:
                # What a question's interval says holds at any time, so now as well.
                if not isinstance(stopping, Question) or len(observed.plain) < 1:
                    raise
                stopping.end()
            observed = _Observed(
                *(
                    np.concatenate([getattr(part, each.name) for part in parts])
                    for each in fields(_Observed)
                )
            )
        return observed


def _at_seat(seat: int, points: np.ndarray) -> SeatResult:
    """Return what points, float64 (deals,), come to."""
    mean = float(points.mean()) if len(points) else 0.0
    return SeatResult(seat, len(points), mean, mean_interval(points))


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number of at least `least`, or is beyond all sense."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= MAX_PAIRS:
        raise ValueError(f"{name}={value!r}: it must be a whole number of at least {least}")


def check_points(name: str, value: float | None) -> None:
    """Refuse what is no number of points above 0; None is none, and allowed."""
    if value is not None and not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r}: it must be a number of points above 0")


def check_numbers(deals: int, matches: int, until: float | None) -> None:
    """Refuse numbers of deals or matches, or a precision, that can't be."""
    check_whole("deals", deals, 1)
    check_whole("matches", matches, 0)
    check_points("until", until)


def plan_evaluation(
    agent: str | Agent,
    opponents: str | Agent | Sequence[str | Agent],
    *,
    game: str | Rules = "valety",
    deals: int | None = None,
    matches: int = 0,
    until: float | None = None,
    question: bool = False,
    margin: float | None = None,
    error: float = 0.05,
    together: bool = False,
    duplicate: bool = True,
    control: str | None = None,
    seed: int | None = None,
    tables: int = TABLES,
    trust: bool = False,
    **rule_options: Any,
) -> Plan:
    """Check all that an evaluation needs and load its agents; arguments as for `evaluate`.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    waits = until is not None or question
    if deals is None:
        deals = MOST_UNLESS_TOLD if waits else DEALS_UNLESS_TOLD
    check_numbers(deals, matches, until)
    check_whole("tables", tables, 1)
    check_points("margin", margin)
    if not 0 < error <= 0.5:
        raise ValueError(f"error={error!r}: it must be a chance above 0, at most 0.5")
    if until is not None and question:
        raise ValueError("until and question: give one of them")
    if control is not None and question:
        raise ValueError("question: its answer rests on plain points, without control")
    if control == "deal" and duplicate:
        raise ValueError(
            'control="deal": nothing is left of the luck of a deal that is played in all rotations'
        )
    if margin is not None and not question:
        raise ValueError(f"margin={margin!r}: it belongs to question")
    number = parse_seed(seed)
    if isinstance(game, Rules):
        rules = make_rules(game, **rule_options)
        text = game_to_text(name_game(rules), rules)
    else:
        given = {name: value for name, value in rule_options.items() if value is not None}
        text = with_options(game, given)
        rules = parse_game(text)[1]
    single = make_setup(rules, episode="deal")
    whole_match = make_setup(rules, episode="match")
    if isinstance(opponents, str) or not isinstance(opponents, Sequence):
        opponents = [opponents]
    if not opponents:
        raise ValueError("no opponent is given")
    seats = rules.num_players
    if together and len(opponents) != seats - 1:
        raise ValueError(
            f"together: {len(opponents)} opponents are given; {seats} players need {seats - 1}"
        )

    def seated(player: str | Agent) -> tuple[Agent, Agent]:
        if not isinstance(player, str):
            return player, player
        for_deals = make_agent(player, single.played, trust)
        if not matches or single.played == whole_match.played:
            return for_deals, for_deals
        return for_deals, make_agent(player, whole_match.played, trust)

    first, *others = map(seated, (agent, *opponents))
    if together:
        line_ups = [Table((first, *others), tuple(range(seats)))]
    else:
        line_ups = [Table((first, other), (0, *[1] * (seats - 1))) for other in others]
    most = int(deals)

    def stopping() -> Stopping:
        if until is not None:
            return Precision(until, most)
        if question:
            return Question(most_points(rules), most, margin, error)
        return Number(most)

    return Plan(
        game=text,
        line_ups=tuple(line_ups),
        everybody=together,
        deals=single,
        matches=whole_match,
        stopping=stopping,
        num_matches=int(matches),
        duplicate=duplicate,
        control=None if control is None else Control(single.played, control),
        seed=number,
        tables=int(tables),
    )


def most_points(rules: Rules) -> float:
    """Return what no seat's points of a deal exceed, gained or lost: own minus the others' mean.

    The most that can be lost is `Rules.worst_points`, and of two players one gains what the other
    loses. Where charges alone count less can be gained. Else all tricks without a jack would be the
    most, and that the others have all the jacks.
    """
    lost = -rules.worst_points
    if rules.num_players == 2 or rules.lowest_wins:
        return lost
    assert rules.hand_size is not None
    return max(lost, rules.hand_size + sum(rules.jack_penalties) / (rules.num_players - 1.0))


def evaluate(
    agent: str | Agent,
    opponents: str | Agent | Sequence[str | Agent],
    *,
    game: str | Rules = "valety",
    deals: int | None = None,
    matches: int = 0,
    until: float | None = None,
    question: bool = False,
    margin: float | None = None,
    error: float = 0.05,
    together: bool = False,
    duplicate: bool = True,
    control: str | None = None,
    seed: int | None = None,
    tables: int = TABLES,
    trust: bool = False,
    progress: Progress | None = None,
    **rule_options: Any,
) -> Evaluation:
    """Play an agent against some opponents on duplicate deals and matches.

    Every deal, and every match, is played once per rotation of the seats, and the cards are the
    same: the agent sits at each seat in turn, one opponent after another at all the others, or all
    of them together. All opponents meet the same deals. Every agent has its own stream of
    randomness, apart from the cards'.

    Args:
        agent: its name as for `make_agent`, or an object with the protocol `Agent`.
        opponents: likewise, one or several.
        game: `GAME[,OPTION=VALUE…]` as for `rules.parse_game`, or rules.
        deals: duplicate deals, single-deal episodes, against each opponent; at least 1. None: 1000.
            With `until` or `question` it is the most, None: a million.
        matches: duplicate matches against each opponent.
        until: play until the 95% interval of the points is this much to either side, at most.
        question: play until it is known whether the agent is better than an opponent.
        margin: points a deal that matter: the question is also answered when neither is better by
            that much.
        error: the chance that the answer is wrong, at most, however often the data are looked at.
        together: the opponents sit at one table, clockwise after the agent, players − 1 of them;
            there is a result for everyone then. The question is about the first.
        duplicate: False: each deal is played once, the seats rotated from deal to deal.
        control: take luck out of the points of deals by numbers whose mean is 0: `"deal"`, the luck
            of the cards (only without duplicates), `"play"`, that of choices drawn by chances that
            are known, such as a checkpoint's with a temperature, or `"all"`. See `arena.control`.
        seed: 0…2^64−1; None: 64 bits of entropy, told in the result. The same seed gives the same
            result, whatever else is evaluated with it.
        tables: how many are played at once, at most; results don't depend on it.
        trust: whether agents may be loaded from files that can run code then, as for `make_agent`.
        progress: called often with what is being played, how many of its pairs are done (a float)
            and how many there are, as far as is known.
        **rule_options: fields of `rules.Rules`, such as `num_players=5`.

    Returns:
        the results with their 95% intervals, the seed and the versions.

    Raises:
        ValueError: for an unknown agent, game or option, or impossible numbers.
        IllegalActionError: if an agent chooses an action that is not legal.
        ActionTypeError: if an agent does not give one whole number a table.
        AgentError: if an agent's model fails.
    """
    plan = plan_evaluation(
        agent,
        opponents,
        game=game,
        deals=deals,
        matches=matches,
        until=until,
        question=question,
        margin=margin,
        error=error,
        together=together,
        duplicate=duplicate,
        control=control,
        seed=seed,
        tables=tables,
        trust=trust,
        **rule_options,
    )
    return plan.run(progress)

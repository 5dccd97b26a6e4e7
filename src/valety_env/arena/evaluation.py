"""`evaluate`: one agent against others on duplicate deals and matches, with 95% intervals."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import uint64

from valety_env._version import __version__
from valety_env.agents import Agent, agent_name, make_agent
from valety_env.arena.intervals import Interval, mean_interval, rate_interval
from valety_env.arena.tables import play_tables
from valety_env.episode import Setup, make_setup, parse_seed
from valety_env.notation import game_to_text, name_game, with_options
from valety_env.rng import mix
from valety_env.rules import Rules, make_rules, parse_game
from valety_env.tables import mix_all

# Table i of the deals has the seed `mix(seed, _DEALS + i)`, and likewise the matches; agents have
# the counters from _AGENTS on. No two of these streams meet, nor do they meet the tables of a batch
# environment with the same seed, which are numbered from 0: what an agent was trained on is not
# what it is judged by.
_DEALS = 1 << 32
_MATCHES = 1 << 33
_AGENTS = 1 << 63
MAX_PAIRS = 1 << 31
# Points are multiples of 1/(players − 1), shares of a win are 1/w: with up to 7 players all are
# multiples of 1/420.
_UNIT = 420

# Tables played at once: enough to keep agents busy, few enough to stay in a few megabytes.
TABLES = 4096

Progress = Callable[[str, float, int], None]
"""Called with what is being played, how many pairs of it are done, and of how many."""


@dataclass(frozen=True)
class Result:
    """One agent against one kind of opponent.

    A pair is one deal or match played once per rotation of the seats, the agent in every seat in
    turn; its mean is one observation.

    Attributes:
        agent: its name.
        opponent: the name of who sits at all other seats.
        game: the game and its options, as `rules.parse_game` reads them.
        pairs: duplicate deals.
        points_per_deal: own deal points minus the mean of the others', charges negative.
        ci95: its 95% interval; None for a single pair.
        match_pairs: duplicate matches.
        match_win_rate: the mean share of the win, 1/w when w share it; None without matches.
        match_ci95: its 95% interval; None for fewer than two pairs.
        pair_points: float64 (pairs,), the observations; not part of `to_dict`.
        pair_wins: float64 (match_pairs,), likewise.
    """

    agent: str
    opponent: str
    game: str
    pairs: int
    points_per_deal: float
    ci95: Interval | None
    match_pairs: int
    match_win_rate: float | None
    match_ci95: Interval | None
    pair_points: np.ndarray = field(repr=False, compare=False)
    pair_wins: np.ndarray = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, without the single observations."""
        return {
            "agent": self.agent,
            "opponent": self.opponent,
            "game": self.game,
            "pairs": self.pairs,
            "points_per_deal": self.points_per_deal,
            "ci95": None if self.ci95 is None else list(self.ci95),
            "match_pairs": self.match_pairs,
            "match_win_rate": self.match_win_rate,
            "match_ci95": None if self.match_ci95 is None else list(self.match_ci95),
        }


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    Attributes:
        results: one for each opponent, in the order given.
        seed: with it the same tables are played again.
        versions: of this package and of what it stands on.
    """

    results: tuple[Result, ...]
    seed: int
    versions: dict[str, str]

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
class Plan:
    """An evaluation whose game, agents and numbers have been checked; `run` plays it.

    Attributes:
        game: the game and its options.
        agent: the agent for single deals, and for matches: each is told the game it plays.
        opponents: likewise.
        deals: the game as single deals.
        matches: the game as matches.
        num_deals: duplicate deals against each opponent.
        num_matches: duplicate matches.
        seed: of the tables and of the agents.
        tables: how many are played at once, at most.
    """

    game: str
    agent: tuple[Agent, Agent]
    opponents: tuple[tuple[Agent, Agent], ...]
    deals: Setup
    matches: Setup
    num_deals: int
    num_matches: int
    seed: int
    tables: int

    def run(self, progress: Progress | None = None) -> Evaluation:
        """Play all pairs; arguments and errors as in `evaluate`."""
        results = []
        for opponent in self.opponents:
            against = agent_name(opponent[0])
            points = self._pairs(
                self.deals,
                (self.agent[0], opponent[0]),
                self.num_deals,
                _DEALS,
                f"{against}: deals",
                progress,
            )[0]
            wins = self._pairs(
                self.matches,
                (self.agent[1], opponent[1]),
                self.num_matches,
                _MATCHES,
                f"{against}: matches",
                progress,
            )[1]
            results.append(
                Result(
                    agent=agent_name(self.agent[0]),
                    opponent=against,
                    game=self.game,
                    pairs=len(points),
                    points_per_deal=float(points.mean()),
                    ci95=mean_interval(points),
                    match_pairs=len(wins),
                    match_win_rate=float(wins.mean()) if len(wins) else None,
                    match_ci95=rate_interval(wins),
                    pair_points=points,
                    pair_wins=wins,
                )
            )
        return Evaluation(tuple(results), self.seed, versions())

    def _pairs(
        self,
        setup: Setup,
        agents: tuple[Agent, Agent],
        number: int,
        first: int,
        what: str,
        progress: Progress | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play `number` pairs whose tables start at counter `first`.

        Returns:
            the agent's mean points and its mean share of the win, float64 (number,) each.
        """
        seats = setup.rules.num_players
        agent_seeds = np.array(
            [mix(uint64(self.seed), uint64(_AGENTS + k)) for k in range(len(agents))],
            np.uint64,
        )
        points = np.empty(number)
        wins = np.empty(number)
        at_once = max(1, self.tables // seats)
        for low in range(0, number, at_once):
            high = min(number, low + at_once)

            def told(part: float, low: int = low, high: int = high) -> None:
                assert progress is not None
                progress(what, low + part * (high - low), number)

            seeds = np.empty(high - low, np.uint64)
            counters = np.arange(first + low, first + high, dtype=np.uint64)
            mix_all(uint64(self.seed), counters, seeds)
            # In rotation r of a pair the agent, player 0, sits at seat r, its opponent elsewhere.
            rotations = 1 - np.eye(seats, dtype=np.int64)
            played = play_tables(
                setup,
                agents,
                np.tile(rotations, (high - low, 1)),
                np.repeat(seeds, seats),
                agent_seeds,
                None if progress is None else told,
            )
            points[low:high] = _means(played.points, seats)
            wins[low:high] = _means(played.wins, seats)
        return points, wins


def _means(values: np.ndarray, seats: int) -> np.ndarray:
    """Return the agent's mean over the rotations of each pair; it sits at seat r in rotation r.

    Halves, thirds, … are counted as whole numbers, so that what cancels out gives exactly 0.
    """
    own = np.diagonal(values.reshape(-1, seats, seats), axis1=1, axis2=2)
    return np.asarray(np.rint(own * _UNIT).sum(axis=1) / (_UNIT * seats))


def plan_evaluation(
    agent: str | Agent,
    opponents: str | Agent | Sequence[str | Agent],
    *,
    game: str | Rules = "valety",
    deals: int = 1000,
    matches: int = 0,
    seed: int | None = None,
    tables: int = TABLES,
    trust: bool = False,
    **rule_options: Any,
) -> Plan:
    """Check all that an evaluation needs and load its agents; arguments as for `evaluate`.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    for name, value, least in (
        ("deals", deals, 1),
        ("matches", matches, 0),
        ("tables", tables, 1),
    ):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not least <= value <= MAX_PAIRS:
            raise ValueError(f"{name}={value!r}: it must be a whole number of at least {least}")
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

    def seated(player: str | Agent) -> tuple[Agent, Agent]:
        if not isinstance(player, str):
            return player, player
        for_deals = make_agent(player, single.played, trust)
        if not matches or single.played == whole_match.played:
            return for_deals, for_deals
        return for_deals, make_agent(player, whole_match.played, trust)

    return Plan(
        game=text,
        agent=seated(agent),
        opponents=tuple(seated(opponent) for opponent in opponents),
        deals=single,
        matches=whole_match,
        num_deals=int(deals),
        num_matches=int(matches),
        seed=number,
        tables=int(tables),
    )


def evaluate(
    agent: str | Agent,
    opponents: str | Agent | Sequence[str | Agent],
    *,
    game: str | Rules = "valety",
    deals: int = 1000,
    matches: int = 0,
    seed: int | None = None,
    tables: int = TABLES,
    trust: bool = False,
    progress: Progress | None = None,
    **rule_options: Any,
) -> Evaluation:
    """Play an agent against each of some opponents on duplicate deals and matches.

    Every deal, and every match, is played once per rotation of the seats: the agent sits at each
    seat in turn, the opponent at all others, and the cards are the same. All opponents meet the
    same deals. Every agent has its own stream of randomness, apart from the cards'.

    Args:
        agent: its name as for `make_agent`, or an object with the protocol `Agent`.
        opponents: likewise, one or several.
        game: `GAME[,OPTION=VALUE…]` as for `rules.parse_game`, or rules.
        deals: duplicate deals, single-deal episodes, against each opponent; at least 1.
        matches: duplicate matches against each opponent.
        seed: 0…2^64−1; None: 64 bits of entropy, told in the result. The same seed gives the same
            result, whatever else is evaluated with it.
        tables: how many are played at once, at most; results don't depend on it.
        trust: whether agents may be loaded from files that can run code then, as for `make_agent`.
        progress: called often with what is being played, how many of its pairs are done (a float)
            and how many there are.
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
        seed=seed,
        tables=tables,
        trust=trust,
        **rule_options,
    )
    return plan.run(progress)

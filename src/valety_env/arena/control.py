"""Control variates: luck that is known to have been luck is taken out of what is observed.

A number whose mean is known to be 0 may be added to an observation: the mean stays what it is. If
it is large where the observation was lucky, the spread becomes less. There are two such numbers.

*The deal.* How good a seat's cards were, by two judges: the exact value with all cards known, and
how the heuristic does against itself with them. Seats are by lot, so its mean is 0. On duplicate
deals everybody holds all the hands, and nothing is left of it.

*The play.* Where an agent draws its choice by chances that are known, what the choice is worth less
what it would have been worth on the average. This is the part for players' actions of AIVAT (Burch
and others, "AIVAT: A New Variance Reduction Technique for Agent Evaluation in Imperfect Information
Games", AAAI 2018).

How choices are judged, and by how much the judgement counts, is fixed here, before any data are
seen; the factors were found on other deals than any that a user plays (docs/arena.md has the
savings). A judgement that counted in full would do harm: its errors add up over a deal.
"""

from __future__ import annotations

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.agents import Agent, known_policy
from valety_env.agents.heuristic import heuristic_action
from valety_env.arena.points import relative_points
from valety_env.cards import NUM_CARDS, ONE
from valety_env.engine import CALLS, PLAYS, deal_points, legal_actions, play
from valety_env.rules import Rules
from valety_env.solver import Solver, can_solve
from valety_env.view import VIEW, look

CONTROLS = ("deal", "play", "all")

# How much a judgement of the deal counts: the solver's and the heuristic's, or his alone, which
# tells less at tables of more than two.
_DEAL = (0.35, 0.35)
_DEAL_ALONE = 0.3
# How much a judgement of choices counts, likewise. The solver judges the last tricks, where it is
# fast; by then it also matters less that it sees what players don't.
_PLAY = (0.3, 0.2)
_PLAY_ALONE = 0.25
_LAST_TRICKS = 8


@kernel
def play_out(rules: np.ndarray, states: np.ndarray, view: np.ndarray, scores: np.ndarray) -> None:
    """Let the heuristic play deals to their ends at all seats.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (N,), in the middle of a deal or at its end, changed in place.
        view: `VIEW` (1,), scratch.
        scores: int64 (N, players), overwritten with deal points, in Polignac charges.
    """
    for i in range(states.size):
        state = states[i]
        while state.phase == CALLS or state.phase == PLAYS:
            look(rules[0], state, int64(state.turn), view[0])
            legal = legal_actions(rules[0], state)
            play(rules[0], state, heuristic_action(rules[0], view[0], legal, True))
        for seat in range(scores.shape[1]):
            scores[i, seat] = deal_points(rules[0], state, seat)


@kernel
def play_each(rules: np.ndarray, states: np.ndarray, actions: np.ndarray) -> None:
    """Play a legal action at each table, `STATE` (N,), changed in place."""
    for i in range(states.size):
        play(rules[0], states[i], int64(actions[i]))


class Control:
    """Numbers with a mean of 0 that are to be added to the points of single deals.

    Args:
        rules: those of single deals, `Setup.played`.
        which: `"deal"`, `"play"` or `"all"`.

    Raises:
        ValueError: for another word.
    """

    def __init__(self, rules: Rules, which: str) -> None:
        if which not in CONTROLS:
            raise ValueError(f"control={which!r}: allowed are {', '.join(CONTROLS)}")
        self._deal = which in ("deal", "all")
        self._play = which in ("play", "all")
        self._rules = rules
        self._solver = Solver(rules) if can_solve(rules) else None

    def of_deals(self, states: np.ndarray) -> np.ndarray:
        """Return what is to be added for the cards of some deals.

        Args:
            states: `STATE` (N,), at the beginning.

        Returns:
            float64 (N, players), by seat.
        """
        if not self._deal:
            return np.zeros((len(states), self._rules.num_players))
        judged = self._played_out(states.copy())
        if self._solver is None:
            return -_DEAL_ALONE * judged
        return -_DEAL[0] * self._by_seat(states, self._solver.best(states)) - _DEAL[1] * judged

    def of_choices(
        self,
        agent: Agent,
        views: np.ndarray,
        legal: np.ndarray,
        states: np.ndarray,
        actions: np.ndarray,
    ) -> np.ndarray:
        """Return what is to be added for an agent's choices at n tables.

        Args:
            agent: who chose.
            views: `VIEW` (n,), as it was shown them.
            legal: uint64 (n,).
            states: `STATE` (n,).
            actions: int64 (n,), what it chose.

        Returns:
            float64 (n, players), by seat.
        """
        players = self._rules.num_players
        found = np.zeros((len(legal), players))
        policy = known_policy(agent) if self._play else None
        if policy is None:
            return found
        # Every legal action where there are several.
        open_to = (legal[:, None] >> np.arange(64, dtype=np.uint64) & ONE).astype(bool)
        open_to[open_to.sum(axis=1) < 2] = False
        rows, each = np.nonzero(open_to)
        if not len(rows):
            return found
        chances = policy.chances(views[rows], legal[rows], each)
        worth = self._worth(states, rows, each)
        np.add.at(found, rows, chances[:, None] * worth)
        taken = np.flatnonzero(actions[rows] == each)
        found[rows[taken]] -= worth[taken]
        return found

    def _worth(self, states: np.ndarray, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return what actions at some tables are judged to be worth, float64 (K, players)."""
        after = states[rows]
        play_each(self._rules.packed, after, actions)
        judged = self._played_out(after)
        if self._solver is None:
            return _PLAY_ALONE * judged
        worth = _PLAY[1] * judged
        assert self._rules.hand_size is not None
        early = self._rules.hand_size - _LAST_TRICKS
        late = states["num_plays"] // self._rules.num_players >= early
        late &= states["phase"] == PLAYS
        if late.any():
            values = np.zeros((len(states), NUM_CARDS))
            values[late] = self._solver.values(states[late])
            solved = late[rows]
            worth[solved] += _PLAY[0] * self._by_seat(
                states[rows[solved]], values[rows[solved], actions[solved]]
            )
        return worth

    def _played_out(self, states: np.ndarray) -> np.ndarray:
        """Return each seat's points if the heuristic goes on, float64 (N, players)."""
        scores = np.empty((len(states), self._rules.num_players), np.int64)
        play_out(self._rules.packed, states, np.zeros(1, VIEW), scores)
        return relative_points(self._rules, scores)

    def _by_seat(self, states: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return values for the seats to play, (N,), as values for both seats, (N, 2)."""
        signs = np.where(states["turn"][:, None] == np.arange(2), 1.0, -1.0)
        return np.asarray(signs * values[:, None])

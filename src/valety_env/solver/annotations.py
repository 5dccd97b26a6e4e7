"""What the plays of a game cost, with all cards known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from valety_env.cards import card_name
from valety_env.engine import STATE, begin_deal, play, set_hands
from valety_env.notation import Replayed, read_record
from valety_env.rules import Rules
from valety_env.solver import Solver
from valety_env.solver.batches import Progress, solve_mixed

__all__ = ["Annotation", "annotate", "annotate_all", "positions_of_deal"]


@dataclass(frozen=True)
class Annotation:
    """What a play was worth.

    Attributes:
        deal: its number in the record, from 1.
        play: its number in the deal, from 1.
        seat: who played.
        card: what.
        value: the difference of deal points, own minus the other's, that the deal ends with if
            both play their best after this card.
        best: all cards of the highest value.
        best_value: that value.
        cost: how much less the card brought, 0 for one of the best.
    """

    deal: int
    play: int
    seat: int
    card: str
    value: int
    best: tuple[str, ...]
    best_value: int
    cost: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "best": list(self.best)}


def positions_of_deal(rules: Rules, state: Any, totals: Iterable[int] = ()) -> np.ndarray:
    """Return the table before each play of a deal, `STATE` (plays,).

    Args:
        rules: the rules.
        state: one `STATE` record that knows all plays of its deal.
        totals: as they stood when the deal began; zeros if not given.
    """
    num_plays = int(state.num_plays)
    found = np.zeros(num_plays + 1, STATE)
    table = found[0]
    begin_deal(rules.record, table, int(state.dealer), int(state.leader))
    hands = np.array([state.hand[seat] | state.played[seat] for seat in range(rules.num_players)])
    set_hands(rules.record, table, hands, int(state.turned))
    for seat, total in enumerate(totals):
        table.totals[seat] = total
    for number in range(num_plays):
        found[number + 1] = found[number]
        play(rules.record, found[number + 1], int(state.history[number]))
    return found[:num_plays]


def annotate(
    record: Mapping[str, Any],
    solver: Solver | None = None,
    progress: Progress | None = None,
) -> list[Annotation]:
    """Return what each play of a record was worth, in order.

    Args:
        record: as `make_record` makes it, or as JSON gives it back.
        solver: one of the record's rules; None: a new one.
        progress: told how far it is.

    Raises:
        RecordError: if the record is wrong.
        ValueError: if its game is not one that can be solved.
    """
    game = read_record(record)
    solver = solver or Solver(game.rules)
    if solver.rules != game.rules:
        raise ValueError("the solver is of other rules than the record")
    return _annotate([game], {game.rules: solver}, progress)[0]


def annotate_all(
    records: Iterable[Mapping[str, Any]], threads: int = 1, progress: Progress | None = None
) -> list[list[Annotation]]:
    """Return what each play of some records was worth, as `annotate` does for one.

    Args:
        records: of any rules.
        threads: how many share the plays.
        progress: told how far it is.

    Raises:
        RecordError: if a record is wrong; all are read before anything is solved.
        ValueError: if the game of one is not one that can be solved.
    """
    games = [read_record(record) for record in records]
    solvers = {game.rules: Solver(game.rules, threads) for game in games}
    return _annotate(games, solvers, progress)


def _annotate(
    games: Sequence[Replayed], solvers: Mapping[Rules, Solver], progress: Progress | None
) -> list[list[Annotation]]:
    """Return what each play of some games was worth; progress is told of all their plays."""
    positions = [_positions(game) for game in games]
    tables = [
        (game.rules, state)
        for game, states in zip(games, positions, strict=True)
        for state in states
    ]
    values = iter(solve_mixed(solvers, tables, progress))
    return [
        _annotations(game, states, list(islice(values, len(states))))
        for game, states in zip(games, positions, strict=True)
    ]


def _positions(game: Replayed) -> np.ndarray:
    """Return the table before each play of a game, `STATE` (plays,)."""
    rules = game.rules
    # An episode of one deal goes on where a match would have ended in the middle of it.
    played_by = rules.replace(count="deal") if game.single_deal else rules
    deals = [
        positions_of_deal(
            played_by, state, game.states[i - 1].totals[: rules.num_players] if i else ()
        )
        for i, state in enumerate(game.states)
    ]
    return np.concatenate(deals)


def _annotations(
    game: Replayed, states: np.ndarray, values: Sequence[np.ndarray]
) -> list[Annotation]:
    """Return the annotations of a game's plays."""
    played = [
        (deal, number, int(state.history[number - 1]))
        for deal, state in enumerate(game.states, 1)
        for number in range(1, int(state.num_plays) + 1)
    ]
    return [
        _annotation(game.rules, (deal, number), int(state.turn), card, of_cards)
        for (deal, number, card), state, of_cards in zip(played, states, values, strict=True)
    ]


def _annotation(
    rules: Rules, number: tuple[int, int], seat: int, card: int, values: np.ndarray
) -> Annotation:
    """Return the annotation of a play: its numbers, who played what, what each card was worth."""
    value, best_value = int(values[card]), int(values.max())
    names = [card_name(int(c), rules.rank_order) for c in np.flatnonzero(values == best_value)]
    name = card_name(card, rules.rank_order)
    return Annotation(*number, seat, name, value, tuple(names), best_value, best_value - value)

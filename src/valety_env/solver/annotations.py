"""What the plays of a game cost, with all cards known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from valety_env.cards import NUM_CARDS, card_name
from valety_env.engine import STATE, begin_deal, play, set_hands
from valety_env.notation import read_record
from valety_env.rules import Rules
from valety_env.solver import Solver

__all__ = ["Annotation", "annotate", "positions_of_deal"]

Progress = Callable[[int, int], None]
"""Called with how many plays are solved, and of how many."""

# Plays solved in one call; few, so that progress shows.
_AT_ONCE = 16


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
    replayed = read_record(record)
    rules = replayed.rules
    solver = solver or Solver(rules)
    if solver.rules != rules:
        raise ValueError("the solver is of other rules than the record")
    # An episode of one deal goes on where a match would have ended in the middle of it.
    played_by = rules.replace(count="deal") if replayed.single_deal else rules
    deals = [
        positions_of_deal(
            played_by, state, replayed.states[i - 1].totals[: rules.num_players] if i else ()
        )
        for i, state in enumerate(replayed.states)
    ]
    states = np.concatenate(deals)
    parts = [np.empty((0, NUM_CARDS), np.int16)]
    for low in range(0, len(states), _AT_ONCE):
        parts.append(solver.values(states[low : low + _AT_ONCE]))
        if progress is not None:
            progress(min(low + _AT_ONCE, len(states)), len(states))
    played = [card for state in replayed.states for card in state.history[: int(state.num_plays)]]
    numbers = [(deal + 1, i + 1) for deal, plays in enumerate(deals) for i in range(len(plays))]
    return [
        _annotation(rules, number, int(state.turn), int(card), values)
        for number, state, card, values in zip(
            numbers, states, played, np.concatenate(parts), strict=True
        )
    ]


def _annotation(
    rules: Rules, number: tuple[int, int], seat: int, card: int, values: np.ndarray
) -> Annotation:
    """Return the annotation of a play: its numbers, who played what, what each card was worth."""
    value, best_value = int(values[card]), int(values.max())
    names = [card_name(int(c), rules.rank_order) for c in np.flatnonzero(values == best_value)]
    name = card_name(card, rules.rank_order)
    return Annotation(*number, seat, name, value, tuple(names), best_value, best_value - value)

"""Checks of values that come from outside, with messages that say where the value stood."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from valety_env.cards import GENERAL, PASS, RANKS, card_name, parse_card

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2
_MAX_SHOWN = 80
_MAX_LINE = 400


def show(value: Any) -> str:
    """Return a value as text for a message: in one line, short, whatever it is."""
    try:
        text = _SHORT.repr(value).replace("\n", " ")
    except (ValueError, RecursionError):
        # An integer of thousands of digits.
        return f"a value of type {type(value).__name__} too large to show"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def action_name(action: int, rank_order: str) -> str:
    """Return the name of an action 0..53; any other number stands for itself."""
    return card_name(action, rank_order) if 0 <= action <= GENERAL else str(action)


@dataclass(frozen=True)
class Check:
    """Checks values at one place of what is read.

    Attributes:
        where: the place, as messages name it; empty for the whole.
        error: what to raise.
        rank_order: the order by which cards are numbered.
    """

    where: str
    error: type[ValueError]
    rank_order: str = RANKS

    def at(self, where: str) -> Check:
        """Return the checks of another place."""
        return Check(where, self.error, self.rank_order)

    def within(self, part: str) -> Check:
        """Return the checks of a part of this place."""
        return self.at(f"{self.where}, {part}" if self.where else part)

    def fail(self, message: str) -> NoReturn:
        """Raise the error."""
        line = f"{self.where}: {message}" if self.where else message
        raise self.error(line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…")

    def keys(self, given: Any, keys: Collection[str]) -> None:
        """Check that `given` is a mapping with exactly these keys."""
        if not isinstance(given, Mapping):
            self.fail(f"an object with the keys {', '.join(keys)} is needed, not {show(given)}")
        for key in keys:
            if key not in given:
                self.fail(f"the key {key!r} is missing")
        for key in given:
            if key not in keys:
                self.fail(f"the key {show(key)} is unknown")

    def integer(self, value: Any, low: int, high: int, what: str) -> int:
        """Return `value` if it is a whole number in low..high."""
        # True is an int to Python, and no seat.
        if type(value) is not int or not low <= value <= high:
            self.fail(f"{what} is {show(value)}, it must be a whole number in {low}…{high}")
        return value

    def items(self, value: Any, what: str, length: int | None = None) -> Sequence[Any]:
        """Return `value` if it is a list, of `length` items if that is given."""
        if not isinstance(value, (list, tuple)):
            self.fail(f"{what} must be a list, not {show(value)}")
        if length is not None and len(value) != length:
            self.fail(f"{what} must be a list of {length}, not of {len(value)}: {show(value)}")
        return value

    def integers(self, value: Any, what: str, length: int) -> list[int]:
        """Return `value` if it is a list of so many whole numbers."""
        given = self.items(value, what, length)
        return [self.integer(n, -(1 << 31), (1 << 31) - 1, f"one of {what}") for n in given]

    def is_card(self, name: Any) -> bool:
        """Return whether `name` is that of a card, exactly as records write it."""
        try:
            return isinstance(name, str) and card_name(parse_card(name)) == name
        except ValueError:
            return False

    def card(self, name: Any) -> int:
        """Return the number of the card with this name."""
        if not self.is_card(name):
            self.fail(f"{show(name)} is not the name of a card, as in TS")
        return parse_card(name, self.rank_order)

    def action(self, name: Any) -> int:
        """Return the number of the card or announcement with this name."""
        if isinstance(name, str) and name in ("pass", "general"):
            return PASS if name == "pass" else GENERAL
        return self.card(name)

    def name(self, action: int) -> str:
        """Return the name of an action."""
        return action_name(action, self.rank_order)

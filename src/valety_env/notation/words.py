"""What both notations are made of: cards as people write them, and a game with its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from valety_env.cards import RANKS, SUIT_SYMBOLS, SUITS
from valety_env.notation._check import Check, show
from valety_env.rules import ENDS, PRESETS, Rules, make_rules, parse_game

_CARD = re.compile(rf"[\s,+]*(10|[{RANKS}])([{SUITS}{SUIT_SYMBOLS}])\ufe0f?")
_NUMBER = re.compile(r"-?[0-9]{1,20}")


class NotationError(ValueError):
    """A text is not in the notation, or tells a position that can't be."""


def read_text(text: Any) -> str:
    """Return `text` if it is one.

    Raises:
        NotationError: if it is anything but a string.
    """
    if not isinstance(text, str):
        raise NotationError(f"a text is needed, not {show(text)}")
    return text


def read_cards(text: str, check: Check) -> list[int]:
    """Return the cards in a text in its order; `-` is none.

    Ranks are 2…9 T J Q K A, or 10; suits S C D H or ♠ ♣ ♦ ♥; case, spaces, commas and plus signs
    between cards make no difference.
    """
    if text.strip() == "-":
        return []
    rest, at, cards = text.upper().rstrip(" ,+\t"), 0, []
    while at < len(rest):
        found = _CARD.match(rest, at)
        if found is None:
            wrong = re.split(r"[\s,+]+", rest[at:].strip(" ,+\t"))[0]
            check.fail(f"{show(wrong)} is not a card: a rank and a suit, as in TS or 10♠")
        rank = "T" if found[1] == "10" else found[1]
        suit = (SUITS + SUIT_SYMBOLS).index(found[2]) % len(SUITS)
        cards.append(len(RANKS) * suit + check.rank_order.index(rank))
        at = found.end()
    return cards


def read_number(text: str, low: int, high: int, what: str, check: Check) -> int:
    """Return the whole number that a text holds."""
    if not _NUMBER.fullmatch(text.strip()):
        check.fail(f"{what} is {show(text)}, it must be a whole number in {low}…{high}")
    return check.integer(int(text), low, high, what)


def game_to_text(game: str, rules: Rules) -> str:
    """Return a game and the options in which its rules differ: `valety,target=30,tie=draw`."""
    return with_options(game, options_of(game, rules))


def with_options(game: str, options: Mapping[str, Any]) -> str:
    """Return the text of a game with rule options added."""
    return ",".join([game, *(f"{name}={_value_to_text(v)}" for name, v in options.items())])


def game_from_text(text: str) -> tuple[str, Rules]:
    """Return the game and the rules that a text such as `polignac,num_players=5` tells.

    As `rules.parse_game`, with the error that readers of notation expect.

    Raises:
        NotationError: for an unknown game or option, or an impossible value.
    """
    try:
        return parse_game(read_text(text))
    except NotationError:
        raise
    except ValueError as error:
        raise NotationError(str(error)) from None


def name_game(rules: Rules) -> str:
    """Return the preset from which rules differ in the fewest options."""
    return min(PRESETS, key=lambda game: len(options_of(game, rules)))


def options_of(game: str, rules: Rules) -> dict[str, Any]:
    """Return the options that make these rules of a preset, few where that is possible."""
    told = rules.to_dict()
    best = told
    # What a game fills in by itself, such as Polignac's pack, can follow from the players.
    for first in ({}, {"num_players": rules.num_players}):
        try:
            usual = _make(game, first).to_dict()
        except ValueError:
            continue
        options = first | {name: value for name, value in told.items() if usual[name] != value}
        if any(options.get(end) is not None for end in ENDS):
            options = {n: v for n, v in options.items() if n not in ENDS or v is not None}
        if usual["num_players"] == rules.num_players == PRESETS[game].get("num_players", 2):
            options.pop("num_players", None)
        if len(options) < len(best) and _makes(game, options, rules):
            best = options
    return best


def _makes(game: str, options: Mapping[str, Any], rules: Rules) -> bool:
    try:
        return _make(game, options) == rules
    except ValueError:
        return False


def _make(game: str, options: Mapping[str, Any]) -> Rules:
    """Return the rules; unlike `make_rules`, an option that is None is one that is told."""
    rules = make_rules(game, **options)
    return rules.replace(**{name: None for name, value in options.items() if value is None})


def _value_to_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    # A pack can be given as one string of names.
    return "+".join(str(value).split())

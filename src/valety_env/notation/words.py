"""What both notations are made of: cards as people write them, and a game with its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from valety_env.cards import RANKS, SUIT_SYMBOLS, SUITS, card_name
from valety_env.notation._check import Check, show
from valety_env.rules import PRESETS, Rules, make_rules

_CARD = re.compile(rf"[\s,+]*(10|[{RANKS}])([{SUITS}{SUIT_SYMBOLS}])\ufe0f?")
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_YES_OR_NO = {"true": True, "false": False}
_OPTIONS = {field.name: field.type for field in fields(Rules)}
_ENDS = ("target", "num_deals", "loss_limit")


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
    parts = [f"{name}={_value_to_text(value)}" for name, value in options_of(game, rules).items()]
    return ",".join([game, *parts])


def game_from_text(text: str) -> tuple[str, Rules]:
    """Return the game and the rules that a text such as `polignac,num_players=5` tells.

    Raises:
        NotationError: for an unknown game or option, or an impossible value.
    """
    game, _, rest = read_text(text).partition(",")
    check = Check("", NotationError)
    options = read_options(rest, check)
    try:
        return game, _make(game, options)
    except ValueError as error:
        check.fail(str(error))


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
        if any(options.get(end) is not None for end in _ENDS):
            options = {n: v for n, v in options.items() if n not in _ENDS or v is not None}
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


def read_options(text: str, check: Check) -> dict[str, Any]:
    """Return the rule options in a text such as `target=30,tie=draw`."""
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if name not in _OPTIONS:
            check.fail(f"{show(name)} is not a rule option; they are: {', '.join(_OPTIONS)}")
        if not equals:
            check.fail(f"{name} has no value: {name}=VALUE")
        if name in options:
            check.fail(f"{name} is told twice")
        options[name] = _value_from_text(name, value, check)
    return options


def _value_to_text(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def _value_from_text(name: str, text: str, check: Check) -> Any:
    """Return the value of an option, of the type that the field of `Rules` has."""
    kind = str(_OPTIONS[name])
    if name == "pack":
        return tuple(card_name(card) for card in read_cards(text, check.within("pack")))
    if kind == "bool":
        if text.lower() not in _YES_OR_NO:
            check.fail(f"{name} is {show(text)}, it must be true or false")
        return _YES_OR_NO[text.lower()]
    if kind == "str":
        return text
    if kind.endswith("None") and text.lower() == "none":
        return None
    if name == "jack_penalties":
        return tuple(read_number(part, 0, 20, name, check) for part in text.split("+"))
    return read_number(text, 0, 1000, name, check)

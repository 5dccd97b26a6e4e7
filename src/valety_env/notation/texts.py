"""Records as text to read: a tag a line, a trick a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from valety_env.cards import card_name
from valety_env.notation._check import Check
from valety_env.notation.records import FORMAT, MAX_SEED, read_record
from valety_env.notation.words import (
    NotationError,
    game_from_text,
    game_to_text,
    read_cards,
    read_number,
    read_text,
)

_HEAD = ("format", "game", "seed", "episode", "totals", "winners", "illegal")
_DEAL = re.compile(r"dealer|leader|turned|calls|tricks|points|(hand|trick) (0|[1-9][0-9]?)")


def record_to_text(record: Mapping[str, Any]) -> str:
    """Return a record as text, from which `record_from_text` makes the same record.

    Raises:
        RecordError: if the record is damaged.
    """
    replayed = read_record(record)
    lines = [
        f"format: {FORMAT}",
        f"game: {game_to_text(replayed.game, replayed.rules)}",
        f"seed: {replayed.seed}",
        f"episode: {replayed.episode}",
    ]
    for number, deal in enumerate(record["deals"]):
        lines += ["", f"deal: {number + 1}"]
        lines += [f"{what}: {deal[what]}" for what in ("dealer", "leader")]
        if deal["turned"] is not None:
            lines.append(f"turned: {deal['turned']}")
        lines += [f"hand {seat}: {' '.join(hand)}" for seat, hand in enumerate(deal["hands"])]
        if deal["calls"]:
            lines.append("calls: " + ", ".join(f"{seat} {name}" for seat, name in deal["calls"]))
        last_taker = int(replayed.states[number].turn)
        lines += _tricks_to_lines(deal["plays"], replayed.rules.num_players, last_taker)
        lines += [f"{what}: {_join(deal[what])}" for what in ("tricks", "points")]
    lines += ["", *(f"{what}: {_join(record[what])}" for what in ("totals", "winners"))]
    if replayed.illegal is not None:
        lines.append("illegal: {} {}".format(*replayed.illegal))
    return "\n".join(lines) + "\n"


def _join(numbers: list[int]) -> str:
    return " ".join(map(str, numbers)) or "-"


def _tricks_to_lines(plays: list[Any], players: int, last_taker: int) -> list[str]:
    """Return a line a trick; what follows # is for people."""
    lines: list[str] = []
    for start in range(0, len(plays), players):
        trick = plays[start : start + players]
        names = [name for _, name in trick]
        line = f"trick {len(lines) + 1}: {trick[0][0]} {' '.join(names)}"
        if len(trick) == players:
            # Who takes a trick leads the next.
            after = plays[start + players : start + players + 1]
            jacks = [name for name in names if name[0] == "J"]
            line += f"  # {after[0][0] if after else last_taker} takes it"
            line += f" with {' '.join(jacks)}" if jacks else ""
        lines.append(line)
    return lines


@dataclass(frozen=True)
class _Line:
    """One tag: its key, its value and the checks that name its line."""

    key: str
    value: str
    check: Check

    def number(self, low: int = 0, high: int = MAX_SEED) -> int:
        return read_number(self.value, low, high, self.key, self.check)

    def numbers(self) -> list[int]:
        parts = [] if self.value == "-" else self.value.split()
        return [read_number(part, -MAX_SEED, MAX_SEED, self.key, self.check) for part in parts]

    def cards(self) -> list[str]:
        return [card_name(card) for card in read_cards(self.value, self.check)]

    def seat_and(self, part: str) -> tuple[int, str]:
        """Split a value, or a part of one, that begins with a seat."""
        seat, _, rest = part.strip().partition(" ")
        return read_number(seat, 0, MAX_SEED, "the seat", self.check), rest.strip()

    def action(self, name: str) -> str:
        """Return the name of an action as records have it."""
        plain = name.lower()
        if plain in ("pass", "general") or plain.removeprefix("-").isdigit():
            return plain
        cards = read_cards(name, self.check)
        if len(cards) != 1:
            self.check.fail(f"{name!r} is not one action")
        return card_name(cards[0])


class _Section(dict[str, _Line]):
    """The tags of one deal, or of the whole record."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def told(self, key: str) -> _Line:
        """Return a tag that must be there."""
        if key not in self:
            raise NotationError(f"{self.name}: the line '{key}: …' is missing")
        return self[key]


def record_from_text(text: str) -> dict[str, Any]:
    """Return the record that a text tells.

    Raises:
        NotationError: if a line is not in the notation; it is named, counted from 1.
        RecordError: if the text is well written but does not follow the rules.
    """
    head, deals = _Section("the record"), list[_Section]()
    for number, line in enumerate(read_text(text).splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        check = Check(f"line {number}", NotationError)
        key, colon, value = (part.strip() for part in content.partition(":"))
        tag = _Line(key, value, check)
        if key == "deal" and colon:
            deals.append(_Section(f"deal {len(deals) + 1}"))
            if tag.number() != len(deals):
                check.fail(f"deal {value} stands here, deal {len(deals)} was expected")
            continue
        if not colon or not (key in _HEAD or (deals and _DEAL.fullmatch(key))):
            check.fail(f"{content[:60]!r} is no line of a record")
        section = head if key in _HEAD else deals[-1]
        if key in section:
            check.fail(f"{key} is told twice")
        section[key] = tag
    record = _record_of(head, deals)
    read_record(record)
    return record


def _record_of(head: _Section, deals: list[_Section]) -> dict[str, Any]:
    version = head.told("format")
    if version.number() != FORMAT:
        version.check.fail(f"format is {version.value}, this version reads {FORMAT}")
    told = head.told("game")
    try:
        game, rules = game_from_text(told.value)
    except NotationError as error:
        told.check.fail(str(error))
    illegal = None
    if "illegal" in head:
        seat, name = head["illegal"].seat_and(head["illegal"].value)
        illegal = {"seat": seat, "action": head["illegal"].action(name)}
    return {
        "format": FORMAT,
        "game": game,
        "rules": rules.to_dict(),
        "seed": head.told("seed").number(),
        "episode": head.told("episode").number(),
        "deals": [_deal_of(deal, rules.num_players) for deal in deals],
        "totals": head.told("totals").numbers(),
        "winners": head.told("winners").numbers(),
        "illegal": illegal,
    }


def _deal_of(deal: _Section, players: int) -> dict[str, Any]:
    turned = None
    if "turned" in deal:
        cards = deal["turned"].cards()
        if len(cards) != 1:
            deal["turned"].check.fail(f"turned is {deal['turned'].value!r}, it must be one card")
        turned = cards[0]
    calls, plays, tricks = [], [], 0
    if "calls" in deal:
        for part in deal["calls"].value.split(","):
            seat, name = deal["calls"].seat_and(part)
            calls.append([seat, deal["calls"].action(name)])
    for key, line in deal.items():
        what, _, number = key.partition(" ")
        if what == "hand" and int(number) >= players:
            line.check.fail(f"there is no player_{number}, {players} play")
        if what == "trick":
            tricks += 1
            if int(number) != tricks:
                line.check.fail(f"trick {number} stands here, trick {tricks} was expected")
            seat, names = line.seat_and(line.value)
            for i, card in enumerate(read_cards(names, line.check)):
                plays.append([(seat + i) % players, card_name(card)])
    return {
        "dealer": deal.told("dealer").number(),
        "leader": deal.told("leader").number(),
        "turned": turned,
        "hands": [deal.told(f"hand {seat}").cards() for seat in range(players)],
        "calls": calls,
        "plays": plays,
        "tricks": deal.told("tricks").numbers(),
        "points": deal.told("points").numbers(),
    }

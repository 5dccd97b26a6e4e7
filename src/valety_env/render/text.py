"""A scene as text for a terminal."""

from __future__ import annotations

import re

from valety_env.cards import SUIT_SYMBOLS, SUITS
from valety_env.render.scenes import Scene, SeatScene

WIDTH = 80

_RED = "\x1b[31m"
_BOLD = "\x1b[1m"
_RESET = "\x1b[0m"
# A card as in a trick, or a red suit with its ranks as in a hand.
_RED_CARDS = re.compile("[2-9TJQKA][♦♥]|[♦♥](?: [2-9TJQKA](?![^ \n]))*")


def ansi(scene: Scene, color: bool = False) -> str:
    """Return a scene as lines of text, 80 columns wide if `title` and `note` are not longer.

    Args:
        scene: what to draw.
        color: whether red suits are coloured and the seat to act is bold, by ANSI escape codes.

    Returns:
        the lines, ending in a newline.
    """
    lines = [scene.headline(), _deal_line(scene), scene.status(), ""]
    lines += _table(scene)
    if scene.last_points is not None:
        points = [
            f"{seat.name} {number}"
            for seat, number in zip(scene.seats, scene.last_points, strict=True)
        ]
        lines += ["", *_wrap("last deal:", points)]
    if any(seat.hand or seat.hidden for seat in scene.seats):
        lines += ["", *_hands(scene)]
    if color:
        lines = [_paint(line) for line in lines]
    return "\n".join(lines) + "\n"


def symbol(letter: str) -> str:
    """Return the symbol of a suit letter."""
    return SUIT_SYMBOLS[SUITS.index(letter)]


def _symbols(letters: str) -> str:
    return "".join(map(symbol, letters))


def _card(name: str) -> str:
    return name[0] + symbol(name[1])


def _deal_line(scene: Scene) -> str:
    parts = [
        f"dealer {scene.seats[scene.dealer].name}",
        f"first lead {scene.seats[scene.leader].name}",
    ]
    if scene.trump is None:
        parts.append("no trump")
    else:
        trump = f"trump {symbol(scene.trump)}"
        if scene.turned is not None:
            how = "shown by the dealer" if scene.turned_by_dealer else "turned up"
            trump += f" ({_card(scene.turned)} {how})"
        parts.append(trump)
    return ", ".join(parts)


def _mark(scene: Scene, seat: int) -> str:
    return "> " if seat == scene.turn else "  "


def _table(scene: Scene) -> list[str]:
    """Return a row for each seat under a row of titles; without calls, no column for them."""
    seats = scene.seats
    columns: list[tuple[str, list[str]]] = [
        ("", [_mark(scene, i) + seat.name for i, seat in enumerate(seats)]),
        ("call", [seat.call or "" for seat in seats]),
        ("tricks", [f"{seat.tricks:6}" for seat in seats]),
        ("jacks", [_symbols(seat.jacks) for seat in seats]),
        ("deal", [f"{seat.points:4}" for seat in seats]),
        ("total", [f"{seat.total:5}" for seat in seats]),
        ("lacks", [_symbols(seat.lacks) for seat in seats]),
        ("last trick", _trick_column(scene, last=True)),
        ("table", _trick_column(scene, last=False)),
    ]
    if all(seat.call is None for seat in seats):
        del columns[1]
    widths = [max(len(title), *map(len, cells)) for title, cells in columns]
    rows = [[title for title, _ in columns]]
    rows += [[cells[i] for _, cells in columns] for i in range(len(seats))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _trick_column(scene: Scene, *, last: bool) -> list[str]:
    cells = [""] * len(scene.seats)
    plays = scene.table
    winner = None
    if last:
        if scene.last_trick is None:
            return cells
        plays, winner = scene.last_trick.plays, scene.last_trick.winner
    for number, (seat, card) in enumerate(plays):
        tags = (" led" if number == 0 else "") + (" won" if seat == winner else "")
        cells[seat] = _card(card) + tags
    return cells


def _hands(scene: Scene) -> list[str]:
    """Return a line for each hand, suit under suit where that fits."""
    hands = [_suits_of(scene, seat) for seat in scene.seats]
    names = [_mark(scene, i) + seat.name for i, seat in enumerate(scene.seats)]
    indent = max(map(len, names)) + 2
    widths = [max(len(hand[s]) for hand in hands) for s in range(len(scene.suits))]
    if indent + sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widths = [0] * len(widths)
    lines = []
    for name, seat, hand in zip(names, scene.seats, hands, strict=True):
        text = "  ".join(part.ljust(width) for part, width in zip(hand, widths, strict=True))
        if seat.hidden:
            total = len(seat.hand) + seat.hidden
            text = f"{total} card{'s' if total > 1 else ''}"
            if seat.hand:
                text += ", one of them " + " ".join(map(_card, seat.hand))
        elif not seat.hand:
            text = "no cards"
        lines.append((name.ljust(indent) + text).rstrip())
    return lines


def _suits_of(scene: Scene, seat: SeatScene) -> list[str]:
    """Return a hand suit by suit; empty texts for a hand that is not shown."""
    if seat.hidden or not seat.hand:
        return [""] * len(scene.suits)
    parts = []
    for suit in scene.suits:
        ranks = [card[0] for card in seat.hand if card[1] == suit] or ["-"]
        parts.append(" ".join([symbol(suit), *ranks]))
    return parts


def _wrap(title: str, items: list[str]) -> list[str]:
    """Return items in lines of at most `WIDTH` columns; an item is not divided."""
    lines = [title]
    for item in items:
        if len(lines[-1]) + 2 + len(item) > WIDTH:
            lines.append(" " * len(title))
        lines[-1] += "  " + item
    return lines


def _paint(line: str) -> str:
    bold = _BOLD if line.startswith("> ") else ""
    painted = _RED_CARDS.sub(lambda found: f"{_RED}{found[0]}{_RESET}{bold}", line)
    return f"{bold}{painted}{_RESET}" if bold else painted

"""A scene as pixels: `Painter` draws it on a pygame surface in memory, without any display."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from valety_env.render.scenes import Scene, SeatScene

if TYPE_CHECKING:
    import pygame

SIZE = (960, 640)

# Everything is drawn this much larger and scaled down at the end, which smooths all edges.
_ZOOM = 2
# Symbols of suits are drawn larger still: they are small and round.
_FINE = 8

_FELT = (24, 96, 62)
_BAR = (14, 58, 38)
_PLATE = (19, 79, 51)
_ACTIVE = (32, 118, 78)
_EDGE = (44, 128, 88)
_GOLD = (255, 205, 84)
_TEXT = (240, 246, 240)
_FAINT = (168, 205, 184)
_PAPER = (252, 252, 248)
_JACK_PAPER = (255, 240, 196)
_PAPER_EDGE = (120, 124, 120)
_BLACK = (24, 26, 30)
_RED = (200, 28, 40)
_LIGHT_RED = (255, 138, 138)
_BACK = (46, 76, 140)
_BACK_LINE = (150, 176, 226)

Color = tuple[int, int, int]
Box = tuple[float, float, float, float]  # x, y, width, height


def import_pygame() -> Any:
    """Return the module pygame.

    Raises:
        ImportError: if it is not installed; it says how to install it.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise ImportError(
            "windows and pictures need pygame, which is not installed: "
            "pip install 'valety-env[render]'"
        ) from error
    return pygame


def _heart() -> list[tuple[float, float]]:
    points = []
    for i in range(90):
        t = 2 * math.pi * i / 90
        x = 16 * math.sin(t) ** 3
        y = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        points.append((0.5 + x / 34, 0.5 - (y + 2.5) / 30))
    return points


# Outlines in the unit square, y downwards.
_HEART = _heart()
_DIAMOND = [(0.5, 0.0), (0.86, 0.5), (0.5, 1.0), (0.14, 0.5)]
_SPADE = [(x, 0.04 + 0.86 * (1 - y)) for x, y in _HEART]
_CLUB_DISCS = [(0.5, 0.25, 0.23), (0.25, 0.59, 0.23), (0.75, 0.59, 0.23), (0.5, 0.5, 0.12)]
_STEM = [(0.5, 0.45), (0.56, 0.8), (0.7, 0.98), (0.3, 0.98), (0.44, 0.8)]


class Painter:
    """Draws scenes. Two painters share nothing, and equal scenes give equal pixels."""

    def __init__(self) -> None:
        self._pygame = import_pygame()
        self._symbols: dict[tuple[str, int, Color], pygame.Surface] = {}
        self._cards: dict[tuple[str | None, int, int], pygame.Surface] = {}
        self._fonts: dict[int, pygame.font.Font] = {}
        self._surface = self._blank(SIZE[0], SIZE[1])

    def paint(self, scene: Scene) -> pygame.Surface:
        """Return the picture of a scene, a new surface of `SIZE`."""
        pg = self._pygame
        # Whoever calls pygame.quit() makes all fonts useless, so they live for one picture.
        pg.font.init()
        self._fonts.clear()
        self._surface.fill(_FELT)
        self._bar(scene)
        places = seat_boxes(scene)
        for seat, box in places.items():
            self._plate(scene, seat, box)
        left, right = panel_boxes(len(scene.seats))
        self._trump_panel(scene, left)
        self._last_trick_panel(scene, right)
        self._centre(scene)
        self._fonts.clear()
        return pg.transform.smoothscale(self._surface, SIZE)

    def _blank(self, width: float, height: float) -> pygame.Surface:
        """Return a transparent surface; its format does not depend on any display."""
        pg = self._pygame
        size = (round(width * _ZOOM), round(height * _ZOOM))
        return pg.Surface(size, pg.SRCALPHA, 32)

    # Shapes. All take pixels of the picture, before zooming.

    def _box(self, box: Box, color: Color, radius: float, edge: float = 0.0) -> None:
        """Draw a rounded rectangle, filled or, with `edge`, its outline alone."""
        self._box_on(self._surface, box, color, radius, edge)

    def _box_on(
        self, surface: pygame.Surface, box: Box, color: Color, radius: float, edge: float = 0.0
    ) -> None:
        x, y, width, height = (round(v * _ZOOM) for v in box)
        self._pygame.draw.rect(
            surface,
            color,
            (x, y, width, height),
            width=round(edge * _ZOOM),
            border_radius=round(radius * _ZOOM),
        )

    def _blit(self, piece: pygame.Surface, x: float, y: float) -> None:
        self._surface.blit(piece, (round(x * _ZOOM), round(y * _ZOOM)))

    def _font(self, size: int) -> pygame.font.Font:
        if size not in self._fonts:
            self._fonts[size] = self._pygame.font.Font(None, size * _ZOOM)
        return self._fonts[size]

    def _text(
        self,
        text: str,
        x: float,
        y: float,
        size: int,
        color: Color = _TEXT,
        *,
        align: float = 0.0,
        width: float = 0.0,
    ) -> float:
        """Write a line with its middle at height y, and return its width.

        `align` is the part of the line that lies left of x: 0, 0.5 or 1. A line wider than `width`,
        if that is given, is written smaller.
        """
        font = self._font(size)
        while width and size > 8 and font.size(text)[0] > width * _ZOOM:
            size -= 1
            font = self._font(size)
        line = font.render(text, True, color)
        wide, high = line.get_size()
        self._surface.blit(line, (round(x * _ZOOM - align * wide), round(y * _ZOOM - high / 2)))
        return wide / _ZOOM

    def _symbol(self, suit: str, size: float, color: Color) -> pygame.Surface:
        """Return the symbol of a suit letter, a square; drawn as shapes, as fonts often lack it."""
        pg = self._pygame
        side = round(size * _ZOOM)
        key = (suit, side, color)
        if key not in self._symbols:
            large = pg.Surface((side * _FINE, side * _FINE), pg.SRCALPHA, 32)
            # Transparent, but of the same colour: scaling down must not darken the edges.
            large.fill((*color, 0))
            scale = side * _FINE

            def polygon(points: list[tuple[float, float]]) -> None:
                pg.draw.polygon(large, color, [(x * scale, y * scale) for x, y in points])

            if suit == "H":
                polygon(_HEART)
            elif suit == "D":
                polygon(_DIAMOND)
            elif suit == "S":
                polygon(_SPADE)
                polygon(_STEM)
            else:
                for x, y, r in _CLUB_DISCS:
                    pg.draw.circle(large, color, (x * scale, y * scale), r * scale)
                polygon(_STEM)
            self._symbols[key] = pg.transform.smoothscale(large, (side, side))
        return self._symbols[key]

    def _suit_row(self, suits: str, x: float, y: float, size: float) -> float:
        """Draw symbols on the dark ground with their middle at height y; return the width."""
        for i, suit in enumerate(suits):
            self._blit(self._symbol(suit, size, _on_dark(suit)), x + i * (size + 1), y - size / 2)
        return len(suits) * (size + 1)

    def _card(self, name: str | None, width: int, height: int) -> pygame.Surface:
        """Return the face of a card, or the back for None."""
        key = (name, width, height)
        if key not in self._cards:
            self._cards[key] = self._draw_card(name, width, height)
        return self._cards[key]

    def _draw_card(self, name: str | None, width: int, height: int) -> pygame.Surface:
        card = self._blank(width, height)
        radius = width * 0.11
        if name is None:
            self._box_on(card, (0, 0, width, height), _PAPER, radius)
            self._box_on(card, (2, 2, width - 4, height - 4), _BACK, radius)
            self._box_on(card, (5, 5, width - 10, height - 10), _BACK_LINE, radius / 2, 1)
            self._box_on(card, (0, 0, width, height), _PAPER_EDGE, radius, 0.5)
            return card
        rank, suit = name[0], name[1]
        color = _RED if suit in "DH" else _BLACK
        self._box_on(card, (0, 0, width, height), _JACK_PAPER if rank == "J" else _PAPER, radius)
        self._box_on(card, (0, 0, width, height), _PAPER_EDGE, radius, 0.5)
        # Two figures must not be wider than the corner.
        font = self._font(round(width * (0.4 if rank == "T" else 0.47)))
        index = font.render("10" if rank == "T" else rank, True, color)
        # All that tells the card lies in its left 40%, the strip that a full hand leaves uncovered.
        pieces = [
            (index, 0.22, 0.23),
            (self._symbol(suit, width * 0.28, color), 0.22, 0.54),
            (self._symbol(suit, width * 0.48, color), 0.68, height / width - 0.38),
        ]
        for piece, x, y in pieces:
            at = piece.get_rect(center=(round(x * width * _ZOOM), round(y * width * _ZOOM)))
            card.blit(piece, at)
        return card

    # The parts of the picture.

    def _bar(self, scene: Scene) -> None:
        self._box((0, 0, SIZE[0], 38), _BAR, 0)
        used = self._text(scene.headline(), 14, 20, 22, width=460)
        color = _GOLD if scene.winners or scene.note else _TEXT
        self._text(scene.status(), SIZE[0] - 14, 20, 22, color, align=1, width=900 - used)

    def _plate(self, scene: Scene, seat: int, box: Box) -> None:
        """Draw a seat: its name, its numbers and its hand."""
        x, y, width, height = box
        who = scene.seats[seat]
        marked = seat == scene.turn or seat in scene.winners
        self._box(box, _ACTIVE if marked else _PLATE, 8)
        self._box(box, _GOLD if marked else _EDGE, 8, 2 if marked else 1)
        at = x + 8
        at += self._text(who.name, at, y + 13, 20) + 6
        for chip, color in _chips(scene, seat):
            at += self._chip(chip, at, y + 13, color) + 4
        right = x + width - 8
        right -= self._text(f"total {who.total}", right, y + 13, 19, align=1) + 10
        room = max(right - at, 1)
        self._text(f"deal {who.points}", right, y + 13, 17, _FAINT, align=1, width=room)
        self._numbers(scene, seat, x + 8, y + 31)
        self._hand(who, (x + 8, y + 42, width - 16, height - 48))

    def _numbers(self, scene: Scene, seat: int, x: float, y: float) -> None:
        """Draw the line on tricks, jacks and voids; before the first trick, on the last deal."""
        who = scene.seats[seat]
        if scene.finished_tricks == 0 and scene.last_points is not None:
            x += self._text(f"last deal {scene.last_points[seat]}", x, y, 17, _FAINT) + 10
        else:
            x += self._text(f"tricks {who.tricks}", x, y, 17, _FAINT) + 10
        for title, suits in (("jacks", who.jacks), ("lacks", who.lacks)):
            if suits:
                x += self._text(title, x, y, 17, _FAINT) + 4
                x += self._suit_row(suits, x, y, 13) + 8

    def _chip(self, text: str, x: float, y: float, color: Color) -> float:
        """Draw a small label; return its width."""
        width = self._font(15).size(text)[0] / _ZOOM + 10
        self._box((x, y - 8, width, 16), color, 8)
        self._text(text, x + 5, y, 15, _BLACK)
        return width

    def _hand(self, who: SeatScene, box: Box) -> None:
        x, y, width, height = box
        cards: list[str | None] = [*who.hand, *[None] * who.hidden]
        if not cards:
            return
        wide = round(height * 0.71)
        step = 0.0
        if len(cards) > 1:
            step = min(wide + 4, (width - wide) / (len(cards) - 1))
        for i, card in enumerate(cards):
            self._blit(self._card(card, wide, round(height)), x + i * step, y)

    def _trump_panel(self, scene: Scene, box: Box) -> None:
        x, y, width, height = box
        self._box(box, _BAR, 8)
        at = x + width - 10
        if scene.turned is not None:
            at -= 60
            self._blit(self._card(scene.turned, 60, 84), at, y + (height - 84) / 2)
        if scene.trump is None:
            self._text("no trump", x + 12, y + 24, 22)
        else:
            used = self._text("trump", x + 12, y + 24, 22)
            self._suit_row(scene.trump, x + 20 + used, y + 23, 24)
        names = [seat.name for seat in scene.seats]
        lines = [f"dealer {names[scene.dealer]}", f"first lead {names[scene.leader]}"]
        if scene.turned is not None:
            lines.insert(0, "shown by the dealer" if scene.turned_by_dealer else "turned up")
        for i, line in enumerate(lines):
            self._text(line, x + 12, y + 50 + 20 * i, 18, _FAINT, width=at - x - 20)

    def _last_trick_panel(self, scene: Scene, box: Box) -> None:
        x, y, width, _ = box
        self._box(box, _BAR, 8)
        trick = scene.last_trick
        if trick is None:
            self._text("no trick yet", x + 12, y + 18, 18, _FAINT)
            return
        self._text(f"last trick: {scene.seats[trick.winner].name}", x + 12, y + 18, 18)
        wide, high = 33, 47
        step = min(wide + 8, (width - 20 - wide) / max(1, len(trick.plays) - 1))
        for i, (seat, card) in enumerate(trick.plays):
            left = x + 10 + i * step
            self._blit(self._card(card, wide, high), left, y + 34)
            color = _FAINT
            if seat == trick.winner:
                self._box((left - 2, y + 32, wide + 4, high + 4), _GOLD, 5, 2)
                color = _GOLD
            self._text(str(seat), left + wide / 2, y + 94, 17, color, align=0.5)

    def _centre(self, scene: Scene) -> None:
        """Draw the trick on the table, or the finished one fading, or what the deal waits for."""
        x, y = SIZE[0] / 2, 340.0
        if scene.phase == "match over":
            names = [scene.seats[seat].name for seat in scene.winners]
            self._text(", ".join(names), x, y - 14, 34, _GOLD, align=0.5, width=330)
            ending = "wins the match" if len(names) == 1 else "share the win"
            self._text(ending, x, y + 18, 24, _GOLD, align=0.5)
            return
        if scene.phase == "calls":
            self._text("announcements", x, y, 24, _FAINT, align=0.5)
            return
        plays, faded, winner = scene.table, False, None
        if not plays and scene.finished_tricks and scene.last_trick is not None:
            plays, faded, winner = scene.last_trick.plays, True, scene.last_trick.winner
        for seat, card in plays:
            left, top, wide, high = trick_box(scene, seat)
            face = self._card(card, round(wide), round(high))
            if faded:
                face = face.copy()
                face.set_alpha(120)
            self._blit(face, left, top)
            if seat == winner:
                self._box((left - 3, top - 3, wide + 6, high + 6), _GOLD, 9, 2)


def _on_dark(suit: str) -> Color:
    return _LIGHT_RED if suit in "DH" else _TEXT


def _chips(scene: Scene, seat: int) -> list[tuple[str, Color]]:
    chips: list[tuple[str, Color]] = []
    if seat == scene.dealer:
        chips.append(("D", _FAINT))
    call = scene.seats[seat].call
    if call == "general" or (call is not None and scene.phase == "calls"):
        chips.append((call, _GOLD if call == "general" else _PAPER))
    return chips


def _turns(scene: Scene, seat: int) -> int:
    """Return how many places clockwise from the bottom, where the viewer sits, a seat is."""
    return (seat - (scene.viewer or 0)) % len(scene.seats)


def seat_boxes(scene: Scene) -> dict[int, Box]:
    """Return where each seat's plate lies.

    Clockwise from the bottom: up the left side, the top if the number is even, down the right.
    """
    players = len(scene.seats)
    if players <= 3:
        boxes: list[Box] = [(30, 498, 900, 134)]
        if players == 2:
            boxes.append((30, 48, 900, 134))
        else:
            boxes += [(12, 48, 462, 134), (486, 48, 462, 134)]
    else:
        high = 112
        boxes = [(305, 632 - high, 350, high)]
        top = players % 2 == 0
        a_side = (players - 1 - top) // 2
        gap = (460 - a_side * high) / (a_side + 1)
        heights = [172 + gap + i * (high + gap) for i in range(a_side)]
        boxes += [(12, y, 280, high) for y in reversed(heights)]
        if top:
            boxes.append((305, 48, 350, high))
        boxes += [(668, y, 280, high) for y in heights]
    return {seat: boxes[_turns(scene, seat)] for seat in range(players)}


def panel_boxes(players: int) -> tuple[Box, Box]:
    """Return the boxes of the trump and of the last trick: where no plate lies."""
    y = 284 if players <= 3 else 48
    return (12, y, 280, 112), (668, y, 280, 112)


def trick_box(scene: Scene, seat: int) -> Box:
    """Return where a seat's card of the current trick lies: before its plate, on an ellipse."""
    players = len(scene.seats)
    angle = math.pi / 2 + 2 * math.pi * _turns(scene, seat) / players
    across, down = (112, 88) if players <= 3 else (125, 110)
    wide, high = 60, 84
    x, y = SIZE[0] / 2 + across * math.cos(angle), 340 + down * math.sin(angle)
    return x - wide / 2, y - high / 2, wide, high

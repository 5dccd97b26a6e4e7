"""The observations a second time: slow, plain, from a referee and docs/observations.md alone.

No layout or encoder of the package is used here: shapes and offsets are spelled out.
"""

from collections.abc import Callable

import numpy as np
from referee import Referee
from tables import jacks_of, voids_of

from valety_env.rules import Rules

SUITS = ["S", "C", "D", "H"]


class Onlooker:
    """What one seat may say of a table, in its own terms."""

    def __init__(self, referee: Referee, rules: Rules, seat: int) -> None:
        self.referee = referee
        self.rules = rules
        self.seat = seat
        self.players = rules.num_players
        self.room = 2 if self.players == 2 else 7

    def number(self, card: str) -> int:
        return 13 * SUITS.index(card[1]) + self.rules.rank_order.index(card[0])

    def relative(self, seat: int) -> int:
        """Return how many places clockwise of the viewer a seat is."""
        steps = 0
        while (self.seat + steps) % self.players != seat:
            steps = steps + 1
        return steps

    def each_seat(self, width: int, row: Callable[[int], list[int]]) -> list[list[int]]:
        """Return a row a relative seat; unused seats are zero."""
        rows = [[0] * width for _ in range(self.room)]
        for seat in range(self.players):
            rows[self.relative(seat)] = row(seat)
        return rows

    def cards(self, names: list[str]) -> list[int]:
        return [int(number in map(self.number, names)) for number in range(52)]

    def played(self, seat: int) -> list[str]:
        return [card for who, card in self.referee.plays if who == seat]

    def on_table(self) -> list[tuple[int, str]]:
        done = len(self.referee.trick_winners) * self.players
        return self.referee.plays[done:]

    def total_level(self, seat: int) -> int:
        """Return how many ones the thermometer of a total has."""
        totals = self.referee.totals
        if self.players == 2:
            target = self.rules.target if self.rules.target is not None else 20
            # As far under the target as it would be under 20; -8 is no ones, 20 is 28.
            level = totals[seat] - target + 20 + 8
            highest = 28
        else:
            level = totals[seat] - min(totals)
            highest = 24
        if level < 0:
            return 0
        return highest if level > highest else level

    def deals_to_come(self) -> int:
        so_far = self.referee.deal_number + 1
        left = [8]
        if self.rules.num_deals is not None:
            left.append(self.rules.num_deals - so_far)
        if self.rules.max_deals is not None:
            left.append(self.rules.max_deals - so_far)
        return max(min(left), 0)

    def has_passed(self, seat: int) -> bool:
        return (seat, "pass") in self.referee.calls


def thermometer(level: int, width: int) -> list[int]:
    return [1] * level + [0] * (width - level)


def slow_pieces(referee: Referee, rules: Rules, seat: int) -> dict[str, np.ndarray]:
    """Return the fields of `flat_v0` in their order, each of its shape."""
    eye = Onlooker(referee, rules, seat)
    on_table = eye.on_table()
    led = on_table[0][1][1] if on_table else ""
    two = eye.players == 2
    fields: dict[str, list[int] | list[list[int]]] = {
        "hand": eye.cards(referee.hands[seat]),
        "plays": eye.each_seat(52, lambda who: eye.cards(eye.played(who))),
        "table": eye.each_seat(
            52, lambda who: eye.cards([card for by, card in on_table if by == who])
        ),
        "turned": eye.cards([] if referee.turned is None else [referee.turned]),
        "trump": [int(suit == referee.trump) for suit in SUITS],
        "led": [int(suit == led) for suit in SUITS],
        "voids": eye.each_seat(4, lambda who: [int(s in voids_of(referee)[who]) for s in SUITS]),
        "jacks": eye.each_seat(4, lambda who: [int(s in jacks_of(referee)[who]) for s in SUITS]),
        "tricks": eye.each_seat(
            26 if two else 17,
            lambda who: thermometer(referee.trick_winners.count(who), 26 if two else 17),
        ),
        "totals": eye.each_seat(
            28 if two else 24, lambda who: thermometer(eye.total_level(who), 28 if two else 24)
        ),
        "deals_left": thermometer(eye.deals_to_come(), 8),
        "dealer": [row[0] for row in eye.each_seat(1, lambda who: [int(who == referee.dealer)])],
        "leader": [row[0] for row in eye.each_seat(1, lambda who: [int(who == referee.leader)])],
        "passed": [row[0] for row in eye.each_seat(1, lambda who: [int(eye.has_passed(who))])],
        "general": [row[0] for row in eye.each_seat(1, lambda who: [int(who == referee.general)])],
    }
    return {name: np.array(values, np.int64) for name, values in fields.items()}


def slow_flat(referee: Referee, rules: Rules, seat: int) -> np.ndarray:
    """Return the row of `flat_v0`: its pieces, then zeros up to 464 or 1224 entries."""
    row = np.zeros(464 if rules.num_players == 2 else 1224, np.int64)
    pieces = np.concatenate([field.ravel() for field in slow_pieces(referee, rules, seat).values()])
    row[: len(pieces)] = pieces
    return row


def slow_planes(referee: Referee, rules: Rules, seat: int) -> np.ndarray:
    """Return the planes of `planes_v0`, (25 or 75, 4, 13)."""
    pieces = slow_pieces(referee, rules, seat)
    planes: list[np.ndarray] = []

    def card_planes(name: str) -> list[np.ndarray]:
        return list(pieces[name].reshape(-1, 4, 13))

    def filled_suits(name: str) -> list[np.ndarray]:
        return [np.repeat(suits[:, None], 13, 1) for suits in pieces[name].reshape(-1, 4)]

    def cells(name: str) -> list[np.ndarray]:
        rows = pieces[name].reshape(-1, pieces[name].shape[-1])
        return [np.array([*row, *[0] * (52 - len(row))]).reshape(4, 13) for row in rows]

    def filled(name: str) -> list[np.ndarray]:
        return [np.full((4, 13), value) for value in pieces[name]]

    jack = rules.rank_order.index("J")
    for name in ("hand", "plays", "table", "turned"):
        planes += card_planes(name)
    for name in ("trump", "led", "voids"):
        planes += filled_suits(name)
    for suits in pieces["jacks"]:
        plane = np.zeros((4, 13), np.int64)
        plane[:, jack] = suits
        planes.append(plane)
    for name in ("tricks", "totals", "deals_left"):
        planes += cells(name)
    for name in ("dealer", "leader", "passed", "general"):
        planes += filled(name)
    return np.array(planes)


def slow_tokens(referee: Referee, rules: Rules, seat: int) -> np.ndarray:
    """Return the tokens of `tokens_v0`, (86 or 87, 3): kind, relative seat + 1, value."""
    eye = Onlooker(referee, rules, seat)
    assert referee.dealer is not None
    assert referee.leader is not None
    tokens: list[tuple[int, int, int]] = [
        (1, eye.relative(referee.dealer) + 1, 0),
        (2, eye.relative(referee.leader) + 1, 0),
        (3, 0, eye.deals_to_come()),
    ]
    for steps in range(eye.players):
        who = (seat + steps) % eye.players
        tokens.append((4, steps + 1, eye.total_level(who)))
    own = [eye.number(card) for card in referee.hands[seat] + eye.played(seat)]
    tokens += [(5, 1, number + 1) for number in sorted(own)]
    if referee.turned is not None:
        shown_by = eye.relative(referee.dealer) + 1 if rules.trump == "last_card" else 0
        tokens.append((6, shown_by, eye.number(referee.turned) + 1))
    for who, word in referee.calls:
        tokens.append((7, eye.relative(who) + 1, 53 if word == "pass" else 54))
    for who, card in referee.plays:
        tokens.append((8, eye.relative(who) + 1, eye.number(card) + 1))
    # What was known at the start, as much as it can be, and 52 plays.
    room = 3 + 2 + 26 + 1 + 2 + 52 if eye.players == 2 else 3 + 7 + 17 + 1 + 7 + 52
    tokens += [(0, 0, 0)] * (room - len(tokens))
    return np.array(tokens)


def slow_state(referee: Referee, rules: Rules) -> np.ndarray:
    """Return the row of `state()`: player_0's `flat_v0`, all hands, what is undealt, whose turn."""
    eye = Onlooker(referee, rules, 0)
    dealt = [card for hand in referee.hands for card in hand] + [card for _, card in referee.plays]
    away = set(dealt)
    if referee.turned is not None:
        away.add(referee.turned)
    turn = referee.to_move()
    if turn is None:
        turn = referee.trick_winners[-1]
    parts = [
        slow_flat(referee, rules, 0),
        np.array(eye.each_seat(52, lambda who: eye.cards(referee.hands[who]))).ravel(),
        np.array(eye.cards([card for card in rules.pack if card not in away])),
        np.array([int(who == turn) for who in range(eye.room)]),
    ]
    return np.concatenate(parts)

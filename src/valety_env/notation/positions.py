"""Positions in the middle of a deal, in one line of text.

A position tells the cards held and who is to move, and as much of the past as is known. With all
plays of the deal it is a complete state. Without them it is the beginning of a smaller deal, or,
if it tells the tricks taken, a deal of which the first tricks are not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from valety_env.cards import (
    GENERAL,
    NO_CARD,
    NUM_RANKS,
    PASS,
    SUIT_SYMBOLS,
    SUITS,
    card_name,
    card_set,
    cards_of,
    set_names,
)
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    NOBODY,
    PLAYS,
    STATE,
    beats,
    begin_deal,
    deal_points,
    end_deal,
    first_leader,
    play,
    set_hands,
)
from valety_env.notation._check import Check, show
from valety_env.notation.records import MAX_DEAL, MAX_EPISODE, MAX_SEED, one, play_checked
from valety_env.notation.words import (
    NotationError,
    game_from_text,
    game_to_text,
    name_game,
    read_cards,
    read_number,
    read_text,
)
from valety_env.rules import Rules, make_rules

_KEYS = (
    *("hands", "table", "turn", "turned", "trump", "dealer", "leader", "passes", "general"),
    *("plays", "tricks", "jacks", "voids", "totals", "deal", "seed", "episode"),
)
_MOST_POINTS = (1 << 31) - 1


def position_to_text(rules: Rules, state: Any) -> str:
    """Return a position as one line, from which `position_from_text` makes the same state.

    Args:
        rules: the rules.
        state: one `STATE` record or an array of one, its deal not over.

    Raises:
        NotationError: if the deal is over.
    """
    table = one(state)
    if table.phase in (DEAL_OVER, MATCH_OVER):
        raise NotationError("the deal is over: a position is one in the middle of a deal")
    players, order = rules.num_players, rules.rank_order
    seats = range(players)
    num_plays = int(table.num_plays)
    unknown = num_plays - sum(int(table.played[seat]).bit_count() for seat in seats)
    known = [card_name(int(card), order) for card in table.history[unknown:num_plays]]
    tricks = [",".join(known[i : i + players]) for i in range(0, len(known), players)]
    on_table = [tricks.pop()] if len(known) % players else []
    hands = (set_names(int(table.hand[seat]), order) for seat in seats)
    jacks = ([f"J{SUITS[s]}" for s in range(4) if int(table.jacks[i]) >> s & 1] for i in seats)
    voids = ("".join(SUITS[s] for s in range(4) if int(table.voids[i]) >> s & 1) for i in seats)
    totals = table.totals[:players]
    fields = {
        "hands": _join(",".join(hand) for hand in hands),
        "table": "".join(on_table),
        "turn": str(table.turn),
        "turned": "" if table.turned == NO_CARD else card_name(int(table.turned), order),
        "dealer": str(table.dealer),
        "leader": str(table.leader),
        "passes": str(table.num_calls) if table.phase == CALLS else "",
        "general": "" if table.general == NOBODY else str(table.general),
        "plays": "/".join(tricks),
        "tricks": _join(map(str, table.tricks[:players])) if table.tricks.any() else "",
        "jacks": _join(",".join(names) for names in jacks) if table.jacks.any() else "",
        "voids": _join(voids) if table.voids.any() else "",
        "totals": _join(map(str, totals)) if totals.any() or rules.count == "trick" else "",
        "deal": str(int(table.deal) + 1) if table.deal or totals.any() else "",
        "seed": str(table.seed) if table.seed else "",
        "episode": str(table.episode) if table.episode else "",
    }
    told = [f"{key}={value}" for key, value in fields.items() if value]
    return " ".join([game_to_text(name_game(rules), rules), *told])


def _join(parts: Any) -> str:
    return "/".join(part or "-" for part in parts)


def position_from_text(text: str, rules: Rules | None = None) -> tuple[Rules, np.ndarray]:
    """Return the position that a line tells, for example `valety hands=JS,AH/QS,QH turn=1 trump=H`.

    Args:
        text: the game with its options, then `hands=…` and any of the other fields.
        rules: the rules if the text names no game; None: Valety's.

    Returns:
        the rules, with `hand_size` as the position has it, and its state, STATE (1,).

    Raises:
        NotationError: if the text is not in the notation, or the position can't be.
    """
    check = Check("", NotationError)
    told: dict[str, str] = {}
    hand_size_is_told = False
    for number, word in enumerate(read_text(text).split()):
        key, equals, value = word.partition("=")
        if key in _KEYS and equals:
            if key in told:
                check.fail(f"{key} is told twice")
            told[key] = value
        elif number == 0:
            _, rules = game_from_text(word)
            hand_size_is_told = ",hand_size=" in word
        else:
            check.fail(f"{show(word)} is no field of a position; they are: {', '.join(_KEYS)}")
    told = {key: value for key, value in told.items() if value != "-"}
    rules = rules or make_rules("valety")
    position = _Position(rules, told, Check("", NotationError, rules.rank_order))
    return position.rules_and_state(hand_size_is_told)


class _Position:
    """What a line tells, checked step by step; each step uses what those before it found."""

    def __init__(self, rules: Rules, told: dict[str, str], check: Check) -> None:
        self.rules = rules
        self.told = told
        self.check = check
        self.players = rules.num_players
        self.where: dict[int, str] = {}

    def rules_and_state(self, hand_size_is_told: bool) -> tuple[Rules, np.ndarray]:
        """Return the result."""
        self.read_cards()
        self.read_trump()
        self.read_seats()
        self.give_known_plays()
        self.read_taken()
        self.size_the_deal(hand_size_is_told)
        self.check_trump()
        state = self.make_state()
        self.add_taken(state[0])
        self.add_match(state[0])
        return self.rules, state

    def number(self, key: str, low: int, high: int) -> int | None:
        """Return the number that a field tells, or None."""
        if key not in self.told:
            return None
        return read_number(self.told[key], low, high, key, self.check)

    def seat(self, key: str) -> int | None:
        """Return the seat that a field tells, or None."""
        return self.number(key, 0, self.players - 1)

    def parts(self, key: str) -> list[str] | None:
        """Return what a field tells of each seat, or None."""
        if key not in self.told:
            return None
        parts = self.told[key].split("/")
        if len(parts) != self.players:
            self.check.fail(f"{key} tells of {len(parts)} seats, {self.players} play")
        return ["" if part == "-" else part for part in parts]

    def cards(self, text: str, place: str) -> list[int]:
        """Return cards that are at one place and at no other."""
        cards = read_cards(text, self.check.at(place))
        for card in cards:
            name = self.check.name(card)
            if not int(self.rules.record.pack) >> card & 1:
                self.check.fail(f"{name}, {place}, is not in the pack")
            if card in self.where:
                self.check.fail(f"{name} is told twice: {self.where[card]} and {place}")
            self.where[card] = place
        return cards

    def read_cards(self) -> None:
        """Read the hands, the completed tricks and the cards on the table."""
        hands = self.parts("hands")
        if hands is None:
            self.check.fail("hands=… is missing: the cards of each seat, player_0 first")
        self.hands = [self.cards(h, f"in the hand of player_{i}") for i, h in enumerate(hands)]
        tricks = self.told["plays"].split("/") if "plays" in self.told else []
        self.tricks = [self.cards(t, f"in trick {i + 1} of plays") for i, t in enumerate(tricks)]
        for number, trick in enumerate(self.tricks, start=1):
            if len(trick) != self.players:
                self.check.fail(
                    f"trick {number} of plays has {len(trick)} cards, {self.players} play; "
                    "table=… is for a trick in progress"
                )
        self.table = self.cards(self.told.get("table", ""), "on the table")
        if len(self.table) >= self.players:
            self.check.fail(f"{len(self.table)} cards are on the table, {self.players} play")

    def read_trump(self) -> None:
        """Read the trump suit and the card that shows it."""
        self.turned, self.trump = NO_CARD, -1
        suit, shown = self.told.get("trump"), self.told.get("turned")
        if self.rules.trump == "none":
            if suit or shown:
                self.check.fail("this game has no trump")
            return
        if suit:
            letter = suit.upper().rstrip("\ufe0f")
            if len(letter) != 1 or letter not in SUITS + SUIT_SYMBOLS:
                self.check.fail(f"trump is {show(suit)}, it must be one of S C D H or ♠ ♣ ♦ ♥")
            self.trump = (SUITS + SUIT_SYMBOLS).index(letter) % len(SUITS)
        if shown:
            cards = read_cards(shown, self.check.at("turned"))
            if len(cards) != 1:
                self.check.fail(f"turned is {show(shown)}, it must be one card")
            self.turned = cards[0]
            if suit and self.turned // NUM_RANKS != self.trump:
                self.check.fail(f"trump is {suit}, and yet {self.check.name(cards[0])} is turned")
        elif self.rules.trump == "last_card":
            self.check.fail("turned=… is missing: the card that the dealer has shown")
        elif suit:
            # Which card it was makes no difference to the play.
            free = [c for c in cards_of(int(self.rules.record.pack)) if c not in self.where]
            free = [card for card in free if card // NUM_RANKS == self.trump]
            if not free:
                self.check.fail(f"no card of trump {suit} is left that can have been turned")
            self.turned = free[0]
        else:
            self.check.fail("turned=… is missing: the card turned up; trump=… is enough")
        self.trump = self.turned // NUM_RANKS

    def read_seats(self) -> None:
        """Read who deals, leads, calls and moves, or find it out."""
        dealer, leader, turn = self.seat("dealer"), self.seat("leader"), self.seat("turn")
        self.passes = self.number("passes", 0, self.players - 1)
        self.general = self.seat("general")
        if not self.rules.general and (self.passes, self.general) != (None, None):
            self.check.fail("this game has no announcements")
        if self.passes is not None and (self.table or self.tricks or self.general is not None):
            self.check.fail("passes=… is told: nothing can be played before the announcements end")
        general_leads = self.rules.general_leads and self.general is not None
        # How far the lead has gone round in the tricks that are known.
        steps = sum(self.taker(trick) for trick in self.tricks) + (self.passes or 0)
        if turn is None and self.table:
            turn = self.turn_by_sizes()
        if turn is None:
            opener = self.general if general_leads else leader
            if opener is None:
                opener = int(first_leader(self.rules.record, dealer or 0))
            turn = (opener + steps + len(self.table)) % self.players
        self.turn = turn
        self.opener = (turn - steps - len(self.table)) % self.players
        if leader is None:
            leader = self.opener
        if dealer is None:
            left = self.rules.first_lead == "left_of_dealer"
            dealer = (leader - 1) % self.players if left else leader
        self.dealer, self.leader = dealer, leader

    def taker(self, trick: list[int]) -> int:
        """Return the place in a trick, from its leader, of the card that takes it."""
        best = 0
        for i, card in enumerate(trick):
            if i and beats(card, trick[best], self.trump):
                best = i
        return best

    def turn_by_sizes(self) -> int | None:
        """Return who is to move as the sizes of the hands tell, while a trick is in progress."""
        sizes = [len(hand) for hand in self.hands]
        for turn in range(self.players):
            if sizes == self.right_sizes(turn, max(sizes)):
                return turn
        return None

    def right_sizes(self, turn: int, most: int) -> list[int]:
        """Return how many cards each seat holds if the seat to move holds `most`."""
        sizes = [most] * self.players
        for i in range(len(self.table)):
            sizes[(turn - 1 - i) % self.players] -= 1
        return sizes

    def give_known_plays(self) -> None:
        """Find whose the known plays are, and whether the hands are of the right size."""
        most = len(self.hands[self.turn])
        if most == 0:
            self.check.fail(f"player_{self.turn} is to move and holds no card")
        for seat, right in enumerate(self.right_sizes(self.turn, most)):
            if len(self.hands[seat]) != right:
                self.check.fail(
                    f"player_{seat} holds {len(self.hands[seat])} cards, it must be {right} when "
                    f"player_{self.turn} is to move with {most}, {len(self.table)} on the table"
                )
        self.known = [set(hand) for hand in self.hands]
        self.plays: list[int] = []
        lead = self.opener
        for trick in [*self.tricks, self.table]:
            for i, card in enumerate(trick):
                self.known[(lead + i) % self.players].add(card)
                self.plays.append(card)
            lead = (lead + self.taker(trick)) % self.players

    def read_taken(self) -> None:
        """Read the tricks taken; those that are not among the plays come before them."""
        takers = [0] * self.players
        lead = self.opener
        for trick in self.tricks:
            lead = (lead + self.taker(trick)) % self.players
            takers[lead] += 1
        self.earlier = [0] * self.players
        parts = self.parts("tricks")
        if parts is None:
            return
        for seat, part in enumerate(parts):
            taken = read_number(part or "0", 0, len(self.rules.pack), "tricks", self.check)
            self.earlier[seat] = taken - takers[seat]
            if taken < takers[seat]:
                self.check.fail(
                    f"player_{seat} has taken {taken} tricks, by the plays {takers[seat]}"
                )

    def size_the_deal(self, hand_size_is_told: bool) -> None:
        """Let the rules deal as many cards as the tricks taken and the cards held make."""
        size = sum(self.earlier) + len(self.tricks) + len(self.hands[self.turn])
        if size == self.rules.hand_size:
            return
        if hand_size_is_told:
            self.check.fail(
                f"hand_size is {self.rules.hand_size}, tricks taken and cards held make {size}"
            )
        try:
            self.rules = self.rules.replace(hand_size=size)
        except ValueError as error:
            self.check.fail(f"tricks taken and cards held make hands of {size}: {error}")

    def check_trump(self) -> None:
        """Check that the card shown is where it can be."""
        if self.turned == NO_CARD:
            return
        name = self.check.name(self.turned)
        if not int(self.rules.record.pack) >> self.turned & 1:
            self.check.fail(f"turned is {name}, which is not in the pack")
        if self.rules.trump == "turned" and self.turned in self.where:
            self.check.fail(f"turned is {name}, which is {self.where[self.turned]}")
        if self.rules.trump == "last_card" and self.turned not in self.known[self.dealer]:
            self.check.fail(
                f"turned is {name}, which the dealer, player_{self.dealer}, neither holds nor "
                "has played"
            )

    def make_state(self) -> np.ndarray:
        """Return the state that the known plays lead to."""
        # Of points that count at each trick only those so far are known; `add_match` sets them.
        rules = self.rules.replace(count="deal") if self.rules.count == "trick" else self.rules
        state = np.zeros(1, STATE)
        table, packed = state[0], rules.record
        begin_deal(packed, table, self.dealer, self.leader)
        hands = np.array([card_set(cards) for cards in self.known], np.uint64)
        set_hands(packed, table, hands, self.turned)
        passes = self.passes
        if passes is None and rules.general:
            caller = self.leader - 1 if self.general is None else self.general
            passes = (caller - self.leader) % self.players + (self.general is None)
        for _ in range(passes or 0):
            play(packed, table, PASS)
        if self.general is not None:
            play(packed, table, GENERAL)
        if sum(self.earlier):
            first = sum(self.earlier)
            table.num_plays = first * self.players
            table.turn = self.opener
        steps = self.passes or 0
        if table.turn != (self.opener + steps) % self.players:
            self.check.fail(
                f"player_{self.turn} cannot be to move: player_{self.leader} leads the deal"
            )
        for number, card in enumerate(self.plays, start=1):
            check = self.check.at(f"play {number}")
            play_checked(rules, table, PLAYS, int(table.turn), card, check)
        return state

    def add_taken(self, table: Any) -> None:
        """Set tricks, captured jacks and voids, of which plays that are not known can have part."""
        jacks, voids = self.parts("jacks"), self.parts("voids")
        for seat in range(self.players):
            whose = f"player_{seat}"
            table.tricks[seat] += self.earlier[seat]
            if jacks is not None:
                told = self.captured(jacks[seat], seat, int(table.jacks[seat]))
                table.jacks[seat] = told
            if voids is None:
                continue
            suits = read_suits(voids[seat], self.check.at("voids"))
            known = int(table.voids[seat])
            if known & ~suits or (suits != known and not sum(self.earlier)):
                self.check.fail(f"voids of {whose} are not those that the plays show")
            for card in self.known[seat]:
                if (suits & ~known) >> card // NUM_RANKS & 1:
                    self.check.fail(
                        f"voids of {whose}: but {self.check.name(card)} is of such a suit"
                    )
            table.voids[seat] = suits

    def captured(self, text: str, seat: int, known: int) -> int:
        """Return the jacks that a seat has captured, as a set of suits."""
        told = 0
        for card in read_cards(text, self.check.at("jacks")):
            name = self.check.name(card)
            if not int(self.rules.record.jacks) >> card & 1:
                self.check.fail(f"jacks: {name} is not a jack of the pack")
            told |= 1 << card // NUM_RANKS
            if known >> card // NUM_RANKS & 1:
                continue
            if card == self.turned:
                self.check.fail(f"{name} is both turned up and captured")
            self.cards(name, f"captured by player_{seat}")
        earlier = (told & ~known).bit_count()
        if known & ~told:
            self.check.fail(f"jacks: player_{seat} has captured more, by the plays")
        if earlier > self.earlier[seat] * self.players:
            self.check.fail(
                f"jacks: {earlier} of player_{seat} are not among the plays, "
                f"nor are they in {self.earlier[seat]} earlier tricks"
            )
        return told

    def add_match(self, table: Any) -> None:
        """Set the totals, the number of the deal, seed and episode."""
        rules = self.rules
        by_trick = rules.count == "trick"
        zero = [0] * self.players
        if by_trick:
            zero = [int(deal_points(rules.record, table, seat)) for seat in range(self.players)]
        parts = self.parts("totals")
        totals = zero
        if parts is not None:
            totals = [
                read_number(part, -_MOST_POINTS, _MOST_POINTS, "totals", self.check)
                for part in parts
            ]
        deal = self.number("deal", 1, MAX_DEAL) or (1 if totals == zero else 2)
        if deal == 1 and totals != zero:
            self.check.fail(f"totals are {totals} in the first deal, they must be {zero}")
        table.deal = deal - 1
        table.totals[: self.players] = totals
        table.seed = self.number("seed", 0, MAX_SEED) or 0
        table.episode = self.number("episode", 0, MAX_EPISODE) or 0
        over = by_trick and max(totals) >= (rules.target or 0)
        if deal > 1 and not over:
            # A deal before this one that left the totals as they stand.
            before = np.zeros(1, STATE)
            before[0].totals = table.totals
            before[0].deal = deal - 2
            before[0].general = NOBODY
            end_deal(rules.record, before[0])
            over = before[0].phase == MATCH_OVER
        if over:
            self.check.fail(f"the match is over at totals {totals} in deal {deal}")


def read_suits(text: str, check: Check) -> int:
    """Return a set of suits, bit = suit, from their letters or symbols."""
    suits = 0
    for letter in text.upper().replace("\ufe0f", ""):
        if letter not in SUITS + SUIT_SYMBOLS:
            check.fail(f"{show(letter)} is not a suit: S C D H or ♠ ♣ ♦ ♥")
        suits |= 1 << (SUITS + SUIT_SYMBOLS).index(letter) % len(SUITS)
    return suits

"""The rules as data: every number and choice in which the games differ is a field of `Rules`.

`make_rules` builds a preset by name with options changed; `Rules.record` is the packed form that
kernels read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from valety_env.cards import (
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    RANKS,
    SUITS,
    card_set,
    parse_card,
    set_names,
)

MAX_PLAYERS = 7
MAX_DEALS = 1000

TRUMPS = ("none", "turned", "last_card")
SCORINGS = ("tricks", "penalties")
COUNTS = ("deal", "trick")
FIRST_LEADS = ("winner", "dealer", "left_of_dealer")
TIES = ("play_on", "draw")
# The fields of which exactly one says when a match ends.
ENDS = ("target", "num_deals", "loss_limit")

TRUMP_NONE, TRUMP_TURNED, TRUMP_LAST_CARD = range(3)
SCORING_TRICKS, SCORING_PENALTIES = range(2)
COUNT_DEAL, COUNT_TRICK = range(2)
LEAD_WINNER, LEAD_DEALER, LEAD_LEFT_OF_DEALER = range(3)
TIE_PLAY_ON, TIE_DRAW = range(2)

# One packed `Rules` for the kernels. A number that is None in `Rules` is 0 here.
RULES = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("pack", np.uint64),
                ("jacks", np.uint64),
                ("pack_cards", np.uint8, (NUM_CARDS,)),
                ("penalty_of", np.int16, (1 << NUM_SUITS,)),  # by set of jacks, bit = suit
                ("reciprocal", np.uint16),  # of the number of players, in 65536ths, rounded up
                ("target", np.int16),
                ("loss_limit", np.int16),
                ("num_deals", np.int16),
                ("max_deals", np.int16),
                ("general_charge", np.int16),
                ("num_cards", np.uint8),
                ("num_players", np.uint8),
                ("hand_size", np.uint8),
                ("jack_rank", np.uint8),
                ("trump", np.uint8),
                ("scoring", np.uint8),
                ("count", np.uint8),
                ("first_lead", np.uint8),
                ("tie", np.uint8),
                ("general", np.uint8),
                ("general_leads", np.uint8),
            ],
            align=True,
        ),
    )
)


def _pack(*, lowest: str = "2", without: str = "") -> tuple[str, ...]:
    """Return the names of a pack from rank `lowest` up, without the cards named in `without`."""
    ranks = RANKS[RANKS.index(lowest) :]
    removed = without.split()
    return tuple(rank + suit for suit in SUITS for rank in ranks if rank + suit not in removed)


FULL_PACK = _pack()


@dataclass(frozen=True)
class Rules:
    """The rules of one game; immutable. The defaults are Valety's.

    Attributes:
        num_players: seats at the table, 2..7.
        pack: the names of the cards in play (V1, P1, P2); also accepted as one string of names.
        rank_order: the 13 ranks from weakest to strongest.
        hand_size: cards dealt to each player; None: cards ÷ players, which must be whole.
        trump: `"turned"`: the card after the hands is turned up (V2); `"none"`; `"last_card"`: the
            dealer's last card (P3).
        scoring: `"tricks"`: tricks minus penalties, the highest total wins (V11, V13);
            `"penalties"`: charges alone, the lowest wins (P9, P14).
        jack_penalties: what the jacks of ♠ ♣ ♦ ♥ cost (V10, P9).
        target: with trick scoring, the total at which the match ends (V12).
        num_deals: the agreed number of deals (P13), 1..1000.
        loss_limit: with penalties alone, the total at which the match ends.
        max_deals: after that many deals the best total wins and equal ones share; None: no such
            end.
        count: `"deal"` or `"trick"`: when points are added to the totals (V12).
        first_lead: `"winner"`, `"dealer"` or `"left_of_dealer"`: who leads a deal (V4, V5, P5).
        tie: `"play_on"` or `"draw"`: what a shared best total means (V13, P14).
        general: with penalties alone, whether a player may announce to take all tricks (P6).
        general_leads: whether the general leads the first trick (P7).
        general_charge: what a general made costs the others, and failed the general (P10, P11).

    Raises:
        ValueError: for a value or a combination that is impossible; it names the fields.
    """

    num_players: int = 2
    pack: tuple[str, ...] = FULL_PACK
    rank_order: str = RANKS
    hand_size: int | None = None
    trump: str = "turned"
    scoring: str = "tricks"
    jack_penalties: tuple[int, int, int, int] = (1, 2, 3, 4)
    target: int | None = None
    num_deals: int | None = None
    loss_limit: int | None = None
    max_deals: int | None = None
    count: str = "deal"
    first_lead: str = "winner"
    tie: str = "play_on"
    general: bool = False
    general_leads: bool = False
    general_charge: int = 5

    def __post_init__(self) -> None:
        """Bring the values to their canonical form and refuse what is impossible."""
        for name, choices in (
            ("trump", TRUMPS),
            ("scoring", SCORINGS),
            ("count", COUNTS),
            ("first_lead", FIRST_LEADS),
            ("tie", TIES),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name}={value!r}: allowed are {', '.join(map(repr, choices))}")
        for name in ("general", "general_leads"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise ValueError(f"{name}={value!r}: allowed are True and False")
            self._set(name, bool(value))
        self._check_integer("num_players", 2, MAX_PLAYERS)
        self._check_integer("target", 1, 1000, optional=True)
        self._check_integer("num_deals", 1, MAX_DEALS, optional=True)
        self._check_integer("loss_limit", 1, 1000, optional=True)
        self._check_integer("max_deals", 1, MAX_DEALS, optional=True)
        self._check_integer("general_charge", 0, 20)
        if not isinstance(self.rank_order, str) or sorted(self.rank_order) != sorted(RANKS):
            raise ValueError(
                f"rank_order={self.rank_order!r}: it must hold each of {RANKS} once, weakest first"
            )
        self._check_penalties()
        self._check_pack()
        self._check_hand_size()
        self._check_ends()
        if self.general and self.scoring == "tricks":
            raise ValueError(
                'general=True and scoring="tricks": a general needs scoring="penalties", '
                f"its charge of {self.general_charge} means nothing where tricks score"
            )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_integer(self, name: str, low: int, high: int, *, optional: bool = False) -> None:
        value = getattr(self, name)
        if value is None and optional:
            return
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise ValueError(f"{name}={value!r}: it must be a whole number in {low}…{high}")
        if not low <= value <= high:
            raise ValueError(f"{name}={value}: allowed are {low}…{high}")
        self._set(name, int(value))

    def _check_penalties(self) -> None:
        try:
            given = tuple(self.jack_penalties)
        except TypeError:
            given = ()
        if len(given) != NUM_SUITS or not all(
            isinstance(p, (int, np.integer)) and not isinstance(p, bool) and 0 <= p <= 20
            for p in given
        ):
            raise ValueError(
                f"jack_penalties={self.jack_penalties!r}: it must be four whole numbers in 0…20, "
                "for the jacks of ♠ ♣ ♦ ♥"
            )
        self._set("jack_penalties", tuple(int(p) for p in given))

    def _check_pack(self) -> None:
        try:
            given = (
                self.pack.replace("+", " ").split() if isinstance(self.pack, str) else [*self.pack]
            )
        except TypeError:
            raise ValueError(f"pack={self.pack!r}: it must be a list of cards") from None
        try:
            numbers = [parse_card(name, self.rank_order) for name in given]
        except ValueError as error:
            raise ValueError(f"pack: {error}") from None
        for place, number in enumerate(numbers):
            if number in numbers[:place]:
                raise ValueError(f"pack: {given[place]} is in it twice")
        if len(numbers) < 2:
            raise ValueError(f"pack={given!r}: it must hold at least 2 cards")
        self._set("pack", tuple(set_names(card_set(numbers), self.rank_order)))

    def _check_hand_size(self) -> None:
        cards, players = len(self.pack), self.num_players
        if self.hand_size is None:
            if cards % players:
                raise ValueError(
                    f"hand_size is not given, and the {cards} cards of pack can't be dealt evenly "
                    f"to num_players={players}"
                )
            self._set("hand_size", cards // players)
        self._check_integer("hand_size", 1, NUM_CARDS // 2)
        assert self.hand_size is not None
        left = cards - players * self.hand_size
        sizes = f"num_players={players} × hand_size={self.hand_size}"
        if left < 0:
            raise ValueError(f"{sizes} is more than the {cards} cards of pack")
        if self.trump == "turned" and left == 0:
            raise ValueError(
                f'trump="turned": {sizes} leaves no card of the {cards} in pack to turn up'
            )
        if self.trump == "last_card" and left > 0:
            raise ValueError(
                f'trump="last_card": {sizes} leaves {left} of the {cards} cards in pack undealt, '
                "but the whole pack must be dealt"
            )

    def _check_ends(self) -> None:
        given = [n for n in ENDS if getattr(self, n) is not None]
        if len(given) != 1:
            told = " and ".join(f"{n}={getattr(self, n)}" for n in given) or "none of them"
            raise ValueError(f"exactly one of {', '.join(ENDS)} must be set: {told} given")
        if self.target is not None and self.scoring == "penalties":
            raise ValueError(
                f'target={self.target} and scoring="penalties": charges have no target; '
                "use num_deals or loss_limit"
            )
        if self.loss_limit is not None and self.scoring == "tricks":
            raise ValueError(
                f'loss_limit={self.loss_limit} and scoring="tricks": only charges have a limit; '
                "use target or num_deals"
            )
        charged = any(self._jack_costs()) or (self.general and self.general_charge > 0)
        if self.lowest_wins and not charged and self.max_deals is None:
            never = (
                "nobody is ever charged (pack, jack_penalties, general), so the match has no end"
            )
            if self.loss_limit is not None:
                raise ValueError(f"loss_limit={self.loss_limit}: {never}")
            if self.tie == "play_on":
                raise ValueError(f'tie="play_on": {never}')
        if self.count == "trick" and self.target is None:
            raise ValueError(
                'count="trick" needs target: without one nothing can be reached within a deal'
            )

    def _jack_costs(self) -> list[int]:
        """Return what each jack of the pack costs."""
        return [
            p for suit, p in zip(SUITS, self.jack_penalties, strict=True) if "J" + suit in self.pack
        ]

    @property
    def num_actions(self) -> int:
        """Size of the action space: 52 cards, and with charges alone two announcements."""
        return NUM_CARDS + 2 if self.scoring == "penalties" else NUM_CARDS

    @property
    def lowest_wins(self) -> bool:
        """Whether totals are charges, so that the lowest total wins (P14)."""
        return self.scoring == "penalties"

    @cached_property
    def packed(self) -> np.ndarray:
        """The packed form for the kernels: `RULES` (1,), read-only."""
        packed = np.zeros(1, RULES)
        record = packed[0]
        numbers = [parse_card(name, self.rank_order) for name in self.pack]
        jack_rank = self.rank_order.index("J")
        record.pack = card_set(numbers)
        record.jacks = card_set(n for n in numbers if n % NUM_RANKS == jack_rank)
        record.pack_cards[: len(numbers)] = numbers
        for jacks in range(1 << NUM_SUITS):
            record.penalty_of[jacks] = sum(
                p for suit, p in enumerate(self.jack_penalties) if jacks >> suit & 1
            )
        record.num_cards = len(numbers)
        record.reciprocal = -(-(1 << 16) // self.num_players)
        record.jack_rank = jack_rank
        for name in ("target", "loss_limit", "num_deals", "max_deals"):
            setattr(record, name, getattr(self, name) or 0)
        for name in ("num_players", "hand_size", "general_charge", "general", "general_leads"):
            setattr(record, name, getattr(self, name))
        record.trump = TRUMPS.index(self.trump)
        record.scoring = SCORINGS.index(self.scoring)
        record.count = COUNTS.index(self.count)
        record.first_lead = FIRST_LEADS.index(self.first_lead)
        record.tie = TIES.index(self.tie)
        packed.flags.writeable = False
        return packed

    @property
    def record(self) -> Any:
        """The one record of `packed`."""
        return self.packed[0]

    @cached_property
    def worst_points(self) -> float:
        """The worst that one deal can give: own deal points minus the mean of the others'.

        Charges count as negative points. Valety: two tricks with all four jacks against 15 (V11):
        −23. Polignac: a failed general with all jacks (P11): −10. In reduced packs no deal gives
        less, but some may not reach it.
        """
        others = self.num_players - 1
        assert self.hand_size is not None
        penalties = self._jack_costs()
        if self.lowest_wins:
            return -float(sum(penalties) + (self.general_charge if self.general else 0))
        undealt = len(self.pack) - self.num_players * self.hand_size
        worst = 0.0
        for taken in range(1 << len(penalties)):
            own = [p for i, p in enumerate(penalties) if taken >> i & 1]
            rest = sorted(p for i, p in enumerate(penalties) if not taken >> i & 1)
            captured_by_others = rest[: max(0, len(rest) - undealt)]
            tricks = min(-(-len(own) // self.num_players), self.hand_size)
            points = tricks - sum(own)
            rest_points = self.hand_size - tricks - sum(captured_by_others)
            worst = min(worst, points - rest_points / others)
        return worst

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {
            f.name: list(v) if isinstance(v := getattr(self, f.name), tuple) else v
            for f in fields(self)
        }

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> Rules:
        """Return the rules with the given fields.

        Raises:
            ValueError: for an unknown field or an impossible value.
        """
        _check_names(options)
        return cls(**options)

    def replace(self, **options: Any) -> Rules:
        """Return these rules with some fields changed."""
        _check_names(options)
        return dataclasses.replace(self, **options)


def _check_names(options: Mapping[str, Any]) -> None:
    known = [f.name for f in fields(Rules)]
    for name in options:
        if name not in known:
            raise ValueError(f"{name!r} is not a rule option; they are: {', '.join(known)}")


_VALETY: dict[str, Any] = {"hand_size": 17, "target": 20}
_POLIGNAC: dict[str, Any] = {
    "trump": "none",
    "scoring": "penalties",
    "jack_penalties": (2, 1, 1, 1),
    "tie": "draw",
    "general": True,
}
_BLACK_SEVENS_OUT = _pack(lowest="7", without="7S 7C")

# P1, P2 and, for 3 and 7 players, the classic game.
POLIGNAC_PACKS = {
    3: _BLACK_SEVENS_OUT,
    4: _pack(lowest="7"),
    5: _BLACK_SEVENS_OUT,
    6: _BLACK_SEVENS_OUT,
    7: _pack(lowest="8"),
}
POLIGNAC_GAMES = ("polignac", "polignac-classic")

# Suits (from the end of the order) × ranks (the highest that include the jack), cards a hand.
LADDER = {
    "L1": (2, 3, 2),
    "L2": (2, 4, 3),
    "L3": (3, 3, 3),
    "L4": (3, 4, 4),
    "L5": (4, 3, 4),
    "L6": (3, 4, 5),
    "L7": (4, 4, 4),
    "L8": (4, 4, 5),
}


def _ladder(suits: int, ranks: int, hand: int) -> dict[str, Any]:
    chosen = RANKS[9 : 9 + ranks]  # from the jack up
    pack = tuple(rank + suit for suit in SUITS[-suits:] for rank in chosen)
    return {"pack": pack, "hand_size": hand, "target": 20, "max_deals": 1}


# What each game changes of the defaults of `Rules`. Polignac's pack and number of deals follow from
# the players.
PRESETS: dict[str, dict[str, Any]] = {
    "valety": _VALETY,
    "polignac": {**_POLIGNAC, "num_players": 4},
    "polignac-classic": {
        **_POLIGNAC,
        "num_players": 4,
        "rank_order": "23456789TAJQK",
        "first_lead": "left_of_dealer",
        "loss_limit": 20,
    },
    "knaves": {**_VALETY, "num_players": 3, "first_lead": "left_of_dealer"},
    **{f"valety-{level}": _ladder(*sizes) for level, sizes in LADDER.items()},
}


def make_rules(game: str | Rules = "valety", **options: Any) -> Rules:
    """Return the rules of a game by its name, with options changed.

    Args:
        game: a name in `PRESETS`, or rules to start from.
        **options: fields of `Rules`; None leaves the game's own value. One of `target`,
            `num_deals`, `loss_limit` replaces the game's own.

    Returns:
        the rules.

    Raises:
        ValueError: for an unknown game or option, or an impossible combination.
    """
    _check_names(options)
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(game, Rules):
        if not given:
            return game
        chosen = game.to_dict()
    elif game in PRESETS:
        chosen = dict(PRESETS[game])
    else:
        raise ValueError(f"{game!r} is not a game; the games are: {', '.join(PRESETS)}")
    if any(end in given for end in ENDS):
        for end in ENDS:
            chosen.pop(end, None)
    chosen.update(given)
    if game in POLIGNAC_GAMES:
        players = chosen["num_players"]
        if "pack" not in chosen:
            if players not in POLIGNAC_PACKS:
                raise ValueError(
                    f"num_players={players!r}: {game} has a pack for "
                    f"{', '.join(map(str, POLIGNAC_PACKS))} players; another number needs pack"
                )
            chosen["pack"] = POLIGNAC_PACKS[players]
        if not any(end in chosen for end in ENDS):
            chosen["num_deals"] = players
    return Rules(**chosen)


# How the values of an option are written in a game's text; of the others, as names.
_INTEGERS = ("num_players", "general_charge")
_OPTIONAL_INTEGERS = ("hand_size", "target", "num_deals", "loss_limit", "max_deals")
_SWITCHES = ("general", "general_leads")


def _read_option(name: str, text: str) -> Any:
    """Read the value of a rule option; raises ValueError with what is allowed."""
    if name in _SWITCHES:
        if text.lower() not in ("true", "false"):
            raise ValueError("allowed are true and false")
        return text.lower() == "true"
    if name in _OPTIONAL_INTEGERS and text.lower() == "none":
        return None
    if name in _INTEGERS or name in _OPTIONAL_INTEGERS:
        try:
            return int(text)
        except ValueError:
            or_none = " or none" if name in _OPTIONAL_INTEGERS else ""
            raise ValueError(f"it must be a whole number{or_none}") from None
    if name == "jack_penalties":
        try:
            return tuple(int(part) for part in text.split("+"))
        except ValueError:
            raise ValueError("it must be four whole numbers with + between them") from None
    if name == "pack":
        return tuple(text.split("+"))
    return text


def parse_game(text: str) -> tuple[str, Rules]:
    """Read a game and its rule options from one line of text.

    The games of the command line and of training configs are written so:
    `polignac,num_players=5,general=false`, `valety-L3,pack=JD+QD+KD+JH+QH+KH,hand_size=2`.

    Args:
        text: `GAME[,OPTION=VALUE…]`: a name in `PRESETS` and fields of `Rules`. Whole numbers,
            `true`, `false`, `none` (no such limit; for `hand_size`: cards ÷ players) and names;
            `+` between the cards of `pack` and the numbers of `jack_penalties`.

    Returns:
        the game's name and its rules.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    game, *parts = (part.strip() for part in text.split(","))
    if game not in PRESETS:
        where = "" if game == text else f"{text!r}: "
        raise ValueError(f"{where}{game!r} is not a game; the games are: {', '.join(PRESETS)}")
    known = [f.name for f in fields(Rules)]
    given: dict[str, Any] = {}
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise ValueError(
                f"{text!r}: {part!r} is not OPTION=VALUE; the options are: {', '.join(known)}"
            )
        if name not in known:
            raise ValueError(
                f"{text!r}: {name!r} is not a rule option; they are: {', '.join(known)}"
            )
        if name in given:
            raise ValueError(f"{text!r}: {name} is given twice")
        try:
            given[name] = _read_option(name, value)
        except ValueError as error:
            raise ValueError(f"{text!r}: {name}={value}: {error}") from None
    try:
        # `make_rules` leaves the game's own value where None is given; here none means none.
        chosen = {name: value for name, value in given.items() if value is not None}
        rules = make_rules(game, **chosen)
        nothing = {name: None for name, value in given.items() if value is None}
        return game, rules.replace(**nothing) if nothing else rules
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None

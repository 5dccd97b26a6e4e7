"""Records of episodes: what was dealt and played, as plain values that JSON can hold.

A record is a dict that tells all, hands included. It is made from the `STATE` records of its
deals. Reading it plays every deal again on the engine, from the hands and never from the seed, so
that a record is refused where it first departs from the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from valety_env import engine
from valety_env.cards import GENERAL, NO_CARD, NUM_CARDS, PASS, card_set, cards_of, set_names
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    NOBODY,
    PLAYS,
    STATE,
    begin_deal,
    deal_points,
    first_leader,
    legal_actions,
    next_deal,
    play,
    seats_of_plays,
    set_hands,
)
from valety_env.notation._check import Check, action_name, show
from valety_env.rules import PRESETS, Rules

FORMAT = 1
DEAL_KEYS = ("dealer", "leader", "turned", "hands", "calls", "plays", "tricks", "points")
RECORD_KEYS = (
    *("format", "game", "rules", "seed", "episode", "deals"),
    *("totals", "winners", "illegal"),
)
MAX_SEED = (1 << 64) - 1
MAX_EPISODE = (1 << 32) - 1
MAX_DEAL = (1 << 32) - 1


class RecordError(ValueError):
    """A record is damaged; the message names the deal and the play, counted from 1."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """A record that was read and played again.

    Attributes:
        game: the preset its rules started from.
        rules: the rules.
        states: STATE (deals,), each deal as the record leaves it; all but the last are over.
        winners: the seats that won, ascending; empty while nobody has.
        illegal: the seat and the name of the action that ended the episode, or None.
        single_deal: whether the record can only be of an episode of one deal: by the match rules
            its deal would have ended earlier, or its winners are those of the deal and not of a
            match. A deal that is still being played need not show it.
    """

    game: str
    rules: Rules
    states: np.ndarray
    winners: tuple[int, ...]
    illegal: tuple[int, str] | None
    single_deal: bool

    @property
    def seed(self) -> int:
        """The seed of the table."""
        return int(self.states[0].seed)

    @property
    def episode(self) -> int:
        """The number of the episode."""
        return int(self.states[0].episode)


def deal_winners(rules: Rules, state: Any) -> list[int]:
    """Return the seats that win an episode of one deal which is over.

    Where tricks score that is the one winner by V6; with charges alone, all with the fewest.

    Args:
        rules: the rules.
        state: one `STATE` record, or an array of one.
    """
    return cards_of(int(engine.deal_winners(rules.record, one(state))))


def make_record(
    rules: Rules,
    game: str,
    states: Iterable[Any],
    *,
    illegal: Mapping[str, Any] | None = None,
    winners: Iterable[int] | None = None,
    totals: Iterable[int] | None = None,
) -> dict[str, Any]:
    """Return the record of an episode, made of values that JSON can hold.

    Args:
        rules: the rules.
        game: the preset they started from.
        states: the `STATE` of each deal in order, as it was when the deal ended (before
            `next_deal`), then that of the deal being played if there is one: records, arrays of
            one, or one array of all.
        illegal: the illegal action that ended the episode, `{"seat": 1, "action": "KD"}`; the
            action may be a number.
        winners: the seats that won; None: those of the last state. An episode of one deal gives
            its `deal_winners`.
        totals: the total of each seat; None: those of the last state.

    Raises:
        ValueError: if `game` is no preset, no state is given, or the past of one is not known.
    """
    tables = [one(state) for state in states]
    if game not in PRESETS:
        raise ValueError(f"{show(game)} is not a game; the games are: {', '.join(PRESETS)}")
    if not tables:
        raise ValueError("states is empty: a record holds at least the deal being played")
    last = tables[-1]
    if totals is None:
        totals = last.totals[: rules.num_players]
    if winners is None:
        winners = cards_of(int(last.winners)) if last.phase == MATCH_OVER else ()
    if illegal is not None:
        action = illegal["action"]
        if not isinstance(action, str):
            action = action_name(int(action), rules.rank_order)
        illegal = {"seat": int(illegal["seat"]), "action": action}
    return {
        "format": FORMAT,
        "game": game,
        "rules": rules.to_dict(),
        "seed": int(last.seed),
        "episode": int(last.episode),
        "deals": [_deal_of(rules, table) for table in tables],
        "totals": [int(total) for total in totals],
        "winners": sorted(int(seat) for seat in winners),
        "illegal": illegal,
    }


def one(state: Any) -> Any:
    """Return the record in an array of one, or a record as it is."""
    return state.reshape(1)[0] if isinstance(state, np.ndarray) else state


def _points(rules: Rules, table: Any) -> list[int]:
    return [int(deal_points(rules.record, table, seat)) for seat in range(rules.num_players)]


def calls_of(rules: Rules, table: Any) -> list[int]:
    """Return the announcements of a deal so far, in order."""
    calls = [PASS] * int(table.num_calls)
    if table.general != NOBODY:
        calls[-1] = GENERAL
    return calls


def _past_is_known(rules: Rules, table: Any) -> bool:
    """Return whether a state knows every play of its deal; one made from a position may not."""
    played = sum(int(cards).bit_count() for cards in table.played[: rules.num_players])
    return played == int(table.num_plays)


def _deal_of(rules: Rules, table: Any) -> dict[str, Any]:
    """Return the part of a record that tells one deal."""
    players, order = rules.num_players, rules.rank_order
    if not _past_is_known(rules, table):
        raise ValueError("a state does not know all plays of its deal, and a record needs them")
    history = [action_name(int(card), order) for card in table.history[: int(table.num_plays)]]
    seats = seats_of_plays(rules, table)
    hands = [int(table.hand[seat]) | int(table.played[seat]) for seat in range(players)]
    return {
        "dealer": int(table.dealer),
        "leader": int(table.leader),
        "turned": None if table.turned == NO_CARD else action_name(int(table.turned), order),
        "hands": [set_names(hand, order) for hand in hands],
        "calls": [
            [(int(table.leader) + i) % players, action_name(action, order)]
            for i, action in enumerate(calls_of(rules, table))
        ],
        "plays": [[seat, name] for seat, name in zip(seats, history, strict=True)],
        "tricks": [int(tricks) for tricks in table.tricks[:players]],
        "points": _points(rules, table),
    }


def read_record(record: Mapping[str, Any]) -> Replayed:
    """Check a record by playing it on the engine, from its hands.

    Args:
        record: as `make_record` makes it, or as JSON gives it back.

    Returns:
        the game, and the state at the end of each deal.

    Raises:
        RecordError: if it is not of this format or does not follow the rules: one line that
            names the deal and the play.
    """
    check = Check("", RecordError)
    check.keys(record, RECORD_KEYS)
    if type(record["format"]) is not int or record["format"] != FORMAT:
        check.fail(f"format is {show(record['format'])}, this version reads {FORMAT}")
    game = record["game"]
    if not isinstance(game, str) or game not in PRESETS:
        check.fail(f"game is {show(game)}, the games are: {', '.join(PRESETS)}")
    rules = _read_rules(record["rules"], check.at("rules"))
    check = Check("", RecordError, rules.rank_order)
    deals = check.items(record["deals"], "deals")
    check.integer(len(deals), 1, MAX_DEAL + 1, "the number of deals")
    check.integer(record["seed"], 0, MAX_SEED, "seed")
    check.integer(record["episode"], 0, MAX_EPISODE, "episode")
    if rules.count == "deal" or len(deals) > 1:
        return _replay(record, rules, rules, check)
    # An episode of one deal goes on where a match would end in the middle of it.
    try:
        return _replay(record, rules, rules, check)
    except RecordError as error:
        try:
            return _replay(record, rules, rules.replace(count="deal"), check)
        except RecordError:
            raise error from None


def _replay(record: Mapping[str, Any], rules: Rules, played_by: Rules, check: Check) -> Replayed:
    """Play the deals of a record and compare its results.

    `played_by` is `rules`, or the rules by which an episode of one deal is played.
    """
    deals = record["deals"]
    states = np.zeros(len(deals), STATE)
    states["seed"] = record["seed"]
    states["episode"] = record["episode"]
    for number, deal in enumerate(deals):
        table = states[number]
        if number > 0:
            if states[number - 1].phase == MATCH_OVER:
                check.fail(f"deal {number + 1}: the match was over before it")
            states[number] = states[number - 1]
        _replay_deal(deal, played_by, table, number, check.at(f"deal {number + 1}"))
        if number + 1 < len(deals) and table.phase in (CALLS, PLAYS):
            of = rules.num_players * (rules.hand_size or 0)
            check.fail(
                f"deal {number + 1}: only {table.num_plays} of {of} plays, yet another deal follows"
            )
    illegal = _read_illegal(record["illegal"], rules, table, check.at(f"deal {len(deals)}"))
    _compare(record["totals"], table.totals, rules, "totals", check)
    winners = [
        check.integer(seat, 0, rules.num_players - 1, "one of winners")
        for seat in check.items(record["winners"], "winners")
    ]
    of_match = cards_of(int(table.winners)) if table.phase == MATCH_OVER else []
    single_deal = played_by is not rules
    if single_deal or winners != of_match:
        over = len(deals) == 1 and table.phase in (DEAL_OVER, MATCH_OVER)
        of_deal = deal_winners(rules, table) if over else []
        if winners != of_deal:
            check.fail(
                f"winners are {winners}, by the plays {of_match}"
                + (f", and {of_deal} where the deal is the episode" if over else "")
            )
        single_deal = True
    return Replayed(record["game"], rules, states, tuple(winners), illegal, single_deal)


def _replay_deal(deal: Any, rules: Rules, table: Any, number: int, check: Check) -> None:
    """Play one deal on `table`, which holds what the deal before left (zeros at the first)."""
    check.keys(deal, DEAL_KEYS)
    players = rules.num_players
    dealer = check.integer(deal["dealer"], 0, players - 1, "dealer")
    if number == 0:
        begin_deal(rules.record, table, dealer, int(first_leader(rules.record, dealer)))
    else:
        # This also deals from the seed, which `set_hands` undoes.
        next_deal(rules.record, table)
    for name, right in (("dealer", int(table.dealer)), ("leader", int(table.leader))):
        if check.integer(deal[name], 0, players - 1, name) != right:
            check.fail(f"{name} is player_{deal[name]}, by the rules it is player_{right}")
    hands, turned = _read_hands(deal, rules, check)
    set_hands(rules.record, table, hands, turned)
    for phase, what in ((CALLS, "call"), (PLAYS, "play")):
        for i, entry in enumerate(check.items(deal[f"{what}s"], f"{what}s")):
            _replay_action(entry, rules, table, phase, check.within(f"{what} {i + 1}"))
    _compare(deal["tricks"], table.tricks, rules, "tricks", check)
    _compare(deal["points"], _points(rules, table), rules, "points", check)


def _replay_action(entry: Any, rules: Rules, table: Any, phase: int, check: Check) -> None:
    """Check one call or play, `[seat, name]`, and apply it."""
    seat, name = check.items(entry, f"a {'call' if phase == CALLS else 'play'}", 2)
    check.integer(seat, 0, rules.num_players - 1, "the seat")
    action = check.action(name)
    if (action < NUM_CARDS) != (phase == PLAYS):
        check.fail(f"{name} is not {'an announcement' if phase == CALLS else 'a card'}")
    play_checked(rules, table, phase, seat, action, check)


def play_checked(
    rules: Rules, table: Any, phase: int, seat: int, action: int, check: Check
) -> None:
    """Apply an action if the table is in `phase`, the seat is to move and the rules allow it."""
    refused = f"player_{seat} may not {'say' if phase == CALLS else 'play'} {check.name(action)}"
    if table.phase != phase:
        check.fail(f"{refused}: {_WHY_NOT[int(table.phase)]}")
    if seat != table.turn:
        check.fail(f"{refused}: player_{table.turn} is to move")
    legal = int(legal_actions(rules.record, table))
    if not legal >> action & 1:
        check.fail(f"{refused}; legal here: {' '.join(set_names(legal, check.rank_order))}")
    play(rules.record, table, action)


_WHY_NOT = {
    CALLS: "the announcements are not over",
    PLAYS: "there are no more announcements",
    DEAL_OVER: "the deal is over",
    MATCH_OVER: "the match is over",
}


def _read_hands(deal: Mapping[str, Any], rules: Rules, check: Check) -> tuple[np.ndarray, int]:
    """Return the hands as sets and the shown card, after checking that they can be dealt."""
    pack, seen = int(rules.record.pack), 0
    hands = np.zeros(rules.num_players, np.uint64)
    for seat, names in enumerate(check.items(deal["hands"], "hands", rules.num_players)):
        whose = f"the hand of player_{seat}"
        cards = [check.card(name) for name in check.items(names, whose, rules.hand_size)]
        for card in cards:
            if not pack >> card & 1:
                check.fail(f"{whose} holds {check.name(card)}, which is not in the pack")
            if seen >> card & 1:
                check.fail(f"{check.name(card)} was dealt twice")
            seen |= 1 << card
        if cards != sorted(cards):
            check.fail(f"{whose} is not in the order of the cards")
        hands[seat] = card_set(cards)
    turned = deal["turned"]
    if rules.trump == "none":
        if turned is not None:
            check.fail(f"turned is {show(turned)}, but this game has no trump card")
        return hands, NO_CARD
    card = check.within("turned").card(turned)
    if rules.trump == "last_card":
        if not int(hands[deal["dealer"]]) >> card & 1:
            check.fail(f"turned is {turned}, which the dealer does not hold")
    elif seen >> card & 1:
        check.fail(f"turned is {turned}, which is in a hand")
    elif not pack >> card & 1:
        check.fail(f"turned is {turned}, which is not in the pack")
    return hands, card


def _read_illegal(given: Any, rules: Rules, table: Any, check: Check) -> tuple[int, str] | None:
    """Check that an illegal action is one, and of the seat to move."""
    if given is None:
        return None
    check = check.within("illegal")
    check.keys(given, ("seat", "action"))
    seat = check.integer(given["seat"], 0, rules.num_players - 1, "seat")
    name = given["action"]
    if table.phase in (DEAL_OVER, MATCH_OVER):
        check.fail(f"player_{seat} could not act, the deal is over")
    if seat != table.turn:
        check.fail(f"player_{seat} could not act, player_{table.turn} is to move")
    if not _is_number_of_no_action(name):
        legal = int(legal_actions(rules.record, table))
        if legal >> check.action(name) & 1:
            check.fail(f"{name} is legal for player_{seat} here")
    return seat, name


def _is_number_of_no_action(name: Any) -> bool:
    """Return whether `name` is what `action_name` gives for a number outside the numbering."""
    if not isinstance(name, str) or len(name) > 20 or not name.isascii():
        return False
    return name.removeprefix("-").isdigit() and action_name(int(name), "?" * 13) == name


def _read_rules(given: Any, check: Check) -> Rules:
    """Return the rules of a record, all fields as `Rules.to_dict` gives them."""
    check.keys(given, [field.name for field in fields(Rules)])
    for name, value in given.items():
        values: Sequence[Any] = [value]
        if name in ("pack", "jack_penalties"):
            values = check.items(value, name)
        for item in values:
            if not (item is None or type(item) in (str, int, bool)) or len(show(item)) > 40:
                check.fail(f"{name} is {show(value)}")
    for card in given["pack"]:
        check.within("pack").card(card)
    try:
        rules = Rules.from_dict(given)
    except ValueError as error:
        check.fail(str(error))
    for name, value in rules.to_dict().items():
        if given[name] != value:
            check.fail(f"{name} is {show(given[name])}, it must be {show(value)}")
    return rules


def _compare(given: Any, found: Iterable[Any], rules: Rules, what: str, check: Check) -> None:
    """Check results that a record states, one a seat, against those of the engine."""
    told = check.integers(given, what, rules.num_players)
    right = [int(n) for n in found][: len(told)]
    if told != right:
        check.fail(f"{what} are {told}, by the plays {right}")

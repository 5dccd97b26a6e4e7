"""What is to be seen of a table, free of how it is drawn: every renderer draws a `Scene`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from valety_env.cards import (
    GENERAL,
    NO_CARD,
    NUM_RANKS,
    PASS,
    SUITS,
    card_name,
    cards_of,
)
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    NOBODY,
    PLAYS,
    deal_points,
    seats_of_plays,
    shown_card_is_held,
)
from valety_env.rules import PRESETS, Rules, make_rules

PHASES = {CALLS: "calls", PLAYS: "plays", DEAL_OVER: "deal over", MATCH_OVER: "match over"}


@dataclass(frozen=True)
class SeatScene:
    """One seat of a scene.

    Attributes:
        name: the agent's name, `player_0` and so on.
        hand: names of the cards that can be seen, by suit, in each the strongest first.
        hidden: the number of cards held besides those.
        tricks: tricks taken in this deal.
        jacks: suit letters of the jacks captured in this deal.
        points: deal points so far; charges in a game with charges alone.
        total: points or charges of the match; a finished deal is in it.
        lacks: suit letters of the suits it has shown to lack.
        call: `"pass"`, `"general"` or None.
    """

    name: str
    hand: tuple[str, ...]
    hidden: int
    tricks: int
    jacks: str
    points: int
    total: int
    lacks: str
    call: str | None


@dataclass(frozen=True)
class TrickScene:
    """A finished trick: (seat, card name) in the order of play, and the seat that took it."""

    plays: tuple[tuple[int, str], ...]
    winner: int


@dataclass(frozen=True)
class Scene:
    """All that is to be seen of a table; plain values, equal scenes look alike.

    Attributes:
        title: the name of the game.
        suits: letters of the suits in the pack.
        lowest_wins: whether points are charges.
        viewer: the seat whose hand alone is shown, or None for all hands.
        deal: the number of the deal, from 1.
        hand_size: tricks in a deal.
        target: see `Rules`, as `loss_limit`, `num_deals` and `max_deals`.
        loss_limit: see `target`.
        num_deals: see `target`.
        max_deals: see `target`.
        dealer: a seat.
        leader: the seat that leads the first trick.
        trump: a suit letter, or None.
        turned: the name of the card shown as trump, or None.
        turned_by_dealer: whether that card is one of the dealer's hand (P3).
        phase: `"calls"`, `"plays"`, `"deal over"` or `"match over"`.
        turn: the seat to act, or None.
        general: the seat that announced, or None.
        finished_tricks: tricks finished in this deal.
        table: (seat, card name) of the current trick, in the order of play.
        last_trick: the trick finished last, at the start of a deal that of the deal before.
        last_points: deal points of the deal before, or None.
        winners: seats that win or share the match; empty before its end.
        note: what is said in place of whose turn it is, or "".
        seats: one for each player.
    """

    title: str
    suits: str
    lowest_wins: bool
    viewer: int | None
    deal: int
    hand_size: int
    target: int | None
    loss_limit: int | None
    num_deals: int | None
    max_deals: int | None
    dealer: int
    leader: int
    trump: str | None
    turned: str | None
    turned_by_dealer: bool
    phase: str
    turn: int | None
    general: int | None
    finished_tricks: int
    table: tuple[tuple[int, str], ...]
    last_trick: TrickScene | None
    last_points: tuple[int, ...] | None
    winners: tuple[int, ...]
    note: str
    seats: tuple[SeatScene, ...]

    def headline(self) -> str:
        """Return the game, the deal and what ends the match, in one line."""
        if self.max_deals == 1:
            parts = ["a single deal"]
        elif self.num_deals is not None and self.deal <= self.num_deals:
            parts = [f"deal {self.deal} of {self.num_deals}"]
        elif self.num_deals is not None:
            parts = [f"deal {self.deal}, after a tie"]
        elif self.max_deals is not None:
            parts = [f"deal {self.deal} of at most {self.max_deals}"]
        else:
            parts = [f"deal {self.deal}"]
        if self.max_deals != 1 and self.target is not None:
            parts.append(f"first to {self.target}")
        if self.max_deals != 1 and self.loss_limit is not None:
            parts.append(f"until someone is charged {self.loss_limit}")
        return ", ".join([self.title, *parts])

    def status(self) -> str:
        """Return who is to do what, or how it ended, in one line."""
        if self.note:
            return self.note
        if self.phase == "match over":
            names = [self.seats[seat].name for seat in self.winners]
            if len(names) == 1:
                return f"the match is over: {names[0]} wins"
            return f"the match is over: {', '.join(names[:-1])} and {names[-1]} share the win"
        if self.turn is None:
            return "the deal is over"
        name = self.seats[self.turn].name
        if self.phase == "calls":
            return f"{name} to announce"
        act = "play" if self.table else "lead"
        return f"trick {self.finished_tricks + 1} of {self.hand_size}: {name} to {act}"


def scene(
    rules: Rules,
    state: Any,
    last_deal: Any = None,
    *,
    seat: int | None = None,
    title: str | None = None,
    note: str = "",
) -> Scene:
    """Return what is to be seen of a table.

    Args:
        rules: the rules of the table.
        state: one `STATE` record, in any phase; not kept.
        last_deal: the `STATE` record of the deal before at its end, or None; gives its points, and
            the last trick that is shown until the new deal has one.
        seat: None shows all hands, as a spectator behind the players sees them. With a seat, its
            hand alone is shown, and the scene depends on nothing that this seat does not know.
        title: the name of the game; None finds it from the rules.
        note: said in place of whose turn it is, as the reason why an episode ended early.

    Returns:
        the scene; it does not change when the state does.

    Raises:
        ValueError: for a seat that the table does not have.
    """
    players = rules.num_players
    if seat is not None and not 0 <= seat < players:
        raise ValueError(f"seat={seat}: the table has seats 0…{players - 1}, or None for all hands")
    assert rules.hand_size is not None
    record = rules.record
    plays = _plays(rules, state)
    in_trick = len(plays) % players
    finished = len(plays) - in_trick
    last_trick = None
    if finished:
        # The seat to act after a trick is the one that took it; once it has led, the first to play.
        winner = plays[finished][0] if in_trick else int(state.turn)
        last_trick = _trick(plays[finished - players : finished], winner)
    elif last_deal is not None:
        before = _plays(rules, last_deal)
        # At the end of a deal too.
        last_trick = _trick(before[-players:], int(last_deal.turn))
    phase = int(state.phase)
    general = int(state.general)
    over = phase in (DEAL_OVER, MATCH_OVER)
    turned = int(state.turned)
    return Scene(
        title=game_title(rules) if title is None else title,
        suits="".join(s for s in SUITS if any(card[1] == s for card in rules.pack)),
        lowest_wins=rules.lowest_wins,
        viewer=seat,
        deal=int(state.deal) + 1,
        hand_size=rules.hand_size,
        target=rules.target,
        loss_limit=rules.loss_limit,
        num_deals=rules.num_deals,
        max_deals=rules.max_deals,
        dealer=int(state.dealer),
        leader=general if rules.general_leads and general != NOBODY else int(state.leader),
        trump=SUITS[turned // NUM_RANKS] if turned != NO_CARD else None,
        turned=card_name(turned, rules.rank_order) if turned >= 0 else None,
        turned_by_dealer=rules.trump == "last_card",
        phase=PHASES[phase],
        turn=None if over or note else int(state.turn),
        general=general if general != NOBODY else None,
        finished_tricks=finished // players,
        table=plays[finished:],
        last_trick=last_trick,
        last_points=None
        if last_deal is None
        else tuple(int(deal_points(record, last_deal, i)) for i in range(players)),
        winners=tuple(i for i in range(players) if int(state.winners) >> i & 1),
        note=note,
        seats=tuple(_seat(rules, state, i, seat) for i in range(players)),
    )


@lru_cache
def game_title(rules: Rules) -> str:
    """Return the name of the game, or of its family if options were changed."""
    for name in PRESETS:
        try:
            if make_rules(name, num_players=rules.num_players) == rules:
                return name
        except ValueError:
            continue  # a game that so many cannot play
    return ("polignac" if rules.lowest_wins else "valety") + " (changed rules)"


def _seat(rules: Rules, state: Any, seat: int, viewer: int | None) -> SeatScene:
    held = cards_of(state.hand[seat])
    seen = held
    if viewer is not None and seat != viewer:
        # What a viewer knows of another hand: its size, and the dealer's shown card (P3).
        shown = seat == int(state.dealer) and shown_card_is_held(rules.record, state)
        seen = [int(state.turned)] if shown else []
    called = (seat - int(state.leader)) % rules.num_players < int(state.num_calls)
    return SeatScene(
        name=f"player_{seat}",
        hand=tuple(card_name(card, rules.rank_order) for card in sorted(seen, key=_by_suit)),
        hidden=len(held) - len(seen),
        tricks=int(state.tricks[seat]),
        jacks=_suits(state.jacks[seat]),
        points=int(deal_points(rules.record, state, seat)),
        total=int(state.totals[seat]),
        lacks=_suits(state.voids[seat]),
        call=card_name(GENERAL if seat == int(state.general) else PASS) if called else None,
    )


def _by_suit(card: int) -> tuple[int, int]:
    return card // NUM_RANKS, -card


def _suits(bits: Any) -> str:
    return "".join(letter for i, letter in enumerate(SUITS) if int(bits) >> i & 1)


def _plays(rules: Rules, state: Any) -> tuple[tuple[int, str], ...]:
    """Return (seat, card name) of every play of a deal."""
    cards = state.history[: int(state.num_plays)].tolist()
    names = [card_name(card, rules.rank_order) for card in cards]
    return tuple(zip(seats_of_plays(rules, state), names, strict=True))


def _trick(plays: tuple[tuple[int, str], ...], winner: int) -> TrickScene | None:
    return TrickScene(plays, winner) if plays else None

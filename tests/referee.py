"""Valety and Polignac a second time: slow, plain, and written from the rules page alone.

The fast engine is compared with this referee at every play, so the two must share nothing: no
module of the package is imported here, cards are names such as "TS" (the ten of spades), hands are
lists, and every step is spelled out beside the clause it follows (V… for Valety, P… for Polignac).

A match is driven in two moves: `Referee.deal` starts a deal with given hands, and `Referee.act`
makes one call or one play. Where the game stands can be read from the attributes at any time.
"""

import random
from typing import Any

SUITS = ["S", "C", "D", "H"]


class Referee:
    """One match of either game, followed from the first deal to the winner.

    Attributes:
        phase: "waiting for a deal", "calls", "plays" or "over".
        deal_number: the deal in progress, or the last one played, counted from 0; -1 before the
            first deal.
        dealer: the seat that dealt this deal; None before the first deal.
        leader: the seat that leads to the first trick of this deal as it stands before the
            announcements (with `general_leads` a general leads instead); None before the first
            deal.
        turned: the turned-up card, or the dealer's shown card, or None.
        trump: the suit letter of the trump suit, or None.
        hands: for each seat the cards it now holds.
        calls: (seat, "pass" or "general") for every announcement of this deal, in order.
        plays: (seat, card) for every play of this deal, in order.
        trick_winners: the seat that took each trick of this deal, in order.
        tricks: for each seat the number of tricks taken in this deal.
        points: for each seat its points in this deal so far. In Polignac they are charges; what a
            general costs is added when the deal is over.
        general: the seat that announced a general in this deal, or None.
        totals: for each seat its points in the match. In Polignac they are charges.
        deal_winner: the winner of the last finished deal (V6, P5); None before there is one.
        winners: the seats that won the match, in order; empty until it is over.
    """

    def __init__(self, rules: dict[str, Any], first_dealer: int) -> None:
        """Prepare a match in which nothing has been dealt yet.

        Args:
            rules: every field of the rules, by name; taken as given.
            first_dealer: the seat that deals first, drawn by lot elsewhere (V3, P4).
        """
        self.rules = rules
        self.first_dealer = first_dealer
        self.num_players: int = rules["num_players"]
        self.phase = "waiting for a deal"
        self.deal_number = -1
        self.dealer: int | None = None
        self.leader: int | None = None
        self.turned: str | None = None
        self.trump: str | None = None
        self.hands: list[list[str]] = [[] for _ in range(self.num_players)]
        self.calls: list[tuple[int, str]] = []
        self.plays: list[tuple[int, str]] = []
        self.trick_winners: list[int] = []
        self.tricks = [0] * self.num_players
        self.points = [0] * self.num_players
        self.general: int | None = None
        self.totals = [0] * self.num_players
        self.deal_winner: int | None = None
        self.winners: list[int] = []

    def next_dealer(self) -> int:
        """Return the seat that deals the next deal: the seats deal in turn (V3, P4)."""
        return (self.first_dealer + self.deal_number + 1) % self.num_players

    def deal(self, hands: list[list[str]], turned: str | None) -> None:
        """Start the next deal.

        Args:
            hands: for each seat the cards dealt to it.
            turned: the turned-up card (V2), the dealer's shown card (P3), or None.

        Raises:
            ValueError: a deal is in progress, or the match is over.
        """
        if self.phase != "waiting for a deal":
            raise ValueError(f"no deal can start now: {self.phase}")

        # V3, P4: the first dealer by lot, then each in turn.
        self.dealer = self.next_dealer()
        self.deal_number = self.deal_number + 1

        # V4, V5, P5: who leads.
        if self.rules["first_lead"] == "dealer":
            self.leader = self.dealer
        elif self.rules["first_lead"] == "left_of_dealer":
            self.leader = self._after(self.dealer)
        elif self.deal_number == 0:
            self.leader = self.dealer
        else:
            self.leader = self.deal_winner

        # V2, P3: the suit of the turned-up or shown card is trump.
        self.turned = turned
        if self.rules["trump"] == "none":
            self.trump = None
        else:
            self.trump = turned[1]

        self.hands = [list(hand) for hand in hands]
        self.calls = []
        self.plays = []
        self.trick_winners = []
        self.tricks = [0] * self.num_players
        self.points = [0] * self.num_players
        self.general = None

        # P6: announcements come before the first lead, where the rules have them.
        if self.rules["general"]:
            self.phase = "calls"
        else:
            self.phase = "plays"

    def to_move(self) -> int | None:
        """Return the seat that must act now, or None when nobody can."""
        if self.phase == "calls":
            # P6: in turn, from the one who will lead.
            if not self.calls:
                return self.leader
            last_caller, _ = self.calls[-1]
            return self._after(last_caller)

        if self.phase == "plays":
            trick = self._cards_on_the_table()
            if trick:
                # P4: play goes clockwise.
                last_player, _ = trick[-1]
                return self._after(last_player)
            if self.trick_winners:
                # V9: the winner of a trick leads to the next.
                return self.trick_winners[-1]
            # P7: a general changes the first lead only where the rules say so.
            if self.general is not None and self.rules["general_leads"]:
                return self.general
            return self.leader

        return None

    def legal(self) -> list[str]:
        """Return what the seat to move may do: calls or cards; empty when nobody can act."""
        if self.phase == "calls":
            return ["pass", "general"]

        if self.phase == "plays":
            hand = self.hands[self.to_move()]
            trick = self._cards_on_the_table()
            if trick:
                # V7, P8: a seat that holds the suit led must play it.
                _, card_led = trick[0]
                cards_of_the_suit_led = [card for card in hand if card[1] == card_led[1]]
                if cards_of_the_suit_led:
                    return cards_of_the_suit_led
            # V8: otherwise any card; a leader may lead any card as well.
            return list(hand)

        return []

    def act(self, what: str) -> None:
        """Let the seat to move make a call or play a card.

        Args:
            what: "pass", "general" or a card.

        Raises:
            ValueError: the seat to move may not do this now, or nobody can act.
        """
        if what not in self.legal():
            raise ValueError(f"seat {self.to_move()} may not do {what}; legal: {self.legal()}")
        if self.phase == "calls":
            self._call(what)
        else:
            self._play(what)

    def _call(self, word: str) -> None:
        """Hear one announcement (P6)."""
        seat = self.to_move()
        self.calls.append((seat, word))
        if word == "general":
            # P6: the first to say it ends the announcements.
            self.general = seat
            self.phase = "plays"
        elif len(self.calls) == self.num_players:
            # P6: nobody said it, a normal deal.
            self.phase = "plays"

    def _play(self, card: str) -> None:
        """Put down one card, and close the trick, the deal and the match when it is time."""
        seat = self.to_move()
        self.hands[seat].remove(card)
        self.plays.append((seat, card))

        plays_in_full_tricks = self.num_players * (len(self.trick_winners) + 1)
        if len(self.plays) == plays_in_full_tricks:
            self._close_trick()

    def _close_trick(self) -> None:
        """Give the trick on the table to its winner, and count it."""
        trick = self._cards_on_the_table()
        winner = self._winner_of(trick)
        worth = self._worth_of(trick)
        self.trick_winners.append(winner)
        self.tricks[winner] = self.tricks[winner] + 1
        self.points[winner] = self.points[winner] + worth

        # V12 with count="trick": points reach the totals at each trick.
        if self.rules["count"] == "trick":
            self.totals[winner] = self.totals[winner] + worth

        # P12: a deal is played until the hands are empty, whatever has become of a general.
        if all(hand == [] for hand in self.hands):
            self._close_deal()
        elif self.rules["count"] == "trick" and self._target_is_reached():
            # V12 with count="trick": the match can end before the deal does.
            if self._tie_allows_an_end():
                self._close_match()

    def _close_deal(self) -> None:
        """Settle a general, add the deal to the totals, and see whether the match is over."""
        if self.general is not None:
            self._settle_general()

        # V12: deal points are added when the deal is over, unless each trick has already been.
        if self.rules["count"] == "deal":
            for seat in range(self.num_players):
                self.totals[seat] = self.totals[seat] + self.points[seat]

        self.deal_winner = self._winner_of_the_deal()

        if self._is_the_last_deal():
            self._close_match()
        else:
            self.phase = "waiting for a deal"

    def _close_match(self) -> None:
        """End the match: the best total wins, several share (V13, P14)."""
        self.winners = self._seats_with_the_best_total()
        self.phase = "over"

    def _winner_of(self, trick: list[tuple[int, str]]) -> int:
        """Return the seat that takes a full trick (V9, P8)."""
        # V9: the highest trump in it, or, with none, the highest card of the suit led.
        _, card_led = trick[0]
        candidates = [(seat, card) for seat, card in trick if card[1] == self.trump]
        if not candidates:
            candidates = [(seat, card) for seat, card in trick if card[1] == card_led[1]]

        best_seat, best_card = candidates[0]
        for seat, card in candidates:
            if self._strength_of(card) > self._strength_of(best_card):
                best_seat, best_card = seat, card
        return best_seat

    def _strength_of(self, card: str) -> int:
        """Return how high a card is in its suit: the place of its rank in `rank_order`."""
        return self.rules["rank_order"].index(card[0])

    def _worth_of(self, trick: list[tuple[int, str]]) -> int:
        """Return what a trick brings its winner: points (V10, V11), or charges (P9)."""
        penalties = 0
        for _, card in trick:
            if card[0] == "J":
                penalties = penalties + self.rules["jack_penalties"][SUITS.index(card[1])]

        if self.rules["scoring"] == "tricks":
            # V10, V11: 1 for the trick, less the jacks in it.
            return 1 - penalties
        # P9: only penalty points count.
        return penalties

    def _settle_general(self) -> None:
        """Turn the jacks charged in a deal with a general into its full charges (P10, P11)."""
        charge = self.rules["general_charge"]
        general_took_every_trick = all(winner == self.general for winner in self.trick_winners)
        if general_took_every_trick:
            # P10: all others are charged, the general nothing, not even his jacks.
            for seat in range(self.num_players):
                if seat == self.general:
                    self.points[seat] = 0
                else:
                    self.points[seat] = charge
        else:
            # P11: the general pays on top of his jacks; the others pay for their jacks.
            self.points[self.general] = self.points[self.general] + charge

    def _winner_of_the_deal(self) -> int:
        """Return the one seat that wins the deal just finished (V6, P5)."""
        everyone = list(range(self.num_players))
        if self.rules["scoring"] == "tricks":
            # V6: most deal points, then most tricks.
            most_points = max(self.points)
            tied = [seat for seat in everyone if self.points[seat] == most_points]
            most_tricks = max(self.tricks[seat] for seat in tied)
            tied = [seat for seat in tied if self.tricks[seat] == most_tricks]
        else:
            # P5: fewest penalty points.
            fewest = min(self.points)
            tied = [seat for seat in everyone if self.points[seat] == fewest]

        # V6, P5: the new dealer if he is one of them, else the first of them clockwise after him.
        seat = self.next_dealer()
        while seat not in tied:
            seat = self._after(seat)
        return seat

    def _is_the_last_deal(self) -> bool:
        """Return whether the match is over now that a deal is finished."""
        deals_played = self.deal_number + 1

        # max_deals ends the match whatever the score is; equal totals share.
        if self.rules["max_deals"] is not None and deals_played >= self.rules["max_deals"]:
            return True

        # V12: someone has the target.
        if self.rules["target"] is not None and self._target_is_reached():
            return self._tie_allows_an_end()

        # P13: the agreed number of deals has been played.
        if self.rules["num_deals"] is not None and deals_played >= self.rules["num_deals"]:
            return self._tie_allows_an_end()

        # loss_limit: someone has been charged that much.
        if self.rules["loss_limit"] is not None and max(self.totals) >= self.rules["loss_limit"]:
            return self._tie_allows_an_end()

        return False

    def _target_is_reached(self) -> bool:
        """Return whether someone's total is the target or more (V12)."""
        return max(self.totals) >= self.rules["target"]

    def _tie_allows_an_end(self) -> bool:
        """Return whether the match may end at these totals (V13, P14).

        A single best total always may. A shared one may under tie="draw"; under tie="play_on" it
        calls for another deal.
        """
        if len(self._seats_with_the_best_total()) == 1:
            return True
        return self.rules["tie"] == "draw"

    def _seats_with_the_best_total(self) -> list[int]:
        """Return the seats with the highest total (V13), or the lowest charges (P14)."""
        if self.rules["scoring"] == "tricks":
            best = max(self.totals)
        else:
            best = min(self.totals)
        return [seat for seat in range(self.num_players) if self.totals[seat] == best]

    def _cards_on_the_table(self) -> list[tuple[int, str]]:
        """Return the plays of the trick in progress."""
        return self.plays[self.num_players * len(self.trick_winners) :]

    def _after(self, seat: int) -> int:
        """Return the next seat clockwise (P4)."""
        return (seat + 1) % self.num_players


def shuffled_deal(
    rules: dict[str, Any], rng: random.Random, dealer: int
) -> tuple[list[list[str]], str | None]:
    """Shuffle the pack and deal it as the rules say (V1, V2, P3, P4).

    Args:
        rules: every field of the rules, by name.
        rng: where the shuffle comes from.
        dealer: the seat that deals.

    Returns:
        For each seat its cards, in the order dealt, and the card to give to `Referee.deal`.
    """
    num_players = rules["num_players"]
    pack = list(rules["pack"])
    rng.shuffle(pack)

    # V1, P4: one card at a time, from the player after the dealer.
    hands: list[list[str]] = [[] for _ in range(num_players)]
    seat = dealer
    last_dealt = None
    for _ in range(num_players * rules["hand_size"]):
        seat = (seat + 1) % num_players
        last_dealt = pack.pop(0)
        hands[seat].append(last_dealt)

    if rules["trump"] == "turned":
        # V2: the next card is turned up.
        return hands, pack.pop(0)
    if rules["trump"] == "last_card":
        # P3: the last card dealt, which is the dealer's, is shown.
        return hands, last_dealt
    return hands, None

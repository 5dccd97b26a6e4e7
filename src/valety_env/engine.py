"""How the game moves: dealing, legal cards, playing, scoring. The only place that knows.

A table is one `STATE` record. Kernels work on one record in place, allocate nothing and draw no
random numbers of their own: a deal follows from the record's seed, episode and number of the deal.
All seats are absolute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from valety_env._intrinsics import record_head
from valety_env._jit import inlined, int64, kernel
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NO_CARD,
    NO_SUIT,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    PASS,
    bit,
    count,
    suit_cards,
)
from valety_env.rng import below, mix
from valety_env.rules import (
    COUNT_TRICK,
    LEAD_DEALER,
    LEAD_LEFT_OF_DEALER,
    MAX_PLAYERS,
    SCORING_TRICKS,
    TIE_DRAW,
    TRUMP_LAST_CARD,
    TRUMP_NONE,
    TRUMP_TURNED,
    Rules,
)

MAX_TRICKS = NUM_CARDS // 2
NOBODY = -1

# Phases of a table, in the order in which a deal goes through them.
CALLS, PLAYS, DEAL_OVER, MATCH_OVER = range(4)

# What everybody knows of a table: the first fields of STATE and of VIEW, in the same places, so
# that one copy of PUBLIC_SIZE bytes shows all of it and nothing else. `history[i]` is the card of
# play i; whose it was tells `played`. The calls are all passes, in turn from `leader`, except the
# last if there is a `general`.
PUBLIC_FIELDS = [
    ("played", np.uint64, (MAX_PLAYERS,)),
    ("totals", np.int32, (MAX_PLAYERS,)),
    ("deal", np.uint32),
    ("history", np.uint8, (NUM_CARDS,)),
    ("hand_sizes", np.uint8, (MAX_PLAYERS,)),
    ("table", np.int8, (MAX_PLAYERS,)),  # each seat's card in the current trick, or NO_CARD
    ("tricks", np.uint8, (MAX_PLAYERS,)),
    ("jacks", np.uint8, (MAX_PLAYERS,)),  # captured jacks, bit = suit
    ("voids", np.uint8, (MAX_PLAYERS,)),  # suits a seat has shown to lack, bit = suit
    ("phase", np.uint8),
    ("dealer", np.uint8),
    ("leader", np.uint8),  # leads the deal, before any announcement is heard
    ("turn", np.uint8),  # the seat to act
    ("turned", np.int8),  # the card shown, or NO_CARD
    ("led", np.int8),  # the suit led in the current trick, or NO_SUIT
    ("general", np.int8),  # the seat that announced, or NOBODY
    ("num_calls", np.uint8),
    ("num_plays", np.uint8),
    ("best_seat", np.int8),  # who is winning the trick, or NOBODY
    ("best_card", np.int8),  # with what, or NO_CARD
]
PUBLIC = np.dtype((np.record, np.dtype(PUBLIC_FIELDS, align=True)))
public_of = record_head(PUBLIC)
PUBLIC_SIZE = np.dtype(PUBLIC_FIELDS).itemsize

# One table, 256 bytes: four lines of a processor's cache.
STATE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                *PUBLIC_FIELDS,
                ("winners", np.uint8),  # of the match when it is over, bit = seat
                ("episode", np.uint32),
                ("seed", np.uint64),
                ("hand", np.uint64, (MAX_PLAYERS,)),
            ],
            align=True,
        ),
    )
)


@inlined
def follow(hand: np.uint64, led: int) -> np.uint64:
    """Return the cards of `hand` that may follow a lead of suit `led` (V7, V8)."""
    same = hand & suit_cards(led)
    return same if same != EMPTY else hand


@inlined
def tricks_before(rules: np.record, plays: int) -> int:
    """Return `plays` // players by a multiplication, which takes a third of a division's time."""
    return plays * int64(rules.reciprocal) >> 16


@inlined
def suits_of_jacks(rules: np.record, cards: np.uint64) -> int:
    """Return the suits of the jacks among `cards`, bit = suit."""
    jacks = cards >> uint64(int64(rules.jack_rank))
    suits = EMPTY
    for suit in range(NUM_SUITS):
        suits |= (jacks >> uint64(NUM_RANKS * suit) & ONE) << uint64(suit)
    return int64(suits)


@inlined
def beats(card: int, best: int, trump: int) -> bool:
    """Return whether `card`, played later, takes the trick from `best` (V9).

    `trump` is a suit or NO_SUIT.
    """
    suit = card // NUM_RANKS
    return card > best if suit == best // NUM_RANKS else suit == trump


@inlined
def penalty(rules: np.record, jacks: int) -> int:
    """Return what a set of captured jacks (bit = suit) costs (V10, P9)."""
    return int64(rules.penalty_of[jacks])


@inlined
def trump_of(turned: int) -> int:
    """Return the suit of the card turned up, or NO_SUIT of NO_CARD."""
    return turned // NUM_RANKS if turned >= 0 else NO_SUIT


@inlined
def legal_cards(state: np.record) -> np.uint64:
    """Return the cards the seat to act may play, as a set.

    A seat follows the suit led when it can, and otherwise plays anything (V7, V8, P8).

    Args:
        state: one `STATE` record in the phase PLAYS.

    Returns:
        never empty.
    """
    hand = state.hand[int64(state.turn)]
    led = int64(state.led)
    return hand if led == NO_SUIT else follow(hand, led)


@inlined
def legal_actions(rules: np.record, state: np.record) -> np.uint64:
    """Return the actions of the seat to act as a set; empty when the deal is over.

    Cards, or PASS and GENERAL, bits 52 and 53.
    """
    phase = int64(state.phase)
    if phase == PLAYS:
        return legal_cards(state)
    if phase == CALLS:
        return bit(PASS) | bit(GENERAL)
    return EMPTY


@kernel
def start_match(rules: np.record, state: np.record, seed: np.uint64, episode: int) -> None:
    """Begin an episode of a table: totals at 0, the first dealer by lot (V3), cards dealt.

    All of it is a function of (seed, episode).
    """
    state.seed = seed
    state.episode = episode
    state.deal = 0
    state.winners = 0
    for seat in range(MAX_PLAYERS):
        state.totals[seat] = 0
    lot = mix(mix(seed, uint64(episode)), uint64(0))
    dealer = below(lot >> uint64(32), int64(rules.num_players))
    begin_deal(rules, state, dealer, first_leader(rules, dealer))
    deal(rules, state)


@kernel
def first_leader(rules: np.record, dealer: int) -> int:
    """Return who leads the first deal: the dealer, or by option the seat after him (V4, V5)."""
    if rules.first_lead == LEAD_LEFT_OF_DEALER:
        return (dealer + 1) % int64(rules.num_players)
    return dealer


@kernel
def next_deal(rules: np.record, state: np.record) -> None:
    """Deal on after a deal that is over: the deal goes round, the leader follows V5 and P5."""
    dealer = (int64(state.dealer) + 1) % int64(rules.num_players)
    if rules.first_lead == LEAD_DEALER:
        leader = dealer
    elif rules.first_lead == LEAD_LEFT_OF_DEALER:
        leader = (dealer + 1) % int64(rules.num_players)
    else:
        leader = deal_winner(rules, state)
    state.deal += 1
    begin_deal(rules, state, dealer, leader)
    deal(rules, state)


@kernel
def begin_deal(rules: np.record, state: np.record, dealer: int, leader: int) -> None:
    """Clear all that belongs to one deal; `deal` or `set_hands` fill in the cards."""
    for seat in range(MAX_PLAYERS):
        state.hand[seat] = EMPTY
        state.played[seat] = EMPTY
        state.tricks[seat] = 0
        state.jacks[seat] = 0
        state.voids[seat] = 0
        state.hand_sizes[seat] = 0
        state.table[seat] = NO_CARD
    for play_number in range(NUM_CARDS):
        state.history[play_number] = 0
    state.dealer = dealer
    state.leader = leader
    state.turn = leader
    state.led = NO_SUIT
    state.general = NOBODY
    state.num_calls = 0
    state.num_plays = 0
    state.best_seat = NOBODY
    state.best_card = NO_CARD
    state.phase = CALLS if rules.general != 0 else PLAYS


@kernel
def deal(rules: np.record, state: np.record) -> None:
    """Shuffle and deal (V1, V2, P3, P4).

    A function of the record's seed, episode, dealer and number of the deal alone. Cards go round
    one at a time from the seat after the dealer; the next card is the one turned up.
    """
    players = int64(rules.num_players)
    dealt = players * int64(rules.hand_size)
    needed = dealt + (1 if rules.trump == TRUMP_TURNED else 0)
    size = int64(rules.num_cards)
    key = mix(mix(state.seed, uint64(state.episode)), uint64(state.deal) + ONE)
    # The still empty history is the room to shuffle in.
    for i in range(size):
        state.history[i] = rules.pack_cards[i]
    seat = (int64(state.dealer) + 1) % players
    card = NO_CARD
    bits = EMPTY
    for i in range(needed):
        # One draw of 64 bits serves two cards.
        bits = mix(key, uint64(i >> 1)) if i & 1 == 0 else bits >> uint64(32)
        j = i + below(bits, size - i)
        card = int64(state.history[j])
        state.history[j] = state.history[i]
        if i < dealt:
            state.hand[seat] |= bit(card)
            seat = seat + 1 if seat + 1 < players else 0
    for i in range(size):
        state.history[i] = 0
    for seat in range(players):
        state.hand_sizes[seat] = rules.hand_size
    state.turned = card if rules.trump != TRUMP_NONE else NO_CARD


@inlined
def play(rules: np.record, state: np.record, action: int) -> None:
    """Apply a legal action of the seat to act, in place.

    When it ends a deal, the deal is scored and the phase is DEAL_OVER or MATCH_OVER; `next_deal`
    goes on.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record in the phase CALLS or PLAYS.
        action: a card 0..51, or PASS or GENERAL; not checked.
    """
    if state.phase == CALLS:
        call(rules, state, action)
        return
    players = int64(rules.num_players)
    seat = int64(state.turn)
    led = int64(state.led)
    suit = action // NUM_RANKS
    cards = bit(action)
    state.hand[seat] &= ~cards
    state.played[seat] |= cards
    state.table[seat] = action
    state.hand_sizes[seat] -= 1
    plays = int64(state.num_plays)
    state.history[plays] = action
    state.num_plays = plays + 1
    # Without branches, as no processor foresees which card is played.
    leads = led == NO_SUIT
    takes = leads | beats(action, int64(state.best_card), trump_of(int64(state.turned)))
    state.best_seat = seat if takes else int64(state.best_seat)
    state.best_card = action if takes else int64(state.best_card)
    state.led = suit if leads else led
    lacks = 0 if leads | (suit == led) else 1
    state.voids[seat] |= lacks << (led & 3)
    if plays + 1 == (tricks_before(rules, plays) + 1) * players:
        end_trick(rules, state)
    else:
        state.turn = seat + 1 if seat + 1 < players else 0


@kernel
def call(rules: np.record, state: np.record, action: int) -> None:
    """Apply an announcement, PASS or GENERAL (P6, P7)."""
    players = int64(rules.num_players)
    seat = int64(state.turn)
    state.num_calls += 1
    if action == GENERAL:
        state.general = seat
        state.phase = PLAYS
        if rules.general_leads == 0:
            seat = int64(state.leader)
        state.turn = seat
    elif state.num_calls == players:
        state.phase = PLAYS
        state.turn = state.leader
    else:
        state.turn = (seat + 1) % players


@inlined
def end_trick(rules: np.record, state: np.record) -> None:
    """Give the trick to its winner, who leads the next (V9, V10); score the deal after the last."""
    players = int64(rules.num_players)
    winner = int64(state.best_seat)
    plays = int64(state.num_plays)
    cards = EMPTY
    for seat in range(players):
        cards |= bit(int64(state.table[seat]))
        state.table[seat] = NO_CARD
    jacks = suits_of_jacks(rules, cards)
    state.tricks[winner] += 1
    state.jacks[winner] |= jacks
    state.turn = winner
    state.led = NO_SUIT
    state.best_seat = NOBODY
    state.best_card = NO_CARD
    if rules.count == COUNT_TRICK:
        state.totals[winner] += 1 - penalty(rules, jacks)
        if state.totals[winner] >= rules.target:
            state.phase = MATCH_OVER
            state.winners = 1 << winner
            return
    trick = tricks_before(rules, plays)
    if trick == rules.hand_size:
        end_deal(rules, state)


@kernel
def deal_points(rules: np.record, state: np.record, seat: int) -> int:
    """Return the deal points of a seat so far (V11); with charges alone, its charges (P9–P11).

    A general's charges exist from the last trick on.
    """
    cost = penalty(rules, int64(state.jacks[seat]))
    if rules.scoring == SCORING_TRICKS:
        return int64(state.tricks[seat]) - cost
    general = int64(state.general)
    hand_size = int64(rules.hand_size)
    if general == NOBODY or state.num_plays < hand_size * int64(rules.num_players):
        return cost
    charge = int64(rules.general_charge)
    if state.tricks[general] == hand_size:
        return 0 if seat == general else charge
    return cost + charge if seat == general else cost


@kernel
def deal_winner(rules: np.record, state: np.record) -> int:
    """Return the seat that won the deal just ended; in doubt, the first from the new dealer on.

    V6 and P5.
    """
    players = int64(rules.num_players)
    sign = 1 if rules.scoring == SCORING_TRICKS else -1
    winner = NOBODY
    most_points = 0
    most_tricks = 0
    for i in range(1, players + 1):
        seat = (int64(state.dealer) + i) % players
        points = sign * deal_points(rules, state, seat)
        tricks = int64(state.tricks[seat]) if rules.scoring == SCORING_TRICKS else 0
        if (
            winner == NOBODY
            or points > most_points
            or (points == most_points and tricks > most_tricks)
        ):
            winner, most_points, most_tricks = seat, points, tricks
    return winner


@kernel
def deal_winners(rules: np.record, state: np.record) -> int:
    """Return who has won a deal that is an episode, bit = seat.

    By V6 one seat; with charges alone all that are charged least.
    """
    if rules.scoring == SCORING_TRICKS:
        return 1 << deal_winner(rules, state)
    fewest = 1 << 30
    winners = 0
    for seat in range(int64(rules.num_players)):
        charged = deal_points(rules, state, seat)
        if charged < fewest:
            fewest, winners = charged, 1 << seat
        elif charged == fewest:
            winners |= 1 << seat
    return winners


@kernel
def end_deal(rules: np.record, state: np.record) -> None:
    """Add the deal points to the totals and see whether the match is over (V12, V13, P13, P14)."""
    players = int64(rules.num_players)
    sign = 1 if rules.scoring == SCORING_TRICKS else -1
    best = -(1 << 30)
    highest = -(1 << 30)
    winners = 0
    sharers = 0
    for seat in range(players):
        if rules.count != COUNT_TRICK:
            state.totals[seat] += deal_points(rules, state, seat)
        total = int64(state.totals[seat])
        highest = max(highest, total)
        if sign * total > best:
            best, winners, sharers = sign * total, 1 << seat, 1
        elif sign * total == best:
            winners |= 1 << seat
            sharers += 1
    deals = int64(state.deal) + 1
    due = (
        (rules.target > 0 and highest >= rules.target)
        or (rules.loss_limit > 0 and highest >= rules.loss_limit)
        or (rules.num_deals > 0 and deals >= rules.num_deals)
    )
    decided = due and (sharers == 1 or rules.tie == TIE_DRAW)
    if decided or (rules.max_deals > 0 and deals >= rules.max_deals):
        state.phase = MATCH_OVER
        state.winners = winners
    else:
        state.phase = DEAL_OVER


@kernel
def set_hands(rules: np.record, state: np.record, hands: np.ndarray, turned: int) -> None:
    """Give out known cards after `begin_deal`.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record, cleared by `begin_deal`.
        hands: uint64 (num_players,), a set of `hand_size` cards each; not checked.
        turned: the card turned up, under `trump="last_card"` the dealer's shown one, or NO_CARD.
    """
    for seat in range(int64(rules.num_players)):
        state.hand[seat] = hands[seat]
        state.hand_sizes[seat] = count(hands[seat])
    state.turned = turned


@kernel
def undealt_cards(rules: np.record, state: np.record) -> np.uint64:
    """Return the cards that nobody ever sees: neither dealt nor turned up (V2)."""
    seen = EMPTY
    for seat in range(int64(rules.num_players)):
        seen |= state.hand[seat] | state.played[seat]
    if rules.trump == TRUMP_TURNED:
        seen |= bit(int64(state.turned))
    return rules.pack & ~seen


@kernel
def seat_of_play(rules: np.record, table: np.record, play_number: int) -> int:
    """Return who made a play of this deal: the seat that played its card.

    `table` is a STATE, PUBLIC or VIEW. NOBODY of a play that a position leaves unknown.
    """
    cards = bit(int64(table.history[play_number]))
    for seat in range(int64(rules.num_players)):
        if table.played[seat] & cards != EMPTY:
            return seat
    return NOBODY


def seats_of_plays(rules: Rules, table: Any) -> list[int]:
    """Return who made each play of this deal, as `seat_of_play` does, without compiling it."""
    played = [int(cards) for cards in table.played[: rules.num_players]]
    return [
        next((seat for seat, cards in enumerate(played) if cards >> card & 1), NOBODY)
        for card in table.history[: int(table.num_plays)].tolist()
    ]


@kernel
def shown_card_is_held(rules: np.record, table: np.record) -> bool:
    """Return whether the dealer still holds the trump card he showed (P3, `trump="last_card"`)."""
    if rules.trump != TRUMP_LAST_CARD:
        return False
    return table.played[int64(table.dealer)] & bit(int64(table.turned)) == EMPTY

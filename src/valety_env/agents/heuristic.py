"""`heuristic`: a player by rules of sense, for every game that `Rules` can describe.

It looks at one card at a time and asks what a good player asks. Does it take the trick, and what
will lie in it? How likely do the others hold something higher, or the jack, or nothing of the suit?
What is left of the suit afterwards: winners, exits, guards of a jack? The answers are numbers
(`judge`), and a card's worth is their weighted sum. The weights are fitted, not guessed:
cards were tried in positions of the player's own games, the deals played on to their ends, and the
points regressed on the answers, over and over (tools/fit_heuristic.py). Nothing is searched,
nothing drawn.

A general makes it another game: a few rules of their own decide whether to announce one, how to
play it and how to stop it.
"""

from __future__ import annotations

import numpy as np

from valety_env._intrinsics import local_record, record_head
from valety_env._jit import inlined, int64, kernel
from valety_env.agents.chances import (
    TOGETHER,
    chance_of,
    falls,
    lacks,
    new_odds,
    penalty_of_cards,
    prepare,
    shown_elsewhere,
    weigh_odds,
)
from valety_env.cards import (
    EMPTY,
    GENERAL,
    NO_SUIT,
    NUM_RANKS,
    NUM_SUITS,
    ONE,
    PASS,
    bit,
    count,
    highest,
    lowest,
    one_of,
    suit_cards,
)
from valety_env.engine import CALLS, NOBODY, beats, penalty
from valety_env.rules import MAX_PLAYERS, SCORING_TRICKS, Rules
from valety_env.view import unseen_cards

# What the answers weigh, a row each in the order of FEATURES. The columns are situations: a
# plain card led, following suit, thrown off; then a trump led, following, ruffing. Units are points
# of one deal; only the differences between the cards of one hand mean anything.
_LEAD, _FOLLOW, _DISCARD = range(3)
_IF_TRUMP = 3
_TRICKS_WEIGHTS = np.array(
    [
        [0.364, 0.566, 0.000, -0.102, 0.452, 0.581],  # wins if others duck
        [0.059, 0.903, 0.000, 0.487, 1.030, 0.619],  # wins if they beat
        [0.000, -1.786, 0.000, 0.000, -1.926, -1.725],  # jacks on the table, won
        [-1.399, -1.811, 0.000, -0.444, -1.867, -1.494],  # own jack, won
        [-0.085, -0.157, 0.000, -0.265, -0.826, -0.273],  # jacks thrown on it, won
        [-0.222, -0.391, 0.000, -0.713, -0.548, 0.000],  # jack ducked under it, won, × length
        [0.063, 0.022, 0.000, -0.056, -0.062, -0.108],  # wins × own other jacks
        [0.102, 0.390, 0.235, -0.640, -0.189, 0.063],  # a winner later
        [0.397, -0.758, -0.630, 0.956, -0.308, -0.222],  # the same, early
        [-0.831, -1.125, -0.549, -0.263, -1.127, -0.984],  # share of the suit below
        [0.226, 0.150, 0.131, 0.166, 0.191, 0.216],  # the same × length
        [-0.031, 0.019, -0.037, -0.003, -0.030, -0.044],  # outside cards it beats × length
        [0.026, 0.202, 0.097, 0.034, -0.074, -0.051],  # outside cards above
        [0.135, 0.000, 0.030, 0.341, 0.000, 0.179],  # last of its suit
        [0.060, -0.465, 0.165, -0.321, -1.484, 0.407],  # over an outside jack
        [0.073, 0.079, 0.028, 0.506, 0.204, -0.047],  # the same × length
        [0.233, -1.205, -0.477, -0.251, -3.498, -0.180],  # under an outside jack ÷ low cards
        [-0.151, -0.145, -0.026, -0.255, -0.016, -0.059],  # above own jack
        [-0.108, -0.304, -0.139, -0.477, -0.103, -0.077],  # guards own jack
        [-0.900, -0.182, 0.128, -0.478, -0.089, -0.124],  # the same × share below
        [1.809, 1.541, 0.847, -0.225, -1.012, -0.692],  # is a jack
        [-0.378, -0.333, -0.104, 0.113, 0.220, 0.120],  # the same × length
        [0.021, -0.060, 0.042, 0.483, 0.514, 0.200],  # own jack ÷ low cards
        [0.089, 0.146, 0.089, -0.006, 0.012, -0.022],  # own jack × cards it beats
        [0.138, 0.228, 0.129, 0.027, 1.638, 1.480],  # own jack × share below
    ]
).T.copy()
_PENALTIES_WEIGHTS = np.array(
    [
        [0.146, 0.013, 0.000, 0.035, 0.113, 0.175],  # wins if others duck
        [-0.296, -0.176, 0.000, -0.312, -0.161, -0.220],  # wins if they beat
        [0.000, -1.315, 0.000, 0.000, -1.355, -1.171],  # jacks on the table, won
        [-0.551, -1.211, 0.000, -0.090, -1.416, -1.531],  # own jack, won
        [-0.472, -0.818, 0.000, -0.239, -0.717, -0.452],  # jacks thrown on it, won
        [-0.316, -0.612, 0.000, -0.143, -0.716, 0.000],  # jack ducked under it, won, × length
        [0.008, -0.049, 0.000, -0.006, -0.103, -0.088],  # wins × own other jacks
        [-0.400, -0.224, -0.164, -0.206, -0.054, 0.253],  # a winner later
        [0.549, 0.388, 0.380, 0.366, 0.116, -0.150],  # the same, early
        [-0.152, 0.856, 0.285, -0.116, 0.569, -0.111],  # share of the suit below
        [-0.075, -0.257, -0.052, -0.120, -0.119, 0.125],  # the same × length
        [0.011, 0.084, 0.005, 0.010, 0.073, -0.011],  # outside cards it beats × length
        [-0.029, 0.124, 0.017, -0.029, 0.133, -0.006],  # outside cards above
        [0.139, 0.000, 0.230, 0.155, 0.000, 0.277],  # last of its suit
        [-0.216, -2.516, 0.395, -0.172, -1.986, 0.703],  # over an outside jack
        [0.114, 0.350, -0.110, -0.030, 0.185, -0.197],  # the same × length
        [-0.077, -4.498, -0.401, -0.356, -4.471, -0.635],  # under an outside jack ÷ low cards
        [-0.162, 0.080, -0.061, -0.317, -0.117, -0.145],  # above own jack
        [-0.487, 0.102, -0.251, -1.259, -0.128, -0.267],  # guards own jack
        [0.367, 0.430, 0.132, 0.932, -0.135, -0.048],  # the same × share below
        [0.037, 0.099, 0.065, -0.365, -0.340, -0.381],  # is a jack
        [-0.022, -0.034, -0.049, 0.157, 0.149, 0.092],  # the same × length
        [0.265, 0.108, 0.080, 0.260, 0.178, 0.524],  # own jack ÷ low cards
        [-0.006, 0.070, 0.048, -0.102, -0.020, -0.091],  # own jack × cards it beats
        [-0.227, 0.427, 0.073, 0.099, 0.999, 1.187],  # own jack × share below
    ]
).T.copy()

# A general is announced from this chance of making it on.
_ENOUGH_FOR_GENERAL = 0.4


@kernel
def heuristic_action(rules: np.record, view: np.record, legal: np.uint64, general: bool) -> int:
    """Return the action of the seat to act.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act; its history is not read.
        legal: the legal actions, never empty.
        general: whether a general may be announced (P6).

    Returns:
        one of `legal`.
    """
    if view.phase == CALLS:
        if general and _general_chance(rules, view) >= _ENOUGH_FOR_GENERAL:
            return GENERAL
        return PASS
    if legal & (legal - ONE) == EMPTY:
        return lowest(legal)
    announced = int64(view.general)
    if announced != NOBODY and _has_taken_all(rules, view, announced):
        if announced == view.seat:
            return _play_general(rules, view, legal)
        legal = _stopping_cards(rules, view, legal)
    weights = _TRICKS_WEIGHTS if rules.scoring == SCORING_TRICKS else _PENALTIES_WEIGHTS
    return best_card(rules, view, legal, weights)


# What the cards of a suit have in common when one of them is to be played; with a row for each seat
# that is yet to play in the trick, in their order.
SUIT = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("suit", np.int64),
                ("others", np.uint64),  # the unseen cards of the suit
                ("length", np.float64),  # how many the hand has
                ("jack", np.int64),
                ("jack_is_about", np.bool_),  # in the hand or unseen
                ("own_cost", np.float64),  # the jack's penalty if it is in the hand
                ("out_cost", np.float64),  # the penalty × chance that another holds it
                ("low_cards", np.float64),  # 1 + own cards below the jack
                ("other_jacks", np.float64),  # the penalties of the other jacks in the hand
                ("held", np.float64),  # the chance that any of them holds a given one
                ("together", np.int64),  # the hand whose table tells what all of them lack
                ("follows", np.bool_),  # whether the suit is led, or leads
                ("dumped", np.float64),  # penalties thrown on the trick for want of the suit led
                ("ducked", np.float64),  # the penalty of the jack led or following, if it is lower
                ("to_play", np.int64),  # how many seats are yet to play
                ("seat", np.int64, (MAX_PLAYERS,)),
                ("void", np.float64, (MAX_PLAYERS,)),  # the chance that it lacks the suit led
                ("discards", np.float64, (MAX_PLAYERS,)),  # the same, but of a shown card
                ("ruffs", np.float64, (MAX_PLAYERS,)),  # that it lacks it and trumps
                ("shows", np.uint8, (MAX_PLAYERS,)),  # whether its shown card is of the suit led
            ],
            align=True,
        ),
    )
)
new_suit = local_record(SUIT)

# The answers that the weights multiply, in the weights' order: by name, and as numbers.
_PLAIN_FEATURES = (
    "wins",
    "contested",
    "takes_jacks",
    "takes_own_jack",
    "takes_thrown_jacks",
    "takes_ducked_jack",
    "risks_other_jacks",
    "master",
    "master_early",
    "share_below",
    "share_below_length",
    "beaten_length",
    "above",
    "last",
)
_JACK_FEATURES = (
    "over_jack",
    "over_jack_length",
    "under_jack",
    "above_own_jack",
    "guards_jack",
    "guards_jack_below",
    "is_jack",
    "is_jack_length",
    "jack_low",
    "jack_beaten",
    "jack_below",
)
FEATURES = np.dtype(
    (np.record, np.dtype([(name, np.float64) for name in (*_PLAIN_FEATURES, *_JACK_FEATURES)]))
)
_NUM_PLAIN = len(_PLAIN_FEATURES)
NUM_FEATURES = _NUM_PLAIN + len(_JACK_FEATURES)
_NUMBERS = np.dtype((np.record, np.dtype([("of", np.float64, (NUM_FEATURES,))])))
new_features = local_record(FEATURES)
numbers_of = record_head(_NUMBERS)


@kernel
def best_card(rules: np.record, view: np.record, legal: np.uint64, weights: np.ndarray) -> int:
    """Return the card of a set with the greatest weighted sum of features, of equals the lowest.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act.
        legal: the cards to choose from, never empty.
        weights: float64 (6, 25): by situation, for the features.

    Returns:
        one of `legal`.
    """
    odds = new_odds()
    suit = new_suit()
    features = new_features()
    weigh_odds(rules, view, odds)
    on_table, in_hand = jacks_about(rules, view)
    early = count(view.hand) / float(int64(rules.hand_size))
    # Neighbours with nothing between them that matters are worth the same: one stands for all.
    matters = odds.unseen | rules.jacks | one_of(int64(view.best_card)) | one_of(int64(view.turned))
    best = lowest(legal)
    best_worth = -np.inf
    for number in range(NUM_SUITS):
        left = legal & suit_cards(number)
        if left == EMPTY:
            continue
        weigh_suit(rules, view, odds, number, in_hand, suit)
        row = weights[situation(view, legal, number)]
        while left != EMPTY:
            card = lowest(left)
            bound = (matters | bit(NUM_RANKS * (number + 1))) & ~(bit(card) - ONE)
            left &= ~(bit(card) | (bit(lowest(bound)) - ONE))
            judge(view, odds, suit, on_table, early, card, features)
            numbers = numbers_of(features)
            worth = 0.0
            for i in range(_NUM_PLAIN):
                worth += row[i] * numbers.of[i]
            if suit.jack_is_about:
                for i in range(_NUM_PLAIN, NUM_FEATURES):
                    worth += row[i] * numbers.of[i]
            if worth > best_worth:
                best, best_worth = card, worth
    return best


@inlined
def situation(view: np.record, legal: np.uint64, suit: int) -> int:
    """Return which column of the weights, 0..5, judges a legal card of a suit."""
    column = _LEAD
    if view.led != NO_SUIT:
        column = _FOLLOW if legal & suit_cards(int64(view.led)) != EMPTY else _DISCARD
    return column + _IF_TRUMP if suit == view.trump else column


@inlined
def jacks_about(rules: np.record, view: np.record) -> tuple[float, float]:
    """Return the penalties lying in the current trick, and those of the seat's own jacks."""
    on_table = EMPTY
    for seat in range(int64(rules.num_players)):
        on_table |= one_of(int64(view.table[seat]))
    return penalty_of_cards(rules, on_table), penalty_of_cards(rules, view.hand)


@kernel
def weigh_suit(
    rules: np.record,
    view: np.record,
    odds: np.record,
    suit: int,
    in_hand: float,
    found: np.record,
) -> None:
    """Write what the cards of a suit have in common, if one of them is to be played.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record of the seat to act.
        odds: one `ODDS` record by `weigh_odds`; its tables of the suit are made.
        suit: 0..3.
        in_hand: the penalties of the seat's own jacks.
        found: one `SUIT` record, overwritten.
    """
    players = int64(rules.num_players)
    own = view.hand & suit_cards(suit)
    others = odds.unseen & suit_cards(suit)
    jack = suit * NUM_RANKS + int64(rules.jack_rank)
    cost = float(penalty(rules, 1 << suit)) if rules.jacks & bit(jack) != EMPTY else 0.0

    # The other hands taken as one: can any of them beat a card when its suit is led later?
    size = 0
    held = 0.0
    for seat in range(players):
        chance = chance_of(odds, seat, suit)
        held += chance
        size += odds.sizes[seat] if chance > 0.0 else 0

    found.suit = suit
    found.others = others
    found.length = float(count(own))
    found.jack = jack
    found.jack_is_about = (own | others) & bit(jack) != EMPTY
    found.own_cost = cost if own & bit(jack) != EMPTY else 0.0
    found.out_cost = odds.jacks[suit] * held
    found.low_cards = 1.0 + count(own & (bit(jack) - ONE))
    found.other_jacks = in_hand - found.own_cost
    found.held = held
    _weigh_trick(rules, view, odds, suit, found)
    # With two players the other hands are one.
    found.together = TOGETHER if players > 2 else 1 - int64(view.seat)
    prepare(odds, found.together, size, held)


@inlined
def _weigh_trick(
    rules: np.record, view: np.record, odds: np.record, suit: int, found: np.record
) -> None:
    """Write what the seats that are yet to play do if a card of a suit is played now."""
    players = int64(rules.num_players)
    trump = int64(view.trump)
    led = suit if view.led == NO_SUIT else int64(view.led)
    found.follows = suit == led
    found.to_play = 0
    found.dumped = 0.0
    found.ducked = 0.0
    if suit != led and suit != trump:
        return
    # The other suit that counts: what could ruff the lead, or what the trump ruffs.
    other = trump if suit == led else led
    others_of_it = count(odds.unseen & suit_cards(other)) if other != NO_SUIT else 0
    shown_suit = odds.shown // NUM_RANKS
    seat = int64(view.seat)
    for place in range(players):
        seat = seat + 1 if seat + 1 < players else 0
        if seat == view.seat or view.table[seat] >= 0:
            break
        size = odds.sizes[seat]
        void = 1.0
        if other != NO_SUIT:
            prepare(odds, seat, size, chance_of(odds, seat, other))
            void = lacks(odds, seat, others_of_it)
        ruffs = 0.0
        chance = chance_of(odds, seat, suit)
        prepare(odds, seat, size, chance)
        if suit == led:
            ruffs = 1.0 - void if suit != trump else 0.0
            void = lacks(odds, seat, count(found.others))
            found.ducked += chance * odds.jacks[suit]
        # Who is known to hold the suit led neither ruffs nor discards.
        shows = seat == view.dealer and shown_suit == led
        discards = 0.0 if shows else void
        found.seat[place] = seat
        found.shows[place] = shows
        found.void[place] = void
        found.discards[place] = discards
        found.ruffs[place] = discards * ruffs
        found.to_play = place + 1
        for thrown in range(NUM_SUITS):
            if thrown != led:
                found.dumped += discards * chance_of(odds, seat, thrown) * odds.jacks[thrown]


@inlined
def chances_to_win(
    view: np.record, odds: np.record, suit: np.record, card: int
) -> tuple[float, float]:
    """Return how likely a card of a suit that was weighed wins the current trick.

    Returns:
        the chance if all after it duck when they can, and the chance if they beat it when they can.
    """
    if view.led != NO_SUIT and not beats(card, int64(view.best_card), int64(view.trump)):
        return 0.0, 0.0
    above = count(suit.others & ~(bit(card) - ONE))
    beneath = count(suit.others) - above
    wins = 1.0
    contested = 1.0
    for place in range(suit.to_play):
        seat = suit.seat[place]
        higher = 1.0 - lacks(odds, seat, above)
        if suit.follows:
            wins *= 1.0 - max(0.0, lacks(odds, seat, beneath) - suit.void[place])
            if suit.shows[place] != 0 and odds.shown > card:
                higher = 1.0
            contested *= 1.0 - higher - suit.ruffs[place]
        else:
            contested *= 1.0 - suit.discards[place] * higher
    return wins, contested


@inlined
def judge(
    view: np.record,
    odds: np.record,
    suit: np.record,
    on_table: float,
    early: float,
    card: int,
    found: np.record,
) -> None:
    """Write the answers that the weights multiply.

    Chances take the unseen cards as dealt at random among the hands that may hold them. Penalties
    are in points.

    Args:
        view: one `VIEW` record of the seat to act.
        odds: one `ODDS` record by `weigh_odds`.
        suit: one `SUIT` record by `weigh_suit`, of the card's suit.
        on_table: the penalties lying in the current trick.
        early: the share of the deal's tricks still to come.
        card: the card to judge.
        found: one `FEATURES` record, overwritten; those of the jack are 0 unless it is about.
    """
    length = suit.length
    jack = suit.jack
    above = count(suit.others & ~(bit(card) - ONE))
    beneath = count(suit.others) - above
    own_cost = suit.own_cost if card == jack else 0.0
    guarded_cost = suit.own_cost if card != jack else 0.0
    wins, contested = chances_to_win(view, odds, suit, card)
    ducked = suit.ducked if card > jack else 0.0
    master = lacks(odds, suit.together, above)
    if odds.shown // NUM_RANKS == suit.suit and odds.shown > card:
        master = 0.0
    share_below = beneath / (above + beneath) if above + beneath > 0 else 1.0
    beats_cards = beneath * suit.held
    over_jack = suit.out_cost if card > jack else 0.0
    jack_guard = guarded_cost / suit.low_cards if card < jack else 0.0
    found.wins = wins
    found.contested = contested
    found.takes_jacks = on_table * wins
    found.takes_own_jack = own_cost * wins
    found.takes_thrown_jacks = suit.dumped * wins
    found.takes_ducked_jack = ducked * wins * length
    found.risks_other_jacks = suit.other_jacks * contested
    found.master = master
    found.master_early = master * early
    found.share_below = share_below
    found.share_below_length = share_below * length
    found.beaten_length = beats_cards * length
    found.above = above * suit.held
    found.last = 1.0 if length == 1.0 and suit.others != EMPTY else 0.0
    found.over_jack = over_jack
    found.over_jack_length = over_jack * length
    found.under_jack = suit.out_cost / suit.low_cards if card < jack else 0.0
    found.above_own_jack = guarded_cost if card > jack else 0.0
    found.guards_jack = jack_guard
    found.guards_jack_below = jack_guard * share_below
    found.is_jack = 1.0 if card == jack else 0.0
    found.is_jack_length = length if card == jack else 0.0
    found.jack_low = own_cost / suit.low_cards
    found.jack_beaten = own_cost * beats_cards
    found.jack_below = own_cost * share_below


@kernel
def _has_taken_all(rules: np.record, view: np.record, seat: int) -> bool:
    """Return whether a seat has won every trick so far."""
    return int64(view.tricks[seat]) == int64(view.num_plays) // int64(rules.num_players)


@kernel
def _general_chance(rules: np.record, view: np.record) -> float:
    """Return roughly the chance to take all tricks with the hand as dealt.

    A suit is played from the top. A card wins if each higher one outside lies in a hand so short in
    the suit that it has fallen by then. Without the lead the first trick must be won as well.
    """
    unseen = unseen_cards(rules, view)
    trump = int64(view.trump)
    made = 1.0
    first = 0.0
    for suit in range(NUM_SUITS):
        own = view.hand & suit_cards(suit)
        others = unseen & suit_cards(suit)
        shown = shown_elsewhere(rules, view)
        if shown // NUM_RANKS == suit:
            others |= bit(shown)
        runs = 1.0
        led = 0
        left = own
        while left != EMPTY:
            card = highest(left)
            left &= ~bit(card)
            higher = count(others & ~(bit(card) - ONE))
            if higher > 0:
                runs = min(runs, falls(count(others) - 1, led, view, unseen) ** higher)
            led += 1
        made *= runs
        if trump != NO_SUIT:
            if suit == trump and count(others) > 0:
                # All trumps must be drawn, or a plain card could be ruffed.
                made *= falls(count(others) - 1, led, view, unseen)
        if own != EMPTY and others & ~(bit(highest(own)) - ONE) == EMPTY:
            first += count(others)
    if rules.general_leads == 0 and view.leader != view.seat:
        made *= first / max(1, count(unseen))
    return made


@kernel
def _play_general(rules: np.record, view: np.record, legal: np.uint64) -> int:
    """Return the surest winner; of equal ones when leading that of the longest suit."""
    odds = new_odds()
    suit = new_suit()
    weigh_odds(rules, view, odds)
    best = lowest(legal)
    best_worth = -np.inf
    left = legal
    while left != EMPTY:
        card = lowest(left)
        left &= left - ONE
        weigh_suit(rules, view, odds, card // NUM_RANKS, 0.0, suit)
        worth = chances_to_win(view, odds, suit, card)[1]
        if view.led == NO_SUIT:
            worth += 0.001 * suit.length
        if worth > best_worth:
            best, best_worth = card, worth
    return best


@kernel
def _stopping_cards(rules: np.record, view: np.record, legal: np.uint64) -> np.uint64:
    """Return those of the legal cards that best serve to take a trick from the general.

    One trick lost costs him the charge, so whoever can beats him; who can't keeps what may do so
    later: the highest cards, and beside each as many of its suit as are outside and higher.
    """
    general = int64(view.general)
    trump = int64(view.trump)
    unseen = unseen_cards(rules, view)
    waits = view.table[general] < 0
    if view.led != NO_SUIT and not waits and view.best_seat != general:
        return legal
    winning = EMPTY
    left = legal
    while left != EMPTY:
        card = lowest(left)
        left &= left - ONE
        if view.led == NO_SUIT or beats(card, int64(view.best_card), trump):
            winning |= bit(card)
    if winning != EMPTY:
        if not waits:
            return winning
        # The general is still to play: what he is least likely to beat.
        odds = new_odds()
        suit = new_suit()
        weigh_odds(rules, view, odds)
        best = lowest(winning)
        best_chance = -1.0
        while winning != EMPTY:
            card = lowest(winning)
            winning &= winning - ONE
            weigh_suit(rules, view, odds, card // NUM_RANKS, 0.0, suit)
            chance = chances_to_win(view, odds, suit, card)[1]
            if chance >= best_chance:
                best, best_chance = card, chance
        return bit(best)
    kept = EMPTY
    least = np.inf
    left = legal
    while left != EMPTY:
        card = lowest(left)
        left &= left - ONE
        loss = _stopper(view.hand, unseen, card // NUM_RANKS)
        loss -= _stopper(view.hand & ~bit(card), unseen, card // NUM_RANKS)
        if loss < least - 1e-9:
            least = loss
            kept = EMPTY
        if loss <= least + 1e-9:
            kept |= bit(card)
    return kept


@kernel
def _stopper(hand: np.uint64, unseen: np.uint64, suit: int) -> float:
    """Return how well a hand stops a suit that another runs from the top, 0..1."""
    own = hand & suit_cards(suit)
    if own == EMPTY:
        return 0.0
    outside = unseen & suit_cards(suit)
    higher = count(outside & ~(bit(highest(own)) - ONE))
    if outside == EMPTY or count(own) <= higher:
        return 0.0
    return 1.0 / (1.0 + higher)


@kernel
def heuristic_actions(
    rules: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    general: bool,
    actions: np.ndarray,
) -> None:
    """Write the `heuristic_action` of each row into `actions`, int64 (N,).

    Args:
        rules: `RULES` (1,).
        views: `VIEW` (N,).
        legal: uint64 (N,).
        general: as in `heuristic_action`.
        actions: int64 (N,), overwritten.
    """
    for row in range(legal.shape[0]):
        actions[row] = heuristic_action(rules[0], views[row], legal[row], general)


class HeuristicAgent:
    """A player by rules of sense.

    Attributes:
        name: `heuristic`, or `heuristic,general=0`.
    """

    def __init__(self, rules: Rules, general: bool = True) -> None:
        """Make the player.

        Args:
            rules: the rules it will play.
            general: False: it never announces.
        """
        self.general = general
        self.name = "heuristic" if general else "heuristic,general=0"
        self._rules = rules.packed

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`; keys are not read."""
        actions = np.empty(len(legal), np.int64)
        heuristic_actions(self._rules, views, legal, self.general, actions)
        return actions

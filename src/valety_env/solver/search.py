"""The search: does the leader get so many points, and from that the value of every card.

A question about one number of points has a yes or a no, which cuts off more than a question for the
value; the value is closed in on by a few of them (zero-window search). What was found out about a
position is kept in a table of fixed size, where newer overwrites older. The search keeps its own
stack, a level a trick.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy import uint64

from valety_env._jit import inlined, int64, kernel, parallel_kernel
from valety_env.cards import EMPTY, NO_CARD, NUM_SUITS, ONE, bit, count, lowest
from valety_env.engine import beats, deal_points, legal_cards, trump_of
from valety_env.rng import mix
from valety_env.solver.bounds import OPEN, PROVEN, REFUTED, judge
from valety_env.solver.order import NUM_WEIGHTS, rank_leads, reply_worth
from valety_env.solver.positions import (
    MOST_CARDS,
    all_places,
    choice_for,
    choices,
    jack_code,
    lane,
    place_of,
    raise_jacks,
    read_position,
    suit_of,
    without,
)

# What is the same for all positions of a deal, and the search's own bookkeeping.
DEAL = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("trump", np.int8),  # a suit or NO_SUIT
                ("penalty", np.int16, (NUM_SUITS,)),  # by suit
                ("floor", np.int16, (1 << NUM_SUITS, 1 << NUM_SUITS, MOST_CARDS + 1)),
                ("least", np.int16, (1 << NUM_SUITS, MOST_CARDS + 1)),
                ("weights", np.int32, (NUM_WEIGHTS,)),
                ("stamp", np.uint64),  # of this search in the table
                ("nodes", np.int64),  # positions looked at
                # Counted all the time: another thread must not have it in a line of its cache.
                ("apart", np.uint8, (128,)),
            ],
            align=True,
        ),
    )
)

# A trick of the line that is searched. Its position is nodes[level, at].
LEVEL = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("at", np.int64),
                ("next_lead", np.int64),
                ("num_leads", np.int64),
                ("lead", np.int64),  # the one that is searched
                ("next_reply", np.int64),
                ("num_replies", np.int64),
                ("leads", np.uint8, (MOST_CARDS,)),  # places
                ("worth", np.int32, (MOST_CARDS,)),
            ],
            align=True,
        ),
    )
)


class Search(NamedTuple):
    """What a search works with.

    Attributes:
        deals: `DEAL` (1,).
        facts: `suit_facts()`.
        table: uint64 (2^n, TABLE_COLUMNS).
        levels: `LEVEL` (27,).
        nodes: `NODE` (27, 27); [0, 0] is the position that is searched.
    """

    deals: np.ndarray
    facts: np.ndarray
    table: np.ndarray
    levels: np.ndarray
    nodes: np.ndarray


class Memory(NamedTuple):
    """What the searches of several threads work with: the parts of `Search`, one a thread.

    Attributes:
        deals: `DEAL` (threads,).
        facts: `suit_facts()`.
        tables: uint64 (threads, 2^n, TABLE_COLUMNS).
        levels: `LEVEL` (threads, 27).
        nodes: `NODE` (threads, 27, 27).
    """

    deals: np.ndarray
    facts: np.ndarray
    tables: np.ndarray
    levels: np.ndarray
    nodes: np.ndarray


# An entry of the table: cards and the search's stamp; code of the jacks (16 bits), the points the
# leader gets at least and at most (8 bits each, 128 more), and the lead that proved it (8 bits).
TABLE_COLUMNS = 2
_CODE, _BYTE = uint64(0xFFFF), uint64(0xFF)
_NO_LEAD = 255
_LOWEST, _HIGHEST = -128, 127


@inlined
def _set_slot(node: np.record, slots: int) -> None:
    """Find the node's place in the table; `slots` is a power of 2."""
    node.code = jack_code(node.jacks)
    node.slot = int64(mix(node.cards, node.code) & uint64(slots - 1))


@inlined
def _known(deal: np.record, table: np.ndarray, node: np.record) -> np.uint64:
    """Return what the table has on a position, or 0."""
    slot = int64(node.slot)
    found = table[slot, 1]
    is_it = table[slot, 0] == node.cards | deal.stamp and found & _CODE == node.code
    return found if is_it else EMPTY


@inlined
def _answer(found: np.uint64, need: int) -> int:
    """Return what an entry says about the points asked for."""
    if found == EMPTY:
        return OPEN
    if int64(found >> uint64(16) & _BYTE) - 128 >= need:
        return PROVEN
    if int64(found >> uint64(24) & _BYTE) - 128 < need:
        return REFUTED
    return OPEN


@inlined
def _keep(deal: np.record, table: np.ndarray, node: np.record, verdict: int, lead: int) -> None:
    """Write down what has been found out."""
    found = _known(deal, table, node)
    least, most, best = _LOWEST, _HIGHEST, _NO_LEAD
    if found != EMPTY:
        least = int64(found >> uint64(16) & _BYTE) - 128
        most = int64(found >> uint64(24) & _BYTE) - 128
        best = int64(found >> uint64(32) & _BYTE)
    need = int64(node.need)
    if verdict == PROVEN:
        least, best = max(least, need), lead
    else:
        most = min(most, need - 1)
    slot = int64(node.slot)
    bounds = uint64(least + 128) << uint64(16) | uint64(most + 128) << uint64(24)
    table[slot, 0] = node.cards | deal.stamp
    table[slot, 1] = node.code | bounds | uint64(best) << uint64(32)


@inlined
def play_trick(deal: np.record, node: np.record, lead: int, reply: int, child: np.record) -> None:
    """Write the position after a trick; the question is the same, to who leads then."""
    suit, reply_suit = suit_of(lead), suit_of(reply)
    lead_bit, reply_bit = ONE << uint64(lead), ONE << uint64(reply)
    jacks = node.jacks
    cost = int64(deal.penalty[suit]) if jacks & lead_bit != EMPTY else 0
    cost += int64(deal.penalty[reply_suit]) if jacks & reply_bit != EMPTY else 0
    # Numbers of cards, from places.
    stays = not beats(reply - reply_suit, lead - suit, int64(deal.trump))
    reply -= reply_suit == suit and reply > lead
    cards = without(without(node.cards, lead), reply)
    ends = node.ends
    ends = (ends & ~lane(suit)) | ((ends & lane(suit)) >> ONE)
    ends = (ends & ~lane(reply_suit)) | ((ends & lane(reply_suit)) >> ONE)
    jacks = without(without(jacks & ~lead_bit & ~reply_bit, lead), reply)
    points = int64(node.points) - 1 + cost
    need = int64(node.need)
    child.points = points
    child.stays = stays
    child.need = need - 1 + cost if stays else points - need + 1
    child.cards = cards if stays else cards ^ all_places(ends)
    child.ends = ends
    child.jacks = raise_jacks(cards, ends, jacks)


@inlined
def _replies(node: np.record, lead: int) -> np.uint64:
    """Return the follower's cards worth trying (V7, V8)."""
    theirs = node.cards ^ node.ends ^ all_places(node.ends)
    of_suit = theirs & lane(suit_of(lead))
    return choices(of_suit if of_suit != EMPTY else theirs, node.jacks)


@inlined
def _take_up_lead(search: Search, depth: int) -> int:
    """Go on to the best lead left that the table does not refute.

    Returns:
        REFUTED if there is none, PROVEN if the table proves it, else OPEN: nodes[depth + 1] are the
        positions after the replies that the table does not know.
    """
    deal, table, nodes = search.deals[0], search.table, search.nodes
    level = search.levels[depth]
    node = nodes[depth, int64(level.at)]
    while level.next_lead < level.num_leads:
        first = int64(level.next_lead)
        best = first
        for i in range(first + 1, int64(level.num_leads)):
            if level.worth[i] > level.worth[best]:
                best = i
        lead = int64(level.leads[best])
        level.leads[best] = level.leads[first]
        level.worth[best] = level.worth[first]
        level.next_lead = first + 1
        left = _replies(node, lead)
        kept = 0
        is_refuted = False
        while left != EMPTY and not is_refuted:
            reply = lowest(left)
            left &= left - ONE
            child = nodes[depth + 1, kept]
            play_trick(deal, node, lead, reply, child)
            _set_slot(child, table.shape[0])
            answer = _answer(_known(deal, table, child), int64(child.need))
            if answer == OPEN:
                child.worth = reply_worth(deal, node, lead, reply, not child.stays)
                kept += 1
            else:
                is_refuted = (answer == PROVEN) != child.stays
        if not is_refuted:
            level.lead = lead
            level.next_reply = 0
            level.num_replies = kept
            return PROVEN if kept == 0 else OPEN
    return REFUTED


@inlined
def _take_up_reply(search: Search, depth: int) -> None:
    """Go on to the best reply left, a level down."""
    nodes = search.nodes
    level = search.levels[depth]
    first = int64(level.next_reply)
    best = first
    for i in range(first + 1, int64(level.num_replies)):
        if nodes[depth + 1, i].worth > nodes[depth + 1, best].worth:
            best = i
    if best != first:
        # The last of them is room for one more.
        nodes[depth + 1, MOST_CARDS] = nodes[depth + 1, first]
        nodes[depth + 1, first] = nodes[depth + 1, best]
        nodes[depth + 1, best] = nodes[depth + 1, MOST_CARDS]
    level.next_reply = first + 1
    search.levels[depth + 1].at = first


@kernel
def gets(search: Search, tricks: int, only: int) -> bool:
    """Return whether the leader of nodes[0, 0] gets `need` points from there.

    Args:
        search: what the search works with.
        tricks: left in the position.
        only: the place of the lead, or NO_CARD: any.
    """
    deal, table, levels, nodes = search.deals[0], search.table, search.levels, search.nodes
    depth = 0
    levels[0].at = 0
    enters = True
    while True:
        level = levels[depth]
        node = nodes[depth, int64(level.at)]
        if enters:
            enters = False
            deal.nodes += 1
            if depth == tricks:
                verdict = PROVEN if node.need <= 0 else REFUTED
            elif depth == 0 and only != NO_CARD:
                level.leads[0] = only
                level.num_leads = 1
                level.next_lead = 0
                verdict = _take_up_lead(search, depth)
            else:
                verdict = judge(deal, search.facts, node, tricks - depth)
                if verdict == OPEN:
                    found = _known(deal, table, node)
                    hint = int64(found >> uint64(32) & _BYTE) if found != EMPTY else _NO_LEAD
                    rank_leads(deal, search.facts, node, tricks - depth, hint, level)
                    level.next_lead = 0
                    verdict = _take_up_lead(search, depth)
                    if verdict != OPEN:
                        _keep(deal, table, node, verdict, int64(level.lead))
        if verdict == OPEN:
            _take_up_reply(search, depth)
            depth += 1
            enters = True
            continue
        if depth == 0:
            return verdict == PROVEN
        # What it means to the leader of the trick before.
        is_enough = (verdict == PROVEN) == node.stays
        depth -= 1
        level = levels[depth]
        if not is_enough:
            verdict = _take_up_lead(search, depth)
        else:
            verdict = PROVEN if level.next_reply == level.num_replies else OPEN
        if verdict != OPEN and (depth > 0 or only == NO_CARD):
            node = nodes[depth, int64(level.at)]
            _keep(deal, table, node, verdict, int64(level.lead))


@kernel
def best_points(search: Search, tricks: int, only: int, guess: int) -> int:
    """Return the points that the leader of nodes[0, 0] gets from there.

    Args:
        search: what the search works with.
        tricks: left in the position.
        only: the place of the lead, or NO_CARD: any.
        guess: about how many points they may be; the closer, the sooner it is done.
    """
    root = search.nodes[0, 0]
    least, most = _LOWEST, _HIGHEST
    need = guess
    while least < most:
        root.need = need
        _set_slot(root, search.table.shape[0])
        if gets(search, tricks, only):
            least = need
            need += 1
        else:
            most = need - 1
            need = most
        if least > _LOWEST and most < _HIGHEST:
            need = (least + most + 1) // 2
    return least


NO_VALUE = np.iinfo(np.int16).min
# Searches until the table must be cleared, as their stamps have 8 bits above the 56 of the cards.
_STAMPS = 255


@kernel
def begin_search(search: Search, trump: int) -> None:
    """Begin the search of another deal: nothing in the table is about it."""
    deal = search.deals[0]
    number = int64(deal.stamp >> uint64(56))
    if number == _STAMPS:
        search.table[:] = 0
        number = 0
    deal.stamp = uint64(number + 1) << uint64(56)
    deal.trump = trump


@kernel
def points_ahead(rules: np.record, state: np.record) -> int:
    """Return the deal points so far of the seat to play, less the other's."""
    turn = int64(state.turn)
    return deal_points(rules, state, turn) - deal_points(rules, state, 1 - turn)


@kernel
def best_value(rules: np.record, state: np.record, search: Search) -> int:
    """Return the value of the best card at a table, as `solve_table` has it."""
    begin_search(search, trump_of(int64(state.turned)))
    root = search.nodes[0, 0]
    led = read_position(rules, state, root)
    tricks = count(root.cards ^ root.ends)
    points = int64(root.points)
    gained = best_points(search, tricks, led, points // 2)
    if led != NO_CARD:
        gained = points - gained
    return points_ahead(rules, state) + 2 * gained - points


@kernel
def solve_table(
    rules: np.record, state: np.record, search: Search, values: np.ndarray, row: int
) -> None:
    """Write the value of every legal card at a table: the difference of deal points at its end.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record in the phase PLAYS.
        search: what the search works with.
        values: int16 (N, 52); own deal points minus the other's, NO_VALUE of other cards.
        row: of `values`.
    """
    begin_search(search, trump_of(int64(state.turned)))
    so_far = points_ahead(rules, state)
    turn = int64(state.turn)
    # What follows a reply overwrites the root.
    root = search.nodes[MOST_CARDS, 0]
    led = read_position(rules, state, root)
    search.nodes[0, 0] = root
    legal = legal_cards(state)
    both = state.hand[0] | state.hand[1]
    if led != NO_CARD:
        both |= bit(int64(state.table[1 - turn]))
    own = root.cards ^ root.ends
    if led != NO_CARD:
        own ^= all_places(root.ends)
    tricks = count(state.hand[turn])
    points = int64(root.points)
    for card in range(values.shape[1]):
        values[row, card] = NO_VALUE
    gained = points // 2
    solved = like = NO_CARD
    while legal != EMPTY:
        card = lowest(legal)
        legal &= legal - ONE
        is_jack = rules.jacks & bit(card) != EMPTY
        place = choice_for(place_of(card, both), own, root.jacks, is_jack)
        # But for a jack, cards of a run are neighbours.
        if place == solved:
            values[row, card] = values[row, like]
            continue
        if led == NO_CARD:
            gained = best_points(search, tricks, place, gained)
        else:
            gained = points - _points_after(search, tricks, led, place, points - gained)
        values[row, card] = so_far + 2 * gained - points
        if not is_jack:
            solved, like = place, card


@kernel
def _points_after(search: Search, tricks: int, lead: int, reply: int, guess: int) -> int:
    """Return what the leader of nodes[26, 0] gets with a lead and a reply to it."""
    before, after = search.nodes[MOST_CARDS, 0], search.nodes[0, 0]
    before.need = guess
    play_trick(search.deals[0], before, lead, reply, after)
    stays, points = after.stays, int64(after.points)
    found = best_points(search, tricks - 1, NO_CARD, int64(after.need))
    return int64(before.points) - points + found if stays else points - found


@inlined
def search_of(memory: Memory, thread: int) -> Search:
    """Return what one of several threads searches with."""
    deals = memory.deals[thread : thread + 1]
    tables, levels, nodes = memory.tables[thread], memory.levels[thread], memory.nodes[thread]
    return Search(deals, memory.facts, tables, levels, nodes)


@kernel
def solve_tables(
    memory: Memory, thread: int, rules: np.ndarray, states: np.ndarray, values: np.ndarray
) -> None:
    """Solve every so many-th table, from `thread` on, with that thread's memory.

    Args:
        memory: of all threads.
        thread: which.
        rules: `RULES` (1,).
        states: `STATE` (N,).
        values: int16 (N, 52), overwritten; or (N, 1), of the best card alone.
    """
    search = search_of(memory, thread)
    for i in range(thread, states.size, memory.deals.size):
        if values.shape[1] == 1:
            values[i, 0] = best_value(rules[0], states[i], search)
        else:
            solve_table(rules[0], states[i], search, values, i)


@parallel_kernel
def solve_in_parallel(
    deals: np.ndarray,
    facts: np.ndarray,
    tables: np.ndarray,
    levels: np.ndarray,
    nodes: np.ndarray,
    *arguments: Any,
) -> None:
    """Do what `solve_tables` does for all threads, with the parts of a `Memory`.

    A `prange` loop takes no tuples from outside.
    """
    for thread in prange(deals.size):
        solve_tables(Memory(deals, facts, tables, levels, nodes), thread, *arguments)

"""Many tables played to their ends by any mixture of agents, all tables at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.agents import Agent, agent_name
from valety_env.arena.control import Control
from valety_env.engine import (
    CALLS,
    MATCH_OVER,
    STATE,
    deal_points,
    legal_actions,
    next_deal,
    play,
    start_match,
)
from valety_env.episode import (
    DEAL_ENDED,
    GOES_ON,
    IllegalActionError,
    Setup,
    ask,
    decision_key,
    is_member,
    settle,
)
from valety_env.view import VIEW, look


@dataclass(frozen=True)
class Played:
    """How the episodes of T tables ended.

    Attributes:
        scores: int64 (T, players): own deal points, in Polignac charges, summed over the deals of
            the episode.
        winners: uint8 (T,): who won the episode, bit = seat.
        deals: int64 (T,), deals in the episode.
        states: `STATE` (T,): the tables at the end; they know every play of the last deal.
        decisions: int64 (agents,), how often each agent was asked.
        seconds: float64 (agents,), how long it took each of them to answer.
        corrections: float64 (T, players): what is to be added to a seat's points; 0 without
            control variates.
    """

    scores: np.ndarray
    winners: np.ndarray
    deals: np.ndarray
    states: np.ndarray
    decisions: np.ndarray
    seconds: np.ndarray
    corrections: np.ndarray


@kernel
def start_all(rules: np.ndarray, states: np.ndarray, seeds: np.ndarray) -> None:
    """Start table i at the first episode of `seeds[i]`."""
    for i in range(states.size):
        start_match(rules[0], states[i], seeds[i], 0)


@kernel
def gather(
    rules: np.ndarray,
    states: np.ndarray,
    players: np.ndarray,
    player: int,
    agent_seed: np.uint64,
    tables: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
) -> int:
    """Collect what a player needs at all tables where it is to move.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (T,).
        players: int64 (T, seats), who sits where.
        player: whose tables.
        agent_seed: its seed.
        tables: int64 (T,), filled with the tables' indices.
        views: `VIEW` (T,), filled.
        legal: uint64 (T,), filled with sets of actions.
        keys: uint64 (T,), filled.

    Returns:
        how many; the rest of the arrays is left as it was.
    """
    n = 0
    for i in range(states.size):
        state = states[i]
        seat = int64(state.turn)
        if state.phase == MATCH_OVER or players[i, seat] != player:
            continue
        tables[n] = i
        look(rules[0], state, seat, views[n])
        legal[n] = legal_actions(rules[0], state)
        keys[n] = decision_key(agent_seed, state)
        n += 1
    return n


@kernel
def find_illegal(legal: np.ndarray, actions: np.ndarray) -> int:
    """Return the first row whose action is not in its set, or −1."""
    for row in range(actions.size):
        if not is_member(legal[row], int64(actions[row])):
            return row
    return -1


@kernel
def advance(
    rules: np.ndarray,
    states: np.ndarray,
    tables: np.ndarray,
    actions: np.ndarray,
    options: int,
    rewards: np.ndarray,
    scores: np.ndarray,
) -> int:
    """Play a legal action at each of the given tables and deal on where a deal has ended.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (T,), changed in place.
        tables: int64 (n,).
        actions: int64 (n,).
        options: `Setup.options`.
        rewards: float64 (1, seats), scratch.
        scores: int64 (T, seats), added to at the end of a deal.

    Returns:
        how many cards were played.
    """
    cards = 0
    for j in range(tables.size):
        i = int64(tables[j])
        state = states[i]
        if state.phase != CALLS:
            cards += 1
        play(rules[0], state, int64(actions[j]))
        ended = settle(rules[0], state, options, rewards, 0)
        if ended == GOES_ON:
            continue
        for seat in range(int64(rules[0].num_players)):
            scores[i, seat] += deal_points(rules[0], state, seat)
        if ended == DEAL_ENDED:
            next_deal(rules[0], state)
    return cards


def ask_once(setup: Setup, agent: Agent) -> None:
    """Let an agent make one choice, so that what it has to compile is compiled."""
    rules = setup.played.packed
    states = np.zeros(1, STATE)
    views = np.zeros(1, VIEW)
    everywhere = np.zeros((1, setup.rules.num_players), np.int64)
    rows = np.zeros(1, np.int64)
    legal = np.zeros(1, np.uint64)
    keys = np.zeros(1, np.uint64)
    start_all(rules, states, keys)
    gather(rules, states, everywhere, 0, keys[0], rows, views, legal, keys)
    ask(agent, views, legal, keys, states, rows)


def play_tables(
    setup: Setup,
    agents: Sequence[Agent],
    players: np.ndarray,
    seeds: np.ndarray,
    agent_seeds: np.ndarray,
    progress: Callable[[float], None] | None = None,
    control: Control | None = None,
) -> Played:
    """Play one episode at each of T tables.

    What an agent does at a table depends on nothing but that table, so results don't depend on
    which tables are played together.

    Args:
        setup: the game and its episode.
        agents: the players.
        players: int64 (T, seats): the index in `agents` of who sits at each seat.
        seeds: uint64 (T,), the tables' seeds.
        agent_seeds: uint64 (len(agents),), whence each agent's keys come.
        progress: called now and then with the part of the work that is done, 0…1.
        control: control variates, for single deals.

    Returns:
        the results.

    Raises:
        IllegalActionError: if an agent chooses an action that is not legal.
        ActionTypeError: if an agent does not give one whole number a table.
    """
    size, seats = players.shape
    rules = setup.played.packed
    hand_size = setup.played.hand_size
    assert hand_size is not None
    states = np.zeros(size, STATE)
    tables = np.empty(size, np.int64)
    views = np.zeros(size, VIEW)
    legal = np.empty(size, np.uint64)
    keys = np.empty(size, np.uint64)
    rewards = np.empty((1, seats))
    scores = np.zeros((size, seats), np.int64)
    decisions = np.zeros(len(agents), np.int64)
    seconds = np.zeros(len(agents))
    start_all(rules, states, seeds)
    corrections = np.zeros((size, seats)) if control is None else control.of_deals(states)
    cards = 0
    while True:
        moved = 0
        for player, agent in enumerate(agents):
            n = gather(
                rules,
                states,
                players,
                player,
                agent_seeds[player],
                tables,
                views,
                legal,
                keys,
            )
            if n == 0:
                continue
            moved += n
            begin = time.perf_counter()
            actions = ask(agent, views[:n], legal[:n], keys[:n], states, tables[:n])
            seconds[player] += time.perf_counter() - begin
            decisions[player] += n
            row = find_illegal(legal[:n], actions)
            if row >= 0:
                raise IllegalActionError(
                    setup.illegal_action(
                        int(views[row]["seat"]),
                        int(actions[row]),
                        int(legal[row]),
                        f"{agent_name(agent)} at the table with seed {seeds[tables[row]]}: ",
                    )
                )
            if control is not None:
                corrections[tables[:n]] += control.of_choices(
                    agent, views[:n], legal[:n], states[tables[:n]], actions
                )
            cards += advance(
                rules,
                states,
                tables[:n],
                actions,
                setup.options,
                rewards,
                scores,
            )
        if not moved:
            deals = states["deal"].astype(np.int64) + 1
            return Played(scores, states["winners"], deals, states, decisions, seconds, corrections)
        if progress is not None:
            if setup.single_deal:
                progress(cards / (size * seats * hand_size))
            else:
                progress(float(np.mean(states["phase"] == MATCH_OVER)))

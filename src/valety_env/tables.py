"""Many tables at once: what the environments with many tables do to those of a range low..high-1.

Each kernel works on its own range alone, so that ranges can be shared out among threads, or among
the threads of a GPU, without a change in what comes out.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy import uint64

from valety_env._jit import int64, kernel, parallel_kernel
from valety_env.cards import count, nth
from valety_env.engine import legal_actions, next_deal, play, start_match
from valety_env.episode import (
    DEAL_ENDED,
    EPISODE_ENDED,
    GOES_ON,
    is_member,
    observe,
    settle,
    write_state,
)
from valety_env.rng import below, mix

# What a table does with an illegal action.
TERMINATE, PENALISE = range(2)


@kernel
def mix_all(key: np.uint64, counters: np.ndarray, out: np.ndarray) -> None:
    """Write `mix(key, counters[i])` into out[i]."""
    for i in range(counters.size):
        out[i] = mix(key, counters[i])


@kernel
def start_tables(
    rules: np.ndarray,
    states: np.ndarray,
    seeds: np.ndarray,
    episode: int,
    anew: bool,
    low: int,
    high: int,
) -> None:
    """Start each table at `episode` of its seed, or if not `anew` at the one after its last."""
    for i in range(low, high):
        number = episode if anew else int64(states[i].episode) + 1
        start_match(rules[0], states[i], seeds[i], number)


@kernel
def step_tables(
    rules: np.ndarray,
    states: np.ndarray,
    finals: np.ndarray,
    actions: np.ndarray,
    single_deal: bool,
    by_points: bool,
    illegal: int,
    fine: float,
    rewards: np.ndarray,
    terminated: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Play one action at each table and start finished tables anew.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (N,), changed in place.
        finals: `STATE` (N,); the finished tables of the range are left at low, low + 1, …, in
            their order: memory is touched only for as many as end together.
        actions: integers (N,), legal or not.
        single_deal: as in `settle`.
        by_points: as in `settle`.
        illegal: TERMINATE or PENALISE.
        fine: the reward for an illegal action.
        rewards: float (N, players), overwritten.
        terminated: bool (N,), overwritten.
        low: the first table.
        high: the one after the last.
    """
    ends = low
    for i in range(low, high):
        action = int64(actions[i])
        state = states[i]
        if is_member(legal_actions(rules[0], state), action):
            play(rules[0], state, action)
            ended = settle(rules[0], state, single_deal, by_points, rewards, i)
        else:
            for seat in range(int64(rules[0].num_players)):
                rewards[i, seat] = 0.0
            rewards[i, int64(state.turn)] = fine
            ended = EPISODE_ENDED if illegal == TERMINATE else GOES_ON
        terminated[i] = ended == EPISODE_ENDED
        if ended == DEAL_ENDED:
            next_deal(rules[0], state)
        elif ended == EPISODE_ENDED:
            finals[ends] = states[i]
            ends += 1
            start_match(rules[0], state, state.seed, int64(state.episode) + 1)


@kernel
def observe_tables(
    code: int,
    rules: np.ndarray,
    states: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
    seats: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Write what the seat to move observes at each table, as `observe`, and which seat it is."""
    for i in range(low, high):
        seat = int64(states[i].turn)
        seats[i] = seat
        observe(code, rules[0], states[i], seat, rows, masks, i)


@kernel
def advance_tables(
    code: int,
    rules: np.ndarray,
    states: np.ndarray,
    finals: np.ndarray,
    actions: np.ndarray,
    single_deal: bool,
    by_points: bool,
    illegal: int,
    fine: float,
    rewards: np.ndarray,
    terminated: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
    seats: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Do what `step_tables` and then `observe_tables` do.

    One loop after the other: what a table's play has just written is slow to read at once.
    """
    step_tables(
        rules,
        states,
        finals,
        actions,
        single_deal,
        by_points,
        illegal,
        fine,
        rewards,
        terminated,
        low,
        high,
    )
    observe_tables(code, rules, states, rows, masks, seats, low, high)


@kernel
def sample_actions(
    rules: np.ndarray,
    states: np.ndarray,
    key: np.uint64,
    actions: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Draw a uniformly random legal action for each table."""
    for i in range(low, high):
        actions[i] = legal_actions(rules[0], states[i])
    # Apart, over a slice, and without branches it is compiled to whole vectors: 1 ns a table in
    # place of 12.
    drawn = actions[low:high]
    for i in range(drawn.size):
        legal = uint64(drawn[i])
        drawn[i] = nth(legal, below(mix(key, uint64(low + i)), count(legal)))


@kernel
def first_illegal(
    rules: np.ndarray, states: np.ndarray, actions: np.ndarray, low: int, high: int
) -> int:
    """Return the first table at which the action is illegal, or −1."""
    for i in range(low, high):
        if not is_member(legal_actions(rules[0], states[i]), int64(actions[i])):
            return i
    return -1


@kernel
def legal_sets(
    rules: np.ndarray, states: np.ndarray, sets: np.ndarray, low: int, high: int
) -> None:
    """Write the legal actions at each table as sets, uint64 (N,)."""
    for i in range(low, high):
        sets[i] = legal_actions(rules[0], states[i])


@kernel
def write_states(
    rules: np.ndarray, states: np.ndarray, rows: np.ndarray, low: int, high: int
) -> None:
    """Write the whole of each table into its row of `rows` (N, S)."""
    for i in range(low, high):
        write_state(rules[0], states[i], rows, i)


@kernel
def observe_some(
    code: int,
    rules: np.ndarray,
    states: np.ndarray,
    tables: np.ndarray,
    seats: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
) -> None:
    """Write what seat `seats[j]` observes at table `tables[j]` into row j."""
    for j in range(tables.size):
        observe(code, rules[0], states[int64(tables[j])], int64(seats[j]), rows, masks, j)


@parallel_kernel
def advance_in_parallel(
    code: int,
    rules: np.ndarray,
    states: np.ndarray,
    finals: np.ndarray,
    actions: np.ndarray,
    single_deal: bool,
    by_points: bool,
    illegal: int,
    fine: float,
    rewards: np.ndarray,
    terminated: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
    seats: np.ndarray,
    bounds: np.ndarray,
) -> None:
    """Do what `advance_tables` does to the ranges bounds[t]..bounds[t + 1]-1, a thread each."""
    for thread in prange(bounds.size - 1):
        advance_tables(
            code,
            rules,
            states,
            finals,
            actions,
            single_deal,
            by_points,
            illegal,
            fine,
            rewards,
            terminated,
            rows,
            masks,
            seats,
            bounds[thread],
            bounds[thread + 1],
        )


@parallel_kernel
def sample_in_parallel(
    rules: np.ndarray,
    states: np.ndarray,
    key: np.uint64,
    actions: np.ndarray,
    bounds: np.ndarray,
) -> None:
    """Do what `sample_actions` does to the ranges bounds[t]..bounds[t + 1]-1, a thread each."""
    for thread in prange(bounds.size - 1):
        sample_actions(rules, states, key, actions, bounds[thread], bounds[thread + 1])

"""Many tables at once: what the environments with many tables do to those of a range low..high-1.

Each kernel works on its own range alone, so that ranges can be shared out among threads, or among
the threads of a GPU, without a change in what comes out. `Tables` has the batch environment's in
this machine's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numba import prange
from numpy import uint64

from valety_env._jit import int64, kernel, parallel_kernel
from valety_env.arrays import ArrayPool
from valety_env.cards import count, nth
from valety_env.engine import STATE, legal_actions, next_deal, play, start_match
from valety_env.episode import (
    DEAL_ENDED,
    EPISODE_ENDED,
    GOES_ON,
    PENALISE,
    ActionTypeError,
    IllegalActionError,
    Setup,
    is_member,
    observe,
    settle,
    write_state,
)
from valety_env.observations import Encoder
from valety_env.rng import below, mix
from valety_env.threads import share_out, usable_threads


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
    options: int,
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
        options: `Setup.options`.
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
            ended = settle(rules[0], state, options, rewards, i)
        else:
            for seat in range(int64(rules[0].num_players)):
                rewards[i, seat] = 0.0
            rewards[i, int64(state.turn)] = fine
            ended = GOES_ON if options & PENALISE else EPISODE_ENDED
        terminated[i] = ended == EPISODE_ENDED
        if ended == DEAL_ENDED:
            next_deal(rules[0], state)
        elif ended == EPISODE_ENDED:
            finals[ends] = states[i]
            ends += 1
            start_match(rules[0], state, state.seed, int64(state.episode) + 1)


@kernel
def observe_tables(
    code: int | None,
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
    code: int | None,
    rules: np.ndarray,
    states: np.ndarray,
    finals: np.ndarray,
    actions: np.ndarray,
    options: int,
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
    step_tables(rules, states, finals, actions, options, fine, rewards, terminated, low, high)
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
    code: int | None,
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
def advance_in_parallel(bounds: np.ndarray, *arguments: Any) -> None:
    """Do what `advance_tables` does to the ranges bounds[t]..bounds[t + 1]-1, a thread each."""
    for thread in prange(bounds.size - 1):
        advance_tables(*arguments, bounds[thread], bounds[thread + 1])  # type: ignore[call-arg]


@parallel_kernel
def sample_in_parallel(bounds: np.ndarray, *arguments: Any) -> None:
    """Do what `sample_actions` does to the ranges bounds[t]..bounds[t + 1]-1, a thread each."""
    for thread in prange(bounds.size - 1):
        sample_actions(*arguments, bounds[thread], bounds[thread + 1])  # type: ignore[call-arg]


class Tables:
    """N tables in this machine's memory and numpy arrays, worked on by threads.

    `cuda.CudaTables` has the same methods for tables and torch tensors on a GPU. Their arguments
    are checked by who calls.

    Args:
        setup: the environment's options.
        num_envs: N.
        threads: 1…N, how many share the work.

    Attributes:
        states: STATE (N,), the tables themselves.
        demand: what `fits` asks of an array besides its shape and dtype, for messages.
    """

    demand = "its rows contiguous and writeable"

    def __init__(self, setup: Setup, num_envs: int, threads: int) -> None:
        self.states = np.zeros(num_envs, STATE)
        self._finals = np.zeros(num_envs, STATE)
        self._options = (setup.options, setup.fine)
        self._rules = setup.played.packed
        self._code = setup.encoders[0].kernel_code
        self._threads = threads
        # Thread t has the tables bounds[t]..bounds[t + 1]-1.
        bounds = [num_envs * t // threads for t in range(threads + 1)]
        self._bounds = np.array(bounds, np.int64)
        self._samples = ArrayPool((num_envs,), np.int64)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return a new array of undefined content."""
        return np.empty(shape, dtype)

    def pool(self, shape: tuple[int, ...], dtype: Any) -> Callable[[], np.ndarray]:
        """Return a function that gives such an array, one that nobody else holds."""
        # Narrow ones are quickly made.
        return ArrayPool(shape, dtype).empty if len(shape) > 1 else partial(np.empty, shape, dtype)

    def fits(self, array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
        """Return whether compiled code may write an array, and stays within it."""
        matches = array.shape == shape and array.dtype == dtype
        return matches and array.strides[-1] == array.itemsize and array.flags.writeable

    def rows_of(self, encoder: Encoder, observation: Any) -> np.ndarray:
        """Return the flat rows (N, size) behind an observation."""
        return encoder.flat(observation)

    def actions(self, given: Any) -> np.ndarray:
        """Return actions as int64 (N,).

        Raises:
            ActionTypeError: if they are not N whole numbers.
        """
        return read_actions(given, self.states.size)

    def start(self, seeds: np.ndarray, anew: bool) -> None:
        """Start each table at the first episode of its seed, or at the one after its last."""
        start_tables(self._rules, self.states, seeds, 0, anew, 0, self.states.size)

    def step(self, actions: np.ndarray, rewards: np.ndarray, terminated: np.ndarray) -> None:
        """Play one action at each table, as `step_tables` does."""
        self._in_turn(step_tables, *self._how(actions, rewards, terminated))

    def observe(self, rows: np.ndarray, masks: np.ndarray, seats: np.ndarray) -> None:
        """Write what the seat to move observes at each table, as `observe_tables` does."""
        n = self.states.size
        observe_tables(self._code, self._rules, self.states, rows, masks, seats, 0, n)

    def advance(
        self,
        actions: np.ndarray,
        rewards: np.ndarray,
        terminated: np.ndarray,
        rows: np.ndarray,
        masks: np.ndarray,
        seats: np.ndarray,
    ) -> None:
        """Do what `step` and then `observe` do."""
        how = self._how(actions, rewards, terminated)
        seen = (rows, masks, seats)
        self._work(advance_tables, advance_in_parallel, self._code, *how, *seen)

    def sample(self, key: np.uint64) -> np.ndarray:
        """Return a uniformly random legal action for each table, int64 (N,)."""
        actions = self._samples.empty()
        self._work(sample_actions, sample_in_parallel, self._rules, self.states, key, actions)
        return actions

    def first_illegal(self, actions: np.ndarray) -> int:
        """Return the first table at which the action is illegal, or −1."""
        return first_illegal(self._rules, self.states, actions, 0, self.states.size)

    def write_states(self, rows: np.ndarray) -> None:
        """Write the whole of each table into its row of `rows` (N, S)."""
        write_states(self._rules, self.states, rows, 0, self.states.size)

    def state_of(self, table: int) -> np.ndarray:
        """Return one table, STATE (1,)."""
        return self.states[table : table + 1]

    def finals(self, terminated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which tables the last step finished, int64 (k,), and their ends, STATE (k,)."""
        tables = np.flatnonzero(terminated)
        # `step_tables` has left them first in each thread's share.
        share = np.searchsorted(self._bounds, tables, side="right") - 1
        low = self._bounds[share]
        return tables, self._finals[low + np.arange(len(tables)) - np.searchsorted(tables, low)]

    def _how(
        self, actions: np.ndarray, rewards: np.ndarray, terminated: np.ndarray
    ) -> tuple[Any, ...]:
        """Return the arguments of `step_tables` but for the range."""
        return (
            self._rules,
            self.states,
            self._finals,
            actions,
            *self._options,
            rewards,
            terminated,
        )

    def _work(
        self, kernel: Callable[..., None], parallel: Callable[..., None], *arguments: Any
    ) -> None:
        """Call a kernel for all tables, or its parallel twin for each thread's share of them."""
        if self._threads > 1 and usable_threads(self._threads) > 1:
            share_out(parallel, self._threads, self._bounds, *arguments)
        else:
            self._in_turn(kernel, *arguments)

    def _in_turn(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Call a kernel for each thread's share of the tables, one after the other."""
        for low, high in pairwise(self._bounds.tolist()):
            kernel(*arguments, low, high)


def read_actions(given: Any, num_envs: int) -> np.ndarray:
    """Return actions as int64 (N,).

    Raises:
        ActionTypeError: if they are not N whole numbers.
    """
    array = np.asarray(given)
    if array.shape != (num_envs,) or array.dtype.kind not in "iu":
        refuse_actions(array.dtype, array.shape, num_envs)
    # One compiled step for all dtypes. What wraps round becomes negative, as illegal as before.
    return np.ascontiguousarray(array, np.int64)


def refuse_illegal(setup: Setup, states: np.ndarray, table: int, action: int) -> NoReturn:
    """Raise the error of an illegal action at a table of many, which is `states[0]`."""
    legal = np.zeros(1, np.uint64)
    legal_sets(setup.played.packed, states, legal, 0, 1)
    seat, where = int(states[0].turn), f"table {table}: "
    raise IllegalActionError(setup.illegal_action(seat, action, int(legal[0]), where))


def refuse_actions(dtype: Any, shape: tuple[int, ...], num_envs: int) -> NoReturn:
    """Raise the error of actions that are not one whole number a table."""
    raise ActionTypeError(
        f"actions of dtype {dtype} and shape {shape}: they must be integers of "
        f"shape ({num_envs},), one a table"
    )

"""The batch environment: many tables stepped together, for self-play."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import uint64

from valety_env._jit import int64, kernel
from valety_env.cards import count, nth
from valety_env.engine import STATE, legal_actions, next_deal, play, start_match
from valety_env.episode import (
    DEAL_ENDED,
    EPISODE_ENDED,
    GOES_ON,
    ActionTypeError,
    IllegalActionError,
    Setup,
    is_member,
    make_setup,
    observe,
    parse_seed,
    settle,
    write_state,
)
from valety_env.observations import Encoder
from valety_env.rng import below, mix
from valety_env.rules import Rules

Observation = np.ndarray | dict[str, np.ndarray]

# What a table does with an illegal action.
_TERMINATE, _PENALISE = range(2)


@dataclass
class Batch:
    """What a step gives; row i is the seat to move at table i.

    Attributes:
        observation: (N, …) of the environment's dtype; for `pieces_v0` a dict of named arrays (N,
            …); with different encodings per player a dict encoder → (n, …).
        action_mask: int8 (N, num_actions), 1 where legal.
        seat: int8 (N,), who is to move.
        rewards: float32 (N, players), of the step just made.
        terminated: bool (N,), whether the step ended an episode; the row is then the first of the
            next.
        truncated: bool (N,), always False.
        rows: with different encodings per player, encoder → int64 (n,), the tables whose seat to
            move has that encoding; else empty.
    """

    observation: Observation
    action_mask: np.ndarray
    seat: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    rows: dict[str, np.ndarray]


@dataclass(frozen=True)
class Final:
    """How the episodes ended that the last step finished.

    Attributes:
        tables: int64 (k,), at which tables.
        observation: of every seat at the end: a list, one a seat, of (k, …).
        totals: int32 (k, players): match totals, of a deal that is the episode its points; in
            Polignac charges.
        winners: bool (k, players); nobody after an illegal action.
        deals: int64 (k,), deals dealt in the episode.
    """

    tables: np.ndarray
    observation: list[Observation]
    totals: np.ndarray
    winners: np.ndarray
    deals: np.ndarray


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
    """Play one action at each of the tables low..high-1 and start finished tables anew."""
    for i in range(low, high):
        action = int64(actions[i])
        state = states[i]
        legal = legal_actions(rules[0], state)
        if not is_member(legal, action):
            for seat in range(int64(rules[0].num_players)):
                rewards[i, seat] = 0.0
            rewards[i, int64(state.turn)] = fine
            ended = EPISODE_ENDED if illegal == _TERMINATE else GOES_ON
        else:
            play(rules[0], state, action)
            ended = settle(rules[0], state, single_deal, by_points, rewards, i)
        terminated[i] = ended == EPISODE_ENDED
        if ended == DEAL_ENDED:
            next_deal(rules[0], state)
        elif ended == EPISODE_ENDED:
            finals[i] = states[i]
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
    """Write what the seat to move observes at each of the tables low..high-1."""
    for i in range(low, high):
        seat = int64(states[i].turn)
        seats[i] = seat
        observe(code, rules[0], states[i], seat, rows, masks, i)


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
        state = states[int64(tables[j])]
        observe(code, rules[0], state, int64(seats[j]), rows, masks, j)


@kernel
def start_tables(
    rules: np.ndarray, states: np.ndarray, seeds: np.ndarray, episode: int, anew: bool
) -> None:
    """Start every table at `episode` of its seed, or if not `anew` at the one after its last."""
    for i in range(states.size):
        number = episode if anew else int64(states[i].episode) + 1
        start_match(rules[0], states[i], seeds[i], number)


@kernel
def first_illegal(rules: np.ndarray, states: np.ndarray, actions: np.ndarray) -> int:
    """Return the first table at which the action is illegal, or −1."""
    for i in range(states.size):
        action = int64(actions[i])
        legal = legal_actions(rules[0], states[i])
        if not is_member(legal, action):
            return i
    return -1


@kernel
def legal_sets(rules: np.ndarray, states: np.ndarray, sets: np.ndarray) -> None:
    """Write the legal actions at every table as sets, uint64 (N,)."""
    for i in range(states.size):
        sets[i] = legal_actions(rules[0], states[i])


@kernel
def sample_actions(
    rules: np.ndarray, states: np.ndarray, key: np.uint64, actions: np.ndarray
) -> None:
    """Draw a uniformly random legal action for every table."""
    for i in range(states.size):
        actions[i] = legal_actions(rules[0], states[i])
    # Apart, as without branches it is compiled to whole vectors: 1 ns a table against 12.
    for i in range(states.size):
        legal = uint64(actions[i])
        actions[i] = nth(legal, below(mix(key, uint64(i)), count(legal)))


@kernel
def write_states(rules: np.ndarray, states: np.ndarray, rows: np.ndarray) -> None:
    """Write the whole of every table into rows (N, S)."""
    for i in range(states.size):
        write_state(rules[0], states[i], rows, i)


class SelfPlayEnv:
    """N tables stepped together; each row of a batch is the seat to move at its table.

    Table i has the seed `seeds[i]` and plays exactly as an AEC environment reset with that seed,
    whatever the number of tables and threads. Finished tables start their next episode within the
    step.

    Args:
        game: the game's name (`rules.PRESETS`), or `Rules`.
        num_envs: N, tables.
        seed: 0…2^64−1; None: 64 bits of entropy. Table i gets `mix(seed, i)`.
        threads: how many share a step; results don't depend on it.
        reuse_buffers: give out the same arrays at every step, overwritten, in place of new ones.
        episode: `"match"`, the whole game, or `"deal"`.
        reward: `"win"` at the end, or `"points"` at each deal's end.
        observation: an encoder's name, or a dict agent → name.
        dtype: of observations; uint8 by default.
        illegal: `"terminate"` ends the table's episode with a fine for the offender, `"penalise"`
            fines and lets the same seat move again, `"raise"` raises before anything has moved.
        **rule_options: fields of `rules.Rules`.

    Attributes:
        num_envs: N.
        seeds: uint64 (N,), the tables' seeds.
        setup: the resolved options.
        num_actions: size of the action space.

    Raises:
        ValueError: for an unknown option or value, or rules that are impossible.
    """

    def __init__(
        self,
        game: str | Rules = "valety",
        num_envs: int = 1,
        seed: int | None = None,
        threads: int = 1,
        reuse_buffers: bool = False,
        *,
        episode: str = "match",
        reward: str = "win",
        observation: str | Mapping[str, str] = "flat_v0",
        dtype: Any = None,
        illegal: str = "terminate",
        **rule_options: Any,
    ) -> None:
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}={value!r}: it must be a whole number of at least 1")
        self.setup: Setup = make_setup(
            game,
            episode=episode,
            reward=reward,
            observation=observation,
            dtype=dtype,
            default_dtype="uint8",
            illegal=illegal,
            **rule_options,
        )
        self.num_envs = int(num_envs)
        self.threads = min(int(threads), self.num_envs)
        self.reuse_buffers = reuse_buffers
        self.num_actions = self.setup.num_actions
        self.num_players = self.setup.rules.num_players
        self._rules = self.setup.played.packed
        self._states = np.zeros(self.num_envs, STATE)
        self._finals = np.zeros(self.num_envs, STATE)
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        bounds = [self.num_envs * t // self.threads for t in range(self.threads + 1)]
        self._ranges = list(pairwise(bounds))
        self._buffers: Batch | None = None
        self._last: Batch | None = None
        self._draws = 0
        self._set_seed(seed)
        self._started = False

    def _set_seed(self, seed: int | None) -> None:
        self.seed = parse_seed(seed)
        counters = np.arange(self.num_envs, dtype=np.uint64)
        self.seeds = np.empty(self.num_envs, np.uint64)
        mix_all(uint64(self.seed), counters, self.seeds)
        self._sample_key = np.uint64(mix(uint64(self.seed), uint64(2**64 - 1)))

    @property
    def rules(self) -> Rules:
        """The rules of the game."""
        return self.setup.rules

    @property
    def states(self) -> np.ndarray:
        """The tables themselves, STATE (N,), not a copy: for search and tests."""
        return self._states

    def reset(self, seed: int | None = None) -> Batch:
        """Start every table; without a seed, at the next episode of the seed it has.

        Raises:
            ValueError: for a seed that is no whole number in 0…2^64−1.
        """
        if seed is not None:
            self._set_seed(seed)
        anew = seed is not None or not self._started
        self._started = True
        if anew:
            self._draws = 0
        start_tables(self._rules, self._states, self.seeds, 0, anew)
        batch = self._arrays()
        batch.rewards[:] = 0
        batch.terminated[:] = False
        self._observe(batch)
        self._last = batch
        return batch

    def step(self, actions: Any, out: Batch | None = None) -> Batch:
        """Play one action a table.

        Args:
            actions: integers (N,).
            out: arrays to write into in place of new ones, such as rows of a rollout, of the
                shapes and dtypes of a `Batch`; not with different encodings per player.

        Returns:
            the batch, `out` itself if given.

        Raises:
            ActionTypeError: if `actions` are not N whole numbers.
            ValueError: if `out` does not fit.
            IllegalActionError: under `illegal="raise"`, before anything has moved.
        """
        if self._last is None:
            raise RuntimeError("reset() must be called before step()")
        given = self._check_actions(actions)
        # One compiled step for all dtypes. What wraps round becomes negative, as illegal as before.
        actions = np.ascontiguousarray(given, np.int64)
        if out is not None:
            self._check_out(out)
        if self.setup.illegal == "raise":
            self._refuse_illegal(actions, given)
        batch = out if out is not None else self._arrays()
        fused = None if self._is_mixed else self._fused_rows(batch)

        def step_range(thread: int) -> None:
            low, high = self._ranges[thread]
            step_tables(
                self._rules,
                self._states,
                self._finals,
                actions,
                self.setup.single_deal,
                self.setup.by_points,
                _TERMINATE if self.setup.illegal == "terminate" else _PENALISE,
                self.setup.fine,
                batch.rewards,
                batch.terminated,
                low,
                high,
            )
            if fused is not None:
                self._observe_range(thread, fused, batch)

        self._spread(step_range)
        batch.truncated[:] = False
        if fused is None:
            self._observe(batch)
        self._last = batch
        return batch

    def _spread(self, work: Any) -> None:
        """Call `work(thread)` for every thread's range of tables, the first in this thread."""
        waiting = [self._pool.submit(work, t) for t in range(1, self.threads)] if self._pool else []
        work(0)
        for future in waiting:
            future.result()

    def _check_actions(self, actions: Any) -> np.ndarray:
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise ActionTypeError(
                f"actions of dtype {array.dtype} and shape {array.shape}: they must be integers of "
                f"shape ({self.num_envs},), one a table"
            )
        return array

    def _check_out(self, out: Batch) -> None:
        """Refuse arrays that compiled code would write beyond the end of."""
        if self._is_mixed:
            raise ValueError("out: with different encodings per player there is nothing to reuse")
        n, size = self.num_envs, self.setup.encoders[0].layout.size
        for name, array, shape, dtype in (
            ("observation", self._fused_rows(out), (n, size), self.setup.dtype),
            ("action_mask", out.action_mask, (n, self.num_actions), np.int8),
            ("seat", out.seat, (n,), np.int8),
            ("rewards", out.rewards, (n, self.num_players), np.float32),
            ("terminated", out.terminated, (n,), np.bool_),
            ("truncated", out.truncated, (n,), np.bool_),
        ):
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(
                    f"out.{name} of dtype {array.dtype} and shape {array.shape}: it must be of "
                    f"dtype {np.dtype(dtype)} and shape {shape}"
                )

    def _refuse_illegal(self, actions: np.ndarray, given: np.ndarray) -> None:
        table = first_illegal(self._rules, self._states, actions)
        if table >= 0:
            sets = np.zeros(1, np.uint64)
            legal_sets(self._rules, self._states[table : table + 1], sets)
            seat = int(self._states[table].turn)
            raise IllegalActionError(
                self.setup.illegal_action(seat, int(given[table]), int(sets[0]), f"table {table}: ")
            )

    @property
    def _is_mixed(self) -> bool:
        """Whether players have different encodings."""
        return len({e.name for e in self.setup.encoders}) > 1

    def _arrays(self) -> Batch:
        """Return arrays to fill: new ones, or always the same under `reuse_buffers`."""
        if self._buffers is not None:
            return self._buffers
        batch = self.empty_batch()
        if self.reuse_buffers:
            self._buffers = batch
        return batch

    def empty_batch(self) -> Batch:
        """Return new arrays of the right shapes and dtypes for `step(out=…)`, not yet filled."""
        n = self.num_envs
        observation: Observation = {}
        if not self._is_mixed:
            encoder = self.setup.encoders[0]
            observation = encoder.shaped(np.empty((n, encoder.layout.size), self.setup.dtype))
        return Batch(
            observation,
            np.empty((n, self.num_actions), np.int8),
            np.empty(n, np.int8),
            np.empty((n, self.num_players), np.float32),
            np.empty(n, np.bool_),
            np.zeros(n, np.bool_),
            {},
        )

    def _fused_rows(self, batch: Batch) -> np.ndarray:
        """Return the flat rows (N, size) behind a batch's observation."""
        encoder = self.setup.encoders[0]
        return encoder.flat(batch.observation)

    def _observe_range(self, thread: int, rows: np.ndarray, batch: Batch) -> None:
        low, high = self._ranges[thread]
        observe_tables(
            self.setup.encoders[0].code,
            self._rules,
            self._states,
            rows,
            batch.action_mask,
            batch.seat,
            low,
            high,
        )

    def _observe(self, batch: Batch) -> None:
        """Fill in seat, observation and mask of a batch."""
        if not self._is_mixed:
            rows = self._fused_rows(batch)
            self._spread(lambda thread: self._observe_range(thread, rows, batch))
            return
        batch.seat[:] = self._states["turn"]
        observation: dict[str, np.ndarray] = {}
        batch.rows = {}
        names = [e.name for e in self.setup.encoders]
        for encoder in {e.name: e for e in self.setup.encoders}.values():
            mine = np.array([name == encoder.name for name in names])
            tables = np.flatnonzero(mine[batch.seat])
            shaped, masks = self._observe_some(encoder, self._states, tables, batch.seat[tables])
            batch.action_mask[tables] = masks
            batch.rows[encoder.name] = tables
            observation[encoder.name] = shaped  # type: ignore[assignment]
        batch.observation = observation

    def _observe_some(
        self, encoder: Encoder, states: np.ndarray, tables: np.ndarray, seats: np.ndarray
    ) -> tuple[Observation, np.ndarray]:
        rows = np.empty((len(tables), encoder.layout.size), self.setup.dtype)
        masks = np.empty((len(tables), self.num_actions), np.int8)
        observe_some(
            encoder.code,
            self._rules,
            states,
            tables,
            seats,
            rows,
            masks,
        )
        return encoder.shaped(rows), masks

    def sample(self) -> np.ndarray:
        """Return a uniformly random legal action a table, int64 (N,).

        The draws are fixed by the seed and the number of calls.
        """
        actions = np.empty(self.num_envs, np.int64)
        key = np.uint64(mix(self._sample_key, uint64(self._draws)))
        self._draws += 1
        sample_actions(self._rules, self._states, key, actions)
        return actions

    def state(self) -> np.ndarray:
        """Return the whole of every table, (N, S) of the environment's dtype.

        Laid out by `setup.state_layout`.
        """
        rows = np.empty((self.num_envs, self.setup.state_layout.size), self.setup.dtype)
        write_states(self._rules, self._states, rows)
        return rows

    def final(self) -> Final:
        """Return how the episodes ended that the last step finished; of length 0 if none did."""
        if self._last is None:
            raise RuntimeError("reset() must be called before final()")
        tables = np.flatnonzero(self._last.terminated)
        ended = self._finals[tables]
        places = np.arange(len(tables))
        observation = [
            self._observe_some(encoder, ended, places, np.full(len(tables), seat))[0]
            for seat, encoder in enumerate(self.setup.encoders)
        ]
        seats = np.arange(self.num_players)
        return Final(
            tables,
            observation,
            ended["totals"][:, : self.num_players].copy(),
            (ended["winners"][:, None] >> seats & 1).astype(np.bool_),
            ended["deal"].astype(np.int64) + 1,
        )

    def close(self) -> None:
        """End the threads."""
        if self._pool:
            self._pool.shutdown()


@kernel
def mix_all(key: np.uint64, counters: np.ndarray, out: np.ndarray) -> None:
    """Write `mix(key, counters[i])` into out[i]."""
    for i in range(counters.size):
        out[i] = mix(key, counters[i])

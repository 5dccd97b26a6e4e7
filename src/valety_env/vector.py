"""The batch environment: many tables stepped together, for self-play."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import uint64

from valety_env.arrays import ArrayPool
from valety_env.engine import STATE
from valety_env.episode import ActionTypeError, IllegalActionError, Setup, make_setup, parse_seed
from valety_env.observations import Encoder
from valety_env.rng import mix
from valety_env.rules import Rules
from valety_env.tables import (
    PENALISE,
    TERMINATE,
    advance_in_parallel,
    advance_tables,
    first_illegal,
    legal_sets,
    mix_all,
    observe_some,
    observe_tables,
    sample_actions,
    sample_in_parallel,
    start_tables,
    step_tables,
    write_states,
)
from valety_env.threads import share_out, usable_threads

Observation = np.ndarray | dict[str, np.ndarray]


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
        reuse_buffers: give out the same arrays at every step, overwritten. Else an array that is
            given out is not written again while anybody holds it.
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
        # Thread t has the tables bounds[t]..bounds[t + 1]-1.
        bounds = [self.num_envs * t // self.threads for t in range(self.threads + 1)]
        self._bounds = np.array(bounds, np.int64)
        # Whether players have different encodings.
        self._is_mixed = len({e.name for e in self.setup.encoders}) > 1
        # Rows, masks and rewards.
        n, size = self.num_envs, 0 if self._is_mixed else self.setup.encoders[0].layout.size
        self._wide: tuple[tuple[tuple[int, int], Any], ...] = (
            ((n, size), self.setup.dtype),
            ((n, self.num_actions), np.int8),
            ((n, self.num_players), np.float32),
        )
        self._samples = ArrayPool((n,), np.int64)
        self._pools = [ArrayPool(shape, dtype) for shape, dtype in self._wide]
        self._buffers: Batch | None = None
        self._ended: np.ndarray | None = None
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
        start_tables(self._rules, self._states, self.seeds, 0, anew, 0, self.num_envs)
        batch = self._arrays()
        batch.rewards[:] = 0
        batch.terminated[:] = False
        self._observe(batch)
        self._ended = batch.terminated
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
        if self._ended is None:
            raise RuntimeError("reset() must be called before step()")
        given = self._check_actions(actions)
        # One compiled step for all dtypes. What wraps round becomes negative, as illegal as before.
        actions = np.ascontiguousarray(given, np.int64)
        if out is not None:
            self._check_out(out)
        if self.setup.illegal == "raise":
            self._refuse_illegal(actions, given)
        batch = out if out is not None else self._arrays()
        how = (
            self._rules,
            self._states,
            self._finals,
            actions,
            self.setup.single_deal,
            self.setup.by_points,
            PENALISE if self.setup.illegal == "penalise" else TERMINATE,
            self.setup.fine,
            batch.rewards,
            batch.terminated,
        )
        if self._is_mixed:
            for low, high in pairwise(self._bounds.tolist()):
                step_tables(*how, low, high)
            self._observe(batch)
        else:
            code = self.setup.encoders[0].code
            seen = (self._fused_rows(batch), batch.action_mask, batch.seat)
            self._work(advance_tables, advance_in_parallel, code, *how, *seen)
        if out is not None:
            batch.truncated[:] = False
        self._ended = batch.terminated
        return batch

    def _work(
        self, kernel: Callable[..., None], parallel: Callable[..., None], *arguments: Any
    ) -> None:
        """Call a kernel for all tables, or its parallel twin for each thread's share of them."""
        if self.threads > 1 and usable_threads(self.threads) > 1:
            share_out(parallel, self.threads, *arguments, self._bounds)
        else:
            for low, high in pairwise(self._bounds.tolist()):
                kernel(*arguments, low, high)

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
            if array.shape != shape or array.dtype != dtype or array.strides[-1] != array.itemsize:
                raise ValueError(
                    f"out.{name} of dtype {array.dtype} and shape {array.shape}: it must be of "
                    f"dtype {np.dtype(dtype)} and shape {shape}, and its rows contiguous"
                )

    def _refuse_illegal(self, actions: np.ndarray, given: np.ndarray) -> None:
        table = first_illegal(self._rules, self._states, actions, 0, self.num_envs)
        if table >= 0:
            sets = np.zeros(1, np.uint64)
            legal_sets(self._rules, self._states[table : table + 1], sets, 0, 1)
            seat = int(self._states[table].turn)
            raise IllegalActionError(
                self.setup.illegal_action(seat, int(given[table]), int(sets[0]), f"table {table}: ")
            )

    def _arrays(self) -> Batch:
        """Return arrays to fill: nobody else's, or always the same under `reuse_buffers`."""
        if self._buffers is not None:
            return self._buffers
        batch = self._batch(*(pool.empty() for pool in self._pools))
        if self.reuse_buffers:
            self._buffers = batch
        return batch

    def empty_batch(self) -> Batch:
        """Return new arrays of the right shapes and dtypes for `step(out=…)`, not yet filled."""
        return self._batch(*(np.empty(shape, dtype) for shape, dtype in self._wide))

    def _batch(self, rows: np.ndarray, masks: np.ndarray, rewards: np.ndarray) -> Batch:
        n = self.num_envs
        return Batch(
            {} if self._is_mixed else self.setup.encoders[0].shaped(rows),
            masks,
            np.empty(n, np.int8),
            rewards,
            np.empty(n, np.bool_),
            np.zeros(n, np.bool_),
            {},
        )

    def _fused_rows(self, batch: Batch) -> np.ndarray:
        """Return the flat rows (N, size) behind a batch's observation."""
        encoder = self.setup.encoders[0]
        return encoder.flat(batch.observation)

    def _observe(self, batch: Batch) -> None:
        """Fill in seat, observation and mask of a batch."""
        if not self._is_mixed:
            observe_tables(
                self.setup.encoders[0].code,
                self._rules,
                self._states,
                self._fused_rows(batch),
                batch.action_mask,
                batch.seat,
                0,
                self.num_envs,
            )
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
        actions = self._samples.empty()
        key = np.uint64(mix(self._sample_key, uint64(self._draws)))
        self._draws += 1
        self._work(sample_actions, sample_in_parallel, self._rules, self._states, key, actions)
        return actions

    def state(self) -> np.ndarray:
        """Return the whole of every table, (N, S) of the environment's dtype.

        Laid out by `setup.state_layout`.
        """
        rows = np.empty((self.num_envs, self.setup.state_layout.size), self.setup.dtype)
        write_states(self._rules, self._states, rows, 0, self.num_envs)
        return rows

    def final(self) -> Final:
        """Return how the episodes ended that the last step finished; of length 0 if none did."""
        if self._ended is None:
            raise RuntimeError("reset() must be called before final()")
        tables = np.flatnonzero(self._ended)
        ended = self._finals[self._places_of_finals(tables)]
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

    def _places_of_finals(self, tables: np.ndarray) -> np.ndarray:
        """Return where `step_tables` has left the finished ones: first in each thread's share."""
        share = np.searchsorted(self._bounds, tables, side="right") - 1
        low = self._bounds[share]
        return low + np.arange(len(tables)) - np.searchsorted(tables, low)

    def close(self) -> None:
        """Do nothing, as other environments' `close` does something: there is nothing to end."""

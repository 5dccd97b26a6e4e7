"""The batch environment: many tables stepped together, for self-play."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import uint64

from valety_env.agents import needs_extra
from valety_env.episode import Setup, make_setup, parse_seed
from valety_env.observations import Encoder
from valety_env.rng import mix
from valety_env.rules import Rules
from valety_env.tables import Tables, mix_all, observe_some, refuse_illegal

Observation = np.ndarray | dict[str, np.ndarray]


@dataclass
class Batch:
    """What a step gives; row i is the seat to move at table i.

    With a device its arrays are torch tensors there, of the same shapes and dtypes.

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
    """How the episodes ended that the last step finished; numpy arrays, whatever the device.

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
        device: `"cpu"`, or a GPU that torch knows, `"cuda"` or `"cuda:1"`: all work is done there,
            in torch's current stream and without waiting for it. Needs the extra `cuda`.
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
        ValueError: for an unknown option or value, rules that are impossible, a device that is not
            there, or options not to be had on one: `threads`, different encodings.
        ModuleNotFoundError: for a device without what the extra `cuda` installs.
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
        device: Any = "cpu",
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
        # Whether players have different encodings.
        self._is_mixed = len({e.name for e in self.setup.encoders}) > 1
        self._tables = self._make_tables(device)
        # The arrays of a batch, of the observation the flat rows.
        n, size = self.num_envs, 0 if self._is_mixed else self.setup.encoders[0].layout.size
        self._shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "observation": ((n, size), self.setup.dtype),
            "action_mask": ((n, self.num_actions), np.int8),
            "rewards": ((n, self.num_players), np.float32),
            "seat": ((n,), np.int8),
            "terminated": ((n,), np.bool_),
            "truncated": ((n,), np.bool_),
        }
        self._pools = [self._tables.pool(*kind) for kind in self._shapes.values()]
        self._buffers: tuple[Batch, np.ndarray] | None = None
        self._ended: np.ndarray | None = None
        self._draws = 0
        self._set_seed(seed)
        self._started = False

    def _make_tables(self, device: Any) -> Tables:
        """Return the tables, where they are to be: the one place that knows of devices."""
        name = str(device)
        if name == "cpu":
            return Tables(self.setup, self.num_envs, self.threads)
        if not re.fullmatch(r"cuda(:\d+)?", name):
            raise ValueError(f"device={name!r}: allowed are 'cpu', 'cuda', 'cuda:0', 'cuda:1', …")
        if self.threads > 1:
            raise ValueError(f"threads={self.threads}: with device={name!r} it must be 1")
        if self._is_mixed:
            raise ValueError(
                f"observation={self.setup.observation!r}: with device={name!r} all players have "
                "the same encoding"
            )
        with needs_extra(f"device={name!r}", "cuda", ("numba_cuda", "torch")):
            from valety_env.cuda import CudaTables
        # Typed as its twin, as its tensors are typed as arrays.
        tables: Any = CudaTables(self.setup, self.num_envs, name)
        return tables

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
        """The tables, STATE (N,), for search and tests: themselves, from a device a copy."""
        return self._tables.states

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
        self._tables.start(self.seeds, anew)
        batch, rows = self._arrays()
        batch.rewards[:] = 0
        batch.terminated[:] = False
        self._observe(batch, rows)
        self._ended = batch.terminated
        return batch

    def step(self, actions: Any, out: Batch | None = None) -> Batch:
        """Play one action a table.

        Args:
            actions: integers (N,); on a device best a tensor there.
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
        played = self._tables.actions(actions)
        kept = None if out is None else (out, self._checked_rows(out))
        if self.setup.illegal == "raise":
            table = self._tables.first_illegal(played)
            if table >= 0:
                state = self._tables.state_of(table)
                refuse_illegal(self.setup, state, table, int(actions[table]))
        batch, rows = kept or self._arrays()
        if self._is_mixed:
            self._tables.step(played, batch.rewards, batch.terminated)
            self._observe(batch, rows)
        else:
            seen = (rows, batch.action_mask, batch.seat)
            self._tables.advance(played, batch.rewards, batch.terminated, *seen)
        if kept:
            batch.truncated[:] = False
        self._ended = batch.terminated
        return batch

    def _checked_rows(self, out: Batch) -> np.ndarray:
        """Return the flat rows (N, size) behind the observation of a caller's batch.

        Raises:
            ValueError: for arrays that compiled code would write beyond the end of.
        """
        if self._is_mixed:
            raise ValueError("out: with different encodings per player there is nothing to reuse")
        rows = self._tables.rows_of(self.setup.encoders[0], out.observation)
        for name, (shape, dtype) in self._shapes.items():
            array = rows if name == "observation" else getattr(out, name)
            if not self._tables.fits(array, shape, dtype):
                raise ValueError(
                    f"out.{name} of dtype {array.dtype} and shape {tuple(array.shape)}: it must be "
                    f"of dtype {np.dtype(dtype)} and shape {shape}, and {self._tables.demand}"
                )
        return rows

    def _arrays(self) -> tuple[Batch, np.ndarray]:
        """Return a batch to fill and the flat rows (N, size) behind its observation.

        They are nobody else's, or always the same under `reuse_buffers`.
        """
        if self._buffers is not None:
            return self._buffers
        arrays = [new() for new in self._pools]
        made = (self._batch(arrays), arrays[0])
        if self.reuse_buffers:
            self._buffers = made
        return made

    def empty_batch(self) -> Batch:
        """Return new arrays of the right shapes and dtypes for `step(out=…)`, not yet filled."""
        return self._batch([self._tables.empty(*kind) for kind in self._shapes.values()])

    def _batch(self, arrays: list[np.ndarray]) -> Batch:
        rows, masks, rewards, seats, terminated, truncated = arrays
        truncated[:] = False
        observation = {} if self._is_mixed else self.setup.encoders[0].shaped(rows)
        return Batch(observation, masks, seats, rewards, terminated, truncated, {})

    def _observe(self, batch: Batch, rows: np.ndarray) -> None:
        """Fill in seat, observation and mask of a batch that has these rows."""
        if not self._is_mixed:
            self._tables.observe(rows, batch.action_mask, batch.seat)
            return
        states = self._tables.states
        batch.seat[:] = states["turn"]
        observation: dict[str, np.ndarray] = {}
        batch.rows = {}
        names = [e.name for e in self.setup.encoders]
        for encoder in {e.name: e for e in self.setup.encoders}.values():
            mine = np.array([name == encoder.name for name in names])
            tables = np.flatnonzero(mine[batch.seat])
            shaped, masks = self._observe_some(encoder, states, tables, batch.seat[tables])
            batch.action_mask[tables] = masks
            batch.rows[encoder.name] = tables
            observation[encoder.name] = shaped  # type: ignore[assignment]
        batch.observation = observation

    def _observe_some(
        self, encoder: Encoder, states: np.ndarray, tables: np.ndarray, seats: np.ndarray
    ) -> tuple[Observation, np.ndarray]:
        rows = np.empty((len(tables), encoder.layout.size), self.setup.dtype)
        masks = np.empty((len(tables), self.num_actions), np.int8)
        rules = self.setup.played.packed
        observe_some(encoder.kernel_code, rules, states, tables, seats, rows, masks)
        return encoder.shaped(rows), masks

    def sample(self) -> np.ndarray:
        """Return a uniformly random legal action a table, int64 (N,).

        The draws are fixed by the seed and the number of calls.
        """
        key = np.uint64(mix(self._sample_key, uint64(self._draws)))
        self._draws += 1
        return self._tables.sample(key)

    def state(self) -> np.ndarray:
        """Return the whole of every table, (N, S) of the environment's dtype.

        Laid out by `setup.state_layout`.
        """
        shape = (self.num_envs, self.setup.state_layout.size)
        rows = self._tables.empty(shape, self.setup.dtype)
        self._tables.write_states(rows)
        return rows

    def final(self) -> Final:
        """Return how the episodes ended that the last step finished; of length 0 if none did."""
        if self._ended is None:
            raise RuntimeError("reset() must be called before final()")
        tables, ended = self._tables.finals(self._ended)
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
        """Do nothing, as other environments' `close` does something: there is nothing to end."""

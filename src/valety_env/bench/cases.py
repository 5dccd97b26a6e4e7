"""What is measured of our own: every interface, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from valety_env import polignac_v0, valety_v0
from valety_env.bench.bounds import ROW_BYTES, NoGame, row_steps
from valety_env.bench.loops import (
    aec_tables_steps,
    batch_steps,
    rollout_steps,
    scalar_steps,
    spread_batch,
    spread_vector,
    vector_steps,
)
from valety_env.bench.measure import Case, stepping
from valety_env.bench.peer_programs.aec_loop import aec_steps
from valety_env.bench.peer_programs.serve import Steps
from valety_env.vector import SelfPlayEnv

COPY_ROW = Case(
    "copy-row", f"copying {ROW_BYTES} bytes in cache", "bound", stepping(row_steps), "rows"
)
NO_GAME = "aec-no-game"
# What a peer's batch, or its environment of one game, is compared with.
NEAREST = {"batch": "batch-valety", "scalar": "aec-valety"}

# Rows of the rollout: more than fit into any cache.
_ROLLOUT = 16
_NEW_ARRAYS = "new arrays at every step"


def _batch(game: str, tables: int, seed: int, **options: Any) -> SelfPlayEnv:
    options = {"seed": seed, "reuse_buffers": True, **options}
    return spread_batch(lambda count: SelfPlayEnv(game, count, **options), tables)


def _play_batch(game: str, tables: int, seed: int, **options: Any) -> Steps:
    return batch_steps(_batch(game, tables, seed, **options))


def _play_rollout(tables: int, seed: int, dtype: str) -> Steps:
    env = _batch("valety", tables, seed, dtype=dtype)
    rows = [env.empty_batch() for _ in range(_ROLLOUT)]
    for row in rows:
        # Memory is had from the system when it is first written.
        np.asarray(row.observation).fill(0)
    return rollout_steps(env, rows)


def _play_polignac_aec(players: int, seed: int) -> Steps:
    return aec_steps(polignac_v0.env(num_players=players), seed)


def _play_scalar(tables: int, seed: int) -> Steps:
    make = partial(gymnasium.make, "valety/Valety-v0", opponent="heuristic")
    return scalar_steps([make() for _ in range(tables)], seed)


def _play_vector(tables: int, seed: int, opponent: str) -> Steps:
    def make(count: int) -> Any:
        return gymnasium.make_vec("valety/Valety-v0", num_envs=count, opponent=opponent)

    return vector_steps(*spread_vector(make, tables, seed), seed)


def own_cases(tables: int, seed: int) -> list[Case]:
    """Return all cases of our own, with this many tables where there are many."""
    many = 4 * tables

    def batch(name: str, title: str, start: Callable[[], Steps], **more: Any) -> Case:
        return Case(name, title, "batch", stepping(start), **{"over": COPY_ROW.name, **more})

    def aec(name: str, title: str, start: Callable[[], Steps]) -> Case:
        return Case(name, title, "scalar", stepping(start), over=NO_GAME)

    def learners(name: str, title: str, kind: str, start: Callable[[], Steps]) -> Case:
        return Case(name, title, kind, stepping(start), unit="steps")

    def valety(tables: int, **options: Any) -> Callable[[], Steps]:
        return partial(_play_batch, "valety", tables, seed, **options)

    return [
        COPY_ROW,
        batch("batch-valety", f"batch, Valety, {tables:,} tables", valety(tables)),
        *(
            batch(
                f"batch-polignac-{players}",
                f"batch, Polignac, {players} players, {tables:,} tables",
                partial(_play_batch, "polignac", tables, seed, num_players=players),
            )
            for players in (4, 6)
        ),
        batch(
            "batch-valety-new-arrays",
            f"batch, Valety, {tables:,} tables",
            valety(tables, reuse_buffers=False),
            note=_NEW_ARRAYS,
        ),
        batch(
            "batch-valety-2-threads",
            f"batch, Valety, {tables:,} tables, 2 threads",
            valety(tables, threads=2),
            over="batch-valety",
            one_core=False,
        ),
        batch("batch-valety-x4", f"batch, Valety, {many:,} tables", valety(many)),
        batch(
            "batch-valety-x4-2-threads",
            f"batch, Valety, {many:,} tables, 2 threads",
            valety(many, threads=2),
            over="batch-valety-x4",
            one_core=False,
        ),
        *(
            batch(
                f"rollout-valety-{dtype}",
                f"batch into rollout rows, Valety, {tables:,} tables",
                partial(_play_rollout, tables, seed, dtype),
                note=dtype,
            )
            for dtype in ("uint8", "float32")
        ),
        Case(
            NO_GAME,
            "AEC without a game, standard bookkeeping",
            "bound",
            stepping(lambda: aec_steps(NoGame(), seed)),
            unit="steps",
        ),
        aec("aec-valety", "AEC, Valety", lambda: aec_steps(valety_v0.env(), seed)),
        *(
            aec(
                f"aec-polignac-{players}",
                f"AEC, Polignac, {players} players",
                partial(_play_polignac_aec, players, seed),
            )
            for players in (4, 6)
        ),
        learners(
            "gymnasium-heuristic",
            "Gymnasium, Valety against heuristic",
            "scalar",
            partial(_play_scalar, 1, seed),
        ),
        *(
            learners(
                f"vector-{opponent}",
                f"Gymnasium vector, Valety against {opponent}, {tables:,} tables",
                "vector",
                partial(_play_vector, tables, seed, opponent),
            )
            for opponent in ("heuristic", "random")
        ),
    ]


SWEEP_TABLES = tuple(10**power for power in range(7))
# Loops over so many environments of one table, at most: more are no faster.
_SCALAR_TABLES = 100


def sweep_cases(tables: int, seed: int) -> list[Case]:
    """Return the case of every interface with so many tables, under the same names for all."""

    def play_aec() -> Steps:
        if tables == 1:
            return aec_steps(valety_v0.env(), seed)
        return aec_tables_steps([valety_v0.env() for _ in range(tables)], seed)

    batch = partial(_play_batch, "valety", tables, seed)
    cases = [
        Case("batch-valety", "batch, Valety", "batch", stepping(batch)),
        Case(
            "batch-valety-2-threads",
            "batch, Valety, 2 threads",
            "batch",
            stepping(partial(batch, threads=2)),
            one_core=False,
        ),
        Case(
            "batch-polignac-4",
            "batch, Polignac, 4 players",
            "batch",
            stepping(partial(_play_batch, "polignac", tables, seed, num_players=4)),
        ),
        *(
            Case(
                f"vector-{opponent}",
                f"Gymnasium vector, against {opponent}",
                "vector",
                stepping(partial(_play_vector, tables, seed, opponent)),
                unit="steps",
            )
            for opponent in ("heuristic", "random")
        ),
    ]
    if tables <= _SCALAR_TABLES:
        cases += [
            Case("aec-valety", "AEC, Valety, a loop over tables", "scalar", stepping(play_aec)),
            Case(
                "gymnasium-heuristic",
                "Gymnasium, a loop over tables",
                "scalar",
                stepping(partial(_play_scalar, tables, seed)),
                unit="steps",
            ),
        ]
    return cases

"""A few deals or matches of one line-up, played in whatever process it may be.

What comes out follows from the job alone: not from who else plays, from how deals are divided among
jobs, or from where they are played.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from multiprocessing import get_context, parent_process
from typing import Any

import numpy as np

from valety_env.agents import Agent, make_agent
from valety_env.arena.lineups import agent_seeds, play_lineup
from valety_env.arena.tables import ask_once
from valety_env.arena.tournament.entrants import Entrant, LineUp
from valety_env.arena.tournament.store import DEAL, Block
from valety_env.episode import Setup, make_setup
from valety_env.rules import parse_game


@dataclass(frozen=True)
class Job:
    """What is to be played.

    Attributes:
        game: the game and its options.
        seed: of the tournament.
        lineup: the number of who sits at each place.
        entrants: those, each once, by number.
        kind: DEAL or MATCH.
        first: the number of the first deal or match.
        number: how many.
        trust: as for `make_agent`.
    """

    game: str
    seed: int
    lineup: LineUp
    entrants: tuple[tuple[int, Entrant], ...]
    kind: str
    first: int
    number: int
    trust: bool


@cache
def setup_of(game: str, kind: str) -> Setup:
    """Return a game with single deals or with matches as its episodes."""
    return make_setup(parse_game(game)[1], episode="deal" if kind == DEAL else "match")


@lru_cache(maxsize=64)
def _agent(name: str, digest: str, game: str, kind: str, trust: bool) -> Agent:
    """Return an agent, made once a process."""
    del digest  # another file is another agent
    setup = setup_of(game, kind)
    agent = make_agent(name, setup.played, trust)
    # What it has to compile first is no time to think.
    ask_once(setup, agent)
    return agent


def play_job(job: Job) -> Block:
    """Play a job.

    Raises:
        Exception: whatever an agent raises; see `play_lineup`.
    """
    setup = setup_of(job.game, job.kind)
    agents = [_agent(e.name, e.digest, job.game, job.kind, job.trust) for _, e in job.entrants]
    place_of = {number: place for place, (number, _) in enumerate(job.entrants)}
    begin = time.perf_counter()
    parts = list(
        play_lineup(
            setup,
            agents,
            [place_of[number] for number in job.lineup],
            agent_seeds(job.seed, [entrant.stream for _, entrant in job.entrants]),
            job.seed,
            job.first,
            job.first + job.number,
        )
    )
    plays = setup.rules.num_players * int(setup.played.packed[0]["hand_size"])
    states = np.concatenate([games.states for games in parts])
    decisions = np.sum([games.decisions for games in parts], axis=0)
    seconds = np.sum([games.seconds for games in parts], axis=0)
    return Block(
        lineup=job.lineup,
        kind=job.kind,
        first=job.first,
        scores=np.concatenate([games.scores for games in parts]).astype(np.int16),
        winners=np.concatenate([games.winners for games in parts]),
        lengths=np.concatenate([games.lengths for games in parts]).astype(np.uint16),
        plays=states["history"][..., : plays if job.kind == DEAL else 0],
        generals=states["general"],
        seconds=time.perf_counter() - begin,
        thought={
            number: (int(asked), float(took))
            for (number, _), asked, took in zip(job.entrants, decisions, seconds, strict=True)
        },
    )


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Here(Executor):
    """Plays in this process, when it is asked."""

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        """As `Executor.submit`; the future is done when this returns."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future


def _begin_worker(path: list[str]) -> None:
    """Make a new process ready: it ends with its parent, and only by it."""
    # Ctrl-C reaches all processes of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path

    def follow(parent: Any) -> None:
        parent.join()
        os._exit(1)

    parent = parent_process()
    assert parent is not None
    threading.Thread(target=follow, args=(parent,), daemon=True).start()


def processes(number: int) -> Executor:
    """Return what plays in so many processes; 1: in this one."""
    if number == 1:
        return Here()
    # Spawned ones share no threads and no locks with this one.
    return ProcessPoolExecutor(
        number, get_context("spawn"), initializer=_begin_worker, initargs=(list(sys.path),)
    )

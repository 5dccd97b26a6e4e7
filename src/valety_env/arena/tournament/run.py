"""Playing what a tournament lacks, and keeping each block of games as soon as it is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from valety_env.agents import AgentError
from valety_env.arena.evaluation import versions
from valety_env.arena.lineups import points_of
from valety_env.arena.sequential import Number, Stopping
from valety_env.arena.tournament.entrants import Entrant, LineUp
from valety_env.arena.tournament.jobs import Here, Job, play_job, setup_of
from valety_env.arena.tournament.store import DEAL, MATCH, Block, Store

Progress = Callable[[str, float, int], None]
"""Called with what is being played, how many deals and matches of it are done, and of how many."""

# A block is to take about so many seconds: what is lost when a run is killed. The first one of a
# line-up is small, for nobody knows how fast it plays; the next grow.
_SECONDS = 2.0
_FIRST = 8
_GROWTH = 8
_MOST = 8192


@dataclass
class _Pairing:
    """What has been played by one line-up.

    Attributes:
        lineup: who sits at each place.
        kind: DEAL or MATCH.
        stopping: says how much is wanted.
        wanted: how many deals or matches are.
        enough: whether no more will be.
        played: ranges of them, in order: first and end.
        given: ranges that are being played.
        seconds: a deal or match, as far as is known.
        largest: of the blocks played.
    """

    lineup: LineUp
    kind: str
    stopping: Stopping
    wanted: int = 0
    enough: bool = False
    played: list[tuple[int, int]] = field(default_factory=list)
    given: list[tuple[int, int]] = field(default_factory=list)
    seconds: float | None = None
    largest: int = 0

    @property
    def done(self) -> int:
        """How many of those wanted have been played."""
        return sum(max(0, min(end, self.wanted) - first) for first, end in self.played)

    @property
    def under_way(self) -> int:
        """How many have been played or given to somebody."""
        return self.done + sum(end - first for first, end in self.given)

    def note(self, first: int, number: int, seconds: float) -> None:
        """Note that a block has been played."""
        self.played.append((first, first + number))
        self.given = [given for given in self.given if given[0] != first]
        self.seconds = seconds / number
        self.largest = max(self.largest, number)

    def next_range(self) -> tuple[int, int] | None:
        """Return the first range that nobody has played or is playing, of a fitting size."""
        first = 0
        end = self.wanted
        for low, high in sorted(self.played + self.given):
            if low > first:
                end = min(end, low)
                break
            first = max(first, high)
        if first >= end:
            return None
        size = _FIRST
        if self.seconds is not None:
            most = min(_MOST, max(_FIRST, self.largest * _GROWTH))
            size = max(1, min(most, int(_SECONDS / max(self.seconds, 1e-9))))
        return first, min(end, first + size)


@dataclass(frozen=True)
class Tournament:
    """Line-ups that are to meet, and the file in which their games are kept.

    Attributes:
        store: the file.
        game: the game and its options.
        seed: of tables and agents.
        entrants: those who play, by number.
        lineups: who meets whom.
        deals: makes what says when there are enough deals of a line-up.
        matches: how many matches each line-up plays.
        trust: as for `make_agent`.
    """

    store: Store
    game: str
    seed: int
    entrants: dict[int, Entrant]
    lineups: Sequence[LineUp]
    deals: Callable[[], Stopping]
    matches: int = 0
    trust: bool = False

    def run(
        self,
        executor: Executor | None = None,
        at_once: int = 1,
        command: str = "",
        progress: Progress | None = None,
    ) -> None:
        """Play what is missing; what has been played is kept whatever happens.

        Args:
            executor: plays the jobs; None: this process. It is left open.
            at_once: how many jobs it plays at the same time.
            command: noted in the file, as what made the games.
            progress: told how far it is.

        Raises:
            AgentError: if an agent fails, or a process that plays ends.
            StoreError: if the file can't be written.
            IllegalActionError: if an agent chooses an action that is not legal.
            ActionTypeError: if an agent does not give one whole number a table.
        """
        pairings = self._pairings()
        if not any(pairing.done < pairing.wanted for pairing in pairings):
            return
        session = self.store.begin_session(
            datetime.now(UTC).isoformat(timespec="seconds"), command, versions()
        )
        executor = Here() if executor is None else executor
        running: dict[Future[Block], _Pairing] = {}
        try:
            while True:
                # One more than can be played, so that nobody waits.
                while len(running) <= at_once and (job := self._next_job(pairings)):
                    running[executor.submit(play_job, job[1])] = job[0]
                if not running:
                    return
                self._collect(running, session)
                for pairing in pairings:
                    self._look(pairing)
                if progress is not None:
                    done = sum(pairing.done for pairing in pairings)
                    progress("deals and matches", done, sum(p.wanted for p in pairings))
        except BrokenProcessPool:
            raise AgentError(
                "a process that played has ended, why is not known (too little memory?); what has "
                "been played is kept, and the same command goes on"
            ) from None
        finally:
            for future in running:
                future.cancel()
            self._keep_finished(running, session)

    def _pairings(self) -> list[_Pairing]:
        """Return what has been played by each line-up, and how much is wanted."""
        known = self.store.ranges()
        found = []
        for lineup in self.lineups:
            for kind in (DEAL, MATCH):
                stopping = self.deals() if kind == DEAL else Number(self.matches)
                pairing = _Pairing(lineup, kind, stopping)
                for first, number, seconds in known.get((lineup, kind), []):
                    pairing.note(first, number, seconds)
                self._look(pairing)
                found.append(pairing)
        return found

    def _look(self, pairing: _Pairing) -> None:
        """Ask how much is wanted of a line-up, when all that was wanted is there."""
        while not pairing.enough and pairing.done >= pairing.wanted:
            points = self._points(pairing)[: pairing.wanted]
            wanted = pairing.stopping.wanted(points)
            pairing.enough = wanted <= pairing.wanted
            pairing.wanted = max(wanted, pairing.wanted)

    def _points(self, pairing: _Pairing) -> np.ndarray:
        """Return the first place's points in each deal or match."""
        if isinstance(pairing.stopping, Number) or not pairing.wanted:
            return np.empty(pairing.done)  # only their number matters
        rules = setup_of(self.game, pairing.kind).rules
        blocks = list(self.store.blocks(pairing.lineup, pairing.kind))
        return np.concatenate([points_of(rules, block.scores)[:, 0] for block in blocks])

    def _next_job(self, pairings: Sequence[_Pairing]) -> tuple[_Pairing, Job] | None:
        """Return a job of the line-up that is furthest behind."""
        behind = [p for p in pairings if p.under_way < p.wanted]
        for pairing in sorted(behind, key=lambda p: p.under_way / p.wanted):
            found = pairing.next_range()
            if found is None:
                continue
            pairing.given.append(found)
            job = Job(
                game=self.game,
                seed=self.seed,
                lineup=pairing.lineup,
                entrants=tuple(
                    (number, self.entrants[number]) for number in dict.fromkeys(pairing.lineup)
                ),
                kind=pairing.kind,
                first=found[0],
                number=found[1] - found[0],
                trust=self.trust,
            )
            return pairing, job
        return None

    def _collect(self, running: dict[Future[Block], _Pairing], session: int) -> None:
        """Wait for at least one job, and keep what has been played."""
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            pairing = running.pop(future)
            block = future.result()
            self.store.add(block, session)
            pairing.note(block.first, block.number, block.seconds)

    def _keep_finished(self, running: dict[Future[Block], _Pairing], session: int) -> None:
        """Keep what those who still play come to; failures have been told by another."""
        wait([future for future in running if not future.cancelled()])
        for future in running:
            if not future.cancelled() and future.exception() is None:
                self.store.add(future.result(), session)

"""Tournaments: who meets whom, every game kept, going on after a stop, and what it comes to."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import plain_mix

from valety_env.agents import AgentError, UntrustedError
from valety_env.arena import mean_interval
from valety_env.arena.behaviour import replay_deals
from valety_env.arena.lineups import points_of, rotations_of
from valety_env.arena.tournament import (
    DEAL,
    MATCH,
    Block,
    Entrant,
    Store,
    StoreError,
    Tournament,
    against,
    checkpoints_in,
    enter,
    labels,
    plan_tournament,
    processes,
    read_standings,
    round_robin,
)
from valety_env.arena.tournament.jobs import Here, Job, play_job
from valety_env.episode import IllegalActionError, make_setup
from valety_env.rules import parse_game

NAMES = ("random", "heuristic", "random,general=0")


def plan(path: Path, *agents: str, **options: Any) -> Tournament:
    return plan_tournament(path, agents, **{"seed": 11, "deals": 30, **options})


def play(path: Path, *agents: str, **options: Any) -> Tournament:
    """Play a tournament in this process."""
    tournament = plan(path, *agents, **options)
    with tournament.store:
        tournament.run()
    return tournament


def contents(path: Path) -> dict[tuple[Any, ...], Any]:
    """Return every game in a file, by line-up, kind and number, whatever blocks they lie in."""
    found: dict[tuple[Any, ...], Any] = {}
    with Store(path) as store:
        who = store.entrants()
        for lineup, kind in store.ranges():
            names = tuple((who[n].name, who[n].copy) for n in lineup)
            for block in store.blocks(lineup, kind):
                for i in range(block.number):
                    key = (names, kind, block.first + i)
                    assert key not in found
                    found[key] = [
                        getattr(block, name)[i].tolist()
                        for name in ("scores", "winners", "lengths", "plays", "generals")
                    ]
    return found


# Who meets whom.


@pytest.mark.plain
def test_everybody_meets_everybody() -> None:
    assert round_robin([3, 1, 2], 2) == [(1, 2), (1, 3), (2, 3)]
    assert round_robin([1, 2], 4) == [(1, 2, 2, 2), (2, 1, 1, 1)]
    mixed = round_robin([4, 1, 3, 2], 3, mixed=True)
    assert mixed[:3] == [(4, 1, 1), (4, 3, 3), (4, 2, 2)]
    assert mixed[12:] == [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)]
    assert against([5, 6], [1, 2], 2) == [(1, 5), (2, 5), (1, 6), (2, 6)]
    assert against([5], [1, 5], 3) == [(5, 1, 1)]


@pytest.mark.plain
def test_copies_of_an_agent_are_told_apart_and_have_keys_of_their_own() -> None:
    entrants = enter(["random", "heuristic", "random"])
    assert labels(entrants) == ["random", "heuristic", "random (2)"]
    assert len({entrant.stream for entrant in entrants}) == 3
    assert all(0 <= entrant.stream < 1 << 62 for entrant in entrants)
    # Nobody's keys depend on who else plays.
    assert enter(["heuristic"])[0].stream == entrants[1].stream


def test_a_file_that_has_changed_is_another_agent(tmp_path: Path) -> None:
    model = tmp_path / "last.safetensors"
    model.write_bytes(b"one")
    first = enter([f"checkpoint:{model}"])[0]
    assert enter([f"checkpoint:{tmp_path}"])[0].digest == first.digest
    model.write_bytes(b"two")
    second = enter([f"checkpoint:{model}"])[0]
    assert first.identity != second.identity
    told = labels([first, second, Entrant("random")])
    assert told == [
        f"{first.name}@{first.digest[:6]}",
        f"{first.name}@{second.digest[:6]}",
        "random",
    ]


def test_a_folders_checkpoints_are_found_once_each(tmp_path: Path) -> None:
    for step, content in (("step-2", b"b"), ("step-1", b"a"), ("last", b"b")):
        (tmp_path / f"{step}.safetensors").write_bytes(content)
    (tmp_path / "config.toml").write_text("")
    assert checkpoints_in(tmp_path) == [f"checkpoint:{tmp_path}/step-{n}" for n in (1, 2)]
    (tmp_path / "last.safetensors").write_bytes(b"c")
    assert checkpoints_in(tmp_path)[-1] == f"checkpoint:{tmp_path}/last"
    with pytest.raises(ValueError, match="there is no checkpoint"):
        checkpoints_in(tmp_path / "nowhere")


# What is played.


@pytest.mark.parametrize("game", ["valety", "polignac", "knaves"])
def test_every_pairing_is_played_on_the_same_deals(tmp_path: Path, game: str) -> None:
    file = tmp_path / "t.sqlite"
    play(file, *NAMES[:2], game=game, deals=6, matches=3)
    rules = parse_game(game)[1]
    found = contents(file)
    places = rules.num_players
    pairings = 1 if places == 2 else 2
    assert len(found) == pairings * (6 + 3)
    for (_, kind, _), (scores, winners, lengths, plays, generals) in found.items():
        assert np.shape(scores) == (places, places)
        assert len(winners) == len(lengths) == len(plays) == len(generals) == places
        size = places * (rules.hand_size or 0) if kind == DEAL else 0
        assert np.shape(plays) == (places, size)
        assert set(lengths) == {1} or kind == MATCH
    # Whoever plays has the cards of the tournament's seed, at which all of it can be played again.
    with Store(file) as store:
        for lineup, kind in store.ranges():
            for block in store.blocks(lineup, kind) if kind == DEAL else ():
                numbers = np.arange(block.first, block.first + block.number)
                replay_deals(
                    make_setup(rules, episode="deal").played,
                    np.array([plain_mix(11, (1 << 32) + int(n)) for n in numbers], np.uint64),
                    rotations_of(places, 0, block.number, duplicate=True),
                    block.plays,
                    block.generals,
                    block.scores,
                )


def test_games_depend_on_nothing_but_the_seed(tmp_path: Path) -> None:
    options = {"matches": 2, "game": "valety-L4"}
    play(tmp_path / "a", *NAMES, **options)
    # In another order, in parts, in several processes, and with others about.
    tournament = plan(tmp_path / "b", *reversed(NAMES), "random", **options)
    with tournament.store, processes(2) as executor:
        tournament.run(executor, 2)
    play(tmp_path / "c", "random", "heuristic", **options | {"deals": 7})
    play(tmp_path / "c", *NAMES, **options)
    alone, among_others, in_parts = (contents(tmp_path / name) for name in "abc")

    def unordered(games: dict[tuple[Any, ...], Any]) -> dict[Any, Any]:
        # Who was entered first sits at the first place.
        return {
            (frozenset(names), *rest): sorted(np.ravel(np.array(value[0])).tolist())
            for (names, *rest), value in games.items()
        }

    assert alone == in_parts
    expected = unordered(alone)
    among = unordered(among_others)
    assert {key: among[key] for key in expected} == expected
    assert len(among) == 2 * len(expected)
    play(tmp_path / "d", *NAMES, **options | {"seed": 12})
    assert contents(tmp_path / "d") != alone


def test_nothing_is_played_twice_and_more_is_added(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, "random", "heuristic", deals=20)
    before = contents(file)
    play(file, "random", "heuristic", deals=20)
    with Store(file) as store:
        assert len(store.sessions()) == 1
    play(file, "random", "heuristic", deals=25)
    after = contents(file)
    assert {key: after[key] for key in before} == before
    assert len(after) == 25
    # A newcomer meets those who are there; they don't meet again.
    play(file, "random,general=0", add=True, deals=25)
    assert len(contents(file)) == 75
    # Who is named meets those who are named.
    tournament = plan(file, "heuristic", "random,general=0", deals=25)
    tournament.store.close()
    assert len(tournament.lineups) == 1


def test_two_copies_of_an_agent_play_each_other(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, "random", "random", deals=400)
    with Store(file) as store:
        standings = read_standings(store)
    cell = standings.cells[0, 1]
    assert cell.deals == 400
    assert cell.ci95 is not None
    # A tie, as far as can be seen (an interval so wide is missed once in 16,000 times), but not
    # game by game, as deterministic twins tie.
    assert abs(cell.points) < 2 * (cell.ci95[1] - cell.points)
    assert cell.ci95[0] < cell.ci95[1]


def test_a_precision_is_waited_for_pairing_by_pairing(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, "random", "heuristic", "random,general=0", deals=3000, until=0.2)
    with Store(file) as store:
        standings = read_standings(store)
        deals = {lineup: sum(n for _, n, _ in r) for (lineup, _), r in store.ranges().items()}
    for cell in standings.cells.values():
        assert cell.ci95 is not None
        assert (cell.ci95[1] - cell.ci95[0]) / 2 <= 0.2
    assert len(set(deals.values())) > 1
    assert max(deals.values()) < 3000
    # It is waited for again, with nothing left to do.
    play(file, "random", "heuristic", "random,general=0", deals=3000, until=0.2)
    with Store(file) as store:
        assert len(store.sessions()) == 1


def test_a_pairing_that_is_precise_enough_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, ...]] = []
    blocks = Store.blocks

    def counted(store: Store, lineup: tuple[int, ...], kind: str) -> Iterator[Block]:
        read.append(tuple(lineup))
        return blocks(store, lineup, kind)

    monkeypatch.setattr(Store, "blocks", counted)
    # Points of twins never differ: they are precise at the first look, the others later.
    play(tmp_path / "t", "heuristic", "heuristic", "random", deals=3000, until=0.12)
    assert read.count((1, 2)) == 1
    assert read.count((1, 3)) > 2


def test_mixed_tables_are_played_by_all_sets(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, *NAMES, game="knaves", mixed=True, deals=10)
    with Store(file) as store:
        lineups = {lineup for lineup, _ in store.ranges()}
        standings = read_standings(store)
    assert (1, 2, 3) in lineups
    assert len(lineups) == 7
    for standing in standings.standings:
        assert standing.mixed is not None
        assert standing.field is not None
    assert sum(s.mixed[0] for s in standings.standings if s.mixed) == pytest.approx(0.0, abs=1e-9)


# Stops of every kind.


class Failing(Here):
    """Plays some jobs and then fails as it is told to."""

    def __init__(self, jobs: int, error: BaseException) -> None:
        self.left = jobs
        self.error = error

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return super().submit(function, *arguments, **options)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), AgentError("it fails")])
def test_what_was_played_before_a_stop_is_kept(tmp_path: Path, error: BaseException) -> None:
    file = tmp_path / "t.sqlite"
    tournament = plan(file, "random", "heuristic", deals=500)
    with tournament.store, pytest.raises(type(error)):
        tournament.run(Failing(3, error))
    kept = contents(file)
    assert 0 < len(kept) < 500
    play(file, "random", "heuristic", deals=500)
    whole = contents(file)
    assert len(whole) == 500
    assert {key: whole[key] for key in kept} == kept
    play(tmp_path / "unbroken", "random", "heuristic", deals=500)
    assert whole == contents(tmp_path / "unbroken")


BAD_AGENT = """
import numpy as np

class Bad:
    def __init__(self, rules, after=50):
        self.after = after

    def act(self, views, legal, keys):
        lowest = np.array([(int(x) & -int(x)).bit_length() - 1 for x in legal])
        self.after -= 1
        return lowest if self.after > 0 else np.full(len(legal), 99)
"""


@pytest.mark.parametrize("number", [1, 2])
def test_an_agent_that_fails_is_named_and_the_games_of_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (tmp_path / "bad_agent.py").write_text(BAD_AGENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "t.sqlite"
    tournament = plan(file, "random", "heuristic", "python:bad_agent:Bad", deals=300)
    with (
        tournament.store,
        processes(number) as executor,
        pytest.raises(IllegalActionError, match=r"python:bad_agent:Bad at the table with seed"),
    ):
        tournament.run(executor, number)
    assert contents(file)


def test_a_process_that_is_killed_is_told_of_and_the_games_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    tournament = plan(file, "random", "heuristic", deals=100_000)
    killed = []

    def kill_one(what: str, done: float, total: int) -> None:
        if done > 0 and not killed:
            (victim, *_) = multiprocessing.active_children()
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(done)

    with (
        tournament.store,
        processes(2) as executor,
        pytest.raises(AgentError, match="a process that played has ended"),
    ):
        tournament.run(executor, 2, progress=kill_one)
    assert len(contents(file)) >= killed[0]


def test_a_disk_that_is_full_loses_nothing_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    tournament = plan(file, "random", "heuristic", deals=2000)
    with tournament.store as store:
        store._db.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match=r"t\.sqlite: .*full"):
            tournament.run()
    kept = contents(file)
    assert 0 < len(kept) < 2000
    play(file, "random", "heuristic", deals=2000)
    whole = contents(file)
    assert len(whole) == 2000
    assert {key: whole[key] for key in kept} == kept


@pytest.mark.slow
def test_a_tournament_that_is_killed_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    names = ["random", "heuristic", "pimc,worlds=2,model=none"]
    command = [sys.executable, "-m", "valety_env", "tournament", *names]
    command += ["--deals", "300", "--game", "valety-L6", "--seed", "5", "--results"]
    unbroken = tmp_path / "unbroken.sqlite"
    subprocess.run([*command, str(unbroken)], check=True, capture_output=True)
    rng = random.Random(1)
    file = tmp_path / "killed.sqlite"
    kept: dict[tuple[Any, ...], Any] = {}
    kills = 0
    for _ in range(4):
        running = subprocess.Popen(
            [*command, str(file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Some time after it has begun to play, whenever that is.
        size = file.stat().st_size if file.exists() else 0
        while running.poll() is None and (not file.exists() or file.stat().st_size <= size):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 1.0))
        if running.poll() is None:
            os.kill(running.pid, signal.SIGKILL)
            kills += 1
        running.wait()
        wait_for_orphans(running.pid)
        now = contents(file)
        assert {key: now[key] for key in kept} == kept
        kept = now
    assert kills > 0
    subprocess.run([*command, str(file)], check=True, capture_output=True)
    assert contents(file) == contents(unbroken)


def wait_for_orphans(group: int) -> None:
    """Wait until no process of a session is left; its workers end with their parent."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("processes that played are left behind")


class Recording(Executor):
    """Plays here and keeps the jobs."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        self.jobs.append(arguments[0])
        return Here().submit(function, *arguments, **options)


def test_blocks_grow_with_what_a_line_up_plays_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording()
    tournament = plan(tmp_path / "t", "random", "heuristic", deals=3000)

    def timed(job: Job) -> Block:
        block = play_job(job)
        return Block(**{**vars(block), "seconds": 0.01 * job.number})

    monkeypatch.setattr("valety_env.arena.tournament.run.play_job", timed)
    with tournament.store:
        tournament.run(recording)
    sizes = [job.number for job in recording.jobs]
    # Two that nobody knew the time of, then up to 2 s: 200 deals of 10 ms.
    assert sizes[:2] == [8, 8]
    assert max(sizes) == 200
    assert sum(sizes) == 3000
    assert [job.first for job in recording.jobs] == np.cumsum([0, *sizes[:-1]]).tolist()


# The file.


def test_one_file_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    tournament = plan(file, "random", "heuristic")
    with (
        tournament.store,
        pytest.raises(StoreError, match=r"t\.sqlite: it is in use by another tournament"),
    ):
        Store(file)
    Store(file).close()


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello " * 1000)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE songs (name TEXT)")
    db.close()
    newer = tmp_path / "newer.sqlite"
    play(newer, "random", "heuristic", deals=1)
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = [path.read_bytes() for path in (text, other, newer)]
    for path, told in (
        (text, "it holds no results of tournaments"),
        (other, "it holds no results of tournaments"),
        (newer, "its format is 99; this version reads format 1"),
    ):
        with pytest.raises(StoreError, match=told):
            plan(path, "random", "heuristic")
    assert [path.read_bytes() for path in (text, other, newer)] == before
    with pytest.raises(StoreError, match="there is no such results file"):
        Store(tmp_path / "nothing")


def test_a_file_belongs_to_one_game_and_seed(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, "random", "heuristic", game="polignac,num_players=5", deals=1)
    with pytest.raises(StoreError, match="has results of game polignac,num_players=5, not valety"):
        plan(file, "random", "heuristic", game="valety")
    with pytest.raises(StoreError, match="has results of seed 11, not 12"):
        plan(file, "random", "heuristic", seed=12)
    # Neither need be said again, and the same game may be said in other words.
    for game in (None, "polignac,num_deals=5,num_players=5"):
        tournament = plan(file, "random", "heuristic", seed=None, game=game)
        tournament.store.close()
        assert tournament.seed == 11


def test_what_is_wrong_makes_no_file(tmp_path: Path) -> None:
    for agents, options, told in (
        (("random",), {}, "at least two agents"),
        (("random", "nobody"), {}, "'nobody' names no agent"),
        (("random", "checkpoint:nowhere"), {}, "no checkpoint at nowhere"),
        (("random", "clairvoyant"), {"game": "polignac"}, "solved are games of two players"),
        (("random", "heuristic"), {"seed": -1}, "seed=-1"),
        (("random", "heuristic"), {"deals": 0}, "deals=0: it must be a whole number"),
        (("random", "heuristic"), {"matches": 1.5}, "matches=1.5: it must be a whole number"),
        (("random", "heuristic"), {"until": -1.0}, "until=-1.0: it must be a number of points"),
        (("random", "heuristic"), {"game": "bridge"}, "'bridge' is not a game"),
    ):
        with pytest.raises(ValueError, match=told):
            plan(tmp_path / "t.sqlite", *agents, **options)
        assert not (tmp_path / "t.sqlite").exists()
    # What a run that was killed at once leaves behind is no file of anybody's.
    (tmp_path / "t.sqlite").write_bytes(b"")
    play(tmp_path / "t.sqlite", "random", "heuristic", deals=2)
    assert len(contents(tmp_path / "t.sqlite")) == 2


def test_games_that_were_tampered_with_are_found_out(tmp_path: Path) -> None:
    for column, value, told in (
        ("scores", b"12", "are damaged"),
        ("plays", None, "was not played like that"),
    ):
        file = tmp_path / f"{column}.sqlite"
        play(file, "random", "heuristic", deals=4)
        db = sqlite3.connect(file)
        if value is None:
            (plays,) = db.execute("SELECT plays FROM blocks").fetchone()
            value = plays[1:2] + plays[:1] + plays[2:]
        db.execute(f"UPDATE blocks SET {column} = ?", (value,))
        db.commit()
        db.close()
        with Store(file) as store, pytest.raises(StoreError, match=told):
            read_standings(store, behaviour=True)


def test_who_changed_plays_no_more_and_who_runs_code_is_not_made_unasked(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    tournament = play(file, "random", "heuristic", deals=2)
    with Store(file) as store:
        store.number_of(Entrant("checkpoint:gone", "0123"))
    told: list[str] = []
    again = plan(file, "random,general=0", add=True, skipped=told.append)
    again.store.close()
    assert len(again.entrants) == 3
    assert told == [
        "checkpoint:gone plays no more: no checkpoint at gone: it must be a .safetensors file, or "
        "a run's folder with last.safetensors in it; its games are kept"
    ]
    # Nor is one that asks another for advice.
    for name in ("python:os:getcwd", "pimc,worlds=2,model=python:os:getcwd"):
        other = tmp_path / name.replace(":", "-")
        shutil.copy(file, other)
        with Store(other) as store:
            store.number_of(Entrant(name))
        with pytest.raises(UntrustedError, match=f"knows {name}, which can run code"):
            plan(other, "random", add=True)
    # Those who are named are made without a word.
    plan(file, "random", "heuristic").store.close()
    assert tournament.entrants.keys() == {1, 2}


# What it comes to.


def test_standings_are_what_the_games_say(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, *NAMES, game="valety-L6", deals=40, matches=10)
    with Store(file) as store:
        standings = read_standings(store, behaviour=True)
        who = {e.name: n for n, e in store.entrants().items()}
        rules = parse_game("valety-L6")[1]
        place = {standing.entrant.name: i for i, standing in enumerate(standings.standings)}
        for one, other in (("random", "heuristic"), ("heuristic", "random,general=0")):
            lineup = (who[one], who[other])
            points = np.concatenate(
                [points_of(rules, b.scores)[:, 0] for b in store.blocks(lineup, DEAL)]
            )
            cell = standings.cells[place[one], place[other]]
            back = standings.cells[place[other], place[one]]
            assert cell.points == pytest.approx(points.mean())
            assert cell.points == -back.points
            assert cell.ci95 == pytest.approx(mean_interval(points))
            assert (cell.deals, cell.matches) == (40, 10)
            winners = np.concatenate([b.winners for b in store.blocks(lineup, MATCH)])
            # 1: alone; 3: shared with the other.
            assert cell.win_rate == pytest.approx(np.choose(winners, [0, 1, 0, 0.5]).mean())
    best = standings.standings[0]
    assert best.label == "heuristic"
    assert best.field is not None
    cells = [standings.cells[0, other].points for other in (1, 2)]
    assert best.field[0] == pytest.approx(np.mean(cells))
    ratings = [s.match_rating for s in standings.standings]
    assert [r.elo for r in ratings if r] == sorted((r.elo for r in ratings if r), reverse=True)
    for standing in standings.standings:
        assert standing.deal_rating is not None
        assert standing.deal_rating.games == 2 * 2 * 40
        assert standing.behaviour is not None
        assert standing.behaviour.deals == 40
        assert standing.behaviour.loss is not None
        assert standing.ms_a_move is not None
        assert standing.ms_a_move > 0
    value = json.loads(json.dumps(standings.to_dict()))
    assert value["standings"][0]["agent"] == "heuristic"
    assert len(value["matrix"]) == 6
    assert value["seed"] == 11
    assert value["sessions"][0]["versions"]["valety_env"]


def test_who_has_played_no_matches_is_compared_by_deals(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, "random", "random,general=0", game="valety", deals=50, matches=5)
    play(file, "heuristic", add=True, deals=50)
    with Store(file) as store:
        standings = read_standings(store).standings
    ratings = [standing.deal_rating for standing in standings]
    assert standings[0].label == "heuristic"
    assert standings[0].match_rating is None
    assert [r.elo for r in ratings if r] == sorted((r.elo for r in ratings if r), reverse=True)


def test_the_field_has_an_interval_over_deals(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, "random", "heuristic", "random", deals=200)
    with Store(file) as store:
        standings = read_standings(store)
        blocks = {lineup: list(store.blocks(lineup, DEAL)) for lineup, _ in store.ranges()}
    rules = parse_game("valety")[1]
    first, second = (
        np.concatenate([points_of(rules, block.scores)[:, place] for block in blocks[lineup]])
        for lineup, place in (((1, 2), 1), ((2, 3), 0))
    )
    # The same deals against both opponents: their mean, deal by deal, is one observation.
    (best,) = [s for s in standings.standings if s.entrant.name == "heuristic"]
    assert best.field is not None
    assert best.field[0] == pytest.approx((first + second).mean() / 2)
    assert best.field[1] == pytest.approx(mean_interval((first + second) / 2))


def test_who_wins_a_deal_is_ahead_in_the_ratings_even_at_equal_points(tmp_path: Path) -> None:
    # In this game of three tricks equal points are common, and the tricks decide (V6).
    file = tmp_path / "t.sqlite"
    play(file, "random", "heuristic", game="valety-L3", deals=300)
    with Store(file) as store:
        standings = read_standings(store)
        blocks = list(store.blocks((1, 2), DEAL))
    won = np.concatenate([(block.winners >> 1 & 1) for block in blocks]).sum()
    ties = sum(int((b.scores[..., 0] == b.scores[..., 1]).sum()) for b in blocks)
    assert ties > 20
    best = standings.standings[0].deal_rating
    assert best is not None
    expected = 200 * np.log10((won + 0.5) / (600 - won + 0.5))
    assert best.elo == pytest.approx(expected)


def test_only_those_asked_for_are_told_of(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    play(file, *NAMES, deals=5)
    with Store(file) as store:
        standings = read_standings(store, only=[1, 2])
    assert {s.label for s in standings.standings} == {"random", "heuristic"}
    assert standings.standings[0].deal_rating is not None
    assert standings.standings[0].deal_rating.games == 10

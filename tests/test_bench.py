"""`valety-env bench`: what is counted, how ratios are taken, peers that fail, what is reported."""

import ast
import itertools
import json
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy import uint64
from scripts import ROOT, load_script

from valety_env import cli, valety_v0
from valety_env.bench import PEERS, bounds, cases, loops, machine, peers, plan, startup
from valety_env.bench.loops import choose_legal
from valety_env.bench.measure import Case, CaseError, Measure, measure_rounds, ratio_within_rounds
from valety_env.bench.peer_programs import serve
from valety_env.bench.peers import Peer, PeerError, PeerProcess, install, running_peers
from valety_env.env import AECTable
from valety_env.single import SingleEnv, VectorSingleEnv
from valety_env.vector import SelfPlayEnv

Captured = pytest.CaptureFixture[str]
PROGRAMS = Path(serve.__file__).parent


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


# What is counted


class Played:
    """Plays that the environments themselves were asked for, and that all were legal."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plays = 0
        masks: dict[int, np.ndarray] = {}
        batch_reset, batch_step, aec_step = SelfPlayEnv.reset, SelfPlayEnv.step, AECTable.step
        single_step, vector_step = SingleEnv.step, VectorSingleEnv.step

        def reset_batch(env: SelfPlayEnv, seed: int | None = None) -> Any:
            batch = batch_reset(env, seed)
            masks[id(env)] = batch.action_mask.copy()
            return batch

        def step_batch(env: SelfPlayEnv, actions: np.ndarray, out: Any = None) -> Any:
            mask = masks.get(id(env))
            if mask is not None:
                self.count(mask[np.arange(env.num_envs), actions])
            batch = batch_step(env, actions, out)
            masks[id(env)] = batch.action_mask.copy()
            return batch

        def step_aec(env: AECTable, action: Any) -> None:
            agent = env.agent_selection
            if env.terminations[agent] or env.truncations[agent]:
                assert action is None
            else:
                observed: Any = env.observe(agent)
                self.count(observed["action_mask"][[action]])
            aec_step(env, action)

        def step_single(env: SingleEnv, action: Any) -> Any:
            self.count(env.action_masks()[[action]])
            return single_step(env, action)

        def step_vector(envs: VectorSingleEnv, actions: np.ndarray) -> Any:
            self.count(envs.action_masks()[np.arange(envs.num_envs), actions])
            return vector_step(envs, actions)

        monkeypatch.setattr(SelfPlayEnv, "reset", reset_batch)
        monkeypatch.setattr(SelfPlayEnv, "step", step_batch)
        # The Gymnasium environment has such a table of its own, at which opponents play too.
        if name.startswith("aec"):
            monkeypatch.setattr(AECTable, "step", step_aec)
        monkeypatch.setattr(SingleEnv, "step", step_single)
        monkeypatch.setattr(VectorSingleEnv, "step", step_vector)

    def count(self, legal: np.ndarray) -> None:
        assert legal.all()
        self.plays += len(legal)


OWN = [case.name for case in cases.own_cases(4, 0)]
BOUNDS = [case.name for case in cases.own_cases(4, 0) if case.kind == "bound"]
POINTS = [(tables, case.name) for tables in (1, 10) for case in cases.sweep_cases(tables, 0)]


def check_counts(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = case.start()
    played = Played(case.name, monkeypatch)
    # The batch's first step shows its mask, and is not checked.
    first, _ = measure(1e-9)
    played.plays = 0
    steps, seconds = measure(0.02)
    assert first > 0
    assert seconds >= 0.02
    assert steps == played.plays > 0


@pytest.mark.parametrize("name", [name for name in OWN if name not in BOUNDS])
def test_a_case_plays_legally_and_counts_what_was_played(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_counts(next(c for c in cases.own_cases(6, 3) if c.name == name), monkeypatch)


@pytest.mark.parametrize(("tables", "name"), POINTS)
def test_a_point_of_the_sweep_plays_legally_and_counts_what_was_played(
    tables: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_counts(next(c for c in cases.sweep_cases(tables, 3) if c.name == name), monkeypatch)


def test_the_sweep_goes_from_one_table_to_a_million_on_every_interface() -> None:
    assert cases.SWEEP_TABLES == (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
    assert {case.kind for case in cases.sweep_cases(1, 0)} == {"batch", "vector", "scalar"}
    assert {case.kind for case in cases.sweep_cases(1_000_000, 0)} == {"batch", "vector"}


def test_tables_that_are_measured_are_out_of_step() -> None:
    # Plays made of the current deal, 0…33 in Valety.
    env = cases._batch("valety", 34 * 40, 5)
    held = np.bitwise_count(env.states["hand"]).sum(axis=1)
    plays, tables = np.unique(34 - held, return_counts=True)
    assert plays.tolist() == list(range(34))
    assert tables.max() < 3 * 40


def test_of_many_tables_a_part_is_played_and_the_rest_go_on_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "PLAYED_TABLES", 136)
    asked: list[int] = []

    def make(count: int) -> SelfPlayEnv:
        asked.append(count)
        return SelfPlayEnv("valety", count, 5)

    env = loops.spread_batch(make, 272)
    assert asked == [136, 272]
    np.testing.assert_array_equal(env.states["hand"][:136], env.states["hand"][136:])
    np.testing.assert_array_equal(env.states["seed"], SelfPlayEnv("valety", 272, 5).seeds)
    # After an illegal action a table is where any of its seed is at its next episode.
    episodes = env.states["episode"] + 1
    env.step(np.full(272, -1))
    for table in (0, 100, 236):
        twin = SelfPlayEnv("valety", 272, 5)
        for _ in range(1 + int(episodes[table])):
            twin.reset()
        assert env.states[table].tobytes() == twin.states[table].tobytes()


@pytest.mark.parametrize("name", ["batch-valety", "vector-random"])
def test_of_many_tables_all_play_legally_and_count(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "PLAYED_TABLES", 136)
    many = [case for case in cases.sweep_cases(500, 3) if case.name == name]
    check_counts(many[0], monkeypatch)


def test_learners_of_many_tables_are_out_of_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PLAYED_TABLES", 68)

    def make(count: int) -> VectorSingleEnv:
        return VectorSingleEnv("valety", count, opponent="random")

    envs, infos = loops.spread_vector(make, 68 * 3, 5)
    np.testing.assert_array_equal(infos["seat"], envs._states["turn"])
    np.testing.assert_array_equal(envs._states["seed"], envs.seeds)
    assert len(set(envs.seeds.tolist())) == 68 * 3
    # All but the first, which was started anew, stand as those that were played.
    held = np.bitwise_count(envs._states["hand"]).sum(axis=1)
    np.testing.assert_array_equal(held[68:136], held[136:])
    np.testing.assert_array_equal(held[1:68], held[69:136])
    assert len(set(held.tolist())) > 17


def test_a_rollout_is_filled_row_after_row() -> None:
    env = SelfPlayEnv("valety", 3, 0)
    env.reset()
    rows = [env.empty_batch() for _ in range(4)]
    steps = cases.rollout_steps(env, rows)
    twin = SelfPlayEnv("valety", 3, 0)
    twin.reset()
    for row in itertools.islice(itertools.cycle(rows), 6):
        assert next(steps) == 3
        expected = twin.step(twin.sample())
        np.testing.assert_array_equal(row.observation, expected.observation)
        np.testing.assert_array_equal(row.action_mask, expected.action_mask)


def test_a_choice_is_uniform_among_the_legal_ones() -> None:
    rows = 30_000
    mask = np.array([0, 1, 0, 1, 1, 0], np.int8)
    actions = np.empty(rows, np.int64)
    choose_legal(np.tile(mask, (rows, 1)), uint64(7), actions)
    counts = np.bincount(actions, minlength=6)
    assert counts[mask == 0].sum() == 0
    # Three standard deviations of a binomial of 30,000 with 1/3.
    assert abs(counts[mask == 1] - rows / 3).max() < 3 * (rows * 2 / 9) ** 0.5
    again = np.empty(rows, np.int64)
    choose_legal(np.tile(mask, (rows, 1)), uint64(8), again)
    assert (again != actions).any()


def test_rows_of_256_bytes_are_copied() -> None:
    source = np.arange(64 * 32, dtype=np.uint64).reshape(64, 32)
    target = np.zeros_like(source)
    assert source[0].nbytes == bounds.ROW_BYTES == 256
    bounds.copy_rows(source, target, 64)
    np.testing.assert_array_equal(target, source[7 * np.arange(64) % 64])
    assert next(bounds.row_steps(70)) == 70


def test_the_environment_without_a_game_gives_what_valety_gives() -> None:
    env = valety_v0.env()
    env.reset(seed=0)
    bound = bounds.NoGame()
    bound.reset()
    ours: Any = env.last()[0]
    its: Any = bound.last()[0]
    assert {k: (v.shape, v.dtype) for k, v in ours.items()} == {
        k: (v.shape, v.dtype) for k, v in its.items()
    }
    plays = cases.aec_steps(bound, 0)
    assert [next(plays), next(plays)] == [bounds.NoGame.episode_steps] * 2


# How it is measured


class Clock:
    """A clock that goes on only when something is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(serve.time, "perf_counter", lambda: self.now)

    def steps(self, seconds: float, count: int) -> Iterator[int]:
        while True:
            self.now += seconds
            yield count


def test_a_measurement_lasts_as_long_as_was_asked_and_counts_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    steps, seconds = serve.measure(clock.steps(0.5, 7), 1.25)
    assert steps == 3 * 7
    assert seconds == 1.5


def test_a_ratio_is_taken_within_rounds() -> None:
    ratio = ratio_within_rounds([10.0, 2.0, 90.0], [10.0, 4.0, 30.0])
    assert (ratio.low, ratio.median, ratio.high) == (0.5, 1.0, 3.0)
    with pytest.raises(ValueError, match="zip"):
        ratio_within_rounds([1.0, 2.0], [1.0])


def recorded(name: str, turns: list[str], rates: list[float], kind: str = "batch") -> Case:
    """Return a case whose rates are given, the first one that of its warm-up."""
    left = iter(rates)

    def start() -> Measure:
        turns.append(f"start {name}")

        def measure(seconds: float) -> tuple[int, float]:
            turns.append(name)
            rate = next(left)
            if rate < 0:
                raise CaseError(f"{name} is broken")
            return int(rate * 2), 2.0

        return measure

    return Case(name, name.upper(), kind, start)


def test_cases_take_turns_round_after_round_and_warming_up_does_not_count() -> None:
    turns: list[str] = []
    told: list[tuple[str, float, int]] = []
    pair = [recorded("a", turns, [1, 10, 20]), recorded("b", turns, [2, 30, 40])]
    series, failed = measure_rounds(pair, 2, 0.5, lambda *done: told.append(done))
    assert turns == ["start a", "a", "start b", "b", "a", "b", "a", "b"]
    assert [one.rates for one in series] == [(10.0, 20.0), (30.0, 40.0)]
    assert failed == []
    assert told[-1] == ("measuring", 3, 4)


@pytest.mark.parametrize("rates", [[-1], [1, 10, -1]])
def test_a_case_that_fails_is_named_once_and_the_rest_goes_on(rates: list[float]) -> None:
    turns: list[str] = []
    pair = [recorded("a", turns, rates), recorded("b", turns, [2, 30, 40])]
    series, failed = measure_rounds(pair, 2, 0.5)
    assert [(one.case.name, one.rates) for one in series] == [("b", (30.0, 40.0))]
    assert [(one.name, one.why) for one in failed] == [("a", "a is broken")]
    assert turns.count("a") == len(rates)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_what_is_measured_on_one_core_stays_there_with_what_it_starts(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    with machine.one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
    with PeerProcess([sys.executable, fake(tmp_path, "cores")]) as process:
        assert process.measure("cores", 1e-9)[0] == 1


def test_two_threads_are_not_kept_on_one_core() -> None:
    assert {case.name for case in cases.own_cases(4, 0) if not case.one_core} == {
        "batch-valety-2-threads",
        "batch-valety-x4-2-threads",
    }


def test_the_machine_is_described_without_its_name() -> None:
    facts = machine.describe_machine()
    assert facts["cpu"]
    assert facts["cores"] == os.cpu_count()
    assert json.loads(json.dumps(facts)) == facts
    assert os.uname().nodename not in json.dumps(facts)


# Peers


FAKES = {
    "good": "serve([Case('two', 'Two', 'batch', lambda: itertools.repeat(2), 'no mask')], ['pip'])",
    "prints": "print('hello', flush=True)\n"
    "def play():\n    print('noise', flush=True)\n    yield from itertools.repeat(2)\n"
    "serve([Case('two', 'Two', 'scalar', play)], ['pip'])",
    "cores": "serve([Case('cores', '', 'batch',"
    " lambda: itertools.repeat(len(os.sched_getaffinity(0))))], [])",
    "one-fails": "def fail():\n    raise KeyError('no such game')\n    yield 0\n"
    "serve([Case('bad', '', 'batch', fail),"
    " Case('two', 'Two', 'batch', lambda: itertools.repeat(2))], [])",
    "no-import": "import there_is_no_such_package",
    "crashes": "def crash():\n    print('out of luck', file=sys.stderr)\n"
    "    os._exit(3)\n    yield 0\n"
    "serve([Case('two', '', 'batch', crash)], [])",
    "hangs": "def hang():\n    threading.Event().wait()\n    yield 0\n"
    "serve([Case('two', '', 'batch', hang)], [])",
    "mute": "threading.Event().wait()",
    "babbles": "print('{what?', flush=True)\nthreading.Event().wait()",
}


def fake(folder: Path, name: str) -> Path:
    """Write a peer's program."""
    start = (
        f"import itertools, os, sys, threading\nsys.path.insert(0, {str(PROGRAMS)!r})\n"
        "from serve import Case, serve\n"
    )
    path = folder / f"{name}.py"
    path.write_text(f"{start}{FAKES[name]}\n", "utf-8")
    return path


def test_a_peer_says_what_it_has_and_measures_when_asked(tmp_path: Path) -> None:
    with PeerProcess([sys.executable, fake(tmp_path, "good")]) as process:
        assert process.cases == [
            {"name": "two", "title": "Two", "kind": "batch", "note": "no mask"}
        ]
        assert list(process.versions) == ["pip"]
        for asked in (0.01, 0.02):
            steps, seconds = process.measure("two", asked)
            assert steps > 0
            assert steps % 2 == 0
            assert seconds >= asked


def test_what_a_peer_prints_is_no_answer(tmp_path: Path) -> None:
    with PeerProcess([sys.executable, fake(tmp_path, "prints")]) as process:
        assert process.measure("two", 0.001)[0] > 0


def test_a_case_of_a_peer_that_fails_leaves_its_others(tmp_path: Path) -> None:
    with PeerProcess([sys.executable, fake(tmp_path, "one-fails")]) as process:
        with pytest.raises(CaseError, match=r"^KeyError: 'no such game'$"):
            process.measure("bad", 0.001)
        assert process.measure("two", 0.001)[0] > 0


def test_a_peer_that_crashes_says_its_last_words_for_ever_after(tmp_path: Path) -> None:
    with PeerProcess([sys.executable, fake(tmp_path, "crashes")]) as process:
        for _ in range(2):
            with pytest.raises(CaseError, match=r"^it ended with 3: out of luck$"):
                process.measure("two", 0.001)


def test_a_peer_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PeerProcess([sys.executable, fake(tmp_path, "hangs")]) as process:
        monkeypatch.setattr(peers, "ANSWER_PATIENCE", 0.2)
        with pytest.raises(CaseError, match=r"^it has not answered for 0\.2 s$"):
            process.measure("two", 0.001)
        # It is ended: the second time nobody waits.
        monkeypatch.setattr(peers, "ANSWER_PATIENCE", 1e6)
        with pytest.raises(CaseError, match=r"^it has not answered for 0\.2 s$"):
            process.measure("two", 0.001)


@pytest.mark.parametrize(
    ("name", "patience", "told"),
    [
        ("no-import", 60.0, "ended with 1: ModuleNotFoundError: .*there_is_no_such_package"),
        ("mute", 0.2, "has not answered for 0.2 s"),
        ("babbles", 0.2, "has not answered for 0.2 s"),
    ],
)
def test_a_peer_that_does_not_start_says_why(
    name: str, patience: float, told: str, tmp_path: Path
) -> None:
    with pytest.raises(PeerError, match=f"^it doesn't start: it {told}"):
        PeerProcess([sys.executable, fake(tmp_path, name)], patience)


def test_a_peer_without_a_python_says_so(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match=r"^it doesn't start: "):
        PeerProcess([tmp_path / "python"])


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Peer]:
    """Stand programs of this file in for the peers, all but one installed."""

    def no_installation(peer: Peer, folder: Path, say: Any = None) -> Path:
        if peer.name == "absent":
            raise PeerError("it can't be installed: no network")
        return Path(sys.executable)

    known = {
        name: Peer(name, name.title(), (), str(fake(tmp_path, name))) for name in sorted(FAKES)
    }
    known["absent"] = Peer("absent", "Absent", (), "absent.py")
    monkeypatch.setattr(peers, "install", no_installation)
    monkeypatch.setattr(plan, "PEERS", known)
    return known


def test_what_cannot_be_had_is_named_and_the_rest_goes_on(
    fakes: dict[str, Peer], tmp_path: Path
) -> None:
    names = ["absent", "no-import", "one-fails", "crashes", "good"]
    with running_peers([fakes[name] for name in names], tmp_path, 0) as running:
        series, failed = measure_rounds(running.cases, 2, 0.001)
    assert [one.case.name for one in series] == ["one-fails/two", "good/two"]
    told = {one.name: one.why for one in [*running.not_run, *failed]}
    assert list(told) == ["absent", "no-import", "one-fails/bad", "crashes/two"]
    assert told["absent"] == "it can't be installed: no network"
    assert told["crashes/two"] == "it ended with 3: out of luck"
    assert all("\n" not in why for why in told.values())


class Commands:
    """Stands in for venv and pip."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run: list[list[str]] = []
        self.broken = False
        monkeypatch.setattr(peers, "_run", self)

    def __call__(self, command: list[str | Path]) -> None:
        words = [str(word) for word in command]
        self.run.append(words)
        if words[1:3] == ["-m", "venv"]:
            scripts = Path(words[3]) / ("Scripts" if sys.platform == "win32" else "bin")
            scripts.mkdir(parents=True)
            (scripts / ("python.exe" if sys.platform == "win32" else "python")).touch()
        elif self.broken:
            raise PeerError("it can't be installed: ERROR: no")


def test_a_peer_is_installed_once_for_its_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch)
    said: list[str] = []
    peer = Peer("one", "One", ("one==1.0", "two==2.0"), "one.py")
    python = install(peer, tmp_path / "peers", said.append)
    assert python.is_relative_to(tmp_path / "peers" / "one")
    assert [words[0] for words in commands.run] == [sys.executable, str(python)]
    assert commands.run[1][-2:] == ["one==1.0", "two==2.0"]
    assert len(said) == 1
    assert install(peer, tmp_path / "peers", said.append) == python
    assert len(commands.run) == 2
    install(Peer("one", "One", ("one==1.1",), "one.py"), tmp_path / "peers", said.append)
    assert len(commands.run) == 4
    assert len(said) == 2


def test_an_installation_that_failed_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch)
    commands.broken = True
    peer = Peer("one", "One", ("one==1.0",), "one.py")
    for runs in (2, 4):
        with pytest.raises(PeerError, match="can't be installed: ERROR: no"):
            install(peer, tmp_path, print)
        assert len(commands.run) == runs


def test_a_failed_command_gives_the_line_that_says_most() -> None:
    code = "import sys; print('ERROR: none such\\nadvice'); sys.exit(1)"
    with pytest.raises(PeerError, match=r"^it can't be installed: ERROR: none such$"):
        peers._run([sys.executable, "-c", code])


def test_a_peer_that_its_package_alone_does_not_install_is_named(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="no wheels"):
        install(PEERS["pufferlib"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_peers_lie_beside_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "cache_folder", lambda: tmp_path / "kernels")
    assert peers.peers_folder() == tmp_path / "peers"


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.program])
def test_the_program_of_a_peer_imports_it_and_little_else(name: str) -> None:
    peer = PEERS[name]
    assert all("==" in requirement for requirement in peer.requirements)
    tree = ast.parse((PROGRAMS / str(peer.program)).read_text("utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    installed = {re.split(r"[\[=]", requirement)[0] for requirement in peer.requirements}
    allowed = {"aec_loop", "serve", "pyspiel", *installed, *sys.stdlib_module_names}
    assert found - allowed == set()


# Starts


def test_a_start_is_compared_within_rounds_and_the_first_round_only_warms() -> None:
    rounds = iter([9.0, 1.0, 2.0, 5.0])
    asked: list[tuple[str, dict[str, str]]] = []
    base = 0.0

    def timer(code: str, **environment: str) -> float:
        nonlocal base
        asked.append((code, environment))
        if environment:
            assert Path(environment["VALETY_ENV_CACHE_DIR"]).is_dir()
            assert not any(Path(environment["VALETY_ENV_CACHE_DIR"]).iterdir())
            return 60.0
        if code == startup.STARTS[startup.BASE][1]:
            base = next(rounds)
        return base if code == startup.STARTS[startup.BASE][1] else base + 0.25

    starts = {start.name: start for start in startup.measure_starts(3, timer=timer)}
    assert starts[startup.BASE].seconds == (1.0, 2.0, 5.0)
    assert starts["import"].seconds == (1.25, 2.25, 5.25)
    assert starts["import"].more == 0.25
    assert starts["aec-cold"].seconds == (60.0,) * 3
    assert starts["aec-cold"].more is None
    folders = [environment["VALETY_ENV_CACHE_DIR"] for _, environment in asked if environment]
    assert len(folders) == len(set(folders)) == 3 * len(startup.COLD)


# Legal actions of a first step, one a table; an import makes none.
FIRST_PLAYS = {
    "import": 0,
    "aec": 1,
    "aec-polignac": 1,
    "batch": 4096,
    "gymnasium": 1,
    "vector": 4096,
}


@pytest.mark.parametrize("name", [name for name in startup.STARTS if name != startup.BASE])
def test_what_a_start_does_is_one_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(name, monkeypatch)
    done: dict[str, Any] = {}
    exec(startup.STARTS[name][1], done)
    assert played.plays == FIRST_PLAYS[name]
    if name == "import":
        assert done["valety_env"].make_rules("valety") == valety_v0.env().unwrapped.rules


def test_a_process_is_timed_until_it_is_done(tmp_path: Path) -> None:
    file = tmp_path / "file"
    code = f"import os; open({str(file)!r}, 'w').write(os.environ['WORD'])"
    assert startup.time_process(code, WORD="here") > 0
    assert file.read_text() == "here"
    with pytest.raises(startup.StartError, match=r"ended: ValueError: no luck$"):
        startup.time_process("raise ValueError('no luck')")


# The report


def bench(fakes_asked: list[str] | None = None, **options: Any) -> plan.Report:
    given: dict[str, Any] = {"seconds": 0.001, "rounds": 3, "tables": 4, "peers": fakes_asked}
    return plan.plan_bench(**{**given, **options}).run()


def test_the_report_has_ratios_machine_and_versions(fakes: dict[str, Peer]) -> None:
    report = bench(["good", "prints", "absent"], only=["copy-row"], seed=7)
    value = json.loads(json.dumps(report.to_dict()))
    assert value["settings"] == {"seconds": 0.001, "rounds": 3, "tables": 4, "seed": 7}
    assert value["versions"]["valety_env"]
    assert value["machine"] == machine.describe_machine()
    assert value["state_bytes"]["valety"] == SelfPlayEnv().states.nbytes
    assert value["not_run"] == [{"name": "absent", "why": "it can't be installed: no network"}]
    assert value["startup"] == value["sweep"] == []
    own = {row["name"]: row for row in value["results"]}
    # What the peers are compared with is there though it was not named.
    assert list(own) == ["copy-row", "batch-valety", "aec-valety"]
    for row in [*value["results"], *value["peers"]]:
        assert len(row["all"]) == 3
        assert row["median"] == statistics.median(row["all"])
        assert (row["min"], row["max"]) == (min(row["all"]), max(row["all"]))
    ours, bound = own["batch-valety"]["all"], own["copy-row"]["all"]
    ratio = own["batch-valety"]["ratio"]
    assert ratio["over"] == "copy-row"
    assert ratio["median"] == statistics.median(a / b for a, b in zip(ours, bound, strict=True))
    assert "ratio" not in own["aec-valety"]
    for row, nearest in zip(value["peers"], ("batch-valety", "aec-valety"), strict=True):
        ratio = row["ours_over_peer"]
        ours = own[nearest]["all"]
        assert ratio["over"] == nearest
        assert ratio["median"] == statistics.median(
            a / b for a, b in zip(ours, row["all"], strict=True)
        )
    assert list(value["peer_versions"]) == ["good", "prints"]


def test_a_peer_is_started_with_the_seed(
    fakes: dict[str, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Spy(PeerProcess):
        def __init__(self, command: Any) -> None:
            started.append([str(word) for word in command])
            super().__init__(command)

    monkeypatch.setattr(peers, "PeerProcess", Spy)
    bench(["good"], only=["copy-row"], seed=12)
    assert started[0][-1] == "12"


def test_the_sweep_measures_each_interface_beside_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "SWEEP_TABLES", (1, 1000))
    value = bench(only=["copy-row"], sweep=True, rounds=1).to_dict()
    found = [(point["name"], point["tables"]) for point in value["sweep"]]
    assert found == [
        (case.name, tables) for tables in (1, 1000) for case in cases.sweep_cases(tables, 0)
    ]
    assert all(point["median"] > 0 for point in value["sweep"])
    assert all(point["ratio"]["over"] == "copy-row" for point in value["sweep"])


def test_a_plot_has_every_interface_at_every_number_of_tables() -> None:
    pytest.importorskip("matplotlib")
    plot = load_script("benchmarks/plot.py")
    points = [
        {"title": title, "tables": tables, "median": 5.0 * tables, "min": tables, "max": 9 * tables}
        for title in ("one", "two")
        for tables in (10, 1)
    ]
    report = {
        "sweep": points,
        "machine": {"cpu": "a processor", "cores": 3},
        "versions": {"valety_env": "1", "numba": "2"},
    }
    axes = plot.draw(report).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    for container in axes.containers:
        line, _, (bars,) = container.lines
        assert line.get_xydata().tolist() == [[1, 5], [10, 50]]
        assert [bar[:, 1].tolist() for bar in bars.get_segments()] == [[1, 9], [10, 90]]
    with pytest.raises(ValueError, match="valety-env bench --sweep"):
        plot.draw({**report, "sweep": []})


# The command line


QUICK = ("--seconds", "0.001", "--rounds", "2", "--tables", "4")


def test_bench_prints_a_table_with_machine_versions_and_seed(capsys: Captured) -> None:
    assert run("bench", "--only", "copy-row", "batch-valety", *QUICK, "--seed", "5") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert any(re.match(r" batch-valety +[\d.]+ [kM] .* copy-row *$", line) for line in lines)
    assert machine.describe_machine()["cpu"] in out
    assert "numba " in out
    assert "Medians of 2 rounds of 0.001 s, in turn; seed 5" in lines
    assert "Traceback" not in err


def test_bench_names_what_it_could_not_measure(fakes: dict[str, Peer], capsys: Captured) -> None:
    assert run("bench", "--only", "copy-row", "--peers", "absent", "crashes", "good", *QUICK) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "not measured: absent: it can't be installed: no network" in lines
    assert "not measured: crashes/two: it ended with 3: out of luck" in lines
    assert any(
        re.match(r" Good: Two \(no mask\) +[\d.]+ [kM] .* batch-valety", line) for line in lines
    )


def test_json_of_bench_on_standard_output_is_all_there_is(capsys: Captured) -> None:
    assert run("bench", "--only", "copy-row", *QUICK, "--json", "-") == 0
    out, err = capsys.readouterr()
    assert [row["name"] for row in json.loads(out)["results"]] == ["copy-row"]
    assert "copy-row" in err


def test_peers_without_a_name_are_all_peers() -> None:
    assert plan.plan_bench(peers=cli._parse(["bench", "--peers"]).peers).peers == tuple(
        PEERS.values()
    )
    assert plan.plan_bench(peers=cli._parse(["bench"]).peers).peers == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--seconds 0", "seconds=0: it must be more than 0"),
        ("--seconds nan", "seconds=nan: it must be more than 0"),
        ("--rounds 0", "rounds=0: it must be a whole number of at least 1"),
        ("--tables 0", "tables=0: it must be a whole number of at least 1"),
        ("--seed -1", "seed=-1"),
        ("--only nothing", "only=nothing: no such case; the cases are copy-row, batch-valety"),
        ("--peers gym", "peers=gym: no such peer; the peers are openspiel, pgx"),
        ("--json no/such/folder/x.json", "there is no folder no/such/folder"),
        ("--rounds many", "'many' is no whole number"),
    ],
)
def test_bad_input_to_bench_is_one_line_and_exit_code_2(
    arguments: str, told: str, capsys: Captured
) -> None:
    assert run("bench", *arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("valety-env: ")
    assert err.count("\n") == 1
    assert told in err


def test_a_process_that_cannot_be_timed_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def fail(*arguments: Any) -> Callable[..., Any]:
        raise startup.StartError("a process that was to be timed ended: no")

    monkeypatch.setattr(plan, "measure_starts", fail)
    assert run("bench", "--only", "copy-row", *QUICK, "--startup") == 1
    assert capsys.readouterr().err == "valety-env: a process that was to be timed ended: no\n"


def test_the_help_names_every_peer_and_the_readme_every_case(capsys: Captured) -> None:
    assert run("bench", "--help") == 0
    told = capsys.readouterr().out
    assert [name for name in PEERS if name not in told] == []
    readme = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    assert [name for name in OWN if f"`{name}`" not in readme] == []

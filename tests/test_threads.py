"""Steps on several threads: when the threading layer is loaded, and what a fork leaves."""

import os
import subprocess
import sys
import threading
import warnings

import numba
import numpy as np
import pytest

from valety_env.threads import share_out
from valety_env.vector import SelfPlayEnv

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PLAY = """
import os, sys, warnings
import numba
from valety_env.vector import SelfPlayEnv

def digest(env, steps=60):
    batch = env.reset()
    total = 0
    for number in range(steps):
        batch = env.step(env.sample())
        total += int(batch.observation.sum(dtype=int)) * (number + 1)
    return total

def in_child(function):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as told:
            told.write(str(function()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        answer = told.read()
    assert os.waitpid(child, 0)[1] == 0, "the child was ended"
    return answer

def loaded():
    try:
        return bool(numba.threading_layer())
    except ValueError:
        return False
"""


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:valety_env", "-c", PLAY + script],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_thread_never_loads_a_threading_layer() -> None:
    script = """
env = SelfPlayEnv("valety", 8, seed=1)
digest(env)
env.final()
print(loaded())
digest(SelfPlayEnv("valety", 8, seed=1, threads=2))
print(loaded())
"""
    assert run(script).split() == ["False", "True"]


def test_a_child_forked_after_threads_plays_on_with_the_same_results() -> None:
    script = """
one = digest(SelfPlayEnv("valety", 64, seed=3))
env = SelfPlayEnv("valety", 64, seed=3, threads=2)
assert digest(env) == one

def again():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env._set_seed(3)
        env._started = False
        found = digest(env)
        new = digest(SelfPlayEnv("valety", 64, seed=3, threads=2))
    told = [str(w.message) for w in caught if w.category is RuntimeWarning]
    return found == one, new == one, bool(told) and "threads=2" in told[0] and "spawn" in told[0]

print(in_child(again))
# The parent keeps its threads.
env._set_seed(3)
env._started = False
print(digest(env) == one)
"""
    assert run(script).splitlines() == ["(True, True, True)", "True"]


def test_a_child_forked_before_threads_were_used_has_its_own() -> None:
    script = """
env = SelfPlayEnv("valety", 64, seed=3, threads=2)

def play():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return digest(env), loaded()

first = in_child(play)
print(first == str((digest(SelfPlayEnv("valety", 64, seed=3)), True)))
"""
    assert run(script).split() == ["True"]


def test_no_more_threads_are_used_than_numba_allows() -> None:
    found = []
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    for wanted in (1, 2):
        share_out(lambda: found.append(numba.get_num_threads()), wanted)
    assert numba.get_num_threads() == 1
    numba.set_num_threads(before)
    assert found == [1, 1]


def test_the_number_of_threads_is_that_asked_for_and_restored_after_an_error() -> None:
    most = numba.config.NUMBA_NUM_THREADS
    before = numba.get_num_threads()
    found = []

    def fails(told: str) -> None:
        found.append(numba.get_num_threads())
        raise ArithmeticError(told)

    for wanted in (1, 2, most, most + 3):
        with pytest.raises(ArithmeticError, match="on purpose"):
            share_out(fails, wanted, "on purpose")
        assert numba.get_num_threads() == before
    assert found == [1, min(2, most), most, most]


def test_one_kernel_at_a_time_is_run_on_threads() -> None:
    entered = threading.Event()
    second = threading.Thread(target=share_out, args=(entered.set, 1))
    together = []

    def first() -> None:
        second.start()
        # Nobody may come: a lock that is right passes however short the wait.
        together.append(entered.wait(0.3))

    share_out(first, 1)
    second.join()
    assert together == [False]
    assert entered.is_set()


def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_held() -> None:
    script = """
import signal
from valety_env import threads

def share():
    signal.alarm(60)
    threads.share_out(lambda: None, 1)
    return "done"

with threads._lock:
    print(in_child(share))
"""
    assert run(script).split() == ["done"]


def test_two_python_threads_can_step_at_once() -> None:
    def play(found: list[int], seed: int) -> None:
        env = SelfPlayEnv("valety", 256, seed=seed, threads=2)
        env.reset()
        for _ in range(200):
            batch = env.step(env.sample())
        found.append(int(batch.observation.sum(dtype=np.int64)) + seed)

    alone: list[int] = []
    together: list[int] = []
    for seed in (1, 2):
        play(alone, seed)
    workers = [threading.Thread(target=play, args=(together, seed)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(together) == sorted(alone)


def test_nothing_is_said_where_threads_can_be_had() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        env, alone = (SelfPlayEnv("valety", 8, seed=1, threads=threads) for threads in (2, 1))
        for each in (env, alone):
            each.reset()
        batch, expected = (each.step(each.sample()) for each in (env, alone))
    assert [str(one.message) for one in said] == []
    # They were had: a layer is loaded only when threads share a step.
    assert numba.threading_layer() in {"omp", "tbb", "workqueue"}
    np.testing.assert_array_equal(batch.observation, expected.observation)
    np.testing.assert_array_equal(batch.rewards, expected.rewards)

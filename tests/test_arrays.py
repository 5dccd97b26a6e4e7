"""Arrays that are given out: used again only when nobody can see it."""

import weakref

import numpy as np
import pytest

from valety_env.arrays import ArrayPool
from valety_env.vector import SelfPlayEnv


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_an_array_that_nobody_holds_is_used_again() -> None:
    pool = ArrayPool((4, 8), "uint8")
    array = pool.empty()
    assert array.shape == (4, 8)
    assert array.dtype == np.uint8
    before = address(array)
    del array
    assert address(pool.empty()) == before


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[1:2],
        lambda array: array.reshape(32).view("int8")[::3],
        lambda array: {"hand": array[:, :3]},
        lambda array: memoryview(array),
        lambda array: iter([array]),
        np.asarray,
    ],
)
def test_memory_that_somebody_holds_is_not_used_again(hold) -> None:
    pool = ArrayPool((4, 8), "uint8")
    array = pool.empty()
    before = address(array)
    held = hold(array)
    del array
    assert before not in [address(other) for other in [pool.empty() for _ in range(5)]]
    assert held is not None


def test_a_tensor_holds_the_memory_it_was_made_of() -> None:
    torch = pytest.importorskip("torch")
    env = SelfPlayEnv("valety", 4, seed=1)
    batch = env.reset()
    kept = [torch.from_numpy(batch.observation), torch.as_tensor(batch.action_mask)]
    copies = [tensor.clone() for tensor in kept]
    del batch
    for _ in range(6):
        env.step(env.sample())
    for tensor, copy in zip(kept, copies, strict=True):
        assert torch.equal(tensor, copy)


def test_arrays_that_are_all_kept_are_all_different() -> None:
    pool = ArrayPool((16,), "float32")
    kept = [pool.empty() for _ in range(20)]
    assert len({address(array) for array in kept}) == 20


def test_the_pool_keeps_no_more_than_two() -> None:
    pool = ArrayPool((16,), "float32")
    kept = [pool.empty() for _ in range(20)]
    gone = [weakref.ref(array) for array in kept]
    kept.clear()
    assert sum(reference() is not None for reference in gone) == 2

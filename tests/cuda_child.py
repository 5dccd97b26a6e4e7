"""Runs of the batch environment, on the CPU or in numba-cuda's simulator, and its kernels as PTX.

The simulator and compiled kernels can't share a process, nor two kinds of GPU one compiler:
`python tests/cuda_child.py simulate FILE.npz` and `python tests/cuda_child.py compile 90`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np

from valety_env.engine import STATE
from valety_env.episode import ActionTypeError, IllegalActionError
from valety_env.vector import Batch, SelfPlayEnv

# What is played: the game, tables, plays and options.
CASES: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "valety": ("valety", 3, 110, {"target": 3}),
    "valety-as-float32": ("valety", 2, 30, {"dtype": "float32", "illegal": "penalise"}),
    "valety-planes": ("valety-L8", 3, 40, {"observation": "planes_v0", "episode": "deal"}),
    "valety-pieces": ("valety-L8", 3, 40, {"observation": "pieces_v0", "reward": "points"}),
    "valety-raises": ("valety-L8", 3, 12, {"illegal": "raise"}),
    "polignac": ("polignac", 2, 120, {"num_deals": 2}),
    "polignac-tokens": ("polignac", 2, 90, {"num_players": 5, "observation": "tokens_v0"}),
    "polignac-by-points": (
        "polignac",
        2,
        120,
        {"num_players": 6, "reward": "points", "trump": "last_card", "num_deals": 1},
    ),
}
# The play at which the actions of all tables but the first are illegal.
ILLEGAL_AT = 7


def on_host(value: Any) -> np.ndarray:
    """Return an array or a tensor as an array, a dict of them as their bytes side by side."""
    if isinstance(value, dict):
        pieces = [on_host(piece) for piece in value.values()]
        return np.concatenate([p.reshape(len(p), math.prod(p.shape[1:])) for p in pieces], axis=1)
    return np.array(value.cpu().numpy() if hasattr(value, "cpu") else value)


def everything(env: SelfPlayEnv, batch: Batch) -> Iterator[tuple[str, np.ndarray]]:
    """Yield all that an environment tells after a step."""
    for name in ("observation", "action_mask", "seat", "rewards", "terminated", "truncated"):
        yield name, on_host(getattr(batch, name))
    yield "states", env.states.view(np.uint8).copy()
    yield "state", on_host(env.state())
    final = env.final()
    for name in ("tables", "totals", "winners", "deals"):
        yield f"final {name}", getattr(final, name)
    for seat, observation in enumerate(final.observation):
        yield f"final observation {seat}", on_host(observation)


def turned(array: Any) -> Any:
    """Return an array of the same shape, column after column in memory."""
    columns = array.T
    return (columns.contiguous() if hasattr(columns, "contiguous") else columns.copy()).T


def refused(env: SelfPlayEnv, batch: Batch) -> Iterator[tuple[str, np.ndarray]]:
    """Yield how wrong actions and arrays to write into are refused, up to what is allowed."""
    n, own = env.num_envs, batch.seat
    wrong: dict[str, Any] = {
        "float": [0.5] * n,
        "bool": [True] * n,
        "names": ["2S"] * n,
        "column": np.zeros((n, 1), np.int64),
        "none": None,
        "own of bools": own != own,
        "own of floats": own + np.float32(0.5),
        "own and one less": own[1:],
    }
    for name, actions in wrong.items():
        try:
            env.step(actions)
        except (ActionTypeError, ValueError) as error:
            yield f"actions: {name}", np.array(str(error))
    for name, change in {
        "action_mask": turned,
        "seat": lambda array: array[1:],
        "rewards": lambda array: array[:, :1],
        "terminated": lambda array: array + np.float32(0.5),
        "truncated": lambda array: array[::2],
    }.items():
        out = env.empty_batch()
        setattr(out, name, change(getattr(out, name)))
        try:
            env.step(env.sample() * 0, out=out)
        except ValueError as error:
            yield f"out: {name}", np.array(str(error).split(" and shape")[0].replace("torch.", ""))
    out = env.empty_batch()
    observation: Any = out.observation
    if isinstance(observation, dict):
        observation["turned"] = observation["hand"]
    else:
        out.observation = observation[..., ::2]
    try:
        env.step(env.sample() * 0, out=out)
    except ValueError as error:
        yield "out: observation", np.array(type(error).__name__)


def play_case(case: str, device: str) -> Iterator[tuple[str, np.ndarray]]:
    """Play a case, half of it into the rows of a rollout; yield all that is told, by name."""
    game, tables, plays, options = CASES[case]
    env = SelfPlayEnv(game, tables, seed=3, device=device, **options)
    batch = env.reset()
    for name, value in [*everything(env, batch), *refused(env, batch)]:
        yield f"{case}, reset: {name}", value
    for play in range(plays):
        actions = env.sample()
        yield f"{case}, play {play}: sample", on_host(actions)
        if play == ILLEGAL_AT:
            actions[1:] = 63
            try:
                env.step(actions)
            except IllegalActionError as error:
                yield f"{case}, told", np.array(str(error))
                continue
        batch = env.step(actions, out=env.empty_batch() if play % 2 else None)
        for name, value in everything(env, batch):
            yield f"{case}, play {play}: {name}", value
    for name, value in everything(env, env.reset()):
        yield f"{case}, reset again: {name}", value
    for name, value in everything(env, env.reset(seed=4)):
        yield f"{case}, reset with a seed: {name}", value


def simulate(file: str) -> None:
    """Play all cases in the simulator; write what is told."""
    np.savez(file, **{name: value for case in CASES for name, value in play_case(case, "cuda")})


def compile_all(capability: str) -> None:
    """Compile each kernel, of the types that a step gives it; print what came out as JSON.

    Without a GPU nothing can be launched: each launch compiles instead, on tensors of the CPU.
    """
    import numba.cuda.dispatcher as dispatcher
    import torch
    from numba import cuda

    import valety_env.cuda as module

    cc = int(capability[:-1]), int(capability[-1])
    # numba-cuda asks the device what to compile its functions for.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    compiled: dict[str, dict[str, Any]] = {}

    def compile_launch(
        self: Any, kernel: Any, blocks: int, threads: Any, arguments: tuple[Any, ...]
    ) -> None:
        arrays = [a.numpy() if isinstance(a, torch.Tensor) else a for a in arguments]
        types = tuple(numba.typeof(a) for a in arrays)
        name = f"{kernel.py_func.__name__}{types}"
        if name in compiled:
            return
        code, _ = cuda.compile_ptx(kernel.py_func, types, cc=cc)
        compiled[name] = {
            "kernel": kernel.py_func.__name__,
            "target": re.findall(r"^\.target (\S+)$", code, re.MULTILINE),
            "entries": len(re.findall(r"^\.visible \.entry ", code, re.MULTILINE)),
            "unresolved": re.findall(r"^\.extern .*$", code, re.MULTILINE),
        }

    module.SIMULATED = True
    module.CudaTables._run = compile_launch  # type: ignore[method-assign]
    module.CudaTables._context = nullcontext  # type: ignore[assignment,method-assign]
    for case, (game, tables, _, options) in CASES.items():
        env = SelfPlayEnv(game, tables, device="cuda", **options)
        env.reset()
        env.step(env.sample())
        env.state()
        assert env.states.dtype == STATE, case
    kernels = [n for n, v in vars(module).items() if isinstance(v, dispatcher.CUDADispatcher)]
    print(json.dumps({"kernels": kernels, "compiled": list(compiled.values())}))


if __name__ == "__main__":
    {"simulate": simulate, "compile": compile_all}[sys.argv[1]](sys.argv[2])

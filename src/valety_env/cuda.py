"""The batch environment's tables on a GPU, in torch tensors.

numba-cuda compiles the package's own kernels for the device when a CUDA kernel calls them, so
nothing of the game is written twice. Needs the extra `cuda`; imported only when a device is asked
for. With NUMBA_ENABLE_CUDASIM=1 and NUMBA_DISABLE_JIT=1 all of it runs in numba-cuda's simulator on
torch's CPU tensors, far slower, for tests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any

import numpy as np
from numba import config as _config
from numpy import uint32, uint64

from valety_env._intrinsics import local_record
from valety_env._jit import int64
from valety_env.agents import needs_extra
from valety_env.cards import count, nth
from valety_env.engine import STATE, legal_actions, public_of
from valety_env.episode import Setup, is_member
from valety_env.observations import BITS, PLANES, TOKENS, Encoder, flat_bits, planes_bits
from valety_env.rng import below, mix
from valety_env.rules import RULES
from valety_env.tables import (
    legal_sets,
    observe_tables,
    read_actions,
    refuse_actions,
    start_tables,
    step_tables,
    write_states,
)

with needs_extra(__name__, "cuda", ("numba_cuda", "torch")):
    import numba_cuda  # noqa: F401  # numba has a numba.cuda too, which would take its place unseen
    import torch
    from numba import cuda as _cuda

# Without types, as numba has none for these.
config: Any = _config
cuda: Any = _cuda

_log = logging.getLogger("valety_env")

SIMULATED = bool(config.ENABLE_CUDASIM)
# Threads that run together, as many as write a row; tables of a block that have a thread each, and
# that have a warp each. The simulator makes a thread of Python's of each.
WARP, THREADS, WARPS = (2, 2, 2) if SIMULATED else (32, 128, 4)
# numba-cuda warns of fewer blocks at every launch; those too many end at once.
QUIET_BLOCKS = 128

_new_bits = local_record(BITS)


def device_kernel(function: Callable[..., None]) -> Any:
    """Compile a function for the device at its first launch, `kernel[blocks, threads](…)`."""
    return cuda.jit(function)


@device_kernel
def start(rules: np.ndarray, states: np.ndarray, seeds: np.ndarray, anew: bool) -> None:
    """Do what `start_tables` does, one thread a table."""
    i = cuda.grid(1)
    if i < states.size:
        start_tables(rules, states, seeds, 0, anew, i, i + 1)


@device_kernel
def step(
    rules: np.ndarray,
    states: np.ndarray,
    finals: np.ndarray,
    actions: np.ndarray,
    options: int,
    fine: float,
    rewards: np.ndarray,
    terminated: np.ndarray,
) -> None:
    """Do what `step_tables` does, one thread a table: a finished one is left in its own place."""
    i = cuda.grid(1)
    if i < states.size:
        step_tables(rules, states, finals, actions, options, fine, rewards, terminated, i, i + 1)


@device_kernel
def observe_bits(
    code: int,
    rules: np.ndarray,
    states: np.ndarray,
    words: np.ndarray,
    sets: np.ndarray,
    seats: np.ndarray,
) -> None:
    """Write what the seat to move observes as bits, words (W, N), one thread a table.

    And its legal actions, uint64 (N,). A thread that wrote the row of its table would touch as many
    lines of memory as it has entries; so bits are left, table beside table, for `expand`.
    """
    i = cuda.grid(1)
    if i < states.size:
        state = states[i]
        seat = int64(state.turn)
        bits = _new_bits()
        if code == PLANES:
            planes_bits(rules[0], public_of(state), seat, state.hand[seat], bits)
        else:
            flat_bits(rules[0], public_of(state), seat, state.hand[seat], bits)
        for word in range(words.shape[0]):
            words[word, i] = bits.words[word]
        sets[i] = legal_actions(rules[0], state)
        seats[i] = seat


@device_kernel
def observe_tokens(
    rules: np.ndarray,
    states: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
    sets: np.ndarray,
    seats: np.ndarray,
) -> None:
    """Do what `observe_tables` does for `tokens_v0`, which has no bits, one thread a table."""
    i = cuda.grid(1)
    if i < states.size:
        observe_tables(TOKENS, rules, states, rows, masks, seats, i, i + 1)
        legal_sets(rules, states, sets, i, i + 1)


@device_kernel
def expand(words: np.ndarray, sets: np.ndarray, rows: np.ndarray, masks: np.ndarray) -> None:
    """Write the bits of words (W, N) and sets (N,) as numbers 0 and 1, one warp a table."""
    i = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    if i < sets.size:
        for k in range(cuda.threadIdx.x, rows.shape[1], cuda.blockDim.x):
            rows[i, k] = words[k >> 6, i] >> uint64(k & 63) & uint64(1)
        for k in range(cuda.threadIdx.x, masks.shape[1], cuda.blockDim.x):
            masks[i, k] = sets[i] >> uint64(k) & uint64(1)


@device_kernel
def expand_bytes(words: np.ndarray, sets: np.ndarray, fours: np.ndarray, masks: np.ndarray) -> None:
    """Do what `expand` does for rows of bytes, four at a time: fours are int32 (N, size / 4)."""
    i = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    if i < sets.size:
        for k in range(cuda.threadIdx.x, fours.shape[1], cuda.blockDim.x):
            four = uint32(words[k >> 4, i] >> uint64(4 * k & 63) & uint64(15))
            # Bit b goes to the places b + 7c for c = 0…3; of these only 8b is kept.
            fours[i, k] = four * uint32(0x204081) & uint32(0x01010101)
        for k in range(cuda.threadIdx.x, masks.shape[1], cuda.blockDim.x):
            masks[i, k] = sets[i] >> uint64(k) & uint64(1)


@device_kernel
def sample(sets: np.ndarray, key: np.uint64, actions: np.ndarray) -> None:
    """Draw as `sample_actions` does, one thread a table."""
    i = cuda.grid(1)
    if i < sets.size:
        actions[i] = nth(sets[i], below(mix(key, uint64(i)), count(sets[i])))


@device_kernel
def find_illegal(sets: np.ndarray, actions: np.ndarray, first: np.ndarray) -> None:
    """Put the first table at which the action is illegal into first[0], which was N."""
    i = cuda.grid(1)
    if i < sets.size:
        if not is_member(sets[i], int64(actions[i])):
            cuda.atomic.min(first, 0, i)


@device_kernel
def write_whole(rules: np.ndarray, states: np.ndarray, rows: np.ndarray) -> None:
    """Do what `write_states` does, one thread a table."""
    i = cuda.grid(1)
    if i < states.size:
        write_states(rules, states, rows, i, i + 1)


class CudaTables:
    """N tables on a GPU, with the methods of `tables.Tables`.

    torch owns all memory; kernels run in its current stream, and nothing waits for them but what
    gives something to the host: `states`, `state_of`, `finals`, `first_illegal`.

    Args:
        setup: the environment's options, with one encoder for all.
        num_envs: N.
        device: `"cuda"`, torch's current one, or `"cuda:1"`.

    Attributes:
        device: the torch device.
        demand: what `fits` asks of a tensor besides its shape and dtype, for messages.

    Raises:
        ValueError: if torch does not find the device.
    """

    def __init__(self, setup: Setup, num_envs: int, device: str) -> None:
        self.device = _find_device(device)
        _say_compiling()
        self.demand = f"contiguous and on {self.device}"
        self._num_envs = num_envs
        self._encoder = setup.encoders[0]
        self._options = (setup.options, setup.fine)
        self._state_bytes = self.empty((num_envs * STATE.itemsize,), np.uint8).zero_()
        self._final_bytes = torch.zeros_like(self._state_bytes)
        packed = np.frombuffer(setup.played.packed.tobytes(), np.uint8).copy()
        # What the seats to move observe, as bits, and may play.
        words = self.empty((-(-self._encoder.layout.size // 64), num_envs), np.uint64)
        sets = self.empty((num_envs,), np.uint64)
        with self._context():
            self._rules = _array(torch.from_numpy(packed).to(self.device)).view(RULES)
            self._states = _array(self._state_bytes).view(STATE)
            self._finals = _array(self._final_bytes).view(STATE)
            self._words, self._sets = _array(words), _array(sets)

    @property
    def states(self) -> np.ndarray:
        """A copy of the tables, STATE (N,)."""
        return _records(self._state_bytes)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> torch.Tensor:
        """Return a new tensor of undefined content."""
        return torch.empty(shape, dtype=_torch_dtype(dtype), device=self.device)

    def pool(self, shape: tuple[int, ...], dtype: Any) -> Callable[[], torch.Tensor]:
        """Return a function that gives such a tensor; torch uses freed memory again."""
        return partial(self.empty, shape, dtype)

    def fits(self, array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
        """Return whether kernels can write a tensor."""
        return (
            isinstance(array, torch.Tensor)
            and array.device == self.device
            and array.shape == shape
            and array.dtype == _torch_dtype(dtype)
            and array.is_contiguous()
        )

    def rows_of(self, encoder: Encoder, observation: Any) -> torch.Tensor:
        """Return the flat rows (N, size) behind an observation that `Encoder.shaped` made.

        Raises:
            ValueError: if the observation is not such a view.
        """
        size = encoder.layout.size
        try:
            if not encoder.is_dict:
                if observation.shape[1:] != encoder.layout.shape:
                    raise ValueError
                return observation.view(-1, size)
            offsets = {f.name: f.offset for f in encoder.layout.pieces}
            first = observation[next(iter(offsets))]
            # Refuses what would reach beyond the tensor's memory.
            rows = first.as_strided((len(first), size), (size, 1))
            lies = {name: observation[name].data_ptr() - rows.data_ptr() for name in offsets}
            if lies != {name: offset * rows.itemsize for name, offset in offsets.items()}:
                raise ValueError
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            raise ValueError(
                f"the observation is not laid out as {encoder.name} rows of {size} entries"
            ) from None
        return rows

    def actions(self, given: Any) -> torch.Tensor:
        """Return actions as int64 (N,) on the device, from a tensor there or anywhere.

        Raises:
            ActionTypeError: if they are not N whole numbers.
        """
        if not isinstance(given, torch.Tensor):
            return torch.from_numpy(read_actions(given, self._num_envs)).to(self.device)
        kind = given.dtype
        whole = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
        if not whole or given.shape != (self._num_envs,):
            name = str(kind).removeprefix("torch.")
            refuse_actions(name, tuple(given.shape), self._num_envs)
        return given.to(self.device, torch.int64).contiguous()

    def start(self, seeds: np.ndarray, anew: bool) -> None:
        """Do what `Tables.start` does."""
        there = torch.from_numpy(seeds).to(self.device)
        self._launch(start, self._rules, self._states, there, anew)

    def step(self, actions: torch.Tensor, rewards: torch.Tensor, terminated: torch.Tensor) -> None:
        """Do what `Tables.step` does."""
        options = (*self._options, rewards, terminated)
        self._launch(step, self._rules, self._states, self._finals, actions, *options)

    def observe(self, rows: torch.Tensor, masks: torch.Tensor, seats: torch.Tensor) -> None:
        """Do what `Tables.observe` does."""
        code, tables, seen = self._encoder.code, (self._rules, self._states), (self._sets, seats)
        if code == TOKENS:
            self._launch(observe_tokens, *tables, rows, masks, *seen)
            return
        self._launch(observe_bits, code, *tables, self._words, *seen)
        if rows.itemsize == 1 and rows.shape[1] % 4 == 0 and rows.data_ptr() % 4 == 0:
            fours = rows.view(torch.int32)
            self._launch_warps(expand_bytes, self._words, self._sets, fours, masks)
        else:
            self._launch_warps(expand, self._words, self._sets, rows, masks)

    def advance(
        self,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        terminated: torch.Tensor,
        rows: torch.Tensor,
        masks: torch.Tensor,
        seats: torch.Tensor,
    ) -> None:
        """Do what `step` and then `observe` do."""
        self.step(actions, rewards, terminated)
        self.observe(rows, masks, seats)

    def sample(self, key: np.uint64) -> torch.Tensor:
        """Do what `Tables.sample` does, for tables that have been observed."""
        actions = self.empty((self._num_envs,), np.int64)
        self._launch(sample, self._sets, key, actions)
        return actions

    def first_illegal(self, actions: torch.Tensor) -> int:
        """Do what `Tables.first_illegal` does, for tables that have been observed."""
        first = self.empty((1,), np.int64).fill_(self._num_envs)
        self._launch(find_illegal, self._sets, actions, first)
        table = int(first)
        return table if table < self._num_envs else -1

    def write_states(self, rows: torch.Tensor) -> None:
        """Do what `Tables.write_states` does."""
        self._launch(write_whole, self._rules, self._states, rows)

    def state_of(self, table: int) -> np.ndarray:
        """Return a copy of one table, STATE (1,)."""
        return _records(self._state_bytes.view(-1, STATE.itemsize)[table])

    def finals(self, terminated: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Do what `Tables.finals` does."""
        tables = torch.nonzero(terminated).flatten()
        ended = self._final_bytes.view(-1, STATE.itemsize)[tables]
        return tables.cpu().numpy(), _records(ended)

    def _launch(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel, one thread a table."""
        self._run(kernel, -(-self._num_envs // THREADS), THREADS, arguments)

    def _launch_warps(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel, one warp a table."""
        self._run(kernel, -(-self._num_envs // WARPS), (WARP, WARPS), arguments)

    def _run(self, kernel: Any, blocks: int, threads: Any, arguments: tuple[Any, ...]) -> None:
        """Run a kernel in torch's current stream."""
        stream: Any = 0
        with self._context():
            if not SIMULATED:
                blocks = max(blocks, QUIET_BLOCKS)
                # numba-cuda knows the default stream, of handle 0, as 0 alone.
                handle = torch.cuda.current_stream(self.device).cuda_stream
                stream = cuda.external_stream(handle) if handle else 0
            arrays = [_array(a) if isinstance(a, torch.Tensor) else a for a in arguments]
            kernel[blocks, threads, stream](*arrays)

    def _context(self) -> AbstractContextManager[Any]:
        """Return what makes the device numba-cuda's current one."""
        context: AbstractContextManager[Any] = cuda.gpus[self.device.index or 0]
        return context


def _array(tensor: torch.Tensor) -> Any:
    """Return a tensor's memory as kernels take it, not a copy."""
    return tensor.numpy() if SIMULATED else cuda.as_cuda_array(tensor, sync=False)


def _find_device(name: str) -> torch.device:
    """Return a device with its index; in the simulator the CPU."""
    if SIMULATED:
        return torch.device("cpu")
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if number == 0:
        raise ValueError(f"device={name!r}: torch {torch.__version__} finds no CUDA device here")
    index = torch.device(name).index
    if index is None:
        index = torch.cuda.current_device()
    if index >= number:
        raise ValueError(f"device={name!r}: torch finds cuda:0…cuda:{number - 1} here")
    return torch.device("cuda", index)


@cache
def _say_compiling() -> None:
    """Say, once a process, that kernels are compiled at their first launch."""
    if not SIMULATED:
        _log.warning("valety_env: compiling for the GPU, some 10 s at every start")


def _torch_dtype(dtype: Any) -> torch.dtype:
    """Return what torch calls a dtype of numpy's."""
    found: torch.dtype = getattr(torch, np.dtype(dtype).name)
    return found


def _records(tensor: torch.Tensor) -> np.ndarray:
    """Return a copy of the bytes of a tensor as STATE records on the host."""
    return tensor.to("cpu", copy=True).numpy().reshape(-1).view(STATE)

"""Where the nanoseconds of a play go in the batch environment, part by part.

    python benchmarks/budget.py --rounds 7

Each part is timed alone, at tables that are in the middle of their deals, in turn with the copying
of a row of 256 bytes, the limit. The parts add up to about a whole step: what a processor does of
one table while it waits for another, a sum does not tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import tyro
from numpy import uint64
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from valety_env._intrinsics import local_record
from valety_env._jit import int64, kernel
from valety_env.arena import versions
from valety_env.bench.cases import COPY_ROW
from valety_env.bench.loops import stagger
from valety_env.bench.machine import describe_machine
from valety_env.bench.measure import Case, Spread, measure_rounds, ratio_within_rounds, stepping
from valety_env.bench.peer_programs.serve import Steps
from valety_env.engine import STATE, next_deal, public_of
from valety_env.episode import write_mask
from valety_env.observations import BITS, flat_bits, spread
from valety_env.tables import legal_sets, observe_tables, sample_actions, step_tables
from valety_env.vector import SelfPlayEnv
from valety_env.view import VIEW, look

new_view = local_record(VIEW)
new_bits = local_record(BITS)


@dataclass
class Args:
    """Measure the parts of a play.

    Example: python benchmarks/budget.py --rounds 7 --json budget.json
    """

    seconds: float = 0.3
    """how long one measurement lasts, about"""
    rounds: int = 7
    """measurements of each part, in turn"""
    tables: int = 4096
    """tables that are worked on"""
    seed: int = 0
    """of the games"""
    json: Path | None = None
    """where to write the numbers"""


@kernel
def deal_on(rules: np.ndarray, states: np.ndarray) -> None:
    for i in range(states.size):
        next_deal(rules[0], states[i])


@kernel
def look_at(rules: np.ndarray, states: np.ndarray, hands: np.ndarray) -> None:
    for i in range(states.size):
        view = new_view()
        look(rules[0], states[i], int64(states[i].turn), view)
        hands[i] = view.hand ^ view.played[0]


@kernel
def compose(rules: np.ndarray, states: np.ndarray, words: np.ndarray) -> None:
    for i in range(states.size):
        state = states[i]
        seat = int64(state.turn)
        bits = new_bits()
        flat_bits(rules[0], public_of(state), seat, state.hand[seat], bits)
        for word in range(words.shape[1]):
            words[i, word] = bits.words[word]


@kernel
def write_rows(words: np.ndarray, rows: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        bits = new_bits()
        for word in range(words.shape[1]):
            bits.words[word] = words[i, word]
        spread(bits, rows.shape[1], rows, i)


@kernel
def write_masks(sets: np.ndarray, masks: np.ndarray) -> None:
    for i in range(sets.size):
        write_mask(sets[i], masks, i)


def again(work: Callable[[], None], steps: int) -> Steps:
    while True:
        work()
        yield steps


def parts_of(game: str, args: Args) -> list[Case]:
    """Return the parts of a play of a game, and the whole of it."""
    n = args.tables
    env = SelfPlayEnv(game, n, seed=args.seed, reuse_buffers=True)
    batch = stagger(env)
    rules, states = env.setup.played.packed, env.states.copy()
    rows, masks = env.setup.encoders[0].flat(batch.observation), batch.action_mask
    words = np.zeros((n, -(-rows.shape[1] // 64)), np.uint64)
    sets, chosen = np.zeros(n, np.uint64), np.zeros(n, np.int64)
    dealt = states.copy()
    compose(rules, states, words)
    legal_sets(rules, states, sets, 0, n)

    finals = np.zeros(n, STATE)
    rewards, ended = batch.rewards.copy(), batch.terminated.copy()
    step = (0, -1.0, rewards, ended, 0, n)
    key = uint64(args.seed)

    def whole() -> None:
        env.step(env.sample())

    def choose() -> None:
        sample_actions(rules, states, key, chosen, 0, n)

    def play_on() -> None:
        # Choosing is taken off again: a play needs a legal action.
        sample_actions(rules, dealt, key, chosen, 0, n)
        step_tables(rules, dealt, finals, chosen, *step)

    def observe() -> None:
        observe_tables(None, rules, states, rows, masks, batch.seat, 0, n)

    parts: list[tuple[str, str, Callable[[], None]]] = [
        ("whole", "env.step(env.sample())", whole),
        ("choice", "choosing a legal action", choose),
        ("legal", "- finding the legal set", lambda: legal_sets(rules, states, sets, 0, n)),
        ("play", "the same, played and scored; new deals", play_on),
        ("deal", "- a new deal, one in 34 or so plays",
         lambda: deal_on(rules, states)),
        ("observe", "row, mask and seat", observe),
        ("bits", "- composing the row's bits", lambda: compose(rules, states, words)),
        ("row", "- writing them as bytes", lambda: write_rows(words, rows)),
        ("mask", "- writing the mask", lambda: write_masks(sets, masks)),
        ("view", "a VIEW: the batch does without",
         lambda: look_at(rules, states, sets.copy())),
    ]  # fmt: skip
    return [
        Case(f"{game} {name}", title, "batch", stepping(partial(again, work, n)))
        for name, title, work in parts
    ]


def main(args: Args) -> None:
    cases = [COPY_ROW, *parts_of("valety", args), *parts_of("polignac", args)]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring")
        found, failed = measure_rounds(
            cases,
            args.rounds,
            args.seconds,
            lambda what, done, total: bar.update(task, completed=done, total=total),
        )
    assert not failed, failed
    table = Table("part", "what", "ns", "min … max", "rows copied", box=box.MARKDOWN)
    results = []
    for series in found:
        name, title = series.case.name, series.case.title
        times = Spread.of([1e9 / rate for rate in series.rates])
        rows = ratio_within_rounds(found[0].rates, series.rates)
        table.add_row(
            name,
            title,
            f"{times.median:.1f}",
            f"{times.low:.1f} … {times.high:.1f}",
            f"{rows.median:.1f}",
        )
        results.append({"name": name, "title": title, "ns": times.to_dict()})
    Console(width=110).print(table)
    told = {
        "tables": args.tables,
        "seed": args.seed,
        "machine": describe_machine(),
        "versions": versions(),
    }
    if args.json:
        args.json.write_text(json.dumps({"parts": results, **told}, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))

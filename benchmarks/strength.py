"""How strong the agents are, each against each, and how long a move takes them.

    python benchmarks/strength.py --deals 100       # goes on where it was stopped
    python benchmarks/strength.py --agents pimc,worlds=40 pimc,worlds=160 --deals 400
    python benchmarks/strength.py --time            # where nothing else runs
    python benchmarks/strength.py                   # the table of all that, in Markdown

Duplicate deals are played in blocks, each with a seed of its own, by several processes. What is
played is kept in the results file, so that any pairing can be given more deals later.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import Progress

from valety_env import evaluate, make_agent
from valety_env.agents import Agent, sees_all
from valety_env.agents.files import replacing
from valety_env.arena import mean_interval, play_tables, versions
from valety_env.bench.machine import describe_machine, one_core
from valety_env.episode import make_setup

AGENTS = (
    "random",
    "heuristic",
    "pimc,worlds=4",
    "pimc,worlds=10",
    "pimc,worlds=40",
    "pimc,worlds=160",
    "clairvoyant",
)
RESULTS = Path(__file__).parent / "results" / "strength-valety.json"
# Deals that are played at once; block b has the seed b.
BLOCK = 20


@dataclass(frozen=True)
class Args:
    """Play agents of Valety against each other, and show what came out.

    Example: python benchmarks/strength.py --agents random heuristic --deals 1000
    """

    agents: tuple[str, ...] = AGENTS
    """who plays, each against each"""
    deals: int = 0
    """duplicate deals of each pairing, those in the results file included"""
    time: bool = False
    """measure how long a move takes each of them, on one core"""
    time_deals: int = 20
    """deals, of the agent with itself, for that"""
    processes: int = os.cpu_count() or 1
    """that play"""
    results: Path = RESULTS
    """the file that is read and written"""


def read(path: Path) -> dict[str, Any]:
    """Return what has been found so far."""
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    return {"game": "valety", "block": BLOCK, "pairings": [], "times": []}


def write(path: Path, found: dict[str, Any]) -> None:
    """Keep what has been found, a pairing or a time a line."""
    parts = []
    for key, value in found.items():
        if isinstance(value, list):
            lines = ",\n  ".join(json.dumps(entry) for entry in value)
            parts.append(f'"{key}": [\n  {lines}\n ]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    with replacing(path) as temporary:
        temporary.write_text("{\n " + ",\n ".join(parts) + "\n}\n")


def pairing_of(found: dict[str, Any], agent: str, opponent: str) -> dict[str, Any]:
    """Return the entry of a pairing, a new one if there is none."""
    for pairing in found["pairings"]:
        if (pairing["agent"], pairing["opponent"]) == (agent, opponent):
            entry: dict[str, Any] = pairing
            return entry
    entry = {"agent": agent, "opponent": opponent, "blocks": {}, "versions": versions()}
    found["pairings"].append(entry)
    return entry


def play_block(agent: str, opponent: str, block: int) -> list[float]:
    """Return the mean points of each pair of a block."""
    points: list[float] = (
        evaluate(agent, opponent, deals=BLOCK, seed=block).results[0].pair_points.tolist()
    )
    return points


def play(args: Args, found: dict[str, Any], bar: Progress) -> None:
    """Play what is missing."""
    # The later one is named first: its points over the earlier one.
    pairings = [(agent, opponent) for opponent, agent in combinations(args.agents, 2)]
    blocks = -(-args.deals // BLOCK)
    missing = [
        (agent, opponent, block)
        for block in range(blocks)
        for agent, opponent in pairings
        if str(block) not in pairing_of(found, agent, opponent)["blocks"]
    ]
    task = bar.add_task("deals", total=len(missing) * BLOCK)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.processes, mp_context=context) as pool:
        running = {pool.submit(play_block, *job): job for job in missing}
        try:
            for future in as_completed(running):
                agent, opponent, block = running[future]
                pairing_of(found, agent, opponent)["blocks"][str(block)] = future.result()
                write(args.results, found)
                bar.advance(task, BLOCK)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise SystemExit(f"stopped; what was played is in {args.results}") from None


class Timed:
    """An agent and the time that its choices took."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.sees_all = sees_all(agent)
        self.name = agent.name
        self.seconds = 0.0
        self.moves = 0

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        actions = self.agent.act(views, legal, keys)
        self.seconds += time.perf_counter() - begin
        self.moves += len(legal)
        return actions


def time_moves(args: Args, found: dict[str, Any], bar: Progress) -> None:
    """Measure how long a move takes, of the agents that play themselves."""
    setup = make_setup("valety", episode="deal")
    task = bar.add_task("moves", total=len(args.agents))
    seeds = np.arange(args.time_deals, dtype=np.uint64)
    agent_seeds = np.zeros(1, np.uint64)
    players = np.zeros((args.time_deals, 2), np.int64)
    for name in args.agents:
        timed = Timed(make_agent(name, setup.played))
        with one_core():
            # The first deals compile what is needed.
            play_tables(setup, [timed], players[:1], seeds[:1], agent_seeds)
            timed.seconds, timed.moves = 0.0, 0
            play_tables(setup, [timed], players, seeds, agent_seeds)
        found["times"] = [entry for entry in found["times"] if entry["agent"] != name]
        found["times"].append(
            {
                "agent": name,
                "deals": args.time_deals,
                "ms_a_move": 1e3 * timed.seconds / timed.moves,
                "machine": describe_machine(),
                "versions": versions(),
            }
        )
        write(args.results, found)
        bar.advance(task)


def points_of(pairing: dict[str, Any]) -> np.ndarray:
    """Return the mean points of every pair of a pairing, float64 (pairs,)."""
    blocks = sorted(pairing["blocks"].items(), key=lambda item: int(item[0]))
    return np.array([points for _, block in blocks for points in block])


def show(agents: Sequence[str], found: dict[str, Any]) -> str:
    """Return the table, in Markdown."""
    times = {entry["agent"]: entry["ms_a_move"] for entry in found["times"]}
    known = {(pairing["agent"], pairing["opponent"]): pairing for pairing in found["pairings"]}
    rows = [
        "| points a deal over | "
        + " | ".join(f"`{agent}`" for agent in agents[:-1])
        + " | a move |",
        "|---|" + "---|" * len(agents),
    ]
    for i, agent in enumerate(agents):
        cells = []
        for opponent in agents[:-1]:
            pairing = known.get((agent, opponent))
            points = np.empty(0) if pairing is None else points_of(pairing)
            interval = mean_interval(points)
            if opponent in agents[i:] or interval is None:
                cells.append("")
                continue
            half = (interval[1] - interval[0]) / 2
            cells.append(f"{points.mean():+.2f} ± {half:.2f} ({len(points):,})")
        took = times.get(agent)
        cells.append("" if took is None else f"{float(f'{took:.2g}'):,.10g} ms")
        rows.append(f"| `{agent}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main(args: Args) -> None:
    found = read(args.results)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        if args.deals > 0:
            play(args, found, bar)
        if args.time:
            time_moves(args, found, bar)
    print(show(args.agents, found))


if __name__ == "__main__":
    main(tyro.cli(Args))

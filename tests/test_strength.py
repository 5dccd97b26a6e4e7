"""benchmarks/strength.py: who is stronger, kept so that it can go on, and shown in the docs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts import ROOT, load_script

from valety_env import evaluate

strength = load_script("benchmarks/strength.py")


def played(results: Path, *arguments: str) -> tuple[str, Any]:
    """Run the script; return what it printed, and what is in its results file."""
    command = [sys.executable, "benchmarks/strength.py", "--results", str(results), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout, json.loads(results.read_text("utf-8"))


def test_deals_are_played_in_blocks_and_go_on(tmp_path: Path) -> None:
    results = tmp_path / "r.json"
    agents = ("--agents", "random", "heuristic", "--processes", "2", "--deals")
    _, first = played(results, *agents, "20")
    (pairing,) = first["pairings"]
    assert (pairing["agent"], pairing["opponent"]) == ("heuristic", "random")
    expected = evaluate("heuristic", "random", deals=20, seed=0).results[0]
    assert pairing["blocks"] == {"0": expected.pair_points.tolist()}
    # What is there already is not played again.
    pairing["blocks"]["0"] = [100.0] * 20
    strength.write(results, first)
    out, second = played(results, *agents, "40")
    assert second["pairings"][0]["blocks"]["0"] == [100.0] * 20
    assert len(second["pairings"][0]["blocks"]["1"]) == 20
    assert len(second["pairings"]) == 1
    assert "| `heuristic` | +5" in out
    assert played(results, *agents, "40")[1] == second


def test_moves_are_timed(tmp_path: Path) -> None:
    agents = ("--agents", "random", "heuristic")
    _, found = played(tmp_path / "r.json", *agents, "--time", "--time-deals", "1")
    assert [entry["agent"] for entry in found["times"]] == ["random", "heuristic"]
    assert all(entry["ms_a_move"] > 0 for entry in found["times"])
    assert "versions" in found["times"][0]


def test_the_table_tells_mean_interval_and_deals() -> None:
    found = {
        "pairings": [
            {"agent": "b", "opponent": "a", "blocks": {"0": [1.0, 3.0], "10": [2.0], "2": [2.0]}}
        ],
        "times": [{"agent": "a", "ms_a_move": 12.34}, {"agent": "b", "ms_a_move": 0.000123}],
    }
    # Student's t with 3 degrees of freedom is 3.1824; the standard error √(2/3)/2.
    assert strength.show(("a", "b"), found).splitlines()[2:] == [
        "| `a` |  | 12 ms |",
        "| `b` | +2.00 ± 1.30 (4) | 0.00012 ms |",
    ]


def test_the_table_in_the_documentation_is_what_the_script_prints() -> None:
    found = strength.read(strength.RESULTS)
    assert found["pairings"], "nothing has been measured"
    assert strength.show(strength.AGENTS, found) in (ROOT / "docs" / "agents.md").read_text("utf-8")

"""`valety-env bench solver`: what it tells of the deals it solved."""

import json

import numpy as np
import pytest

from valety_env import cli
from valety_env.bench.solver import SolverReport, Times, plan_solver_bench
from valety_env.engine import STATE, start_match
from valety_env.rules import make_rules
from valety_env.solver import Solver

Captured = pytest.CaptureFixture[str]


def test_it_reports_means_and_percentiles(capsys: Captured) -> None:
    arguments = "bench solver --deals 12 --game valety-L8 --seed 3 --json -"
    assert cli.main(arguments.split()) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["deals"] == 12
    assert told["settings"] == {"game": "valety-L8", "seed": 3, "memory": 1 << 22}
    assert {"machine", "versions"} <= set(told)
    for part in (told, told["every_card"]):
        assert 0 < part["p50_ms"] <= part["p99_ms"] <= part["max_ms"]
        assert 0 < part["mean_ms"] <= part["max_ms"]
    assert "99th" in err
    # The positions are those of the same deals, counted again.
    rules = make_rules("valety-L8")
    states = np.zeros(12, STATE)
    for i in range(12):
        start_match(rules.record, states[i], np.uint64(3), i)
    solver = Solver(rules)
    solver.best(states)
    assert told["nodes_mean"] == pytest.approx(solver.nodes / 12)


def test_percentiles_are_those_of_all_deals() -> None:
    times = Times(np.arange(1.0, 102.0), np.full(101, 7))
    told = SolverReport({}, times, times).to_dict()
    assert told["mean_ms"] == 51.0
    assert told["p50_ms"] == 51.0
    assert told["p99_ms"] == 100.0
    assert told["max_ms"] == 101.0
    assert told["nodes_mean"] == 7.0


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("valety_env.bench.solver._PAUSE", 0.0)
    told = []
    plan = plan_solver_bench("valety-L1", 3, 0, 1 << 12)
    plan.run(lambda what, done, total: told.append((what, done, total)))
    assert told == [
        (what, done, 3) for what in ("deals", "deals, every card") for done in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--game polignac", "num_players=4"),
        ("--deals 0", "deals=0"),
        ("--memory 100", "memory=100"),
        ("--seed -1", "2^64"),
        ("--game chess", "chess"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    arguments: str, complaint: str, capsys: Captured
) -> None:
    assert cli.main(["bench", "solver", *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert complaint in err.replace("−", "-").replace("2^64−1", "2^64-1")

"""What plays cost, and the commands `solve` and `annotate`."""

import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tables import Table
from test_solver import Brute, by_brute_force, dealt

from valety_env import cli, valety_v0
from valety_env.notation import NotationError, RecordError, position_to_text, record_to_text
from valety_env.rules import make_rules
from valety_env.solver import Solver
from valety_env.solver.annotations import annotate, annotate_all, positions_of_deal
from valety_env.solver.texts import solve_texts

Captured = pytest.CaptureFixture[str]


def game(seed: int, **options: Any) -> dict[str, Any]:
    """Return the record of a game between two who play at random."""
    env = valety_v0.env(**options)
    env.reset(seed=seed)
    rng = random.Random(seed)
    for agent in env.agent_iter():
        observation, _, over, _, _ = env.last()
        mask = observation["action_mask"]
        env.step(None if over else rng.choice([i for i, legal in enumerate(mask) if legal]))
        del agent
    record: dict[str, Any] = env.unwrapped.record()
    return record


def test_a_play_costs_what_the_best_card_would_have_kept() -> None:
    """A small match: every play is compared with brute force."""
    record = game(3, hand_size=5, target=6)
    found = annotate(record)
    rules = make_rules("valety", hand_size=5, target=6)
    assert len(record["deals"]) > 1
    row = 0
    for number, deal in enumerate(record["deals"], 1):
        table = Table(rules)
        table.begin(deal["dealer"], *map(" ".join, deal["hands"]), turned=deal["turned"])
        table.state.leader = table.state.turn = deal["leader"]
        brute = Brute(rules, deal["turned"][1])
        for i, (seat, card) in enumerate(deal["plays"], 1):
            values = by_brute_force(table, brute)
            best = max(values.values())
            told = found[row]
            assert (told.deal, told.play, told.seat, told.card) == (number, i, seat, card)
            assert told.value == values[card]
            assert told.best_value == best
            assert set(told.best) == {c for c, value in values.items() if value == best}
            assert told.cost == best - values[card]
            table.act(card)
            row += 1
        points = deal["points"]
        last = found[row - 1]
        # Nothing is left to chance after the last play.
        assert last.value == points[last.seat] - points[1 - last.seat]
    assert row == len(found)
    assert any(a.cost for a in found)


def test_costs_add_up_to_what_was_lost_of_the_first_value() -> None:
    for a in (annotate(game(5, episode="deal")),):
        first = a[0].seat
        end = a[-1].value if a[-1].seat == first else -a[-1].value
        lost = sum(x.cost if x.seat == first else -x.cost for x in a)
        assert a[0].best_value - lost == end


def test_positions_of_a_deal_are_those_it_went_through() -> None:
    rules = make_rules("valety", count="trick", target=3)
    table = dealt(rules, random.Random(4))
    before = []
    rng = random.Random(1)
    while table.state.phase == 1:
        before.append(table.states.copy())
        table.act(rng.choice(table.legal()))
    found = positions_of_deal(rules, table.state)
    assert len(found) == len(before)
    for state, expected in zip(found, before, strict=True):
        assert position_to_text(rules, state) == position_to_text(rules, expected)


def test_a_record_of_a_game_that_cannot_be_solved_is_refused() -> None:
    from valety_env import polignac_v0

    env = polignac_v0.env()
    env.reset(seed=1)
    with pytest.raises(ValueError, match="num_players=4"):
        annotate(env.unwrapped.record())


def test_the_example_of_the_documentation_runs_as_written() -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "solver.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(example, "docs/solver.md", "exec"), scope)
    assert scope["best"].tolist() == [1]
    assert (scope["values"] != scope["NO_VALUE"]).sum() == 2


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def test_solve_tells_the_value_of_each_card(capsys: Captured) -> None:
    assert run("solve", *"hands=JS,AH/QS,QH turn=0 trump=H --json -".split()) == 0
    told = json.loads(capsys.readouterr().out)["positions"]
    assert len(told) == 1
    assert told[0]["seat"] == 0
    # A♥ takes Q♥, and Q♠ takes J♠: 1 to 1 − 1 (V10). The other way round it is the same.
    assert told[0]["cards"] == [{"card": "JS", "value": 1}, {"card": "AH", "value": 1}]


def test_solve_reads_positions_line_by_line(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = make_rules("valety", hand_size=4)
    tables = [dealt(rules, random.Random(seed)) for seed in range(3)]
    lines = [position_to_text(rules, table.states) for table in tables]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n\n".join(lines)))
    assert run("solve", "-", "--json", "-") == 0
    told = json.loads(capsys.readouterr().out)["positions"]
    for one, table in zip(told, tables, strict=True):
        expected = by_brute_force(table, Brute(rules, "SCDH"[int(table.state.turned) // 13]))
        assert {c["card"]: c["value"] for c in one["cards"]} == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{lines[0]}\nhands=JS,JS/QS,QH turn=0 trump=H"))
    assert run("solve", "-") == 2
    assert "line 2: JS is told twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("position", "complaint"),
    [
        ("", "no position is given"),
        ("hands=JS,JS/QS,QH turn=0 trump=H", "JS is told twice"),
        ("hands=JS,2S,3S/QS turn=0 trump=H", "player_1 holds 1 cards"),
        ("polignac hands=JS/QS/KS/AS turn=0", "num_players=4"),
        ("hands=-/- turn=0", ""),
        ("valety hands=JS/QS turn=2 trump=H", "turn"),
    ],
)
def test_a_position_that_cannot_be_is_one_line(
    position: str, complaint: str, capsys: Captured
) -> None:
    assert run("solve", *position.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(complaint, err), err


def test_annotate_reads_json_and_text(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = game(7, hand_size=4, episode="deal")
    (tmp_path / "a.json").write_text(json.dumps(record))
    (tmp_path / "a.txt").write_text(record_to_text(record))
    expected = [a.to_dict() for a in annotate(record)]
    for file in ("a.json", "a.txt"):
        assert run("annotate", str(tmp_path / file), "--json", "-") == 0
        assert json.loads(capsys.readouterr().out)["plays"] == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(record)))
    assert run("annotate", "-") == 0
    out = capsys.readouterr().out
    assert "deal 1" in out
    for seat in range(2):
        mine = [a for a in expected if a["seat"] == seat]
        costly = sum(a["cost"] > 0 for a in mine)
        cost = sum(a["cost"] for a in mine)
        line = f"player_{seat}: {costly} of {len(mine)} plays cost something, {cost} in all"
        assert line in out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("{", "a.json: "), ("{}", "format"), ("what", "line 1"), ("", "")],
)
def test_a_record_that_is_none_is_one_line(
    content: str, complaint: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "a.json"
    file.write_text(content)
    assert run("annotate", str(file)) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert complaint in err
    assert run("annotate", str(tmp_path / "none.json")) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_solver_of_other_rules_is_not_used() -> None:
    record = game(7, hand_size=4, episode="deal")
    with pytest.raises(ValueError, match="solver"):
        annotate(record, Solver("valety", threads=1))


def test_records_of_all_kinds_are_annotated_in_one_call() -> None:
    records = [
        game(7, hand_size=4, episode="deal"),
        game(8, hand_size=4, episode="deal"),
        game(9, hand_size=3, count="trick", target=4),
    ]
    told: list[tuple[int, int]] = []
    found = annotate_all(records, threads=2, progress=lambda *done: told.append(done))
    assert found == [annotate(record) for record in records]
    plays = sum(map(len, found))
    assert told[-1] == (plays, plays)
    assert annotate_all([]) == []
    # A wrong one is found before anything is solved.
    told.clear()
    with pytest.raises(RecordError):
        annotate_all([records[0], {}], progress=lambda *done: told.append(done))
    assert told == []


def test_positions_of_all_kinds_are_solved_in_one_call() -> None:
    texts, expected = [], []
    for seed in range(6):
        rules = make_rules("valety", hand_size=3 + seed % 2)
        table = dealt(rules, random.Random(seed))
        texts.append(position_to_text(rules, table.states))
        expected.append(by_brute_force(table, Brute(rules, "SCDH"[int(table.state.turned) // 13])))
    told: list[tuple[int, int]] = []
    found = solve_texts(texts, threads=2, progress=lambda *done: told.append(done))
    assert [solution.position for solution in found] == texts
    assert [solution.values for solution in found] == expected
    assert all(
        list(solution.values.values()) == sorted(solution.values.values(), reverse=True)
        for solution in found
    )
    assert told[-1] == (6, 6)
    with pytest.raises(NotationError, match=r"^position 2: JS is told twice"):
        solve_texts([texts[0], "hands=JS,JS/QS,QH turn=0 trump=H"])
    assert solve_texts([]) == []

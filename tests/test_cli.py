"""The command line: what it prints where, its exit codes, and that bad input is one line."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from valety_env import cli
from valety_env.arena import Plan, evaluate, versions
from valety_env.cli import console
from valety_env.cli import evaluate as evaluate_command
from valety_env.observations import ENCODERS, make_encoder
from valety_env.rules import PRESETS, make_rules

Captured = pytest.CaptureFixture[str]
COMMANDS = [command.name for command in cli.COMMANDS]


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long kernels take to compile, progress shows up only where it is asked for."""
    monkeypatch.setattr(console.Bar, "patience", 1e9)


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def in_process(
    *arguments: str, module: str = "valety_env.cli", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
        check=False,
    )


def one_line(text: str) -> str:
    assert text.startswith("valety-env: ")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


def test_evaluate_prints_a_table_with_intervals_seed_and_versions(capsys: Captured) -> None:
    arguments = "evaluate heuristic --against random heuristic --deals 60 --matches 5 --seed 3"
    assert run(*arguments.split()) == 0
    out, err = capsys.readouterr()
    evaluation = evaluate("heuristic", ["random", "heuristic"], deals=60, matches=5, seed=3)
    for result in evaluation.results:
        assert result.ci95 is not None
        assert f"{result.points_per_deal:+.3f} [{result.ci95[0]:+.3f}" in out
    assert "Seed 3;" in out
    for name, version in versions().items():
        assert f"{name} {version}" in out
    assert err == ""


def test_json_on_standard_output_is_all_there_is(capsys: Captured) -> None:
    assert run("evaluate", "random", "--against", "heuristic", "--deals", "40", "--json", "-") == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    again = evaluate("random", "heuristic", deals=40, seed=value["seed"])
    assert value == json.loads(json.dumps(again.to_dict()))
    assert f"Seed {value['seed']};" in err


def test_json_goes_to_a_file_and_the_table_to_standard_output(
    tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "result.json"
    assert run("evaluate", "random", "--deals", "10", "--seed", "1", "--json", str(file)) == 0
    value = json.loads(file.read_text("utf-8"))
    assert [result["opponent"] for result in value["results"]] == ["random", "heuristic"]
    out, err = capsys.readouterr()
    assert "Seed 1;" in out
    assert err == ""


def test_the_command_it_prints_gives_the_same_again(tmp_path: Path, capsys: Captured) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    first = "evaluate random,general=0 --against random --game polignac,num_players=5 --deals 30"
    assert run(*first.split(), "--matches", "2", "--json", str(files[0])) == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("Again: "))
    program, *arguments = shlex.split(line.removeprefix("Again: "))
    assert program == "valety-env"
    assert run(*arguments, "--json", str(files[1])) == 0
    assert files[0].read_text("utf-8") == files[1].read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "Missing subcommand"),
        ("bad", "bad; Available subcommands: "),
        ("evaluate", "AGENT"),
        ("evaluate nobody", "'nobody' names no agent; the agents are: random"),
        ("evaluate random --against nobody", "'nobody' names no agent"),
        ("evaluate random --against", "no opponent is given"),
        ("evaluate random,general=2", "allowed are 0 and 1"),
        ("evaluate random --deals 0", "deals=0: it must be a whole number of at least 1"),
        ("evaluate random --deals many", "--deals: 'many' is no whole number"),
        ("evaluate random --dels 3", "--dels"),
        ("evaluate random --matches -1", "matches=-1"),
        ("evaluate random --seed -1", "seed=-1"),
        ("evaluate random --game bridge", "'bridge' is not a game; the games are: valety"),
        ("evaluate random --game valety,target=0", "target=0"),
        ("evaluate random --game valety,colour=red", "'colour' is not a rule option"),
        ("evaluate random --json no/such/folder/x.json", "there is no folder no/such/folder"),
        ("evaluate random --json .", "it is a folder"),
        ("evaluate checkpoint", "checkpoint needs PATH"),
        ("info --game bridge", "'bridge' is not a game"),
        ("info --layout nothing", "--layout nothing: the encoders are flat_v0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: str, told: str, capsys: Captured) -> None:
    assert run(*arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in one_line(err)


def test_an_unreadable_checkpoint_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: Captured
) -> None:
    pytest.importorskip("torch")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"no weights in here")
    for path in (tmp_path / "missing", damaged, tmp_path):
        assert run("evaluate", f"checkpoint:{path}") == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert str(path) in one_line(err)


def test_json_that_cannot_be_written_is_found_before_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def never(plan: Plan, progress: Any) -> None:
        raise AssertionError("nothing may be played")

    monkeypatch.setattr(Plan, "run", never)
    assert run("evaluate", "random", "--json", "no/such/folder/x.json") == 2
    one_line(capsys.readouterr().err)


class Cheat:
    name = "cheat"

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        return np.full(len(legal), 53, np.int64)


def test_an_agent_that_breaks_the_rules_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def plan(agent: str, opponents: Any, **options: Any) -> Plan:
        return PLAN(Cheat(), opponents, **options)

    PLAN: Callable[..., Plan] = evaluate_command.plan_evaluation
    monkeypatch.setattr(evaluate_command, "plan_evaluation", plan)
    assert run("evaluate", "cheat", "--deals", "1") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"cheat at the table with seed \d+: player_[01] may not", one_line(err))


def test_a_message_of_several_lines_becomes_one(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def refuse(agent: str, opponents: Any, **options: Any) -> Plan:
        raise ValueError("first line\n  second line")

    monkeypatch.setattr(evaluate_command, "plan_evaluation", refuse)
    assert run("evaluate", "random") == 2
    assert one_line(capsys.readouterr().err) == "valety-env: first line second line\n"


def test_an_interrupt_is_one_line_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def interrupted(plan: Plan, progress: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Plan, "run", interrupted)
    assert run("evaluate", "random") == 130
    one_line(capsys.readouterr().err)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_examples_that_parse(command: str, capsys: Captured) -> None:
    assert run(command, "--help") == 0
    out, err = capsys.readouterr()
    assert err == ""
    examples = re.findall(r"^ +(valety-env .*)$", out.partition("Examples:")[2], re.MULTILINE)
    assert examples
    for example in examples:
        # What a shell does with a file is not for the program.
        program, *arguments = shlex.split(example.partition(" < ")[0])
        assert program == "valety-env"
        assert arguments[0] == command
        assert cli._parse(arguments).name == command


def test_the_help_lists_every_command(capsys: Captured) -> None:
    assert run("--help") == 0
    out = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"• {command}\b", out)
    assert "Examples" not in out


def test_info_tells_games_agents_encoders_versions_and_where_kernels_are(capsys: Captured) -> None:
    assert run("info") == 0
    out = capsys.readouterr().out
    for word in (*PRESETS, *ENCODERS, "random", "heuristic", "checkpoint:PATH"):
        assert word in out
    assert f"numba {versions()['numba']}" in out
    assert "…" not in out
    assert run("info", "--json", "-") == 0
    value = json.loads(capsys.readouterr().out)
    assert value["games"]["polignac"] == make_rules("polignac").to_dict()
    assert value["versions"] == versions()
    assert value["encoders"] == list(ENCODERS)
    assert Path(value["kernels"]).is_absolute()


def test_info_tells_all_rules_of_one_game(capsys: Captured) -> None:
    assert run("info", "--game", "polignac,num_players=6") == 0
    lines = capsys.readouterr().out.splitlines()
    for name, value in make_rules("polignac", num_players=6).to_dict().items():
        line = next(x for x in lines if x.split()[:1] == [name])
        if not isinstance(value, list):
            assert line.split()[1:] == [value if name == "rank_order" else str(value).lower()]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_info_documents_what_an_encoder_writes(encoder: str, capsys: Captured) -> None:
    assert run("info", "--layout", encoder, "--game", "polignac") == 0
    table = make_encoder(encoder, make_rules("polignac")).layout.table()
    assert capsys.readouterr().out == f"{table}\n"


def test_a_terminal_that_knows_ascii_alone_gets_everything_readable() -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "LANG": "C"}
    for arguments, told in (
        ("info", "JSCDH"),
        ("evaluate --help", "Examples:"),
        ("evaluate heuristic --against random --deals 5 --seed 1", "[+"),
    ):
        done = in_process(*arguments.split(), **plain)
        assert done.returncode == 0, done.stderr
        assert told.encode() in done.stdout
        assert done.stdout.isascii()
    done = in_process("evaluate", "random", "--seed", "-1", **plain)
    assert done.returncode == 2
    assert b"0...2^64-1" in done.stderr


@pytest.mark.parametrize("module", ["valety_env", "valety_env.cli"])
def test_it_runs_as_a_module(module: str) -> None:
    arguments = ("evaluate", "random", "--against", "random", "--deals", "2", "--json", "-")
    done = in_process(*arguments, module=module)
    assert done.returncode == 0
    assert json.loads(done.stdout)["results"][0]["pairs"] == 2
    assert in_process("evaluate", "nobody", module=module).returncode == 2


def test_torch_is_loaded_for_checkpoints_alone() -> None:
    code = (
        "import sys; from valety_env.cli import main; "
        "main(['evaluate', 'heuristic', '--deals', '2']); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_seen_enough_is_no_crash() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "valety_env.cli", "info", "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=120)
    assert b"Traceback" not in err
    assert b"Exception" not in err


def test_long_work_tells_rate_and_time_left_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(console.Bar, "patience", 0.0)
    monkeypatch.setattr(console.Bar, "pause", 0.0)
    assert run("evaluate", "random", "--deals", "20", "--json", "-") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["results"]
    assert re.search(r"^random: deals \d+/20, [\d,.]+/s, about \d+ s left$", err, re.MULTILINE)


def test_the_rate_counts_from_the_end_of_what_came_before(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    clock = iter([0.0, 10.0, 40.0, 41.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(console.Bar, "patience", 0.0)
    monkeypatch.setattr(console.Bar, "pause", 0.0)
    bar = console.Bar()
    bar.update("random: deals", 1.0, 4)
    bar.update("random: deals", 4.0, 4)
    bar.update("random: matches", 2.0, 12)
    assert capsys.readouterr().err.splitlines() == [
        "random: deals 1/4, 0.1/s, about 30 s left",
        "random: deals 4/4, 0.1/s, about 0 s left",
        "random: matches 2/12, 2.0/s, about 5 s left",
    ]


def test_on_a_terminal_long_work_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    screen = Console(file=out, force_terminal=True, width=100)
    monkeypatch.setattr(console, "err", lambda: screen)
    monkeypatch.setattr(console.Bar, "patience", 0.0)
    with console.Bar() as bar:
        for done in (1.0, 20.0, 40.0):
            bar.update("random: deals", done, 40)
        bar.update("random: matches", 3.0, 10)
        assert bar._bar is not None
        bar._bar.refresh()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())
    assert re.search(r"random: matches .* 3/10 [\d,.]+/s ", shown)

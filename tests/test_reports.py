"""What tournaments say of themselves: on a terminal, as a page, on the command line."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from valety_env.arena.behaviour import Rate
from valety_env.arena.reports.figures import curve_figure, loss_figure
from valety_env.arena.reports.markdown import make_markdown
from valety_env.arena.reports.page import make_page, write_page
from valety_env.arena.reports.terminal import print_standings
from valety_env.arena.reports.words import half_width, moves_text, rate_text, short
from valety_env.arena.tournament import (
    Standings,
    Store,
    plan_tournament,
    read_standings,
)
from valety_env.arena.tournament.standings import Curve, CurvePoint
from valety_env.cli import main

NAMES = ("random", "heuristic", "random,general=0")
HOSTILE = '<b onclick="x">&amp;</b>'


def standings_of(folder: Path, *names: str, **options: Any) -> Standings:
    file = folder / "t.sqlite"
    tournament = plan_tournament(file, names, seed=3, **{"deals": 12, **options})
    with tournament.store:
        tournament.run(command="valety-env tournament --what <it> takes")
        return read_standings(tournament.store, behaviour=True)


@pytest.fixture(scope="module")
def standings(tmp_path_factory: pytest.TempPathFactory) -> Standings:
    return standings_of(tmp_path_factory.mktemp("t"), *NAMES, matches=4)


@pytest.fixture(scope="module")
def with_curves(standings: Standings) -> Standings:
    """Return standings with a curve of two runs, and a name that is no good HTML."""
    points = tuple(
        CurvePoint(step, 100, points, (points - 0.2, points + 0.3))
        for step, points in ((1_000_000, -1.0), (2_000_000, 0.5), (3_000_000, 0.75))
    )
    rows = list(standings.standings)
    rows[1] = replace(rows[1], label=f"python:x:y,z={HOSTILE}")
    return replace(
        standings,
        standings=tuple(rows),
        curves=(
            Curve("runs/a", "heuristic", points),
            Curve(f"runs/{HOSTILE}", "heuristic", points),
        ),
    )


def printed(standings: Standings, behaviour: bool = True, width: int = 120) -> str:
    out = io.StringIO()
    print_standings(standings, Console(file=out, width=width), behaviour)
    return out.getvalue()


def test_the_terminal_shows_ratings_matrix_and_how_to_have_it_again(standings: Standings) -> None:
    text = printed(standings)
    for place, row in enumerate(standings.standings, 1):
        assert f"{place} {row.label}" in text
        assert row.deal_rating is not None
        assert row.deal_rating.ci95 is not None
        low, high = row.deal_rating.ci95
        assert f"{row.deal_rating.elo:+.0f} [{low:+.0f}, {high:+.0f}]" in text
        assert row.field is not None
        assert f"{row.field[0]:+.3f} [" in text
    for cell in standings.cells.values():
        assert f"{cell.points:+.2f}" in text
    assert "Seed 3" in text
    assert "numba" in text
    assert "trumps when void" in text
    assert "points a deal lost against the best cards" in text
    assert "trumps when void" not in printed(standings, behaviour=False)
    # No general can be announced in Valety.
    assert "general" not in text.replace("random,general=0", "")


def test_curves_are_shown_step_by_step(with_curves: Standings) -> None:
    text = printed(with_curves, width=140)
    assert re.search(r"runs/a +heuristic +2,000,000 +100 +\+0\.500 \[\+0\.300, \+0\.800\]", text)


@pytest.mark.plain
def test_numbers_become_words() -> None:
    assert half_width(1.0, (0.5, 1.25), ".2f") == "±0.50"
    assert half_width(1.0, None, ".2f") == ""
    assert rate_text(Rate(0.5, (0.4, 0.7), 10)) == "50.0% ±20.0"
    assert rate_text(Rate(0.0012, (0.001, 0.002), 10)) == "0.120% ±0.080"
    assert rate_text(None) == "-"
    assert moves_text(0.000179) == "0.00018 ms"
    assert moves_text(1234.0) == "1,200 ms"
    assert moves_text(None) == "-"
    assert short("heuristic") == "heuristic"
    assert short("checkpoint:runs/a/step-000001", 12) == "…step-000001"


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_needs_nothing_else_and_runs_nothing(with_curves: Standings) -> None:
    text = make_page(with_curves)
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "img", "object", "embed", "form", "a"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "data"):
                assert value is not None
                assert value.startswith("#"), (tag, value)
    assert "url(http" not in text
    assert "@import" not in text
    policies = [a for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert str(policies[0]["content"]).startswith("default-src 'none'")
    # What is no good HTML is shown as it is.
    assert page.text.count(HOSTILE) >= 3
    assert "valety-env tournament --what <it> takes" in page.text


def test_the_page_tells_all_that_was_found(with_curves: Standings) -> None:
    page = Page(make_page(with_curves))
    for row in with_curves.standings:
        assert row.label in page.text
    for cell in with_curves.cells.values():
        assert f"{cell.points:+.2f}" in page.text
        assert f"{cell.win_rate:.0%} won" in page.text
    assert "36 duplicate deals and 12 duplicate matches" in page.text
    assert "+0.500 [+0.300, +0.800]" in page.text
    assert "seed 3" in page.text
    assert '"jack_penalties"' in page.text
    assert f"valety_env {with_curves.sessions[0]['versions']['valety_env']}" in page.text
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    # Three measures, the curves, the rates and the losses.
    assert len(pictures) == 6


def test_the_same_standings_are_the_same_page(with_curves: Standings, tmp_path: Path) -> None:
    write_page(with_curves, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == make_page(with_curves)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_page_without_matches_curves_or_losses(tmp_path: Path) -> None:
    found = standings_of(tmp_path, "random", "heuristic", game="polignac", deals=3)
    page = Page(make_page(found))
    assert "Learning curves" not in page.text
    assert "matches" not in page.text.partition("To have the same again")[0].replace(
        "wins a deal or match", ""
    )
    assert "alone at the table" in page.text
    assert "announces a general" in page.text
    assert "best cards" not in page.text
    assert loss_figure(found) is None


def test_blue_is_a_gain_and_orange_a_loss(standings: Standings) -> None:
    text = make_page(standings)
    cells = re.findall(r'<td style="background:#(..)(..)(..)"[^>]*>([+-]\d\.\d\d)<', text)
    assert len(cells) == len(standings.cells)
    for red, _, blue, points in cells:
        if float(points) > 0.05:
            assert int(red, 16) < int(blue, 16)
        elif float(points) < -0.05:
            assert int(red, 16) > int(blue, 16)


def test_a_curve_is_drawn_through_its_points(with_curves: Standings) -> None:
    picture = curve_figure("heuristic", list(with_curves.curves))
    assert "steps of training, millions" in picture
    assert "points a deal over heuristic" in picture
    assert "runs/a" in picture
    assert "<svg" in picture[:10]


def test_markdown_tells_the_same_as_the_terminal(with_curves: Standings) -> None:
    text = make_markdown(with_curves)
    terminal = printed(with_curves, width=400)
    rows = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    numbers = {cell.strip() for row in rows for cell in row.strip("|").split(" | ")}
    for number in numbers:
        for part in re.sub(r"\\(.)", r"\1", number).split(" ±"):
            assert part.strip() in terminal
    assert "12 duplicate deals and 4 duplicate matches of each pairing" in text
    assert "\n    valety-env tournament --what <it> takes\n" in text
    # Names mean nothing to Markdown.
    assert "\\<b onclick" in text
    assert "## Learning curves" in text
    assert text.startswith("# Tournament at valety\n")
    assert make_markdown(with_curves, 3).startswith("### Tournament")


# On the command line.


def run(*arguments: str) -> int:
    return main(["tournament", *arguments])


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


SHORT = ("--deals", "20", "--processes", "1", "--seed", "9")


def test_the_command_plays_reports_and_goes_on(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("random", "heuristic", *SHORT, "--report", "out.html", "--json", "out.json") == 0
    out = capsys.readouterr().out
    assert "1 heuristic" in out
    assert "Report: out.html" in out
    value = json.loads((inside / "out.json").read_text("utf-8"))
    assert value["seed"] == 9
    assert value["standings"][0]["behaviour"]["rates"]["tricks won"]["rate"] > 0
    assert (inside / "tournament.sqlite").exists()
    page = (inside / "out.html").read_text("utf-8")
    assert "valety-env tournament random heuristic --deals 20" in page
    # The command it prints does the same, that is nothing any more.
    again = next(x for x in out.splitlines() if x.startswith("Again")).partition(": ")[2]
    program, *arguments = shlex.split(again)
    assert program == "valety-env"
    before = (inside / "tournament.sqlite").read_bytes()
    assert main(arguments) == 0
    assert (inside / "tournament.sqlite").read_bytes() == before
    # Nobody named: all in the file are told of.
    capsys.readouterr()
    assert run("--behaviour") == 0
    assert "trumps when void" in capsys.readouterr().out


def test_newcomers_join_those_in_the_file(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("random", "heuristic", *SHORT) == 0
    assert run("random,general=0", "--add", "--deals", "20", "--processes", "2") == 0
    assert "3 random" in capsys.readouterr().out
    with Store("tournament.sqlite") as store:
        assert len(store.ranges()) == 3
    assert run("heuristic", "random,general=0", "--deals", "20", "--json", "-") == 0
    value = json.loads(capsys.readouterr().out)
    assert {row["agent"] for row in value["standings"]} == {"heuristic", "random,general=0"}


def test_runs_have_curves(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    from valety_env.agents.neural import ActorCritic, NetworkConfig, save_checkpoint
    from valety_env.episode import make_setup

    setup = make_setup("valety-L4", episode="deal")
    torch.manual_seed(1)
    (inside / "run").mkdir()
    for step in (100, 200):
        network = ActorCritic(NetworkConfig(setup.encoders[0].layout.size, 52, (8,)))
        save_checkpoint(
            inside / "run" / f"step-{step}.safetensors", network, setup.metadata(step=step)
        )
    shutil.copy(inside / "run" / "step-200.safetensors", inside / "run" / "last.safetensors")
    given = ("random", "heuristic", *SHORT, "--game", "valety-L4")
    assert run(*given, "--curves", "run", "--json", "-") == 0
    value = json.loads(capsys.readouterr().out)
    assert len(value["standings"]) == 4
    curves = {curve["opponent"]: curve for curve in value["curves"]}
    assert curves.keys() == {"random", "heuristic"}
    assert [point["step"] for point in curves["random"]["points"]] == [100, 200]
    assert all(curve["run"] == "run" for curve in curves.values())
    # Another network in the same folder is none of this run.
    network = ActorCritic(NetworkConfig(setup.encoders[0].layout.size, 52, (8,)))
    other = inside / "run" / "other.safetensors"
    save_checkpoint(other, network, setup.metadata(step=300, seed=7))
    assert run("checkpoint:run/other", *given, "--curves", "run", "--json", "-") == 0
    again = json.loads(capsys.readouterr().out)
    assert len(again["standings"]) == 5
    assert {len(curve["points"]) for curve in again["curves"]} == {2}
    other.unlink()
    # Checkpoints of a run meet the others, not each other, unless they take part as they do.
    assert len(value["matrix"]) == 2 * (1 + 2 * 2)
    assert run(*given, "--checkpoints", "run", "--json", "-") == 0
    assert len(json.loads(capsys.readouterr().out)["matrix"]) == 2 * 6


def test_options_may_come_from_a_file(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inside / "t.toml").write_text(
        'agents = ["random", "heuristic"]\ngame = "valety-L3"\ndeals = 30\nprocesses = 1\n'
        'seed = 4\nresults = "from-file.sqlite"\n'
    )
    assert run("--config", "t.toml", "--deals", "10", "--json", "-") == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["game"], value["seed"]) == ("valety-L3", 4)
    # Flags win over the file.
    assert {cell["deals"] for cell in value["matrix"]} == {10}
    assert (inside / "from-file.sqlite").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "tournament.sqlite: there is no such results file"),
        ("random", "at least two agents"),
        ("random nobody", "'nobody' names no agent"),
        ("random heuristic --deals 0", "deals=0: it must be a whole number of at least 1"),
        ("random heuristic --deals many", "--deals: 'many' is no whole number"),
        ("random heuristic --matches -1", "matches=-1: it must be a whole number of at least 0"),
        ("random heuristic --until 0", "until=0.0: it must be a number of points above 0"),
        ("random heuristic --processes -1", "--processes -1: it must be at least 0"),
        ("random heuristic --game bridge", "'bridge' is not a game"),
        ("random heuristic --seed -4", "seed=-4"),
        ("random heuristic --report no/where.html", "--report no/where.html: there is no folder"),
        ("random heuristic --results no/where", "--results no/where: there is no folder"),
        ("random heuristic --results .", "it is a folder"),
        ("random --checkpoints nowhere", "nowhere: there is no checkpoint"),
        ("random --curves nowhere", "nowhere: there is no checkpoint"),
        ("random heuristic --ray --processes 2", "--ray and --processes: give one of them"),
        ("random sb3:model.zip", "--trust"),
        ("--config nothing.toml", "nothing.toml cannot be read"),
        ("random --config wrong.toml", "'deels' is not an option"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(
    inside: Path, capsys: pytest.CaptureFixture[str], arguments: str, told: str
) -> None:
    (inside / "wrong.toml").write_text("deels = 3\n")
    assert run(*arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("valety-env: ")
    assert err.count("\n") == 1
    assert told in err
    assert [path.name for path in inside.iterdir()] == ["wrong.toml"]


def test_a_report_whose_library_is_missing_is_refused_before_anything_is_played(
    inside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "valety_env.arena.reports.page")
    assert run("random", "heuristic", *SHORT, "--report", "out.html") == 2
    told = "--report needs jinja2: pip install 'valety-env[report]'"
    assert told in capsys.readouterr().err
    assert not list(inside.iterdir())


# In a real browser.

MEASURE = """<!doctype html><body><iframe id="page" src="page.html" width="{width}" height="900">
</iframe><script>
document.getElementById("page").onload = function () {{
  const inside = this.contentDocument;
  const boxes = [...inside.querySelectorAll("figure svg")].map(x => x.getBoundingClientRect());
  document.title = JSON.stringify({{
    width: inside.documentElement.scrollWidth,
    tables: [...inside.querySelectorAll(".wide")].map(x => x.getBoundingClientRect().right),
    pictures: boxes.map(box => [box.width, box.height, box.right]),
    letters: Math.min(...[...inside.querySelectorAll("svg text")].map(
      x => x.getBoundingClientRect().height)),
  }});
}};
</script>"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_shows_the_page_at_the_width_of_a_phone_and_of_a_desk(
    with_curves: Standings, tmp_path: Path, width: int
) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        assert "CI" not in os.environ, "CI needs the package chromium"
        pytest.skip("there is no Chromium here")
    write_page(with_curves, tmp_path / "page.html")
    (tmp_path / "measure.html").write_text(MEASURE.format(width=width), "utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1400,1000",
            "--virtual-time-budget=5000",
            "--dump-dom",
            (tmp_path / "measure.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found, done.stdout
    seen = json.loads(found[1])
    # Nothing sticks out sideways: wide tables scroll by themselves.
    assert seen["width"] <= width
    assert all(right <= width for right in seen["tables"])
    assert len(seen["pictures"]) == 6
    for across, high, right in seen["pictures"]:
        assert right <= width
        assert across > 250
        assert high > 60
    # Pixels from the top of a letter to the bottom of a line: they can be read.
    assert seen["letters"] >= 9

"""docs/results.md: made by a command from configs, which are those that are committed."""

import shutil
import tomllib
from pathlib import Path

import pytest
from scripts import ROOT, load_script

from valety_env import make_agent
from valety_env.arena.reports.markdown import make_markdown
from valety_env.arena.tournament.standings import read_standings
from valety_env.arena.tournament.store import Store
from valety_env.cli import _parse

leaderboard = load_script("tools/make_leaderboard.py")
CONFIGS = ROOT / "configs" / "leaderboard"

TRAINING = """
game = "valety-L3"
total_timesteps = 2000
num_envs = 32
hidden = [8]
threads = 1
eval_minutes = 0.0
final_deals = 0
final_matches = 0
"""
TOURNAMENT = """
agents = ["random", "checkpoint:runs/valety-L3-ppo-1", "checkpoint:runs/valety-L3-ppo-2"]
game = "valety-L3"
deals = 10
processes = 1
seed = 1
"""


def config(name: str) -> dict[str, object]:
    return tomllib.loads((CONFIGS / f"{name}.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", leaderboard.TOURNAMENTS)
def test_the_config_of_a_tournament_is_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command = _parse(["tournament", "--config", f"configs/leaderboard/{name}.toml"])
    assert list(command.agents) == config(name)["agents"]
    assert command.seed is not None
    assert command.results == f"runs/leaderboard/{command.game}.sqlite"


@pytest.mark.parametrize("game", leaderboard.TRAINED)
def test_networks_are_of_three_seeds(game: str) -> None:
    agents = config(game)["agents"]
    assert isinstance(agents, list)
    networks = [name for name in agents if name.startswith("checkpoint:")]
    # No learning result of fewer than three seeds.
    assert networks == [f"checkpoint:runs/leaderboard/{game}-ppo-{n}" for n in leaderboard.SEEDS]
    assert len(leaderboard.SEEDS) >= 3
    assert config(f"{game}-ppo")["game"] == config(game)["game"]


@pytest.mark.parametrize("game", leaderboard.TRAINED)
def test_whoever_is_in_the_leaderboard_comes_with_it(
    game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    agents = config(game)["agents"]
    assert isinstance(agents, list)
    for name in agents:
        assert make_agent(name, game).name == name


def test_the_page_tells_what_the_results_file_holds(tmp_path: Path) -> None:
    # A copy, since one at a time can use a file.
    results = shutil.copy(ROOT / "runs" / "leaderboard" / "valety.sqlite", tmp_path)
    agents = config("valety")["agents"]
    with Store(results) as store:
        entrants = store.entrants()
        assert isinstance(agents, list)
        numbers = [
            number for name in agents for number, one in entrants.items() if one.name == name
        ]
        assert [entrants[number].name for number in numbers] == agents
        text = make_markdown(read_standings(store, numbers), level=2)
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    # Ratings and the matrix; how they play is counted from the same file, but takes minutes.
    tables, again = text.split("### To have the same again")
    assert tables.count("\n|") == 2 * (2 + len(agents))
    assert tables.rstrip() in page
    assert again.strip() in page


@pytest.mark.slow
def test_the_command_trains_plays_and_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configs = tmp_path / "configs"
    configs.mkdir()
    (configs / "valety-L3-ppo.toml").write_text(TRAINING)
    (configs / "valety-L3.toml").write_text(TOURNAMENT)
    page = tmp_path / "results.md"
    for name, value in (
        ("ROOT", tmp_path),
        ("CONFIGS", configs),
        ("FOLDER", tmp_path / "runs"),
        ("PAGE", page),
        ("TOURNAMENTS", ("valety-L3",)),
        ("TRAINED", ("valety-L3",)),
        ("SEEDS", (1, 2)),
    ):
        monkeypatch.setattr(leaderboard, name, value)
    monkeypatch.setattr(leaderboard, "TRAINING", ROOT / "training" / "ppo_selfplay.py")
    assert leaderboard.main(leaderboard.Args(tournaments=("valety-L3",))) == 0
    text = page.read_text("utf-8")
    assert text.startswith("# Results\n")
    assert "## Tournament at valety-L3" in text
    assert "checkpoint:runs/valety-L3-ppo-2" in text
    assert (tmp_path / "runs" / "valety-L3.html").exists()
    # Again: networks and games are there, and the page is the same.
    assert leaderboard.main(leaderboard.Args(tournaments=("valety-L3",))) == 0
    assert page.read_text("utf-8") == text

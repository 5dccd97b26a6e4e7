"""Tournaments on a Ray cluster: the same games as anywhere else.

Run in .venv-rllib (`make rllib`); where Ray is missing they are skipped.
"""

import json
from pathlib import Path

import pytest

pytest.importorskip("ray")

from valety_env.arena.tournament import Store, plan_tournament
from valety_env.cli import main
from valety_env.episode import IllegalActionError
from valety_env.integrations.ray_cluster import RayExecutor

pytestmark = [
    pytest.mark.slow,
    # What Ray and the packages it starts say of themselves.
    pytest.mark.filterwarnings("ignore"),
]

BAD_AGENT = """
import numpy as np

class Bad:
    def __init__(self, rules):
        pass

    def act(self, views, legal, keys):
        return np.full(len(legal), 99)
"""


def games(path: Path) -> dict[tuple[object, ...], list[bytes]]:
    """Return every game in a file, whatever blocks they lie in."""
    found = {}
    with Store(path) as store:
        for lineup, kind in store.ranges():
            for block in store.blocks(lineup, kind):
                for i in range(block.number):
                    arrays = (block.scores, block.winners, block.lengths, block.plays)
                    found[lineup, kind, block.first + i] = [each[i].tobytes() for each in arrays]
    return found


def test_a_cluster_plays_the_same_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A network whose name is a path from here.
    torch = pytest.importorskip("torch")
    from valety_env.agents.neural import ActorCritic, NetworkConfig, save_checkpoint
    from valety_env.episode import make_setup

    monkeypatch.chdir(tmp_path)
    setup = make_setup("valety", episode="deal")
    torch.manual_seed(1)
    network = ActorCritic(NetworkConfig(setup.encoders[0].layout.size, 52, (16,)))
    save_checkpoint("net.safetensors", network, setup.metadata(step=1))
    command = ["tournament", "random", "heuristic", "checkpoint:net", "--deals", "200"]
    command += ["--matches", "5", "--seed", "3", "--json", "-", "--results"]
    assert main([*command, "ray.sqlite", "--ray"]) == 0
    on_cluster = json.loads(capsys.readouterr().out)
    assert main([*command, "here.sqlite", "--processes", "1"]) == 0
    here = json.loads(capsys.readouterr().out)
    assert on_cluster["matrix"] == here["matrix"]
    found = games(tmp_path / "ray.sqlite")
    assert len(found) == 3 * (200 + 5)
    assert found == games(tmp_path / "here.sqlite")
    assert on_cluster["sessions"][0]["versions"]["ray"]


def test_an_agent_that_fails_on_a_cluster_is_told_of_as_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_agent.py").write_text(BAD_AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tournament = plan_tournament("t.sqlite", ["random", "python:bad_agent:Bad"], deals=20, seed=1)
    with (
        tournament.store,
        RayExecutor() as executor,
        pytest.raises(IllegalActionError, match=r"^python:bad_agent:Bad at the table with seed"),
    ):
        tournament.run(executor, 2)

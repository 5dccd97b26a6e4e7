"""Each example runs, with arguments that keep it short."""

import os
import subprocess
import sys
from pathlib import Path

import pettingzoo
import pytest
from scripts import complaints

ROOT = Path(__file__).resolve().parent.parent

# Arguments, and what a run must print.
RUNS = {
    "aec_loop.py": [
        (["--seed", "1"], "the match is over: player_"),
        (["--game", "polignac"], "returns: {'player_0':"),
    ],
    "annotate_games.py": [(["--deals", "3"], "player_1: ")],
    "batch_selfplay.py": [(["--tables", "64", "--steps", "70"], "plays/s, 128 deals")],
    "cleanrl_ppo.py": [
        (
            "--total-timesteps 800 --num-envs 8 --num-steps 50 --eval-deals 10".split(),
            "/last.safetensors at valety",
        ),
        (
            "--env-id valety/Polignac-v0 --opponent random --total-timesteps 400 --num-envs 4 "
            "--num-steps 50".split(),
            "model saved to runs/valety_Polignac-v0__cleanrl_ppo__1__",
        ),
    ],
    "cleanrl_ppo_selfplay.py": [
        (
            "--total-timesteps 800 --num-envs 8 --num-steps 50 --eval-deals 10".split(),
            "/last.safetensors at valety",
        ),
        (
            "--env-id polignac_v0 --total-timesteps 400 --num-envs 4 --num-steps 50".split(),
            "model saved to runs/polignac_v0__cleanrl_ppo_selfplay__1__",
        ),
    ],
    "custom_rules.py": [
        ([], "AEC: (3, 3, 3, 3) 12" if hasattr(pettingzoo, "make") else "vectorised: (8, 464)")
    ],
    "evaluate_agent.py": [
        (["--deals", "50", "--matches", "10"], "lowest card at valety"),
        (["--game", "polignac", "--deals", "20", "--matches", "0"], "heuristic"),
    ],
    "gym_loop.py": [(["--episodes", "2", "--tables", "16"], "matches at 16 tables, won 0.")],
    "sb3_maskable_ppo.py": [
        (
            f"{flags} --total-timesteps 400 --num-envs 8 --n-steps 50 --eval-deals 10".split(),
            "sb3:runs/sb3_maskable_ppo__1.zip at valety",
        )
        for flags in ("", "--vector")
    ],
}
# What an example needs beyond the packages that all tests need.
NEEDS = {
    "cleanrl_ppo.py": "torch",
    "cleanrl_ppo_selfplay.py": "torch",
    "sb3_maskable_ppo.py": "sb3_contrib",
}


def test_each_example_is_run() -> None:
    assert sorted(path.name for path in (ROOT / "examples").glob("*.py")) == sorted(RUNS)


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [(name, *run) for name, runs in RUNS.items() for run in runs],
)
def test_an_example_runs(name: str, arguments: list[str], printed: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        # The width that tables are written for, whatever terminal the tests have.
        env=os.environ | {"COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert printed in done.stdout
    assert complaints(done.stderr) == []

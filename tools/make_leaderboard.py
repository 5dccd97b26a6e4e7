"""Make the leaderboard: train its networks, let everybody meet, write docs/results.md.

    python tools/make_leaderboard.py                  # all of it; hours on two cores
    python tools/make_leaderboard.py --tournaments polignac

What is there already is used: networks in the folder, and games in its results files. Everything
that is played is told by configs/leaderboard/.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from valety_env.cli import main as valety_env

ROOT = Path(__file__).parent.parent
TRAINING = ROOT / "training" / "ppo_selfplay.py"
CONFIGS = ROOT / "configs" / "leaderboard"
# Named in the configs.
FOLDER = ROOT / "runs" / "leaderboard"
PAGE = ROOT / "docs" / "results.md"
# Each is a config; a game's networks are trained by the config GAME-ppo.
TOURNAMENTS = ("valety", "valety-worlds", "polignac")
TRAINED = ("valety", "polignac")
SEEDS = (1, 2, 3)

HEAD = """# Results

Who is stronger, by games that anybody can have again. `python tools/make_leaderboard.py` trains the
networks (`configs/leaderboard/*-ppo.toml` with seeds 1, 2 and 3; they are
`checkpoint:runs/leaderboard/GAME-ppo-SEED`, and come with the repository), lets everybody meet
everybody (`configs/leaderboard/GAME.toml`), and writes this page. `docs/arena.md` tells how the
numbers are made.

A new agent joins without the others playing again:

    valety-env tournament checkpoint:runs/mine/last --add --deals 270 \\
        --results runs/leaderboard/valety.sqlite --report out.html

"""


@dataclass(frozen=True)
class Args:
    """Make docs/results.md anew."""

    tournaments: tuple[str, ...] = TOURNAMENTS
    """which are trained for and played; the page has those that have been"""


def train(game: str, seed: int) -> None:
    """Train a network, unless it is there."""
    network = FOLDER / f"{game}-ppo-{seed}.safetensors"
    if network.exists():
        return
    runs = FOLDER / "runs"
    command = [sys.executable, str(TRAINING), "--config", str(CONFIGS / f"{game}-ppo.toml")]
    subprocess.run([*command, "--seed", str(seed), "--runs", str(runs)], check=True)
    run = max(runs.glob(f"{game}__*__{seed}__*"), key=lambda path: path.stat().st_mtime)
    shutil.copy(run / "last.safetensors", network)


def main(args: Args) -> int:
    # Paths in configs are relative to it.
    os.chdir(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in args.tournaments:
        if name in TRAINED:
            for seed in SEEDS:
                train(name, seed)
        config = str((CONFIGS / f"{name}.toml").relative_to(ROOT))
        files = ["--markdown", str(FOLDER / f"{name}.md"), "--report", str(FOLDER / f"{name}.html")]
        code = valety_env(["tournament", "--config", config, *files])
        if code:
            return code
    pages = [path for name in TOURNAMENTS if (path := FOLDER / f"{name}.md").exists()]
    parts = [path.read_text("utf-8") for path in pages]
    # Headings become those of a part.
    below = [re.sub(r"^#", "##", part, flags=re.MULTILINE) for part in parts]
    PAGE.write_text(HEAD + "\n".join(below), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Args)))

"""Make the leaderboard: train its networks, let everybody meet, write docs/results.md.

    python tools/make_leaderboard.py                  # all of it; hours on two cores
    python tools/make_leaderboard.py --games polignac

What is there already is used: networks in the folder, and games in its results files. Everything
that is played is told by configs/leaderboard/.
"""

from __future__ import annotations

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
GAMES = ("valety", "polignac")
SEEDS = (1, 2, 3)

HEAD = """# Results

Who is stronger, by games that anybody can have again. `python tools/make_leaderboard.py` trains the
networks (`configs/leaderboard/*-ppo.toml` with seeds 1, 2 and 3; they are
`checkpoint:runs/leaderboard/GAME-ppo-SEED`, and were trained no longer than these say), lets
everybody meet everybody (`configs/leaderboard/GAME.toml`), and writes this page. `docs/arena.md`
tells how the numbers are made.

A new agent joins without the others playing again:

    valety-env tournament checkpoint:runs/mine/last --add --deals 300 \\
        --results runs/leaderboard/valety.sqlite --report out.html

"""


@dataclass(frozen=True)
class Args:
    """Make docs/results.md anew."""

    games: tuple[str, ...] = GAMES
    """which are trained and played; the page has those of which there are games"""


def train(game: str, seed: int) -> None:
    """Train a network, unless it is there."""
    network = FOLDER / f"{game}-ppo-{seed}.safetensors"
    if network.exists():
        return
    runs = FOLDER / "runs"
    command = [sys.executable, str(TRAINING), "--config", str(CONFIGS / f"{game}-ppo.toml")]
    subprocess.run([*command, "--seed", str(seed), "--runs", str(runs)], check=True)
    (run,) = (path for path in runs.iterdir() if f"__{seed}__" in path.name and is_of(path, game))
    shutil.copy(run / "last.safetensors", network)


def is_of(run: Path, game: str) -> bool:
    """Return whether a run trained for a game."""
    return run.name.startswith(f"{game}__")


def main(args: Args) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for game in args.games:
        for seed in SEEDS:
            train(game, seed)
        told = FOLDER / f"{game}.md"
        config = str((CONFIGS / f"{game}.toml").relative_to(ROOT))
        page = str(FOLDER / f"{game}.html")
        code = valety_env(
            ["tournament", "--config", config, "--markdown", str(told), "--report", page]
        )
        if code:
            return code
    parts = [path.read_text("utf-8") for game in GAMES if (path := FOLDER / f"{game}.md").exists()]
    # Headings become those of a part.
    below = [re.sub(r"^#", "##", part, flags=re.MULTILINE) for part in parts]
    PAGE.write_text(HEAD + "\n".join(below), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Args)))

"""What a checkpoint says about itself: JSON values, the same in every file format.

`{"format": 1, "game": "valety", "rules": {…}, "episode": "match", "encoder": "flat_v0", …}`; others
such as `step`, `seed` and `version` are kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from valety_env._version import __version__
from valety_env.rules import Rules

FORMAT_VERSION = 1
# Where the metadata lie: the key of a JSON text or of an object.
KEY = "valety_env"
REQUIRED = ("format", "game", "rules", "episode", "encoder")
EPISODES = ("match", "deal")


def make_metadata(
    game: str, rules: Rules, *, episode: str = "match", encoder: str = "flat_v0", **more: Any
) -> dict[str, Any]:
    """Return metadata, to be written beside or into a model that another framework has trained.

    Args:
        game: the game's name, for messages.
        rules: those it was trained on.
        episode: `"match"` or `"deal"`.
        encoder: a name of `observations.ENCODERS`.
        **more: JSON values that are kept, such as `step` and `seed`.
    """
    told = {
        "format": FORMAT_VERSION,
        "game": game,
        "rules": rules.to_dict(),
        "episode": episode,
        "encoder": encoder,
        "version": __version__,
        **more,
    }
    check_metadata(told, "new metadata")
    return told


def read_json(text: str | bytes | None) -> dict[str, Any] | None:
    """Return the JSON object that a text holds; None if it holds none."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def check_metadata(told: dict[str, Any], where: str, required: Sequence[str] = REQUIRED) -> None:
    """Check metadata.

    Args:
        told: what was read.
        where: the file, for messages.
        required: what they must hold.

    Raises:
        ValueError: in one line, if they are of another format, incomplete or impossible.
    """
    if told.get("format") != FORMAT_VERSION:
        raise ValueError(
            f"{where} has checkpoint format {told.get('format')!r}; this version reads format "
            f"{FORMAT_VERSION}"
        )
    missing = [name for name in required if name not in told]
    if missing:
        raise ValueError(f"{where}: its metadata lack {', '.join(missing)}")
    try:
        Rules.from_dict(told["rules"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: the rules in its metadata are none: {error}") from None
    if told["episode"] not in EPISODES:
        raise ValueError(
            f"{where}: the episode in its metadata is {told['episode']!r}; allowed are "
            f"{', '.join(EPISODES)}"
        )

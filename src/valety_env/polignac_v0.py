"""Polignac, the game for three to seven, as a PettingZoo AEC environment: `polignac_v0.env()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from valety_env.env import AECTable
from valety_env.rules import Rules, make_rules

__all__ = ["env", "raw_env"]


def env(
    game: str | Rules = "polignac",
    *,
    num_players: int | None = None,
    num_deals: int | None = None,
    render_mode: str | None = None,
    episode: str = "match",
    reward: str = "win",
    observation: str | Mapping[str, str] = "flat_v0",
    dtype: Any = None,
    mask: str = "observation",
    illegal: str = "terminate",
    **rule_options: Any,
) -> AECTable:
    """Return a Polignac environment; the options are those of `valety_env.env.AECTable`.

    Args:
        game: `"polignac"` or `"polignac-classic"`; or `Rules` in which penalties alone count.
        num_players: 3…7; None: 4.
        num_deals: deals in a match; None: as many as players.
        render_mode: None, `"ansi"`, `"rgb_array"` or `"human"`.
        episode: `"match"` or `"deal"`.
        reward: `"win"` or `"points"`.
        observation: the name of an encoder, or a dict agent → name.
        dtype: of observations; float32 by default.
        mask: `"observation"` or `"info"`.
        illegal: `"terminate"`, `"raise"` or `"penalise"`.
        **rule_options: fields of `valety_env.rules.Rules`.

    Raises:
        ValueError: for an unknown option or value, rules that are impossible, or a game that is
            not of this family.
    """
    for name, value in (("num_players", num_players), ("num_deals", num_deals)):
        if value is not None:
            rule_options[name] = value
    rules = make_rules(game, **rule_options)
    if not rules.lowest_wins:
        raise ValueError(
            f"game={game!r} scores tricks: it is played by valety_v0, polignac_v0 has the games "
            "in which penalties alone count"
        )
    return AECTable(
        game,
        render_mode=render_mode,
        episode=episode,
        reward=reward,
        observation=observation,
        dtype=dtype,
        mask=mask,
        illegal=illegal,
        **rule_options,
    )


# The environment has its guards itself: there is no stack of wrappers to leave out.
raw_env = env

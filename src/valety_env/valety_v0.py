"""Valety, the game for two, as a PettingZoo AEC environment: `valety_v0.env()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from valety_env.env import AECTable
from valety_env.rules import Rules, make_rules

__all__ = ["env", "raw_env"]


def env(
    game: str | Rules = "valety",
    *,
    render_mode: str | None = None,
    episode: str = "match",
    reward: str = "win",
    observation: str | Mapping[str, str] = "flat_v0",
    dtype: Any = None,
    mask: str = "observation",
    illegal: str = "terminate",
    **rule_options: Any,
) -> AECTable:
    """Return a Valety environment; the options are those of `valety_env.env.AECTable`.

    Args:
        game: `"valety"`, `"knaves"` or one of the ladder, `"valety-L1"` … `"valety-L8"`; or
            `Rules` in which tricks score.
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
    rules = make_rules(game, **rule_options)
    if rules.lowest_wins:
        raise ValueError(
            f"game={game!r} scores penalties alone: it is played by polignac_v0, valety_v0 has "
            "the games in which tricks score"
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

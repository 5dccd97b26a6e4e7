"""From a model's numbers to an action: what all agents that ask a model share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import float64, uint64

from valety_env._jit import kernel
from valety_env.cards import EMPTY, ONE, lowest
from valety_env.observations import encode_view
from valety_env.rng import mix
from valety_env.rules import LEAD_WINNER, MAX_PLAYERS, TRUMP_LAST_CARD


class AgentError(ValueError):
    """A player cannot answer: its model fails, or gives what is no number."""


def check_temperature(temperature: Any) -> float:
    """Return a temperature.

    Raises:
        ValueError: for anything but a finite number of at least 0.
    """
    number = isinstance(temperature, (int, float)) and not isinstance(temperature, bool)
    if not number or not 0 <= temperature < math.inf:
        raise ValueError(f"temperature={temperature!r}: it must be a number of at least 0")
    return float(temperature)


@kernel
def draw_action(logits: np.ndarray, legal: np.uint64, temperature: float, bits: np.uint64) -> int:
    """Draw a legal action with chances proportional to exp(logit / temperature).

    Args:
        logits: float32 (at least as many as there are actions,).
        legal: the legal actions, never empty.
        temperature: 0: the action with the highest logit, the lowest of equal ones.
        bits: 64 random bits, the only source of randomness.

    Returns:
        an action of `legal`, whatever the logits.
    """
    best = lowest(legal)
    left = legal
    while left != EMPTY:
        action = lowest(left)
        left &= left - ONE
        if logits[action] > logits[best]:
            best = action
    if temperature == 0.0:
        return best
    top = float64(logits[best])
    total = 0.0
    left = legal
    while left != EMPTY:
        total += math.exp((float64(logits[lowest(left)]) - top) / temperature)
        left &= left - ONE
    place = total * (float64(bits >> uint64(11)) / 9007199254740992.0)
    left = legal
    while left != EMPTY:
        action = lowest(left)
        left &= left - ONE
        place -= math.exp((float64(logits[action]) - top) / temperature)
        if place < 0.0:
            return action
    return best


@kernel
def forget_match(rules: np.record, view: np.record) -> None:
    """Change a view, in place, to that of a match's first deal, the one that is an episode.

    What the cards of this deal decide is kept. Under the default the dealer leads such a deal (V4);
    who dealt means nothing later, unless he shows his last card.
    """
    for seat in range(MAX_PLAYERS):
        view.totals[seat] = 0
    view.deal = 0
    if rules.first_lead == LEAD_WINNER and rules.trump != TRUMP_LAST_CARD:
        view.dealer = view.leader


@kernel
def encode_shown(
    code: int | None,
    rules: np.ndarray,
    views: np.ndarray,
    single_deal: bool,
    view: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Write what a model is shown at each table.

    Args:
        code: the encoder, a value of `observations.ENCODERS`.
        rules: `RULES` (1,), those by which the model was shown the game.
        views: `VIEW` (N,).
        single_deal: whether the model knows single deals alone.
        view: `VIEW` (1,), scratch.
        rows: uint8 (N, entries), overwritten.
    """
    for i in range(views.size):
        view[0] = views[i]
        if single_deal:
            forget_match(rules[0], view[0])
        encode_view(code, rules[0], view[0], rows, i)


@kernel
def write_masks(legal: np.ndarray, masks: np.ndarray) -> None:
    """Write sets of actions, uint64 (N,), as bool (N, actions), overwritten."""
    for i in range(legal.size):
        for action in range(masks.shape[1]):
            masks[i, action] = legal[i] >> uint64(action) & ONE != EMPTY


@kernel
def draw_actions(
    logits: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
    temperature: float,
    actions: np.ndarray,
) -> int:
    """Draw an action at each table, as `draw_action`.

    Args:
        logits: float32 (N, actions).
        legal: uint64 (N,).
        keys: uint64 (N,), one a choice.
        temperature: as in `draw_action`.
        actions: int64 (N,), overwritten.

    Returns:
        −1, or the first row in which a legal action has a logit that is NaN or +inf; what follows
        is not written then.
    """
    for i in range(legal.size):
        left = legal[i]
        while left != EMPTY:
            if not logits[i, lowest(left)] < math.inf:
                return i
            left &= left - ONE
        actions[i] = draw_action(logits[i], legal[i], temperature, mix(keys[i], EMPTY))
    return -1


@kernel
def chance_to_draw(logits: np.ndarray, legal: np.uint64, action: int, temperature: float) -> float:
    """Return how likely `draw_action` is to draw an action.

    Args:
        logits: (at least as many as there are actions,).
        legal: the legal actions.
        action: one of them.
        temperature: above 0.
    """
    own = float64(logits[action])
    total = 0.0
    left = legal
    while left != EMPTY:
        # Where another is far likelier the sum would be infinite; the chance is 0 anyhow.
        total += math.exp(min((float64(logits[lowest(left)]) - own) / temperature, 700.0))
        left &= left - ONE
    return 1.0 / total


@kernel
def chances_to_draw(
    logits: np.ndarray,
    legal: np.ndarray,
    actions: np.ndarray,
    temperature: float,
    chances: np.ndarray,
) -> None:
    """Write the `chance_to_draw` of each row into `chances`, float64 (N,)."""
    for i in range(legal.size):
        chances[i] = chance_to_draw(logits[i], legal[i], actions[i], temperature)

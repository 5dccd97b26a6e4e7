"""Distributions over the legal actions of a batch of decisions."""

from __future__ import annotations

import math

import numpy as np
from numpy import float64, uint64

from valety_env._jit import kernel
from valety_env.agents import needs_extra
from valety_env.agents.choosing import draw_action
from valety_env.cards import EMPTY, ONE, lowest
from valety_env.rng import mix

with needs_extra(__name__, "train", ("torch",)):
    import torch


def masked_log_probs(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of actions, of which only the legal ones have a chance.

    All entries are finite for finite logits of any precision: an illegal action has a very low one
    and the probability 0, so that products with it stay numbers. A row without any legal action
    is uniform over all.

    Args:
        logits: (…, actions), of any floating dtype.
        mask: (…, actions), of any dtype; an action is legal where it is not 0.

    Returns:
        (…, actions), float32, or float64 for logits of float64.
    """
    if logits.dtype != torch.float64:
        logits = logits.float()
    # Low enough for exp to give 0, high enough for sums with it to stay finite.
    low = torch.full_like(logits, torch.finfo(logits.dtype).min / 4)
    return torch.log_softmax(torch.where(mask != 0, logits, low), dim=-1)


def entropy(log_probs: torch.Tensor) -> torch.Tensor:
    """Return the entropy in nats (…) of `masked_log_probs` (…, actions)."""
    return -(log_probs.exp() * log_probs).sum(-1)


@kernel
def mask_to_set(mask: np.ndarray) -> np.uint64:
    """Return a mask (actions,) as a set of actions."""
    actions = EMPTY
    for action in range(mask.size):
        if mask[action] != 0:
            actions |= ONE << uint64(action)
    return actions


@kernel
def sample_actions(
    logits: np.ndarray,
    mask: np.ndarray,
    key: np.uint64,
    first: int,
    actions: np.ndarray,
    log_probs: np.ndarray,
) -> None:
    """Draw a legal action for each row, and tell how likely it was.

    Args:
        logits: float32 (N, actions).
        mask: int8 (N, actions), at least one legal action each.
        key: fixes the draws; row i uses `mix(key, first + i)`.
        first: the number of the first row, where these are a part of more.
        actions: int64 (N,), overwritten.
        log_probs: float32 (N,), overwritten.
    """
    for i in range(actions.size):
        legal = mask_to_set(mask[i])
        action = draw_action(logits[i], legal, 1.0, mix(key, uint64(first + i)))
        total = 0.0
        while legal != EMPTY:
            total += math.exp(float64(logits[i, lowest(legal)]) - float64(logits[i, action]))
            legal &= legal - ONE
        actions[i] = action
        log_probs[i] = -math.log(total)

"""Worlds that a seat may be in, and how likely what the others have played makes each of them.

`imagine` draws from all deals that agree with a view, each as likely as another. But who plays a
card tells more than that he held it: he chose it among others. A policy that he may follow says how
likely his choices were in a world, and so how likely the world is (Bayes). The worlds are drawn by
importance resampling (Rubin, "The calculation of posterior distributions by data augmentation:
comment", JASA 1987): of a few candidates one is kept, each with a chance proportional to its
likelihood.
"""

from __future__ import annotations

import numpy as np
from numpy import float64, uint64

from valety_env._jit import inlined, int64, kernel
from valety_env.agents import Policy
from valety_env.cards import count
from valety_env.engine import STATE, begin_deal, legal_cards, penalty, play
from valety_env.rng import mix
from valety_env.rules import COUNT_TRICK, Rules
from valety_env.view import SCRATCH_SIZE, VIEW, imagine, look

# Of so many candidates one world is kept. What 200 worlds say of each hidden card, in games of the
# heuristic, has 4–21% less squared error than without candidates; 64 of them would take off 0–4%
# more, 256 no more than that.
CANDIDATES = 16
# What the policy leaves open: of its plays so many are made at random, and of the players who are
# taken to follow it so many play all at random. Else one play that it does not foresee would say
# more about the cards than all others.
RANDOM_PLAYS, RANDOM_PLAYERS = 0.1, 0.1
# Worlds weighed at once: their candidates and questions lie in two megabytes.
_AT_ONCE = 16


@kernel
def deal_anew(rules: np.record, view: np.record, hands: np.ndarray, state: np.record) -> None:
    """Take all plays of a deal back, of a game without generals.

    Args:
        rules: one `RULES` record.
        view: one `VIEW` record.
        hands: uint64 (seats,), what is left of them.
        state: one `STATE` record that agrees with it, changed in place; its own hands are not read.
    """
    begin_deal(rules, state, int64(view.dealer), int64(view.leader))
    state.turned = view.turned
    for seat in range(int64(rules.num_players)):
        state.hand[seat] = hands[seat] | view.played[seat]
        state.hand_sizes[seat] = rules.hand_size
        if rules.count == COUNT_TRICK:
            taken = int64(view.tricks[seat]) - penalty(rules, int64(view.jacks[seat]))
            state.totals[seat] -= taken


@inlined
def _plays_are_known(rules: np.record, view: np.record) -> bool:
    """Return whether all plays of the deal are; positions given as text may begin later."""
    known = 0
    for seat in range(int64(rules.num_players)):
        known += count(view.played[seat])
    return known == view.num_plays


@kernel
def draw_worlds(
    rules: np.ndarray,
    views: np.ndarray,
    keys: np.ndarray,
    first: int,
    scratch: np.ndarray,
    worlds: np.ndarray,
) -> None:
    """Draw worlds, each as likely as another: of table i, number w is drawn by `mix(key, w)`.

    Args:
        rules: `RULES` (1,).
        views: `VIEW` (N,).
        keys: uint64 (N,).
        first: the number of the first world.
        scratch: float64 (SCRATCH_SIZE,).
        worlds: `STATE` (N, n), overwritten.
    """
    for i in range(worlds.shape[0]):
        for w in range(worlds.shape[1]):
            key = mix(keys[i], uint64(first + w))
            imagine(rules[0], views[i], key, scratch, worlds[i, w])


@kernel
def draw_candidates(
    rules: np.ndarray,
    views: np.ndarray,
    keys: np.ndarray,
    numbers: np.ndarray,
    scratch: np.ndarray,
    candidates: np.ndarray,
    replay: np.ndarray,
    asked: np.ndarray,
    legal: np.ndarray,
    cards: np.ndarray,
    owners: np.ndarray,
) -> int:
    """Draw the candidates for some worlds, and write what the others saw there at their choices.

    Args:
        rules: `RULES` (1,), without generals.
        views: `VIEW` (N,).
        keys: uint64 (N,).
        numbers: int64 (n, 2), of each world its table and its own number.
        scratch: float64 (SCRATCH_SIZE,).
        candidates: `STATE` (n, CANDIDATES), overwritten.
        replay: `STATE` (1,), scratch.
        asked: `VIEW` (most,), overwritten from the front, as what follows.
        legal: uint64 (most,).
        cards: int64 (most,): what was chosen.
        owners: int64 (most, 2): whose question it is, the row and column in `candidates`.

    Returns:
        how many choices there are; of these no card was forced.
    """
    choices = 0
    state = replay[0]
    for row in range(numbers.shape[0]):
        table = numbers[row, 0]
        view = views[table]
        key = mix(keys[table], uint64(numbers[row, 1]))
        known = _plays_are_known(rules[0], view)
        for column in range(CANDIDATES):
            imagine(rules[0], view, mix(key, uint64(column)), scratch, candidates[row, column])
            if not known:
                continue
            replay[0] = candidates[row, column]
            deal_anew(rules[0], view, candidates[row, column].hand, state)
            for number in range(int64(view.num_plays)):
                card = int64(view.history[number])
                seat = int64(state.turn)
                open_to_it = legal_cards(state)
                if seat != view.seat and count(open_to_it) > 1:
                    look(rules[0], state, seat, asked[choices])
                    legal[choices] = open_to_it
                    cards[choices] = card
                    owners[choices, 0], owners[choices, 1] = row, column
                    choices += 1
                play(rules[0], state, card)
    return choices


@kernel
def keep_likely(
    keys: np.ndarray,
    numbers: np.ndarray,
    legal: np.ndarray,
    owners: np.ndarray,
    chances: np.ndarray,
    candidates: np.ndarray,
    likelihoods: np.ndarray,
    worlds: np.ndarray,
) -> None:
    """Of the candidates for each world keep one, by how likely they make what was played.

    Args:
        keys: uint64 (N,).
        numbers: int64 (n, 2), as in `draw_candidates`, like the rest.
        legal: uint64 (choices,).
        owners: int64 (choices, 2).
        chances: float64 (choices,), of what was chosen, if the policy chose.
        candidates: `STATE` (n, CANDIDATES).
        likelihoods: float64 (n, CANDIDATES, 2), scratch: of a player who follows the policy, and
            of one who plays at random.
        worlds: `STATE` (n,), overwritten.
    """
    likelihoods[:] = 1.0
    for choice in range(chances.size):
        row, column = owners[choice, 0], owners[choice, 1]
        at_random = 1.0 / count(legal[choice])
        chance = (1.0 - RANDOM_PLAYS) * chances[choice] + RANDOM_PLAYS * at_random
        likelihoods[row, column, 0] *= chance
        likelihoods[row, column, 1] *= at_random
    for row in range(numbers.shape[0]):
        bits = mix(mix(keys[numbers[row, 0]], uint64(numbers[row, 1])), uint64(CANDIDATES))
        total = 0.0
        for column in range(CANDIDATES):
            both = likelihoods[row, column]
            total += (1.0 - RANDOM_PLAYERS) * both[0] + RANDOM_PLAYERS * both[1]
        place = total * (float64(bits >> uint64(11)) / 9007199254740992.0)
        kept = 0
        for column in range(CANDIDATES):
            both = likelihoods[row, column]
            place -= (1.0 - RANDOM_PLAYERS) * both[0] + RANDOM_PLAYERS * both[1]
            if place < 0.0:
                kept = column
                break
        worlds[row] = candidates[row, kept]


def imagine_worlds(
    rules: Rules,
    model: Policy | None,
    views: np.ndarray,
    keys: np.ndarray,
    worlds: int,
    first: int = 0,
) -> np.ndarray:
    """Draw worlds that agree with views, as likely as what the others have played makes them.

    Args:
        rules: without generals.
        model: the policy that the others are taken to follow, most of them and most of the time;
            None: all worlds are equally likely.
        views: `VIEW` (N,).
        keys: uint64 (N,), the only source of randomness.
        worlds: how many of each.
        first: the number of the first one; a world follows from view, key and number alone.

    Returns:
        `STATE` (N, worlds).
    """
    size = len(views)
    found = np.zeros((size, worlds), STATE)
    scratch = np.empty(SCRATCH_SIZE)
    if model is None:
        draw_worlds(rules.packed, views, keys, first, scratch, found)
        return found
    flat = found.reshape(-1)
    most = _AT_ONCE * CANDIDATES * rules.num_players * int(rules.packed[0]["hand_size"])
    candidates = np.zeros((_AT_ONCE, CANDIDATES), STATE)
    likelihoods = np.empty((_AT_ONCE, CANDIDATES, 2))
    replay = np.zeros(1, STATE)
    asked = np.zeros(most, VIEW)
    legal = np.empty(most, np.uint64)
    cards = np.empty(most, np.int64)
    owners = np.empty((most, 2), np.int64)
    numbers = np.stack(np.divmod(np.arange(size * worlds), worlds), axis=1)
    numbers[:, 1] += first
    for low in range(0, len(flat), _AT_ONCE):
        part = numbers[low : low + _AT_ONCE]
        n = draw_candidates(
            rules.packed,
            views,
            keys,
            part,
            scratch,
            candidates,
            replay,
            asked,
            legal,
            cards,
            owners,
        )
        chances = model.chances(asked[:n], legal[:n], cards[:n])
        keep_likely(
            keys, part, legal, owners, chances, candidates, likelihoods, flat[low : low + _AT_ONCE]
        )
    return found

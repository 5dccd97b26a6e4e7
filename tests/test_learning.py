"""What training scripts share: advantages per seat, rollouts, masked distributions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import uint64

from valety_env.learning.distributions import (
    entropy,
    mask_to_set,
    masked_log_probs,
    sample_actions,
)
from valety_env.learning.rollout import Rollout, seat_advantages
from valety_env.vector import SelfPlayEnv


def one_table(seats, values, rewards, ends, next_seat=0, next_value=0.0, gamma=1.0, lam=1.0):
    """Advantages, collected rewards and completeness of one table, as lists."""
    steps = len(seats)
    found = seat_advantages(
        np.ones((steps, 1), np.bool_),
        np.array(seats, np.int8)[:, None],
        np.array(values, np.float32)[:, None],
        np.array(rewards, np.float32)[:, None, :],
        np.array(ends, np.bool_)[:, None],
        np.array([next_seat], np.int8),
        np.array([next_value], np.float32),
        gamma,
        lam,
    )
    return [array[:, 0].tolist() for array in found]


def plain_advantages(decided, seats, values, rewards, ends, next_seat, next_value, gamma, lam):
    """The same, slowly and by the book: episode by episode, seat by seat, forwards."""
    steps, players = rewards.shape
    advantage, collected = np.zeros(steps), np.zeros(steps)
    complete = np.zeros(steps, bool)
    bounds = [0, *(np.flatnonzero(ends) + 1), steps]
    for low, high in pairwise(bounds):
        over = high > low and bool(ends[high - 1])
        for seat in range(players):
            own = [t for t in range(low, high) if decided[t] and seats[t] == seat]
            deltas = []
            for k, t in enumerate(own):
                until = own[k + 1] if k + 1 < len(own) else high
                collected[t] = sum(float(rewards[u, seat]) for u in range(t, until))
                if k + 1 < len(own):
                    following = float(values[own[k + 1]])
                elif over:
                    following = 0.0
                elif seat == next_seat:
                    following = float(next_value)
                else:
                    continue
                complete[t] = True
                deltas.append(collected[t] + gamma * following - float(values[t]))
            for k, t in enumerate(own[: len(deltas)]):
                advantage[t] = sum((gamma * lam) ** j * d for j, d in enumerate(deltas[k:]))
    return advantage, collected, complete


@pytest.mark.plain
def test_the_last_decision_of_every_seat_gets_the_reward_that_another_seat_brought_about():
    # Seat 0 plays, then seat 1 ends the episode; both are paid.
    advantage, collected, complete = one_table(
        [0, 1], [0.25, 0.5], [[0, 0], [-3, 3]], [False, True], gamma=0.5, lam=0.5
    )
    assert collected == [-3, 3]
    assert advantage == [-3 - 0.25, 3 - 0.5]
    assert complete == [True, True]


@pytest.mark.plain
def test_rewards_between_two_decisions_of_a_seat_are_summed_and_belong_to_the_first():
    # Seat 0 decides at steps 0 and 3; in between, seats 1 and 2 play and it is given 1, 2 and 4.
    rewards = [[1, 0, 0], [2, 0, 0], [4, 0, 0], [8, 5, 6]]
    _, collected, complete = one_table([0, 1, 2, 0], [0, 0, 0, 0], rewards, [0, 0, 0, 1])
    assert collected == [7, 5, 6, 8]
    assert all(complete)


@pytest.mark.plain
def test_a_seat_that_moves_twice_in_a_row_has_the_second_move_as_the_next_decision_of_the_first():
    # Values 1 and 10 at the two moves of seat 1; its rewards 3 after the first and 5 at the end.
    advantage, _, _ = one_table(
        [0, 1, 1, 0],
        [0, 1, 10, 0],
        [[0, 0], [0, 3], [0, 0], [-5, 5]],
        [0, 0, 0, 1],
        gamma=0.5,
        lam=0.5,
    )
    second = 5 - 10
    first = 3 + 0.5 * 10 - 1 + 0.25 * second
    assert advantage[1:3] == [first, second]


@pytest.mark.plain
def test_with_lambda_1_and_no_discount_an_advantage_is_the_seats_return_less_its_value():
    rng = np.random.default_rng(0)
    seats = rng.integers(0, 3, 20)
    values = rng.integers(-4, 5, 20)
    rewards = rng.integers(-4, 5, (20, 3))
    ends = np.arange(20) % 10 == 9
    advantage, _, complete = one_table(seats, values, rewards, ends)
    for t in range(20):
        end = 10 if t < 10 else 20
        assert advantage[t] == rewards[t:end, seats[t]].sum() - values[t]
    assert all(complete)


@pytest.mark.plain
def test_with_lambda_0_an_advantage_is_one_step_of_the_seats_own_process():
    advantage, _, _ = one_table(
        [0, 1, 0, 1], [1, 2, 3, 4], [[0, 0]] * 3 + [[6, -6]], [0, 0, 0, 1], gamma=0.5, lam=0
    )
    assert advantage == [0.5 * 3 - 1, 0.5 * 4 - 2, 6 - 3, -6 - 4]


@pytest.mark.plain
def test_nothing_passes_from_one_episode_to_the_one_before():
    first = one_table([0, 1], [1, 2], [[0, 0], [1, -1]], [0, 1])
    both = one_table(
        [0, 1, 1, 0], [1, 2, 30, 40], [[0, 0], [1, -1], [0, 0], [50, -50]], [0, 1, 0, 1]
    )
    assert [array[:2] for array in both] == first


@pytest.mark.plain
def test_where_a_rollout_ends_the_seat_to_move_is_valued_and_the_others_decisions_wait():
    advantage, collected, complete = one_table(
        [0, 1, 0, 1],
        [1, 2, 3, 4],
        [[0, 0], [0, 0], [0, 0], [0, 7]],
        [0, 0, 0, 0],
        next_seat=0,
        next_value=8,
        gamma=0.5,
        lam=0.5,
    )
    assert complete == [True, True, True, False]
    assert collected[3] == 7
    second = 0.5 * 8 - 3
    assert advantage == [0.5 * 3 - 1 + 0.25 * second, 0.5 * 4 - 2, second, 0]


@pytest.mark.plain
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 24), st.integers(2, 7))
def test_advantages_equal_a_slow_plain_reference_on_random_data(seed, steps, players):
    rng = np.random.default_rng(seed)
    tables = 3
    shape = (steps, tables)
    decided = rng.random(shape) < rng.choice([0.5, 1.0])
    seats = rng.integers(0, players, shape).astype(np.int8)
    values = rng.standard_normal(shape).astype(np.float32)
    rewards = rng.standard_normal((*shape, players)).astype(np.float32)
    ends = rng.random(shape) < 0.2
    next_seats = rng.integers(-1, players, tables).astype(np.int8)
    next_values = rng.standard_normal(tables).astype(np.float32)
    gamma, lam = rng.random(2)
    found = seat_advantages(
        decided, seats, values, rewards, ends, next_seats, next_values, gamma, lam
    )
    for table in range(tables):
        expected = plain_advantages(
            decided[:, table],
            seats[:, table],
            values[:, table],
            rewards[:, table],
            ends[:, table],
            next_seats[table],
            next_values[table],
            gamma,
            lam,
        )
        for array, plain in zip(found, expected, strict=True):
            np.testing.assert_allclose(array[:, table], plain, atol=1e-4)


def play_rollouts(env: SelfPlayEnv, num_steps: int, rollouts: int, lam: float):
    """Random play; (table, row's number from the start, seat, advantage) of what is learned from.

    Values are a function of what the seat sees, so that they are the same however play is cut.
    """
    rollout = Rollout(env, num_steps)
    rollout.start(env.reset())
    learned = []
    numbers = np.zeros(rollout.value.shape, np.int64)
    weights = np.random.default_rng(0).standard_normal(rollout.observation.shape[-1])

    def value_of(row):
        return (rollout.observation[row] @ weights / 30).astype(np.float32)

    for count in range(rollouts):
        for step, row in enumerate(rollout.steps):
            numbers[row] = count * num_steps + step
            rollout.value[row] = value_of(row)
            rollout.action[row] = env.sample()
            rollout.log_prob[row] = numbers[row]
            env.step(rollout.action[row], out=rollout.batch_after(row))
        found = rollout.advantages(value_of(-1), 0.9, lam)
        rows, tables = np.nonzero(found.complete)
        learned += [
            (int(table), int(rollout.log_prob[row, table]), int(rollout.seat[row, table]))
            + (round(float(found.advantage[row, table]), 4),)
            + (int(rollout.action[row, table]), rollout.observation[row, table].tobytes())
            for row, table in zip(rows, tables, strict=True)
        ]
        rollout.carry_over(found)
    return learned


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("valety", {}),
        ("valety-L1", {}),
        ("polignac", {"num_players": 5}),
        ("polignac", {"num_players": 7, "episode": "deal"}),
    ],
)
@pytest.mark.parametrize("num_steps", [1, 3, 17])
def test_however_play_is_cut_into_rollouts_each_decision_is_learned_from_once(
    game, options, num_steps
):
    total = 17 * 3 * 4
    make = lambda: SelfPlayEnv(game, num_envs=5, seed=3, reward="points", **options)  # noqa: E731
    whole = play_rollouts(make(), total, 1, 0.0)
    parts = play_rollouts(make(), num_steps, total // num_steps, 0.0)
    # With lambda 0 an advantage reaches to the next own decision alone: cuts change nothing.
    assert len(whole) > total
    assert len({decision[:2] for decision in parts}) == len(parts)
    assert sorted(parts) == sorted(whole)


def test_a_play_without_a_choice_is_no_decision_but_part_of_what_follows_from_one() -> None:
    env = SelfPlayEnv("valety-L1", num_envs=50, seed=3, episode="deal", reward="points")
    rollout = Rollout(env, 4)
    rollout.start(env.reset())
    for row in rollout.steps:
        rollout.action[row] = env.sample()
        env.step(rollout.action[row], out=rollout.batch_after(row))
    found = rollout.advantages(np.zeros(50, np.float32), 1.0, 1.0)
    choices = rollout.mask[:-1].sum(-1) > 1
    assert (found.complete == choices).all()
    assert (rollout.decided == choices).all()
    # Two cards a seat: only the first is a decision, and it has the whole of the deal's points.
    rows, tables = np.nonzero(found.complete)
    points = rollout.rewards[rollout.steps[-1], tables, rollout.seat[rows, tables]]
    assert set(rows - rollout.first) == {0, 1}
    assert (found.advantage[rows, tables] == points).all()


def test_the_means_of_episodes_are_those_of_the_seat_that_decided_first():
    env = SelfPlayEnv("valety", num_envs=8, seed=1, episode="deal", reward="points")
    rollout = Rollout(env, 34)
    batch = env.reset()
    leaders = batch.seat.copy()
    rollout.start(batch)
    for row in rollout.steps:
        env.step(env.sample(), out=rollout.batch_after(row))
    means = rollout.episodes()
    last = rollout.rewards[rollout.steps[-1]]
    assert means.number == 8
    assert means.length == 34
    assert means.first_return == pytest.approx(last[np.arange(8), leaders].mean())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 30000.0])
def test_masked_distributions_are_finite_in_every_precision_and_for_masks_of_zeros(dtype, scale):
    generator = torch.Generator().manual_seed(0)
    logits = (torch.randn(6, 52, generator=generator).clamp(-2, 2) * scale).to(dtype)
    logits.requires_grad_()
    mask = (torch.rand(6, 52, generator=generator) < 0.3).to(torch.int8)
    mask[0] = 0
    mask[1] = 0
    mask[1, 7] = 1
    log_probs = masked_log_probs(logits, mask)
    entropies = entropy(log_probs)
    (log_probs.exp().square().sum() + entropies.sum()).backward()
    assert log_probs.isfinite().all()
    assert entropies.isfinite().all()
    assert logits.grad.isfinite().all()
    probs = log_probs.exp()
    torch.testing.assert_close(probs.sum(-1), torch.ones_like(probs[:, 0]))
    assert (probs[1:][mask[1:] == 0] == 0).all()
    assert log_probs.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    # No action is legal: all are alike, and nothing is learned from it.
    torch.testing.assert_close(probs[0], torch.full_like(probs[0], 1 / 52))
    assert (logits.grad[0] == 0).all()
    # One is legal: it is certain.
    assert probs[1, 7] == 1
    assert entropies[1] == 0


@pytest.mark.plain
def test_the_entropy_of_k_equal_actions_is_the_logarithm_of_k():
    mask = torch.zeros(3, 54)
    for row, k in enumerate((1, 2, 17)):
        mask[row, :k] = 1
    found = entropy(masked_log_probs(torch.zeros(3, 54), mask))
    torch.testing.assert_close(found, torch.tensor([0.0, math.log(2), math.log(17)]))


def test_sampled_actions_are_as_likely_as_the_distribution_says():
    n = 40000
    logits = np.tile(np.array([0.0, 1.0, 9.0, -1.0], np.float32), (n, 1))
    mask = np.tile(np.array([1, 1, 0, 1], np.int8), (n, 1))
    actions, log_probs = np.empty(n, np.int64), np.empty(n, np.float32)
    sample_actions(logits, mask, uint64(5), 0, actions, log_probs)
    expected = masked_log_probs(torch.from_numpy(logits[0]), torch.from_numpy(mask[0])).exp()
    np.testing.assert_allclose(np.bincount(actions, minlength=4) / n, expected, atol=0.01)


def test_a_sampled_action_comes_with_the_log_probability_that_training_computes():
    rng = np.random.default_rng(1)
    logits = (rng.standard_normal((64, 54)) * 3).astype(np.float32)
    mask = (rng.random((64, 54)) < 0.2).astype(np.int8)
    mask[:, 53] = 1
    actions, log_probs = np.empty(64, np.int64), np.empty(64, np.float32)
    sample_actions(logits, mask, uint64(2), 0, actions, log_probs)
    assert (mask[np.arange(64), actions] == 1).all()
    expected = masked_log_probs(torch.from_numpy(logits), torch.from_numpy(mask))
    expected = expected.gather(1, torch.from_numpy(actions)[:, None])[:, 0]
    np.testing.assert_allclose(log_probs, expected, atol=1e-5)
    again = np.empty_like(actions)
    sample_actions(logits, mask, uint64(2), 0, again, log_probs)
    assert (again == actions).all()
    for part in (slice(0, 10), slice(10, 64)):
        parts = (logits[part], mask[part], uint64(2), part.start, again[part], log_probs[part])
        again[part] = -1
        sample_actions(*parts)
    assert (again == actions).all()
    sample_actions(logits, mask, uint64(3), 0, again, log_probs)
    assert (again != actions).any()


@pytest.mark.plain
def test_a_mask_is_the_set_of_its_ones():
    mask = np.zeros(54, np.int8)
    mask[[0, 31, 32, 53]] = 1
    assert mask_to_set(mask) == (1 << 0 | 1 << 31 | 1 << 32 | 1 << 53)

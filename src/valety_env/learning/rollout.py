"""Rollouts of turn-based play: who decided what, and how good it was for that seat."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.vector import Batch, SelfPlayEnv


class Advantages(NamedTuple):
    """What `seat_advantages` finds; each (steps, tables).

    Attributes:
        advantage: float32, 0 where not complete.
        collected: float32, what the deciding seat was given until its next decision, as far as it
            is known.
        complete: bool, whether the advantage is known.
    """

    advantage: np.ndarray
    collected: np.ndarray
    complete: np.ndarray


def seat_advantages(
    decided: np.ndarray,
    seats: np.ndarray,
    values: np.ndarray,
    rewards: np.ndarray,
    terminated: np.ndarray,
    next_seats: np.ndarray,
    next_values: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> Advantages:
    """Estimate the advantage of every decision over its own seat's decisions.

    To a seat the others are part of the world. Its own decisions in an episode, at the steps
    t(1) < t(2) < … < t(m), are the steps of a decision process of its own; what the others do
    between t(k) and t(k+1) is one transition of it, whether that is nothing (the winner of a trick
    leads the next), one play or a round of them. The reward of the transition is all that the seat
    is given in between,

        R(k) = r(t(k)) + r(t(k)+1) + … + r(t(k+1)−1),

    and after its last decision all up to the episode's end, whoever's play brings that about. With
    the seat's own values V(k), and V(m+1) = 0, generalised advantage estimation (Schulman and
    others, High-dimensional continuous control using generalized advantage estimation, 2016) is

        A(k) = δ(k) + γ λ A(k+1),    δ(k) = R(k) + γ V(k+1) − V(k),    A(m+1) = 0:

    γ and λ count the seat's own decisions. One walk back over a table's steps does it for all
    seats: each remembers what it has been given since, and V and A of its decision that came next.

    A rollout can end before an episode does. The seat then to move has the value of what it sees:
    its V(k+1) is known, its A(k+1) is taken as 0. The last decision of any other seat has no next
    one yet. It is not complete, serves the one before it as V(k+1), and must be carried into the
    next rollout: left out, only plays that took the trick would remain of a rollout's last step,
    since their seat is to move at once.

    Args:
        decided: bool (steps, tables), whether a row holds a decision; its rewards count anyway.
            A play without a choice is none.
        seats: int8 (steps, tables), who decided.
        values: float32 (steps, tables), of what the deciding seat saw.
        rewards: float32 (steps, tables, players), given after the step.
        terminated: bool (steps, tables), whether the step ended an episode.
        next_seats: int8 (tables,), who is to move after the last step; −1: nobody with a choice.
        next_values: float32 (tables,), of what that seat sees.
        gamma: γ.
        gae_lambda: λ.

    Returns:
        the advantages.
    """
    found = Advantages(
        np.zeros(seats.shape, np.float32),
        np.zeros(seats.shape, np.float32),
        np.zeros(seats.shape, np.bool_),
    )
    players = rewards.shape[2]
    walk_back(
        decided,
        seats,
        values,
        rewards,
        terminated,
        next_seats,
        next_values,
        gamma,
        gae_lambda,
        np.empty((3, players)),
        np.empty(players, np.bool_),
        *found,
    )
    return found


@kernel
def walk_back(
    decided: np.ndarray,
    seats: np.ndarray,
    values: np.ndarray,
    rewards: np.ndarray,
    terminated: np.ndarray,
    next_seats: np.ndarray,
    next_values: np.ndarray,
    gamma: float,
    gae_lambda: float,
    memory: np.ndarray,
    known: np.ndarray,
    advantages: np.ndarray,
    collected: np.ndarray,
    complete: np.ndarray,
) -> None:
    """Do the work of `seat_advantages`.

    Args:
        decided: as there.
        seats: as there.
        values: as there.
        rewards: as there.
        terminated: as there.
        next_seats: as there.
        next_values: as there.
        gamma: as there.
        gae_lambda: as there.
        memory: float64 (3, players), scratch: of each seat what it was given since, and value and
            advantage of its next decision.
        known: bool (players,), scratch: whether a seat's next decision, or that there is none, is
            known.
        advantages: float32 (steps, tables), zeros, filled in.
        collected: float32 (steps, tables), zeros, filled in.
        complete: bool (steps, tables), False, filled in.
    """
    steps, tables = seats.shape
    players = rewards.shape[2]
    given, value, advantage = memory[0], memory[1], memory[2]
    for table in range(tables):
        for seat in range(players):
            given[seat] = 0.0
            known[seat] = seat == next_seats[table]
            value[seat] = next_values[table] if known[seat] else 0.0
            advantage[seat] = 0.0
        for step in range(steps - 1, -1, -1):
            for seat in range(players):
                if terminated[step, table]:
                    given[seat] = 0.0
                    known[seat] = True
                    value[seat] = 0.0
                    advantage[seat] = 0.0
                given[seat] += rewards[step, table, seat]
            if not decided[step, table]:
                continue
            seat = int64(seats[step, table])
            here = float(values[step, table])
            collected[step, table] = given[seat]
            complete[step, table] = known[seat]
            advantage[seat] = (
                given[seat] + gamma * value[seat] - here + gamma * gae_lambda * advantage[seat]
                if known[seat]
                else 0.0
            )
            advantages[step, table] = advantage[seat]
            value[seat] = here
            known[seat] = True
            given[seat] = 0.0


@kernel
def find_choices(mask: np.ndarray, choices: np.ndarray) -> None:
    """Write whether there is a choice: more than one legal action.

    Args:
        mask: int8 (steps, tables, actions).
        choices: bool (steps, tables), overwritten.
    """
    steps, tables, actions = mask.shape
    for step in range(steps):
        for table in range(tables):
            legal = 0
            for action in range(actions):
                legal += mask[step, table, action]
            choices[step, table] = legal > 1


@kernel
def tally_episodes(
    seats: np.ndarray,
    rewards: np.ndarray,
    terminated: np.ndarray,
    first_seats: np.ndarray,
    returns: np.ndarray,
    lengths: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Follow the episodes of every table through a rollout.

    Args:
        seats: int8 (steps, tables), who decided.
        rewards: float32 (steps, tables, players).
        terminated: bool (steps, tables).
        first_seats: int64 (tables,), who made the first decision of the running episode, or −1
            before it; updated.
        returns: float64 (tables, players), of the running episode; updated.
        lengths: int64 (tables,), of the running episode in steps; updated.
        sums: float64 (3,), of the episodes that ended: how many, the returns of the seats that
            decided first, and the lengths; added to.
    """
    steps, tables = seats.shape
    for table in range(tables):
        for step in range(steps):
            if first_seats[table] < 0:
                first_seats[table] = seats[step, table]
            lengths[table] += 1
            for seat in range(rewards.shape[2]):
                returns[table, seat] += rewards[step, table, seat]
            if terminated[step, table]:
                sums[0] += 1.0
                sums[1] += returns[table, first_seats[table]]
                sums[2] += lengths[table]
                returns[table, :] = 0.0
                lengths[table] = 0
                first_seats[table] = -1


class EpisodeMeans(NamedTuple):
    """Of the episodes that ended in a rollout.

    Attributes:
        number: how many.
        first_return: mean return of the seat that made the first decision; over all seats it is
            0, as the games are.
        length: mean number of steps.
    """

    number: int
    first_return: float
    length: float


class Rollout:
    """The arrays of one rollout after another, filled in place.

    Rows 0…players−1 hold decisions carried over: row s the last one of seat s, where it was not
    complete when the rollout before ended. The rows from `first` on hold one step each, and one
    row more what is seen after the last.

        batch = rollout.start(env.reset())
        for row in rollout.steps:
            …                              # fill action, log_prob and value of the row
            env.step(rollout.action[row], out=rollout.batch_after(row))
        found = rollout.advantages(next_values, gamma, gae_lambda)
        …                                  # learn from the rows where found.complete
        rollout.carry_over(found)

    Args:
        env: the tables; all seats must have the same observations, an array of bytes.
        num_steps: steps of one rollout.
        reward_scale: rewards are multiplied by it.

    Attributes:
        first: the row of the first step.
        steps: the rows of the steps, a range.
        observation: (rows, tables, size), flat.
        mask: int8 (rows, tables, actions).
        seat: int8 (rows, tables).
        action: int64 (rows, tables).
        log_prob: float32 (rows, tables), of the action when it was chosen.
        value: float32 (rows, tables), of what the seat saw.
        rewards: float32 (rows, tables, players), of the row's step.
        terminated: bool (rows, tables), whether the row's step ended an episode.
        decided: bool (rows − 1, tables), whether the row holds a decision; known of the steps when
            `advantages` has been called.
    """

    def __init__(self, env: SelfPlayEnv, num_steps: int, reward_scale: float = 1.0) -> None:
        tables, players = env.num_envs, env.num_players
        encoder = env.setup.encoders[0]
        rows = players + num_steps + 1
        self.first = players
        self.steps = range(players, players + num_steps)
        self.reward_scale = reward_scale
        self.observation = np.zeros((rows, tables, encoder.layout.size), env.setup.dtype)
        self.mask = np.zeros((rows, tables, env.num_actions), np.int8)
        self.seat = np.zeros((rows, tables), np.int8)
        self.action = np.zeros((rows, tables), np.int64)
        self.log_prob = np.zeros((rows, tables), np.float32)
        self.value = np.zeros((rows, tables), np.float32)
        self.rewards = np.zeros((rows, tables, players), np.float32)
        self.terminated = np.zeros((rows, tables), np.bool_)
        self.decided = np.zeros((rows - 1, tables), np.bool_)
        self.seat[:players] = np.arange(players)[:, None]
        truncated = np.zeros(tables, np.bool_)
        self._batches = [
            Batch(
                encoder.shaped(self.observation[row + 1]),
                self.mask[row + 1],
                self.seat[row + 1],
                self.rewards[row],
                self.terminated[row],
                truncated,
                {},
            )
            for row in range(rows - 1)
        ]
        self._flat = encoder.flat
        self._first_seats = np.full(tables, -1, np.int64)
        self._returns = np.zeros((tables, players))
        self._lengths = np.zeros(tables, np.int64)

    def start(self, batch: Batch) -> None:
        """Take over what the seats to move see before the first step."""
        self.observation[self.first] = self._flat(batch.observation)
        self.mask[self.first] = batch.action_mask
        self.seat[self.first] = batch.seat

    def batch_after(self, row: int) -> Batch:
        """Return the arrays that the step of a row writes: its rewards, and the next row."""
        return self._batches[row]

    def episodes(self) -> EpisodeMeans:
        """Return the means of the episodes that ended in the rollout; call it once a rollout."""
        sums = np.zeros(3)
        tally_episodes(
            self.seat[self.first : -1],
            self.rewards[self.first : -1],
            self.terminated[self.first : -1],
            self._first_seats,
            self._returns,
            self._lengths,
            sums,
        )
        ended = max(1.0, sums[0])
        return EpisodeMeans(int(sums[0]), float(sums[1] / ended), float(sums[2] / ended))

    def advantages(self, next_values: np.ndarray, gamma: float, gae_lambda: float) -> Advantages:
        """Return the advantages of all rows but the one after the last; see `seat_advantages`.

        Where only one action is legal there is nothing to learn: such a play is no decision, but
        part of what follows from the seat's decision before. Rewards are scaled here, so that it
        must be called once a rollout, after `episodes`.

        Args:
            next_values: float32 (tables,), of what the seats see that are to move after the last
                step.
            gamma: as there.
            gae_lambda: as there.
        """
        self.rewards[self.first : -1] *= np.float32(self.reward_scale)
        choices = np.empty(self.seat[self.first :].shape, np.bool_)
        find_choices(self.mask[self.first :], choices)
        self.decided[self.first :] = choices[:-1]
        return seat_advantages(
            self.decided,
            self.seat[:-1],
            self.value[:-1],
            self.rewards[:-1],
            self.terminated[:-1],
            np.where(choices[-1], self.seat[-1], np.int8(-1)),
            next_values,
            gamma,
            gae_lambda,
        )

    def carry_over(self, found: Advantages) -> None:
        """Begin the next rollout where this one ends, with the decisions not complete."""
        waiting = self.decided & ~found.complete
        rows, tables = np.nonzero(waiting)
        seats = self.seat[rows, tables]
        kept: tuple[np.ndarray, ...] = (
            self.observation,
            self.mask,
            self.action,
            self.log_prob,
            self.value,
        )
        held = [array[rows, tables] for array in kept]
        given = found.collected[rows, tables]
        self.decided[: self.first] = False
        self.rewards[: self.first] = 0.0
        self.decided[seats, tables] = True
        self.rewards[seats, tables, seats] = given
        for array, values in zip(kept, held, strict=True):
            array[seats, tables] = values
        seen: tuple[np.ndarray, ...] = (self.observation, self.mask, self.seat)
        for array in seen:
            array[self.first] = array[-1]

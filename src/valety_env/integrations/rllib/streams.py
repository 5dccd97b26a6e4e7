"""The plays of many tables as the streams of their seats: own decisions, one after another."""

from __future__ import annotations

import numpy as np

from valety_env._jit import kernel
from valety_env.vector import Batch, SelfPlayEnv


@kernel
def cut_streams(
    carried: np.ndarray,
    seats: np.ndarray,
    rewards: np.ndarray,
    terminated: np.ndarray,
    slot_rows: np.ndarray,
    slot_tables: np.ndarray,
    slot_rewards: np.ndarray,
    streams: np.ndarray,
    pending: np.ndarray,
    pending_rewards: np.ndarray,
) -> int:
    """Cut the rows of N tables into the streams of their seats: own decisions, one after another.

    A decision's reward is all that its seat is given until its next decision or the episode's end.
    A stream of k decisions takes k + 1 slots, the last for what the seat sees afterwards: its next
    decision where the rows end before the episode does. A decision that nothing follows yet is
    pending, and becomes the first of the seat's next stream.

    Args:
        carried: bool (players, N): row s holds a decision of seat s that was pending.
        seats: int8 (players + T + 1, N), who decided; of the last row, who is to.
        rewards: float32 (players + T + 1, N, players), of each row's step; of a carried row what
            its seat was given so far.
        terminated: bool (players + T + 1, N), whether the row's step ended an episode.
        slot_rows: int64 (slots,), overwritten: the row shown, or −1 − row for the end of the
            episode that the row's step ended.
        slot_tables: int64 (slots,), overwritten: at which table.
        slot_rewards: float32 (slots,), overwritten; that of a stream's last slot means nothing.
        streams: int64 (streams, 5), overwritten: table, which of the table's episodes in these
            rows, seat, first slot, decisions.
        pending: int64 (players, N), overwritten: the row of the seat's pending decision, or −1.
        pending_rewards: float32 (players, N), overwritten: what was given for it so far.

    Returns:
        the number of streams.
    """
    players, tables = carried.shape
    last = seats.shape[0] - 1
    slot = 0
    found = 0
    for table in range(tables):
        for seat in range(players):
            episode = 0
            first = slot
            reward = np.float32(0.0)
            for row in range(last + 1):
                if row < players:
                    is_own = row == seat and carried[row, table]
                else:
                    is_own = seats[row, table] == seat
                if is_own:
                    if slot > first:
                        slot_rewards[slot - 1] = reward
                    reward = np.float32(0.0)
                    slot_rows[slot] = row
                    slot_tables[slot] = table
                    slot += 1
                if row == last:
                    break
                reward += rewards[row, table, seat]
                if terminated[row, table]:
                    if slot > first:
                        slot_rewards[slot - 1] = reward
                        slot_rows[slot] = -1 - row
                        slot_tables[slot] = table
                        slot += 1
                        streams[found, 0] = table
                        streams[found, 1] = episode
                        streams[found, 2] = seat
                        streams[found, 3] = first
                        streams[found, 4] = slot - first - 1
                        found += 1
                    episode += 1
                    first = slot
                    reward = np.float32(0.0)
            pending[seat, table] = -1
            if slot > first:
                if slot_rows[slot - 1] != last:
                    pending[seat, table] = slot_rows[slot - 1]
                    pending_rewards[seat, table] = reward
                if slot - first > 1:
                    streams[found, 0] = table
                    streams[found, 1] = episode
                    streams[found, 2] = seat
                    streams[found, 3] = first
                    streams[found, 4] = slot - first - 1
                    found += 1
                else:
                    slot = first
    return found


class Rows:
    """The arrays of one sample, a row a step; the last row is what is seen after the last step.

    Rows 0…players−1 hold what was pending before: row s the last decision of seat s.

    Args:
        tables: the batch environment.
        num_steps: steps in them.
    """

    def __init__(self, tables: SelfPlayEnv, num_steps: int) -> None:
        players, n, actions = tables.num_players, tables.num_envs, tables.num_actions
        height = players + num_steps + 1
        self.encoder = tables.setup.encoders[0]
        self.steps = range(players, height - 1)
        self.observation = np.zeros((height, n, self.encoder.layout.size), tables.setup.dtype)
        self.mask = np.zeros((height, n, actions), np.int8)
        self.seat = np.zeros((height, n), np.int8)
        self.seat[:players] = np.arange(players)[:, None]
        self.action = np.zeros((height, n), np.int64)
        self.log_prob = np.zeros((height, n), np.float32)
        self.dist_inputs = np.zeros((height, n, actions), np.float32)
        self.rewards = np.zeros((height, n, players), np.float32)
        self.terminated = np.zeros((height, n), np.bool_)
        self.carried = np.zeros((players, n), np.bool_)
        # What is left over for the next rows, as `cut_streams` writes it.
        self.pending = np.full((players, n), -1, np.int64)
        self.pending_rewards = np.zeros((players, n), np.float32)
        self._truncated = np.zeros(n, np.bool_)

    def batch_after(self, row: int) -> Batch:
        """Return the arrays that the step of a row writes."""
        return Batch(
            self.encoder.shaped(self.observation[row + 1]),
            self.mask[row + 1],
            self.seat[row + 1],
            self.rewards[row],
            self.terminated[row],
            self._truncated,
            {},
        )

    def begin(self, batch: Batch) -> None:
        """Take over what is seen before the first step."""
        first = self.steps.start
        self.observation[first] = self.encoder.flat(batch.observation)
        self.mask[first] = batch.action_mask
        self.seat[first] = batch.seat

    def go_on(self, before: Rows) -> None:
        """Begin where the rows before end, which have been cut."""
        first = self.steps.start
        for name in ("observation", "mask", "seat"):
            getattr(self, name)[first] = getattr(before, name)[-1]
        seats, tables = np.nonzero(before.pending >= 0)
        was = before.pending[seats, tables]
        for name in ("observation", "mask", "action", "log_prob", "dist_inputs"):
            getattr(self, name)[seats, tables] = getattr(before, name)[was, tables]
        self.carried[seats, tables] = True
        self.rewards[seats, tables, seats] = before.pending_rewards[seats, tables]

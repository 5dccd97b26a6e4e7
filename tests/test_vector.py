"""The batch environment: each table as one played alone, whatever the batch and the threads."""

import random
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from tables import Table, chi_square, chi_square_bound, observed, plain_mix

from valety_env.cards import cards_of
from valety_env.engine import STATE, play
from valety_env.episode import ActionTypeError, IllegalActionError, Setup
from valety_env.observations import ENCODERS, make_encoder
from valety_env.rules import make_rules
from valety_env.vector import Batch, SelfPlayEnv

# Kinds of environment that differ in what a step does.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "valety": ("valety", {}),
    "valety by points": ("valety", {"reward": "points"}),
    "valety deals": ("valety", {"episode": "deal"}),
    "valety deals by points": ("valety", {"episode": "deal", "reward": "points"}),
    "valety, counting at tricks": ("valety", {"count": "trick", "target": 3, "tie": "draw"}),
    "knaves": ("knaves", {"target": 5}),
    "ladder": ("valety-L3", {}),
    "polignac for five": ("polignac", {"num_players": 5, "num_deals": 2}),
    "polignac deals for seven": ("polignac", {"num_players": 7, "episode": "deal"}),
    "classic by points": ("polignac-classic", {"num_players": 3, "reward": "points"}),
    "a card shown": ("polignac", {"trump": "last_card", "general_leads": True, "num_deals": 1}),
}


class Alone:
    """One table of its own, stepped in plain Python."""

    def __init__(self, setup: Setup, seed: int, episode: int = 0) -> None:
        self.setup = setup
        self.seed = seed
        self.episode = episode
        self.table = Table(setup.played).start(seed, episode)

    def step(self, action: int) -> tuple[list[float], bool]:
        """Play one action; return the rewards and whether the episode ended, then started anew."""
        table, rules = self.table, self.setup.rules
        play(table.record, table.state, action)
        n = rules.num_players
        rewards = [0.0] * n
        if table.phase in ("calls", "plays"):
            return rewards, False
        over = table.phase == "over"
        points = table.points
        if self.setup.reward == "points":
            for seat in range(n):
                rewards[seat] = points[seat] - (sum(points) - points[seat]) / (n - 1)
            if rules.lowest_wins:
                rewards = [-reward for reward in rewards]
        elif over:
            winners = self.winners()
            for seat in range(n):
                shared = (n / len(winners) - 1) / (n - 1)
                rewards[seat] = shared if seat in winners else -1 / (n - 1)
        if over:
            self.ended = (table.totals, self.winners(), table.deal_number + 1)
            self.last = table.states.copy()
            self.start_next()
        else:
            table.deal_on()
        return rewards, over

    def start_next(self) -> None:
        self.episode += 1
        self.table.start(self.seed, self.episode)

    def winners(self) -> list[int]:
        if self.setup.episode == "match":
            return self.table.winners
        points = self.table.points
        if self.setup.rules.lowest_wins:
            return [seat for seat in range(len(points)) if points[seat] == min(points)]
        return [self.table.deal_winner]


def make(kind: str, num_envs: int, **options: Any) -> SelfPlayEnv:
    game, chosen = KINDS[kind]
    return SelfPlayEnv(game, num_envs, **chosen | options)


def assert_row(batch: Batch, i: int, alone: Alone, name: str = "flat_v0") -> None:
    """Check what row i of a batch says of its table, without different encodings."""
    table = alone.table
    seat = table.to_move()
    assert seat is not None
    assert batch.seat[i] == seat
    row, mask, _ = observed(table, seat, name)
    np.testing.assert_array_equal(batch.action_mask[i], mask)
    expected = make_encoder(name, table.rules).shaped(row)
    if isinstance(expected, dict):
        assert isinstance(batch.observation, dict)
        for field, piece in expected.items():
            np.testing.assert_array_equal(batch.observation[field][i], piece)
    else:
        assert isinstance(batch.observation, np.ndarray)
        np.testing.assert_array_equal(batch.observation[i], expected)


def choose(batch: Batch, rng: random.Random) -> np.ndarray:
    """Return a random legal action a table, independent of `sample`."""
    return np.array([rng.choice(np.flatnonzero(mask).tolist()) for mask in batch.action_mask])


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_played_as_it_would_be_alone(kind: str) -> None:
    env = make(kind, 6, seed=11)
    batch = env.reset()
    alone = [Alone(env.setup, plain_mix(11, i)) for i in range(6)]
    rng = random.Random(1)
    ended = [0] * 6
    for step in range(500):
        for i in range(6):
            assert_row(batch, i, alone[i])
        actions = choose(batch, rng)
        batch = env.step(actions)
        final = env.final()
        for i in range(6):
            rewards, over = alone[i].step(int(actions[i]))
            assert batch.terminated[i] == over
            np.testing.assert_allclose(batch.rewards[i], rewards, rtol=1e-6)
            assert (i in final.tables) == over
            if over:
                ended[i] += 1
                (k,) = np.flatnonzero(final.tables == i)
                totals, winners, deals = alone[i].ended
                assert final.totals[k].tolist() == totals
                assert np.flatnonzero(final.winners[k]).tolist() == winners
                assert final.deals[k] == deals
        assert not batch.truncated.any()
        np.testing.assert_allclose(batch.rewards.sum(axis=1), 0, atol=1e-5)
        if min(ended) >= 2 and step > 100:
            break
    assert min(ended) >= 2
    assert [int(state.episode) for state in env.states] == ended


@pytest.mark.plain
def test_a_table_of_a_small_batch_is_played_as_it_would_be_alone() -> None:
    env = SelfPlayEnv("valety-L4", 2, seed=3)
    batch = env.reset()
    alone = [Alone(env.setup, plain_mix(3, i)) for i in range(2)]
    rng = random.Random(2)
    for _ in range(20):
        for i in range(2):
            assert_row(batch, i, alone[i])
        actions = choose(batch, rng)
        batch = env.step(actions)
        for i in range(2):
            rewards, over = alone[i].step(int(actions[i]))
            assert (batch.rewards[i].tolist(), bool(batch.terminated[i])) == (rewards, over)
    assert [int(state.episode) for state in env.states] == [2, 2]


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("kind", ["valety", "a card shown"])
def test_every_encoder_fills_the_rows(name: str, kind: str) -> None:
    env = make(kind, 3, seed=2, observation=name)
    batch = env.reset()
    alone = [Alone(env.setup, plain_mix(2, i)) for i in range(3)]
    rng = random.Random(4)
    for _ in range(60):
        for i in range(3):
            assert_row(batch, i, alone[i], name)
        actions = choose(batch, rng)
        batch = env.step(actions)
        for i in range(3):
            alone[i].step(int(actions[i]))


def everything(batch: Batch) -> list[bytes]:
    """Return all that a batch holds, as bytes."""
    parts: list[bytes] = []
    for field in fields(batch):
        value = getattr(batch, field.name)
        items = value.values() if isinstance(value, dict) else [value]
        for item in items:
            inner = item.values() if isinstance(item, dict) else [item]
            parts += [np.ascontiguousarray(array).tobytes() for array in inner]
    return parts


def assert_same_run(envs: Sequence[SelfPlayEnv], steps: int) -> None:
    batches = [env.reset() for env in envs]
    rng = random.Random(7)
    for _ in range(steps):
        assert all(everything(batch) == everything(batches[0]) for batch in batches)
        actions = choose(batches[0], rng)
        batches = [env.step(actions) for env in envs]
        finals = [env.final() for env in envs]
        for final in finals:
            np.testing.assert_array_equal(final.tables, finals[0].tables)
            np.testing.assert_array_equal(final.totals, finals[0].totals)
    states = [env.state() for env in envs]
    assert all((state == states[0]).all() for state in states)


@pytest.mark.parametrize("kind", ["valety deals", "polignac for five"])
def test_the_number_of_threads_changes_nothing(kind: str) -> None:
    envs = [make(kind, 7, seed=5, threads=threads) for threads in (1, 2, 3, 16)]
    assert [env.threads for env in envs] == [1, 2, 3, 7]
    assert_same_run(envs, 150)
    for env in envs:
        env.close()


def test_the_size_of_the_batch_changes_nothing() -> None:
    whole = SelfPlayEnv("valety-L8", 5, seed=9)
    batch = whole.reset()
    singles = [SelfPlayEnv("valety-L8", 1) for _ in range(5)]
    for i, single in enumerate(singles):
        single.seeds[:] = whole.seeds[i]
    alone = [single.reset() for single in singles]
    rng = random.Random(8)
    for _ in range(60):
        for field in ("observation", "action_mask", "seat", "rewards", "terminated"):
            joined = np.concatenate([getattr(one, field) for one in alone])
            np.testing.assert_array_equal(getattr(batch, field), joined)
        actions = choose(batch, rng)
        batch = whole.step(actions)
        alone = [single.step(actions[i : i + 1]) for i, single in enumerate(singles)]


# Arrays


def test_new_arrays_are_given_out_at_every_step_and_never_written_again() -> None:
    env = SelfPlayEnv("valety", 3, seed=1)
    kept = env.reset()
    before = everything(kept)
    batches = [kept]
    for _ in range(50):
        batches.append(env.step(env.sample()))
    assert everything(kept) == before
    for field in ("observation", "action_mask", "seat", "rewards", "terminated", "truncated"):
        assert len({id(getattr(batch, field)) for batch in batches}) == len(batches)
        for a, b in pairwise(batches):
            assert not np.shares_memory(getattr(a, field), getattr(b, field))


def test_reused_buffers_are_the_same_arrays_with_the_same_contents() -> None:
    env = SelfPlayEnv("valety-L8", 4, seed=1, reuse_buffers=True)
    plain = SelfPlayEnv("valety-L8", 4, seed=1)
    first, expected = env.reset(), plain.reset()
    observation = first.observation
    for _ in range(40):
        actions = plain.sample()
        batch, expected = env.step(actions), plain.step(actions)
        assert batch is first
        assert batch.observation is observation
        assert everything(batch) == everything(expected)
    assert env.reset(seed=3) is first


@pytest.mark.parametrize("name", ENCODERS)
def test_a_step_writes_into_the_rows_of_a_rollout(name: str) -> None:
    env = SelfPlayEnv("valety-L8", 4, seed=1, observation=name)
    plain = SelfPlayEnv("valety-L8", 4, seed=1, observation=name)
    env.reset()
    plain.reset()
    steps = 30
    encoder = env.setup.encoders[0]
    rows = np.full((steps, 4, encoder.layout.size), 7, np.uint8)
    masks = np.full((steps, 4, 52), 7, np.int8)
    seats = np.full((steps, 4), 7, np.int8)
    rewards = np.full((steps, 4, 2), 7, np.float32)
    ends = np.ones((steps, 4), np.bool_)
    cuts = np.ones((steps, 4), np.bool_)
    for t in range(steps):
        out = Batch(encoder.shaped(rows[t]), masks[t], seats[t], rewards[t], ends[t], cuts[t], {})
        actions = plain.sample()
        assert env.step(actions, out=out) is out
        assert everything(out) == everything(plain.step(actions))
        assert (rows[t + 1 :] == 7).all()
    assert (masks <= 1).all()
    assert not cuts.any()
    assert ends.any()
    np.testing.assert_array_equal(env.final().totals, plain.final().totals)


@pytest.mark.parametrize(
    ("field", "array"),
    [
        ("observation", np.zeros((3, 464), np.uint8)),
        ("observation", np.zeros((4, 463), np.uint8)),
        ("observation", np.zeros((4, 464), np.float32)),
        ("action_mask", np.zeros((4, 51), np.int8)),
        ("action_mask", np.zeros((4, 52), np.int64)),
        ("seat", np.zeros(3, np.int8)),
        ("rewards", np.zeros((4, 1), np.float32)),
        ("rewards", np.zeros((4, 2), np.float64)),
        ("terminated", np.zeros(5, np.bool_)),
        ("truncated", np.zeros((4, 1), np.bool_)),
    ],
)
def test_arrays_to_write_into_that_do_not_fit_are_refused_before_anything_moves(
    field: str, array: np.ndarray
) -> None:
    env = SelfPlayEnv("valety", 4, seed=1)
    env.reset()
    out = env.empty_batch()
    setattr(out, field, array)
    before = env.states.tobytes()
    with pytest.raises(ValueError, match=r"out\.|laid out"):
        env.step(env.sample(), out=out)
    assert env.states.tobytes() == before
    assert env.step(env.sample(), out=env.empty_batch()).seat.shape == (4,)


def with_entries_apart(array: np.ndarray, how: str) -> np.ndarray:
    """Return an array of the same shape and dtype, laid out otherwise."""
    if how == "every other":
        return np.full((*array.shape[:-1], 2 * array.shape[-1]), 7, array.dtype)[..., ::2]
    if how == "backwards":
        return np.full(array.shape, 7, array.dtype)[..., ::-1]
    assert how == "transposed"
    return np.full(array.shape[::-1], 7, array.dtype).T


@pytest.mark.parametrize(
    ("field", "how"),
    [
        *product(
            ["observation", "action_mask", "rewards"], ["every other", "backwards", "transposed"]
        ),
        *product(["seat", "terminated", "truncated"], ["every other", "backwards"]),
    ],
)
def test_arrays_to_write_into_must_have_contiguous_rows(field: str, how: str) -> None:
    env = SelfPlayEnv("valety", 4, seed=1)
    env.reset()
    out = env.empty_batch()
    array = with_entries_apart(getattr(out, field), how)
    assert (array.shape, array.dtype) == (getattr(out, field).shape, getattr(out, field).dtype)
    setattr(out, field, array)
    before = env.states.tobytes()
    with pytest.raises(ValueError, match="contiguous"):
        env.step(env.sample(), out=out)
    assert (array == array.dtype.type(7)).all()
    assert env.states.tobytes() == before


@pytest.mark.parametrize(
    "field", ["observation", "action_mask", "seat", "rewards", "terminated", "truncated"]
)
def test_arrays_that_are_read_only_are_not_written_into(field: str) -> None:
    env = SelfPlayEnv("valety", 4, seed=1)
    env.reset()
    out = env.empty_batch()
    array = getattr(out, field)
    array[:] = 7
    array.flags.writeable = False
    before, held = env.states.tobytes(), array.copy()
    with pytest.raises(ValueError, match=rf"out\.{field}.*writeable"):
        env.step(env.sample(), out=out)
    assert (array == held).all()
    assert env.states.tobytes() == before


def test_the_rows_to_write_into_may_lie_apart() -> None:
    env, plain = SelfPlayEnv("valety", 4, seed=1), SelfPlayEnv("valety", 4, seed=1)
    env.reset()
    plain.reset()
    # Tables first and steps second, columns for something else at the end of a row, from the last.
    observations = np.full((4, 3, 470), 7, np.uint8)
    masks = np.full((8, 60), 7, np.int8)
    rewards = np.full((4, 5), 7, np.float32)
    out = env.empty_batch()
    out.observation = observations[:, 1, 2:466]
    out.action_mask = masks[::2, 5:57]
    out.rewards = rewards[::-1, 3:]
    for _ in range(40):
        actions = plain.sample()
        assert everything(env.step(actions, out=out)) == everything(plain.step(actions))
    assert (observations[:, [0, 2]] == 7).all()
    assert (observations[:, 1, [0, 1, 466, 467, 468, 469]] == 7).all()
    assert (masks[1::2] == 7).all()
    assert (masks[:, [0, 1, 2, 3, 4, 57, 58, 59]] == 7).all()
    assert (rewards[:, :3] == 7).all()


def test_shapes_and_dtypes_are_those_documented() -> None:
    env = SelfPlayEnv("polignac", 3, seed=1, num_players=5, dtype="float32")
    for batch in (env.reset(), env.step(env.sample())):
        assert isinstance(batch.observation, np.ndarray)
        assert (batch.observation.shape, batch.observation.dtype) == ((3, 1224), np.float32)
        assert (batch.action_mask.shape, batch.action_mask.dtype) == ((3, 54), np.int8)
        assert (batch.seat.shape, batch.seat.dtype) == ((3,), np.int8)
        assert (batch.rewards.shape, batch.rewards.dtype) == ((3, 5), np.float32)
        assert (batch.terminated.shape, batch.terminated.dtype) == ((3,), np.bool_)
        assert (batch.truncated.shape, batch.truncated.dtype) == ((3,), np.bool_)
        assert batch.rows == {}
    assert (env.state().shape, env.state().dtype) == ((3, 1647), np.float32)
    assert (env.sample().shape, env.sample().dtype) == ((3,), np.int64)
    assert SelfPlayEnv("valety").setup.dtype == np.uint8
    assert (env.num_envs, env.num_players, env.num_actions) == (3, 5, 54)
    assert env.rules == make_rules("polignac", num_players=5)


@pytest.mark.plain
def test_the_state_is_that_of_every_table() -> None:
    env = SelfPlayEnv("valety-L4", 3, seed=4)
    batch = env.reset()
    for _ in range(5):
        batch = env.step(env.sample())
    states = env.state()
    layout = env.setup.state_layout
    for i in range(3):
        state = env.states[i]
        hands = states[i, layout.slice("hands")].reshape(2, 52)
        assert [np.flatnonzero(hand).tolist() for hand in hands] == [
            cards_of(state.hand[seat]) for seat in (0, 1)
        ]
        turn = states[i, layout.slice("turn")]
        assert turn.tolist() == [int(seat == batch.seat[i]) for seat in (0, 1)]


# Different encodings


def test_players_with_different_encodings_have_their_own_rows() -> None:
    names = {"player_0": "flat_v0", "player_1": "tokens_v0", "player_2": "flat_v0"}
    names["player_3"] = "pieces_v0"
    env = SelfPlayEnv("polignac", 6, seed=3, observation=names, threads=2)
    batch = env.reset()
    alone = [Alone(env.setup, plain_mix(3, i)) for i in range(6)]
    rng = random.Random(3)
    for _ in range(80):
        assert isinstance(batch.observation, dict)
        assert batch.observation.keys() == batch.rows.keys() == set(names.values())
        told = np.concatenate(list(batch.rows.values()))
        assert sorted(told.tolist()) == list(range(6))
        for name, tables in batch.rows.items():
            for k, i in enumerate(tables.tolist()):
                seat = int(batch.seat[i])
                assert names[f"player_{seat}"] == name
                row, mask, _ = observed(alone[i].table, seat, name)
                np.testing.assert_array_equal(batch.action_mask[i], mask)
                expected = make_encoder(name, env.rules).shaped(row)
                given: Any = batch.observation[name]
                if isinstance(expected, dict):
                    for field, piece in expected.items():
                        np.testing.assert_array_equal(given[field][k], piece)
                else:
                    np.testing.assert_array_equal(given[k], expected)
        actions = choose(batch, rng)
        batch = env.step(actions)
        for i in range(6):
            alone[i].step(int(actions[i]))
    with pytest.raises(ValueError, match="different encodings"):
        env.step(env.sample(), out=env.empty_batch())
    env.close()


# Ends of episodes


@pytest.mark.parametrize("observation", ["flat_v0", "tokens_v0", "pieces_v0", "mixed"])
def test_the_last_observation_of_a_finished_episode_is_everyones(observation: str) -> None:
    names: Any = observation
    if observation == "mixed":
        names = {"player_0": "planes_v0", "player_1": "tokens_v0"}
    env = SelfPlayEnv("valety-L8", 4, seed=6, observation=names)
    batch = env.reset()
    alone = [Alone(env.setup, plain_mix(6, i)) for i in range(4)]
    assert len(env.final().tables) == 0
    rng = random.Random(6)
    found = 0
    for _ in range(30):
        actions = choose(batch, rng)
        batch = env.step(actions)
        ended = [i for i in range(4) if alone[i].step(int(actions[i]))[1]]
        final = env.final()
        assert final.tables.tolist() == ended
        assert len(final.observation) == 2
        for k, i in enumerate(ended):
            found += 1
            last = Table(env.setup.played)
            last.states[:] = alone[i].last
            for seat, encoder in enumerate(env.setup.encoders):
                row, mask, _ = observed(last, seat, encoder.name)
                assert not mask.any()
                expected, given = encoder.shaped(row), final.observation[seat]
                if isinstance(expected, dict):
                    assert isinstance(given, dict)
                    for field, piece in expected.items():
                        np.testing.assert_array_equal(given[field][k], piece)
                else:
                    assert isinstance(given, np.ndarray)
                    np.testing.assert_array_equal(given[k], expected)
    assert found >= 8


@pytest.mark.plain
@pytest.mark.parametrize("threads", [1, 2, 3, 11])
def test_how_episodes_ended_is_told_of_the_right_tables_whatever_the_threads(threads: int) -> None:
    # Those who fail to win a trick at once play on, so tables end apart.
    options: dict[str, Any] = {"hand_size": 2, "count": "trick", "target": 1, "tie": "draw"}
    env = SelfPlayEnv("valety", 11, seed=6, threads=threads, **options)
    batch = env.reset()
    alone = [Alone(env.setup, plain_mix(6, i)) for i in range(11)]
    rng = random.Random(6)
    together = 0
    for _ in range(25):
        actions = choose(batch, rng)
        batch = env.step(actions)
        ended = [i for i in range(11) if alone[i].step(int(actions[i]))[1]]
        final = env.final()
        assert final.tables.tolist() == ended
        told = zip(final.totals.tolist(), final.winners, final.deals.tolist(), strict=True)
        for i, (totals, winners, deals) in zip(ended, told, strict=True):
            assert (totals, np.flatnonzero(winners).tolist(), deals) == alone[i].ended
            last = Table(env.setup.played)
            last.states[:] = alone[i].last
            (k,) = np.flatnonzero(final.tables == i)
            for seat in (0, 1):
                given = final.observation[seat]
                assert isinstance(given, np.ndarray)
                np.testing.assert_array_equal(given[k], observed(last, seat)[0])
        together += 2 <= len(ended) < 11
    assert together >= 8


@pytest.mark.plain
def test_a_finished_table_starts_its_next_episode_in_the_same_step() -> None:
    env = SelfPlayEnv("valety-L1", 1, seed=8)
    batch = env.reset()
    for episode in range(1, 4):
        for _ in range(4):
            assert int(env.states[0].episode) == episode - 1
            batch = env.step(env.sample())
        assert batch.terminated.tolist() == [True]
        assert batch.rewards.any() or env.final().winners.all()
        again = Table(env.setup.played).start(plain_mix(8, 0), episode)
        assert env.states.tobytes() == again.states.tobytes()
        row, mask, _ = observed(again, again.dealer)
        assert isinstance(batch.observation, np.ndarray)
        np.testing.assert_array_equal(batch.observation[0], row)
        np.testing.assert_array_equal(batch.action_mask[0], mask)


@pytest.mark.plain
def test_reset_without_a_seed_goes_on_to_the_next_episode_of_every_table() -> None:
    env = SelfPlayEnv("valety-L1", 3, seed=8)
    env.reset()
    for step in range(6):
        actions = env.sample()
        env.step(actions)
        if step == 3:
            assert [int(state.episode) for state in env.states] == [1, 1, 1]
    env.reset()
    assert [int(state.episode) for state in env.states] == [2, 2, 2]
    env.reset()
    assert [int(state.episode) for state in env.states] == [3, 3, 3]
    assert env.seeds.tolist() == [plain_mix(8, i) for i in range(3)]


def test_reset_with_a_seed_starts_as_a_new_environment_of_that_seed() -> None:
    env = SelfPlayEnv("valety", 3, seed=1)
    env.reset()
    for _ in range(100):
        env.step(env.sample())
    again, new = env.reset(seed=2), SelfPlayEnv("valety", 3, seed=2).reset()
    assert everything(again) == everything(new)
    assert env.seeds.tolist() == [plain_mix(2, i) for i in range(3)]
    assert not again.rewards.any()
    assert not again.terminated.any()


# Seeds


@pytest.mark.plain
def test_the_tables_have_seeds_mixed_from_the_environments() -> None:
    for seed in (0, 1, 2**64 - 1):
        env = SelfPlayEnv("valety", 5, seed=seed)
        assert env.seed == seed
        assert env.seeds.dtype == np.uint64
        assert env.seeds.tolist() == [plain_mix(seed, i) for i in range(5)]


def test_neighbouring_runs_share_no_table() -> None:
    seeds = [set(SelfPlayEnv("valety", 1000, seed=seed).seeds.tolist()) for seed in range(5)]
    assert len(set.union(*seeds)) == 5000
    hands = [SelfPlayEnv("valety", 200, seed=seed) for seed in (0, 1)]
    dealt = []
    for env in hands:
        env.reset()
        dealt.append({(int(state.hand[0]), int(state.hand[1])) for state in env.states})
    assert len(dealt[0] | dealt[1]) == 400


def test_without_a_seed_environments_differ() -> None:
    assert SelfPlayEnv("valety").seed != SelfPlayEnv("valety").seed


# Samples


def test_samples_are_legal_and_fixed_by_the_seed_and_the_calls_before() -> None:
    runs = []
    for seed in (1, 1, 2):
        env = SelfPlayEnv("polignac", 5, seed=seed)
        batch = env.reset()
        drawn = []
        for _ in range(100):
            actions = env.sample()
            assert batch.action_mask[np.arange(5), actions].all()
            drawn.append(actions.tolist())
            batch = env.step(actions)
        runs.append(drawn)
    assert runs[0] == runs[1] != runs[2]
    env = SelfPlayEnv("polignac", 5, seed=1)
    env.reset()
    first = env.sample().tolist()
    assert first == runs[0][0]
    assert any(env.sample().tolist() != first for _ in range(8))
    env.reset(seed=1)
    assert env.sample().tolist() == first


@pytest.mark.plain
def test_samples_are_the_same_whatever_the_threads() -> None:
    envs = [SelfPlayEnv("valety", 7, seed=1, threads=threads) for threads in (1, 2, 3, 7)]
    for env in envs:
        env.reset()
    for _ in range(5):
        drawn = [env.sample() for env in envs]
        assert all(actions.tolist() == drawn[0].tolist() for actions in drawn)
        for env in envs:
            env.step(drawn[0])


@pytest.mark.parametrize(("game", "choices"), [("valety", 17), ("polignac", 2), ("valety-L5", 4)])
def test_samples_are_uniform_over_the_legal_actions(game: str, choices: int) -> None:
    env = SelfPlayEnv(game, 3000, seed=1)
    batch = env.reset()
    across, along = [0] * choices, [0] * choices
    for _ in range(4):
        places = np.cumsum(batch.action_mask, axis=1)[np.arange(3000), env.sample()] - 1
        for place in places.tolist():
            across[place] += 1
    one = SelfPlayEnv(game, 1, seed=2)
    mask = one.reset().action_mask[0]
    for _ in range(3000):
        along[int(np.cumsum(mask)[one.sample()[0]]) - 1] += 1
    assert chi_square(across) < chi_square_bound(choices)
    assert chi_square(along) < chi_square_bound(choices)


# Illegal actions


def illegal_of(batch: Batch, i: int) -> int:
    return int(np.flatnonzero(batch.action_mask[i] == 0)[0])


@pytest.mark.parametrize(
    ("reward", "fine"), [("win", -1.0), ("points", -23.0)], ids=["win", "points"]
)
def test_an_illegal_action_ends_the_episode_with_a_fine_for_the_offender(
    reward: str, fine: float
) -> None:
    env = SelfPlayEnv("valety", 3, seed=1, reward=reward)
    batch = env.reset()
    batch = env.step(env.sample())
    actions = env.sample()
    offender = int(batch.seat[1])
    actions[1] = illegal_of(batch, 1)
    batch = env.step(actions)
    assert batch.terminated.tolist() == [False, True, False]
    assert batch.rewards[1].tolist() == [fine if seat == offender else 0 for seat in (0, 1)]
    assert not batch.rewards[[0, 2]].any()
    final = env.final()
    assert final.tables.tolist() == [1]
    assert not final.winners.any()
    assert (final.totals.tolist(), final.deals.tolist()) == ([[0, 0]], [1])
    # The table goes on with its next episode, the others where they were.
    again = Table(env.setup.played).start(plain_mix(1, 1), 1)
    assert env.states[1:2].tobytes() == again.states.tobytes()
    assert [int(state.episode) for state in env.states] == [0, 1, 0]
    assert [int(state.num_plays) for state in env.states] == [2, 0, 2]


def test_an_illegal_action_is_fined_and_the_same_seat_moves_again_under_penalise() -> None:
    env = SelfPlayEnv("polignac", 3, seed=1, illegal="penalise", reward="points")
    batch = env.reset()
    seats, before = batch.seat.copy(), env.states[2:].tobytes()
    actions = env.sample()
    actions[2] = illegal_of(batch, 2)
    batch = env.step(actions)
    assert not batch.terminated.any()
    assert batch.rewards[2].tolist() == [-10 if seat == seats[2] else 0 for seat in range(4)]
    assert not batch.rewards[:2].any()
    assert batch.seat[2] == seats[2]
    assert env.states[2:].tobytes() == before
    assert [int(state.num_calls) for state in env.states[:2]] == [1, 1]
    batch = env.step(env.sample())
    assert not batch.rewards.any()


def test_an_illegal_action_raises_before_anything_has_moved_under_raise() -> None:
    env = SelfPlayEnv("valety-L1", 3, seed=2, illegal="raise")
    batch = env.reset()
    before = env.states.tobytes()
    actions = env.sample()
    actions[1] = illegal_of(batch, 1)
    with pytest.raises(IllegalActionError) as caught:
        env.step(actions)
    told = str(caught.value)
    seat = int(batch.seat[1])
    assert told.startswith(f"table 1: player_{seat} may not play 2S; legal here: ")
    table = Table(env.setup.played).start(plain_mix(2, 1))
    assert told.split("legal here: ")[1].split() == table.legal()
    assert env.states.tobytes() == before
    assert env.step(env.sample()).seat.shape == (3,)


@pytest.mark.parametrize("action", [-1, 52, 53, 63, 64, 116, 2**31, -(2**63), 2**63 - 1])
def test_any_other_number_is_an_illegal_action_and_does_no_harm(action: int) -> None:
    env = SelfPlayEnv("valety", 2, seed=1, illegal="penalise")
    env.reset()
    before = env.states.tobytes()
    batch = env.step(np.array([action, action]))
    assert env.states.tobytes() == before
    assert sorted(batch.rewards.ravel().tolist()) == [-1, -1, 0, 0]
    big = np.array([2**64 - 1, 2**63], np.uint64)
    batch = env.step(big)
    assert env.states.tobytes() == before


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_actions_can_be_of_any_whole_dtype_or_a_list(dtype: Any) -> None:
    env, other = SelfPlayEnv("valety", 3, seed=1), SelfPlayEnv("valety", 3, seed=1)
    env.reset()
    other.reset()
    actions = env.sample()
    assert everything(env.step(actions.astype(dtype))) == everything(other.step(actions.tolist()))
    apart = np.repeat(env.sample(), 2)[::2]
    assert everything(env.step(apart)) == everything(other.step(apart.tolist()))


def test_an_action_too_large_for_a_card_is_told_as_it_was_given() -> None:
    env = SelfPlayEnv("valety", 1, seed=1, illegal="raise")
    env.reset()
    with pytest.raises(IllegalActionError, match="action 18446744073709551615 "):
        env.step(np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize("illegal", ["terminate", "penalise", "raise"])
@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(3),
        np.zeros(2, np.int64),
        np.zeros((3, 1), np.int64),
        np.zeros(3, np.bool_),
        [0, 1],
        ["2S", "3S", "4S"],
        5,
        None,
    ],
    ids=["float", "short", "column", "bool", "list", "names", "number", "none"],
)
def test_actions_of_a_wrong_type_or_shape_are_a_typed_error_in_every_mode(
    actions: Any, illegal: str
) -> None:
    env = SelfPlayEnv("valety", 3, seed=1, illegal=illegal)
    env.reset()
    before = env.states.tobytes()
    with pytest.raises(ActionTypeError, match=r"integers of shape \(3,\)"):
        env.step(actions)
    assert env.states.tobytes() == before


# Options


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"num_envs": 1.5}, r"num_envs=1\.5"),
        ({"num_envs": True}, "num_envs=True"),
        ({"threads": 0}, "threads=0"),
        ({"threads": "2"}, "threads='2'"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**64}, "seed=18446744073709551616"),
        ({"seed": 0.5}, r"seed=0\.5"),
        ({"reward": "money"}, "reward='money'.*'points'"),
        ({"episode": "year"}, "episode='year'.*'deal'"),
        ({"illegal": "ignore"}, "illegal='ignore'.*'penalise'"),
        ({"observation": "flat"}, "observation='flat'.*flat_v0"),
        ({"dtype": "float16"}, "dtype='float16'.*float32"),
        ({"targets": 3}, "'targets' is not a rule option"),
        ({"hand_size": 40}, "hand_size=40"),
        ({"game": "bridge"}, "'bridge' is not a game"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        SelfPlayEnv(**options)


@pytest.mark.plain
def test_a_step_before_the_first_reset_says_what_to_call() -> None:
    env = SelfPlayEnv("valety", 2, seed=1)
    with pytest.raises(RuntimeError, match=r"reset\(\)"):
        env.step(np.zeros(2, np.int64))
    with pytest.raises(RuntimeError, match=r"reset\(\)"):
        env.final()


def test_own_rules_can_be_given_in_place_of_a_game() -> None:
    rules = make_rules("valety-L3", hand_size=2)
    env = SelfPlayEnv(rules, 2, seed=1, target=5)
    assert env.rules == make_rules("valety-L3", hand_size=2, target=5)
    assert env.reset().action_mask.sum() == 4
    assert env.states.dtype == STATE

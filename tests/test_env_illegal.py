"""Illegal actions and actions of a wrong type in the AEC environment."""

from typing import Any

import numpy as np
import pytest
from aec import BOTH, FEW, GAMES, assert_go_on_alike, assert_same, choose, drain, legal, play_out

from valety_env import valety_v0
from valety_env.env import AECTable
from valety_env.episode import ActionTypeError, IllegalActionError

FINES = {
    ("valety", "win"): -1,
    ("valety", "points"): -23,
    ("knaves", "win"): -1,
    ("knaves", "points"): -16,  # three jacks in one trick, the fourth turned up
    ("polignac-4", "win"): -1,
    ("polignac-4", "points"): -10,
    ("polignac-7", "win"): -1,
    ("polignac-7", "points"): -10,
}
# In the announcements of Polignac or at the first lead, at a lead, within a trick, in a later deal.
MOMENTS = [0, 8, 13, 47]


def at(name: str, moment: int, **options: Any) -> AECTable:
    """Return an environment after so many actions."""
    env = GAMES[name](**options)
    env.reset(seed=12)
    play_out(env, seed=12, steps=moment)
    assert len(env.agents) == env.max_num_agents
    return env


def illegal_actions(env: AECTable) -> list[int]:
    size = env.action_space("player_0").n
    allowed = legal(env)
    inside = [action for action in range(size) if action not in allowed]
    return [
        *inside,
        size,
        52 if size == 52 else 54,
        -1,
        -2,  # what `step_table` takes for no action
        63,
        64,
        -64,
        2**31,
        2**63,
        10**30,
        -(10**30),
    ]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("reward", ["win", "points"])
@pytest.mark.parametrize("name", FEW)
def test_by_default_an_illegal_action_ends_the_episode_with_a_fine(
    name: str, reward: str, moment: int
) -> None:
    env = at(name, moment, reward=reward)
    start = env.get_state()
    offender = env.agent_selection
    own = env.last()[1]
    others = {agent: env._cumulative_rewards[agent] for agent in env.agents if agent != offender}
    deals = env.record()["deals"]
    state = env.state()
    for action in illegal_actions(env):
        env.set_state(start)
        assert env.last()[1] == own
        env.step(action)
        agents = env.possible_agents
        assert env.agents == agents
        assert env.terminations == dict.fromkeys(agents, True)
        assert env.truncations == dict.fromkeys(agents, False)
        fine = FINES[name, reward]
        assert env.rewards == {agent: fine if agent == offender else 0 for agent in agents}
        # Nothing has moved.
        np.testing.assert_array_equal(env.state(), state)
        record = env.record()
        assert record["deals"] == deals
        assert record["winners"] == []
        assert record["illegal"]["seat"] == int(offender.removeprefix("player_"))
        assert not any(info["action_mask"].any() for info in env.infos.values())
        # The offender was paid for its last action before; the others still get what they are owed.
        assert drain(env) == {**others, offender: fine}
        assert env.rewards == env.terminations == env.truncations == env.infos == {}


@pytest.mark.parametrize("name", FEW)
def test_the_reset_after_an_illegal_end_is_clean_and_the_next_episode(name: str) -> None:
    for leave in (True, False):
        env = at(name, 13)
        env.step(-1)
        if leave:
            drain(env)
        env.reset()
        fresh = GAMES[name]()
        fresh.reset(seed=12)
        fresh.reset()
        record = env.record()
        assert (record["seed"], record["episode"], record["illegal"]) == (12, 1, None)
        assert_go_on_alike(env, fresh)


@pytest.mark.parametrize("reward", ["win", "points"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", FEW)
def test_penalise_fines_and_lets_the_same_agent_move_again(
    name: str, moment: int, reward: str
) -> None:
    env = at(name, moment, reward=reward, illegal="penalise")
    other = at(name, moment, reward=reward, illegal="penalise")
    offender = env.agent_selection
    before = dict(env._cumulative_rewards)
    fine = FINES[name, reward]
    observation = env.observe(offender)
    for action in illegal_actions(env):
        infos = env.infos
        env.step(action)
        assert env.infos is not infos
        assert env.rewards == {a: fine if a == offender else 0 for a in env.possible_agents}
        assert env.agent_selection == offender
        assert not any(env.terminations.values())
        again, reward_told, terminated, _, info = env.last()
        assert (reward_told, terminated) == (fine, False)
        np.testing.assert_array_equal(again["observation"], observation["observation"])
        np.testing.assert_array_equal(again["action_mask"], observation["action_mask"])
        np.testing.assert_array_equal(info["action_mask"], observation["action_mask"])
    for agent in env.agents:
        if agent != offender:
            assert env._cumulative_rewards[agent] == before[agent]
    # A legal action clears the fine, and the game goes on as if nothing had been.
    action = legal(env)[0]
    env.step(action)
    other.step(action)
    assert_same(env, other)
    assert_go_on_alike(env, other)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", FEW)
def test_raise_raises_and_nothing_has_moved(name: str, moment: int) -> None:
    env, other = at(name, moment, illegal="raise"), at(name, moment, illegal="raise")
    infos, rewards = env.infos, env.rewards
    for action in illegal_actions(env):
        with pytest.raises(IllegalActionError) as caught:
            env.step(action)
        assert isinstance(caught.value, ValueError)
        assert str(caught.value).startswith(f"{env.agent_selection} may not play ")
        assert "\n" not in str(caught.value)
    assert env.infos is infos
    assert env.rewards is rewards
    assert_go_on_alike(env, other)


def test_the_error_is_in_card_notation() -> None:
    env = valety_v0.env(illegal="raise")
    env.reset(seed=0)
    leader, follower = env.agents if env.agent_selection == "player_0" else env.agents[::-1]
    held = {agent: env.observe(agent)["observation"][:52] for agent in env.agents}
    order, suits = "23456789TJQKA", "SCDH"

    def cards(agent: str, suit: int | None = None) -> list[int]:
        return [int(c) for c in np.flatnonzero(held[agent]) if suit is None or c // 13 == suit]

    # A lead in a suit of which the follower has cards, and cards of others as well.
    lead = next(c for c in cards(leader) if 0 < len(cards(follower, c // 13)) < 17)
    env.step(lead)
    wrong = next(c for c in cards(follower) if c // 13 != lead // 13)
    names = [order[c % 13] + suits[c // 13] for c in cards(follower, lead // 13)]
    told = order[wrong % 13] + suits[wrong // 13]
    with pytest.raises(IllegalActionError) as caught:
        env.step(wrong)
    assert str(caught.value) == f"{follower} may not play {told}; legal here: {' '.join(names)}"
    with pytest.raises(IllegalActionError, match=r"may not play action 52 \(actions are 0…51\)"):
        env.step(52)
    polignac = GAMES["polignac-4"](illegal="raise")
    polignac.reset(seed=0)
    with pytest.raises(IllegalActionError, match=r"may not play 2S; legal here: pass general$"):
        polignac.step(0)


WRONG_TYPES: dict[str, Any] = {
    "float": 3.0,
    "numpy float": np.float32(3),
    "nan": float("nan"),
    "text": "KD",
    "text of digits": "3",
    "bytes": b"\x03",
    "None": None,
    "True": True,
    "False": False,
    "numpy bool": np.True_,
    "list": [3],
    "empty list": [],
    "tuple": (3,),
    "dict": {"action": 3},
    "array (1,)": np.array([3]),
    "array (1, 1)": np.array([[3]]),
    "array (2,)": np.array([3, 4]),
    "array of floats": np.array(3.0),
    "array of bools": np.array(True),
    "complex": 3j,
    "object": object(),
}


@pytest.mark.parametrize("mode", ["terminate", "raise", "penalise"])
@pytest.mark.parametrize("name", BOTH)
def test_a_wrong_type_or_shape_is_a_typed_error_in_every_mode_and_changes_nothing(
    name: str, mode: str
) -> None:
    env, other = at(name, 13, illegal=mode), at(name, 13, illegal=mode)
    infos, rewards = env.infos, env.rewards
    for action in WRONG_TYPES.values():
        with pytest.raises(ActionTypeError) as caught:
            env.step(action)
        assert isinstance(caught.value, TypeError)
        message = str(caught.value)
        assert message.startswith(f"{env.agent_selection} gave ")
        assert type(action).__name__ in message
        assert "one whole number in 0…" in message
    assert env.infos is infos
    assert env.rewards is rewards
    assert_go_on_alike(env, other)


class Whole:
    """Something else that is a whole number to Python."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


@pytest.mark.plain
@pytest.mark.parametrize(
    "kind",
    [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.array, Whole],
    ids=lambda kind: kind.__name__,
)
def test_any_kind_of_whole_number_is_an_action(kind: Any) -> None:
    env, other = at("valety", 3, illegal="raise"), at("valety", 3, illegal="raise")
    for _ in range(4):
        action = choose(other, np.random.default_rng(1))
        env.step(kind(action))
        other.step(action)
        assert_same(env, other)


@pytest.mark.plain
@pytest.mark.parametrize("kind", [np.int8, np.int64, np.array])
def test_a_whole_number_of_any_kind_can_be_illegal(kind: Any) -> None:
    env = at("valety", 3)
    env.step(kind(-1))
    assert all(env.terminations.values())
    assert env.record()["illegal"]["action"] == "-1"


def test_an_episode_can_end_by_an_illegal_action_inside_agent_iter() -> None:
    for name in FEW:
        env = GAMES[name]()
        env.reset(seed=1)
        rewards = dict.fromkeys(env.agents, 0.0)
        offender = None
        order = []
        for number, agent in enumerate(env.agent_iter()):
            _, reward, terminated, truncated, _ = env.last()
            assert not truncated
            rewards[agent] += reward
            if terminated:
                order.append(agent)
                env.step(None)
            elif number == 20:
                offender = agent
                env.step(-5)
            else:
                env.step(legal(env)[0])
        assert sorted(order) == env.possible_agents
        assert rewards == {agent: -1 if agent == offender else 0 for agent in rewards}

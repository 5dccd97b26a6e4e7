"""Any sequence of calls to the AEC environment: a long random walk beside a plain shadow."""

import copy
import json
import pickle
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from aec import GAMES, assert_equal_observations, assert_same, is_over, legal, play
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from valety_env import replay
from valety_env.env import AECTable
from valety_env.episode import ActionTypeError, IllegalActionError

WALK_GAMES = ["valety", "valety-L1", "knaves", "polignac-3", "polignac-6", "polignac with trump"]


class Walk(RuleBasedStateMachine):
    """`env` gets all calls; `shadow` only those that move the game, and must stay its equal.

    Attributes:
        checked: what was checked, how often.
    """

    checked: ClassVar[Counter[str]] = Counter()

    @initialize(
        name=st.sampled_from(WALK_GAMES),
        episode=st.sampled_from(["match", "deal"]),
        reward=st.sampled_from(["win", "points"]),
        illegal=st.sampled_from(["terminate", "raise", "penalise"]),
        mask=st.sampled_from(["observation", "info"]),
        observation=st.sampled_from(["flat_v0", "planes_v0", "tokens_v0", "pieces_v0"]),
        seed=st.integers(0, 2**64 - 1),
    )
    def start(
        self,
        name: str,
        episode: str,
        reward: str,
        illegal: str,
        mask: str,
        observation: str,
        seed: int,
    ) -> None:
        def make(**options: str) -> AECTable:
            return GAMES[name](
                episode=episode,
                reward=reward,
                illegal=illegal,
                mask=mask,
                observation=observation,
                **options,
            )

        self.make = make
        self.env = make(render_mode="ansi")
        self.shadow = make()
        self.env.reset(seed=seed)
        self.shadow.reset(seed=seed)
        self.saved = (self.env.get_state(), pickle.dumps(self.shadow))
        self.fined = False

    @rule(pick=st.integers(0, 10**6), times=st.integers(1, 12))
    def step(self, pick: int, times: int) -> None:
        for _ in range(times):
            if not self.env.agents:
                return
            actions = [None] if is_over(self.env) else legal(self.env)
            action = actions[pick % len(actions)]
            self.env.step(action)
            self.shadow.step(action)

    @precondition(lambda self: self.env.agents and not is_over(self.env))
    @rule(seed=st.integers(0, 99), leave=st.booleans())
    def play_to_the_end(self, seed: int, leave: bool) -> None:
        for action in play(self.env, np.random.default_rng(seed)):
            self.shadow.step(action)
        while leave and self.env.agents:
            self.env.step(None)
            self.shadow.step(None)

    @precondition(lambda self: self.env.agents and not is_over(self.env))
    @rule(action=st.one_of(st.integers(-5, 70), st.integers()))
    def step_illegally(self, action: int) -> None:
        if action in legal(self.env):
            return
        for each in (self.env, self.shadow):
            if each.setup.illegal == "raise":
                with pytest.raises(IllegalActionError):
                    each.step(action)
            else:
                each.step(action)
        self.checked["illegal action refused, fined or the end"] += 1
        self.fined = self.env.setup.illegal == "penalise"

    @precondition(lambda self: self.env.agents and not is_over(self.env))
    @rule(
        action=st.one_of(st.floats(), st.text(), st.none(), st.booleans(), st.lists(st.integers()))
    )
    def step_with_a_wrong_type(self, action: object) -> None:
        with pytest.raises(ActionTypeError):
            self.env.step(action)
        self.checked["wrong type refused"] += 1

    @precondition(lambda self: is_over(self.env))
    @rule(action=st.integers(0, 51), none=st.booleans())
    def step_after_the_end(self, action: int, none: bool) -> None:
        if self.env.agents:
            with pytest.raises(ValueError, match="its action is None"):
                self.env.step(action)
        else:
            with pytest.raises(RuntimeError, match="call reset"):
                self.env.step(None if none else action)
        self.checked["step after the end refused"] += 1

    @rule(seat=st.integers(0, 6))
    def observe(self, seat: int) -> None:
        agent = self.env.possible_agents[seat % self.env.max_num_agents]
        observation = self.env.observe(agent)
        assert self.env.observation_space(agent).contains(observation)
        assert self.env.view(agent)[0].seat == self.env.possible_agents.index(agent)
        self.checked["observation in its space"] += 1

    @precondition(lambda self: self.env.agents)
    @rule(times=st.integers(1, 3))
    def look(self, times: int) -> None:
        for _ in range(times):
            observation, reward, terminated, truncated, info = self.env.last()
            agent = self.env.agent_selection
            assert_equal_observations(observation, self.env.observe(agent))
            assert reward == self.env._cumulative_rewards[agent]
            assert terminated == self.env.terminations[agent]
            assert truncated is False
            assert info is self.env.infos[agent]
        assert self.env.last(observe=False)[0] is None
        self.checked["last says what the attributes do"] += 1

    @rule()
    def render(self) -> None:
        assert isinstance(self.env.render(), str)
        assert self.env.state_space.contains(self.env.state())
        self.checked["state in its space"] += 1

    @rule()
    def save(self) -> None:
        self.saved = (self.env.get_state(), pickle.dumps(self.shadow))

    @rule()
    def go_back(self) -> None:
        self.env.set_state(self.saved[0])
        self.shadow = pickle.loads(self.saved[1])
        # A fine is not in the record, so a replay would not show it.
        self.fined = True

    @rule(how=st.sampled_from(["deepcopy", "pickle", "state"]))
    def take_a_copy(self, how: str) -> None:
        if how == "deepcopy":
            self.env = copy.deepcopy(self.env)
        elif how == "pickle":
            self.env = pickle.loads(pickle.dumps(self.env))
        else:
            state = self.env.get_state()
            self.env = self.make(render_mode="ansi")
            self.env.set_state(state)

    @precondition(lambda self: len(self.env.agents) == self.env.max_num_agents)
    @rule()
    def replay(self) -> None:
        record = json.loads(json.dumps(self.env.record()))
        setup = self.env.setup
        other = replay(
            record,
            episode=setup.episode,
            reward=setup.reward,
            illegal=setup.illegal,
            mask=setup.mask,
            observation=setup.observation,
            render_mode="ansi",
        )
        assert other.record() == record
        self.checked["replay has the same record"] += 1
        if not self.fined:
            self.env = other

    @rule(seed=st.one_of(st.none(), st.integers(0, 2**64 - 1)))
    def reset(self, seed: int | None) -> None:
        self.env.reset(seed=seed, options={"anything": 1})
        self.shadow.reset(seed=seed)
        self.fined = False

    @invariant()
    def all_is_well(self) -> None:
        if not hasattr(self, "env"):
            return
        env = self.env
        assert_same(env, self.shadow)
        self.checked["like its shadow"] += 1
        for each in (env.rewards, env._cumulative_rewards, env.terminations, env.infos):
            assert list(each) == env.agents
        assert list(env.truncations) == env.agents
        assert not any(env.truncations.values())
        assert len(set(env.terminations.values())) <= 1
        paid = sum(env.rewards.values())
        assert abs(paid) < 1e-9 or paid == pytest.approx(env.setup.fine)
        masks = {agent: env.infos[agent]["action_mask"] for agent in env.agents}
        for agent, mask in masks.items():
            moves = agent == env.agent_selection and not is_over(env)
            assert mask.any() == moves
            assert mask.dtype == np.int8
        when = "when all have left" if not env.agents else "at the end" if is_over(env) else "going"
        self.checked[f"attributes {when}"] += 1


CHECKS = {
    "attributes at the end",
    "attributes going",
    "attributes when all have left",
    "illegal action refused, fined or the end",
    "last says what the attributes do",
    "like its shadow",
    "observation in its space",
    "replay has the same record",
    "state in its space",
    "step after the end refused",
    "wrong type refused",
}


def walk(examples: int, steps: int) -> Counter[str]:
    """Walk so many times, so many calls at most; return what was checked, how often."""
    Walk.checked.clear()
    run_state_machine_as_test(
        Walk, settings=settings(max_examples=examples, stateful_step_count=steps)
    )
    return Walk.checked


def test_no_sequence_of_calls_breaks_the_environment() -> None:
    checked = walk(examples=60, steps=40)
    assert set(checked) == CHECKS
    assert checked["like its shadow"] > 60 * 20


@pytest.mark.slow
def test_no_long_sequence_of_calls_breaks_the_environment() -> None:
    checked = walk(examples=600, steps=100)
    assert set(checked) == CHECKS
    assert checked["like its shadow"] > 600 * 20

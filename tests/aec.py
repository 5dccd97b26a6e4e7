"""What the tests of the AEC environment share: games, random play, comparison, a referee."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from referee import Referee

from valety_env import polignac_v0, valety_v0
from valety_env.env import AECTable

# Both games, all numbers of players, the presets and the options that change when a match ends.
GAMES: dict[str, Callable[..., AECTable]] = {
    "valety": valety_v0.env,
    "valety by tricks": partial(valety_v0.env, count="trick"),
    "knaves": partial(valety_v0.env, "knaves"),
    "valety-L1": partial(valety_v0.env, "valety-L1"),
    "valety-L6": partial(valety_v0.env, "valety-L6"),
    **{f"polignac-{n}": partial(polignac_v0.env, num_players=n) for n in range(3, 8)},
    "polignac-classic": partial(polignac_v0.env, "polignac-classic"),
    "polignac with trump": partial(
        polignac_v0.env, num_players=5, trump="last_card", general_leads=True, tie="play_on"
    ),
}
FEW = ["valety", "knaves", "polignac-4", "polignac-7"]
BOTH = ["valety", "polignac-4"]


def legal(env: AECTable) -> list[int]:
    """Return the legal actions of the selected agent, by the mask in infos."""
    return np.flatnonzero(env.infos[env.agent_selection]["action_mask"]).tolist()


def choose(env: AECTable, rng: np.random.Generator, general: float = 0.15) -> int:
    """Return a random legal action; an announcement is a general with the given probability."""
    actions = legal(env)
    if actions == [52, 53]:
        return 53 if rng.random() < general else 52
    return int(rng.choice(actions))


def is_over(env: AECTable) -> bool:
    return all(env.terminations.values())


def play(env: AECTable, rng: np.random.Generator, steps: int = 10**6) -> Iterator[int]:
    """Play at random until the episode ends or for so many steps; yield every action made."""
    for _ in range(steps):
        if is_over(env):
            return
        action = choose(env, rng)
        env.step(action)
        yield action


def play_out(env: AECTable, seed: int = 0, steps: int = 10**6) -> None:
    for _ in play(env, np.random.default_rng(seed), steps):
        pass


def drain(env: AECTable) -> dict[str, float]:
    """Let all agents leave an episode that is over; return the reward that `last` told each."""
    told = {}
    for agent in env.agent_iter(100):
        _, told[agent], terminated, truncated, _ = env.last()
        assert terminated
        assert not truncated
        env.step(None)
    assert env.agents == []
    return told


def arrays_in(observation: Any) -> list[np.ndarray]:
    """Return the arrays of an observation, of whatever kind it is."""
    if isinstance(observation, dict):
        return [array for part in observation.values() for array in arrays_in(part)]
    return [observation]


def assert_equal_observations(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_equal_observations(one[key], other[key])
    else:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def assert_same(one: AECTable, other: AECTable) -> None:
    """Check that two environments look alike in all that users read."""
    assert one.agents == other.agents
    assert one.agent_selection == other.agent_selection
    assert one.rewards == other.rewards
    assert one._cumulative_rewards == other._cumulative_rewards
    assert one.terminations == other.terminations
    assert one.truncations == other.truncations
    assert_equal_observations(one.infos, other.infos)
    for agent in one.possible_agents:
        assert_equal_observations(one.observe(agent), other.observe(agent))
    np.testing.assert_array_equal(one.state(), other.state())
    assert one.record() == other.record()


def assert_go_on_alike(one: AECTable, other: AECTable, seed: int = 0, episodes: int = 2) -> None:
    """Play both on with the same actions, through further episodes, and compare at every step."""
    rng = np.random.default_rng(seed)
    assert_same(one, other)
    for _ in range(episodes):
        while one.agents:
            action = None if is_over(one) else choose(one, rng)
            one.step(action)
            other.step(action)
            assert one.agents == other.agents
            if one.agents:
                assert_equal_observations(one.last()[0], other.last()[0])
                assert one.last()[1:4] == other.last()[1:4]
                assert_equal_observations(one.infos, other.infos)
            assert one.rewards == other.rewards
        assert_same(one, other)
        one.reset()
        other.reset()
        assert_same(one, other)


class Judge:
    """Follows an environment by a referee that is told the cards dealt and the actions made."""

    def __init__(self, env: AECTable) -> None:
        """Begin with an environment just reset."""
        self.env = env
        self.rules = env.rules.to_dict()
        self.single_deal = env.setup.episode == "deal"
        if self.single_deal:
            self.rules |= {"max_deals": 1, "count": "deal"}
        (deal,) = env.record()["deals"]
        self.referee = Referee(self.rules, deal["dealer"])
        self.referee.deal(deal["hands"], deal["turned"])
        self.over = False

    def name(self, action: int) -> str:
        if action >= 52:
            return ["pass", "general"][action - 52]
        return self.rules["rank_order"][action % 13] + "SCDH"[action // 13]

    def follow(self, action: int) -> list[float]:
        """Follow a legal action that was just made; return the rewards it must have earned."""
        referee = self.referee
        referee.act(self.name(action))
        rewards = self._rewards(referee)
        self.over = referee.phase == "over"
        if referee.phase == "waiting for a deal":
            deal = self.env.record()["deals"][-1]
            referee.deal(deal["hands"], deal["turned"])
            assert (deal["dealer"], deal["leader"]) == (referee.dealer, referee.leader)
        return rewards

    def _rewards(self, referee: Referee) -> list[float]:
        n = referee.num_players
        nothing = [0.0] * n
        if referee.phase not in ("waiting for a deal", "over"):
            return nothing
        if self.env.setup.reward == "points":
            own = [-p if self.rules["scoring"] == "penalties" else p for p in referee.points]
            return [p - (sum(own) - p) / (n - 1) for p in own]
        if referee.phase != "over":
            return nothing
        winners = self.winners()
        w = len(winners)
        return [(n / w - 1) / (n - 1) if seat in winners else -1 / (n - 1) for seat in range(n)]

    def winners(self) -> list[int]:
        if not self.single_deal:
            return self.referee.winners
        if self.rules["scoring"] == "tricks":
            return [self.referee.deal_winner]
        least = min(self.referee.points)
        return [seat for seat, charged in enumerate(self.referee.points) if charged == least]


def deal_record(
    env: AECTable, hands: list[str], turned: str | None, words: str, dealer: int = 0
) -> dict[str, Any]:
    """Return the record of one deal with these cards, calls and plays, by the rules of `env`."""
    rules = env.rules.to_dict()
    referee = Referee(rules, dealer)
    order = rules["rank_order"]
    sorted_hands = [
        sorted(hand.split(), key=lambda card: ("SCDH".index(card[1]), order.index(card[0])))
        for hand in hands
    ]
    referee.deal(sorted_hands, turned)
    for word in words.split():
        referee.act(word)
    deal = {
        "dealer": dealer,
        "leader": referee.leader,
        "turned": turned,
        "hands": sorted_hands,
        "calls": [list(call) for call in referee.calls],
        "plays": [list(card) for card in referee.plays],
        "tricks": referee.tricks,
        "points": referee.points,
    }
    return {
        "format": 1,
        "game": env.setup.game,
        "rules": rules,
        "seed": 5,
        "episode": 3,
        "deals": [deal],
        "totals": referee.totals,
        "winners": referee.winners,
        "illegal": None,
    }

"""Rewards of the AEC environment, against a referee that is told the cards."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from aec import (
    BOTH,
    FEW,
    GAMES,
    Judge,
    choose,
    deal_record,
    drain,
    is_over,
    legal,
    play,
    play_out,
)
from referee import Referee

from valety_env import polignac_v0, replay, valety_v0
from valety_env.env import AECTable
from valety_env.rules import Rules, make_rules


def judge_episode(env: AECTable, rng: np.random.Generator) -> dict[str, int]:
    """Play an episode and check every reward of it by the referee; return what happened."""
    judge = Judge(env)
    agents = env.possible_agents
    seen = {"twice in a row": 0, "paid to who moves twice in a row": 0, "paid": 0}
    owed = dict.fromkeys(agents, 0.0)
    whole = dict.fromkeys(agents, 0.0)
    told = dict.fromkeys(agents, 0.0)
    assert env.rewards == owed
    while not judge.over:
        agent = env.agent_selection
        assert agent == f"player_{judge.referee.to_move()}"
        assert sorted(map(judge.name, legal(env))) == sorted(judge.referee.legal())
        _, reward, terminated, truncated, _ = env.last()
        assert reward == pytest.approx(owed[agent], abs=1e-12)
        assert (terminated, truncated) == (False, False)
        told[agent] += reward
        owed[agent] = 0.0
        action = choose(env, rng)
        env.step(action)
        expected = judge.follow(action)
        assert list(env.rewards) == agents
        assert all(type(each) is float for each in env.rewards.values())
        assert list(env.rewards.values()) == pytest.approx(expected, abs=1e-12)
        assert sum(env.rewards.values()) == pytest.approx(0, abs=1e-12)
        for name, amount in zip(agents, expected, strict=True):
            owed[name] += amount
            whole[name] += amount
        assert env.terminations == dict.fromkeys(agents, judge.over)
        assert env.truncations == dict.fromkeys(agents, False)
        again = not judge.over and env.agent_selection == agent
        seen["twice in a row"] += again
        seen["paid"] += any(expected)
        seen["paid to who moves twice in a row"] += again and any(expected)
    # What the end gave reaches everyone, whoever made the last move.
    for agent, reward in drain(env).items():
        assert reward == pytest.approx(owed[agent], abs=1e-12)
        told[agent] += reward
    assert told == pytest.approx(whole, abs=1e-12)
    assert env.record()["winners"] == judge.winners()
    return seen


@pytest.mark.parametrize("episode", ["match", "deal"])
@pytest.mark.parametrize("reward", ["win", "points"])
@pytest.mark.parametrize("name", GAMES)
def test_rewards_are_what_the_referee_says_at_every_step(
    name: str, reward: str, episode: str
) -> None:
    env = GAMES[name](reward=reward, episode=episode, illegal="raise")
    rng = np.random.default_rng(1)
    seen: dict[str, int] = {}
    for number in range(4 if episode == "match" else 12):
        env.reset(seed=21 if number == 0 else None)
        for event, times in judge_episode(env, rng).items():
            seen[event] = seen.get(event, 0) + times
    assert seen["twice in a row"] > 0
    assert seen["paid"] > 0
    if reward == "points" and episode == "match" and name == "valety":
        # Who takes the last trick and has won the deal leads the next: paid, then to move again.
        assert seen["paid to who moves twice in a row"] > 0


@pytest.mark.plain
@pytest.mark.parametrize("name", BOTH)
def test_rewards_of_one_deal_are_what_the_referee_says(name: str) -> None:
    env = GAMES[name](reward="points", episode="deal", illegal="raise")
    env.reset(seed=2)
    seen = judge_episode(env, np.random.default_rng(2))
    assert seen["paid"] == 1


@pytest.mark.parametrize("name", ["valety", "knaves", "polignac-4"])
def test_rewards_are_cleared_at_the_next_step_and_last_tells_each_agent_its_own(name: str) -> None:
    env = GAMES[name](reward="points")
    env.reset(seed=3)
    rng = np.random.default_rng(3)
    deals = 0
    while not is_over(env):
        env.step(choose(env, rng))
        if is_over(env) or not any(env.rewards.values()):
            continue
        # A deal is over and the next has begun.
        deals += 1
        paid = dict(env.rewards)
        waiting = set(env.agents)
        while waiting and not is_over(env):
            agent = env.agent_selection
            if agent in waiting:
                assert env.last()[1] == paid[agent]
                waiting.remove(agent)
            else:
                assert env.last()[1] == 0
            env.step(choose(env, rng))
            if waiting:
                assert env.rewards == dict.fromkeys(env.agents, 0.0)
    assert deals > 1


def test_a_single_winner_gets_1_and_the_losers_share_its_opposite() -> None:
    for name in FEW:
        env = GAMES[name]()
        n = env.max_num_agents
        sharers_seen = set()
        for seed in range(40):
            env.reset(seed=seed)
            play_out(env, seed)
            winners = env.record()["winners"]
            w = len(winners)
            sharers_seen.add(w)
            for seat, agent in enumerate(env.agents):
                own = (n / w - 1) / (n - 1) if seat in winners else -1 / (n - 1)
                assert env.rewards[agent] == pytest.approx(own)
                if w == 1:
                    assert env.rewards[agent] == (1 if seat in winners else own)
        assert 1 in sharers_seen
        if name == "polignac-4":
            assert 2 in sharers_seen


# The lowest deal points of Valety, with the cards of the rules page (V11).
WORST_VALETY = {
    "hands": [
        "JH JS 2S 3S 4S 5S 6S 7S 8S 9S TS QS KS AS 2C 2D 3D",
        "JD JC AC KC QC TC 9C 8C 7C AD KD QD TD 9D 8D 7D 6D",
    ],
    "turned": "2H",
    "words": "JH JD JS JC 2C AC AD 2D KD 3D QD 2S TD 3S 9D 4S 8D 5S 7D 6S 6D 7S "
    "KC 8S QC 9S TC TS 9C QS 8C KS 7C AS",
}
# A general that takes all four jacks and misses one trick (P11).
WORST_POLIGNAC = {
    "hands": [
        "AS KS AC KC AD KD AH 7H",
        "JS TS JC TC JD TD JH TH",
        "QS 9S QC 9C QD 9D KH QH",
        "8S 7S 8C 7C 8D 7D 9H 8H",
    ],
    "turned": None,
    "words": "general AS JS 9S 7S AC JC 9C 7C AD JD 9D 7D AH JH QH 8H 7H TH KH 9H "
    "QS 8S KS TS KC TC QC 8C KD TD QD 8D",
}


def test_the_worst_deals_give_the_worst_rewards_and_an_illegal_action_gives_no_less() -> None:
    env = replay(deal_record(valety_v0.env(), **WORST_VALETY), reward="points")
    assert env.record()["deals"][0]["points"] == [-8, 15]
    assert env.rewards == {"player_0": -23, "player_1": 23}
    assert env.rules.worst_points == -23
    env = replay(deal_record(polignac_v0.env(), **WORST_POLIGNAC), reward="points")
    assert env.record()["deals"][0]["points"] == [10, 0, 0, 0]
    assert env.rewards["player_0"] == env.rules.worst_points == -10
    for name, fine in (("valety", -23), ("polignac-4", -10), ("polignac-7", -10)):
        env = GAMES[name](reward="points")
        env.reset(seed=0)
        env.step(-1)
        assert min(env.rewards.values()) == fine


def outcomes(rules: Rules) -> set[float]:
    """Return every own-minus-mean-of-others that a deal can give, by trying all deals and plays."""
    fields = rules.to_dict() | {"max_deals": 1, "count": "deal"}
    n, size = rules.num_players, rules.hand_size or 0
    found: set[float] = set()

    def deals(left: list[str], seats: int) -> Any:
        if seats == 0:
            yield [], left
            return
        for hand in combinations(left, size):
            for others, rest in deals([c for c in left if c not in hand], seats - 1):
                yield [list(hand), *others], rest

    def follow(hands: list[list[str]], turned: str | None, moves: list[str]) -> None:
        referee = Referee(fields, 0)
        referee.deal(hands, turned)
        for move in moves:
            referee.act(move)
        choices = referee.legal()
        if choices:
            for choice in choices:
                follow(hands, turned, [*moves, choice])
            return
        sign = -1 if rules.lowest_wins else 1
        points = [sign * p for p in referee.points]
        found.update(p - (sum(points) - p) / (n - 1) for p in points)

    for hands, rest in deals(list(rules.pack), n):
        for turned in rest if rules.trump == "turned" else [None]:
            follow(hands, turned, [])
    return found


# Rules, and whether a deal reaches the worst that `Rules` tells.
TINY = {
    "valety-L1": (make_rules("valety-L1"), True),
    "two jacks, nothing undealt": (
        Rules(pack="JS QS JH QH", hand_size=2, trump="none", target=20),
        False,
    ),
    "four jacks in two tricks": (
        Rules(pack="JS JC JD JH QS", hand_size=2, trump="none", target=20),
        True,
    ),
    "more penalties than tricks": (
        Rules(pack="JS QS JH QH KH", hand_size=2, target=20, jack_penalties=(0, 9, 9, 3)),
        True,
    ),
    "one trick": (Rules(pack="JS QS JD", hand_size=1, target=20), True),
    "no jacks": (Rules(pack="2S 3S 4H 5H 6H", hand_size=2, target=20), True),
    "three players": (
        Rules(num_players=3, pack="JS JC JD QS QC AD", trump="none", target=20),
        False,
    ),
    "charges": (
        Rules(
            num_players=3,
            pack="JS JC JH AS AC KS",
            trump="none",
            scoring="penalties",
            jack_penalties=(2, 1, 1, 1),
            num_deals=1,
        ),
        True,
    ),
    "charges with a general": (
        Rules(
            num_players=2,
            pack="JS JC QS QC KS AS",
            trump="none",
            scoring="penalties",
            jack_penalties=(2, 1, 1, 1),
            general=True,
            num_deals=1,
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", TINY)
def test_no_deal_of_a_tiny_pack_gives_less_than_the_fine(name: str) -> None:
    rules, is_reached = TINY[name]
    worst = min(outcomes(rules))
    assert worst >= rules.worst_points
    assert (worst == pytest.approx(rules.worst_points)) == is_reached


@pytest.mark.parametrize("name", GAMES)
def test_no_deal_of_random_play_gives_less_than_the_fine(name: str) -> None:
    env = GAMES[name](reward="points", episode="deal")
    least = 0.0
    for seed in range(30):
        env.reset(seed=seed)
        play_out(env, seed)
        least = min(least, *env.rewards.values())
    assert env.rules.worst_points <= least < 0


@pytest.mark.parametrize("name", BOTH)
def test_writing_into_rewards_that_were_given_out_changes_none_that_follow(name: str) -> None:
    env = GAMES[name]()
    env.reset(seed=3)
    for _ in play(env, np.random.default_rng(3), 20):
        assert env.rewards == dict.fromkeys(env.possible_agents, 0.0)
        env.rewards["player_0"] = 5.0

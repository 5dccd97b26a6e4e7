"""Seeds, copies, saved states and records of the AEC environment."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pettingzoo
import pytest
from aec import (
    BOTH,
    FEW,
    GAMES,
    assert_go_on_alike,
    assert_same,
    choose,
    deal_record,
    drain,
    is_over,
    play,
    play_out,
)

from valety_env import env as env_module
from valety_env import polignac_v0, replay, valety_v0
from valety_env._jit import JIT_DISABLED
from valety_env.env import AECTable
from valety_env.notation import RecordError, record_from_text, record_to_text
from valety_env.observations import ENCODERS

# Seeds.


def dealt(env: AECTable) -> tuple[Any, ...]:
    """Return what a deal depends on: who deals, and all cards."""
    deal = env.record()["deals"][-1]
    return deal["dealer"], deal["turned"], str(deal["hands"])


@pytest.mark.parametrize("name", FEW)
def test_a_seed_fixes_everything_that_follows_later_episodes_included(name: str) -> None:
    env, other = GAMES[name](), GAMES[name]()
    env.reset(seed=77)
    # A past does not matter.
    other.reset(seed=5)
    play_out(other, seed=5, steps=30)
    other.reset()
    other.reset(seed=77)
    assert_go_on_alike(env, other, episodes=3)


@pytest.mark.parametrize("name", BOTH)
def test_reset_goes_on_to_the_next_episode_however_the_last_one_ended(name: str) -> None:
    def abandoned(env: AECTable) -> None:
        play_out(env, steps=7)

    def unplayed(env: AECTable) -> None:
        pass

    def finished(env: AECTable) -> None:
        play_out(env, seed=3)
        drain(env)

    def ended_illegally(env: AECTable) -> None:
        env.step(-1)

    seen: list[list[Any]] = []
    for way in (abandoned, unplayed, finished, ended_illegally):
        env = GAMES[name]()
        env.reset(seed=9)
        seen.append([dealt(env)])
        for number in range(1, 5):
            way(env)
            env.reset()
            assert env.record()["episode"] == number
            assert env.record()["seed"] == 9
            seen[-1].append(dealt(env))
    assert all(deals == seen[0] for deals in seen)
    assert len(set(seen[0])) == 5


def test_later_deals_of_an_episode_do_not_depend_on_how_earlier_ones_were_played() -> None:
    seen = set()
    for seed in range(4):
        env = polignac_v0.env()
        env.reset(seed=1)
        play_out(env, seed=seed)
        record = env.record()
        assert len(record["deals"]) == 4
        seen.add(str([(deal["dealer"], deal["hands"]) for deal in record["deals"]]))
    assert len(seen) == 1


@pytest.mark.parametrize("name", BOTH)
def test_other_seeds_deal_other_cards(name: str) -> None:
    env = GAMES[name]()
    seen = set()
    for seed in [*range(50), 2**32, 2**63, 2**64 - 1]:
        env.reset(seed=seed)
        assert env.record()["seed"] == seed
        seen.add(dealt(env))
    assert len(seen) == 53


def test_without_any_seed_environments_differ_and_the_record_tells_the_seed() -> None:
    env, other = valety_v0.env(), valety_v0.env()
    env.reset()
    other.reset()
    seed = env.record()["seed"]
    assert seed != other.record()["seed"]
    again = valety_v0.env()
    again.reset(seed=seed)
    assert_go_on_alike(env, again)


@pytest.mark.plain
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint64, np.array])
def test_a_seed_can_be_any_whole_number(kind: Any) -> None:
    env, other = valety_v0.env(), valety_v0.env()
    env.reset(seed=kind(99))
    other.reset(seed=99)
    assert_same(env, other)
    assert type(env.record()["seed"]) is int


@pytest.mark.plain
@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "7", True, np.True_, [1], np.int64(-3)])
def test_a_wrong_seed_is_an_error_and_changes_nothing(seed: Any) -> None:
    env, other = valety_v0.env(), valety_v0.env()
    for each in (env, other):
        each.reset(seed=4)
        play_out(each, steps=5)
    with pytest.raises(ValueError, match=r"seed=.*whole number in 0…2\^64-1"):
        env.reset(seed=seed)
    assert_same(env, other)
    env.reset()
    other.reset()
    assert_same(env, other)


def test_construction_options_survive_every_reset() -> None:
    options: dict[str, Any] = {
        "episode": "deal",
        "reward": "points",
        "observation": {f"player_{i}": list(ENCODERS)[i % 4] for i in range(5)},
        "dtype": "int8",
        "mask": "info",
        "illegal": "penalise",
        "render_mode": "ansi",
        "general_charge": 7,
    }
    env = polignac_v0.env(num_players=5, **options)
    for number in range(4):
        env.reset(seed=1 if number % 2 else None, options={"episode": "match"})
        assert env.rules.general_charge == 7
        assert env.render_mode == "ansi"
        for name in ("episode", "reward", "observation", "dtype", "mask", "illegal"):
            assert getattr(env.setup, name) == options[name]
        offender = env.agent_selection
        env.step(-1)
        assert env.rewards[offender] == env.rules.worst_points == -12
        assert env.agent_selection == offender
        rng = np.random.default_rng(number)
        while not is_over(env):
            assert env.observation_space(env.agent_selection).contains(env.last()[0])
            env.step(choose(env, rng))
        assert len(env.record()["deals"]) == 1
        assert any(env.rewards.values())


# Copies.

# Within a trick, between tricks, at the announcements, where a deal has just ended (for several
# games and seeds), at the end, when some agents have left, when all have, after an illegal end.
MOMENTS: dict[str, Callable[[AECTable], None]] = {
    "start": lambda env: None,
    "first calls or plays": lambda env: play_out(env, steps=3),
    "in a deal": lambda env: play_out(env, steps=17),
    "between deals": lambda env: to_next_deal(env),
    "later deal": lambda env: (to_next_deal(env), play_out(env, steps=9)),
    "end": lambda env: play_out(env),
    "one has left": lambda env: (play_out(env), env.step(None)),
    "all have left": lambda env: (play_out(env), drain(env)),
    "illegal end": lambda env: (play_out(env, steps=11), env.step(-1)),
    "after an illegal end": lambda env: (play_out(env, steps=11), env.step(0), drain_if_over(env)),
}


def to_next_deal(env: AECTable) -> None:
    deals = len(env.record()["deals"])
    for _ in play(env, np.random.default_rng(2)):
        if len(env.record()["deals"]) > deals:
            return


def drain_if_over(env: AECTable) -> None:
    if is_over(env):
        drain(env)


def through_state(env: AECTable) -> AECTable:
    other = GAMES_OF[env.setup.game](**OPTIONS)
    other.set_state(env.get_state())
    return other


def through_pickled_state(env: AECTable) -> AECTable:
    other = GAMES_OF[env.setup.game](**OPTIONS)
    other.reset(seed=1)
    play_out(other, steps=20)
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    return other


OPTIONS = {"reward": "points"}
GAMES_OF = {
    "valety": valety_v0.env,
    "knaves": GAMES["knaves"],
    "polignac": polignac_v0.raw_env,
    "polignac-classic": GAMES["polignac-classic"],
}
COPIES: dict[str, Callable[[AECTable], AECTable]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "get_state": through_state,
    "pickled state": through_pickled_state,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("game", GAMES_OF)
def test_a_copy_goes_on_identically_and_apart(game: str, moment: str, how: str) -> None:
    env = GAMES_OF[game](**OPTIONS)
    env.reset(seed=31)
    MOMENTS[moment](env)
    untouched = COPIES[how](env)
    before = copy.deepcopy(env)
    # Going on with the one changes nothing in the other.
    other = COPIES[how](env)
    assert_same(env, other)
    play_out(other, seed=1)
    other.reset()
    play_out(other, seed=2, steps=5)
    assert_same(env, before)
    assert_same(env, untouched)
    assert_go_on_alike(env, untouched)


def test_a_state_can_be_taken_up_again_and_again() -> None:
    env = valety_v0.env(reward="points")
    env.reset(seed=6)
    to_next_deal(env)
    play_out(env, seed=6, steps=5)
    state = env.get_state()
    as_taken = pickle.dumps(state)
    copied = copy.deepcopy(env)
    for seed in range(5):
        play_out(env, seed)
        drain(env)
        env.reset()
        env.set_state(state)
        assert_same(env, copied)
    # Writing into an environment's dicts does not reach the state.
    env.rewards["player_0"] = 99.0
    env._cumulative_rewards["player_0"] = 99.0
    env.terminations["player_0"] = True
    env.agents.clear()
    env.set_state(state)
    assert_same(env, copied)
    assert pickle.dumps(state) == as_taken
    assert_go_on_alike(env, copied)


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="this PettingZoo has no registry")
@pytest.mark.parametrize("how", ["deepcopy", "pickle", "state"])
@pytest.mark.parametrize("game", ["valety", "polignac"])
def test_what_pettingzoo_makes_can_be_copied_too(game: str, how: str) -> None:
    made = pettingzoo.make("aec", f"valety/{game}-v0", reward="points")
    made.reset(seed=8)
    play_out(made.unwrapped, seed=8, steps=40)
    if how == "state":
        other = pettingzoo.make("aec", f"valety/{game}-v0", reward="points")
        other.reset(seed=0)
        other.unwrapped.set_state(made.unwrapped.get_state())
    else:
        other = copy.deepcopy(made) if how == "deepcopy" else pickle.loads(pickle.dumps(made))
    assert other.unwrapped is not made.unwrapped
    assert_go_on_alike(made.unwrapped, other.unwrapped)


def test_copies_of_an_environment_never_reset_are_such() -> None:
    env = polignac_v0.env(num_players=6)
    for how in ("deepcopy", "pickle"):
        other = COPIES[how](env)
        with pytest.raises(RuntimeError, match=r"reset\(\) must be called"):
            other.last()
        other.reset(seed=3)
        fresh = polignac_v0.env(num_players=6)
        fresh.reset(seed=3)
        assert_go_on_alike(other, fresh)


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_copy_needs_no_second_compilation() -> None:
    env = valety_v0.env()
    env.reset(seed=1)
    play_out(env, steps=3)
    env.state()
    kernels = [env_module.step_table, env_module.state_of_table]
    compiled = [len(kernel.signatures) for kernel in kernels]
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        play_out(other, steps=3)
        other.state()
    assert [len(kernel.signatures) for kernel in kernels] == compiled


def test_a_state_of_other_rules_or_another_kind_is_refused_and_changes_nothing() -> None:
    env, other = valety_v0.env(), valety_v0.env()
    for each in (env, other):
        each.reset(seed=2)
        play_out(each, steps=5)
    for made, said in (
        (valety_v0.env(target=21), "other rules"),
        (valety_v0.env("knaves"), "other rules"),
        (polignac_v0.env(), "other rules"),
        (valety_v0.env(episode="deal"), "episode='deal'.*episode='match'"),
    ):
        made.reset(seed=2)
        with pytest.raises(ValueError, match=said):
            env.set_state(made.get_state())
    for wrong in (None, 3, {}, env.record(), env, env.get_state().states):
        with pytest.raises(TypeError, match=r"set_state takes what get_state returned, not "):
            env.set_state(wrong)
    assert_go_on_alike(env, other)


def test_a_state_fits_an_environment_that_observes_otherwise() -> None:
    env = valety_v0.env(reward="points")
    other = valety_v0.env(reward="points", observation="tokens_v0", dtype="uint8", mask="info")
    alike = valety_v0.env(reward="points", observation="tokens_v0", dtype="uint8", mask="info")
    for each in (env, alike):
        each.reset(seed=2)
        play_out(each, seed=2, steps=50)
    other.set_state(env.get_state())
    assert_go_on_alike(other, alike)


# Records.


def through_json(record: dict[str, Any]) -> Any:
    loaded = json.loads(json.dumps(record))
    assert loaded == record
    return loaded


@pytest.mark.parametrize("episode", ["match", "deal"])
@pytest.mark.parametrize("reward", ["win", "points"])
@pytest.mark.parametrize("name", GAMES)
def test_a_record_replays_to_the_same_environment_at_any_moment(
    name: str, reward: str, episode: str
) -> None:
    options = {"reward": reward, "observation": "tokens_v0"}
    rng = np.random.default_rng(3)
    env = GAMES[name](episode=episode, **options)
    env.reset(seed=2**64 - 3)
    env.reset()
    moments = 0
    while True:
        if rng.random() < 0.04 or is_over(env) or sum(env.rewards.values()) != 0:
            record = through_json(env.record())
            # A deal in progress may be of a match or of a single deal: only its end can show.
            other = replay(record, episode=episode, **options)
            assert other.setup == env.setup
            assert_same(env, other)
            assert_go_on_alike(copy.deepcopy(env), other, episodes=1)
            moments += 1
        if is_over(env):
            break
        env.step(choose(env, rng))
    assert moments > 0
    assert record["winners"]
    # At the end the record alone shows its winners, whatever kind of episode is taken for it.
    other = replay(record, **options)
    assert other.record() == record
    assert is_over(other)
    assert other.rewards == env.rewards


@pytest.mark.parametrize("name", FEW)
def test_a_record_of_an_illegal_end_replays_to_it(name: str) -> None:
    for moment in (0, 5, 21):
        for action in (-1, 0, 51, 52, 53, 63, 10**17, -(10**30), 10**30):
            env = GAMES[name](reward="points")
            env.reset(seed=moment)
            play_out(env, seed=moment, steps=moment)
            env.step(action)
            if not is_over(env):
                continue
            record = through_json(env.record())
            assert record["illegal"] is not None
            assert record["winners"] == []
            for illegal in ("terminate", "raise", "penalise"):
                other = replay(record, reward="points", illegal=illegal)
                assert other.setup.illegal == illegal
                assert_same(env, other)
            assert record_from_text(record_to_text(record)) == record
            fresh = copy.deepcopy(env)
            assert_go_on_alike(fresh, replay(record, reward="points"))


@pytest.mark.plain
@pytest.mark.parametrize("name", BOTH)
def test_a_record_has_the_documented_form(name: str) -> None:
    env = GAMES[name]()
    env.reset(seed=7)
    play_out(env, steps=12)
    record = env.record()
    assert list(record) == [
        *("format", "game", "rules", "seed", "episode", "deals", "totals", "winners", "illegal")
    ]
    assert (record["format"], record["seed"], record["episode"]) == (1, 7, 0)
    assert record["game"] == name.split("-")[0]
    assert record["rules"] == env.rules.to_dict()
    (deal,) = record["deals"]
    assert list(deal) == [
        *("dealer", "leader", "turned", "hands", "calls", "plays", "tricks", "points")
    ]
    assert len(deal["calls"]) + len(deal["plays"]) == 12
    assert [len(hand) for hand in deal["hands"]] == [env.rules.hand_size] * env.max_num_agents
    assert_same(env, replay(through_json(record)))


@pytest.mark.parametrize("name", ["valety", "polignac-classic"])
def test_the_penalised_illegal_actions_are_not_in_the_record(name: str) -> None:
    env = GAMES[name](illegal="penalise")
    env.reset(seed=7)
    play_out(env, steps=6)
    before = env.record()
    env.step(-1)
    assert env.record() == before
    other = replay(before, illegal="penalise")
    assert other.agent_selection == env.agent_selection
    np.testing.assert_array_equal(other.state(), env.state())


def record_of(name: str, steps: int = 10**6, **options: Any) -> dict[str, Any]:
    env = GAMES[name](**options)
    env.reset(seed=13)
    play_out(env, seed=13, steps=steps)
    record = env.record()
    # What is given out is not what the environment keeps.
    assert record == env.record()
    assert record["deals"] is not env.record()["deals"]
    return record


def change_play(record: dict[str, Any], deal: int, play: int, card: str) -> None:
    record["deals"][deal]["plays"][play][1] = card


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a card nobody holds": (
        lambda r: change_play(r, 1, 4, r["deals"][1]["turned"]),
        r"deal 2, play 5: player_\d may not play",
    ),
    "another seat": (
        lambda r: r["deals"][0]["plays"][7].__setitem__(0, 1 - r["deals"][0]["plays"][7][0]),
        r"deal 1, play 8: player_\d may not play .*player_\d is to move",
    ),
    "a play left out": (lambda r: r["deals"][0]["plays"].pop(), r"deal 1"),
    "a call in Valety": (
        lambda r: r["deals"][1]["calls"].append([0, "pass"]),
        r"deal 2, call 1: player_0 may not say pass",
    ),
    "points": (lambda r: r["deals"][1].update(points=[40, 0]), r"deal 2: points are \[40, 0\]"),
    "totals": (lambda r: r.update(totals=[99, 0]), r"totals are \[99, 0\]"),
    "winners": (lambda r: r.update(winners=[0, 1]), r"winners are \[0, 1\]"),
    "a card twice": (
        lambda r: r["deals"][0]["hands"][0].__setitem__(0, r["deals"][0]["hands"][1][0]),
        r"deal 1: .*",
    ),
    "dealer": (
        lambda r: r["deals"][1].update(dealer=r["deals"][0]["dealer"]),
        r"deal 2: dealer is player_\d, by the rules it is player_\d",
    ),
    "no format": (lambda r: r.pop("format"), r"format"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_an_error_that_names_the_deal_and_the_play(damage: str) -> None:
    record = record_of("valety")
    assert len(record["deals"]) > 2
    do_damage, said = DAMAGES[damage]
    do_damage(record)
    with pytest.raises(RecordError, match=said) as caught:
        replay(record)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [None, [], "record", 3, {}])
def test_what_is_no_record_is_an_error(wrong: Any) -> None:
    with pytest.raises(RecordError):
        replay(wrong)


def test_replay_takes_the_rules_from_the_record_and_other_options_from_the_caller() -> None:
    record = record_of("valety", steps=30)
    with pytest.raises(ValueError, match=r"target=30: the rules are those of the record"):
        replay(record, target=30)
    with pytest.raises(ValueError, match=r"game='knaves': the rules are those of the record"):
        replay(record, game="knaves")
    with pytest.raises(ValueError, match=r"reward='x'"):
        replay(record, reward="x")
    env = replay(record, render_mode="ansi", mask="info", dtype="int8")
    assert (env.render_mode, env.setup.mask) == ("ansi", "info")
    assert isinstance(env.render(), str)
    assert env.last()[0].dtype == np.int8


def test_replay_refuses_the_other_kind_of_episode_where_the_record_shows_it() -> None:
    match = record_of("valety")
    with pytest.raises(ValueError, match=r"episode='deal': the record is of the other kind"):
        replay(match, episode="deal")
    deal = record_of("valety", episode="deal")
    with pytest.raises(ValueError, match=r"episode='match': the record is of the other kind"):
        replay(deal, episode="match")
    assert replay(deal).setup.episode == replay(deal, episode="deal").setup.episode == "deal"
    assert replay(match).setup.episode == replay(match, episode="match").setup.episode == "match"
    # Where a match would have ended within the deal.
    hands = ["JH JS 2S 3S 4S", "2C 3C 4C 5C 6C"]
    env = valety_v0.env(
        pack="JH JS 2S 3S 4S 2C 3C 4C 5C 6C 7D", hand_size=5, target=2, count="trick"
    )
    record = deal_record(
        valety_v0.env(env.rules, count="deal"), hands, "7D", "2S 2C 3S 3C 4S 4C JH 5C JS 6C"
    )
    record["rules"]["count"] = "trick"
    # Five tricks and five points of penalties: 0 to 0, and the tricks decide (V6).
    record["winners"] = [0]
    single = replay(record)
    assert single.setup.episode == "deal"
    with pytest.raises(ValueError, match=r"episode='match': the record is of the other kind"):
        replay(record, episode="match")

"""The AEC environment as PettingZoo, wrappers and users' loops see it."""

import copy
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pettingzoo
import pytest
from aec import (
    BOTH,
    FEW,
    GAMES,
    arrays_in,
    assert_equal_observations,
    assert_same,
    choose,
    drain,
    is_over,
    play,
    play_out,
)

from valety_env import polignac_v0, valety_v0
from valety_env.env import AECTable
from valety_env.episode import DTYPES
from valety_env.observations import ENCODERS, encode_views

with warnings.catch_warnings():
    # It loads a game of its own in a way that it calls old.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, render_test, seed_test, state_test

# What PettingZoo says of every Dict observation that is not one of its own games.
TWO_WARNINGS = {
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or "
    "gymnasium.spaces.discrete",
}


def warnings_of_pettingzoo(name: str, mask: str) -> set[str]:
    def make() -> AECTable:
        return GAMES[name](mask=mask)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(make(), num_cycles=150)
        seed_test(make, num_cycles=150)
        # It wants a parallel environment as well, of which it reads what an AEC one has too.
        state_test(make(), make(), num_cycles=150)
    return {str(warning.message) for warning in caught}


@pytest.mark.parametrize("name", GAMES)
def test_pettingzoo_s_tests_pass_and_only_its_two_warnings_of_dicts_come(name: str) -> None:
    assert warnings_of_pettingzoo(name, "observation") == TWO_WARNINGS


@pytest.mark.parametrize("name", GAMES)
def test_pettingzoo_s_tests_pass_without_any_warning_when_the_mask_is_in_infos(name: str) -> None:
    assert warnings_of_pettingzoo(name, "info") == set()


@pytest.mark.parametrize("name", FEW)
def test_pettingzoo_s_render_test_passes(name: str) -> None:
    made: list[AECTable] = []

    def make(render_mode: str) -> AECTable:
        made.append(GAMES[name](render_mode=render_mode))
        made[-1].metadata["render_fps"] = 1000  # a window waits between pictures
        return made[-1]

    render_test(make)
    assert {env.render_mode for env in made} == {"ansi", "human", "rgb_array"}


def test_there_is_no_stack_of_wrappers() -> None:
    for module in (valety_v0, polignac_v0):
        for make in (module.env, module.raw_env):
            env = make()
            assert type(env) is AECTable
            assert env.unwrapped is env


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="this PettingZoo has no registry")
def test_pettingzoo_makes_both_games_by_name() -> None:
    env = pettingzoo.make("aec", "valety/valety-v0", reward="points")
    assert isinstance(env.unwrapped, AECTable)
    assert env.unwrapped.setup.reward == "points"
    env = pettingzoo.make("aec", "valety/polignac-v0", num_players=5)
    env.reset(seed=3)
    assert env.possible_agents == [f"player_{seat}" for seat in range(5)]
    for _ in env.agent_iter():
        observation, _, terminated, _, _ = env.last()
        legal = np.flatnonzero(observation["action_mask"])
        env.step(None if terminated else int(legal[-1]))
    assert env.unwrapped.record()["winners"]


def test_metadata_and_names() -> None:
    for name, make in GAMES.items():
        env = make()
        family = "polignac_v0" if name.startswith("polignac") else "valety_v0"
        assert env.metadata["name"] == str(env) == family
        assert env.metadata["render_modes"] == ["ansi", "human", "rgb_array"]
        assert env.metadata["is_parallelizable"] is False
        assert env.possible_agents == [f"player_{seat}" for seat in range(env.rules.num_players)]
        assert env.max_num_agents == env.rules.num_players
        assert env.action_space("player_0").n == (54 if family == "polignac_v0" else 52)
    env = valety_v0.env()
    env.metadata["name"] = "mine"
    assert valety_v0.env().metadata["name"] == AECTable.metadata["name"] == "valety_v0"


@pytest.mark.parametrize("name", FEW)
def test_spaces_are_the_same_objects_for_life(name: str) -> None:
    env = GAMES[name]()

    def spaces() -> list[Any]:
        agents = env.possible_agents
        return [
            *(env.observation_space(agent) for agent in agents),
            *(env.action_space(agent) for agent in agents),
            *(env.observation_spaces[agent] for agent in agents),
            *(env.action_spaces[agent] for agent in agents),
            env.state_space,
        ]

    first = spaces()
    half = len(first) // 2
    assert all(a is b for a, b in zip(first[:half], first[half:-1], strict=True))
    assert len({id(space) for space in first}) == half + 1
    env.reset(seed=1)
    play_out(env, steps=20)
    state = env.get_state()
    play_out(env)
    drain(env)
    env.reset()
    env.set_state(state)
    copy.deepcopy(env)
    assert all(a is b for a, b in zip(first, spaces(), strict=True))


@pytest.mark.parametrize("mask", ["observation", "info"])
@pytest.mark.parametrize("name", GAMES)
def test_the_mask_is_int8_and_sampling_by_it_is_legal_and_it_is_zero_for_who_waits(
    name: str, mask: str
) -> None:
    env = GAMES[name](mask=mask, illegal="raise")
    env.reset(seed=4)
    size = env.action_space("player_0").n
    while True:
        for agent in env.agents:
            moves = agent == env.agent_selection and not is_over(env)
            in_infos = env.infos[agent]["action_mask"]
            masks = [in_infos]
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            if mask == "observation":
                masks.append(observation["action_mask"])
            else:
                assert isinstance(observation, np.ndarray)
            for each in masks:
                assert each.dtype == np.int8
                assert each.shape == (size,)
                assert set(each.tolist()) <= {0, 1}
                assert each.any() == moves
                np.testing.assert_array_equal(each, in_infos)
        if is_over(env):
            break
        agent = env.agent_selection
        mask_of_mover = env.infos[agent]["action_mask"]
        action = env.action_space(agent).sample(mask_of_mover)
        assert mask_of_mover[action] == 1
        env.step(action)


@pytest.mark.parametrize("name", FEW)
def test_infos_are_new_at_each_step_and_one_object_within_it_with_the_same_keys(name: str) -> None:
    env = GAMES[name]()
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    kept: list[dict[str, dict[str, Any]]] = []
    while env.agents:
        infos = env.infos
        assert env.infos is infos
        assert all(infos is not earlier for earlier in kept)
        assert list(infos) == env.agents
        for agent in env.agents:
            inner = infos[agent]
            assert all(inner is not earlier.get(agent) for earlier in kept)
            assert list(inner) == ["action_mask"]
            assert all(np.asarray(each).dtype.kind in "iuf" for each in inner.values())
        agent = env.agent_selection
        assert env.last()[4] is infos[agent]
        assert env.infos is infos
        env.observe(agent)
        assert env.last()[4] is infos[agent]
        kept.append(infos)
        env.step(None if is_over(env) else choose(env, rng))
    assert env.infos == {}
    # Nobody took agents out of dicts that were given out.
    assert all(list(infos) == env.possible_agents for infos in kept[: -len(env.possible_agents)])
    assert [len(infos) for infos in kept[-len(env.possible_agents) :]] == list(
        range(len(env.possible_agents), 0, -1)
    )


@pytest.mark.parametrize("name", BOTH)
def test_keys_that_a_wrapper_adds_to_infos_do_no_harm(name: str) -> None:
    env, other = GAMES[name](), GAMES[name]()
    for each in (env, other):
        each.reset(seed=5)
    rng = np.random.default_rng(5)
    while env.agents:
        for agent in env.agents:
            env.infos[agent]["elapsed"] = 17
            env.infos[agent]["note"] = "mine"
        assert env.last()[4]["elapsed"] == 17
        action = None if is_over(env) else choose(env, rng)
        env.step(action)
        other.step(action)
        assert_same(env, other)
    env.reset()
    other.reset()
    assert_same(env, other)


@pytest.mark.parametrize("options", [None, {}, {"anything": 1, "deck": ["2S"]}])
def test_reset_accepts_any_options_and_they_change_nothing(options: dict[str, Any] | None) -> None:
    env, other = valety_v0.env(), valety_v0.env()
    env.reset(seed=3, options=options)
    other.reset(seed=3)
    assert_same(env, other)
    env.reset(options=options)
    other.reset()
    assert_same(env, other)


def observe_all(env: AECTable) -> None:
    """Observe every possible agent twice, and see that the selected one's mask alone is set."""
    for agent in env.possible_agents:
        first, second = env.observe(agent), env.observe(agent)
        assert_equal_observations(first, second)
        assert env.observation_space(agent).contains(first)
        moves = bool(env.agents) and not is_over(env) and agent == env.agent_selection
        assert first["action_mask"].any() == moves


@pytest.mark.parametrize("name", FEW)
def test_everyone_can_observe_at_any_time(name: str) -> None:
    env = GAMES[name]()
    env.reset(seed=2)
    observe_all(env)
    for _ in play(env, np.random.default_rng(0)):
        observe_all(env)
    assert is_over(env)
    at_end = [env.observe(agent) for agent in env.possible_agents]
    for _ in env.agent_iter():
        env.step(None)
        observe_all(env)
    for agent, observation in zip(env.possible_agents, at_end, strict=True):
        assert_equal_observations(env.observe(agent), observation)
    assert env.state_space.contains(env.state())
    env.reset()
    observe_all(env)
    # After an end by an illegal action the table stands as it did, and nobody has a move.
    play_out(env, steps=10)
    before = [env.observe(agent)["observation"] for agent in env.possible_agents]
    env.step(-1)
    observe_all(env)
    drain(env)
    observe_all(env)
    for agent, observation in zip(env.possible_agents, before, strict=True):
        np.testing.assert_array_equal(env.observe(agent)["observation"], observation)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("name", FEW)
def test_an_observation_is_what_the_encoder_makes_of_the_view(name: str, encoder: str) -> None:
    env = GAMES[name](observation=encoder, mask="info")
    env.reset(seed=6)
    for _ in play(env, np.random.default_rng(6), steps=60):
        for seat, agent in enumerate(env.possible_agents):
            made = env.setup.encoders[seat]
            row = np.empty((1, made.layout.size), np.float32)
            view = env.view(agent)
            encode_views(made.code, env.setup.played.packed, view, row)
            assert view[0].seat == seat
            assert_equal_observations(env.observe(agent), made.shaped(row[0]))


METHODS = {
    "observe": lambda env: env.observe("player_0"),
    "last": lambda env: env.last(),
    "last without observation": lambda env: env.last(observe=False),
    "step": lambda env: env.step(0),
    "agent_iter": lambda env: env.agent_iter(),
    "state": lambda env: env.state(),
    "view": lambda env: env.view("player_1"),
    "record": lambda env: env.record(),
    "get_state": lambda env: env.get_state(),
    "render": lambda env: env.render(),
}


@pytest.mark.plain
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BOTH)
def test_before_the_first_reset_a_clear_error_says_what_to_call(name: str, method: str) -> None:
    env = GAMES[name](render_mode="ansi")
    with pytest.raises(RuntimeError, match=rf"reset\(\) must be called before {method.split()[0]}"):
        METHODS[method](env)
    env.reset(seed=0)
    METHODS[method](env)


def test_after_all_agents_have_left_stepping_is_a_clear_error() -> None:
    env = valety_v0.env("valety-L1")
    env.reset(seed=0)
    play_out(env)
    drain(env)
    for method in (lambda: env.step(None), lambda: env.step(0), env.last):
        with pytest.raises(RuntimeError, match=r"over for all agents: call reset\(\)"):
            method()
    assert list(env.agent_iter()) == []


def test_an_agent_that_is_over_takes_no_action_but_none() -> None:
    env = valety_v0.env("valety-L1")
    env.reset(seed=0)
    play_out(env)
    infos, rewards = env.infos, env.rewards
    with pytest.raises(ValueError, match=r"over for player_0: its action is None, not 3"):
        env.step(3)
    assert env.infos is infos
    assert env.rewards is rewards
    assert env.agents == env.possible_agents
    drain(env)


@pytest.mark.parametrize("agent", ["player_2", "nobody", 0, None])
def test_an_agent_that_does_not_exist_cannot_observe(agent: Any) -> None:
    env = valety_v0.env()
    env.reset(seed=0)
    for method in (env.observe, env.view):
        with pytest.raises(KeyError, match="player_0, player_1"):
            method(agent)


ENCODINGS: dict[str, Any] = {
    **{name: name for name in ENCODERS},
    "mixed": {"player_0": "pieces_v0", "player_1": "tokens_v0"},
}


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_array_handed_out_is_never_written_again_nor_given_to_another(
    encoding: str, dtype: str
) -> None:
    env = valety_v0.env(observation=ENCODINGS[encoding], dtype=dtype)
    env.reset(seed=8)
    rng = np.random.default_rng(8)
    arrays: list[np.ndarray] = []
    dicts: list[dict[str, Any]] = []

    def keep() -> None:
        for agent in env.possible_agents:
            arrays.extend(arrays_in(env.observe(agent)))
        arrays.extend(info["action_mask"] for info in env.infos.values())
        if env.agents:
            arrays.extend(arrays_in(env.last()[0]))
        arrays.append(env.state())
        arrays.append(env.view("player_1"))
        dicts.extend([env.rewards, env.terminations, env.truncations])

    copies: list[np.ndarray] = []
    dict_copies: list[dict[str, Any]] = []
    for episode in range(2):
        state = env.get_state()
        while env.agents:
            keep()
            copies.extend(array.copy() for array in arrays[len(copies) :])
            dict_copies.extend(dict(each) for each in dicts[len(dict_copies) :])
            if is_over(env):
                env.step(None)
            else:
                env.step(-1 if episode and len(copies) % 50 == 49 else choose(env, rng))
        keep()
        copies.extend(array.copy() for array in arrays[len(copies) :])
        dict_copies.extend(dict(each) for each in dicts[len(dict_copies) :])
        env.set_state(state)
        env.reset()
    assert len(arrays) > 1000
    for array, as_given in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, as_given)
    assert dicts == dict_copies
    # All of them live, so no two may lie at the same place.
    places = sorted((array.__array_interface__["data"][0], array.nbytes) for array in arrays)
    for (start, size), (following, _) in pairwise(places):
        assert start + size <= following


@pytest.mark.parametrize("name", BOTH)
def test_writing_into_what_was_handed_out_changes_nothing_in_the_environment(name: str) -> None:
    env, other = GAMES[name](), GAMES[name]()
    for each in (env, other):
        each.reset(seed=9)
    rng = np.random.default_rng(9)
    for _ in range(100):
        for agent in env.possible_agents:
            for array in arrays_in(env.observe(agent)):
                array[:] = 1
            if env.agents:
                env.infos[agent]["action_mask"][:] = 0
            env.view(agent)["hand"] = 0
        env.state()[:] = 0
        env.record()["deals"].clear()
        for agent in env.possible_agents:
            assert_equal_observations(env.observe(agent), other.observe(agent))
        action = choose(other, rng)
        env.step(action)
        other.step(action)
        assert_same(env, other)
        if is_over(env):
            env.reset()
            other.reset()


def test_a_mask_in_infos_and_one_in_an_observation_are_two_arrays() -> None:
    env = valety_v0.env()
    env.reset(seed=0)
    env.infos[env.agent_selection]["action_mask"][:] = 0
    assert env.last()[0]["action_mask"].sum() == 17


WRAPPERS = {
    "flatten_v0": {},
    "dtype_v0": {"dtype": np.float64},
    "normalize_obs_v0": {},
    "frame_stack_v1": {"stack_size": 3},
    "frame_stack_v2": {"stack_size": 3},
    "delay_observations_v0": {"delay": 2},
    "max_observation_v0": {"memory": 2},
    "agent_indicator_v0": {},
    "pad_observations_v0": {},
    "pad_action_space_v0": {},
    "clip_reward_v0": {},
    "nan_zeros_v0": {},
}


@pytest.mark.parametrize("encoder", ["flat_v0", "planes_v0"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", ["valety", "polignac-5"])
def test_supersuit_s_wrappers_run_on_plain_observations(
    name: str, wrapper: str, encoder: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        supersuit = pytest.importorskip("supersuit")
    plain = GAMES[name](mask="info", observation=encoder, episode="deal", illegal="raise")
    env = getattr(supersuit, wrapper)(
        GAMES[name](mask="info", observation=encoder, episode="deal", illegal="raise"),
        **WRAPPERS[wrapper],
    )
    for each in (env, plain):
        each.reset(seed=7)
    steps = 0
    for agent in env.agent_iter():
        observation, _, terminated, truncated, info = env.last()
        assert agent == plain.agent_selection
        assert env.observation_space(agent).contains(observation)
        np.testing.assert_array_equal(info["action_mask"], plain.infos[agent]["action_mask"])
        action = None
        if not (terminated or truncated):
            action = env.action_space(agent).sample(info["action_mask"])
        env.step(action)
        plain.step(action)
        steps += 1
    assert plain.agents == []
    assert steps > 30


def test_each_player_can_have_its_own_observation() -> None:
    names = dict(zip([f"player_{i}" for i in range(4)], ENCODERS, strict=True))
    env = polignac_v0.env(observation=names, mask="info")
    alike = {encoder: polignac_v0.env(observation=encoder, mask="info") for encoder in ENCODERS}
    for each in (env, *alike.values()):
        each.reset(seed=3)
    rng = np.random.default_rng(3)
    for _ in range(60):
        for agent, encoder in names.items():
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            assert env.observation_space(agent) == alike[encoder].observation_space(agent)
            assert_equal_observations(observation, alike[encoder].observe(agent))
        action = choose(env, rng)
        for each in (env, *alike.values()):
            each.step(action)


@pytest.mark.parametrize(
    "dtype",
    # Kernels are compiled for each dtype; the environments' defaults are compiled anyway.
    ["uint8", *(pytest.param(d, marks=pytest.mark.slow) for d in DTYPES if d != "uint8")],
)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("name", BOTH)
def test_values_do_not_depend_on_the_dtype(name: str, encoder: str, dtype: str) -> None:
    default = GAMES[name](observation=encoder)
    env = GAMES[name](observation=encoder, dtype=dtype)
    for each, kind in ((default, "float32"), (env, dtype)):
        each.reset(seed=2)
        assert each.setup.dtype.name == each.state_space.dtype.name == kind
    rng = np.random.default_rng(2)
    for _ in range(50):
        usual = [*arrays_in(default.last()[0]["observation"]), default.state()]
        arrays = [*arrays_in(env.last()[0]["observation"]), env.state()]
        for one, other in zip(usual, arrays, strict=True):
            assert one.dtype == np.float32
            assert other.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(one, other)
        action = choose(env, rng)
        default.step(action)
        env.step(action)


WRONG_OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"episode": "game"}, ["episode='game'", "'match'", "'deal'"]),
    ({"reward": "money"}, ["reward='money'", "'win'", "'points'"]),
    ({"mask": "none"}, ["mask='none'", "'observation'", "'info'"]),
    ({"illegal": "ignore"}, ["illegal='ignore'", "'terminate'", "'raise'", "'penalise'"]),
    ({"illegal": None}, ["illegal=None", "'terminate'"]),
    ({"render_mode": "svg"}, ["render_mode='svg'", "'ansi'", "'human'", "'rgb_array'"]),
    ({"observation": "flat_v9"}, ["observation='flat_v9'", *ENCODERS]),
    ({"observation": 3}, ["observation=3", *ENCODERS]),
    ({"observation": {"player_0": "flat_v0"}}, ["player_0", "each of player_0, player_1"]),
    ({"observation": {}}, ["names nobody", "each of player_0, player_1"]),
    ({"observation": {"player_0": "flat_v0", "player_1": "x"}}, ["observation='x'", *ENCODERS]),
    ({"dtype": "float16"}, ["dtype='float16'", *DTYPES]),
    ({"dtype": "nonsense"}, ["dtype='nonsense'", *DTYPES]),
    ({"dtype": str}, ["dtype", *DTYPES]),
    ({"players": 3}, ["'players'", "num_players"]),
    ({"num_players": 9}, ["num_players", "2…7"]),
    ({"trump": "hearts"}, ["trump='hearts'", "'turned'"]),
]


@pytest.mark.plain
@pytest.mark.parametrize(("options", "said"), WRONG_OPTIONS, ids=lambda value: str(value)[:40])
def test_a_wrong_option_is_an_error_that_names_what_is_allowed(
    options: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(ValueError) as caught:
        valety_v0.env(**options)
    for part in said:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_a_game_of_the_other_family_is_an_error_that_says_where_it_is_played() -> None:
    with pytest.raises(ValueError, match=r"'polignac'.*played by polignac_v0"):
        valety_v0.env(game="polignac")
    for game in ("valety", "knaves", "valety-L3"):
        with pytest.raises(ValueError, match=rf"'{game}'.*played by valety_v0"):
            polignac_v0.env(game=game)
    with pytest.raises(ValueError, match=r"'bridge' is not a game; the games are: valety"):
        valety_v0.env("bridge")
    with pytest.raises(ValueError, match=r"num_players=2: polignac has a pack for 3, 4, 5, 6, 7"):
        polignac_v0.env(num_players=2)


def test_rules_can_be_given_in_place_of_a_name() -> None:
    rules = valety_v0.env(target=30).rules
    env = valety_v0.env(rules, tie="draw")
    assert (env.rules.target, env.rules.tie) == (30, "draw")
    with pytest.raises(ValueError, match="played by valety_v0"):
        polignac_v0.env(rules)


def test_render_gives_text_pixels_or_a_window() -> None:
    envs = {
        mode: valety_v0.env(render_mode=mode) for mode in (*AECTable.metadata["render_modes"], None)
    }
    for env in envs.values():
        env.metadata["render_fps"] = 1000
        env.reset(seed=1)
    texts: list[str] = []
    pictures: list[np.ndarray] = []
    rng = np.random.default_rng(1)
    while envs["ansi"].agents:
        text, pixels = envs["ansi"].render(), envs["rgb_array"].render()
        assert isinstance(text, str)
        assert isinstance(pixels, np.ndarray)
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert pixels.shape[2] == 3
        assert envs["human"].render() is None
        texts.append(text)
        pictures.append(pixels)
        action = None if is_over(envs["ansi"]) else choose(envs["ansi"], rng)
        if len(texts) > 40 and action is not None:
            action = 60
        for env in envs.values():
            env.step(action)
    assert len(set(texts)) > 35
    assert not np.array_equal(pictures[0], pictures[20])
    assert "player_0" in texts[0]
    # The picture says that the end was by an illegal action, and whose.
    offender = envs["ansi"].record()["illegal"]["seat"]
    assert f"player_{offender} tried an illegal action" in texts[-1]
    for env in envs.values():
        env.close()
        env.close()
        env.reset()


def test_human_mode_shows_by_itself_and_close_closes_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from valety_env import env as module

    shown: list[Any] = []

    class Window:
        def __init__(self, fps: float) -> None:
            shown.append("open")

        def show(self, picture: Any) -> None:
            shown.append(picture)

        def close(self) -> None:
            shown.append("close")

    monkeypatch.setattr(module, "Window", Window)
    env = valety_v0.env(render_mode="human")
    env.reset(seed=0)
    play_out(env, steps=3)
    assert len(shown) == 1 + 4
    copied = copy.deepcopy(env)
    env.close()
    env.close()
    assert shown[-1] == "close"
    assert shown.count("close") == 1
    copied.close()
    assert shown.count("close") == 1
    env.render()
    assert shown[-2] == "open"


def test_render_without_a_render_mode_warns_and_gives_nothing() -> None:
    env = valety_v0.env()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="no render_mode"):
        assert env.render() is None


def test_a_single_deal_is_shown_as_one_and_under_the_name_of_its_game() -> None:
    for name, title in (("valety", "valety"), ("polignac-5", "polignac")):
        env = GAMES[name](episode="deal", render_mode="ansi")
        env.reset(seed=0)
        assert env.render().startswith(f"{title}, a single deal\n")
    env = valety_v0.env(target=30, render_mode="ansi")
    env.reset(seed=0)
    assert env.render().startswith("valety (changed rules), deal 1, first to 30\n")


def test_repr_names_the_environment_and_the_game() -> None:
    assert repr(polignac_v0.env("polignac-classic")) == "polignac_v0<polignac-classic, 4 players>"

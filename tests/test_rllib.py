"""RLlib: the environment, the modules, sampling from the batch environment, the league.

Run in .venv-rllib (`make rllib`); where Ray is missing they are skipped.
"""

import math
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from valety_env.integrations import rllib
from valety_env.integrations.rllib.streams import cut_streams

pytestmark = [
    pytest.mark.slow,
    # What Ray and the packages it starts say of themselves.
    pytest.mark.filterwarnings("ignore"),
]

CONFIGS = {
    "valety deals": {"episode": "deal", "reward": "points"},
    "valety matches": {"target": 5},
    "planes": {"observation": "planes_v0", "episode": "deal", "reward": "points"},
    "polignac": {
        "game": "polignac,num_players=5",
        "episode": "deal",
        "reward": "points",
        "reward_scale": 0.1,
    },
    "polignac matches": {"game": "polignac,num_deals=2", "reward": "points"},
}


def make_env(name: str) -> rllib.TableEnv:
    return rllib.TableEnv(CONFIGS[name])


def agents_of(env: rllib.TableEnv) -> list[str]:
    return env.possible_agents


def make_config(name: str, opponents: list[str] | None = None, **runner: object) -> PPOConfig:
    env = make_env(name)
    modules = {
        "main": RLModuleSpec(rllib.MaskedModule, model_config={"hidden": (32, 32)}),
        "random": RLModuleSpec(rllib.RandomModule),
    }
    return (
        PPOConfig()
        .environment("valety_v0", env_config=CONFIGS[name])
        .env_runners(
            **{
                "env_runner_cls": rllib.BatchEnvRunner,
                "num_env_runners": 0,
                "num_envs_per_env_runner": 8,
                **runner,
            }
        )
        .multi_agent(
            policies=set(modules),
            policies_to_train=["main"],
            policy_mapping_fn=rllib.SeatMapping(agents_of(env), opponents or [], 0.5),
        )
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=modules))
        .training(train_batch_size=544, minibatch_size=128, num_epochs=1, use_kl_loss=False)
        .debugging(seed=3, log_level="ERROR")
    )


def make_runner(name: str, opponents: list[str] | None = None, **runner: object):
    return rllib.BatchEnvRunner(config=make_config(name, opponents, **runner), worker_index=0)


def legal_actions(observation: dict) -> np.ndarray:
    return np.flatnonzero(observation["action_mask"])


# The environment


@pytest.mark.parametrize("name", CONFIGS)
def test_rays_environment_checker_passes(name: str) -> None:
    for _ in range(5):
        check_multiagent_environments(make_env(name))


@pytest.mark.parametrize("name", CONFIGS)
def test_rewards_are_those_of_the_rules_also_where_one_seat_moves_twice(name: str) -> None:
    env = make_env(name)
    rng = np.random.default_rng(1)
    twice = 0
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        returns: defaultdict[str, float] = defaultdict(float)
        over = False
        while not over:
            (mover,) = observation
            action = int(rng.choice(legal_actions(observation[mover])))
            observation, rewards, terminations, truncations, _ = env.step({mover: action})
            over = terminations["__all__"]
            assert not truncations["__all__"]
            assert mover in rewards
            twice += not over and mover in observation
            for agent, reward in rewards.items():
                returns[agent] += reward
        record = env.table.record()
        players = len(env.possible_agents)
        if CONFIGS[name].get("reward") == "points":
            # The sum over deals of own points minus the mean of the others'.
            points = np.sum([deal["points"] for deal in record["deals"]], axis=0).astype(float)
            if env.table.rules.lowest_wins:
                points = -points
            expected = points - (points.sum() - points) / (players - 1)
        else:
            expected = np.full(players, -1 / (players - 1))
            won = record["winners"]
            expected[won] = (players / len(won) - 1) / (players - 1)
        scale = CONFIGS[name].get("reward_scale", 1.0)
        found = [returns[agent] for agent in env.possible_agents]
        assert found == pytest.approx(scale * expected, abs=1e-5)
        # At the end every agent sees the table, and nobody has anything to do.
        assert set(observation) == set(env.possible_agents)
        assert all(not seen["action_mask"].any() for seen in observation.values())
        assert all(terminations.values())
    assert twice


def test_observations_are_in_their_spaces_and_agents_are_strings() -> None:
    env = make_env("polignac")
    observation, _ = env.reset(seed=1)
    (mover,) = observation
    assert isinstance(mover, str)
    assert env.observation_space[mover].contains(observation[mover])


def test_an_action_of_somebody_else_is_refused_by_name() -> None:
    env = make_env("valety deals")
    observation, _ = env.reset(seed=1)
    (mover,) = observation
    other = next(agent for agent in env.possible_agents if agent != mover)
    with pytest.raises(ValueError, match=f"actions of {other}: {mover} is to move"):
        env.step({other: 0})


def test_an_unknown_option_is_an_error_that_names_it() -> None:
    with pytest.raises((ValueError, TypeError), match="tarjet"):
        rllib.TableEnv({"tarjet": 5})


# The modules


def module_of(kind: type, actions: int = 52, size: int = 464):
    env = rllib.TableEnv({"episode": "deal"})
    return kind(
        observation_space=env.observation_spaces["player_0"],
        action_space=env.action_spaces["player_0"],
        model_config={"hidden": (16, 16)},
    )


def observe(masks: np.ndarray) -> dict:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2, (len(masks), 464)).astype(np.float32)
    seen = {"observation": torch.from_numpy(rows), "action_mask": torch.from_numpy(masks)}
    return {Columns.OBS: seen}


def test_illegal_actions_have_no_chance_and_legal_ones_what_the_network_says() -> None:
    module = module_of(rllib.MaskedModule)
    masks = np.zeros((3, 52), np.int8)
    masks[0, [3, 7, 50]] = 1
    masks[1, 51] = 1
    batch = observe(masks)
    found = module.forward_exploration(batch)[Columns.ACTION_DIST_INPUTS]
    chances = torch.softmax(found, -1).numpy()
    logits = module.network(batch[Columns.OBS]["observation"])[0].detach().numpy()
    raw = np.exp(logits[0, [3, 7, 50]].astype(float))
    assert chances[0, [3, 7, 50]] == pytest.approx(raw / raw.sum(), rel=1e-5)
    assert chances[0].sum() == pytest.approx(1)
    assert np.count_nonzero(chances[0]) == 3
    assert chances[1, 51] == 1


def test_a_mask_that_is_all_zero_leaves_finite_numbers() -> None:
    module = module_of(rllib.MaskedModule)
    batch = observe(np.zeros((4, 52), np.int8))
    found = module.forward_train(batch)
    logits = found[Columns.ACTION_DIST_INPUTS]
    distribution = module.get_train_action_dist_cls().from_logits(logits)
    assert torch.isfinite(distribution.entropy()).all()
    assert torch.isfinite(distribution.logp(torch.zeros(4))).all()
    raw = module.network(batch[Columns.OBS]["observation"])[0]
    assert torch.equal(logits, raw)


def test_values_are_the_same_with_and_without_the_policys_forward_pass() -> None:
    module = module_of(rllib.MaskedModule)
    batch = observe(np.ones((4, 52), np.int8))
    found = module.forward_train(batch)
    with_pass = module.compute_values(batch, embeddings=found[Columns.EMBEDDINGS])
    assert torch.equal(with_pass, module.compute_values(batch))
    assert torch.equal(with_pass, module.network(batch[Columns.OBS]["observation"])[1])


@pytest.mark.parametrize("explore", [True, False])
def test_the_random_module_plays_every_legal_action_equally_often(explore: bool) -> None:
    torch.manual_seed(0)
    module = module_of(rllib.RandomModule)
    masks = np.zeros((6000, 52), np.int8)
    legal = [2, 30, 51]
    masks[:, legal] = 1
    act = module.forward_exploration if explore else module.forward_inference
    found = act(observe(masks))
    counts = Counter(found[Columns.ACTIONS].tolist())
    assert set(counts) == set(legal)
    # Five standard deviations of a binomial with chance 1/3.
    assert all(abs(n - 2000) < 5 * math.sqrt(6000 * 2 / 9) for n in counts.values())
    assert found[Columns.ACTION_LOGP].numpy() == pytest.approx(-math.log(3), abs=1e-6)


# Sampling


def plain_streams(carried, seats, rewards, terminated):
    """Return the streams as plain lists, and what is pending: the definition, seat by seat."""
    players, tables = carried.shape
    last = len(seats) - 1
    streams, pending = [], {}
    for table in range(tables):
        for seat in range(players):
            events = [seat] if carried[seat, table] else []
            given = {seat: float(rewards[seat, table, seat])} if events else {}
            episode = 0
            for row in range(players, last):
                if seats[row, table] == seat:
                    events.append(row)
                    given[row] = 0.0
                if events:
                    given[events[-1]] += float(rewards[row, table, seat])
                if terminated[row, table]:
                    if events:
                        rows = [*events, -1 - row]
                        streams.append((table, episode, seat, rows, [given[e] for e in events]))
                    events, given = [], {}
                    episode += 1
            if seats[last, table] == seat and events:
                streams.append((table, episode, seat, [*events, last], [given[e] for e in events]))
            elif events:
                pending[seat, table] = (events[-1], given[events[-1]])
                if len(events) > 1:
                    rest = [given[e] for e in events[:-1]]
                    streams.append((table, episode, seat, events, rest))
    return streams, pending


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_cut_into_streams_as_they_are_defined(seed: int) -> None:
    rng = np.random.default_rng(seed)
    players, tables, steps = int(rng.integers(2, 5)), 3, int(rng.integers(1, 15))
    carried = rng.random((players, tables)) < 0.5
    seats = rng.integers(0, players, (players + steps + 1, tables)).astype(np.int8)
    seats[:players] = np.arange(players)[:, None]
    rewards = rng.integers(-3, 4, (players + steps + 1, tables, players)).astype(np.float32)
    # A carried row holds what its own seat was given.
    for row in range(players):
        own = np.where(carried[row], rewards[row, :, row], 0)
        rewards[row] = 0
        rewards[row, :, row] = own
    terminated = rng.random((players + steps + 1, tables)) < 0.2
    terminated[:players] = False
    terminated[-1] = False
    room = 200
    slot_rows, slot_tables = np.zeros(room, np.int64), np.zeros(room, np.int64)
    slot_rewards = np.zeros(room, np.float32)
    found = np.zeros((room, 5), np.int64)
    pending = np.zeros((players, tables), np.int64)
    given = np.zeros((players, tables), np.float32)
    number = cut_streams(
        carried,
        seats,
        rewards,
        terminated,
        slot_rows,
        slot_tables,
        slot_rewards,
        found,
        pending,
        given,
    )
    told = [
        (
            table,
            episode,
            seat,
            slot_rows[first : first + decisions + 1].tolist(),
            slot_rewards[first : first + decisions].tolist(),
        )
        for table, episode, seat, first, decisions in found[:number].tolist()
    ]
    expected, waiting = plain_streams(carried, seats, rewards, terminated)
    assert told == expected
    for (seat, table), row in np.ndenumerate(pending):
        assert (row >= 0) == ((seat, table) in waiting)
        if row >= 0:
            assert waiting[seat, table] == (row, given[seat, table])


def stream(episodes: list, agent: str) -> SimpleNamespace:
    """Join an agent's chunks of one episode."""
    chunks = [e.agent_episodes[agent] for e in episodes if agent in e.agent_episodes]
    masks = [chunk.observations.data["action_mask"] for chunk in chunks]
    rows = [chunk.observations.data["observation"] for chunk in chunks]
    return SimpleNamespace(
        observation=np.concatenate([*(r[:-1] for r in rows), rows[-1][-1:]]),
        mask=np.concatenate([*(m[:-1] for m in masks), masks[-1][-1:]]),
        action=np.concatenate([chunk.actions.data for chunk in chunks]),
        reward=np.concatenate([chunk.rewards.data for chunk in chunks]),
        terminated=[chunk.is_terminated for chunk in chunks],
        started=[chunk.t_started for chunk in chunks],
        lengths=[len(chunk) for chunk in chunks],
    )


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("steps", [7, 50])
def test_an_episode_is_what_rllibs_own_classes_make_of_one_table(name: str, steps: int) -> None:
    runner = make_runner(name)
    module = runner.module["main"]
    joined: defaultdict[str, list] = defaultdict(list)
    done: dict[str, MultiAgentEpisode] = {}
    begun: set[int] = set()
    while len(begun) < 8:
        for episode in runner.sample(num_timesteps=8 * steps, explore=False):
            joined[episode.id_].append(episode)
            if episode.is_done:
                done[episode.id_] = episode
        begun = {table for table, runs in enumerate(runner._episodes) if runs[-1].number}
    env = make_env(name)
    for seed in runner.env.tables.seeds.tolist():
        observation, infos = env.reset(seed=seed)
        reference = MultiAgentEpisode(agent_to_module_mapping_fn=lambda agent, episode: "main")
        reference.add_env_reset(observations=observation, infos=infos)
        over = False
        while not over:
            (mover,) = observation
            seen = observation[mover]
            batch = {
                "observation": torch.from_numpy(seen["observation"][None]),
                "action_mask": torch.from_numpy(seen["action_mask"][None]),
            }
            found = module.forward_inference({Columns.OBS: batch})
            action = int(found[Columns.ACTION_DIST_INPUTS].argmax())
            observation, rewards, terminated, truncated, infos = env.step({mover: action})
            reference.add_env_step(
                observation,
                {mover: action},
                rewards,
                infos,
                terminateds=terminated,
                truncateds=truncated,
            )
            over = terminated["__all__"]
        # Which of the episodes it is, its own cards tell.
        first = env.possible_agents[0]
        cards = stream([reference.to_numpy()], first).observation[0]
        mine = [i for i in done if (stream(joined[i], first).observation[0] == cards).all()]
        assert len(mine) == 1
        for key in mine:
            for agent in env.possible_agents:
                told = stream(joined[key], agent)
                own = stream([reference.to_numpy()], agent)
                assert told.observation == pytest.approx(own.observation)
                assert (told.mask == own.mask).all()
                assert told.action.tolist() == own.action.tolist()
                assert told.reward == pytest.approx(own.reward, abs=1e-6)
                assert told.terminated == [False] * (len(told.terminated) - 1) + [True]
                assert told.started == np.cumsum([0, *told.lengths[:-1]]).tolist()


def test_many_tables_asked_for_few_episodes_give_each_table_its_first_ones() -> None:
    runner = make_runner("valety matches")
    episodes = runner.sample(num_episodes=19, explore=True)
    assert len(episodes) == 19
    assert all(episode.is_done for episode in episodes)
    assert len({episode.id_ for episode in episodes}) == 19
    played = runner.get_metrics()
    assert played["num_episodes"].peek() == 19
    # Long episodes are among them as they come: the first episodes of every table, whatever their
    # length. Tables 0, 1 and 2 play a third one.
    numbers = Counter()
    for runs, wanted in zip(runner._episodes, [3, 3, 3, 2, 2, 2, 2, 2], strict=True):
        assert runs[-1].number >= wanted
        numbers[wanted] += 1
    assert numbers == {3: 3, 2: 5}


def test_a_callback_sees_the_whole_episode_at_its_end() -> None:
    seen = []

    class Watch(rllib.LeagueCallback):
        def on_episode_start(self, *, episode, **kwargs) -> None:
            seen.append(("start", episode.id_, 0.0))

        def on_episode_end(self, *, episode, prev_episode_chunks, **kwargs) -> None:
            chunks = [*prev_episode_chunks, episode]
            returns = [
                sum(c.agent_episodes[agent].get_return() for c in chunks if agent in c.agent_ids)
                for agent in ("player_0", "player_1")
            ]
            seen.append(("end", episode.id_, returns))

    config = make_config("valety deals").callbacks(Watch)
    runner = rllib.BatchEnvRunner(config=config, worker_index=0)
    for _ in range(12):
        runner.sample(num_timesteps=8 * 10, explore=True)
    ends = [(id_, returns) for what, id_, returns in seen if what == "end"]
    assert len(ends) == 3 * 8
    for id_, returns in ends:
        # A deal's points minus the other's: whole numbers that sum to 0.
        assert sum(returns) == pytest.approx(0, abs=1e-5)
        assert returns[0] == pytest.approx(round(returns[0]), abs=1e-5)
        assert sum(what == "start" and other == id_ for what, other, _ in seen) == 1
    assert any(returns[0] for _, returns in ends)


def test_what_metrics_tell_is_what_was_played() -> None:
    runner = make_runner("valety deals", ["random"], num_envs_per_env_runner=64)
    episodes = runner.sample(num_timesteps=64 * 34, explore=True)
    metrics = runner.get_metrics()
    assert metrics["num_env_steps_sampled"].peek() == 64 * 34
    assert metrics["num_episodes"].peek() == 64
    assert metrics["episode_len_mean"].peek() == 34
    by_module = {name: stat.peek() for name, stat in metrics["num_module_steps_sampled"].items()}
    assert sum(by_module.values()) == 64 * 34
    # Only the trained module's streams are given out.
    streams = [sa for episode in episodes for sa in episode.agent_episodes.values()]
    assert {sa.module_id for sa in streams} == {"main"}
    assert sum(map(len, streams)) == by_module["main"]
    assert 0 < by_module["random"] < by_module["main"]


def test_the_learners_advantages_are_those_of_each_seats_own_decisions() -> None:
    config = make_config("valety deals").training(gamma=0.97, lambda_=0.8)
    runner = rllib.BatchEnvRunner(config=config, worker_index=0)
    runner.sample(num_timesteps=8 * 5, explore=True)
    # Chunks that begin in an episode, end in one, and end with one.
    episodes = runner.sample(num_timesteps=8 * 40, explore=True)
    learner = config.build_learner(env=None, spaces=runner.get_spaces())
    value = learner.module["main"].network
    expected, chosen = [], []
    for episode in episodes:
        for sa in episode.agent_episodes.values():
            rows = torch.from_numpy(sa.observations.data["observation"])
            values = value(rows)[1].detach().numpy().astype(float)
            if sa.is_terminated:
                values[-1] = 0.0
            advantage = 0.0
            found = []
            for t in reversed(range(len(sa))):
                delta = sa.rewards.data[t] + 0.97 * values[t + 1] - values[t]
                advantage = delta + 0.97 * 0.8 * advantage
                found.append(advantage + values[t])
            expected += found[::-1]
            chosen += sa.actions.data.tolist()
    batch = learner._make_batch_if_necessary(SimpleNamespace(batch=None, episodes=episodes))
    main = batch.policy_batches["main"]
    used = main["loss_mask"].numpy()
    assert main[Columns.ACTIONS].numpy()[used].tolist() == chosen
    assert main["value_targets"].numpy()[used] == pytest.approx(expected, abs=1e-4)
    assert any(sa.is_terminated for e in episodes for sa in e.agent_episodes.values())
    assert any(not sa.is_terminated for e in episodes for sa in e.agent_episodes.values())


def test_the_chances_told_are_those_by_which_actions_were_drawn() -> None:
    runner = make_runner("valety deals")
    for episode in runner.sample(num_timesteps=8 * 34, explore=True):
        for sa in episode.agent_episodes.values():
            seen = {name: torch.from_numpy(a[:-1]) for name, a in sa.observations.data.items()}
            logits = runner.module["main"].forward_train({Columns.OBS: seen})["action_dist_inputs"]
            chances = torch.log_softmax(logits, -1).detach().numpy()
            told = sa.extra_model_outputs[Columns.ACTION_LOGP].data
            actions = sa.actions.data
            assert told == pytest.approx(chances[np.arange(len(actions)), actions], abs=1e-5)
            masks = sa.observations.data["action_mask"]
            assert masks[np.arange(len(actions)), actions].all()


def test_a_seed_fixes_what_is_sampled() -> None:
    def sample() -> tuple:
        runner = make_runner("valety deals")
        episodes = runner.sample(num_timesteps=80, explore=True)
        played = [stream([e], a).action.tolist() for e in episodes for a in sorted(e.agent_ids)]
        return runner.env.tables.seeds.tolist(), played

    first = sample()
    assert first[1]
    assert sample() == first


@pytest.mark.parametrize("where", ["env_to_module_connector", "module_to_env_connector"])
def test_connectors_which_would_not_run_are_refused(where: str) -> None:
    config = make_config("valety deals", **{where: lambda *args, **kwargs: None})
    with pytest.raises(ValueError, match="BatchEnvRunner runs no env_to_module_connector"):
        rllib.BatchEnvRunner(config=config, worker_index=0)


def test_another_environment_is_refused() -> None:
    config = make_config("valety deals").environment("CartPole-v1")
    with pytest.raises(ValueError, match=r"CartPole-v1.*valety_v0, polignac_v0"):
        rllib.BatchEnvRunner(config=config, worker_index=0)


def test_different_encodings_are_refused() -> None:
    mixed = {"player_0": "flat_v0", "player_1": "tokens_v0"}
    config = make_config("valety deals").environment("valety_v0", env_config={"observation": mixed})
    with pytest.raises(ValueError, match="one encoding for all players"):
        rllib.BatchEnvRunner(config=config, worker_index=0)


# Who plays


def test_the_main_module_plays_alone_or_one_seat_in_the_shares_given() -> None:
    agents = ["player_0", "player_1", "player_2"]
    mapping = rllib.SeatMapping(agents, ["a", "b", "c"], 0.25)
    seats, opponents, both, alone = Counter(), Counter(), Counter(), 0
    for number in range(4000):
        episode = SimpleNamespace(id_=f"{number:032x}")
        playing = [mapping(agent, episode) for agent in agents]
        assert playing == [mapping(agent, episode) for agent in agents]
        if playing == ["main"] * 3:
            alone += 1
            continue
        assert playing.count("main") == 1
        seats[playing.index("main")] += 1
        (other,) = set(playing) - {"main"}
        opponents[other] += 1
        both[playing.index("main"), other] += 1
    # Five standard deviations of binomials.
    assert abs(alone - 1000) < 5 * math.sqrt(4000 * 0.25 * 0.75)
    for number in seats.values():
        assert abs(number - 1000) < 5 * math.sqrt(3000 * 2 / 9) + abs(alone - 1000)
    for number in opponents.values():
        assert abs(number - 1000) < 5 * math.sqrt(3000 * 2 / 9) + abs(alone - 1000)
    # Who the opponent is does not hang on the seat.
    assert len(both) == 9
    for number in both.values():
        assert abs(number - 1000 / 3) < 5 * math.sqrt(3000 * 8 / 81) + abs(alone - 1000) / 3


def test_without_a_league_the_main_module_plays_every_seat() -> None:
    mapping = rllib.SeatMapping(["player_0", "player_1"], [], 0.0)
    assert mapping("player_1", SimpleNamespace(id_="x")) == "main"


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(ValueError, match=r"it must be a share, 0…1"):
        rllib.SeatMapping(["player_0"], [], share)

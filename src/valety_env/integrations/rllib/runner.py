"""Sampling for RLlib from the batch environment."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import KeysView
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core.columns import Columns
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.env.vector.vector_multi_agent_env import VectorMultiAgentEnv
from ray.rllib.utils.metrics import (
    NUM_AGENT_STEPS_SAMPLED,
    NUM_AGENT_STEPS_SAMPLED_LIFETIME,
    NUM_ENV_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    NUM_EPISODES_LIFETIME,
    NUM_MODULE_STEPS_SAMPLED,
    NUM_MODULE_STEPS_SAMPLED_LIFETIME,
    WEIGHTS_SEQ_NO,
)
from ray.rllib.utils.torch_utils import convert_to_torch_tensor

from valety_env.integrations.rllib.environment import TableEnv, make_table
from valety_env.integrations.rllib.streams import Rows, cut_streams
from valety_env.vector import Final, SelfPlayEnv

# Steps played before it is looked whether enough episodes have ended.
_STEPS = 32


class Tables(VectorMultiAgentEnv):  # type: ignore[misc]
    """The batch environment under the names by which RLlib asks for spaces.

    Attributes:
        tables: the batch environment.
        envs: one table alone, for its spaces and for callbacks; it is not played at.
        reward_scale: rewards are to be multiplied by it.
    """

    def __init__(self, one: TableEnv, num_envs: int, seed: int | None) -> None:
        options = {"dtype": "uint8", **one.options}
        self.tables = SelfPlayEnv(one.table.rules, num_envs=num_envs, seed=seed, **options)
        self.envs = [one]
        self.num_envs = num_envs
        self.reward_scale = one.reward_scale
        self.single_observation_spaces = one.observation_spaces
        self.single_action_spaces = one.action_spaces
        self.single_observation_space = one.observation_space
        self.single_action_space = one.action_space
        self.observation_space = gymnasium.spaces.Tuple([one.observation_space] * num_envs)
        self.action_space = gymnasium.spaces.Tuple([one.action_space] * num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self.tables.close()
        self.envs[0].close()


class TableEpisode(MultiAgentEpisode):  # type: ignore[misc]
    """RLlib's episode, its agents in the order of their seats.

    RLlib makes a set of them, whose order differs from process to process, and with it the order of
    the rows that are learned from.
    """

    @property
    def agent_ids(self) -> KeysView[str]:
        """The agents that have a stream."""
        return self.agent_episodes.keys()


@dataclass
class Running:
    """An episode of a table, of which RLlib may have been given chunks.

    Attributes:
        episode: the chunk being played, as RLlib has it.
        began: when the episode began, in seconds of `time.perf_counter`.
        number: how many episodes the table began before it since it was made anew.
        steps: plays in the chunks before this one.
        decisions: int64 (players,), of each seat in the chunks before this one.
        length: plays in all; known at its end.
        returns: float64 (players,), of each seat in all; known at its end.
    """

    episode: MultiAgentEpisode
    began: float
    number: int
    steps: int
    decisions: np.ndarray
    length: int = 0
    returns: np.ndarray | None = None


class BatchEnvRunner(MultiAgentEnvRunner):  # type: ignore[misc]
    """Samples episodes from `num_envs_per_env_runner` tables stepped together.

    Use it with PPO, or another algorithm that learns from episodes:

        config.env_runners(env_runner_cls=BatchEnvRunner, num_envs_per_env_runner=256)

    Modules are asked once a step for all tables. Episodes, metrics and callbacks are those of
    RLlib's own runner, with these differences:

    - Connectors from the environment to the module and back are not run; there must be none.
    - `on_episode_step` is not called; the other callbacks of episodes are.
    - The streams of modules that are not trained count in metrics, but are not given to the
      learner, which would only drop them.
    - An episode knows the stream of each agent, not at which step of the table it decided.
    - Where a number of episodes is asked for, as in an evaluation, tables play the same number
      each, or one more: the first to end among many are the short ones, which would bias what is
      measured. Means of an evaluation are over all its episodes, not over the last 100.
    """

    env: Tables

    def make_env(self) -> None:
        """Make the tables; RLlib calls it."""
        if self.env is not None:
            self.env.close()
        config = self.config
        if config._env_to_module_connector or config._module_to_env_connector:
            raise ValueError(
                "BatchEnvRunner runs no env_to_module_connector and no module_to_env_connector, "
                "and one is set: remove it, or leave env_runner_cls to RLlib"
            )
        context = EnvContext(
            config.env_config,
            worker_index=self.worker_index or 0,
            num_workers=config.num_env_runners,
        )
        one = make_table(config)
        if len({encoder.name for encoder in one.table.setup.encoders}) > 1:
            raise ValueError(
                f"observation={one.options['observation']!r}: BatchEnvRunner needs one encoding "
                "for all players"
            )
        if config.in_evaluation and isinstance(config.evaluation_duration, int):
            # Means are over so many episodes. RLlib leaves it at 100 however many are played.
            config.metrics_num_episodes_for_smoothing = config.evaluation_duration
        self.num_envs = config.num_envs_per_env_runner
        self.env = Tables(one, self.num_envs, self._seed)
        self._agents = one.possible_agents
        self._needs_initial_reset = True
        # Modules that have been asked for, numbered.
        self._module_ids: list[str] = []
        self._module_steps: Counter[str] = Counter()
        # Episodes that ended since metrics were asked for, with their seconds.
        self._done: list[tuple[Running, float]] = []
        make_callback(
            "on_environment_created",
            callbacks_objects=self._callbacks,
            callbacks_functions=config.callbacks_on_environment_created,
            kwargs={
                "env_runner": self,
                "metrics_logger": self.metrics,
                "env": self.env,
                "env_context": context,
            },
        )

    def _reset_envs_and_episodes(self, explore: bool) -> None:
        """Start every table anew and forget the running episodes."""
        players = len(self._agents)
        self._rows: Rows | None = None
        self._seen = self.env.tables.reset()
        self._module_at = np.zeros((self.num_envs, players), np.int64)
        self._returns = np.zeros((self.num_envs, players))
        self._lengths = np.zeros(self.num_envs, np.int64)
        # The episodes of each table in the rows being played, the running one last.
        self._episodes = [[self._begin(table, 0)] for table in range(self.num_envs)]
        self._ongoing_episodes_for_metrics.clear()
        self._needs_initial_reset = False

    def _begin(self, table: int, number: int) -> Running:
        """Begin an episode: ask which module plays which seat."""
        one = self.env.envs[0]
        state = self.env.tables.states[table]
        episode = TableEpisode(
            # RLlib would draw it at random, and who plays may follow from it.
            id_=f"{int(state.seed):016x}-{int(state.episode)}",
            observation_space=one.observation_spaces,
            action_space=one.action_spaces,
            agent_to_module_mapping_fn=self.config.policy_mapping_fn,
        )
        for seat, agent in enumerate(self._agents):
            module_id = episode.module_for(agent)
            if module_id not in self._module_ids:
                self._module_ids.append(module_id)
            self._module_at[table, seat] = self._module_ids.index(module_id)
        self._call_back("on_episode_created", table, episode)
        self._call_back("on_episode_start", table, episode)
        players = len(self._agents)
        return Running(episode, time.perf_counter(), number, 0, np.zeros(players, np.int64))

    def _call_back(self, which: str, table: int, episode: MultiAgentEpisode) -> None:
        self._make_on_episode_callback(which, table, {table: episode})

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[MultiAgentEpisode]:
        """Play, and return the episodes played, or the chunks of them."""
        if force_reset or num_episodes is not None or self._needs_initial_reset:
            self._reset_envs_and_episodes(explore)
        if num_episodes is None:
            assert num_timesteps is not None
            return self._play(-(-num_timesteps // self.num_envs), None, explore, random_actions)
        self._needs_initial_reset = True
        wanted = np.full(self.num_envs, num_episodes // self.num_envs)
        wanted[: num_episodes % self.num_envs] += 1
        episodes: list[MultiAgentEpisode] = []
        while any(
            running[-1].number < number
            for running, number in zip(self._episodes, wanted.tolist(), strict=True)
        ):
            episodes += self._play(_STEPS, wanted, explore, random_actions)
        return episodes

    def _play(
        self, num_steps: int, wanted: np.ndarray | None, explore: bool, random_actions: bool
    ) -> list[MultiAgentEpisode]:
        """Play `num_steps` steps at every table; return what RLlib is to know of them.

        Args:
            num_steps: plays at each table.
            wanted: int64 (tables,), how many episodes of each table count; None: all, and chunks.
            explore: whether modules explore.
            random_actions: whether legal actions are drawn and no module is asked.
        """
        tables = self.env.tables
        rows = Rows(tables, num_steps)
        if self._rows is None:
            rows.begin(self._seen)
        else:
            rows.go_on(self._rows)
        ends: dict[int, Final] = {}
        for row in rows.steps:
            if random_actions:
                rows.action[row] = tables.sample()
                rows.log_prob[row] = -np.log(rows.mask[row].sum(-1, dtype=np.float32))
            else:
                self._ask_modules(rows, row, explore)
            tables.step(rows.action[row], out=rows.batch_after(row))
            rows.rewards[row] *= np.float32(self.env.reward_scale)
            self._returns += rows.rewards[row]
            self._lengths += 1
            if rows.terminated[row].any():
                ends[row] = tables.final()
                for table in ends[row].tables.tolist():
                    # Who plays the next episode is asked before its first play.
                    self._end(table)
        self._rows = rows
        episodes = self._cut(rows, ends, wanted)
        self._count(rows)
        return episodes

    def _ask_modules(self, rows: Rows, row: int, explore: bool) -> None:
        """Let the modules choose an action at every table."""
        asked = self._module_at[np.arange(self.num_envs), rows.seat[row]]
        for number in np.unique(asked).tolist():
            module = self.module[self._module_ids[number]]
            mine: Any = np.flatnonzero(asked == number)
            self._module_steps[self._module_ids[number]] += len(mine)
            if len(mine) == self.num_envs:
                mine = slice(None)
            observation = {
                "observation": rows.encoder.shaped(rows.observation[row, mine]),
                "action_mask": rows.mask[row, mine],
            }
            batch = convert_to_torch_tensor({Columns.OBS: observation}, device=self._device)
            with torch.no_grad():
                if explore:
                    found = module.forward_exploration(batch, t=self.num_env_steps_sampled_lifetime)
                else:
                    found = module.forward_inference(batch)
                action, log_prob = found.get(Columns.ACTIONS), found.get(Columns.ACTION_LOGP)
                inputs = found.get(Columns.ACTION_DIST_INPUTS)
                if inputs is not None:
                    if explore:
                        kind = module.get_exploration_action_dist_cls()
                        distribution = kind.from_logits(inputs)
                    else:
                        kind = module.get_inference_action_dist_cls()
                        distribution = kind.from_logits(inputs).to_deterministic()
                    if action is None:
                        action = distribution.sample()
                    if log_prob is None:
                        log_prob = distribution.logp(action)
                    rows.dist_inputs[row, mine] = inputs.numpy(force=True)
            rows.action[row, mine] = action.numpy(force=True)
            if log_prob is not None:
                rows.log_prob[row, mine] = log_prob.numpy(force=True)

    def _end(self, table: int) -> None:
        """Close a table's episode and begin its next."""
        running = self._episodes[table][-1]
        running.episode.is_terminated = True
        running.length = int(self._lengths[table])
        running.returns = self._returns[table].copy()
        self._returns[table] = 0.0
        self._lengths[table] = 0
        self._episodes[table].append(self._begin(table, running.number + 1))

    def _cut(
        self, rows: Rows, ends: dict[int, Final], wanted: np.ndarray | None
    ) -> list[MultiAgentEpisode]:
        """Give the rows to the episodes they belong to, and return these.

        Args:
            rows: played to their end.
            ends: row → what was seen at the end of the episodes that its step ended.
            wanted: as in `_play`.
        """
        n, players = self.num_envs, len(self._agents)
        most_streams = players * (n + int(rows.terminated.sum()))
        slots = n * (players + len(rows.steps) + 1) + most_streams
        slot_rows, slot_tables = np.empty(slots, np.int64), np.empty(slots, np.int64)
        reward = np.zeros(slots, np.float32)
        streams = np.empty((most_streams, 5), np.int64)
        number = cut_streams(
            rows.carried,
            rows.seat,
            rows.rewards,
            rows.terminated,
            slot_rows,
            slot_tables,
            reward,
            streams,
            rows.pending,
            rows.pending_rewards,
        )
        streams = streams[:number]
        used = int((streams[:, 3] + streams[:, 4]).max()) + 1 if number else 0
        slot_rows, slot_tables = slot_rows[:used], slot_tables[:used]
        at = np.maximum(slot_rows, 0)
        observation, mask = rows.observation[at, slot_tables], rows.mask[at, slot_tables]
        action, log_prob = rows.action[at, slot_tables], rows.log_prob[at, slot_tables]
        dist_inputs = rows.dist_inputs[at, slot_tables]
        # Who sees the end of an episode, at the last slot of each stream.
        seat_of = np.empty(used, np.int64)
        seat_of[streams[:, 3] + streams[:, 4]] = streams[:, 2]
        for row, end in ends.items():
            place = np.full(n, -1)
            place[end.tables] = np.arange(len(end.tables))
            over = np.flatnonzero(slot_rows == -1 - row)
            mask[over] = 0
            for seat in range(players):
                of_seat = over[seat_of[over] == seat]
                flat = rows.encoder.flat(end.observation[seat])
                observation[of_seat] = flat[place[slot_tables[of_seat]]]

        given = [self._is_given(module_id) for module_id in self._module_ids]
        weights = np.full(used, self._weights_seq_no)
        for table, ordinal, seat, first, decisions in streams.tolist():
            running = self._episodes[table][ordinal]
            agent = self._agents[seat]
            module_id = running.episode.module_for(agent)
            if given[self._module_ids.index(module_id)]:
                shown = {
                    "observation": rows.encoder.shaped(observation[first : first + decisions + 1]),
                    "action_mask": mask[first : first + decisions + 1],
                }
                made = slice(first, first + decisions)
                running.episode.agent_episodes[agent] = SingleAgentEpisode(
                    observations=InfiniteLookbackBuffer(shown),
                    actions=InfiniteLookbackBuffer(action[made]),
                    rewards=InfiniteLookbackBuffer(reward[made]),
                    infos=[{}] * (decisions + 1),
                    extra_model_outputs={
                        Columns.ACTION_LOGP: InfiniteLookbackBuffer(log_prob[made]),
                        Columns.ACTION_DIST_INPUTS: InfiniteLookbackBuffer(dist_inputs[made]),
                        WEIGHTS_SEQ_NO: InfiniteLookbackBuffer(weights[made]),
                    },
                    terminated=running.episode.is_terminated,
                    t_started=int(running.decisions[seat]),
                    len_lookback_buffer=0,
                    agent_id=agent,
                    module_id=module_id,
                    multi_agent_episode_id=running.episode.id_,
                )
            running.decisions[seat] += decisions

        episodes: list[MultiAgentEpisode] = []
        for table in range(n):
            *ended, last = self._episodes[table]
            for running in ended:
                if wanted is None or running.number < wanted[table]:
                    episodes.append(running.episode)
                    self._finish(table, running)
            self._episodes[table] = [last]
            if self._lengths[table] > last.steps:
                chunk = self._go_on(table, last)
                if wanted is None:
                    episodes.append(chunk)
        return [episode for episode in episodes if episode.agent_episodes]

    def _is_given(self, module_id: str) -> bool:
        """Return whether the streams of a module are given out."""
        trained = self.config.policies_to_train
        if trained is None or self.config.in_evaluation:
            return True
        return bool(trained(module_id, None)) if callable(trained) else module_id in trained

    def _finish(self, table: int, running: Running) -> None:
        """Tell of an episode that is over."""
        running.episode.env_t = running.length
        self._call_back("on_episode_end", table, running.episode)
        self._ongoing_episodes_for_metrics.pop(running.episode.id_, None)
        self._done.append((running, time.perf_counter() - running.began))

    def _go_on(self, table: int, running: Running) -> MultiAgentEpisode:
        """Return the chunk that an episode has come to, and let it go on with a new one."""
        chunk = running.episode
        chunk.env_t = running.steps = int(self._lengths[table])
        one = self.env.envs[0]
        running.episode = TableEpisode(
            id_=chunk.id_,
            observation_space=one.observation_spaces,
            action_space=one.action_spaces,
            env_t_started=chunk.env_t,
            agent_module_ids={agent: chunk.module_for(agent) for agent in self._agents},
            agent_to_module_mapping_fn=self.config.policy_mapping_fn,
        )
        self._ongoing_episodes_for_metrics[chunk.id_].append(chunk)
        return chunk

    def _count(self, rows: Rows) -> None:
        """Log how many steps were played, by whom."""
        seats = rows.seat[rows.steps.start : -1]
        steps = seats.size
        self.num_env_steps_sampled_lifetime += steps
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=steps)
        log = self.metrics.log_value
        log(NUM_ENV_STEPS_SAMPLED, steps, reduce="sum")
        log(NUM_ENV_STEPS_SAMPLED_LIFETIME, steps, reduce="lifetime_sum", with_throughput=True)
        for seat, agent in enumerate(self._agents):
            own = int((seats == seat).sum())
            log((NUM_AGENT_STEPS_SAMPLED, agent), own, reduce="sum")
            log((NUM_AGENT_STEPS_SAMPLED_LIFETIME, agent), own, reduce="lifetime_sum")
        for module_id, played in self._module_steps.items():
            log((NUM_MODULE_STEPS_SAMPLED, module_id), played, reduce="sum")
            log((NUM_MODULE_STEPS_SAMPLED_LIFETIME, module_id), played, reduce="lifetime_sum")
        self._module_steps.clear()

    def get_metrics(self) -> Any:
        """Return RLlib's metrics of what was played since the last call."""
        ended = len(self._done)
        if ended:
            self.metrics.log_value(NUM_EPISODES, ended, reduce="sum")
            self.metrics.log_value(NUM_EPISODES_LIFETIME, ended, reduce="lifetime_sum")
        kept = self.config.metrics_num_episodes_for_smoothing
        for running, seconds in self._done[-kept:]:
            assert running.returns is not None
            returns = dict(zip(self._agents, running.returns.tolist(), strict=True))
            modules: defaultdict[str, float] = defaultdict(float)
            for agent, value in returns.items():
                modules[running.episode.module_for(agent)] += value
            self._log_episode_metrics(
                running.length,
                sum(returns.values()),
                seconds,
                returns,
                dict(modules),
                dict(zip(self._agents, running.decisions.tolist(), strict=True)),
            )
        self._done.clear()
        return self.metrics.reduce()

    def stop(self) -> None:
        """End the threads of the tables."""
        if self.env is not None:
            self.env.close()

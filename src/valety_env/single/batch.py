"""One learner at each of N tables that are stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy import uint64

from valety_env._jit import inlined, int64, kernel
from valety_env.arrays import ArrayPool
from valety_env.engine import DEAL_OVER, STATE, legal_actions, next_deal, play, start_match
from valety_env.episode import (
    DEAL_ENDED,
    EPISODE_ENDED,
    PENALISE,
    Setup,
    ask,
    is_member,
    make_setup,
    observe,
    parse_seed,
    settle,
)
from valety_env.render import Window, ansi, scene
from valety_env.rules import Rules
from valety_env.single.learner import ALTERNATE, check_encoding, check_seat, tally
from valety_env.single.opponents import Line, Opponents, ask_tables
from valety_env.tables import first_illegal, mix_all, read_actions, refuse_illegal
from valety_env.view import VIEW

Observation = Any  # an array or a dict of named arrays, or either with the masks


@kernel
def play_some(
    rules: np.ndarray,
    states: np.ndarray,
    lasts: np.ndarray,
    tables: np.ndarray,
    actions: np.ndarray,
    learners: np.ndarray,
    options: int,
    report: bool,
    fine: float,
    seat_rewards: np.ndarray,
    rewards: np.ndarray,
    ended: np.ndarray,
    waiting: np.ndarray,
    found: int,
) -> int:
    """Play one action at each of some tables and add up what their learners get.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (N,).
        lasts: `STATE` (N,), the last finished deal of each table.
        tables: (k,).
        actions: (k,).
        learners: (N,), seats.
        options: `Setup.options`.
        report: stop at an illegal action.
        fine: the reward for an illegal action.
        seat_rewards: float (1, players), scratch.
        rewards: float (N,), added to.
        ended: bool (N,), False for each of the tables; set where its episode ends.
        waiting: int64 (N,), the tables that wait for an opponent; those played at that do so now
            are added.
        found: how many there are already.

    Returns:
        how many there are now, or −1 − the place in `tables` of an illegal action that was
        reported.
    """
    for j in range(tables.size):
        i = int64(tables[j])
        state = states[i]
        action = int64(actions[j])
        if not is_member(legal_actions(rules[0], state), action):
            if report:
                return -1 - j
            rewards[i] += fine
            ended[i] = not options & PENALISE
            continue
        play(rules[0], state, action)
        # Most plays end nothing, and bring nothing.
        if state.phase >= DEAL_OVER:
            result = settle(rules[0], state, options, seat_rewards, 0)
            rewards[i] += seat_rewards[0, int64(learners[i])]
            ended[i] = result == EPISODE_ENDED
            if result == DEAL_ENDED:
                lasts[i] = states[i]
                next_deal(rules[0], state)
        waiting[found] = i
        found += 1 if waits(state, learners[i]) and not ended[i] else 0
    return found


@inlined
def waits(state: np.record, learner: int) -> bool:
    """Return whether a table that is not at its end waits for an opponent."""
    return int64(state.turn) != int64(learner)


@kernel
def begin_some(
    rules: np.ndarray,
    states: np.ndarray,
    seeds: np.ndarray,
    anew: np.ndarray,
    tables: np.ndarray,
    seat: int,
    learners: np.ndarray,
    waiting: np.ndarray,
) -> int:
    """Start the next episode at some tables, or the first of their seed where `anew`.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (N,).
        seeds: uint64 (N,).
        anew: bool (N,).
        tables: (k,).
        seat: the learner's, or ALTERNATE.
        learners: int64 (N,), written.
        waiting: int64 (N,), overwritten by the tables that wait for an opponent.

    Returns:
        how many do.
    """
    players = int64(rules[0].num_players)
    found = 0
    for j in range(tables.size):
        i = int64(tables[j])
        episode = 0 if anew[i] else int64(states[i].episode) + 1
        start_match(rules[0], states[i], seeds[i], episode)
        learners[i] = episode % players if seat == ALTERNATE else seat
        waiting[found] = i
        found += 1 if waits(states[i], learners[i]) else 0
    return found


@kernel
def observe_learners(
    code: int | None,
    rules: np.ndarray,
    states: np.ndarray,
    learners: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
    totals: np.ndarray,
    points: np.ndarray,
    win: np.ndarray,
) -> None:
    """Write what each learner observes, as `observe`, and how he stands, as `tally`."""
    for i in range(states.size):
        observe(code, rules[0], states[i], int64(learners[i]), rows, masks, i)
    # Apart it takes 3 ns a table, in the same loop 9.
    for i in range(states.size):
        tally(rules[0], states[i], int64(learners[i]), totals, points, win, i)


class VectorSingleEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """N tables of `SingleEnv` stepped together.

    Table i plays exactly as a `SingleEnv` reset with `seeds[i]`. A finished table starts its next
    episode within the step (`AutoresetMode.SAME_STEP`): the observation and info are those of the
    new episode, and how the old one ended is told as Gymnasium's `SyncVectorEnv` does:
    `infos["final_obs"]` (N,) has an observation or None for each table, `infos["final_info"]` the
    infos as arrays, and the tables are those where `infos["_final_obs"]` is True. An array that is
    given out is not written again while anybody holds it.

    The arguments that are not named here are those of `SingleEnv`.

    Args:
        num_envs: N.
        render_mode: None, `"ansi"` or `"rgb_array"`: `render()` returns a tuple of N pictures.
        max_episode_steps: after so many steps an episode is truncated; None: never.

    Attributes:
        seeds: uint64 (N,), the tables' seeds.

    Raises:
        ValueError: for an unknown option or value, or rules that are impossible.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (Gymnasium's attribute)
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        game: str | Rules = "valety",
        num_envs: int = 1,
        *,
        opponent: Opponents = "heuristic",
        seat: int | str = "alternate",
        render_mode: str | None = None,
        episode: str = "match",
        reward: str = "win",
        observation: str = "flat_v0",
        dtype: Any = None,
        mask: str = "info",
        illegal: str = "terminate",
        max_episode_steps: int | None = None,
        **rule_options: Any,
    ) -> None:
        super().__init__()
        # First: Gymnasium < 1.3 closes what is deleted, though its construction failed.
        self._window: Window | None = None
        _check_count("num_envs", num_envs)
        if max_episode_steps is not None:
            _check_count("max_episode_steps", max_episode_steps)
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(
                f"render_mode={render_mode!r}: allowed are None, {', '.join(map(repr, modes))}"
            )
        self.setup: Setup = make_setup(
            game,
            episode=episode,
            reward=reward,
            observation=check_encoding(observation),
            dtype=dtype,
            mask=mask,
            illegal=illegal,
            **rule_options,
        )
        n = int(num_envs)
        self.num_envs = n
        self.render_mode = render_mode
        self.single_observation_space = self.setup.observation_space(0)
        self.single_action_space = self.setup.action_space()
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self.seeds = np.zeros(n, np.uint64)
        self._line = Line(opponent, self.setup.played)
        self._seat = check_seat(seat, self.setup.rules.num_players)
        self._limit = max_episode_steps
        self._steps = np.zeros(n, np.int64)
        self._started = False
        self._rules = self.setup.played.packed
        self._states = np.zeros(n, STATE)
        self._lasts = np.zeros(n, STATE)
        self._learners = np.zeros(n, np.int64)
        self._seat_rewards = np.zeros((1, self.setup.rules.num_players))
        self._all = np.arange(n)
        self._masks: np.ndarray | None = None
        # Questions to the opponents: rows for at most all tables.
        self._views = np.zeros(n, VIEW)
        self._legal = np.zeros(n, np.uint64)
        self._keys = np.zeros(n, np.uint64)
        self._tables = np.zeros(n, np.int64)
        self._waiting = np.zeros(n, np.int64)
        # What is given out: arrays that nobody else holds.
        width, actions = self.setup.encoders[0].layout.size, self.setup.num_actions
        self._rows = ArrayPool((n, width), self.setup.dtype)
        self._mask_rows = ArrayPool((n, actions), np.int8)

    @property
    def rules(self) -> Rules:
        """The rules of the game."""
        return self.setup.rules

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode at every table.

        Args:
            seed: 0…2^64−1: table i gets the seed `mix(seed, i)`; a sequence: the tables' seeds
                themselves, None where a table is to go on with its own. None: every table goes on
                to the next episode of its seed; the first time, 64 bits of entropy, which
                `np_random_seed` tells.
            options: `{"reset_mask": bool (N,)}` starts the tables where it is True alone; other
                keys are ignored.

        Returns:
            the observations and the infos of all tables.

        Raises:
            ValueError: for a seed out of range or a wrong number of them.
        """
        tables = self._chosen(options)
        anew = self._set_seeds(seed, tables)
        self._masks = None
        self._begin(tables, anew)
        return self._observe()

    def _chosen(self, options: dict[str, Any] | None) -> np.ndarray:
        """Return the tables that a reset starts."""
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return self._all
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(
                f"options['reset_mask'] of dtype {mask.dtype} and shape {mask.shape}: it must be "
                f"bool of shape ({self.num_envs},), True somewhere"
            )
        if not self._started:
            raise ValueError("options['reset_mask']: the first reset must start all tables")
        return np.flatnonzero(mask)

    def _set_seeds(self, seed: Any, tables: np.ndarray) -> np.ndarray:
        """Take the seeds of a reset; return where the first episode of a seed begins, bool (N,)."""
        anew = np.full(self.num_envs, not self._started)
        if seed is None and self._started:
            return anew
        if np.ndim(seed) == 0:
            number = parse_seed(seed)
            super().reset(seed=number)
            seeds = np.empty(self.num_envs, np.uint64)
            mix_all(uint64(number), self._all.astype(np.uint64), seeds)
            self.seeds[tables] = seeds[tables]
            anew[tables] = True
        else:
            if len(seed) != self.num_envs:
                raise ValueError(
                    f"seed lists {len(seed)}: it must be one number or {self.num_envs}, one a table"
                )
            numbers = [None if one is None else parse_seed(one) for one in seed]
            for i in tables.tolist():
                if numbers[i] is not None or anew[i]:
                    self.seeds[i] = parse_seed(numbers[i])
                    anew[i] = True
        return anew

    def _begin(self, tables: np.ndarray, anew: np.ndarray) -> None:
        """Start tables and let the opponents play until all learners are to act."""
        left = begin_some(
            self._rules,
            self._states,
            self.seeds,
            anew,
            tables,
            self._seat,
            self._learners,
            self._waiting,
        )
        self._started = True
        self._steps[tables] = 0
        ended = np.zeros(self.num_envs, np.bool_)
        # A learner acts in every deal: nothing can be won or lost before he has.
        self._play_opponents(left, np.zeros(self.num_envs), ended)

    def _play_opponents(self, left: int, rewards: np.ndarray, ended: np.ndarray) -> None:
        """Let the opponents act, all tables at once, until each waits for its learner or ended.

        The tables that wait for an opponent are the first `left` of `_waiting`.
        """
        while left:
            for agent in range(len(self._line.agents)):
                left = self._ask(agent, left, rewards, ended)

    def _ask(self, agent: int, left: int, rewards: np.ndarray, ended: np.ndarray) -> int:
        """Let one agent act where it is to act; return how many tables wait for an opponent now."""
        rows = ask_tables(
            self._rules,
            self._states,
            self._learners,
            self._line.agent_at,
            agent,
            self._waiting,
            left,
            self._views,
            self._legal,
            self._keys,
            self._tables,
        )
        if not rows:
            return left
        tables, legal = self._tables[:rows], self._legal[:rows]
        views, keys = self._views[:rows], self._keys[:rows]
        actions = ask(self._line.agents[agent], views, legal, keys, self._states, tables)
        left = self._play(tables, actions, True, rewards, ended, left - rows)
        if left < 0:
            wrong = -1 - left
            seat = int(self._states[tables[wrong]].turn)
            self._line.refuse(self.setup, agent, seat, int(actions[wrong]), int(legal[wrong]))
        return left

    def _play(
        self,
        tables: np.ndarray,
        actions: np.ndarray,
        report: bool,
        rewards: np.ndarray,
        ended: np.ndarray,
        left: int,
    ) -> int:
        return play_some(
            self._rules,
            self._states,
            self._lasts,
            tables,
            actions,
            self._learners,
            self.setup.options,
            report,
            self.setup.fine,
            self._seat_rewards,
            rewards,
            ended,
            self._waiting,
            left,
        )

    def step(
        self, actions: Any
    ) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one action a table, then the others until each learner is to act again.

        Args:
            actions: integers (N,).

        Returns:
            observations; rewards, float64 (N,), since the last action; terminated and truncated,
            bool (N,); infos.

        Raises:
            ActionTypeError: if `actions` are not N whole numbers.
            IllegalActionError: under `illegal="raise"`, before anything has moved.
        """
        if self._masks is None:
            raise RuntimeError("reset() must be called before step()")
        actions = self._read_actions(actions)
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        # An error on the way, as of an opponent, leaves tables that only a reset can mend.
        self._masks = None
        left = self._play(self._all, actions, False, rewards, terminated, 0)
        self._play_opponents(left, rewards, terminated)
        self._steps += 1
        if self._limit is None:
            truncated = np.zeros(self.num_envs, np.bool_)
        else:
            truncated = self._steps >= self._limit
        finished = np.flatnonzero(terminated | truncated)
        finals = {}
        if finished.size:
            finals = self._finals(finished, terminated)
            self._begin(finished, np.zeros(self.num_envs, np.bool_))
        observation, infos = self._observe()
        return observation, rewards, terminated, truncated, {**finals, **infos}

    def _read_actions(self, given: Any) -> np.ndarray:
        """Return actions as int64 (N,), legal where that is demanded."""
        actions = read_actions(given, self.num_envs)
        if self.setup.illegal == "raise":
            table = first_illegal(self._rules, self._states, actions, 0, self.num_envs)
            if table >= 0:
                state = self._states[table : table + 1]
                refuse_illegal(self.setup, state, table, int(np.asarray(given)[table]))
        return actions

    def _observe(self) -> tuple[Observation, dict[str, Any]]:
        """Return what the learners observe and the infos, with new masks.

        Each key `k` of the infos has `_k`, which tables it is given for.
        """
        rows, masks = self._rows.empty(), self._mask_rows.empty()
        infos: dict[str, Any] = {}
        given = self._info_arrays(self._states, self._learners.copy(), rows, masks)
        for key, value in given.items():
            infos[key] = value
            infos[f"_{key}"] = np.ones(self.num_envs, np.bool_)
        self._masks = masks
        return self._shaped(rows, masks), infos

    def _shaped(self, rows: np.ndarray, masks: np.ndarray) -> Observation:
        observation = self.setup.encoders[0].shaped(rows)
        if self.setup.mask == "info":
            return observation
        return {"observation": observation, "action_mask": masks.copy()}

    def _info_arrays(
        self, states: np.ndarray, learners: np.ndarray, rows: np.ndarray, masks: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Fill in the rows and masks of learners at some tables; return the infos."""
        n = len(states)
        totals = np.empty((n, self.setup.rules.num_players), np.int64)
        points, win = np.empty(n), np.empty(n)
        code = self.setup.encoders[0].kernel_code
        observe_learners(code, self._rules, states, learners, rows, masks, totals, points, win)
        return {
            "action_mask": masks,
            "seat": learners,
            "totals": totals,
            "points": points,
            "win": win,
        }

    def _finals(self, finished: np.ndarray, terminated: np.ndarray) -> dict[str, Any]:
        """Return `final_obs` and `final_info` of the finished tables, not yet started anew."""
        rows = np.empty((len(finished), self.setup.encoders[0].layout.size), self.setup.dtype)
        masks = np.empty((len(finished), self.setup.num_actions), np.int8)
        learners = self._learners[finished]
        given = self._info_arrays(self._states[finished], learners, rows, masks)
        # After an illegal action the table still waits for one, but nobody can give it.
        masks[terminated[finished]] = 0
        has = np.zeros(self.num_envs, np.bool_)
        has[finished] = True
        final_obs = np.full(self.num_envs, None, object)
        for i, one in zip(finished.tolist(), _one_by_one(self._shaped(rows, masks)), strict=True):
            final_obs[i] = one
        final_info: dict[str, np.ndarray] = {}
        for key, value in given.items():
            final_info[key] = np.zeros((self.num_envs, *value.shape[1:]), value.dtype)
            final_info[key][finished] = value
            final_info[f"_{key}"] = has.copy()
        return {
            "final_obs": final_obs,
            "_final_obs": has,
            "final_info": final_info,
            "_final_info": has.copy(),
        }

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool (N, num_actions)."""
        if self._masks is None:
            raise RuntimeError("reset() must be called before action_masks()")
        return self._masks.astype(np.bool_)

    def render(self) -> tuple[Any, ...] | None:
        """Return every table as text or pixels, by `render_mode`; all hands are seen."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the environment has no render_mode")
            return None
        if self._masks is None:
            raise RuntimeError("reset() must be called before render()")
        pictures: list[Any] = []
        for i in range(self.num_envs):
            last = self._lasts[i] if self._states["deal"][i] else None
            picture = scene(self.setup.rules, self._states[i], last)
            if self.render_mode == "ansi":
                pictures.append(ansi(picture))
                continue
            if self._window is None:
                self._window = Window(self.metadata["render_fps"])
            pictures.append(self._window.rgb_array(picture))
        return tuple(pictures)

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of what `render` used."""
        if self._window is not None:
            self._window.close()
            self._window = None


def _one_by_one(observation: Observation) -> list[Observation]:
    """Return the observation of each of some tables."""
    if not isinstance(observation, dict):
        return list(observation)
    parts = [_one_by_one(part) for part in observation.values()]
    return [dict(zip(observation, one, strict=True)) for one in zip(*parts, strict=True)]


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name}={value!r}: it must be a whole number of at least 1")

"""One learner at one table."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from valety_env.env import RENDER_MODES, AECTable
from valety_env.episode import Setup, ask, parse_seed
from valety_env.rules import Rules
from valety_env.single.learner import ALTERNATE, check_encoding, check_seat, tally_table
from valety_env.single.opponents import Line, Opponents, ask_table
from valety_env.view import VIEW

# Which of its tables an opponent is asked about.
_ONLY = np.zeros(1, np.int64)

Observation = Any  # an array, a dict of named arrays, or either with the mask


class SingleEnv(gymnasium.Env[Any, Any]):
    """One learner at a table of Valety or Polignac; the other seats are played by given agents.

    A step plays the learner's action and then the others until he is to act again or the episode
    is over; its reward is the sum of all that he got in it. `info` has always the same keys:

    - `action_mask`: int8 (num_actions,), 1 where legal; all zero at the end. It fits
      `action_space.sample(mask)`; `action_masks()` is the same as bool, as sb3-contrib's
      MaskablePPO asks for it.
    - `seat`: the learner's seat.
    - `totals`: int64 (players,), match totals, the learner's first, then clockwise; of finished
      deals. In Polignac charges.
    - `points`: the learner's total minus the mean of the others', charges negative.
    - `win`: at the end the learner's share of the win, 1 divided by the number of winners; else 0.

    Deals are those of an AEC environment with the same seed. `table` is the AEC environment that
    is played at, with its `record()`, `state()` and `view()`.

    Args:
        game: the game's name (`rules.PRESETS`), or `Rules`.
        opponent: an agent's name (`agents.make_agent`) or an object with its `act`, for all other
            seats; or a list, one for each of them, clockwise from the seat after the learner's.
        seat: the learner's, or `"alternate"`: in episode e of a seed he has seat e mod players.
        render_mode: None, `"ansi"`, `"rgb_array"` or `"human"`; all hands are seen.
        episode: `"match"`, the whole game, or `"deal"`, one deal.
        reward: `"win"` at the end, or `"points"` at each deal's end, as in `env.AECTable`.
        observation: the name of an encoder (`observations.ENCODERS`).
        dtype: of observations; float32 by default.
        mask: `"info"`: observations are plain arrays; `"observation"`: they are dicts of
            `observation` and `action_mask`.
        illegal: what an illegal action does. `"terminate"`: the episode ends with −1, under
            `reward="points"` with the worst that a deal can give; `"raise"`: `IllegalActionError`,
            nothing has moved; `"penalise"`: the same fine, and the learner acts again.
        **rule_options: fields of `rules.Rules`.

    Raises:
        ValueError: for an unknown option or value, or rules that are impossible.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (Gymnasium's attribute)
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
    }

    def __init__(
        self,
        game: str | Rules = "valety",
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
        **rule_options: Any,
    ) -> None:
        self.table = AECTable(
            game,
            render_mode=render_mode,
            episode=episode,
            reward=reward,
            observation=check_encoding(observation),
            dtype=dtype,
            mask=mask,
            illegal=illegal,
            **rule_options,
        )
        self.setup: Setup = self.table.setup
        self.render_mode = render_mode
        first = self.setup.agents[0]
        self.observation_space = self.table.observation_space(first)
        self.action_space = self.table.action_space(first)
        self._line = Line(opponent, self.setup.played)
        self._seat = check_seat(seat, self.setup.rules.num_players)
        self._learner = 0
        self._episode: int | None = None
        # Where the questions to an opponent are written.
        self._views = np.zeros(1, VIEW)
        self._legal = np.zeros(1, np.uint64)
        self._keys = np.zeros(1, np.uint64)

    @property
    def rules(self) -> Rules:
        """The rules of the game."""
        return self.setup.rules

    @property
    def seat(self) -> int:
        """The learner's seat in this episode."""
        return self._learner

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode and let the others play until the learner is to act.

        Args:
            seed: 0…2^64−1: the first episode of that seed. None: the next episode of the seed the
                environment has; the first time, one of 64 bits of entropy. `np_random_seed` tells
                it.
            options: ignored.

        Returns:
            the observation and the info.

        Raises:
            ValueError: for a seed out of range.
        """
        if seed is not None or self._episode is None:
            seed = parse_seed(seed)
            super().reset(seed=seed)
            self._episode = 0
        else:
            self._episode += 1
        players = self.setup.rules.num_players
        self._learner = self._episode % players if self._seat == ALTERNATE else self._seat
        self.table.reset(seed)
        self._play_opponents()
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play for the learner, then let the others play until he is to act again.

        Args:
            action: a whole number, as in `action_space`.

        Returns:
            the observation, the reward since the last action, whether the episode is over, False,
            and the info.

        Raises:
            ActionTypeError: if the action is not one whole number.
            IllegalActionError: if it is not legal and `illegal="raise"`.
        """
        learner = self._name
        if self.table.agent_selection != learner or self._is_over:
            self._need_reset()
        self.table.step(action)
        reward = self.table.rewards[learner] + self._play_opponents()
        return self._observe(), reward, self._is_over, False, self._info()

    @property
    def _name(self) -> str:
        return self.setup.agents[self._learner]

    @property
    def _is_over(self) -> bool:
        return self.table.terminations.get(self._name, True)

    def _need_reset(self) -> None:
        if self._episode is None:
            raise RuntimeError("reset() must be called before step()")
        raise RuntimeError("the episode is over: reset() must be called before step()")

    def _play_opponents(self) -> float:
        """Let the opponents play; return what the learner got meanwhile."""
        table = self.table
        learner = self._name
        reward = 0.0
        while table.agent_selection != learner and not table.terminations[learner]:
            ask_table(self.setup.played.packed, table.states, self._views, self._legal, self._keys)
            seat = int(table.states[0].turn)
            place = (seat - self._learner) % len(table.possible_agents)
            agent = int(self._line.agent_at[place])
            asked = (self._views, self._legal, self._keys, table.states, _ONLY)
            action = int(ask(self._line.agents[agent], *asked)[0])
            legal = int(self._legal[0])
            if not (0 <= action < 64 and legal >> action & 1):
                self._line.refuse(self.setup, agent, seat, action, legal)
            table.step(action)
            reward += table.rewards[learner]
        return reward

    def _observe(self) -> Observation:
        return self.table.observe(self._name)

    def _info(self) -> dict[str, Any]:
        totals = np.empty((1, self.setup.rules.num_players), np.int64)
        numbers = np.empty((2, 1))
        rules, states = self.setup.played.packed, self.table.states
        tally_table(rules, states, self._learner, totals, numbers[0], numbers[1])
        points, win = numbers[:, 0].tolist()
        return {
            "action_mask": self.table.infos[self._name]["action_mask"],
            "seat": self._learner,
            "totals": totals[0],
            "points": points,
            "win": win,
        }

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool (num_actions,); at the end none."""
        if self._episode is None:
            raise RuntimeError("reset() must be called before action_masks()")
        mask: np.ndarray = self.table.infos[self._name]["action_mask"]
        return mask.astype(np.bool_)

    def render(self) -> Any:
        """Return the table as text or pixels, or show it in a window, by `render_mode`."""
        return self.table.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.table.close()

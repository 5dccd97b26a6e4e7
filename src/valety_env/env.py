"""The PettingZoo AEC environment of both games.

The guards that PettingZoo's wrappers would add (order of calls, types and legality of actions)
live in the environment: a stack of wrappers costs several times what a play does.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import gymnasium
import numpy as np
from numpy import uint64
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable

from valety_env.cards import GENERAL, PASS, cards_of, parse_card
from valety_env.engine import DEAL_OVER, MATCH_OVER, STATE
from valety_env.episode import (
    DEAL_ENDED,
    EPISODE_ENDED,
    GOES_ON,
    ILLEGAL_ACTION,
    NO_ACTION,
    ActionTypeError,
    IllegalActionError,
    give_hands,
    legal_of_table,
    make_setup,
    parse_seed,
    start_table,
    state_of_table,
    step_table,
    view_of_table,
)
from valety_env.notation import Replayed, make_record, read_record
from valety_env.notation.records import calls_of
from valety_env.render import Window, ansi, scene
from valety_env.render.scenes import game_title
from valety_env.rules import Rules
from valety_env.view import VIEW

RENDER_MODES = ("ansi", "human", "rgb_array")

# Records tell illegal actions up to this size as they were.
_FAR = 10**18

Observation = Any  # an array, a dict of named arrays, or either with the mask


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An environment's place in its game, as `get_state` gives it; holds copies."""

    rules: Rules
    episode: str
    states: np.ndarray
    deals: tuple[np.ndarray, ...]
    seed: int
    agents: tuple[str, ...]
    agent_selection: str
    rewards: dict[str, float]
    cumulative_rewards: dict[str, float]
    terminations: dict[str, bool]
    illegal: tuple[int, int] | None


class AECTable(AECEnv[str, Observation, int]):  # type: ignore[misc]
    """One table of Valety or Polignac; agents act one at a time.

    Observations are `{"observation": …, "action_mask": int8 (num_actions,)}`, the mask all zero
    for an agent that is not to move; it is also in `infos[agent]["action_mask"]`. Arrays that are
    given out are never written again.

    Args:
        game: the game's name (`rules.PRESETS`), or `Rules`.
        render_mode: None, `"ansi"` (a string), `"rgb_array"` (uint8 H×W×3) or `"human"` (a window).
        episode: `"match"`, the whole game, or `"deal"`, one deal.
        reward: `"win"`: at the end, (n/w − 1)/(n − 1) to each of w winners among n players, −1/(n
            − 1) to the others; `"points"`: at each deal's end own deal points minus the mean of
            the others', charges negative. Both sum to 0.
        observation: the name of an encoder (`observations.ENCODERS`), or a dict agent → name.
        dtype: of observations and `state()`; float32 by default.
        mask: `"observation"`: the mask in the observation and in infos; `"info"`: in infos alone,
            so that observations are plain arrays.
        illegal: what an illegal action does. `"terminate"`: the episode ends, the offender gets
            −1, under `reward="points"` the worst that a deal can give, the others 0; `"raise"`:
            `IllegalActionError`, nothing has moved; `"penalise"`: the same fine and the same agent
            to move again.
        **rule_options: fields of `rules.Rules`.

    Raises:
        ValueError: for an unknown option or value, or rules that are impossible.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's attribute)
        "name": "valety_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 4,
    }

    def __init__(
        self,
        game: str | Rules = "valety",
        *,
        render_mode: str | None = None,
        episode: str = "match",
        reward: str = "win",
        observation: str | Mapping[str, str] = "flat_v0",
        dtype: Any = None,
        mask: str = "observation",
        illegal: str = "terminate",
        **rule_options: Any,
    ) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(
                f"render_mode={render_mode!r}: allowed are None, "
                f"{', '.join(map(repr, RENDER_MODES))}"
            )
        self.setup = make_setup(
            game,
            episode=episode,
            reward=reward,
            observation=observation,
            dtype=dtype,
            mask=mask,
            illegal=illegal,
            **rule_options,
        )
        self.render_mode = render_mode
        polignac = self.setup.rules.lowest_wins
        self.metadata = {**self.metadata, "name": "polignac_v0" if polignac else "valety_v0"}
        setup = self.setup
        self.possible_agents = list(setup.agents)
        self.agents: list[str] = []
        self.agent_selection = setup.agents[0]
        self.observation_spaces = {
            agent: setup.observation_space(seat) for seat, agent in enumerate(setup.agents)
        }
        self.action_spaces = {agent: setup.action_space() for agent in setup.agents}
        self.state_space = gymnasium.spaces.Box(0, 1, (setup.state_layout.size,), setup.dtype.type)
        self.rewards: dict[str, float] = {}
        self._cumulative_rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}

        self._seats = {agent: seat for seat, agent in enumerate(setup.agents)}
        self._rules = setup.played.packed
        self._states = np.zeros(1, STATE)
        self._finals = np.zeros(1, STATE)
        self._options = setup.options
        # What kernels are given of the encoders, as `Encoder.kernel_code`.
        self._codes: np.ndarray | None = None
        if any(e.kernel_code is not None for e in setup.encoders):
            self._codes = np.array([e.code for e in setup.encoders], np.int8)
        self._step_rewards = np.zeros((1, len(setup.agents)))
        self._deals: list[np.ndarray] = []
        self._seed: int | None = None
        self._illegal: tuple[int, int] | None = None
        # What every step needs. A row has room for the longest encoding: who moves next is
        # known only when it has been written.
        sizes = [encoder.layout.size for encoder in setup.encoders]
        self._rows_shape = (1, max(sizes))
        self._masks_shape = (1 + len(setup.agents), setup.num_actions)
        self._no_rewards = dict.fromkeys(setup.agents, 0.0)
        # By index, as an array is slow to go through; an array for each agent would take 4 % of a
        # step more with two players, 11 % with six.
        self._mask_rows = list(enumerate(setup.agents, 1))
        self._dtype = setup.dtype
        self._is_flat = all(
            not e.is_dict and e.layout.shape == self._rows_shape[1:] for e in setup.encoders
        )
        # The observation of the agent to move is made together with its mask, and given out once.
        self._row: np.ndarray | None = None
        self._mask = np.zeros(setup.num_actions, np.int8)
        self._window: Window | None = None

    @property
    def rules(self) -> Rules:
        """The rules of the game."""
        return self.setup.rules

    @property
    def states(self) -> np.ndarray:
        """The table itself, STATE (1,), not a copy: for search and tests."""
        return self._states

    @property
    def unwrapped(self) -> AECTable:
        """This environment."""
        return self

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return the space of an agent's observations; always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Discrete:
        """Return the space of an agent's actions; always the same object."""
        space = self.action_spaces[agent]
        assert isinstance(space, gymnasium.spaces.Discrete)
        return space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: 0…2^64−1: the first episode of that seed. None: the next episode of the seed the
                environment has; the first time, one of 64 bits of entropy, which `record()` tells.
            options: ignored.

        Raises:
            ValueError: for a seed out of range.
        """
        if seed is not None or self._seed is None:
            self._seed = parse_seed(seed)
            episode = 0
        else:
            episode = int(self._states[0].episode) + 1
        start_table(self._rules, self._states, uint64(self._seed), episode)
        self._begin()
        if self.render_mode == "human":
            self.render()

    def _begin(self) -> None:
        """Set what PettingZoo's attributes are at the start of an episode."""
        agents = self.possible_agents
        self.agents = list(agents)
        self.rewards = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self._deals = []
        self._illegal = None
        self._turn()

    def _turn(self) -> None:
        """Make the agent to move the selected one, with its observation and the masks in infos."""
        seat = int(self._states["turn"][0])
        rows, masks = self._new_arrays()
        self._play(seat, NO_ACTION, rows, masks)
        self._show(seat, rows, masks)

    def _play(self, seat: int, action: int, rows: np.ndarray, masks: np.ndarray) -> tuple[int, int]:
        """Call `step_table` for this table."""
        return step_table(
            self._rules,
            self._states,
            self._finals,
            self._codes,
            self._options,
            seat,
            action,
            self._step_rewards,
            rows,
            masks,
        )

    def _new_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a row (1, S), to be written, and masks (1 + players, num_actions), all zero."""
        return np.empty(self._rows_shape, self._dtype), np.zeros(self._masks_shape, np.int8)

    def _show(self, seat: int, rows: np.ndarray, masks: np.ndarray) -> None:
        """Make `seat` the selected agent, with what was written for it, as `step_table` does."""
        self.agent_selection = self.possible_agents[seat]
        self._row, self._mask = rows[0], masks[0]
        self.infos = {agent: {"action_mask": masks[i]} for i, agent in self._mask_rows}

    def _zero_infos(self) -> dict[str, dict[str, Any]]:
        """Return infos for when nobody is to move; each mask is a new array."""
        size = self.setup.num_actions
        return {agent: {"action_mask": np.zeros(size, np.int8)} for agent in self.agents}

    def step(self, action: Any) -> None:
        """Play for the selected agent; None for one whose episode is over.

        Args:
            action: a whole number, as in `action_space`.

        Raises:
            ActionTypeError: if it is not one whole number.
            IllegalActionError: if it is not legal and `illegal="raise"`.
            ValueError: if it is not None for an agent whose episode is over.
            RuntimeError: before the first reset, and when the episode is over for all agents.
        """
        if not self.agents:
            self._need_reset("step")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._remove(agent, action)
            return
        # The common types first: 3 % of a step.
        if type(action) is np.int64 or type(action) is int:
            number = int(action)
        else:
            number = self._check_action(action)
        rows, masks = self._new_arrays()
        # A number beyond the actions, as large as it may be, is as illegal as −1.
        ended, seat = self._play(0, number if 0 <= number < 64 else -1, rows, masks)
        if ended == ILLEGAL_ACTION:
            self._punish(agent, number)
        else:
            self._cumulative_rewards[agent] = 0.0
            if ended == GOES_ON:
                # A copy takes a third of the time of `dict.fromkeys`: 4 % of a step.
                self.rewards = self._no_rewards.copy()
            else:
                self._reward(self._step_rewards[0].tolist())
                if ended == DEAL_ENDED:
                    self._deals.append(self._finals.copy())
            if ended == EPISODE_ENDED:
                self._end()
            else:
                self._show(seat, rows, masks)
        if self.render_mode == "human":
            self.render()

    def _check_action(self, action: Any) -> int:
        try:
            # numpy 1 takes its bools for whole numbers.
            number = None if isinstance(action, (bool, np.bool_)) else operator.index(action)
        except TypeError:
            number = None
        if number is None or getattr(action, "ndim", 0) > 0:
            raise ActionTypeError(
                f"{self.agent_selection} gave {action!r} of type {type(action).__name__}: "
                f"an action is one whole number in 0…{self.setup.num_actions - 1}"
            )
        return number

    def _punish(self, agent: str, action: int) -> None:
        """Deal with an illegal action."""
        seat = self._seats[agent]
        if self.setup.illegal == "raise":
            legal = int(legal_of_table(self._rules, self._states))
            raise IllegalActionError(self.setup.illegal_action(seat, action, legal))
        self._cumulative_rewards[agent] = 0.0
        fines = [0.0] * len(self.possible_agents)
        fines[seat] = self.setup.fine
        self._reward(fines)
        if self.setup.illegal == "penalise":
            self._turn()
        else:
            self._illegal = (seat, max(min(action, _FAR), -_FAR))
            self._end()

    def _reward(self, rewards: list[float]) -> None:
        self.rewards = dict(zip(self.possible_agents, rewards, strict=True))
        for agent, reward in self.rewards.items():
            self._cumulative_rewards[agent] += reward

    def _end(self) -> None:
        """End the episode for all agents."""
        self.terminations = dict.fromkeys(self.agents, True)
        self._row = None
        self.infos = self._zero_infos()
        self.agent_selection = self.agents[0]

    def _remove(self, agent: str, action: Any) -> None:
        """Take out an agent whose episode is over, as PettingZoo wants it; None is its action.

        What was given out before, such as the final rewards, is left as it is.
        """
        if action is not None:
            raise ValueError(f"the episode is over for {agent}: its action is None, not {action!r}")
        self.agents = [other for other in self.agents if other != agent]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = {other: self._cumulative_rewards[other] for other in self.agents}
        self.terminations = dict.fromkeys(self.agents, True)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = self._zero_infos()
        if self.agents:
            self.agent_selection = self.agents[0]

    def last(self, observe: bool = True) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Return observation, reward since its last action, terminated, truncated and info.

        All of the selected agent; the observation is None unless `observe`.
        """
        if not self.agents:
            self._need_reset("last")
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """Return an iterable of the agents as they come to act; step once for each."""
        self._need_seed("agent_iter")
        return super().agent_iter(max_iter)

    def observe(self, agent: str) -> Observation:
        """Return what an agent observes, at any time after the first reset, also after the end.

        Raises:
            KeyError: for an agent that the environment does not have.
        """
        seat = self._seats.get(agent)
        if seat is None:
            self._refuse(agent)
        if self._row is not None and agent == self.agent_selection:
            row, mask = self._row, self._mask
            self._row = None
        else:
            self._need_seed("observe")
            rows, masks = self._new_arrays()
            self._play(seat, NO_ACTION, rows, masks)
            if self._illegal is not None:
                masks[:] = 0
            row, mask = rows[0], masks[0]
        observation: Observation = row
        if not self._is_flat:
            encoder = self.setup.encoders[seat]
            observation = encoder.shaped(row[: encoder.layout.size])
        if self.setup.mask == "info":
            return observation
        return {"observation": observation, "action_mask": mask}

    def state(self) -> np.ndarray:
        """Return the whole table, hidden cards included, (S,) of the environment's dtype.

        For critics that see all cards; laid out by `setup.state_layout`.
        """
        self._need_seed("state")
        row = np.empty(self.setup.state_layout.size, self.setup.dtype)
        state_of_table(self._rules, self._states, row[None])
        return row

    def view(self, agent: str) -> np.ndarray:
        """Return what an agent knows, `VIEW` (1,), with the order of the plays: what agents take.

        Raises:
            KeyError: for an agent that the environment does not have.
        """
        self._need_seed("view")
        seat = self._seats.get(agent)
        if seat is None:
            self._refuse(agent)
        views = np.zeros(1, VIEW)
        view_of_table(self._rules, self._states, seat, views)
        return views

    def record(self) -> dict[str, Any]:
        """Return the episode so far, all cards and plays and results, as JSON-able values.

        `replay` makes an environment of it; the format is described in `docs/notation.md`.
        """
        self._need_seed("record")
        illegal = None
        if self._illegal is not None:
            illegal = {"seat": self._illegal[0], "action": self._illegal[1]}
        states = [*self._deals, self._states]
        return make_record(self.setup.rules, self.setup.game, states, illegal=illegal)

    def _follow(self, replayed: Replayed) -> None:
        """Play a record that has been checked, so that rewards too are what they were."""
        illegal, render_mode = self.setup.illegal, self.render_mode
        self.setup = replace(self.setup, game=replayed.game, illegal="terminate")
        self.render_mode = None
        self._seed = replayed.seed
        start_table(self._rules, self._states, uint64(replayed.seed), replayed.episode)
        for number, deal in enumerate(replayed.states):
            hands = deal.hand | deal.played
            dealer, leader, turned = int(deal.dealer), int(deal.leader), int(deal.turned)
            give_hands(self._rules, self._states, dealer, leader, hands, turned)
            if number == 0:
                self._begin()
            self._turn()
            plays = deal.history[: int(deal.num_plays)].tolist()
            for action in [*calls_of(replayed.rules, deal), *plays]:
                self.step(action)
        if replayed.illegal is not None:
            self.step(_action_number(replayed.illegal[1], replayed.rules.rank_order))
        self.setup = replace(self.setup, illegal=illegal)
        self.render_mode = render_mode

    def get_state(self) -> Snapshot:
        """Return the place in the game, for `set_state` of this or an equal environment."""
        self._need_seed("get_state")
        assert self._seed is not None
        return Snapshot(
            self.setup.rules,
            self.setup.episode,
            self._states.copy(),
            tuple(self._deals),
            self._seed,
            tuple(self.agents),
            self.agent_selection,
            dict(self.rewards),
            dict(self._cumulative_rewards),
            dict(self.terminations),
            self._illegal,
        )

    def set_state(self, state: Snapshot) -> None:
        """Go to a place in the game that `get_state` gave; what follows is the same as from there.

        Raises:
            TypeError: if it is no `Snapshot`.
            ValueError: if it is one of other rules, or of the other kind of episode.
        """
        if not isinstance(state, Snapshot):
            raise TypeError(f"set_state takes what get_state returned, not {type(state).__name__}")
        if state.rules != self.setup.rules:
            raise ValueError("set_state: the state is one of other rules than this environment's")
        if state.episode != self.setup.episode:
            raise ValueError(
                f"set_state: the state is one of episode={state.episode!r}, this environment has "
                f"episode={self.setup.episode!r}"
            )
        self._states[:] = state.states
        self._deals = list(state.deals)
        self._seed = state.seed
        self._illegal = state.illegal
        self.agents = list(state.agents)
        self.terminations = dict(state.terminations)
        self.truncations = dict.fromkeys(self.agents, False)
        over = self._illegal is not None or self._states[0].phase in (DEAL_OVER, MATCH_OVER)
        if over:
            self._row = None
            self.infos = self._zero_infos()
        else:
            self._turn()
        self.rewards = dict(state.rewards)
        self._cumulative_rewards = dict(state.cumulative_rewards)
        self.agent_selection = state.agent_selection

    def render(self) -> np.ndarray | str | None:
        """Return the table as text or pixels, or show it in a window, by `render_mode`.

        All hands are seen.
        """
        self._need_seed("render")
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the environment has no render_mode")
            return None
        note = ""
        if self._illegal is not None:
            note = f"player_{self._illegal[0]} tried an illegal action"
        last_deal = self._deals[-1][0] if self._deals else None
        title = game_title(self.setup.rules)
        picture = scene(self.setup.played, self._states[0], last_deal, title=title, note=note)
        if self.render_mode == "ansi":
            return ansi(picture)
        if self._window is None:
            self._window = Window(self.metadata["render_fps"])
        if self.render_mode == "rgb_array":
            return self._window.rgb_array(picture)
        self._window.show(picture)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _refuse(self, agent: Any) -> NoReturn:
        raise KeyError(f"{agent!r}: the agents are {', '.join(self.possible_agents)}")

    def _need_seed(self, method: str) -> None:
        if self._seed is None:
            raise RuntimeError(f"reset() must be called before {method}()")

    def _need_reset(self, method: str) -> NoReturn:
        self._need_seed(method)
        raise RuntimeError(f"the episode is over for all agents: call reset() before {method}()")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle holds: all but the window."""
        return {**self.__dict__, "_window": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over what `__getstate__` returned."""
        self.__dict__.update(attributes)
        # Copies of arrays can be written, which to the kernels is another type to compile for.
        self._rules.flags.writeable = False

    def __repr__(self) -> str:
        """Return the name, game and number of players."""
        return f"{self.metadata['name']}<{self.setup.game}, {len(self.possible_agents)} players>"


def _action_number(name: str, rank_order: str) -> int:
    """Return the number of an action as records name it, legal or not."""
    if name in ("pass", "general"):
        return PASS if name == "pass" else GENERAL
    return int(name) if name.removeprefix("-").isdigit() else parse_card(name, rank_order)


def replay(record: Mapping[str, Any], **options: Any) -> AECTable:
    """Return an environment at the end of a record, by playing all of it from the hands it names.

    Args:
        record: what `record()` returned, or the same read from JSON.
        **options: of the environment, such as `render_mode`, but not of the rules, which are the
            record's. `episode` is found from the record, or `"match"` where it leaves that open.

    Raises:
        notation.RecordError: for a record that is damaged or not by the rules: one line that names
        the deal and the play.
        ValueError: for an unknown option or one of the rules, or if `episode` is not that of the
            record.
    """
    replayed = read_record(record)
    for name in ("game", *(field.name for field in fields(Rules))):
        if name in options:
            raise ValueError(f"{name}={options[name]!r}: the rules are those of the record")
    options.setdefault("episode", "deal" if replayed.single_deal else "match")
    env = AECTable(replayed.rules, **options)
    single_deal = env.setup.single_deal
    fits = len(replayed.states) == 1 if single_deal else not replayed.single_deal
    if fits:
        env._follow(replayed)
        fits = tuple(cards_of(int(env._states[0].winners))) == replayed.winners
    if not fits:
        raise ValueError(f"episode={env.setup.episode!r}: the record is of the other kind")
    return env

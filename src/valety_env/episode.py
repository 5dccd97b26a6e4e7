"""What the environments share: options, seeding, rewards, the ends of episodes, illegal actions.

An episode is a match or one deal of the games in `engine`. `Setup` is an environment's resolved
options; the kernels take a table one action further and write what a seat observes.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from numpy import uint64

from valety_env._jit import inlined, int64, kernel
from valety_env.agents import Agent, agent_name, sees_all
from valety_env.agents.metadata import EPISODES, make_metadata
from valety_env.cards import EMPTY, NUM_CARDS, ONE, card_name, set_names
from valety_env.engine import (
    DEAL_OVER,
    MATCH_OVER,
    begin_deal,
    deal_points,
    deal_winners,
    legal_actions,
    next_deal,
    play,
    public_of,
    set_hands,
    start_match,
    undealt_cards,
)
from valety_env.notation import game_to_text
from valety_env.observations import (
    FLAT_SIZE_2,
    FLAT_SIZE_7,
    Encoder,
    Field,
    Layout,
    encode,
    make_encoder,
    seats_of,
    spread_word,
)
from valety_env.rng import mix
from valety_env.rules import MAX_PLAYERS, SCORING_TRICKS, Rules, make_rules
from valety_env.view import look

REWARDS = ("win", "points")
MASKS = ("observation", "info")
ILLEGAL = ("terminate", "raise", "penalise")
DTYPES = ("uint8", "int8", "int32", "int64", "float32", "float64")

# What `settle` found.
GOES_ON, DEAL_ENDED, EPISODE_ENDED = range(3)
# What `step_table` returns for an action that is not legal.
ILLEGAL_ACTION = -1
# In place of an action: only observe. No number that a user gives comes to it as this.
NO_ACTION = -2
# The options of an environment that kernels need, or'ed: one number passes faster than bools.
ONE_DEAL, BY_POINTS, PENALISE = 1, 2, 4


class IllegalActionError(ValueError):
    """An action that the rules do not allow here; raised only under `illegal="raise"`."""


class ActionTypeError(TypeError):
    """An action that is not one whole number, or a batch of actions of a wrong type or shape."""


@dataclass(frozen=True)
class Setup:
    """The resolved options of an environment.

    Attributes:
        game: a name in `rules.PRESETS`.
        rules: as given, for records.
        episode: `"match"` or `"deal"`.
        reward: `"win"` or `"points"`.
        observation: an encoder's name, or for each agent one.
        dtype: of observations.
        mask: `"observation"`: in the observation and in infos; `"info"`: in infos alone.
        illegal: `"terminate"`, `"raise"` or `"penalise"`.
    """

    game: str
    rules: Rules
    episode: str
    reward: str
    observation: str | Mapping[str, str]
    dtype: np.dtype[Any]
    mask: str
    illegal: str

    @cached_property
    def played(self) -> Rules:
        """The rules that the engine plays: those of one deal when that is the episode."""
        if self.episode == "deal":
            return self.rules.replace(max_deals=1, count="deal")
        return self.rules

    @property
    def single_deal(self) -> bool:
        """Whether an episode is one deal."""
        return self.episode == "deal"

    @property
    def by_points(self) -> bool:
        """Whether rewards are points at each deal's end."""
        return self.reward == "points"

    @property
    def options(self) -> int:
        """What kernels need of these: ONE_DEAL, BY_POINTS and PENALISE, or'ed."""
        penalise = self.illegal == "penalise"
        return ONE_DEAL * self.single_deal | BY_POINTS * self.by_points | PENALISE * penalise

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The names of the seats."""
        return tuple(f"player_{seat}" for seat in range(self.rules.num_players))

    @cached_property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoder of each seat."""
        names = self.observation
        if isinstance(names, str):
            return (make_encoder(names, self.rules),) * self.rules.num_players
        return tuple(make_encoder(names[agent], self.rules) for agent in self.agents)

    @property
    def fine(self) -> float:
        """What an illegal action earns: the worst that a legal one could have led to."""
        return self.rules.worst_points if self.by_points else -1.0

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return self.rules.num_actions

    def observation_space(self, seat: int, *, mask: str | None = None) -> gymnasium.Space[Any]:
        """Return a new space of what `observe` gives for a seat."""
        encoder = self.encoders[seat]
        space: gymnasium.Space[Any]
        if encoder.is_dict:
            space = gymnasium.spaces.Dict(
                {
                    f.name: gymnasium.spaces.Box(0, 1, f.shape, self.dtype.type)
                    for f in encoder.layout.pieces
                }
            )
        else:
            layout = encoder.layout
            space = gymnasium.spaces.Box(0, layout.high, layout.shape, self.dtype.type)
        if (mask or self.mask) == "info":
            return space
        return gymnasium.spaces.Dict(
            {
                "observation": space,
                "action_mask": gymnasium.spaces.Box(0, 1, (self.num_actions,), np.int8),
            }
        )

    def action_space(self) -> gymnasium.spaces.Discrete:
        """Return a new space of actions: cards, and with charges alone two announcements."""
        return gymnasium.spaces.Discrete(self.num_actions)

    def metadata(self, **more: Any) -> dict[str, Any]:
        """Return what a checkpoint must say of itself to be played by `agents.make_agent`.

        Args:
            **more: JSON values that are kept, such as `step` and `seed`.

        Returns:
            JSON values: format, game, rules, episode, encoder, reward and version.

        Raises:
            ValueError: if the players are given different encodings.
        """
        names = {encoder.name for encoder in self.encoders}
        if len(names) > 1:
            raise ValueError(
                f"observation={self.observation!r}: the metadata of a checkpoint name one encoder"
            )
        return make_metadata(
            game_to_text(self.game, self.rules),
            self.rules,
            episode=self.episode,
            encoder=names.pop(),
            reward=self.reward,
            **more,
        )

    @cached_property
    def state_layout(self) -> Layout:
        """The layout of `state()`."""
        return state_layout(self.rules)

    def illegal_action(self, seat: int, action: int, legal: int, where: str = "") -> str:
        """Return one line that says who may not do what, and what is allowed here."""
        order = self.rules.rank_order
        if 0 <= action < self.num_actions:
            told = card_name(action, order)
        else:
            told = f"action {action} (actions are 0…{self.num_actions - 1})"
        allowed = " ".join(set_names(legal, order))
        return f"{where}player_{seat} may not play {told}; legal here: {allowed}"


def make_setup(
    game: str | Rules,
    *,
    episode: str = "match",
    reward: str = "win",
    observation: str | Mapping[str, str] = "flat_v0",
    dtype: Any = None,
    default_dtype: str = "float32",
    mask: str = "observation",
    illegal: str = "terminate",
    **rule_options: Any,
) -> Setup:
    """Return the resolved options of an environment; they are documented there.

    Raises:
        ValueError: for an unknown option or value, or rules that are impossible.
    """
    rules = make_rules(game, **rule_options)
    for name, value, choices in (
        ("episode", episode, EPISODES),
        ("reward", reward, REWARDS),
        ("mask", mask, MASKS),
        ("illegal", illegal, ILLEGAL),
    ):
        if value not in choices:
            raise ValueError(f"{name}={value!r}: allowed are {', '.join(map(repr, choices))}")
    try:
        number_type = np.dtype(default_dtype if dtype is None else dtype)
    except TypeError:
        number_type = np.dtype(object)
    if number_type.name not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: allowed are {', '.join(DTYPES)}")
    name = game if isinstance(game, str) else name_of(rules)
    if isinstance(observation, Mapping):
        observation = dict(observation)
        agents = [f"player_{seat}" for seat in range(rules.num_players)]
        if sorted(observation) != sorted(agents):
            raise ValueError(
                f"observation names {', '.join(map(str, observation)) or 'nobody'}: "
                f"it must name an encoder for each of {', '.join(agents)}"
            )
    setup = Setup(name, rules, episode, reward, observation, number_type, mask, illegal)
    if not isinstance(observation, str) and not isinstance(observation, Mapping):
        make_encoder(observation, rules)  # says what is allowed
    assert setup.encoders
    return setup


def name_of(rules: Rules) -> str:
    """Return the game that a record of given rules names: by what scores."""
    return "polignac" if rules.lowest_wins else "valety"


def parse_seed(seed: Any) -> int:
    """Return a seed as a whole number in 0…2^64−1; None: one of 64 bits of the system's entropy.

    Raises:
        ValueError: for anything else.
    """
    if seed is None:
        return secrets.randbits(64)
    try:
        # numpy 1 takes its bools for whole numbers.
        number = -1 if isinstance(seed, (bool, np.bool_)) else operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise ValueError(f"seed={seed!r}: it must be a whole number in 0…2^64-1")
    return number


def state_layout(rules: Rules) -> Layout:
    """Return the layout of `state()`: the whole table, for critics that see all cards.

    It begins with player_0's `flat_v0`, in which relative seats are absolute.
    """
    seats = seats_of(rules)
    public = make_encoder("flat_v0", rules).layout
    offset = public.size
    fields = list(public.fields)
    for name, shape, meaning in (
        ("hands", (seats, NUM_CARDS), "each seat's cards"),
        ("undealt", (NUM_CARDS,), "the cards that nobody ever sees"),
        ("turn", (seats,), "the seat to act"),
    ):
        field = Field(name, shape, meaning, offset)
        fields.append(field)
        offset += field.size
    return Layout("state_v0", (offset,), 1, tuple(fields))


@inlined
def settle(rules: np.record, state: np.record, options: int, rewards: np.ndarray, i: int) -> int:
    """Give the rewards of the action just played.

    Args:
        rules: one `RULES` record.
        state: one `STATE` record after `engine.play`; when a deal that is the episode has ended,
            its winners become those of the deal.
        options: `Setup.options`. ONE_DEAL: one deal is the episode. BY_POINTS: rewards are points
            at each deal's end, own minus the mean of the others', charges negative; else at the end
            (n/w − 1)/(n − 1) to each of w winners among n players and −1/(n − 1) to the others.
        rewards: float (N, players); row `i` is overwritten.
        i: which row.

    Returns:
        GOES_ON, DEAL_ENDED or EPISODE_ENDED.
    """
    players = int64(rules.num_players)
    for seat in range(players):
        rewards[i, seat] = 0.0
    if state.phase < DEAL_OVER:
        return GOES_ON
    over = state.phase == MATCH_OVER
    if over and options & ONE_DEAL:
        state.winners = deal_winners(rules, state)
    if options & BY_POINTS:
        total = 0
        for seat in range(players):
            total += deal_points(rules, state, seat)
        sign = 1.0 if rules.scoring == SCORING_TRICKS else -1.0
        for seat in range(players):
            own = deal_points(rules, state, seat)
            rewards[i, seat] = sign * (own - (total - own) / (players - 1.0))
    elif over:
        sharers = 0
        for seat in range(players):
            sharers += state.winners >> seat & 1
        for seat in range(players):
            if state.winners >> seat & 1:
                rewards[i, seat] = (players / sharers - 1.0) / (players - 1.0)
            else:
                rewards[i, seat] = -1.0 / (players - 1.0)
    return EPISODE_ENDED if over else DEAL_ENDED


@inlined
def is_member(actions: np.uint64, action: int) -> bool:
    """Return whether any integer `action` is in a set of actions."""
    return 0 <= action < 64 and actions >> uint64(action) & ONE != EMPTY


@inlined
def write_mask(legal: np.uint64, masks: np.ndarray, i: int) -> None:
    """Write a set of actions as 0 and 1, one an entry, into row `i` of `masks` (N, num_actions)."""
    # The two sizes there are, told apart so that each is written in a few wide stores.
    if masks.shape[1] == NUM_CARDS:
        spread_word(legal, NUM_CARDS, masks, i, 0)
    else:
        spread_word(legal, NUM_CARDS + 2, masks, i, 0)


@inlined
def observe(
    code: int | None,
    rules: np.record,
    state: np.record,
    seat: int,
    rows: np.ndarray,
    masks: np.ndarray,
    i: int,
) -> None:
    """Write what a seat observes.

    Args:
        code: the encoder, a value of `observations.ENCODERS`.
        rules: one `RULES` record.
        state: one `STATE` record.
        seat: who looks.
        rows: (N, layout.size); row `i` is overwritten.
        masks: (N, num_actions); row `i` is overwritten; all zero for a seat not to move.
        i: which row.
    """
    encode(code, rules, public_of(state), seat, state.hand[seat], rows, i)
    write_mask(legal_actions(rules, state) if seat == state.turn else EMPTY, masks, i)


@kernel
def write_state(rules: np.record, state: np.record, rows: np.ndarray, i: int) -> None:
    """Write the whole table into row `i` of `rows`, laid out by `state_layout`."""
    encode(None, rules, public_of(state), 0, state.hand[0], rows, i)
    two = rules.num_players == 2
    public = FLAT_SIZE_2 if two else FLAT_SIZE_7
    seats = 2 if two else MAX_PLAYERS
    for seat in range(MAX_PLAYERS + 1):
        cards = undealt_cards(rules, state) if seat == seats else state.hand[seat % MAX_PLAYERS]
        if seat <= seats:
            for card in range(NUM_CARDS):
                rows[i, public + seat * NUM_CARDS + card] = cards >> uint64(card) & ONE
    for seat in range(seats):
        rows[i, public + (seats + 1) * NUM_CARDS + seat] = seat == state.turn


@kernel
def decision_key(agent_seed: np.uint64, state: np.record) -> np.uint64:
    """Return the key of the next decision at a table.

    A function of the agent's seed, the table's seed, episode, deal and play.
    """
    key = mix(mix(agent_seed, state.seed), uint64(state.episode))
    step = int64(state.num_calls) + int64(state.num_plays)
    return mix(mix(key, uint64(state.deal)), uint64(step))


def ask(
    agent: Agent,
    views: np.ndarray,
    legal: np.ndarray,
    keys: np.ndarray,
    states: np.ndarray,
    tables: np.ndarray,
) -> np.ndarray:
    """Return the actions that an agent chooses at n tables, int64 (n,), legal or not.

    Args:
        agent: who is asked.
        views: `VIEW` (n,).
        legal: uint64 (n,).
        keys: uint64 (n,).
        states: `STATE` (N,): an agent that sees all is shown a copy of those it is asked about in
            place of its views. None other gets near them.
        tables: int64 (n,), which of `states` these are.

    Raises:
        ActionTypeError: if it does not give one whole number a table.
    """
    actions = np.asarray(agent.act(states[tables] if sees_all(agent) else views, legal, keys))
    if actions.shape != legal.shape or actions.dtype.kind not in "iu":
        raise ActionTypeError(
            f"{agent_name(agent)} chose actions of dtype {actions.dtype} and shape "
            f"{actions.shape}: they must be integers of shape {legal.shape}, one a table"
        )
    return np.ascontiguousarray(actions, np.int64)


@kernel
def step_table(
    rules: np.ndarray,
    states: np.ndarray,
    finals: np.ndarray,
    codes: np.ndarray | None,
    options: int,
    seat: int,
    action: int,
    rewards: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
) -> tuple[int, int]:
    """Play one action at the table `states[0]` and write what the seat then to move observes.

    After a deal the next is dealt. One call does it all, as a call costs more than a play; and one
    kernel is all that an environment's step needs of the encoders, which take seconds to compile.

    Args:
        rules: `RULES` (1,).
        states: `STATE` (1,).
        finals: `STATE` (1,); a deal that has ended within a match is left there.
        codes: int8 (players,), the seats' encoders; None if all have rows of `flat_v0`.
        options: `Setup.options`.
        seat: who observes under NO_ACTION; else not read.
        action: any integer; an illegal one changes nothing. NO_ACTION: `seat` observes the table
            as it is.
        rewards: float (1, players), overwritten when an action was played.
        rows: (1, S), S at least what the seat's encoder writes; written if the episode goes on and
            under NO_ACTION.
        masks: int8 (1 + players, num_actions), zeros. Written when `rows` is: what the seat may do
            in row 0 and, the same, in row 1 + seat.

    Returns:
        what `settle` found or ILLEGAL_ACTION (GOES_ON under NO_ACTION), and who observes.
    """
    state = states[0]
    ended = GOES_ON
    if action != NO_ACTION:
        if not is_member(legal_actions(rules[0], state), action):
            return ILLEGAL_ACTION, seat
        play(rules[0], state, action)
        ended = settle(rules[0], state, options, rewards, 0)
        if ended == DEAL_ENDED:
            finals[0] = states[0]
            next_deal(rules[0], state)
        seat = int64(state.turn)
    if ended != EPISODE_ENDED:
        if codes is None:
            observe(None, rules[0], state, seat, rows, masks, 0)
        else:
            observe(int64(codes[seat]), rules[0], state, seat, rows, masks, 0)
        for each in range(masks.shape[1]):
            masks[1 + seat, each] = masks[0, each]
    return ended, seat


@kernel
def start_table(rules: np.ndarray, states: np.ndarray, seed: np.uint64, episode: int) -> None:
    """Start an episode at the table `states[0]`."""
    start_match(rules[0], states[0], seed, episode)


@kernel
def state_of_table(rules: np.ndarray, states: np.ndarray, rows: np.ndarray) -> None:
    """Write the whole table `states[0]` into `rows` (1, S)."""
    write_state(rules[0], states[0], rows, 0)


@kernel
def view_of_table(rules: np.ndarray, states: np.ndarray, seat: int, views: np.ndarray) -> None:
    """Write what `seat` knows of the table `states[0]` into `views[0]`."""
    look(rules[0], states[0], seat, views[0])


@kernel
def legal_of_table(rules: np.ndarray, states: np.ndarray) -> np.uint64:
    """Return the legal actions at the table `states[0]` as a set."""
    return legal_actions(rules[0], states[0])


@kernel
def give_hands(
    rules: np.ndarray,
    states: np.ndarray,
    dealer: int,
    leader: int,
    hands: np.ndarray,
    turned: int,
) -> None:
    """Begin the deal at the table `states[0]` with known cards in place of its own."""
    begin_deal(rules[0], states[0], dealer, leader)
    set_hands(rules[0], states[0], hands, turned)

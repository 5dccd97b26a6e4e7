"""The player that asks a model, whatever the model is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from valety_env.agents.choosing import (
    AgentError,
    check_temperature,
    draw_actions,
    encode_shown,
    write_masks,
)
from valety_env.agents.metadata import EPISODES
from valety_env.notation import name_game
from valety_env.observations import ENCODERS, Encoder, make_encoder
from valety_env.rules import Rules
from valety_env.view import VIEW

# Positions that a model is asked about at once. It is always as many: libraries for matrices sum in
# an order that changes with the number of rows.
CHUNK = 32

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Model:
    """What the agent knows of a model.

    Attributes:
        ask: called with what is observed at `chunk` tables, uint8 (chunk, *shape) or a dict of such
            arrays, and with the legal actions, bool (chunk, actions); neither is to be changed.
            Returns numbers (chunk, actions), higher for better actions. Those of illegal actions
            don't matter.
        shape: of one observation; None stands for any number. A dict: of each named piece.
        actions: how many it gives; None: not known before it is asked.
        chunk: how many positions it takes at once.
    """

    ask: Callable[[Any, np.ndarray], Any]
    shape: Shape | Mapping[str, Shape]
    actions: int | None = None
    chunk: int = CHUNK


def one_line(error: BaseException) -> str:
    """Return an error's message as one line, its kind if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def name_of(kind: str, target: str, options: Mapping[str, Any]) -> str:
    """Return the string that makes an agent again."""
    return f"{kind}:{target}" + "".join(f",{name}={value}" for name, value in options.items())


class PolicyAgent:
    """A model as a player.

    It is asked about `Model.chunk` positions at a time, missing ones filled up with the first, so
    that its arithmetic takes the same way whatever the batch.

    Attributes:
        name: the string that makes it again.
        encoder: the name of the encoder whose rows it is shown.
        episode: `"deal"`: it takes each deal of a match for a single one; `"match"`: it takes a
            single deal for the first of a match.
        temperature: 0: always the action with the highest number; else actions are drawn with
            chances proportional to exp(number / temperature).
    """

    def __init__(
        self,
        model: Model,
        rules: Rules,
        told: Mapping[str, Any] | None,
        *,
        kind: str,
        target: str,
        encoder: str | None = None,
        episode: str | None = None,
        temperature: float = 0.0,
        **more: Any,
    ) -> None:
        """Make the player and ask the model once.

        Args:
            model: the model.
            rules: the rules it will play.
            told: its metadata, checked; None if it has none.
            kind: of agent, the first word of its name.
            target: what follows in its name.
            encoder: None: that of the metadata.
            episode: None: that of the metadata, else `"match"`.
            temperature: 0 or more.
            **more: other options of its name.

        Raises:
            ValueError: in one line, if the model does not fit the rules, or a value is not allowed.
        """
        options = {"encoder": encoder, "episode": episode, "temperature": temperature or None}
        given = more | {name: value for name, value in options.items() if value is not None}
        self.name = name_of(kind, target, given)
        self._source = f"{kind}:{target}"
        self.temperature = check_temperature(temperature)
        told = told or {}
        self.episode = episode or told.get("episode", "match")
        if self.episode not in EPISODES:
            raise ValueError(f"episode={self.episode!r}: allowed are {', '.join(EPISODES)}")
        self.encoder = encoder or told.get("encoder") or self._no_encoder(model, rules)
        if self.encoder not in ENCODERS:
            raise ValueError(
                f"{self._source}: encoder {self.encoder!r}: the encoders are {', '.join(ENCODERS)}"
            )
        found = make_encoder(self.encoder, rules)
        shape = fitting_shape(model.shape, found)
        if shape is None or model.actions not in (None, rules.num_actions):
            raise ValueError(self._misfit(model, found, rules))
        self._shape = shape
        self._encoder = found
        self._single_deal = self.episode == "deal"
        # Whatever is played, the model sees only what it could see in training. Without metadata
        # a game of one deal is taken for the first of a match that has no agreed length.
        if self._single_deal:
            deals: int | None = 1
        elif "rules" in told:
            deals = told["rules"].get("max_deals")
        else:
            deals = None if rules.max_deals == 1 else rules.max_deals
        self._rules = rules.replace(max_deals=deals).packed
        self._actions = rules.num_actions
        self._model = model
        rows = np.zeros((model.chunk, found.layout.size), np.uint8)
        try:
            self._ask(rows, np.ones((model.chunk, self._actions), np.bool_))
        except AgentError as error:
            raise ValueError(str(error)) from error.__cause__

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`.

        Raises:
            AgentError: in one line, if the model fails, or gives a legal action no number.
        """
        size = len(views)
        chunk = self._model.chunk
        rows = np.empty((chunk, self._encoder.layout.size), np.uint8)
        masks = np.empty((chunk, self._actions), np.bool_)
        logits = np.empty((size, self._actions), np.float32)
        actions = np.empty(size, np.int64)
        view = np.empty(1, VIEW)
        for low in range(0, size, chunk):
            part = views[low : low + chunk]
            encode_shown(
                self._encoder.kernel_code,
                self._rules,
                part,
                self._single_deal,
                view,
                rows[: len(part)],
            )
            write_masks(legal[low : low + chunk], masks[: len(part)])
            rows[len(part) :] = rows[0]
            masks[len(part) :] = masks[0]
            logits[low : low + chunk] = self._ask(rows, masks)[: len(part)]
        row = draw_actions(logits, legal, keys, self.temperature, actions)
        if row >= 0:
            raise AgentError(f"{self.name} gives a legal action a value that is not a number")
        return actions

    def _ask(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return the model's numbers for one chunk, (chunk, actions)."""
        if isinstance(self._shape, tuple):
            shown: Any = rows.reshape(len(rows), *self._shape)
        else:
            shown = self._encoder.shaped(rows)
        try:
            logits = np.asarray(self._model.ask(shown, masks))
        except Exception as error:
            kind = type(error).__name__
            raise AgentError(
                f"{self._source} fails when asked: {kind}: {one_line(error)}"
            ) from error
        if logits.shape != masks.shape:
            given = "×".join(map(str, logits.shape)) or "a single one"
            raise AgentError(
                f"{self._source} was asked for {masks.shape[0]}×{masks.shape[1]} numbers, one for "
                f"each position and action, and gave {given}"
            )
        if logits.dtype.kind not in "fiu":
            raise AgentError(f"{self._source} gives {logits.dtype} values, not numbers")
        return logits

    def _misfit(self, model: Model, found: Encoder, rules: Rules) -> str:
        """Return the message for a model of other sizes than the game's."""
        gives = "" if model.actions is None else f" and gives {model.actions} actions"
        return (
            f"{self._source} reads {_told(model.shape)} entries{gives}, but {found.name} of these "
            f"rules has {_told_encoder(found)} entries and {rules.num_actions} actions"
        )

    def _no_encoder(self, model: Model, rules: Rules) -> str:
        """Raise the error for a model that does not say what it observes."""
        found = [make_encoder(name, rules) for name in ENCODERS]
        fitting = [encoder for encoder in found if fitting_shape(model.shape, encoder) is not None]
        game = name_game(rules)
        sizes = ", ".join(
            f"{encoder.name} has {_told_encoder(encoder)}" for encoder in fitting or found
        )
        none = "" if fitting else "no encoder fits: "
        example = (fitting or found)[0].name
        raise ValueError(
            f"{self._source} does not say its encoder; name it, as in "
            f"{self._source},encoder={example} "
            f"(it reads {_told(model.shape)} entries; {none}{sizes} in {game})"
        )


def fitting_shape(
    shape: Shape | Mapping[str, Shape], encoder: Encoder
) -> tuple[int, ...] | Mapping[str, Shape] | None:
    """Return the shape in which a model gets an encoder's observation; None if it does not fit.

    An encoder's row fits flat or in its own shape; that of `pieces_v0` as the dict of its fields.
    """
    if isinstance(shape, Mapping):
        pieces = {field.name: field.shape for field in encoder.layout.pieces}
        return shape if encoder.is_dict and dict(shape) == pieces else None
    if encoder.is_dict:
        return None
    for own in (encoder.layout.shape, (encoder.layout.size,)):
        if len(own) == len(shape) and all(
            wanted in (None, given) for wanted, given in zip(shape, own, strict=True)
        ):
            return own
    return None


def _told(shape: Shape | Mapping[str, Shape]) -> str:
    """Return a shape as text."""
    if isinstance(shape, Mapping):
        total = sum(math.prod(size or 0 for size in piece) for piece in shape.values())
        return f"{total} (in {len(shape)} pieces)"
    return "×".join("any number of" if size is None else str(size) for size in shape)


def _told_encoder(encoder: Encoder) -> str:
    """Return the shape of an encoder's observation as text."""
    layout = encoder.layout
    if encoder.is_dict:
        return _told({field.name: field.shape for field in layout.pieces})
    if len(layout.shape) == 1:
        return str(layout.size)
    return f"{'×'.join(map(str, layout.shape))} = {layout.size}"

"""`checkpoint:PATH`: a trained network as a player; its file format, and the network itself.

A checkpoint is one `.safetensors` file: weights, and in its header a JSON text that says what they
belong to. Loading it runs no code from the file.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from valety_env._jit import kernel
from valety_env.agents import needs_extra
from valety_env.agents.choosing import (
    AgentError,
    chances_to_draw,
    check_temperature,
    draw_actions,
    forget_match,
)
from valety_env.agents.files import find_checkpoint, replacing
from valety_env.agents.metadata import FORMAT_VERSION, KEY, REQUIRED, check_metadata, read_json
from valety_env.observations import encode_view, make_encoder
from valety_env.rules import Rules
from valety_env.view import VIEW

with needs_extra(__name__, "train", ("torch", "safetensors")):
    import torch
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file
    from torch import nn

# What the metadata must hold.
_REQUIRED = (*REQUIRED, "network")

# The encoders whose rows a network of this module can read, entry by entry.
ENCODERS = ("flat_v0", "planes_v0")


@dataclass(frozen=True)
class NetworkConfig:
    """What a network's weights do not say by themselves.

    Attributes:
        inputs: entries of an observation.
        actions: size of the action space.
        hidden: the sizes of the hidden layers.
        kind: `"mlp"`.
    """

    inputs: int
    actions: int
    hidden: tuple[int, ...] = (256, 256)
    kind: str = "mlp"

    def __post_init__(self) -> None:
        """Refuse what no network can be made of."""
        if self.kind != "mlp":
            raise ValueError(f"network kind {self.kind!r}: allowed is 'mlp'")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        sizes = (self.inputs, *self.hidden, self.actions)
        if not self.hidden or not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError(
                f"network inputs={self.inputs!r}, hidden={self.hidden!r}, actions={self.actions!r}:"
                " sizes must be whole numbers above 0, and there must be a hidden layer"
            )


class ActorCritic(nn.Module):
    """A policy and a value of one observation, in a multilayer perceptron with two heads.

    Args:
        config: its sizes.

    Attributes:
        config: as given.
        hidden: the hidden layers, each followed by a ReLU.
        head: the output layer: a logit for each action, then the value.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        sizes = (config.inputs, *config.hidden)
        hidden = [nn.Linear(size, next_size) for size, next_size in pairwise(sizes)]
        self.hidden = nn.ModuleList(hidden)
        self.head = nn.Linear(sizes[-1], config.actions + 1)
        for layer in hidden:
            nn.init.orthogonal_(layer.weight, math.sqrt(2.0))
            nn.init.zeros_(layer.bias)
        # The first policy is nearly uniform, whatever the observation.
        nn.init.orthogonal_(self.head.weight[:-1], 0.01)
        nn.init.orthogonal_(self.head.weight[-1:], 1.0)
        nn.init.zeros_(self.head.bias)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the network makes of observations.

        Args:
            observation: (…, inputs) of any dtype.

        Returns:
            logits (…, actions), not masked, and values (…).
        """
        x = observation.to(self.head.weight.dtype)
        for layer in self.hidden:
            x = torch.relu(layer(x))
        x = self.head(x)
        return x[..., :-1], x[..., -1]


def save_checkpoint(path: str | Path, network: ActorCritic, metadata: Mapping[str, Any]) -> None:
    """Write a checkpoint; at any moment `path` holds a whole one, the old or the new.

    Args:
        path: the file, ending in `.safetensors`.
        network: its weights are stored as float32.
        metadata: JSON values; `game`, `rules` (`Rules.to_dict`), `episode` and `encoder` are
            required, others such as `step` and `seed` are kept.

    Raises:
        ValueError: if a required entry is missing, or a weight is not a finite number.
    """
    told = {
        "format": FORMAT_VERSION,
        **metadata,
        "network": dataclasses.asdict(network.config),
    }
    missing = [name for name in _REQUIRED if name not in told]
    if missing:
        raise ValueError(f"the metadata of a checkpoint lack {', '.join(missing)}")
    weights = {
        name: tensor.detach().to("cpu", torch.float32).contiguous()
        for name, tensor in network.state_dict().items()
    }
    path = Path(path)
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise ValueError(f"{path} is not written: the network's weights are not all finite")
    with replacing(path) as temporary:
        save_file(weights, temporary, {KEY: json.dumps(told)})


def read_checkpoint(path: str | Path) -> tuple[ActorCritic, dict[str, Any]]:
    """Read a checkpoint.

    Args:
        path: as `find_checkpoint` takes it.

    Returns:
        the network, and the metadata.

    Raises:
        ValueError: in one line, if the file is missing, damaged, of another format, or if its
            weights are not those of its network.
    """
    file = find_checkpoint(path)
    try:
        with safe_open(file, framework="pt") as opened:
            header = (opened.metadata() or {}).get(KEY)
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file} is not a readable safetensors file: {reason}") from None
    metadata = read_json(header)
    if metadata is None:
        raise ValueError(f"{file} is a safetensors file, but not a checkpoint of valety_env")
    check_metadata(metadata, str(file), _REQUIRED)
    try:
        network = ActorCritic(NetworkConfig(**metadata["network"]))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}: no network can be made of its metadata: {error}") from None
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if found != expected:
        raise ValueError(f"{file}: its weights have shapes {found}, its network needs {expected}")
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise ValueError(f"{file}: its weights are not all finite numbers")
    network.load_state_dict(weights)
    return network, metadata


@kernel
def apply_layer(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, relu: bool, out: np.ndarray
) -> None:
    """Write one layer of a network.

    Args:
        x: (inputs,); entries that are 0 cost nothing.
        weight: float32 (inputs, outputs).
        bias: float32 (outputs,).
        relu: whether negative results become 0.
        out: float32 (outputs,), overwritten.
    """
    for j in range(out.size):
        out[j] = bias[j]
    for i in range(x.size):
        if x[i] != 0:
            value = np.float32(x[i])
            for j in range(out.size):
                out[j] += value * weight[i, j]
    if relu:
        for j in range(out.size):
            out[j] = max(out[j], np.float32(0.0))


@kernel
def apply_network(
    row: np.ndarray,
    weights: tuple[np.ndarray, ...],
    biases: tuple[np.ndarray, ...],
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write what `ActorCritic` makes of one observation.

    The order of every sum is fixed here, so that the result depends on the row alone. Libraries
    for matrices sum in an order that changes with the number of rows, of threads and the machine.

    Args:
        row: (inputs,).
        weights: float32 (inputs, outputs) of each layer.
        biases: float32 (outputs,) of each layer.
        scratch: float32 (2, widest hidden layer), overwritten.
        out: float32 (outputs of the last layer,), overwritten.
    """
    last = len(weights) - 1
    width = biases[0].size
    apply_layer(row, weights[0], biases[0], True, scratch[0, :width])
    for i in range(1, last):
        next_width = biases[i].size
        x = scratch[(i - 1) & 1, :width]
        apply_layer(x, weights[i], biases[i], True, scratch[i & 1, :next_width])
        width = next_width
    apply_layer(scratch[(last - 1) & 1, :width], weights[last], biases[last], False, out)


@kernel
def write_logits(
    code: int | None,
    rules: np.ndarray,
    views: np.ndarray,
    single_deal: bool,
    weights: tuple[np.ndarray, ...],
    biases: tuple[np.ndarray, ...],
    view: np.ndarray,
    row: np.ndarray,
    scratch: np.ndarray,
    logits: np.ndarray,
) -> None:
    """Write what a network makes of each table.

    Args:
        code: the encoder, a value of `observations.ENCODERS`.
        rules: `RULES` (1,), those by which the network was shown the game.
        views: `VIEW` (N,).
        single_deal: whether the network knows single deals alone.
        weights: as in `apply_network`.
        biases: as in `apply_network`.
        view: `VIEW` (1,), scratch.
        row: uint8 (1, inputs), scratch.
        scratch: as in `apply_network`.
        logits: float32 (N, actions + 1), overwritten; the value is the last.
    """
    for i in range(views.size):
        view[0] = views[i]
        if single_deal:
            forget_match(rules[0], view[0])
        encode_view(code, rules[0], view[0], row, 0)
        apply_network(row[0], weights, biases, scratch, logits[i])


class NeuralAgent:
    """A network as a player, without torch's own arithmetic: see `apply_network`.

    Attributes:
        name: as given.
        temperature: 0: always the likeliest action; 1: actions as likely as the network says.
        about: what its checkpoint says of it, JSON values such as `step` and `seed`.
        draws: whether its `chances` are those of its choices: if it has a temperature.
    """

    def __init__(
        self,
        network: ActorCritic,
        rules: Rules,
        *,
        encoder: str = "flat_v0",
        episode: str = "match",
        max_deals: int | None = None,
        temperature: float = 0.0,
        name: str = "network",
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the player; a copy is taken of the network's weights.

        Args:
            network: reads `encoder` and gives a logit for each action.
            rules: the rules it will play.
            encoder: what the network was trained on.
            episode: `"deal"`: it was trained on single deals, and takes each deal of a match for
                one; `"match"`: it takes a single deal for the first of a match.
            max_deals: of the rules it was trained on, by which it counts the deals left.
            temperature: 0 or more; of its choices.
            name: the string that makes it again.
            about: what its checkpoint says of it.

        Raises:
            ValueError: if the network does not fit the rules, or a value is not allowed.
        """
        temperature = check_temperature(temperature)
        if encoder not in ENCODERS:
            raise ValueError(f"encoder {encoder!r}: networks read {', '.join(ENCODERS)}")
        config = network.config
        inputs = make_encoder(encoder, rules).layout.size
        if (config.inputs, config.actions) != (inputs, rules.num_actions):
            raise ValueError(
                f"the network reads {config.inputs} entries and gives {config.actions} actions, "
                f"but {encoder} of these rules has {inputs} entries and {rules.num_actions} actions"
            )
        self.name = name
        self.about = dict(about or {})
        self.temperature = temperature
        self.draws = temperature > 0
        self._code = make_encoder(encoder, rules).kernel_code
        self._single_deal = episode == "deal"
        # Whatever is played, the network sees only what it could see in training.
        self._rules = rules.replace(max_deals=1 if self._single_deal else max_deals).packed
        layers = [
            [tensor.detach().to("cpu", torch.float32).numpy() for tensor in layer.parameters()]
            for layer in (*network.hidden, network.head)
        ]
        self._weights = tuple(np.ascontiguousarray(weight.T) for weight, _ in layers)
        self._biases = tuple(bias.copy() for _, bias in layers)

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`.

        Raises:
            AgentError: if sums of the network exceed what a float32 can hold.
        """
        actions = np.empty(len(views), np.int64)
        row = draw_actions(self._logits(views), legal, keys, self.temperature, actions)
        if row >= 0:
            raise AgentError(f"{self.name} gives a legal action a value that is not a number")
        return actions

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Say how likely given actions are, as `Policy`; at temperature 1 if it has none."""
        chances = np.empty(len(views))
        chances_to_draw(self._logits(views), legal, actions, self.temperature or 1.0, chances)
        return chances

    def _logits(self, views: np.ndarray) -> np.ndarray:
        """Return what the network makes of each table, float32 (N, actions + 1)."""
        logits = np.empty((len(views), self._biases[-1].size), np.float32)
        write_logits(
            self._code,
            self._rules,
            views,
            self._single_deal,
            self._weights,
            self._biases,
            np.empty(1, VIEW),
            np.empty((1, self._weights[0].shape[0]), np.uint8),
            np.empty((2, max(bias.size for bias in self._biases)), np.float32),
            logits,
        )
        return logits


def load_checkpoint_agent(path: str, rules: Rules, **options: Any) -> NeuralAgent:
    """Make the player of a checkpoint.

    Args:
        path: a `.safetensors` file, with or without the ending, or a run's folder.
        rules: the rules it will play; others than it was trained on are accepted when its
            observations and actions have the same sizes.
        **options: `temperature`; 0, the default: its likeliest action; 1: actions as likely as it
            was trained to play them.

    Returns:
        the player.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    for option in options:
        if option != "temperature":
            raise ValueError(f"checkpoint has no option {option!r}; its option is: temperature")
    network, metadata = read_checkpoint(path)
    given = "".join(f",{option}={value}" for option, value in options.items())
    try:
        return NeuralAgent(
            network,
            rules,
            encoder=metadata["encoder"],
            episode=metadata["episode"],
            max_deals=metadata["rules"].get("max_deals"),
            name=f"checkpoint:{path}{given}",
            about=metadata,
            **options,
        )
    except ValueError as error:
        raise ValueError(f"checkpoint:{path} of {metadata['game']}: {error}") from None

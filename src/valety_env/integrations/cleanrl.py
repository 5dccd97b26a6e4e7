"""CleanRL: the networks of a script in its style as a checkpoint of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import valety_env
from valety_env.agents import needs_extra

with needs_extra(__name__, "train", ("torch",)):
    import torch
    from torch import nn

from valety_env.agents.neural import ActorCritic, NetworkConfig, save_checkpoint


def save_agent(
    path: str | Path,
    env: Any,
    network: nn.Sequential,
    actor: nn.Linear,
    critic: nn.Linear,
    **told: Any,
) -> Path:
    """Write a checkpoint that `valety-env evaluate` and all that takes an agent's name can play.

    Args:
        path: the file, ending in `.safetensors`.
        env: an environment of this package that the networks were trained on; it tells the rules,
            the encoder, the episode and the reward. Wrappers around it are allowed.
        network: the hidden layers that actor and critic share: `nn.Linear` and `nn.ReLU` in turn.
        actor: gives a logit for each action.
        critic: gives the value.
        **told: what else the checkpoint is to say of itself, such as `step` and `seed`.

    Returns:
        the file.

    Raises:
        ValueError: if the networks are of another kind, or do not fit the environment.
    """
    setup = env.unwrapped.setup
    layers = [layer for layer in list(network)[::2] if isinstance(layer, nn.Linear)]
    relus = [layer for layer in list(network)[1::2] if isinstance(layer, nn.ReLU)]
    biased = all(layer.bias is not None for layer in layers)
    if not (layers and len(layers) == len(relus) == len(network) / 2 and biased):
        kinds = ", ".join(type(layer).__name__ for layer in network) or "nothing"
        raise ValueError(
            f"network is made of {kinds}: a checkpoint holds Linear and ReLU in turn; export any "
            "other network to ONNX"
        )
    encoder = setup.encoders[0]
    sizes = (layers[0].in_features, actor.out_features, critic.out_features)
    wanted = (encoder.layout.size, setup.num_actions, 1)
    if sizes != wanted:
        raise ValueError(
            f"network, actor and critic have {sizes[0]} inputs, {sizes[1]} and {sizes[2]} outputs: "
            f"this environment needs {wanted[0]}, {wanted[1]} and {wanted[2]}"
        )
    hidden = tuple(layer.out_features for layer in layers)
    copy = ActorCritic(NetworkConfig(sizes[0], sizes[1], hidden))
    with torch.no_grad():
        for mine, theirs in zip(copy.hidden, layers, strict=True):
            mine.load_state_dict(theirs.state_dict())
        copy.head.weight.copy_(torch.cat((actor.weight, critic.weight)))
        copy.head.bias.copy_(torch.cat((actor.bias, critic.bias)))
    metadata = {
        "game": setup.game,
        "rules": setup.rules.to_dict(),
        "episode": setup.episode,
        "reward": setup.reward,
        "encoder": encoder.name,
        "version": valety_env.__version__,
        **told,
    }
    save_checkpoint(path, copy, metadata)
    return Path(path)

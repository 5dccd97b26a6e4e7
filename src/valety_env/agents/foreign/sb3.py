"""`sb3:FILE`: a policy that Stable-Baselines3 or sb3-contrib has saved.

The file is a zip with pickled objects, so that loading it can run code; whoever makes such an agent
says that he trusts it. Policies of PPO, A2C, DQN and MaskablePPO are understood. What one was
trained on is the attribute `valety_env` of the model when it was saved: SB3 writes it as plain JSON
into the zip.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from valety_env.agents.foreign.policy import Model, PolicyAgent, one_line
from valety_env.agents.foreign.spaces import Observed, read_spaces
from valety_env.agents.metadata import KEY, check_metadata
from valety_env.rules import Rules

# What a policy is made of; nothing else in the file is unpickled.
_NEEDED = ("policy_class", "observation_space", "action_space", "policy_kwargs")


def load_sb3_agent(path: str, rules: Rules, **options: Any) -> PolicyAgent:
    """Make the player of an SB3 model. Unpickles parts of the file: trust it first.

    Args:
        path: the zip, with or without its ending.
        rules: the rules it will play.
        **options: `encoder`, `episode` and `temperature`, as `PolicyAgent` takes them.

    Returns:
        the player. The model runs on the CPU.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    import stable_baselines3  # noqa: F401  (says what is missing before anything is read)

    file, data = _read_data(path)
    told = data.get(KEY)
    if told is not None:
        if not isinstance(told, dict):
            raise ValueError(f"sb3:{path}: its metadata {KEY!r} are not a JSON object")
        check_metadata(told, path)
    policy, observation_space, action_space = _load_policy(path, file, data)
    observed, actions = read_spaces(f"sb3:{path}", observation_space, action_space)
    model = Model(_asking(path, policy, observed), observed.shape, actions)
    return PolicyAgent(model, rules, told, kind="sb3", target=path, **options)


def _read_data(path: str) -> tuple[Path, dict[str, Any]]:
    """Return the file and its JSON, in which what is pickled is still text."""
    file = next((f for f in (Path(path), Path(f"{path}.zip")) if f.is_file()), None)
    if file is None:
        raise ValueError(f"sb3:{path}: there is no such file; it must be a zip that SB3 has saved")
    try:
        with zipfile.ZipFile(file) as opened:
            data = json.loads(opened.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise ValueError(f"sb3:{path} is not a zip that SB3 has saved: {one_line(error)}") from None
    if not isinstance(data, dict) or not all(name in data for name in _NEEDED):
        raise ValueError(f"sb3:{path} is not a zip that SB3 has saved: it tells of no policy")
    return file, data


def _load_policy(path: str, file: Path, data: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the policy, ready to be asked, and its two spaces."""
    from stable_baselines3.common.save_util import load_from_zip_file

    unread = dict.fromkeys((name for name in data if name not in _NEEDED), None)
    try:
        with warnings.catch_warnings():
            # SB3 warns of what it cannot unpickle and goes on without it.
            warnings.simplefilter("ignore")
            loaded, weights, _ = load_from_zip_file(file, device="cpu", custom_objects=unread)
            if loaded is None or "policy" not in weights:
                raise ValueError("it has no policy")
            lacking = [name for name in _NEEDED if name not in loaded]
            if lacking:
                raise ValueError(
                    f"{', '.join(lacking)} cannot be unpickled with the versions installed here"
                )
            spaces = loaded["observation_space"], loaded["action_space"]
            # The third argument is the learning rate, which nobody asks for.
            policy = loaded["policy_class"](*spaces, lambda _: 0.0, **loaded["policy_kwargs"])
            policy.load_state_dict(weights["policy"])
            policy.set_training_mode(False)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("stable_baselines3", "sb3_contrib", "torch"):
            raise
        raise ValueError(
            f"sb3:{path} needs the module {error.name}, which cannot be imported here"
        ) from error
    except Exception as error:
        raise ValueError(
            f"sb3:{path} cannot be loaded: {type(error).__name__}: {one_line(error)}"
        ) from error
    return policy, *spaces


def _asking(path: str, policy: Any, observed: Observed) -> Any:
    """Return what asks a policy for logits or values of the actions, not masked."""
    import torch
    from stable_baselines3.common.policies import ActorCriticPolicy

    if hasattr(policy, "q_net"):

        def judge(observation: Any) -> Any:
            return policy.q_net(observation)

    elif hasattr(policy, "lstm_actor"):
        raise ValueError(f"sb3:{path} has a memory of its own, but agents are without one")
    elif isinstance(policy, ActorCriticPolicy) or hasattr(policy, "get_distribution"):

        def judge(observation: Any) -> Any:
            return policy.get_distribution(observation).distribution.logits

    else:
        raise ValueError(
            f"sb3:{path} has a {type(policy).__name__}; understood are the policies of PPO, A2C, "
            "DQN and MaskablePPO"
        )

    def ask(shown: Any, masks: np.ndarray) -> np.ndarray:
        laid_out = observed.lay_out(shown, masks)
        with torch.inference_mode():
            if isinstance(laid_out, dict):
                fed: Any = {name: torch.as_tensor(array) for name, array in laid_out.items()}
            else:
                fed = torch.as_tensor(laid_out)
            logits: np.ndarray = judge(fed).numpy()
        return logits

    return ask

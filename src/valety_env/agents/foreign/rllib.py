"""`rllib:DIR`: an RLModule that Ray RLlib has saved, alone or in an Algorithm's checkpoint.

The folder holds pickled objects, so that loading it can run code; whoever makes such an agent says
that he trusts it. What the module was trained on is a file `valety_env.json` in its folder or in
one above, up to that which holds the folder named.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from valety_env.agents.foreign.policy import Model, PolicyAgent, one_line
from valety_env.agents.foreign.spaces import read_spaces
from valety_env.agents.metadata import KEY, check_metadata, read_json
from valety_env.rules import Rules

METADATA_FILE = f"{KEY}.json"
# Where an Algorithm's checkpoint keeps its modules, and what a module's folder has.
_MODULES = Path("learner_group/learner/rl_module")
_MARK = "module_state*"
_MAIN = "main"


def load_rllib_agent(
    path: str, rules: Rules, *, module: str | None = None, **options: Any
) -> PolicyAgent:
    """Make the player of an RLlib checkpoint. Unpickles parts of it: trust it first.

    Args:
        path: the folder of an RLModule, of several, or of an Algorithm.
        rules: the rules it will play.
        module: which of several modules; None: `main`, or the only one.
        **options: `encoder`, `episode` and `temperature`, as `PolicyAgent` takes them.

    Returns:
        the player. The module runs on the CPU.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    import torch
    from ray.rllib.core.rl_module.rl_module import RLModule

    folder = _find_module(path, module)
    told = _read_metadata(Path(path), folder)
    try:
        # RLlib passes over a class that cannot be imported, and fails later without its name.
        pickle.loads((folder / RLModule.CLASS_AND_CTOR_ARGS_FILE_NAME).read_bytes())
        # PyArrow, which reads the files, knows absolute paths alone.
        loaded = RLModule.from_checkpoint(str(folder.resolve()))
        if isinstance(loaded, torch.nn.Module):
            loaded.eval()
    except Exception as error:
        raise ValueError(
            f"rllib:{path} cannot be loaded: {type(error).__name__}: {one_line(error)}"
        ) from error
    if module is not None:
        options["module"] = module
    return play_module(loaded, rules, told, path, **options)


def play_module(
    module: Any, rules: Rules, told: dict[str, Any] | None, target: str, /, **options: Any
) -> PolicyAgent:
    """Make the player of an RLModule at hand, such as one in training.

    Args:
        module: a TorchRLModule without memory; the player sees what changes in it later.
        rules: the rules it will play.
        told: its metadata, checked; None if it has none.
        target: what follows `rllib:` in the player's name.
        **options: as `PolicyAgent` takes them.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    import torch
    from ray.rllib.core.columns import Columns
    from ray.rllib.utils.torch_utils import convert_to_torch_tensor

    source = f"rllib:{target}"
    kind = type(module)
    if not issubclass(kind, torch.nn.Module):
        raise ValueError(f"{source} has a {kind.__name__}; it must be a TorchRLModule")
    if module.is_stateful():
        raise ValueError(f"{source} has a memory of its own, but agents are without one")
    observed, actions = read_spaces(source, module.observation_space, module.action_space)

    def ask(shown: Any, masks: np.ndarray) -> np.ndarray:
        laid_out = observed.lay_out(shown, masks)
        with torch.no_grad():
            given = module.forward_inference({Columns.OBS: convert_to_torch_tensor(laid_out)})
            if Columns.ACTION_DIST_INPUTS not in given:
                found = ", ".join(given)
                raise ValueError(f"it gives {found}, but no {Columns.ACTION_DIST_INPUTS}")
            logits: np.ndarray = given[Columns.ACTION_DIST_INPUTS].cpu().numpy()
        return logits

    model = Model(ask, observed.shape, actions)
    return PolicyAgent(model, rules, told, kind="rllib", target=target, **options)


def _find_module(path: str, module: str | None) -> Path:
    """Return the folder of one module."""
    given = Path(path)
    if not given.is_dir():
        what = "it is a file" if given.is_file() else "there is no such folder"
        raise ValueError(f"rllib:{path}: {what}; it must be a checkpoint's folder")
    # The folder of several modules has the marks of one, too.
    for folder in (given / _MODULES, given):
        found = sorted(file.parent.name for file in folder.glob(f"*/{_MARK}"))
        wanted = module or (found[0] if len(found) == 1 else _MAIN)
        if wanted in found:
            return folder / wanted
        if found:
            raise ValueError(
                f"rllib:{path} has no module {wanted}; name one, as in "
                f"rllib:{path},module={found[0]}: it has {', '.join(found)}"
            )
    if any(given.glob(_MARK)):
        if module not in (None, given.name):
            raise ValueError(
                f"rllib:{path},module={module}: it is the folder of one module, {given.name}"
            )
        return given
    raise ValueError(
        f"rllib:{path} is not a checkpoint of RLlib's new API stack: it must be the folder of an "
        f"RLModule, or of an Algorithm, with {_MODULES.as_posix()} in it"
    )


def _read_metadata(given: Path, folder: Path) -> dict[str, Any] | None:
    """Return the metadata that lie nearest to a module; None if there are none."""
    top = given.resolve().parent
    place = folder.resolve()
    while place.is_relative_to(top):
        file = place / METADATA_FILE
        if file.is_file():
            try:
                told = read_json(file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise ValueError(f"{file} cannot be read: {one_line(error)}") from None
            if told is None:
                raise ValueError(f"{file} is not a JSON object")
            check_metadata(told, str(file))
            return told
        if place == place.parent:
            break
        place = place.parent
    return None

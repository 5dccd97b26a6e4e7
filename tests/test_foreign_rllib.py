"""`rllib:DIR`: RLModules of Ray RLlib as players."""

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from test_checkpoint import some_views

from valety_env import cli, make_agent
from valety_env.episode import make_setup
from valety_env.observations import encode_views, make_encoder
from valety_env.rules import Rules, make_rules

pytest.importorskip("ray")
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule

pytestmark = pytest.mark.slow

RULES = {game: make_rules(game) for game in ("valety", "polignac")}
LOWEST = float(torch.finfo(torch.float32).min)


class Masked(TorchRLModule):
    """Two layers over the observation; illegal actions get the lowest number there is."""

    def setup(self) -> None:
        entries = int(np.prod(self.observation_space["observation"].shape))
        self.first = torch.nn.Linear(entries, 32)
        self.last = torch.nn.Linear(32, int(self.action_space.n))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        # RLlib's own examples take the dict they are given apart.
        seen = batch[Columns.OBS]
        observation, mask = seen.pop("observation"), seen.pop("action_mask")
        assert observation.dtype == torch.float32
        assert mask.dtype == torch.int8
        logits = self.last(torch.tanh(self.first(observation.flatten(1))))
        return {Columns.ACTION_DIST_INPUTS: logits.masked_fill(mask == 0, LOWEST)}


class Plain(Masked):
    """The same of an observation without mask."""

    def setup(self) -> None:
        self.first = torch.nn.Linear(self.observation_space.shape[0], 32)
        self.last = torch.nn.Linear(32, int(self.action_space.n))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.last(torch.tanh(self.first(batch[Columns.OBS])))}


class Chooser(Plain):
    """It gives actions alone."""

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTIONS: super()._forward(batch)[Columns.ACTION_DIST_INPUTS].argmax(1)}


class Stateful(Plain):
    """It says that it has a memory."""

    def get_initial_state(self) -> dict[str, Any]:
        return {"memory": torch.zeros(3)}

    def is_stateful(self) -> bool:
        return True


def spec(kind: Any = Masked, game: str = "valety", encoder: str = "flat_v0") -> RLModuleSpec:
    setup = make_setup(game, observation=encoder)
    mask = "observation" if kind is Masked else "info"
    return RLModuleSpec(
        module_class=kind,
        observation_space=setup.observation_space(0, mask=mask),
        action_space=setup.action_space(),
    )


def save(folder: Path, about: Any = None, **options: Any) -> Any:
    """Save a module with weights that prefer one action to another; returns it."""
    torch.manual_seed(4)
    module = spec(**options).build()
    torch.nn.init.normal_(module.last.weight, 0, 2)
    module.save_to_path(str(folder))
    if about is not None:
        (folder / "valety_env.json").write_text(json.dumps(about))
    return module


def told(game: str = "valety", **options: Any) -> dict[str, Any]:
    return make_setup(game, **options).metadata()


def its_choices(
    module: Any, rules: Rules, views: np.ndarray, legal: np.ndarray, encoder: str = "flat_v0"
) -> list[int]:
    """What the module finds best, by its own weights alone."""
    found = make_encoder(encoder, rules)
    rows = np.zeros((len(views), found.layout.size), np.uint8)
    encode_views(found.code, rules.packed, views, rows)
    masks = (legal[:, None] >> np.arange(rules.num_actions, dtype=np.uint64)) & np.uint64(1) != 0
    with torch.no_grad():
        logits = module.last(torch.tanh(module.first(torch.from_numpy(rows).float()))).numpy()
    chosen: list[int] = np.where(masks, logits, -np.inf).argmax(1).tolist()
    return chosen


@pytest.mark.parametrize("game", RULES)
@pytest.mark.parametrize("kind", [Masked, Plain])
def test_a_module_plays_what_it_finds_best(tmp_path: Path, game: str, kind: Any) -> None:
    module = save(tmp_path / "m", told(game), game=game, kind=kind)
    agent = make_agent(f"rllib:{tmp_path}/m", RULES[game], trust=True)
    assert agent.name == f"rllib:{tmp_path}/m"
    views, legal, keys = some_views(RULES[game], 10, 20)
    actions = agent.act(views, legal, keys).tolist()
    assert actions == its_choices(module, RULES[game], views, legal)
    assert len(set(actions)) > 15


def test_a_module_is_shown_what_it_was_trained_on(tmp_path: Path) -> None:
    rules = RULES["valety"]
    module = save(tmp_path, told(observation="planes_v0", episode="deal"), encoder="planes_v0")
    agent = make_agent(f"rllib:{tmp_path}", rules, trust=True)
    assert (agent.encoder, agent.episode) == ("planes_v0", "deal")
    views, legal, keys = some_views(rules, 10, 20, episode="deal")
    single = make_setup(rules, episode="deal").played
    assert agent.act(views, legal, keys).tolist() == its_choices(
        module, single, views, legal, "planes_v0"
    )


def test_a_choice_is_the_same_alone_and_in_any_batch(tmp_path: Path) -> None:
    save(tmp_path, told())
    views, legal, keys = some_views(RULES["valety"], 20, 34)
    agent = make_agent(f"rllib:{tmp_path},temperature=1", RULES["valety"], trust=True)
    whole = agent.act(views, legal, keys)
    for size in (1, 33):
        for low in range(0, len(views), size):
            part = slice(low, low + size)
            assert (agent.act(views[part], legal[part], keys[part]) == whole[part]).all()


def test_one_of_several_modules_is_found(tmp_path: Path) -> None:
    rules = RULES["valety"]
    views, legal, keys = some_views(rules, 10, 20)
    specs = {"main": spec(), "old_1": spec()}
    both = MultiRLModuleSpec(rl_module_specs=specs).build()
    for i, name in enumerate(specs):
        torch.manual_seed(i)
        torch.nn.init.normal_(both[name].last.weight, 0, 2)
    # As an Algorithm's checkpoint has them.
    modules = tmp_path / "learner_group" / "learner" / "rl_module"
    both.save_to_path(str(modules))
    (tmp_path / "valety_env.json").write_text(json.dumps(told()))
    main = its_choices(both["main"], rules, views, legal)
    old = its_choices(both["old_1"], rules, views, legal)
    assert main != old
    for name, expected in (
        (f"rllib:{tmp_path}", main),
        (f"rllib:{tmp_path},module=main", main),
        (f"rllib:{tmp_path},module=old_1", old),
        (f"rllib:{modules},module=old_1,encoder=flat_v0", old),
        (f"rllib:{modules}/old_1,encoder=flat_v0", old),
    ):
        agent = make_agent(name, rules, trust=True)
        assert agent.name == name
        assert agent.act(views, legal, keys).tolist() == expected
    assert refusal(f"rllib:{tmp_path},module=new", rules) == (
        f"rllib:{tmp_path} has no module new; name one, as in rllib:{tmp_path},module=main: "
        "it has main, old_1"
    )
    assert "is the folder of one module, old_1" in refusal(
        f"rllib:{modules}/old_1,module=main,encoder=flat_v0", rules
    )


def test_metadata_may_lie_beside_a_modules_folder(tmp_path: Path) -> None:
    save(tmp_path / "module")
    (tmp_path / "valety_env.json").write_text(json.dumps(told(episode="deal")))
    agent = make_agent(f"rllib:{tmp_path}/module", RULES["valety"], trust=True)
    assert agent.episode == "deal"
    # Those in the folder itself are nearer.
    (tmp_path / "module" / "valety_env.json").write_text(json.dumps(told()))
    agent = make_agent(f"rllib:{tmp_path}/module", RULES["valety"], trust=True)
    assert agent.episode == "match"


def test_a_module_is_evaluated_from_a_folder_that_is_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "m", told())
    monkeypatch.chdir(tmp_path)
    arguments = "evaluate rllib:m --against random --deals 10 --seed 1 --trust --json -".split()
    assert cli.main(arguments) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["results"][0]["agent"] == "rllib:m"
    assert "ray" in out["versions"]


def refusal(name: str, rules: Rules) -> str:
    with pytest.raises(ValueError) as caught:
        make_agent(name, rules, trust=True)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_module_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    name = f"rllib:{tmp_path}"
    save(tmp_path)
    assert f"{name} does not say its encoder; name it" in refusal(name, RULES["valety"])
    assert refusal(f"{name},encoder=flat_v0", RULES["polignac"]) == (
        f"{name} reads 464 entries and gives 52 actions, but flat_v0 of these rules has 1224 "
        "entries and 54 actions"
    )
    (tmp_path / "valety_env.json").write_text("{half")
    assert "valety_env.json is not a JSON object" in refusal(name, RULES["valety"])
    save(tmp_path, told(), kind=Chooser)
    assert "it gives actions, but no action_dist_inputs" in refusal(name, RULES["valety"])
    save(tmp_path, told(), kind=Stateful)
    assert "has a memory of its own" in refusal(name, RULES["valety"])


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    name = f"rllib:{tmp_path}"
    assert "there is no such folder" in refusal(f"{name}/none", RULES["valety"])
    assert "is not a checkpoint of RLlib's new API stack" in refusal(name, RULES["valety"])
    save(tmp_path, told())
    assert "it is a file" in refusal(f"{name}/valety_env.json", RULES["valety"])
    (tmp_path / "module_state.pkl").write_bytes(b"damaged")
    assert f"{name} cannot be loaded: " in refusal(name, RULES["valety"])


def test_a_class_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, told())
    monkeypatch.delattr(sys.modules[__name__], "Masked")
    message = refusal(f"rllib:{tmp_path}", RULES["valety"])
    assert "cannot be loaded: AttributeError: " in message
    assert "Masked" in message


def test_nothing_is_unpickled_without_trust(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    save(tmp_path, told())
    (tmp_path / "class_and_ctor_args.pkl").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="can run code when it is loaded"):
        make_agent(f"rllib:{tmp_path}", RULES["valety"])
    assert not (tmp_path / "sprung").exists()


def test_a_module_can_be_an_opponent(tmp_path: Path) -> None:
    save(tmp_path, told())
    agent = make_agent(f"rllib:{tmp_path}", RULES["valety"], trust=True)
    env = gymnasium.make("valety/Valety-v0", opponent=agent)
    _, info = env.reset(seed=1)
    terminated = False
    while not terminated:
        action = env.action_space.sample(info["action_mask"])
        _, _, terminated, _, info = env.step(action)
    record = env.unwrapped.table.record()
    assert record["illegal"] is None
    assert max(record["totals"]) >= 20

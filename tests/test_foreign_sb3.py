"""`sb3:FILE`: models of Stable-Baselines3 and sb3-contrib as players."""

import base64
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from test_checkpoint import some_views

import valety_env
from valety_env import cli, make_agent
from valety_env.rules import Rules, make_rules

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")
import torch
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning:stable_baselines3"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:stable_baselines3"),
]

RULES = {game: make_rules(game) for game in ("valety", "polignac")}
ALGORITHMS = {a.__name__: a for a in (MaskablePPO, PPO, A2C, DQN)}


def untrained(
    kind: Any = MaskablePPO, game: str = "valety", policy: str = "", **options: Any
) -> Any:
    """A model with its first weights, made to prefer one action to another."""
    env = gymnasium.make(f"valety/{game.capitalize()}-v0", opponent="random", **options)
    if not policy:
        is_dict = isinstance(env.observation_space, gymnasium.spaces.Dict)
        policy = "MultiInputPolicy" if is_dict else "MlpPolicy"
    more: dict[str, Any] = {"n_steps": 8}
    if kind in (DQN, QRDQN):
        more = {"buffer_size": 10}
    if kind in (MaskablePPO, PPO, RecurrentPPO):
        more["batch_size"] = 8
    model = kind(policy, env, device="cpu", seed=1, **more)
    head = getattr(model.policy, "action_net", None)
    if head is not None:
        torch.nn.init.normal_(head.weight, 0, 2)
    model.valety_env = env.unwrapped.setup.metadata()
    return model


def its_choices(model: Any, rules: Rules, views: np.ndarray, legal: np.ndarray) -> list[int]:
    """What the model itself finds best, asked by SB3's own means, one position after another."""
    from valety_env.observations import encode_views, make_encoder

    encoder = make_encoder(model.valety_env["encoder"], rules)
    rows = np.zeros((len(views), encoder.layout.size), np.uint8)
    encode_views(encoder.code, rules.packed, views, rows)
    masks = (legal[:, None] >> np.arange(rules.num_actions, dtype=np.uint64)) & np.uint64(1) != 0
    chosen = []
    for row, mask in zip(rows, masks, strict=True):
        seen: Any = encoder.shaped(row.astype(np.float32))
        space = model.observation_space
        if isinstance(space, gymnasium.spaces.Dict) and "action_mask" in space.spaces:
            seen = {"observation": seen, "action_mask": mask.astype(np.int8)}
        if isinstance(model, MaskablePPO):
            action, _ = model.predict(seen, action_masks=mask, deterministic=True)
            chosen.append(int(action))
            continue
        tensor, _ = model.policy.obs_to_tensor(seen)
        with torch.no_grad():
            if isinstance(model, DQN):
                values = model.q_net(tensor)[0].numpy()
            else:
                values = model.policy.get_distribution(tensor).distribution.probs[0].numpy()
        chosen.append(int(np.where(mask, values, -np.inf).argmax()))
    return chosen


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("mask", ["info", "observation"])
def test_a_model_plays_what_it_finds_best(tmp_path: Path, algorithm: str, mask: str) -> None:
    model = untrained(ALGORITHMS[algorithm], mask=mask)
    model.save(tmp_path / "a.zip")
    views, legal, keys = some_views(RULES["valety"], 10, 20)
    for name in (f"sb3:{tmp_path}/a.zip", f"sb3:{tmp_path}/a"):
        agent = make_agent(name, RULES["valety"], trust=True)
        assert agent.name == name
        actions = agent.act(views, legal, keys).tolist()
        assert actions == its_choices(model, RULES["valety"], views, legal)
        assert len(set(actions)) > 15


@pytest.mark.parametrize("game", RULES)
@pytest.mark.parametrize("encoder", ["planes_v0", "tokens_v0", "pieces_v0"])
def test_a_model_is_shown_what_it_was_trained_on(tmp_path: Path, game: str, encoder: str) -> None:
    model = untrained(game=game, observation=encoder)
    model.save(tmp_path / "a.zip")
    agent = make_agent(f"sb3:{tmp_path}/a.zip", RULES[game], trust=True)
    assert agent.encoder == encoder
    views, legal, keys = some_views(RULES[game], 10, 10)
    assert agent.act(views, legal, keys).tolist() == its_choices(model, RULES[game], views, legal)


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_a_model_gets_observations_of_its_dtype_unscaled(tmp_path: Path, dtype: str) -> None:
    model = untrained(observation="planes_v0", dtype=dtype)
    model.save(tmp_path / "a.zip")
    agent = make_agent(f"sb3:{tmp_path}/a.zip", RULES["valety"], trust=True)
    views, legal, keys = some_views(RULES["valety"], 10, 10)
    assert agent.act(views, legal, keys).tolist() == its_choices(
        model, RULES["valety"], views, legal
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_choice_is_the_same_alone_and_in_any_batch(tmp_path: Path, algorithm: str) -> None:
    untrained(ALGORITHMS[algorithm]).save(tmp_path / "a.zip")
    views, legal, keys = some_views(RULES["valety"], 20, 34)
    agent = make_agent(f"sb3:{tmp_path}/a.zip,temperature=1", RULES["valety"], trust=True)
    whole = agent.act(views, legal, keys)
    order = np.random.default_rng(0).permutation(len(views))
    assert (agent.act(views[order], legal[order], keys[order]) == whole[order]).all()
    for size in (1, 7, 33):
        for low in range(0, len(views), size):
            part = slice(low, low + size)
            assert (agent.act(views[part], legal[part], keys[part]) == whole[part]).all()


def test_a_trained_model_is_evaluated_from_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = untrained(episode="deal")
    model.learn(64)
    model.save(tmp_path / "a.zip")
    # What it was trained on goes with it when it is loaded and saved again.
    again = MaskablePPO.load(tmp_path / "a.zip")
    assert again.valety_env["episode"] == "deal"
    again.save(tmp_path / "b.zip")
    arguments = f"evaluate sb3:{tmp_path}/b.zip --against random --deals 20 --seed 1".split()
    assert cli.main([*arguments, "--trust", "--json", "-"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["results"][0]["agent"] == f"sb3:{tmp_path}/b.zip"
    assert "stable_baselines3" in out["versions"]
    agent = make_agent(f"sb3:{tmp_path}/b.zip", RULES["valety"], trust=True)
    assert agent.episode == "deal"
    env = gymnasium.make("valety/Valety-v0", opponent=agent)
    env.reset(seed=1)
    env.step(env.action_space.sample(env.unwrapped.table.last()[4]["action_mask"]))


def refusal(name: str, rules: Rules) -> str:
    with pytest.raises(ValueError) as caught:
        make_agent(name, rules, trust=True)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(name.partition(",")[0])
    return message


def test_a_model_without_metadata_must_be_told_its_encoder(tmp_path: Path) -> None:
    model = untrained()
    del model.valety_env
    model.save(tmp_path / "a.zip")
    name = f"sb3:{tmp_path}/a.zip"
    assert refusal(name, RULES["valety"]) == (
        f"{name} does not say its encoder; name it, as in {name},encoder=flat_v0 (it reads 464 "
        "entries; flat_v0 has 464 in valety)"
    )
    assert make_agent(f"{name},encoder=flat_v0", RULES["valety"], trust=True).episode == "match"
    assert refusal(f"{name},encoder=flat_v0", RULES["polignac"]) == (
        f"{name} reads 464 entries and gives 52 actions, but flat_v0 of these rules has 1224 "
        "entries and 54 actions"
    )
    model = untrained(observation="pieces_v0")
    del model.valety_env
    model.save(tmp_path / "a.zip")
    assert "(it reads 460 (in 15 pieces) entries; pieces_v0 has" in refusal(name, RULES["valety"])


def test_a_policy_with_a_memory_or_another_algorithm_is_refused(tmp_path: Path) -> None:
    untrained(RecurrentPPO, policy="MlpLstmPolicy").save(tmp_path / "a.zip")
    assert "has a memory of its own" in refusal(f"sb3:{tmp_path}/a.zip", RULES["valety"])
    untrained(QRDQN).save(tmp_path / "b.zip")
    assert "understood are the policies of PPO, A2C, DQN and MaskablePPO" in refusal(
        f"sb3:{tmp_path}/b.zip", RULES["valety"]
    )


def rewrite(path: Path, change: Any) -> None:
    """Change the JSON of a saved model."""
    with zipfile.ZipFile(path) as opened:
        parts = {name: opened.read(name) for name in opened.namelist()}
    data = json.loads(parts["data"])
    change(data)
    with zipfile.ZipFile(path, "w") as opened:
        for name, part in (parts | {"data": json.dumps(data).encode()}).items():
            opened.writestr(name, part)


def test_only_what_makes_the_policy_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    untrained().save(tmp_path / "a.zip")
    hidden = {":serialized:": base64.b64encode(pickle.dumps(Trap())).decode()}
    rewrite(tmp_path / "a.zip", lambda data: data.update(lr_schedule=hidden, extra=hidden))
    assert make_agent(f"sb3:{tmp_path}/a.zip", RULES["valety"], trust=True)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(valety_env=[1]), "its metadata 'valety_env' are not a JSON"),
        (lambda data: data["valety_env"].pop("encoder"), "its metadata lack encoder"),
        (lambda data: data.pop("policy_class"), "it tells of no policy"),
        (lambda data: data.update(policy_kwargs={"depth": 3}), "cannot be loaded: TypeError: "),
        (lambda data: data.update(policy_kwargs={"net_arch": [3]}), "cannot be loaded: RuntimeE"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, change: Any, said: str) -> None:
    untrained().save(tmp_path / "a.zip")
    rewrite(tmp_path / "a.zip", change)
    with pytest.raises(ValueError) as caught:
        make_agent(f"sb3:{tmp_path}/a.zip", RULES["valety"], trust=True)
    assert said in str(caught.value)
    assert f"{tmp_path}/a.zip" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_sb3_has_not_saved_is_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(f"sb3:{tmp_path}/none.zip", RULES["valety"])
    (tmp_path / "a.zip").write_bytes(b"no zip")
    assert "is not a zip that SB3 has saved" in refusal(f"sb3:{tmp_path}/a.zip", RULES["valety"])
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        opened.writestr("readme", "nothing")
    assert "is not a zip that SB3 has saved" in refusal(f"sb3:{tmp_path}/a.zip", RULES["valety"])


def test_a_policy_of_a_module_that_is_missing_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_policies.py").write_text(
        "from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy\n"
        "class Own(MaskableActorCriticPolicy): pass\n"
    )
    import own_policies  # type: ignore[import-not-found]

    untrained(policy=own_policies.Own).save(tmp_path / "a.zip")
    assert make_agent(f"sb3:{tmp_path}/a.zip", RULES["valety"], trust=True)
    monkeypatch.delitem(__import__("sys").modules, "own_policies")
    (tmp_path / "own_policies.py").unlink()
    message = refusal(f"sb3:{tmp_path}/a.zip", RULES["valety"])
    assert message.endswith("needs the module own_policies, which cannot be imported here")


def test_the_metadata_tell_the_rules(tmp_path: Path) -> None:
    env = gymnasium.make("valety/Polignac-v0", opponent="random", num_players=5, episode="deal")
    told = env.unwrapped.setup.metadata(step=7, version=valety_env.__version__)
    assert told["game"] == "polignac,num_players=5"
    assert Rules.from_dict(told["rules"]) == make_rules("polignac", num_players=5)
    assert json.loads(json.dumps(told)) == told
    assert (told["episode"], told["encoder"], told["reward"]) == ("deal", "flat_v0", "win")
    assert (told["step"], told["version"]) == (7, valety_env.__version__)

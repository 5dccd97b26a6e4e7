"""Foreign models as players: ONNX files, functions of the user's own, and whom to trust."""

import json
import os
import pickle
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import third_deal
from test_checkpoint import make_network, metadata, some_views

from valety_env import cli, make_agent
from valety_env.agents import Agent, AgentError, UntrustedError
from valety_env.agents.foreign.policy import CHUNK, Model, PolicyAgent
from valety_env.agents.neural import save_checkpoint
from valety_env.arena import evaluate
from valety_env.cli import console
from valety_env.episode import make_setup
from valety_env.observations import encode_views, make_encoder
from valety_env.rules import Rules, make_rules
from valety_env.single import SingleEnv

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT = TensorProto.FLOAT
RULES = {game: make_rules(game) for game in ("valety", "polignac")}


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long kernels take to compile, standard error is that of messages alone."""
    monkeypatch.setattr(console.Bar, "patience", 1e9)


def highest(legal: np.ndarray) -> list[int]:
    """The highest legal action of each row."""
    return [int(actions).bit_length() - 1 for actions in legal]


def told(rules: Rules, /, **changes: Any) -> dict[str, Any]:
    return make_setup(rules).metadata() | changes


def write_model(
    path: Path,
    nodes: list[Any],
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: dict[str, list[Any]],
    weights: dict[str, np.ndarray] | None = None,
    about: Any = None,
) -> str:
    """Write an ONNX model; returns its agent's name."""
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if about is not None:
        text = about if isinstance(about, str) else json.dumps(about)
        helper.set_model_props(model, {"valety_env": text})
    path.write_bytes(model.SerializeToString())
    return f"onnx:{path}"


def linear(
    path: Path,
    weight: np.ndarray,
    about: Any = None,
    batch: Any = "n",
    kind: int = FLOAT,
) -> str:
    """Write the model observation × weight."""
    nodes = [
        helper.make_node("Cast", ["seen"], ["x"], to=FLOAT),
        helper.make_node("MatMul", ["x", "w"], ["chances"]),
    ]
    return write_model(
        path,
        nodes,
        {"seen": (kind, [batch, weight.shape[0]])},
        {"chances": [batch, weight.shape[1]]},
        {"w": weight.astype(np.float32)},
        about,
    )


def by_hand(rules: Rules, encoder: str = "flat_v0") -> np.ndarray:
    """Weights that make the highest card of the hand the best."""
    layout = make_encoder(encoder, rules).layout
    weight = np.zeros((layout.size, rules.num_actions))
    start = layout["hand"].offset
    for card in range(52):
        weight[start + card, card] = card + 1
    return weight


@pytest.mark.parametrize("game", RULES)
@pytest.mark.parametrize("batch", ["n", 1, 5])
def test_an_onnx_model_plays_what_it_finds_best(tmp_path: Path, game: str, batch: Any) -> None:
    rules = RULES[game]
    name = linear(tmp_path / "m.onnx", by_hand(rules), told(rules), batch)
    agent = make_agent(name, rules)
    assert isinstance(agent, Agent)
    assert agent.name == name
    views, legal, keys = some_views(rules, 20, 20)
    cards = legal < 1 << 52
    assert cards.sum() > 200
    actions = agent.act(views, legal, keys)
    assert actions.dtype == np.int64
    assert actions[cards].tolist() == highest(legal[cards])


@pytest.mark.parametrize(
    "kind", ["FLOAT16", "DOUBLE", "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8"]
)
def test_an_onnx_model_gets_observations_in_the_dtype_it_reads(tmp_path: Path, kind: str) -> None:
    rules = RULES["valety"]
    kinds = getattr(TensorProto, kind)
    agent = make_agent(linear(tmp_path / "m.onnx", by_hand(rules), told(rules), kind=kinds), rules)
    views, legal, keys = some_views(rules, 4, 20)
    assert agent.act(views, legal, keys).tolist() == highest(legal)


@pytest.mark.parametrize("axes", [[25, 4, 13], [None, None, None], ["c", 4, 13]])
def test_planes_come_in_their_shape_where_a_model_reads_them_so(
    tmp_path: Path, axes: list[Any]
) -> None:
    rules = RULES["valety"]
    # The first plane is the hand: its sum with the place of each card.
    nodes = [
        helper.make_node("Slice", ["planes", "zero", "one", "one"], ["hand"]),
        helper.make_node("Reshape", ["hand", "flat"], ["held"]),
        helper.make_node("Mul", ["held", "worth"], ["logits"]),
    ]
    name = write_model(
        tmp_path / "m.onnx",
        nodes,
        {"planes": (FLOAT, ["n", *axes])},
        {"logits": ["n", 52]},
        {
            "zero": np.array([0]),
            "one": np.array([1]),
            "flat": np.array([-1, 52]),
            "worth": np.arange(1, 53, dtype=np.float32),
        },
    ).replace(".onnx", ".onnx,encoder=planes_v0")
    # Slice without axes cuts from the first axis on, which is the batch's: name the second.
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.node[0].input[3:] = ["one"]
    onnx.save(model, tmp_path / "m.onnx")
    agent = make_agent(name, rules)
    views, legal, keys = some_views(rules, 20, 20)
    assert agent.act(views, legal, keys).tolist() == highest(legal)


def test_tokens_come_as_whole_numbers_in_their_shape(tmp_path: Path) -> None:
    rules = RULES["valety"]
    layout = make_encoder("tokens_v0", rules).layout
    # A card that is held, kind 5, has the value card + 1: one-hot over the values, then a sum.
    nodes = [
        helper.make_node("Gather", ["tokens", "kind"], ["kinds"], axis=2),
        helper.make_node("Gather", ["tokens", "value"], ["values"], axis=2),
        helper.make_node("Equal", ["kinds", "hold"], ["held"]),
        helper.make_node("Cast", ["held"], ["held_f"], to=FLOAT),
        helper.make_node("OneHot", ["values", "depth", "off_on"], ["hot"], axis=-1),
        helper.make_node("Unsqueeze", ["held_f", "last"], ["held_column"]),
        helper.make_node("Mul", ["hot", "held_column"], ["held_hot"]),
        helper.make_node("ReduceSum", ["held_hot", "middle"], ["sums"], keepdims=0),
        helper.make_node("Slice", ["sums", "from", "to", "one"], ["hands"]),
        helper.make_node("Mul", ["hands", "worth"], ["logits"]),
    ]
    name = write_model(
        tmp_path / "m.onnx",
        nodes,
        {"tokens": (TensorProto.INT64, ["n", *layout.shape])},
        {"logits": ["n", 52]},
        {
            "kind": np.array(0),
            "value": np.array(2),
            "hold": np.array(5),
            "depth": np.array(55),
            "off_on": np.array([0, 1], np.float32),
            "last": np.array([-1]),
            "middle": np.array([1]),
            "from": np.array([1]),
            "to": np.array([53]),
            "one": np.array([1]),
            "worth": np.arange(1, 53, dtype=np.float32),
        },
        told(rules, encoder="tokens_v0"),
    )
    agent = make_agent(name, rules)
    views, legal, keys = some_views(rules, 20, 20)
    assert agent.act(views, legal, keys).tolist() == highest(legal)


def test_a_model_that_reads_the_mask_gets_the_legal_actions(tmp_path: Path) -> None:
    rules = RULES["polignac"]
    weight = np.zeros((1224, 54), np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["nothing"]),
        helper.make_node("Mul", ["action_mask", "worth"], ["legal"]),
        helper.make_node("Add", ["nothing", "legal"], ["logits"]),
    ]
    name = write_model(
        tmp_path / "m.onnx",
        nodes,
        {"action_mask": (FLOAT, ["n", 54]), "x": (FLOAT, ["n", 1224])},
        {"logits": ["n", 54], "value": ["n", 54]},
        {"w": weight, "worth": np.arange(1, 55, dtype=np.float32)},
        told(rules),
    )
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.node.append(helper.make_node("Identity", ["logits"], ["value"]))
    onnx.save(model, tmp_path / "m.onnx")
    views, legal, keys = some_views(rules, 20, 20)
    assert make_agent(name, rules).act(views, legal, keys).tolist() == highest(legal)


def test_illegal_actions_are_never_played_whatever_the_model_finds_best(tmp_path: Path) -> None:
    rules = RULES["valety"]
    weight = np.random.default_rng(0).normal(size=(464, 52))
    for temperature in ("", ",temperature=3"):
        name = linear(tmp_path / "m.onnx", weight, told(rules)) + temperature
        agent = make_agent(name, rules)
        assert agent.name == name
        views, legal, keys = some_views(rules, 20, 20)
        actions = agent.act(views, legal, keys)
        assert (legal >> actions.astype(np.uint64) & np.uint64(1)).all()


def test_a_choice_is_the_same_alone_and_in_any_batch(tmp_path: Path) -> None:
    rules = RULES["valety"]
    path = tmp_path / "last.safetensors"
    save_checkpoint(path, make_network(rules, (256, 256)), metadata(rules))
    assert cli.main(["export", f"checkpoint:{path}", str(tmp_path / "m.onnx")]) == 0
    views, legal, keys = some_views(rules, 60, 34)
    for temperature in (0, 1):
        agent = make_agent(f"onnx:{tmp_path}/m.onnx,temperature={temperature}", rules)
        whole = agent.act(views, legal, keys)
        assert len(set(whole.tolist())) > 40
        order = np.random.default_rng(0).permutation(len(views))
        assert (agent.act(views[order], legal[order], keys[order]) == whole[order]).all()
        for size in (1, 7, CHUNK + 1):
            for low in range(0, len(views), size):
                part = slice(low, low + size)
                assert (agent.act(views[part], legal[part], keys[part]) == whole[part]).all()


class Listener:
    """A model that keeps what it was asked and finds all actions equal."""

    def __init__(self, shape: Any = (464,), actions: int | None = 52, chunk: int = CHUNK) -> None:
        self.asked: list[tuple[Any, np.ndarray]] = []
        self.model = Model(self.ask, shape, actions, chunk)

    def ask(self, shown: Any, masks: np.ndarray) -> np.ndarray:
        self.asked.append((shown.copy(), masks.copy()))
        return np.zeros(masks.shape)

    def agent(self, rules: Rules, about: Any = None, **options: Any) -> PolicyAgent:
        agent = PolicyAgent(self.model, rules, about, kind="test", target="it", **options)
        self.asked.clear()
        return agent


def test_a_model_is_always_asked_about_as_many_positions() -> None:
    listener = Listener(chunk=8)
    agent = listener.agent(RULES["valety"], encoder="flat_v0")
    views, legal, keys = some_views(RULES["valety"], 5, 4)
    for size in (1, 7, 8, 9, 20):
        listener.asked.clear()
        agent.act(views[:size], legal[:size], keys[:size])
        assert [len(shown) for shown, _ in listener.asked] == [8] * -(-size // 8)
        rows = np.concatenate([shown for shown, _ in listener.asked])
        masks = np.concatenate([mask for _, mask in listener.asked])
        expected = np.zeros((size, 464), np.uint8)
        encode_views(0, RULES["valety"].packed, views[:size], expected)
        assert (rows[:size] == expected).all()
        assert (masks[:size] @ (1 << np.arange(52, dtype=np.uint64)) == legal[:size]).all()
        # What fills up the last is a position of it.
        assert (rows[size:] == rows[size - (size - 1) % 8 - 1]).all()


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("episode", ["match", "deal"])
def test_a_model_sees_what_it_could_see_in_training(episode: str, named: bool) -> None:
    rules = RULES["valety"]
    listener = Listener()
    if named:
        agent = listener.agent(rules, encoder="flat_v0", episode=episode)
    else:
        agent = listener.agent(rules, make_setup(rules, episode=episode).metadata())
    views, legal = third_deal(rules)
    before = views.copy()
    agent.act(views, legal, np.zeros(2, np.uint64))
    assert (views == before).all()
    shown = listener.asked[0][0]
    layout = make_encoder("flat_v0", rules).layout
    assert (shown[0] == shown[1]).all() == (episode == "deal")
    # Deals to come: none of a single deal, of a match all eight ones.
    assert (shown[:2, layout.slice("deals_left")] == (episode == "match")).all()


def test_a_model_of_matches_takes_a_single_deal_for_the_first_of_a_match() -> None:
    rules = RULES["valety"]
    layout = make_encoder("flat_v0", rules).layout
    single = make_setup(rules, episode="deal").played
    views, legal, keys = some_views(rules, 4, 4, episode="deal")
    for about, options in ((None, {"encoder": "flat_v0"}), (told(rules), {})):
        listener = Listener()
        listener.agent(single, about, **options).act(views, legal, keys)
        assert (listener.asked[0][0][:, layout.slice("deals_left")] == 1).all()
    # One that knows matches of three deals sees two to come.
    listener = Listener()
    listener.agent(single, told(make_rules("valety", max_deals=3))).act(views, legal, keys)
    left = listener.asked[0][0][:, layout.slice("deals_left")]
    assert (left == [1, 1, 0, 0, 0, 0, 0, 0]).all()


def test_a_named_encoder_or_episode_counts_more_than_the_metadata() -> None:
    rules = RULES["valety"]
    listener = Listener((1300,))
    agent = listener.agent(rules, told(rules), encoder="planes_v0", episode="deal")
    assert (agent.encoder, agent.episode) == ("planes_v0", "deal")
    assert agent.name == "test:it,encoder=planes_v0,episode=deal"


def test_choices_are_as_likely_as_the_temperature_says(tmp_path: Path) -> None:
    rules = RULES["valety"]
    weight = np.random.default_rng(0).normal(size=(464, 52))
    name = linear(tmp_path / "m.onnx", weight, told(rules))
    views, legal, _ = some_views(rules, 1, 1)
    row = np.zeros((1, 464), np.uint8)
    encode_views(0, rules.packed, views[:1], row)
    n = 20000
    keys = np.random.default_rng(0).integers(0, 2**64, n, np.uint64)
    views, legal = np.repeat(views, n), np.repeat(legal, n)
    allowed = (legal[0] >> np.arange(52, dtype=np.uint64)) & np.uint64(1) != 0
    for temperature in (0.5, 2.0):
        agent = make_agent(f"{name},temperature={temperature}", rules)
        found = np.bincount(agent.act(views, legal, keys), minlength=52) / n
        odds = np.where(allowed, np.exp((row[0] @ weight) / temperature), 0)
        np.testing.assert_allclose(found, odds / odds.sum(), atol=0.015)


# Our own checkpoints as ONNX.


@pytest.mark.parametrize("game", RULES)
@pytest.mark.parametrize("encoder", ["flat_v0", "planes_v0"])
@pytest.mark.parametrize("hidden", [(48,), (256, 256), (32, 40, 24)])
def test_an_exported_checkpoint_computes_and_plays_the_same(
    tmp_path: Path, game: str, encoder: str, hidden: tuple[int, ...]
) -> None:
    torch = pytest.importorskip("torch")
    rules = RULES[game]
    network = make_network(rules, hidden, encoder)
    about = metadata(rules, encoder=encoder, game=game)
    save_checkpoint(tmp_path / "last.safetensors", network, about)
    file = tmp_path / "m.onnx"
    assert cli.main(["export", f"checkpoint:{tmp_path}", str(file)]) == 0
    views, legal, keys = some_views(rules, 100, 34)
    found = make_encoder(encoder, rules)
    rows = np.zeros((len(views), found.layout.size), np.uint8)
    encode_views(found.code, rules.packed, views, rows)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    logits, value = session.run(None, {"observation": rows.astype(np.float32)})
    with torch.inference_mode():
        expected_logits, expected_value = network(torch.from_numpy(rows))
    np.testing.assert_allclose(logits, expected_logits.numpy(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(value, expected_value.numpy(), rtol=0, atol=1e-5)
    ours = make_agent(f"checkpoint:{tmp_path}", rules).act(views, legal, keys)
    theirs = make_agent(f"onnx:{file}", rules).act(views, legal, keys)
    assert len(set(ours.tolist())) > 20
    assert (ours == theirs).all()


def test_an_exported_checkpoint_keeps_its_metadata_and_passes_onnxs_checks(tmp_path: Path) -> None:
    rules = RULES["valety"]
    save_checkpoint(tmp_path / "last.safetensors", make_network(rules), metadata(rules))
    file = tmp_path / "m.onnx"
    assert cli.main(["export", f"checkpoint:{tmp_path}", str(file)]) == 0
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    about = json.loads({prop.key: prop.value for prop in model.metadata_props}["valety_env"])
    assert about.items() >= metadata(rules).items()
    assert about["format"] == 1


def test_an_export_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = RULES["valety"]
    save_checkpoint(tmp_path / "last.safetensors", make_network(rules), metadata(rules))
    file = tmp_path / "m.onnx"
    file.write_bytes(b"the old one")
    there = sorted(tmp_path.iterdir())

    def fail(descriptor: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("valety_env.agents.files.os.fsync", fail)
    assert cli.main(["export", f"checkpoint:{tmp_path}", str(file)]) == 2
    assert capsys.readouterr().err == "valety-env: the disk is full\n"
    assert file.read_bytes() == b"the old one"
    assert sorted(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("checkpoint:nowhere {0}/m.onnx", "no checkpoint at nowhere"),
        ("checkpoint:{0} {0}/m.txt", "the file's name must end in .onnx"),
        ("checkpoint:{0} {0}/none/m.onnx", "there is no folder"),
        ("checkpoint:{0},temperature=1 {0}/m.onnx", "export takes checkpoint:PATH, without"),
        ("heuristic {0}/m.onnx", "export takes checkpoint:PATH"),
    ],
)
def test_a_wrong_export_is_one_line(
    tmp_path: Path, arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = RULES["valety"]
    save_checkpoint(tmp_path / "last.safetensors", make_network(rules), metadata(rules))
    assert cli.main(["export", *arguments.format(tmp_path).split()]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m.onnx").exists()


# Models that do not fit.


def refusal(name: str, rules: Rules, **options: Any) -> str:
    with pytest.raises(ValueError) as caught:
        make_agent(name, rules, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_wrong_shape_is_refused_with_both(tmp_path: Path) -> None:
    name = linear(tmp_path / "m.onnx", by_hand(RULES["valety"]), told(RULES["valety"]))
    assert refusal(name, RULES["polignac"]) == (
        f"{name} reads 464 entries and gives 52 actions, but flat_v0 of these rules has 1224 "
        "entries and 54 actions"
    )
    assert refusal(f"{name},encoder=planes_v0", RULES["valety"]) == (
        f"{name} reads 464 entries and gives 52 actions, but planes_v0 of these rules has "
        "25×4×13 = 1300 entries and 52 actions"
    )
    narrow = linear(tmp_path / "n.onnx", np.zeros((464, 54)), told(RULES["valety"]))
    assert "gives 54 actions, but flat_v0" in refusal(narrow, RULES["valety"])


def test_sizes_that_a_model_does_not_tell_are_found_by_asking_it(tmp_path: Path) -> None:
    rules = RULES["valety"]
    name = write_model(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (FLOAT, ["n", "entries"])},
        {"y": ["n", "actions"]},
        {"w": np.zeros((100, 52), np.float32)},
    )
    assert f"{name} fails when asked: " in refusal(f"{name},encoder=flat_v0", rules)
    for answer, said in (
        (np.zeros((CHUNK, 40)), f"for {CHUNK}×52 numbers, one for each position and action, and"),
        (np.zeros(52), "and gave 52"),
        (np.full((CHUNK, 52), "a"), "gives <U1 values, not numbers"),
    ):
        listener = Listener(actions=None)
        object.__setattr__(listener.model, "ask", lambda shown, masks, a=answer: a)
        with pytest.raises(ValueError, match=said):
            listener.agent(rules, encoder="flat_v0")


def test_a_model_without_metadata_must_be_told_its_encoder(tmp_path: Path) -> None:
    name = linear(tmp_path / "m.onnx", by_hand(RULES["valety"]))
    assert refusal(name, RULES["valety"]) == (
        f"{name} does not say its encoder; name it, as in {name},encoder=flat_v0 "
        "(it reads 464 entries; flat_v0 has 464 in valety)"
    )
    assert (
        "(it reads 464 entries; no encoder fits: flat_v0 has 1224, planes_v0 has 75×4×13 = 3900, "
        "tokens_v0 has 87×3 = 261, pieces_v0 has 1219 (in 15 pieces) in polignac)"
    ) in refusal(name, RULES["polignac"])
    views, legal, keys = some_views(RULES["valety"], 4, 4)
    agent = make_agent(f"{name},encoder=flat_v0", RULES["valety"])
    assert agent.act(views, legal, keys).tolist() == highest(legal)
    assert "pieces_v0 of these rules has 460 (in 15 pieces)" in refusal(
        f"{name},encoder=pieces_v0", RULES["valety"]
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("encoder=flat_v9", "encoder=flat_v9: allowed are flat_v0, planes_v0, tokens_v0"),
        ("episode=game", "episode=game: allowed are match, deal"),
        ("temperature=-1", "temperature=-1: it must be a number of at least 0"),
        ("temperature=warm", "temperature='warm': it must be a number"),
        ("depth=3", "onnx has no option 'depth'; its options are: encoder, episode, temperature"),
    ],
)
def test_a_wrong_option_is_refused(tmp_path: Path, option: str, said: str) -> None:
    name = linear(tmp_path / "m.onnx", by_hand(RULES["valety"]), told(RULES["valety"]))
    assert said in refusal(f"{name},{option}", RULES["valety"])


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("{half", "its metadata 'valety_env' are not a JSON object"),
        ({"format": 2}, "has checkpoint format 2; this version reads format 1"),
        ({"format": 1, "game": "valety"}, "its metadata lack rules, episode, encoder"),
        (told(RULES["valety"], rules={"x": 1}), "the rules in its metadata are none"),
        (told(RULES["valety"], episode="day"), "episode in its metadata is 'day'; allowed are"),
        (told(RULES["valety"], encoder="flat_v9"), "encoder 'flat_v9': the encoders are flat_v0"),
    ],
)
def test_wrong_metadata_are_refused(tmp_path: Path, about: Any, said: str) -> None:
    name = linear(tmp_path / "m.onnx", by_hand(RULES["valety"]), about)
    message = refusal(name, RULES["valety"])
    assert said in message
    assert str(tmp_path / "m.onnx") in message


def test_a_missing_damaged_or_foreign_file_is_refused(tmp_path: Path) -> None:
    rules = RULES["valety"]
    assert "there is no such file" in refusal(f"onnx:{tmp_path}/none.onnx", rules)
    assert "it is a folder" in refusal(f"onnx:{tmp_path}", rules)
    name = linear(tmp_path / "m.onnx", by_hand(rules), told(rules))
    whole = (tmp_path / "m.onnx").read_bytes()
    for damaged in (whole[: len(whole) // 2], b"no model in here", b""):
        (tmp_path / "m.onnx").write_bytes(damaged)
        message = refusal(name, rules)
        assert "is not a readable ONNX file" in message or "cannot be loaded" in message
        assert name in message


def test_inputs_that_are_no_observation_are_refused(tmp_path: Path) -> None:
    node = [helper.make_node("Add", ["x", "y"], ["z"])]
    shapes = (FLOAT, ["n", 464])
    name = write_model(tmp_path / "m.onnx", node, {"x": shapes, "y": shapes}, {"z": ["n", 464]})
    assert "reads x, y; a model reads one input" in refusal(name, RULES["valety"])
    node = [helper.make_node("Identity", ["x"], ["z"])]
    name = write_model(tmp_path / "m.onnx", node, {"x": (FLOAT, [464])}, {"z": [464]})
    assert "its input x has 1 axes" in refusal(name, RULES["valety"])
    words = {"x": (TensorProto.STRING, ["n", 464])}
    node = [helper.make_node("Cast", ["x"], ["z"], to=FLOAT)]
    name = write_model(tmp_path / "m.onnx", node, words, {"z": ["n", 464]})
    assert "its input x is a tensor(string)" in refusal(name, RULES["valety"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_not_played(
    tmp_path: Path, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = RULES["valety"]
    weight = by_hand(rules)
    weight[:, 30] = value
    name = linear(tmp_path / "m.onnx", weight, told(rules))
    agent = make_agent(name, rules)
    views, legal, keys = some_views(rules, 4, 20)
    without = legal & np.uint64(1 << 30) == 0
    assert agent.act(views[without], legal[without], keys[without]).tolist() == highest(
        legal[without]
    )
    with pytest.raises(AgentError, match="a value that is not a number"):
        agent.act(views, legal, keys)
    assert cli.main(["evaluate", name, "--deals", "20", "--against", "random"]) == 1
    err = capsys.readouterr().err
    assert err == f"valety-env: {name} gives a legal action a value that is not a number\n"


def test_an_action_of_chance_zero_is_allowed() -> None:
    model = Model(lambda shown, masks: np.where(masks, -np.inf, 0), (464,), 52)
    agent = PolicyAgent(model, RULES["valety"], None, kind="t", target="t", encoder="flat_v0")
    views, legal, keys = some_views(RULES["valety"], 4, 4)
    lowest = [(int(actions) & -int(actions)).bit_length() - 1 for actions in legal]
    assert agent.act(views, legal, keys).tolist() == lowest


@pytest.mark.parametrize("where", ["../weights", "{0}/weights", "link"])
def test_weights_outside_the_models_folder_are_not_read(tmp_path: Path, where: str) -> None:
    rules = RULES["valety"]
    folder = tmp_path / "model"
    folder.mkdir()
    outside = tmp_path / "weights"
    outside.write_bytes(by_hand(rules).astype(np.float32).tobytes())
    (folder / "link").symlink_to(outside)
    name = linear(folder / "m.onnx", by_hand(rules), told(rules))

    def move(location: str) -> None:
        model = onnx.load(folder / "m.onnx", load_external_data=False)
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        (folder / "m.onnx").write_bytes(model.SerializeToString())

    where = where.format(tmp_path)
    move(where)
    assert refusal(name, rules) == (
        f"{name} keeps weights in {where!r}; they must lie in its own folder"
    )
    move("none")
    assert "keeps weights in 'none', and there is no such file" in refusal(name, rules)
    (folder / "inside").write_bytes(outside.read_bytes())
    move("inside")
    views, legal, keys = some_views(rules, 4, 4)
    assert make_agent(name, rules).act(views, legal, keys).tolist() == highest(legal)


# Trust.


def trap(path: Path, sprung: Path) -> None:
    """Write a zip like SB3's with a pickle that makes a folder."""

    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(sprung),))

    import base64

    hidden = {":serialized:": base64.b64encode(pickle.dumps(Trap())).decode()}
    names = ("policy_class", "observation_space", "action_space", "policy_kwargs")
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("data", json.dumps(dict.fromkeys(names, hidden)))
        for name in ("policy.pth", "pytorch_variables.pth", "policy.optimizer.pth"):
            opened.writestr(name, pickle.dumps(Trap()))


def test_a_file_that_can_run_code_is_not_opened_without_a_word_of_trust(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap(tmp_path / "a.zip", sprung)
    folder = tmp_path / "module"
    folder.mkdir()
    for file in ("class_and_ctor_args.pkl", "module_state.pkl"):
        with zipfile.ZipFile(tmp_path / "a.zip") as opened:
            (folder / file).write_bytes(opened.read("policy.pth"))
    for name in (f"sb3:{tmp_path}/a.zip", f"rllib:{folder}"):
        said = (
            f"{name} can run code when it is loaded; if you trust where it comes from, add "
            "--trust (in Python: make_agent(name, rules, trust=True))"
        )
        assert refusal(name, RULES["valety"]) == said
        assert refusal(f"{name},encoder=flat_v0", RULES["valety"]) == said
        with pytest.raises(UntrustedError, match="--trust"):
            evaluate(name, ["random"], deals=1)
        with pytest.raises(UntrustedError, match="--trust"):
            evaluate("random", ["random", name], deals=1)
        with pytest.raises(UntrustedError, match="give the agent itself, made by"):
            SingleEnv("valety", opponent=name)
    assert not sprung.exists()


def test_trust_is_exactly_true() -> None:
    for trust in ("no", 1, "false"):
        with pytest.raises(UntrustedError):
            make_agent("sb3:a.zip", RULES["valety"], trust=trust)  # type: ignore[arg-type]


def test_the_command_line_asks_for_trust_and_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["evaluate", "sb3:a.zip"]) == 2
    assert "sb3:a.zip can run code" in capsys.readouterr().err
    arguments = "evaluate heuristic --against random --deals 2 --seed 1".split()
    assert cli.main([*arguments, "--trust"]) == 0
    again = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("Again: "))
    assert cli._parse(shlex.split(again)[2:]).trust is True
    assert cli.main(arguments) == 0
    assert "--trust" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("onnx:m.onnx", "onnxruntime", "onnx"),
        ("sb3:a.zip", "stable_baselines3", "sb3"),
        ("rllib:run", "ray", "rllib"),
    ],
)
def test_a_missing_package_is_one_line_that_says_what_to_install(
    name: str, package: str, extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None  # as if it were not installed\n"
        f"from valety_env.cli import main; sys.exit(main(['evaluate', {name!r}, '--trust']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    needs = f"valety-env: {name} needs {package}: pip install 'valety-env[{extra}]'\n"
    assert done.stderr == needs


def test_nothing_foreign_is_imported_before_it_is_named() -> None:
    code = (
        "import sys; from valety_env.cli import main; main(['evaluate', 'heuristic', '--deals', "
        "'2']); print({'onnx', 'onnxruntime', 'stable_baselines3', 'ray', 'torch'} & "
        "set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    # Before that there may be news of the progress.
    assert done.stderr.splitlines()[-1:] == ["set()"], done.stderr


# Functions of the user's own.


PLAYER = """
import numpy as np

class Player:
    def __init__(self, rules, low=True, name=None):
        self.rules, self.low = rules, low
        if name:
            self.name = name

    def act(self, views, legal, keys):
        if self.low:
            return np.array([(int(x) & -int(x)).bit_length() - 1 for x in legal])
        return np.array([int(x).bit_length() - 1 for x in legal])

def make(rules, **options):
    return Player(rules, **options)

number = 7

def nothing(rules):
    return None

def broken(rules):
    return 1 / 0

class Cheat(Player):
    def act(self, views, legal, keys):
        return np.full(len(legal), 51)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules in it, that a process would find."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_player.py").write_text(PLAYER)
    (tmp_path / "own_typo.py").write_text("import numpy as np\n\nx = np.nothing_there\n")
    (tmp_path / "own_needs.py").write_text("import module_nobody_has\n")
    (tmp_path / "own_syntax.py").write_text("def f(:\n")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("make", ["make", "Player"])
def test_a_function_or_class_of_the_users_makes_a_player(make: str) -> None:
    views, legal, keys = some_views(RULES["polignac"], 4, 4)
    agent = make_agent(f"python:own_player:{make}", RULES["polignac"])
    assert agent.rules == RULES["polignac"]
    assert agent.name == f"python:own_player:{make}"
    lowest = [(int(actions) & -int(actions)).bit_length() - 1 for actions in legal]
    assert agent.act(views, legal, keys).tolist() == lowest
    agent = make_agent(f"python:own_player:{make},low=false", "polignac")
    assert agent.name == f"python:own_player:{make},low=False"
    assert agent.act(views, legal, keys).tolist() == highest(legal)
    assert make_agent(agent.name, "polignac").low is False
    assert make_agent(f"python:own_player:{make},name=Bo", "valety").name == "Bo"


@pytest.mark.usefixtures("here")
def test_a_function_of_the_users_is_evaluated_as_others_are() -> None:
    found = evaluate(
        "python:own_player:make", ["python:own_player:make,low=false"], deals=20, seed=1
    )
    (result,) = found.results
    assert result.agent == "python:own_player:make"
    assert result.opponent == "python:own_player:make,low=False"
    assert result.points_per_deal != 0


def test_the_player_that_the_documentation_shows_plays_the_lowest_card(here: Path) -> None:
    text = (Path(__file__).parents[1] / "docs/agents.md").read_text("utf-8")
    code = next(part for part in text.split("```") if "class Lowest" in part)
    (here / "own_documented.py").write_text(code.removeprefix("python"))
    views, legal, keys = some_views(RULES["valety"], 4, 4)
    agent = make_agent("python:own_documented:Lowest", RULES["valety"])
    lowest = [(int(actions) & -int(actions)).bit_length() - 1 for actions in legal]
    assert agent.act(views, legal, keys).tolist() == lowest


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("python:own_player", "it must be python:MODULE:FUNCTION"),
        ("python::make", "it must be python:MODULE:FUNCTION"),
        ("python:own_nobody:make", "there is no module own_nobody, neither in the current folder"),
        ("python:own_player.sub:make", "there is no module own_player.sub, neither in the"),
        ("python:own_player:play", "own_player has no play"),
        ("python:own_player:number", "number is of type int; it must be a function of the rules"),
        ("python:own_player:nothing", "nothing returned None; it must be an object with act("),
        ("python:own_player:broken", "broken fails: ZeroDivisionError: division by zero (own_pla"),
        ("python:own_player:make,x=1", "make fails: TypeError: Player.__init__() got an unexpect"),
        ("python:own_typo:make", "importing own_typo fails: AttributeError: "),
        ("python:own_needs:make", "importing own_needs fails: ModuleNotFoundError: No module na"),
        ("python:own_syntax:make", "importing own_syntax fails: SyntaxError: "),
    ],
)
def test_a_function_that_gives_no_player_is_refused(name: str, said: str) -> None:
    message = refusal(name, RULES["valety"])
    assert message.startswith(name.partition(",")[0])
    assert said in message


@pytest.mark.usefixtures("here")
def test_the_place_of_a_users_mistake_is_told() -> None:
    assert refusal("python:own_typo:make", RULES["valety"]).endswith("(own_typo.py, line 3)")
    broken = PLAYER.splitlines().index("    return 1 / 0") + 1
    message = refusal("python:own_player:broken", RULES["valety"])
    assert message.endswith(f"(own_player.py, line {broken})")


def test_the_command_line_finds_modules_of_the_current_folder(here: Path) -> None:
    for name, code, said in (
        ("make", 0, "python:own_player:make"),
        ("Cheat", 1, "python:own_player:Cheat at the table with seed"),
    ):
        done = subprocess.run(
            [
                Path(sys.executable).with_name("valety-env"),
                *f"evaluate python:own_player:{name} --against random --deals 2".split(),
            ],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert said in done.stdout + done.stderr

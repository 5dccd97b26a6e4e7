"""Checkpoints: their file, the network in it, and the player made of it."""

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tables import third_deal

from valety_env import make_agent
from valety_env.agents import Agent, AgentError, Policy, neural
from valety_env.agents.neural import (
    ActorCritic,
    NetworkConfig,
    NeuralAgent,
    read_checkpoint,
    save_checkpoint,
)
from valety_env.arena import evaluate
from valety_env.engine import legal_actions
from valety_env.observations import encode_views, make_encoder
from valety_env.rules import Rules, make_rules
from valety_env.vector import SelfPlayEnv
from valety_env.view import VIEW, look


def make_network(rules: Rules, hidden=(32, 24), encoder="flat_v0", seed=0) -> ActorCritic:
    """A network whose choices vary from one observation to the next."""
    torch.manual_seed(seed)
    inputs = make_encoder(encoder, rules).layout.size
    network = ActorCritic(NetworkConfig(inputs, rules.num_actions, hidden))
    torch.nn.init.normal_(network.head.weight, 0, 0.5)
    return network


def metadata(rules: Rules, **changes):
    return {
        "game": "valety",
        "rules": rules.to_dict(),
        "episode": "deal",
        "encoder": "flat_v0",
        "step": 7,
        "seed": 3,
    } | changes


@pytest.fixture
def valety() -> Rules:
    return make_rules("valety")


@pytest.fixture
def saved(tmp_path: Path, valety: Rules) -> Path:
    path = tmp_path / "last.safetensors"
    save_checkpoint(path, make_network(valety), metadata(valety))
    return path


def some_views(rules: Rules, tables: int, steps: int, **options):
    """Views of the seats to move, their legal actions and keys, from random play."""
    env = SelfPlayEnv(rules, num_envs=tables, seed=11, **options)
    env.reset()
    views, legal = [], []
    for _ in range(steps):
        env.step(env.sample())
        for state in env.states:
            view = np.zeros(1, VIEW)
            look(rules.packed[0], state, int(state["turn"]), view[0])
            views.append(view)
            legal.append(legal_actions(rules.packed[0], state))
    keys = np.arange(len(views), dtype=np.uint64) * np.uint64(0x123456789ABCDEF)
    return np.concatenate(views), np.array(legal, np.uint64), keys


def test_a_checkpoint_gives_back_the_network_and_the_metadata(saved: Path, valety: Rules) -> None:
    network, told = read_checkpoint(saved)
    expected = make_network(valety)
    assert network.config == expected.config
    for name, tensor in expected.state_dict().items():
        assert torch.equal(network.state_dict()[name], tensor)
    assert told["game"] == "valety"
    assert told["format"] == 1
    assert Rules.from_dict(told["rules"]) == valety
    assert (told["encoder"], told["step"], told["seed"]) == ("flat_v0", 7, 3)


def test_a_checkpoint_is_safetensors_alone(saved: Path) -> None:
    data = saved.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    assert json.loads(header["__metadata__"]["valety_env"])["game"] == "valety"
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    assert 8 + size + max(ends) == len(data)


def test_a_pickle_is_refused_and_not_opened(tmp_path: Path, valety: Rules) -> None:
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    path = tmp_path / "trap.safetensors"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        make_agent(f"checkpoint:{path}", valety)
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        make_agent(f"checkpoint:{path}", valety)
    assert not (tmp_path / "sprung").exists()


def test_a_run_is_named_by_its_folder_its_last_or_its_file(saved: Path, valety: Rules) -> None:
    views, legal, keys = some_views(valety, 4, 5)
    names = [saved.parent, saved.parent / "last", saved]
    agents = [make_agent(f"checkpoint:{name}", valety) for name in names]
    for agent, name in zip(agents, names, strict=True):
        assert isinstance(agent, Agent)
        assert agent.name == f"checkpoint:{name}"
        assert (agent.act(views, legal, keys) == agents[0].act(views, legal, keys)).all()
    warm = make_agent(f"checkpoint:{saved},temperature=0.5", valety)
    assert warm.name == f"checkpoint:{saved},temperature=0.5"
    assert make_agent(warm.name, valety).temperature == 0.5


def test_saving_leaves_no_other_file_and_keeps_the_old_one_when_it_fails(
    saved: Path, valety: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def fail(weights, path, told):
        Path(path).write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(neural, "save_file", fail)
    with pytest.raises(OSError, match="full"):
        save_checkpoint(saved, make_network(valety, seed=1), metadata(valety))
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_weights_that_are_no_numbers_are_not_saved(saved: Path, valety: Rules) -> None:
    before = saved.read_bytes()
    network = make_network(valety)
    with torch.no_grad():
        network.head.bias[3] = torch.inf
    with pytest.raises(ValueError, match="not all finite"):
        save_checkpoint(saved, network, metadata(valety))
    assert saved.read_bytes() == before


def test_metadata_must_be_complete(tmp_path: Path, valety: Rules) -> None:
    with pytest.raises(ValueError, match="lack rules, episode"):
        save_checkpoint(
            tmp_path / "x.safetensors",
            make_network(valety),
            {"game": "valety", "encoder": "flat_v0"},
        )


def rewrite(path: Path, change) -> None:
    """Save a checkpoint again with its metadata and weights changed."""
    network, told = read_checkpoint(path)
    weights = dict(network.state_dict())
    change(told, weights)
    save_file(weights, path, {"valety_env": json.dumps(told)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t, w: t.update(format=9), ["checkpoint format 9", "reads format 1"]),
        (lambda t, w: t.pop("rules"), ["lack rules"]),
        (lambda t, w: t["rules"].update(players=3), ["'players' is not a rule option"]),
        (lambda t, w: t.update(rules=[1]), ["the rules in its metadata are none"]),
        (lambda t, w: t["network"].update(kind="lstm"), ["'lstm'", "allowed is 'mlp'"]),
        (lambda t, w: t["network"].update(hidden=[32]), ["its weights have shapes"]),
        (lambda t, w: t["network"].update(hidden=["a"]), ["sizes must be whole numbers"]),
        (lambda t, w: t["network"].update(depth=2), ["no network can be made"]),
        (lambda t, w: t.update(encoder="tokens_v0"), ["'tokens_v0'", "flat_v0, planes_v0"]),
        (lambda t, w: w.pop("head.bias"), ["its weights have shapes"]),
        (lambda t, w: w["head.bias"].fill_(float("nan")), ["not all finite"]),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_in_one_line(
    saved: Path, valety: Rules, change, said
) -> None:
    rewrite(saved, change)
    with pytest.raises(ValueError) as caught:
        make_agent(f"checkpoint:{saved}", valety)
    message = str(caught.value)
    assert "\n" not in message
    assert str(saved) in message
    for part in said:
        assert part in message


def test_a_foreign_or_damaged_file_is_refused_in_one_line(saved: Path, valety: Rules) -> None:
    foreign = saved.with_name("foreign.safetensors")
    save_file({"weight": torch.zeros(2)}, foreign)
    with pytest.raises(ValueError, match="not a checkpoint of valety_env"):
        make_agent(f"checkpoint:{foreign}", valety)
    save_file({"weight": torch.zeros(2)}, foreign, {"valety_env": "{half"})
    with pytest.raises(ValueError, match="not a checkpoint of valety_env"):
        make_agent(f"checkpoint:{foreign}", valety)
    foreign.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a readable safetensors file") as caught:
        make_agent(f"checkpoint:{foreign}", valety)
    assert "\n" not in str(caught.value)


def test_a_missing_checkpoint_is_refused_with_what_is_allowed(tmp_path: Path, valety: Rules):
    (tmp_path / "notes.txt").write_text("no weights")
    for name in ("nowhere", ".", "notes.txt"):
        with pytest.raises(ValueError, match=r"with last\.safetensors in it"):
            make_agent(f"checkpoint:{tmp_path / name}", valety)


@pytest.mark.parametrize("temperature", ["-1", "nan", "inf", "warm", "true"])
def test_a_wrong_temperature_is_refused(saved: Path, valety: Rules, temperature: str) -> None:
    with pytest.raises(ValueError, match="temperature") as caught:
        make_agent(f"checkpoint:{saved},temperature={temperature}", valety)
    assert "at least 0" in str(caught.value)


def test_an_unknown_option_is_refused(saved: Path, valety: Rules) -> None:
    with pytest.raises(ValueError, match="depth"):
        make_agent(f"checkpoint:{saved},depth=3", valety)


def test_other_rules_are_accepted_only_when_the_sizes_fit(saved: Path, tmp_path: Path) -> None:
    assert make_agent(f"checkpoint:{saved}", make_rules("valety", target=30))
    assert make_agent(f"checkpoint:{saved}", make_rules("valety-L3"))
    with pytest.raises(ValueError) as caught:
        make_agent(f"checkpoint:{saved}", make_rules("polignac"))
    message = str(caught.value)
    inputs = [
        make_encoder("flat_v0", make_rules(game)).layout.size for game in ("valety", "polignac")
    ]
    for part in (*map(str, inputs), "52 actions", "54 actions", "valety"):
        assert part in message
    polignac = make_rules("polignac")
    save_checkpoint(saved, make_network(polignac), metadata(polignac, game="polignac"))
    assert make_agent(f"checkpoint:{saved}", make_rules("polignac", num_players=6))


@pytest.mark.parametrize("game", ["valety", "polignac"])
@pytest.mark.parametrize("encoder", ["flat_v0", "planes_v0"])
@pytest.mark.parametrize("hidden", [(16,), (32, 24), (24, 40, 8)])
def test_the_player_computes_what_the_network_computes(game, encoder, hidden) -> None:
    rules = make_rules(game)
    network = make_network(rules, hidden, encoder)
    views, legal, keys = some_views(rules, 16, 20)
    found = make_encoder(encoder, rules)
    rows = np.zeros((len(views), found.layout.size), np.uint8)
    encode_views(found.code, rules.packed, views, rows)
    with torch.inference_mode():
        logits = network(torch.from_numpy(rows))[0].numpy()
    allowed = (legal[:, None] >> np.arange(rules.num_actions, dtype=np.uint64)) & 1 != 0
    best = np.where(allowed, logits, -np.inf)
    agent = NeuralAgent(network, rules, encoder=encoder)
    actions = agent.act(views, legal, keys)
    rows = np.arange(len(views))
    assert allowed[rows, actions].all()
    np.testing.assert_allclose(best[rows, actions], best.max(axis=1), atol=1e-4)
    assert len(set(actions.tolist())) > 10


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_choice_is_the_same_alone_and_in_any_batch(valety: Rules, temperature) -> None:
    agent = NeuralAgent(make_network(valety, (256, 256)), valety, temperature=temperature)
    views, legal, keys = some_views(valety, 60, 34)
    whole = agent.act(views, legal, keys)
    order = np.random.default_rng(0).permutation(len(views))
    assert (agent.act(views[order], legal[order], keys[order]) == whole[order]).all()
    for size in (1, 7):
        for low in range(0, len(views), size):
            part = slice(low, low + size)
            assert (agent.act(views[part], legal[part], keys[part]) == whole[part]).all()


def test_choices_of_a_warm_player_are_as_likely_as_its_temperature_says(valety: Rules) -> None:
    network = make_network(valety)
    views, legal, _ = some_views(valety, 1, 1)
    n = 20000
    keys = np.random.default_rng(0).integers(0, 2**64, n, np.uint64)
    views, legal = np.repeat(views, n), np.repeat(legal, n)
    rows = np.zeros((1, network.config.inputs), np.uint8)
    encode_views(0, valety.packed, views[:1], rows)
    with torch.inference_mode():
        logits = network(torch.from_numpy(rows))[0][0]
    allowed = torch.from_numpy((legal[0] >> np.arange(52, dtype=np.uint64)) & 1 != 0)
    for temperature in (0.5, 2.0):
        agent = NeuralAgent(network, valety, temperature=temperature)
        found = np.bincount(agent.act(views, legal, keys), minlength=52) / n
        expected = torch.where(allowed, logits / temperature, -torch.inf).softmax(0)
        np.testing.assert_allclose(found, expected, atol=0.015)


def test_a_network_whose_sums_are_no_numbers_says_so(valety: Rules) -> None:
    network = make_network(valety)
    with torch.no_grad():
        network.head.weight[:] = 3e38
        network.head.bias[:] = 3e38
    views, legal, keys = some_views(valety, 1, 3)
    agent = NeuralAgent(network, valety, name="checkpoint:huge")
    with pytest.raises(AgentError, match="gives a legal action a value that is not"):
        agent.act(views, legal, keys)


@pytest.mark.parametrize("temperature", [0, 0.5, 1])
def test_a_player_tells_how_likely_its_choices_are(valety: Rules, temperature: float) -> None:
    network = make_network(valety)
    with torch.no_grad():
        # A network as it begins is indifferent.
        network.head.weight[:-1] *= 300
    views, legal, _ = some_views(valety, 8, 5)
    rows = np.zeros((len(views), network.config.inputs), np.uint8)
    encode_views(0, valety.packed, views, rows)
    with torch.inference_mode():
        logits = network(torch.from_numpy(rows))[0]
    agent = NeuralAgent(network, valety, temperature=temperature)
    assert isinstance(agent, Policy)
    for i, cards in enumerate(legal.tolist()):
        actions = np.array([card for card in range(52) if cards >> card & 1])
        # Who always plays the likeliest is taken to play as it was trained to.
        expected = (logits[i, actions] / (temperature or 1)).softmax(0)
        same = np.repeat(i, len(actions))
        found = agent.chances(views[same], legal[same], actions)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert len(actions) == 1 or expected.max() - expected.min() > 0.01


def test_a_checkpoint_is_the_model_that_pimc_takes_the_other_for(
    saved: Path, valety: Rules
) -> None:
    name = f"pimc,worlds=2,model=checkpoint:{saved}"
    agent = make_agent(name, valety)
    assert agent.name == name
    views, legal, keys = some_views(valety, 2, 7)
    assert all(legal[i] >> int(a) & 1 for i, a in enumerate(agent.act(views, legal, keys)))


def test_a_player_of_single_deals_takes_each_deal_of_a_match_for_one(valety: Rules) -> None:
    network = make_network(valety)
    of_deals = NeuralAgent(network, valety, episode="deal", temperature=1)
    of_matches = NeuralAgent(network, valety, episode="match", temperature=1)
    views, legal = third_deal(valety)
    n = 300
    keys = np.repeat(np.arange(n, dtype=np.uint64), 2)
    views = np.tile(views, n)
    legal = np.tile(legal, n)
    before = views.copy()
    actions = of_deals.act(views, legal, keys).reshape(n, 2)
    assert (actions[:, 0] == actions[:, 1]).all()
    actions = of_matches.act(views, legal, keys).reshape(n, 2)
    assert (actions[:, 0] != actions[:, 1]).any()
    assert (views == before).all()


def test_a_player_of_matches_takes_a_single_deal_for_the_first_of_a_match(valety: Rules) -> None:
    network = make_network(valety)
    views, legal, keys = some_views(valety, 20, 30, episode="deal")
    as_match = NeuralAgent(network, valety, temperature=1).act(views, legal, keys)
    single = valety.replace(max_deals=1)
    as_deal = NeuralAgent(network, single, temperature=1).act(views, legal, keys)
    assert (as_match == as_deal).all()


def test_a_checkpoint_plays_whole_deals_and_matches_in_the_arena(saved: Path) -> None:
    first = evaluate(f"checkpoint:{saved}", ["random"], deals=20, matches=3, seed=1)
    again = evaluate(f"checkpoint:{saved}", ["random"], deals=20, matches=3, seed=1, tables=3)
    assert first.to_dict()["results"] == again.to_dict()["results"]


def test_a_network_needs_a_hidden_layer() -> None:
    with pytest.raises(ValueError, match="hidden"):
        NetworkConfig(10, 5, ())


def test_the_network_takes_bytes_and_any_leading_shape() -> None:
    network = ActorCritic(NetworkConfig(10, 5, (8,)))
    rows = torch.randint(0, 2, (3, 4, 10))
    logits, values = network(rows.to(torch.uint8))
    assert logits.shape == (3, 4, 5)
    assert values.shape == (3, 4)
    torch.testing.assert_close(network(rows.float())[0], logits)
    assert network.to(torch.bfloat16)(rows.to(torch.uint8))[0].dtype == torch.bfloat16

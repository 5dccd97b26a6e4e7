"""`onnx:FILE`: a model from any framework; and our own checkpoints as such a file.

A model reads one tensor of observations (N, entries), or in the encoder's own shape, and if it
likes a second one called `action_mask` (N, actions). Its first output (N, actions) are logits,
chances or values of the actions; the others are not read. What the model was trained on is a JSON
text in its `metadata_props`, under the key `valety_env`.

Such a file holds numbers and the names of known operations, so loading it runs no code from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from valety_env.agents.files import replacing
from valety_env.agents.foreign.policy import CHUNK, Model, PolicyAgent, one_line
from valety_env.agents.foreign.spaces import MASK
from valety_env.agents.metadata import KEY, check_metadata, read_json
from valety_env.rules import Rules

# Old enough for every runtime of the last years.
_OPSET = 17
_IR_VERSION = 8
# The dtypes that observations and masks can be given in.
_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(bool)": np.bool_,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
}


def load_onnx_agent(path: str, rules: Rules, **options: Any) -> PolicyAgent:
    """Make the player of an ONNX model.

    Args:
        path: the file.
        rules: the rules it will play.
        **options: `encoder`, `episode` and `temperature`, as `PolicyAgent` takes them.

    Returns:
        the player. The model runs on one thread of the CPU.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    import onnxruntime

    _check_file(path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    # What goes wrong is raised; the log on standard error would only repeat it.
    settings.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ValueError(f"onnx:{path} cannot be loaded: {one_line(error)}") from None
    text = session.get_modelmeta().custom_metadata_map.get(KEY)
    told = read_json(text)
    if told is not None:
        check_metadata(told, path)
    elif text is not None:
        raise ValueError(f"onnx:{path}: its metadata {KEY!r} are not a JSON object")
    model = _model_of(path, session)
    return PolicyAgent(model, rules, told, kind="onnx", target=path, **options)


def _check_file(path: str) -> None:
    """Refuse a file that is none, and one whose weights lie outside its folder.

    Runtimes before 1.24 read such weights from anywhere.
    """
    import onnx

    file = Path(path)
    if not file.is_file():
        what = "it is a folder" if file.is_dir() else "there is no such file"
        raise ValueError(f"onnx:{path}: {what}; it must be an ONNX model's file")
    try:
        proto = onnx.load(file, load_external_data=False)
    except Exception as error:
        raise ValueError(f"onnx:{path} is not a readable ONNX file: {one_line(error)}") from None
    folder = file.resolve().parent
    for location in _locations(proto):
        data = folder / location
        if Path(location).is_absolute() or not data.resolve().is_relative_to(folder):
            raise ValueError(
                f"onnx:{path} keeps weights in {location!r}; they must lie in its own folder"
            )
        if not data.is_file():
            raise ValueError(
                f"onnx:{path} keeps weights in {location!r}, and there is no such file"
            )


def _locations(message: Any) -> Iterator[str]:
    """Yield where the tensors anywhere in a message lie that are kept in other files."""
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE:
            continue
        for part in value if isinstance(value, Iterable) else [value]:
            if field.name == "external_data":
                if part.key == "location":
                    yield part.value
            else:
                yield from _locations(part)


def _model_of(path: str, session: Any) -> Model:
    """Return what the agent must know of a session."""
    inputs = {given.name: given for given in session.get_inputs()}
    others = [name for name in inputs if name != MASK]
    if len(others) != 1:
        raise ValueError(
            f"onnx:{path} reads {', '.join(inputs) or 'nothing'}; a model reads one input, the "
            f"observation, and may read a second one called {MASK}"
        )
    name = others[0]
    for given in inputs.values():
        if given.type not in _DTYPES:
            raise ValueError(
                f"onnx:{path}: its input {given.name} is a {given.type}; allowed are "
                f"{', '.join(_DTYPES)}"
            )
        if len(given.shape) < 2:
            raise ValueError(
                f"onnx:{path}: its input {given.name} has {len(given.shape)} axes; the first must "
                "be that of the batch, and others follow"
            )
    batch, *shape = [size if isinstance(size, int) else None for size in inputs[name].shape]
    dtypes = {key: _DTYPES[given.type] for key, given in inputs.items()}
    first = session.get_outputs()[0]
    actions = first.shape[-1] if len(first.shape) == 2 else None

    def ask(shown: Any, masks: np.ndarray) -> np.ndarray:
        fed = {name: shown.astype(dtypes[name])}
        if MASK in inputs:
            fed[MASK] = masks.astype(dtypes[MASK])
        logits: np.ndarray = session.run([first.name], fed)[0]
        return logits

    return Model(ask, tuple(shape), actions if isinstance(actions, int) else None, batch or CHUNK)


def export_onnx(checkpoint: str | Path, file: str | Path) -> dict[str, Any]:
    """Write one of our checkpoints as an ONNX model that `onnx:FILE` plays.

    It reads `observation`, float32 (N, entries), and gives `logits` (N, actions), not masked, and
    `value` (N,); N is free. At any moment `file` holds a whole model, the old or the new.

    Args:
        checkpoint: as `files.find_checkpoint` takes it.
        file: where to write.

    Returns:
        the metadata, which are in the file too.

    Raises:
        ValueError: if the checkpoint cannot be read.
        OSError: if the file cannot be written.
    """
    import onnx
    from onnx import helper, numpy_helper

    from valety_env.agents.neural import read_checkpoint

    network, told = read_checkpoint(checkpoint)
    config = network.config
    head_weight, head_bias = (tensor.detach().numpy() for tensor in network.head.parameters())
    layers = [
        [tensor.detach().numpy() for tensor in layer.parameters()] for layer in network.hidden
    ]
    weights = []
    nodes = []

    def add_layer(name: str, below: str, out: str, weight: np.ndarray, bias: np.ndarray) -> None:
        weights.append(numpy_helper.from_array(np.ascontiguousarray(weight), f"{name}.weight"))
        weights.append(numpy_helper.from_array(np.ascontiguousarray(bias), f"{name}.bias"))
        inputs = [below, f"{name}.weight", f"{name}.bias"]
        nodes.append(helper.make_node("Gemm", inputs, [out], name, transB=1))

    below = "observation"
    for i, (weight, bias) in enumerate(layers):
        add_layer(f"hidden.{i}", below, f"sum.{i}", weight, bias)
        below = f"relu.{i}"
        nodes.append(helper.make_node("Relu", [f"sum.{i}"], [below], below))
    add_layer("policy", below, "logits", head_weight[:-1], head_bias[:-1])
    add_layer("critic", below, "values", head_weight[-1:], head_bias[-1:])
    weights.append(numpy_helper.from_array(np.array([1], np.int64), "axis"))
    nodes.append(helper.make_node("Squeeze", ["values", "axis"], ["value"], "value"))
    single = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "actor_critic",
        [helper.make_tensor_value_info("observation", single, ["batch", config.inputs])],
        [
            helper.make_tensor_value_info("logits", single, ["batch", config.actions]),
            helper.make_tensor_value_info("value", single, ["batch"]),
        ],
        weights,
        doc_string=f"a policy and a value for {told['game']}, observed as {told['encoder']}",
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="valety_env",
        producer_version=str(told.get("version", "")),
    )
    helper.set_model_props(model, {KEY: json.dumps(told)})
    onnx.checker.check_model(model, full_check=True)
    with replacing(file) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return told

"""`valety-env export`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, ClassVar

import tyro

from valety_env.agents import needs_extra, parse_agent_name
from valety_env.cli.console import InputError, check_writable, input_errors, out, say


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a checkpoint as an ONNX model, with all that evaluate needs to know of it.

    Other programs can run the file; here it plays as onnx:FILE. It reads observations,
    float32 (N, entries), and gives the logits of the actions (N, actions), not masked, then the
    value (N,).

    Examples:
      valety-env export checkpoint:runs/a/last a.onnx
    """

    name: ClassVar[str] = "export"

    checkpoint: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="checkpoint:PATH")]
    """One of our own checkpoints, such as checkpoint:runs/a/last."""
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.onnx")]
    """Where to write."""

    def run(self) -> int:
        """Write; returns the exit code."""
        with input_errors():
            given = parse_agent_name(self.checkpoint)
            if given.name != "checkpoint" or given.target is None or given.options:
                raise InputError(
                    f"{self.checkpoint}: export takes checkpoint:PATH, without options"
                )
            if not self.file.endswith(".onnx"):
                raise InputError(f"{self.file}: the file's name must end in .onnx")
            check_writable(self.file, "export")
            with needs_extra("export", "onnx,train", ("onnx", "torch", "safetensors")):
                from valety_env.agents.foreign.onnx import export_onnx

                told = export_onnx(given.target, self.file)
        line = f"{self.file}: {told['game']}, {told['encoder']}"
        if "step" in told:
            line += f", step {told['step']}"
        say(out(), line)
        return 0

"""The batch environment on a GPU, without one: in numba-cuda's simulator, and compiled to PTX."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_child import CASES, ILLEGAL_AT, play_case

from valety_env.vector import SelfPlayEnv

torch = pytest.importorskip("torch")
pytest.importorskip("numba_cuda")

CHILD = Path(__file__).with_name("cuda_child.py")
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}


def run_child(*arguments: str, **environment: str) -> str:
    command = [sys.executable, str(CHILD), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What the environments on a device tell in all cases, by name."""
    file = tmp_path_factory.mktemp("simulated") / "told.npz"
    run_child("simulate", str(file), **SIMULATOR)
    with np.load(file) as told:
        return dict(told)


@pytest.mark.parametrize("case", CASES)
def test_a_device_tells_what_the_cpu_tells_play_by_play(
    case: str, simulated: dict[str, np.ndarray]
) -> None:
    told = {name: value for name, value in simulated.items() if name.startswith(f"{case}, ")}
    compared = 0
    for name, expected in play_case(case, "cpu"):
        given = told.pop(name)
        assert (given.dtype, given.shape) == (expected.dtype, expected.shape), name
        assert (given == expected).all(), name
        compared += 1
    assert told == {}
    assert compared > 12 * CASES[case][2]


def test_the_cases_have_next_deals_next_matches_and_what_is_refused() -> None:
    matches = deals = 0
    for case in CASES:
        refused = 0
        for name, value in play_case(case, "cpu"):
            legal = f"play {ILLEGAL_AT}:" not in name
            matches += value.size if legal and name.endswith(": final tables") else 0
            deals += int((value > 1).sum()) if name.endswith(": final deals") else 0
            refused += ": actions: " in name or ": out: " in name
            if name == "valety-raises, told":
                assert "may not play action 63" in str(value)
                refused += 1
        assert refused == (15 if case == "valety-raises" else 14), case
    assert matches >= 8
    assert deals >= 2


@pytest.mark.slow
@pytest.mark.parametrize("capability", ["80", "90"])
def test_each_kernel_of_a_device_compiles_to_ptx(capability: str) -> None:
    told = json.loads(run_child("compile", capability))
    assert len(told["kernels"]) >= 9
    assert {one["kernel"] for one in told["compiled"]} == set(told["kernels"])
    for one in told["compiled"]:
        assert one["target"] == [f"sm_{capability}"], one
        assert one["entries"] == 1, one
        assert one["unresolved"] == [], one


@pytest.mark.slow
def test_the_benchmark_compares_and_measures(tmp_path: Path) -> None:
    script = CHILD.parent.parent / "benchmarks" / "gpu.py"
    told = tmp_path / "gpu.json"
    command = [sys.executable, str(script), "--json", str(told), "--rounds", "1"]
    command += ["--compare", "2", "--plays", "9", "--tables", "2", "4", "--seconds", "0.01"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | SIMULATOR
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("9 plays at 2 tables are equal") == 6
    results = json.loads(told.read_text("utf-8"))
    assert results["gpu"] == "simulated"
    names = {case["name"] for case in results["cases"]}
    assert names >= {"copy", "valety cpu", "valety 2", "valety 4", "polignac cpu", "polignac 4"}
    assert all(case["median"] > 0 for case in results["cases"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"device": "tpu"}, r"device='tpu': allowed are 'cpu', 'cuda', 'cuda:0'"),
        ({"device": "cuda:one"}, "device='cuda:one': allowed are 'cpu'"),
        ({"device": 0}, "device='0': allowed are 'cpu'"),
        ({"device": "cuda", "threads": 2}, "threads=2: with device='cuda' it must be 1"),
        (
            {"device": "cuda", "observation": {"player_0": "flat_v0", "player_1": "planes_v0"}},
            "observation=.*: with device='cuda' all players have the same encoding",
        ),
    ],
)
def test_what_is_not_to_be_had_on_a_device_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}[^\n]*$"):
        SelfPlayEnv("valety", 4, **options)


def test_a_device_that_torch_does_not_find_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"^device='cuda': torch \S+ finds no CUDA device here$"):
        SelfPlayEnv("valety", device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"^device='cuda:2': torch finds cuda:0…cuda:1 here$"):
        SelfPlayEnv("valety", device=torch.device("cuda:2"))


@pytest.mark.parametrize("package", ["numba_cuda", "torch"])
def test_without_the_extra_a_device_names_what_to_install(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "valety_env.cuda", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    told = rf"^device='cuda' needs {package}: pip install 'valety-env\[cuda\]'$"
    with pytest.raises(ModuleNotFoundError, match=told):
        SelfPlayEnv("valety", device="cuda")


def test_the_cpu_is_a_device_too() -> None:
    env = SelfPlayEnv("valety", 2, seed=1, device=torch.device("cpu"))
    assert isinstance(env.reset().seat, np.ndarray)

"""The examples of the README run as they are written."""

import re
import shlex
from pathlib import Path

import pytest

from valety_env.cli import _parse

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_readme_has_its_examples() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs_as_written(number: int) -> None:
    scope: dict[str, object] = {"__name__": "readme"}
    exec(compile(EXAMPLES[number], f"README.md, example {number + 1}", "exec"), scope)
    # Each example leaves an environment or a result behind.
    assert {"env", "result"} & scope.keys()


def test_the_example_of_the_arena_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "arena.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/arena.md", "exec"), {"__name__": "arena"})
    label, points = capsys.readouterr().out.split()
    assert label == "heuristic"
    assert float(points) > 3


COMMANDS = {
    f"{path.name}: {line}": line
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for line in re.findall(
        r"^    (valety-env .*)$", path.read_text("utf-8").replace("\\\n", ""), re.MULTILINE
    )
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_shown_is_one(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(COMMANDS[command], comments=True)
    # What is wrong ends the program with a message.
    parsed = _parse([word for word in words[1:] if word not in ("…", "...")])
    assert parsed.name == words[1]


def test_the_files_that_the_readme_names_exist() -> None:
    rows = re.findall(r"^\| (`.*?) \| ", README, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(.*?)`", row)]
    folder = ""
    missing = []
    for name in names:
        # A name without a folder lies beside the one before it.
        path = name if "/" in name else folder + name
        folder = path[: path.rfind("/") + 1]
        if not (ROOT / path).exists():
            missing.append(name)
    assert missing == []


def test_each_module_of_the_package_has_a_line_in_the_readme() -> None:
    package = ROOT / "src" / "valety_env"
    modules = {
        p.name for p in package.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    told = {name.rstrip("/").split("/")[-1] for name in re.findall(r"`(.*?)`", README)}
    assert modules - told - {"__init__.py", "__main__.py"} == set()

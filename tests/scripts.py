"""Scripts of the project, for tests: as modules, and what they said."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


def load_script(path: str) -> ModuleType:
    """Return the script at a path from the project's root, its top level run."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def complaints(stderr: str) -> list[str]:
    """Return the lines of standard error but for the one of the first process that compiles."""
    compiling = "valety_env: compiling for this machine, once for this version"
    return [line for line in stderr.splitlines() if not line.startswith(compiling)]

"""What must be known of a machine to read its numbers, and one core of it to measure on."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from valety_env._jit import JIT_DISABLED

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def _cpu_model() -> str:
    """Return the processor's name, as far as the system tells it."""
    if _CPUINFO.exists():
        found = re.search(r"^model name\s*: (.*)$", _CPUINFO.read_text("utf-8"), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Return the caches that the first core reaches, such as `{"L1 data": "32K", "L2": "1M"}`."""
    caches = {}
    for index in sorted(_CACHES.glob("index*")):
        level, kind, size = (
            (index / name).read_text("utf-8").strip() for name in ("level", "type", "size")
        )
        caches[f"L{level}" + ("" if kind == "Unified" else f" {kind.lower()}")] = size
    return caches


def describe_machine() -> dict[str, Any]:
    """Return the machine's facts as JSON values: nothing that names one machine among its like."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "os": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "one_core": hasattr(os, "sched_setaffinity"),
        "compiled": not JIT_DISABLED,
    }


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread, and processes started in it, on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

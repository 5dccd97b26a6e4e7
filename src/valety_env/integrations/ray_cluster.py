"""Ray: jobs played by all the processors of a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from valety_env.agents import needs_extra

with needs_extra(__name__, "rllib", ("ray",)):
    import ray


class RayExecutor(Executor):
    """Plays on a Ray cluster: the one that RAY_ADDRESS names or that runs here, else a new one.

    A cluster's machines need this package and, at the same paths, the files that agents' names
    name.

    Attributes:
        cores: how many processors the cluster has.
    """

    def __init__(self) -> None:
        self._begun = not ray.is_initialized()
        if self._begun:
            ray.init(include_dashboard=False, configure_logging=False, log_to_driver=False)
            logging.getLogger("ray").setLevel(logging.ERROR)
        self.cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._run = ray.remote(num_cpus=1, max_retries=3)(_run)
        self._folder = Path.cwd()

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        """As `Executor.submit`."""
        told: Future[Any] = Future()
        told.set_running_or_notify_cancel()
        found = self._run.remote(self._folder, function, arguments, options).future()

        def tell(done: Future[Any]) -> None:
            try:
                result, error = done.result()
            except Exception as lost:
                result, error = None, lost
            if error is None:
                told.set_result(result)
            else:
                told.set_exception(error)

        found.add_done_callback(tell)
        return told

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `Executor.shutdown`; leaves the cluster if it was entered here."""
        del wait, cancel_futures
        if self._begun:
            ray.shutdown()


def _run(
    folder: Path, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Exception | None]:
    """Return what a function returns or raises; Ray would wrap an error into one of its own."""
    if folder.is_dir():
        os.chdir(folder)  # paths in agents' names are relative to it
    try:
        return function(*arguments, **options), None
    except Exception as error:
        return None, error

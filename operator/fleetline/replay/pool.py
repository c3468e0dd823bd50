"""Many runs of one scenario: in this process, in several, or on a Ray cluster."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context
from typing import Any, Protocol

from fleetline.errors import ManifestError
from fleetline.replay.scenario import Scenario
from fleetline.replay.tasks import Outcome, Task, perform


class Listener(Protocol):
    """Hears how runs get on, for a progress bar."""

    def begin(self, count: int) -> None:
        """Hear that so many runs will be made."""

    def done(self, outcome: Outcome) -> None:
        """Hear that one has ended."""


Runs = Callable[[Sequence[Task]], list[Outcome]]
"""Performs tasks and returns their outcomes in the same order."""

_scenario: Scenario | None = None


def open_runs(
    scenario: Scenario, listener: Listener, *, processes: int = 1, ray_address: str | None = None
) -> AbstractContextManager[Runs]:
    """Choose where runs happen: on Ray if there is an address, else in so many processes."""
    if ray_address is not None:
        return _on_ray(scenario, listener, ray_address)
    if processes > 1:
        return _in_processes(scenario, listener, processes)
    return _here(scenario, listener)


@contextmanager
def _here(scenario: Scenario, listener: Listener) -> Iterator[Runs]:
    def runs(tasks: Sequence[Task]) -> list[Outcome]:
        listener.begin(len(tasks))
        outcomes = []
        for task in tasks:
            outcomes.append(perform(task, scenario))
            listener.done(outcomes[-1])
        return outcomes

    yield runs


def _remember(scenario: Scenario) -> None:
    global _scenario  # noqa: PLW0603 - sent to each worker once, not with every task
    _scenario = scenario


def _perform_remembered(task: Task) -> Outcome:
    if _scenario is None:
        raise RuntimeError("a worker must be given its scenario first")
    return perform(task, _scenario)


@contextmanager
def _in_processes(scenario: Scenario, listener: Listener, processes: int) -> Iterator[Runs]:
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_remember, initargs=(scenario,)
    )

    def runs(tasks: Sequence[Task]) -> list[Outcome]:
        listener.begin(len(tasks))
        futures = [pool.submit(_perform_remembered, task) for task in tasks]
        for future in as_completed(futures):
            listener.done(future.result())
        return [future.result() for future in futures]

    try:
        yield runs
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _on_ray(scenario: Scenario, listener: Listener, address: str) -> Iterator[Runs]:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ManifestError(
            "--ray must be used with the extra `ray` installed (pip install fleetline[ray]), "
            f"got {address!r}"
        ) from error
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(address=address, log_to_driver=False)
    shared = ray.put(scenario)
    # once per task and node: Ray hands every worker of a node the same copy of the scenario
    remote = ray.remote(perform)

    def runs(tasks: Sequence[Task]) -> list[Outcome]:
        listener.begin(len(tasks))
        references = [remote.remote(task, shared) for task in tasks]
        pending = list(references)
        while pending:
            ready, pending = ray.wait(pending)
            for reference in ready:
                listener.done(ray.get(reference))
        outcomes: list[Outcome] = ray.get(references)
        return outcomes

    try:
        yield runs
    finally:
        if is_ours:
            ray.shutdown()

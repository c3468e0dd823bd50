"""Runs of a real engine, and the same runs simulated."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fleetline.model.step_time import StepTime
from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.fleet import FleetSimulation
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.results import RequestResults
from sim_cluster.serving.table import Table, read_table

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenRun:
    """Requests that came at moments of their own, and what an engine made of them."""

    arrivals: Arrivals
    ttft_s: Floats
    tpot_s: Floats

    @classmethod
    def of(cls, table: Table) -> Self:
        """Read `t_s,prompt_tokens,output_tokens,ttft_s,tpot_s` in any order of time."""
        times = table.numbers("t_s", least=0.0)
        order = np.argsort(times, kind="stable")
        return cls(
            arrivals=Arrivals.of(
                times[order],
                table.counts("prompt_tokens", least=1)[order],
                table.counts("output_tokens", least=1)[order],
            ),
            ttft_s=table.numbers("ttft_s", least=0.0)[order],
            tpot_s=table.numbers("tpot_s", least=0.0)[order],
        )

    @property
    def e2e_s(self) -> Floats:
        """From arrival to the last token. [s]"""
        return self.ttft_s + self.tpot_s * (self.arrivals.output_tokens - 1)

    def simulate(self, step_time: StepTime, limits: EngineLimits) -> RequestResults:
        """Give the same requests to a simulated replica."""
        return simulate(self.arrivals, step_time, limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRun:
    """So many clients that send their next request when the last is answered; mean latencies."""

    concurrency: int
    requests: int
    prompt_tokens: int
    output_tokens: int
    ttft_s: float
    tpot_s: float

    @classmethod
    def of(cls, table: Table, concurrency: int) -> Self:
        """Read the columns of `OpenRun` for requests that are all alike."""
        return cls(
            concurrency=concurrency,
            requests=len(table.lines),
            prompt_tokens=int(table.counts("prompt_tokens", least=1)[0]),
            output_tokens=int(table.counts("output_tokens", least=1)[0]),
            ttft_s=float(table.numbers("ttft_s").mean()),
            tpot_s=float(table.numbers("tpot_s").mean()),
        )

    def simulate(self, step_time: StepTime, limits: EngineLimits) -> RequestResults:
        """
        Let simulated clients send the same requests.

        Who sends next depends on who was answered, so arrivals are found by repetition: each
        time the completions of one generation more are right.
        """
        size, clients = self.requests, min(self.concurrency, self.requests)
        times = np.zeros(size)
        times[clients:] = np.inf
        results = self._run(times, step_time, limits)
        for _ in range(size):
            before = times.copy()
            ends = np.sort(results.t_s + results.e2e_s)
            times[clients:] = np.inf
            times[clients : clients + ends.size] = ends[: size - clients]
            if np.array_equal(times, before):
                break
            results = self._run(times, step_time, limits)
        return results

    def _run(self, times: Floats, step_time: StepTime, limits: EngineLimits) -> RequestResults:
        sent = times[np.isfinite(times)]
        arrivals = Arrivals.of(sent, self.prompt_tokens, self.output_tokens)
        return simulate(arrivals, step_time, limits)


def simulate(arrivals: Arrivals, step_time: StepTime, limits: EngineLimits) -> RequestResults:
    """Let one replica serve requests until all are done."""
    fleet = FleetSimulation(arrivals, step_time, limits)
    fleet.advance(np.inf)
    return fleet.results()


def read_open_runs(path: Path | str) -> Mapping[float, OpenRun]:
    """Read open-loop runs by the rate that was asked for (column `rate_rps`)."""
    table = read_table(path)
    rates = table.numbers("rate_rps", least=0.0)
    return {rate: OpenRun.of(table.where((rates == rate).tolist())) for rate in _distinct(rates)}


def read_closed_runs(path: Path | str) -> Mapping[int, ClosedRun]:
    """Read closed-loop runs by the number of clients (column `concurrency`)."""
    table = read_table(path)
    clients = table.counts("concurrency", least=1)
    return {
        int(count): ClosedRun.of(table.where((clients == count).tolist()), int(count))
        for count in _distinct(clients.astype(np.float64))
    }


def in_flight(run: OpenRun, e2e_s: Floats, at_s: float) -> int:
    """Count the requests that have come and not been answered at a moment."""
    come = run.arrivals.t_s <= at_s
    return int((come & (run.arrivals.t_s + e2e_s > at_s)).sum())


def _distinct(values: Floats) -> list[float]:
    return [float(value) for value in np.unique(values)]

"""
The simulator beside a real engine: fit step constants on some runs, predict the others.

    python benchmarks/real_engine.py                            the recorded runs of the tests
    python benchmarks/real_engine.py --url http://HOST:8000 --model NAME
    python benchmarks/real_engine.py --start                    starts a tiny vLLM (if installed)

With an engine, a closed loop and open loops at `--rates` are run first (a minute each) and written
to `build/real_engine/`. Constants are fitted on the closed loop and on the `--fit` rates.
"""

import argparse
import asyncio
import csv
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import numpy as np
from tiny_engine import engine

from fleetline.model.step_time import StepTime
from sim_cluster.serving.fit import fit
from sim_cluster.serving.limits import EngineLimits
from sim_cluster.serving.measured import OpenRun, in_flight, read_closed_runs, read_open_runs

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "data" / "agreement"
FOLDER = ROOT / "build" / "real_engine"
CLIENTS = (1, 2, 4, 8, 16, 32)
CLOSED_SECONDS = 12.0
PROMPT_TOKENS, OUTPUT_TOKENS = (16, 128), (16, 128)
BAR = 0.15
BAR_FACTOR = 1.5
SATURATED = 5.0
"""A run is at or above the knee if its p95 of TTFT is so many times that of the slowest rate."""

STARTS = tuple(
    StepTime(
        fixed_s=fixed_s,
        weights_read_s=weights_s,
        kv_read_s_per_token=kv_s,
        token_compute_s=token_s,
        sequence_s=1e-3,
        prefill_token_s=9e-4,
        request_s=0.012,
    )
    for fixed_s, weights_s, token_s, kv_s in (
        (0.024, 0.005, 3e-4, 4e-6),
        (0.012, 0.0186, 9.5e-4, 5e-7),
        (0.020, 0.010, 6e-4, 2e-6),
    )
)
"""Where fits begin: 25 to 30 ms a step and 1 ms a token, as of a small model on a CPU core."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered request, with the columns of the files."""

    t_s: float
    prompt_tokens: int
    output_tokens: int
    ttft_s: float
    tpot_s: float
    e2e_s: float


def main() -> int:
    """Run, fit, predict, compare; fail if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.5, 1, 2, 3, 4, 5, 6])
    parser.add_argument("--fit", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--step-tokens", type=int, default=512)
    parser.add_argument("--kv-tokens", type=float, default=131_072.0)
    options = parser.parse_args()
    folder = RECORDED
    if options.start or options.url:
        with engine(options.url, FOLDER / "model") as url:
            asyncio.run(_measure(url, options.model, options.rates, options.seconds))
        folder = FOLDER
    limits = EngineLimits(
        max_sequences=options.slots,
        step_token_budget=options.step_tokens,
        kv_capacity_tokens=options.kv_tokens,
    )
    return _compare(folder, limits, options.fit)


def _compare(folder: Path, limits: EngineLimits, fitted_on: Sequence[float]) -> int:
    runs = read_open_runs(folder / "real_vllm_open.csv")
    closed = list(read_closed_runs(folder / "real_vllm_closed.csv").values())
    found = fit(STARTS, limits, open_runs=[runs[rate] for rate in fitted_on], closed_runs=closed)
    print(f"fitted on the closed loop and on {fitted_on} requests/s:")
    print({name: float(f"{value:.4g}") for name, value in asdict(found.step_time).items() if value})
    calm_s = SATURATED * np.percentile(runs[min(runs)].ttft_s, 95)
    missed = 0
    for rate, run in runs.items():
        missed += _print_run(
            rate, run, found.step_time, limits, held_out=rate not in fitted_on, calm_s=calm_s
        )
    print(f"{missed} bars missed")
    return int(missed > 0)


def _print_run(
    rate: float,
    run: OpenRun,
    step_time: StepTime,
    limits: EngineLimits,
    *,
    held_out: bool,
    calm_s: float,
) -> int:
    """Print measured beside simulated; say how many bars a run that was held out misses."""
    seen = run.simulate(step_time, limits)
    saturates = bool(np.percentile(run.ttft_s, 95) > calm_s)
    rows = [
        ("TTFT mean", run.ttft_s.mean(), seen.ttft_s.mean(), saturates),
        ("TTFT p95", np.percentile(run.ttft_s, 95), np.percentile(seen.ttft_s, 95), saturates),
        ("TPOT mean", run.tpot_s.mean(), seen.tpot_s.mean(), False),
        ("TPOT p95", np.percentile(run.tpot_s, 95), np.percentile(seen.tpot_s, 95), False),
    ]
    missed = 0
    for name, measured, simulated, is_loose in rows:
        ratio = simulated / measured
        within = 1 / BAR_FACTOR <= ratio <= BAR_FACTOR if is_loose else abs(ratio - 1) <= BAR
        bar = f"within a factor {BAR_FACTOR}" if is_loose else f"within {BAR:.0%}"
        verdict = ("ok" if within else "MISSED") if held_out else "fitted"
        missed += held_out and not within
        print(
            f"{rate:4g}/s {name:9} measured {measured:8.3f} s  simulated {simulated:8.3f} s  "
            f"ratio {ratio:5.2f}  bar {bar}: {verdict}"
        )
    if saturates:
        print(
            f"{rate:4g}/s requests in flight grew by {_growth(run, run.e2e_s)} measured, "
            f"{_growth(run, seen.e2e_s)} simulated"
        )
    return missed


def _growth(run: OpenRun, e2e_s: np.ndarray) -> int:
    end_s = float(run.arrivals.t_s[-1])
    return in_flight(run, e2e_s, end_s) - in_flight(run, e2e_s, end_s / 3)


async def _measure(url: str, model: str, rates: Sequence[float], seconds: float) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        closed = [
            {"concurrency": clients, **asdict(answer)}
            for clients in CLIENTS
            for answer in await _closed_loop(session, url, model, clients)
        ]
        _write(FOLDER / "real_vllm_closed.csv", closed)
        opened = []
        for rate in rates:
            print(f"{rate:g} requests/s for {seconds:g} s", flush=True)
            answers = await _open_loop(session, url, model, rate, seconds)
            opened += [{"rate_rps": rate, **asdict(answer)} for answer in answers]
        _write(FOLDER / "real_vllm_open.csv", opened)


async def _closed_loop(
    session: aiohttp.ClientSession, url: str, model: str, clients: int
) -> list[Answer]:
    begin_s = time.perf_counter()

    async def client() -> list[Answer]:
        answers = []
        while time.perf_counter() - begin_s < CLOSED_SECONDS:
            due_s = time.perf_counter() - begin_s
            answers.append(await _ask(session, url, model, begin_s, due_s, 32, 64))
        return answers

    return [
        one for many in await asyncio.gather(*(client() for _ in range(clients))) for one in many
    ]


async def _open_loop(
    session: aiohttp.ClientSession, url: str, model: str, rate: float, seconds: float
) -> list[Answer]:
    random = np.random.default_rng(int(rate * 1000))
    due = np.cumsum(random.exponential(1 / rate, int(3 * rate * seconds) + 10))
    due = due[due < seconds]
    prompts = random.integers(PROMPT_TOKENS[0], PROMPT_TOKENS[1] + 1, due.size)
    outputs = random.integers(OUTPUT_TOKENS[0], OUTPUT_TOKENS[1] + 1, due.size)
    begin_s = time.perf_counter()
    asked = (
        _ask(session, url, model, begin_s, float(at), int(prompt), int(output))
        for at, prompt, output in zip(due, prompts, outputs, strict=True)
    )
    return list(await asyncio.gather(*asked))


async def _ask(  # noqa: PLR0917
    session: aiohttp.ClientSession,
    url: str,
    model: str,
    begin_s: float,
    due_s: float,
    prompt: int,
    output: int,
) -> Answer:
    """Send one request when it is due; one chunk of the stream is one token."""
    await asyncio.sleep(max(0.0, begin_s + due_s - time.perf_counter()))
    body = {
        "model": model,
        "prompt": np.random.default_rng().integers(10, 8000, prompt).tolist(),
        "max_tokens": output,
        "ignore_eos": True,
        "stream": True,
    }
    async with session.post(f"{url}/v1/completions", json=body) as response:
        response.raise_for_status()
        tokens = [
            time.perf_counter() - begin_s
            async for line in response.content
            if line.startswith(b"data: {")
        ]
    pace_s = (tokens[-1] - tokens[0]) / max(1, output - 1)
    return Answer(due_s, prompt, output, tokens[0] - due_s, pace_s, tokens[-1] - due_s)


def _write(path: Path, rows: Sequence[dict[str, float]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    raise SystemExit(main())

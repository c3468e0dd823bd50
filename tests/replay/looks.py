"""Observations for tests, said shortly."""

from collections.abc import Iterable

from fleetline.replay.observation import Observation, ReplicaSample


def sample(running: int = 0, waiting: int = 0, kv: float = 0.0) -> ReplicaSample:
    return ReplicaSample(running=running, waiting=waiting, kv_utilization=kv)


def look(
    samples: Iterable[ReplicaSample],
    *,
    now_s: float = 0.0,
    current: int | None = None,
    ready: int | None = None,
    rate: float | None = None,
    prompt: float | None = None,
    output: float | None = None,
    most: int = 1000,
) -> Observation:
    seen = tuple(samples)
    current = len(seen) if current is None else current
    return Observation(
        now_s=now_s,
        current_replicas=current,
        ready_replicas=current if ready is None else ready,
        samples=seen,
        arrival_rate_per_s=rate,
        prompt_tokens=prompt,
        output_tokens=output,
        max_replicas=most,
    )

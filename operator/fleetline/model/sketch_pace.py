"""
The loop in numbers rather than arrays, for one kind of request: what a sketch of a ceiling needs.

The equations of `loop`, with prompts of a step taken as exponential, E[(A - gap)+] = a P e^(-gap /
E[A | A > 0]), and a swing that does not bend.
"""

from dataclasses import dataclass
from math import exp, log
from typing import Final, Self

import numpy as np

from fleetline.model.kinds import Array
from fleetline.model.lanes import Lanes
from fleetline.model.pace import MOST_BUSY
from fleetline.model.swing import BURST_S, MOST_RATIO, TINY

MOST_PULL: Final = 0.9
"""Relative lengthening of a step beyond which swings are no larger."""


@dataclass(slots=True)
class Traits:
    """The coefficients of one question."""

    weights_read_s: float
    experts_read_s: float
    miss_probability: float
    """Of an expert, by one sequence."""
    token_compute_s: float
    fixed_s: float
    each_s: float
    request_s: float
    tokens_per_step: float
    answer_tokens: float
    """Those that decode steps yield: all but the first."""
    work_s: float
    """Of a prompt."""
    uneven_ratio: float
    """Its mean square over the square of its mean."""
    cubic_ratio: float
    """Its mean cube over the cube of its mean, as far as tokens tell."""
    prompt_tokens: float
    budget_tokens: float
    coupling_factor: float
    bursts_ratio: float
    met_share: float
    """Share of a stay that requests of one burst spend together."""
    all_replicas: float
    most_requests: float
    stay_ratio: float
    """Square of the coefficient of variation of stays."""
    short_ratio: float
    """Square of the mean of 1 / sqrt(steps): short answers see more of a prompt. [1/steps]"""
    capacity_per_s: float

    @classmethod
    def of(cls, lanes: Lanes, capacity_per_s: Array) -> list[Self]:
        """Those of all questions."""
        step, kinds = lanes.step, lanes.kinds
        columns = (
            *(step["weights_read_s"], step["experts_read_s"], step["expert_miss_probability"]),
            *(step["token_compute_s"], step["fixed_s"], lanes.each_s, step["request_s"]),
            step["tokens_per_step"],
            lanes.decode_steps * step["tokens_per_step"],
            *(lanes.work_s, lanes.work_uneven, kinds.prompt_cubic),
            *(lanes.prompt_tokens, lanes.step_token_budget, lanes.coupling, lanes.bursts),
            *(lanes.shared_stay, lanes.replicas, lanes.batch_limit, lanes.stay_square),
            kinds.shortness * step["tokens_per_step"],
            capacity_per_s,
        )
        return [cls(*row) for row in np.array(columns).reshape(len(columns), -1).T.tolist()]


@dataclass(slots=True)
class Pace:
    """The loop with a given number of requests in the decode phase."""

    decoding_requests: float
    step_s: float
    gap_s: float
    mean_step_s: float
    held_share: float
    """Share of a step that prefill adds."""
    some_share: float
    """Share of steps that hold some."""
    room_ratio: float
    """A mean prompt over the room for it in a step."""
    rate_per_s: float
    brought_requests: float
    """Prompts a step."""
    seen_s: float
    """What one of them adds to steps."""
    square_s2: float
    """Mean square of that."""
    busy_share: float
    pull_ratio: float
    spread_requests: float
    """Variance of the number in the batch. [requests^2]"""
    token_s: float
    """Mean time of the steps that a request goes through."""

    @property
    def level_s2(self) -> float:
        """Variance of the step time as the number in the batch swings."""
        slope_s = self.pull_ratio * self.mean_step_s / self.decoding_requests
        return slope_s * slope_s * self.spread_requests


def pace_of(one: Traits, decoding_requests: float) -> Pace:
    """Pace of a batch that swings around `decoding_requests`."""
    steps = one.answer_tokens / one.tokens_per_step
    calm = 1.0 / one.all_replicas
    bursts = _met_bursts_ratio(one, steps * one.fixed_s)
    met = max(decoding_requests + max(calm + bursts, 0.0), 1.0)
    missing = one.miss_probability**met if one.experts_read_s else 1.0
    read_s = one.weights_read_s + one.experts_read_s * (1.0 - missing)
    gap_s = max(read_s - one.token_compute_s * met, 0.0)
    step_s = one.fixed_s + gap_s + one.each_s * met
    brought = decoding_requests / steps
    parts = one.prompt_tokens / max(one.budget_tokens - decoding_requests, 1.0)
    some = 1.0 - exp(-brought * max(parts, 1.0))
    total_s = brought * one.work_s
    extra_s = total_s * exp(-gap_s * some / total_s)
    mean_step_s = step_s + extra_s
    held = extra_s / mean_step_s
    slope_s = one.each_s
    if gap_s > 0:
        slope_s -= one.token_compute_s
        if one.experts_read_s:
            slope_s -= one.experts_read_s * missing * log(max(one.miss_probability, TINY))
    pull = min((slope_s * decoding_requests + extra_s) / mean_step_s, MOST_PULL)
    kept = held * decoding_requests / (held + decoding_requests)
    ratio = 0.5 * calm * (2.0 + kept * (2.0 + kept * one.uneven_ratio))
    ratio += _met_bursts_ratio(one, steps * mean_step_s) * (1.0 + kept) ** 2
    busy = one.coupling_factor * min(held, MOST_BUSY)
    convoy = busy / ((1.0 - busy) * (1.0 - busy * busy)) * held / decoding_requests
    seen_s = extra_s / brought
    return Pace(
        decoding_requests=decoding_requests,
        step_s=step_s,
        gap_s=gap_s,
        mean_step_s=mean_step_s,
        held_share=held,
        some_share=some,
        room_ratio=parts,
        rate_per_s=brought / mean_step_s,
        brought_requests=brought,
        seen_s=seen_s,
        square_s2=seen_s * seen_s * one.uneven_ratio,
        busy_share=busy,
        pull_ratio=pull,
        spread_requests=decoding_requests * min(max(ratio, 0.0), MOST_RATIO) / (1.0 - pull),
        token_s=mean_step_s * (1.0 + min(convoy, 1.0)),
    )


def _met_bursts_ratio(one: Traits, stay_s: float) -> float:
    """What bursts add to variance over mean of the number in the batch."""
    if not one.bursts_ratio:
        return 0.0
    meeting_s = one.met_share * BURST_S if one.bursts_ratio > 0 else 0.0
    return one.bursts_ratio * one.met_share * stay_s / (stay_s + meeting_s)

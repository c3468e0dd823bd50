"""Which knob moves the ceiling: its relative change for a tenth more of each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fleetline.model.ceiling import Question, ceilings
from fleetline.model.hardware import Accelerator
from fleetline.model.objective import Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload

MORE: Final = 1.1


def sensitivity(
    replica: Replica, workload: Workload, objectives: Sequence[Objective], *, replicas: int = 1
) -> dict[str, float]:
    """
    Elasticity of the ceiling by knob: 1 if a tenth more of it gives a tenth more rate.

    Knobs: `bandwidth`, `compute`, `memory`, `slots`, `token budget`, `prompt tokens`,
    `output tokens` and one for each objective, by its printed form. All are solved at once.
    """
    hardware = replica.accelerator
    budget = int(MORE * replica.step_token_budget)
    shapes = {
        "bandwidth": replace(
            replica,
            accelerator=replace(
                hardware, bandwidth_bytes_per_s=MORE * hardware.bandwidth_bytes_per_s
            ),
        ),
        "compute": replace(replica, accelerator=_faster(replica)),
        "memory": replace(
            replica, accelerator=replace(hardware, memory_bytes=MORE * hardware.memory_bytes)
        ),
        "slots": replace(replica, max_sequences=round(MORE * replica.max_sequences)),
        "token budget": replace(replica, step_token_budget=budget),
    }
    wanted = tuple(objectives)
    questions = {"": Question(replica=replica, workload=workload, objectives=wanted)}
    for name, changed in shapes.items():
        questions[name] = Question(replica=changed, workload=workload, objectives=wanted)
    for name, prompt, output in (("prompt tokens", MORE, 1.0), ("output tokens", 1.0, MORE)):
        longer = _scaled(workload, prompt_factor=prompt, output_factor=output)
        questions[name] = Question(replica=replica, workload=longer, objectives=wanted)
    for place, objective in enumerate(wanted):
        looser = replace(objective, target_s=MORE * objective.target_s)
        some = (*wanted[:place], looser, *wanted[place + 1 :])
        questions[str(objective)] = Question(replica=replica, workload=workload, objectives=some)
    answers = ceilings([replace(one, replicas=replicas) for one in questions.values()])
    now = answers[0].rate_per_s
    if now <= 0:
        return dict.fromkeys(list(questions)[1:], 0.0)
    return {
        name: (answer.rate_per_s / now - 1.0) / (MORE - 1.0)
        for name, answer in zip(list(questions)[1:], answers[1:], strict=True)
    }


def _faster(replica: Replica) -> Accelerator:
    hardware = replica.accelerator
    rates = {
        field: MORE * value
        for field in ("bf16_flop_per_s", "fp8_flop_per_s", "fp4_flop_per_s", "int8_flop_per_s")
        if (value := getattr(hardware, field))
    }
    return replace(hardware, **rates)


def _scaled(workload: Workload, *, prompt_factor: float, output_factor: float) -> Workload:
    lengths = workload.lengths
    return Workload(
        lengths=TokenLengths.of(
            prompt_factor * lengths.prompt_tokens,
            output_factor * lengths.output_tokens,
            weights=lengths.weights,
            cached_prompt_tokens=prompt_factor * lengths.cached_prompt_tokens,
        ),
        dispersion=workload.dispersion,
    )

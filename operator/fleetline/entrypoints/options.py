"""What several commands ask for, read once: objectives, lengths, and what a replica is made of."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fleetline.adapters.catalog import Catalog
from fleetline.adapters.durations import parse_duration_s
from fleetline.adapters.lengths import read_lengths
from fleetline.errors import ManifestError
from fleetline.model.hardware import Accelerator, Precision
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload


class Output(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


ModelOption = Annotated[str, typer.Option("--model", help="Catalogue or published model name.")]
TensorParallelOption = Annotated[
    int, typer.Option("--tensor-parallel", min=1, help="Accelerators that share each layer.")
]
PromptOption = Annotated[
    float | None, typer.Option("--prompt-tokens", help="Prompt length of every request [tokens].")
]
OutputTokensOption = Annotated[
    float | None, typer.Option("--output-tokens", help="Output length of every request [tokens].")
]
LengthsOption = Annotated[
    Path | None,
    typer.Option("--lengths", help="CSV of field,percentile,value or of a trace's requests."),
]
ImagesOption = Annotated[
    float, typer.Option("--image-tokens", min=0, help="Image tokens that each prompt adds.")
]
DispersionOption = Annotated[
    float, typer.Option("--dispersion", min=0.01, help="Variance over mean of arrival counts.")
]
ObjectiveOption = Annotated[
    list[str],
    typer.Option(
        "--objective", help="METRIC:PERCENTILE:TARGET, such as TimeToFirstToken:p95:500ms."
    ),
]
WeightsOption = Annotated[
    Precision | None,
    typer.Option("--weight-precision", help="Format of the weights; default: as published."),
]
KVOption = Annotated[Precision, typer.Option("--kv-precision", help="Format of the KV cache.")]
SequencesOption = Annotated[
    int, typer.Option("--max-sequences", min=1, help="Slots of the batch [requests].")
]
BudgetOption = Annotated[
    int, typer.Option("--step-token-budget", min=1, help="Most tokens in one step [tokens].")
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]


def parse_objective(text: str) -> Objective:
    """
    Read `TimeToFirstToken:p95:500ms`.

    Raises
    ------
    ManifestError
        If a part is missing, unknown or out of range.
    """
    parts = text.split(":")
    if len(parts) != 3:
        raise ManifestError(f"--objective must be METRIC:PERCENTILE:TARGET, got {text!r}")
    name, percentile, target = parts
    if name not in set(Metric):
        raise ManifestError(
            f"metric of --objective must be one of {', '.join(Metric)}, got {name!r}"
        )
    digits = percentile.removeprefix("p")
    if not digits.isdigit() or not 50 <= int(digits) <= 99:
        raise ManifestError(
            f"percentile of --objective must be an integer from p50 to p99, got {percentile!r}"
        )
    target_s = parse_duration_s("target of --objective", target)
    return Objective(metric=Metric(name), percentile=int(digits), target_s=target_s)


def parse_objectives(texts: list[str]) -> list[Objective]:
    """Read one or more objectives; ManifestError if there is none."""
    if not texts:
        raise ManifestError("--objective must be given at least once, got none")
    return [parse_objective(text) for text in texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """What requests look like, as given on the command line."""

    prompt_tokens: PromptOption = None
    output_tokens: OutputTokensOption = None
    lengths: LengthsOption = None
    image_tokens: ImagesOption = 0.0
    dispersion: DispersionOption = 1.0

    def read(self) -> Workload:
        """
        Build the workload from means or from a file.

        Raises
        ------
        ManifestError
            Unless either a file or both means are given.
        """
        if self.lengths is not None:
            found = read_lengths(self.lengths)
        elif self.prompt_tokens is not None and self.output_tokens is not None:
            found = TokenLengths.fixed(self.prompt_tokens, self.output_tokens)
        else:
            raise ManifestError(
                "--prompt-tokens and --output-tokens, or --lengths, must be given, got neither"
            )
        if self.image_tokens:
            prompts = found.prompt_tokens + self.image_tokens
            found = TokenLengths.of(prompts, found.output_tokens, weights=found.weights)
        return Workload(lengths=found, dispersion=self.dispersion)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Engine settings, as given on the command line."""

    kv_precision: KVOption = Precision.BF16
    max_sequences: SequencesOption = 256
    step_token_budget: BudgetOption = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOptions:
    """How one replica holds the model, as given on the command line."""

    tensor_parallel: TensorParallelOption = 1
    weight_precision: WeightsOption = None


GROUPS: Final = (WorkloadOptions, EngineOptions, SplitOptions)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """
    Return a command that takes the fields of its groups as options of its own.

    A parameter whose type is one of `GROUPS` stands for as many options as the group has fields;
    typer reads them off the signature.
    """
    own = inspect.signature(command).parameters.values()
    groups = {one.name: one.annotation for one in own if one.annotation in GROUPS}
    parameters: list[inspect.Parameter] = []
    for one in own:
        if one.name in groups:
            signature = inspect.signature(groups[one.name])
            parameters += signature.parameters.values()
        else:
            parameters.append(one)

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    run.__doc__ = command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def build_replica(
    catalog: Catalog,
    model: str,
    accelerator: Accelerator,
    engine: EngineOptions,
    split: SplitOptions | None = None,
) -> Replica:
    """Put a replica together from catalogue names and options."""
    split = split or SplitOptions()
    return Replica(
        architecture=catalog.architecture(model),
        accelerator=accelerator,
        tensor_parallel=split.tensor_parallel,
        weight_precision=split.weight_precision or catalog.weight_precision(model),
        kv_precision=engine.kv_precision,
        max_sequences=engine.max_sequences,
        step_token_budget=engine.step_token_budget,
    )

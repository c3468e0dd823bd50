"""`fleetline describe`: weight of a model, cost of a token of context, speed of one stream."""

from typing import Annotated, Any

import typer

from fleetline.adapters.catalog import Catalog, load_catalog
from fleetline.entrypoints import options, tables
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Precision
from fleetline.model.kv_cache import kv_bytes_per_token, kv_capacity_tokens
from fleetline.model.replica import Replica
from fleetline.model.roofline import single_stream_token_rate_per_s, step_bytes, step_time

KIBI = 1024.0
GIGA = 1e9


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("describe")(run)


def run(
    *,
    model: Annotated[list[str], typer.Option(help="Catalogue or published model names.")],
    accelerator: Annotated[
        list[str] | None, typer.Option(help="Catalogue names of accelerators.")
    ] = None,
    tensor_parallel: options.TensorParallelOption = 1,
    weight_precision: Annotated[
        list[Precision] | None, typer.Option(help="Formats; default: as published.")
    ] = None,
    kv_precision: options.KVOption = Precision.BF16,
    context: Annotated[float, typer.Option(help="Context of each sequence [tokens].")] = 4096.0,
    output: options.OutputOption = options.Output.TABLE,
) -> None:
    """Show KV cache per token, where it outweighs the weights, and the speed of one stream."""
    catalog = load_catalog()
    shapes = [model_row(catalog.architecture(name), kv_precision, context) for name in model]
    rows = [
        speed_row(replica_of(catalog, name, hardware, tensor_parallel, precision), context)
        for name in model
        for hardware in accelerator or []
        for precision in weight_precision or [catalog.weight_precision(name)]
    ]
    if output is options.Output.JSON:
        tables.print_json({"models": shapes, "single_stream": rows})
        return
    tables.print_rows("Models", shapes, output)
    if rows:
        tables.print_rows(f"One stream at {context:g} tokens of context", rows, output)


def model_row(
    model: Architecture, kv_precision: Precision, context_tokens: float
) -> dict[str, Any]:
    """Sizes of one model, and the batch from which the KV cache is read more than the weights."""
    per_token = kv_bytes_per_token(model, kv_precision)
    return {
        "model": model.name,
        "parameters 10^9": model.parameters / GIGA,
        "active 10^9": model.active_parameters / GIGA,
        "KV KiB/token": per_token / KIBI,
        "context tokens": context_tokens,
        "KV GB/sequence": per_token * context_tokens / GIGA,
        "KV outweighs bf16 weights from sequences": (
            model.active_parameters * 2.0 / (per_token * context_tokens)
        ),
    }


def replica_of(
    catalog: Catalog, name: str, hardware: str, tensor_parallel: int, precision: Precision
) -> Replica:
    """Put together one replica to be described."""
    split = options.SplitOptions(tensor_parallel=tensor_parallel, weight_precision=precision)
    engine = options.EngineOptions()
    return options.build_replica(catalog, name, catalog.accelerator(hardware), engine, split)


def speed_row(replica: Replica, context_tokens: float) -> dict[str, Any]:
    """Speed of one request alone: the bandwidth's bound and what is to be expected."""
    accelerator, precision = replica.accelerator, replica.weight_precision
    tensor_parallel = replica.tensor_parallel
    step_s = step_time(replica).decode_s(1, context_tokens)
    moved = step_bytes(replica, sequences=1, context_tokens=context_tokens)
    peak = accelerator.bandwidth_bytes_per_s * tensor_parallel
    worked = 2 * replica.architecture.active_parameters / step_s
    compute = accelerator.compute_flop_per_s(precision) * tensor_parallel
    fits = kv_capacity_tokens(replica) > context_tokens
    return {
        "model": replica.architecture.name,
        "accelerator": f"{tensor_parallel} x {accelerator.name}",
        "weights": str(precision),
        "bandwidth bound tok/s": single_stream_token_rate_per_s(replica),
        "expected tok/s": 1 / step_s,
        "memory in use": f"{moved / step_s / peak:.0%}",
        "compute in use": f"{worked / compute:.2%}",
        "ridge flop/byte": accelerator.ridge_point_flop_per_byte(precision),
        "fits in memory": fits,
    }

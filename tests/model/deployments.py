"""Deployments that several tests speak of."""

from fleetline.adapters.catalog import load_catalog
from fleetline.model.hardware import Precision
from fleetline.model.objective import Metric, Objective
from fleetline.model.replica import Replica
from fleetline.model.workload import TokenLengths, Workload


def replica(model: str = "llama-3.1-8b", accelerator: str = "H100-SXM", tensor: int = 1) -> Replica:
    """A replica of catalogue entries in bf16."""
    catalog = load_catalog()
    return Replica(
        architecture=catalog.architecture(model),
        accelerator=catalog.accelerator(accelerator),
        tensor_parallel=tensor,
        weight_precision=Precision.BF16,
    )


CHAT = Workload(lengths=TokenLengths.evenly(1000.0, 200.0))
FIRST_TOKEN = Objective(metric=Metric.TIME_TO_FIRST_TOKEN, target_s=0.5)
PER_TOKEN = Objective(metric=Metric.TIME_PER_OUTPUT_TOKEN, target_s=0.04)

"""How far the model is from MLPerf inference: one saturated number a system."""

from pathlib import Path

from error_tables import by, predicted, read

from fleetline.adapters.catalog import load_catalog

MLPERF_TASKS = {"llama2-70b": ("llama-2-70b", 294, 294), "mixtral-8x7b": ("mixtral-8x7b", 430, 145)}
"""Model, mean prompt and mean answer (OpenORCA; its mix with GSM8K and MBXP). [tokens]"""

MLPERF_ACCELERATORS = {
    "NVIDIA H100-SXM-80GB": "H100-SXM",
    "NVIDIA H100-NVL-94GB": "H100-NVL",
    "NVIDIA H100-PCIe-80GB": "H100-PCIe",
    "NVIDIA H200-SXM-141GB": "H200",
    "NVIDIA H200-SXM-141GB-CTS": "H200",
    "NVIDIA GH200 Grace Hopper Superchip 144GB": "GH200-144GB",
    "NVIDIA B200-SXM-180GB": "B200",
    "NVIDIA L40S": "L40S",
    "AMD Instinct MI300X-NPS1-SPX-192GB-750W": "MI300X",
    "AMD MI300X-NPS1-SPX-192GB-750W": "MI300X",
}
MOST_WEIGHTS = 0.65


def mlperf_section(data: Path) -> list[str]:
    """MLPerf inference v4.1, offline: one saturated number a system."""
    catalog = load_catalog()
    rows = []
    for row in read(data / "mlperf_llm.csv"):
        task = row["model"].removesuffix(".9").removesuffix("-99")
        accelerator = MLPERF_ACCELERATORS.get(row["accelerator"])
        if row["scenario"] != "Offline" or task not in MLPERF_TASKS or accelerator is None:
            continue
        model, prompt, output = MLPERF_TASKS[task]
        narrow = catalog.accelerator(accelerator).fp4_flop_per_s is not None
        weights = "fp4" if narrow else "fp8"
        rows.append(
            {
                "model": model,
                "model_key": model,
                "gpu": accelerator,
                "tp": f"{smallest_split(model, accelerator, 0.56 if narrow else 1.0)}",
                "n_gpus": row["accelerators"],
                "isl": f"{prompt}",
                "osl": f"{output}",
                "engine": "vllm" if "AMD" in row["accelerator"] else "trtllm",
                "weight_precision": weights,
                "kv_precision": "fp8",
                "output_tps": row["result"],
            }
        )
    plain, pair = predicted(rows), ("pred_output_tps", "output_tps")
    head = [
        "## MLPerf inference v4.1, offline",
        "",
        "Mean lengths of the data sets as published by MLCommons; 8-bit weights and cache (4-bit",
        "weights on B200); the smallest tensor parallelism that leaves a third of the memory free.",
        "GPT-J is left out (beam search). Bars: dense 15 %, experts 25 %.",
        "",
    ]
    title = {"output tokens per second": pair}
    return [*head, *by("model_key", plain, title), *by("gpu", plain, title)]


def smallest_split(model: str, accelerator: str, bytes_per_weight: float) -> int:
    """Fewest tensor ranks at which the weights fill no more than two thirds of the memory."""
    catalog, ranks = load_catalog(), 1
    held = catalog.architecture(model).parameters * bytes_per_weight
    while held / ranks > MOST_WEIGHTS * catalog.accelerator(accelerator).memory_bytes:
        ranks *= 2
    return ranks

"""
How people spell models and accelerators: usual spellings, reduced to names of the catalogue.

`meta-llama/Meta-Llama-3.1-8B-Instruct-FP8` is a `llama-3.1-8b` whose weights are FP8.
"""

import difflib
import functools
import re
from collections.abc import Collection
from typing import Final

from fleetline.model.hardware import Precision

FORMAT_WORDS: Final = {
    "fp8": Precision.FP8,
    "w8a8": Precision.INT8,
    "int8": Precision.INT8,
    "nvfp4": Precision.FP4,
    "mxfp4": Precision.FP4,
    "fp4": Precision.FP4,
    "awq": Precision.INT4,
    "gptq": Precision.INT4,
    "int4": Precision.INT4,
    "w4a16": Precision.INT4,
}
"""Words in a model's name that tell the format of its weights."""

VARIANT_WORDS: Final = {
    *FORMAT_WORDS,
    *("instruct", "hf", "it", "chat", "base", "dynamic", "quantized", "preview", "bnb", "4bit"),
    *("meta", "dynamo", "turbo", "hq", "original", "2501", "2407", "2507", "0528", "thinking"),
}
"""Words in a model's name that do not change its shape."""

ALIASES: Final = {
    "llama-3-8b": "llama-3.1-8b",
    "llama-3-70b": "llama-3.1-70b",
    "llama-3.3-70b": "llama-3.1-70b",
    "llama-3-405b": "llama-3.1-405b",
    "llama-7b": "llama-2-7b",
    "llama-13b": "llama-2-13b",
    "llama-70b": "llama-2-70b",
    "llama2-7b": "llama-2-7b",
    "llama2-13b": "llama-2-13b",
    "llama2-70b": "llama-2-70b",
    "llama3-8b": "llama-3.1-8b",
    "llama3-70b": "llama-3.1-70b",
    "codellama-7b": "llama-2-7b",
    "codellama-13b": "llama-2-13b",
    "qwen2-0.5b": "qwen2.5-0.5b",
    "qwen2-7b": "qwen2.5-7b",
    "qwen2-72b": "qwen2.5-72b",
    "deepseek-v3": "deepseek-r1",
    "deepseek-v3.1": "deepseek-r1",
    "llama-4-scout-17b-16e": "llama-4-scout",
    "llama-4-maverick-17b-128e": "llama-4-maverick",
    "mistral-small": "mistral-small-24b",
    "kimi-k2": "kimi-k2.5",
    "minimax-m2": "minimax-m2.5",
}
"""Other names of the same shape: later releases of one architecture, and old spellings."""


def shapes_of(name: str) -> tuple[str, str]:
    """Keys under which the shape of a model may be found: as it is spelled, and its other name."""
    shape = _shape_of(name)
    return shape, ALIASES.get(shape, "")


def format_of(name: str) -> Precision | None:
    """Format of the weights that a model's name tells (`...-FP8`); None if it tells none."""
    words = re.split(r"[-_ /]", name.lower())
    return next((FORMAT_WORDS[word] for word in words if word in FORMAT_WORDS), None)


@functools.lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """Letters and digits only, lower case, without a remark in parentheses."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)", "", name).lower())


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """Say what a name must be, with the closest of those that are known."""
    near = difflib.get_close_matches(name.lower(), [key.lower() for key in known], n=3, cutoff=0.5)
    keys = {key.lower(): key for key in known}
    hint = (
        f"the closest are {', '.join(keys[key] for key in near)}" if near else "see the catalogue"
    )
    return f"{what} must be a name in the catalogue ({hint}), got {name!r}"


def _shape_of(name: str) -> str:
    """Reduce `meta-llama/Meta-Llama-3.1-8B-Instruct-FP8` to `llama-3.1-8b`."""
    last = re.sub(r"\(.*?\)", "", name).strip().lower().rsplit("/", 1)[-1]
    words = [word for word in re.split(r"[-_ :]+", last) if word]
    kept = [
        word for word in words if word not in VARIANT_WORDS and not re.fullmatch(r"v0\.\d+", word)
    ]
    return "-".join(kept)

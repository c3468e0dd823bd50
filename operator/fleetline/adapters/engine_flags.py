"""What a pod template says about its engine: image, command line, environment."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from fleetline.adapters.engine_tables import FLAGS, IMAGES, PRECISIONS
from fleetline.adapters.node_labels import MIG_RESOURCE, RESOURCES
from fleetline.adapters.replica_spec import EngineType
from fleetline.model.hardware import Precision

Json = Mapping[str, Any]

SHELL: Final = re.compile(r"(^|/)(ba|da|z|a)?sh$")
REFERENCE: Final = re.compile(r"\$[({](\w+)[)}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWords:
    """The engine container of a pod template, read as words."""

    type: EngineType | None
    type_detail: str
    values: Mapping[str, tuple[str, str]]
    """Value and the flag or variable that held it, by path below spec."""
    accelerators: int
    """Accelerators that one pod requests."""


def read_template(template: Json, told: EngineType | None = None) -> EngineWords:
    """Read the engine's settings from a pod template; what is not there is absent."""
    containers = [one for one in _spec(template).get("containers") or [] if isinstance(one, dict)]
    best = max(containers, key=_likelihood, default={})
    words, environment = command_line(best), _environment(best)
    kind, detail = (told, "spec.engine.type") if told is not None else engine_type(best, words)
    values: dict[str, tuple[str, str]] = {}
    if kind is not None:
        options = _options(words)
        for path, names in FLAGS[kind].items():
            found = _lookup(names, options, environment)
            if found is not None:
                values[path] = found
        positional = _positional_model(words)
        if positional and "model.name" not in values:
            values["model.name"] = (positional, "the command line")
    return EngineWords(
        type=kind, type_detail=detail, values=values, accelerators=_accelerators(best)
    )


def engine_type(container: Json, words: Sequence[str]) -> tuple[EngineType | None, str]:
    """Recognize the engine by its image, else by its command."""
    for place, told in (("image", str(container.get("image", ""))), ("command", " ".join(words))):
        for kind, pattern in IMAGES:
            if re.search(pattern, told, flags=re.IGNORECASE):
                return kind, f"{place} {told[:120]}"
    return None, ""


def precision_of(word: str) -> Precision | None:
    """Number format that a quantization or dtype word means; None for `auto` and the unknown."""
    for precision, pattern in PRECISIONS:
        if re.search(pattern, word, flags=re.IGNORECASE):
            return precision
    return None


def command_line(container: Json) -> list[str]:
    """Words of command and arguments, with variables filled in and shells unwrapped."""
    environment = _environment(container)
    raw = [*(container.get("command") or ()), *(container.get("args") or ())]
    words = [
        REFERENCE.sub(lambda found: environment.get(found[1], found[0]), str(word)) for word in raw
    ]
    if len(words) > 2 and SHELL.search(words[0]) and words[1].startswith("-"):
        try:
            return shlex.split(words[2])
        except ValueError:
            return words[2].split()
    return words


def _spec(template: Json) -> Json:
    spec = template.get("spec")
    return spec if isinstance(spec, dict) else {}


def _likelihood(container: Json) -> tuple[bool, int]:
    kind, _ = engine_type(container, command_line(container))
    return kind is not None, _accelerators(container)


def _environment(container: Json) -> dict[str, str]:
    return {
        str(one.get("name")): str(one["value"])
        for one in container.get("env") or ()
        if isinstance(one, dict) and one.get("value") is not None
    }


def _options(words: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for index, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        follower = words[index + 1] if index + 1 < len(words) else "-"
        if not has_value:
            value = "true" if re.match(r"-\D", follower) or follower == "-" else follower
        options[name.replace("_", "-")] = value
    return options


def _lookup(
    names: Sequence[str], options: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, str] | None:
    for name in names:
        if name.isupper() and name in environment:
            return environment[name], name
        if name in options:
            return options[name], f"{'-' if len(name) == 1 else '--'}{name}"
    return None


def _positional_model(words: Sequence[str]) -> str | None:
    """Return the model in `vllm serve MODEL` and `trtllm-serve MODEL`."""
    for before, word in pairwise(words):
        serves = re.search(r"(^|/)(serve|trtllm-serve)$", before) is not None
        if serves and word != "serve" and not word.startswith("-"):
            return word
    return None


def _accelerators(container: Json) -> int:
    resources = container.get("resources") or {}
    most = 0
    for kind in ("limits", "requests"):
        for name, amount in (resources.get(kind) or {}).items():
            if name in RESOURCES or str(name).startswith(MIG_RESOURCE):
                most = max(most, int(amount) if str(amount).isdigit() else 0)
    return most

"""
What a replica is made of: the CR's word first, then the pod template, the nodes, the defaults.

Each value remembers where it came from; status shows all of them. What is not known stays unknown:
no accelerator is ever guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fleetline.adapters.catalog import Catalog
from fleetline.adapters.engine_flags import EngineWords, precision_of, read_template
from fleetline.adapters.engine_tables import DEFAULTS
from fleetline.adapters.node_labels import NodeAccelerator
from fleetline.adapters.replica_spec import EngineSpec, EngineType, ReplicaSpec
from fleetline.errors import ManifestError, ModelError
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Accelerator, Precision
from fleetline.model.replica import Replica

UNKNOWN_ACCELERATOR: Final = "Unknown"


class Source(StrEnum):
    """Where a value came from; words of the API."""

    SPEC = "Spec"
    POD_TEMPLATE = "PodTemplate"
    NODE_LABELS = "NodeLabels"
    CATALOG = "Catalog"
    DEFAULT = "Default"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Found:
    """One value of status.discovered."""

    name: str
    value: str
    source: Source
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """A replica, or why there is none, and where each part came from."""

    replica: Replica | None
    unknown_because: str
    found: tuple[Found, ...]
    engine: EngineType | None = None
    served_name: str | None = None
    accelerator_names: tuple[str, ...] = ()
    """Every type that runs the fleet; sizing takes the slowest."""


def discover(
    spec: ReplicaSpec,
    template: Mapping[str, Any],
    nodes: Sequence[NodeAccelerator],
    catalog: Catalog,
) -> Discovery:
    """
    Put a replica together.

    Parameters
    ----------
    spec
        What the CR says.
    template
        Pod template of the target, or an empty one.
    nodes
        Accelerators of the nodes that run the fleet's pods, or may run them.
    catalog
        Known accelerators and models, profiles of the administrator included.
    """
    words = read_template(template, spec.engine.type)
    search = _Search(spec=spec, words=words, catalog=catalog)
    architecture, weights = search.model()
    accelerator = search.accelerator(nodes)
    replica: Replica | None = None
    because = search.problem
    if architecture is not None and accelerator is not None:
        try:
            replica = search.replica(architecture, accelerator, weights)
        except ModelError as error:
            because = str(error)
    names = (spec.accelerator_name,) if spec.accelerator_name else _names(nodes)
    return Discovery(
        replica=replica,
        unknown_because="" if replica is not None else because,
        found=tuple(search.found),
        engine=words.type,
        served_name=words.values.get("metrics.modelName", (None, ""))[0],
        accelerator_names=names,
    )


class _Search:
    """One search: collects what was found where, and the first thing that is missing."""

    def __init__(self, *, spec: ReplicaSpec, words: EngineWords, catalog: Catalog) -> None:
        self.spec, self.words, self.catalog = spec, words, catalog
        self.found: list[Found] = []
        self.problem = ""
        if words.type is None:
            self._note("engine.type", "", Source.UNKNOWN, "neither image nor command names one")
        else:
            told = spec.engine.type is not None
            source = Source.SPEC if told else Source.POD_TEMPLATE
            self._note("engine.type", words.type, source, words.type_detail)

    def model(self) -> tuple[Architecture | None, Precision | None]:
        """Shape of the model and the format of its weights, if anything names it."""
        if self.spec.architecture is not None:
            self._note("model.architecture", "given", Source.SPEC, "spec.model.architecture")
            return self.spec.architecture, Precision.BF16
        told, place = self.words.values.get("model.name", (None, ""))
        name, source = (
            (self.spec.model_name, Source.SPEC)
            if self.spec.model_name
            else (told, Source.POD_TEMPLATE)
        )
        if name is None:
            self._miss("model.name", "neither spec.model nor the pod template names the model")
            return None, None
        try:
            architecture = self.catalog.architecture(name)
        except ManifestError as error:
            self._miss("model.name", str(error))
            return None, None
        self._note("model.name", name, source, "" if source is Source.SPEC else place)
        return architecture, self.catalog.weight_precision(name)

    def accelerator(self, nodes: Sequence[NodeAccelerator]) -> Accelerator | None:
        """Return the accelerator that the CR names, else the slowest that runs the fleet."""
        if self.spec.accelerator_name is not None:
            try:
                accelerator = self.catalog.accelerator(self.spec.accelerator_name)
            except ManifestError as error:
                self._miss("accelerator.name", str(error))
                return None
            self._note("accelerator.name", accelerator.name, Source.SPEC, "spec.accelerator.name")
            return accelerator
        if not nodes:
            self._miss(
                "accelerator.name",
                "no node that runs the fleet tells its accelerator; set spec.accelerator.name",
            )
            return None
        slowest = min(nodes, key=lambda node: node.accelerator.bandwidth_bytes_per_s)
        mixed = " (the slowest of several types)" if len(_names(nodes)) > 1 else ""
        detail = f"{slowest.source}{mixed}"
        self._note("accelerator.name", slowest.accelerator.name, Source.NODE_LABELS, detail)
        return slowest.accelerator

    def replica(
        self, architecture: Architecture, accelerator: Accelerator, weights: Precision | None
    ) -> Replica:
        """Put it together; ModelError if a number is impossible."""
        engine = self.spec.engine
        sequences = self._count("engine.maxSequences", engine.max_sequences)
        budget = self._count("engine.stepTokenBudget", engine.step_token_budget)
        return Replica(
            architecture=architecture,
            accelerator=accelerator,
            tensor_parallel=self._tensor_parallel(engine),
            pipeline_parallel=self._count("engine.pipelineParallel", engine.pipeline_parallel, 1),
            data_parallel=self._count("engine.dataParallel", engine.data_parallel, 1),
            expert_parallel=self._expert_parallel(engine),
            weight_precision=self._precision(
                "engine.weightPrecision", engine.weight_precision, weights or Precision.BF16
            ),
            kv_precision=self._precision("engine.kvPrecision", engine.kv_precision, Precision.BF16),
            max_sequences=sequences,
            step_token_budget=max(budget, sequences),
            memory_utilization=self._memory(engine),
            tokens_per_step=engine.tokens_per_step or 1.0,
        )

    def _count(self, name: str, told: int | None, default: int | None = None) -> int:
        if told is not None:
            self._note(name, str(told), Source.SPEC)
            return told
        value, place = self.words.values.get(name, ("", ""))
        if value.isdigit() and int(value) > 0:
            self._note(name, value, Source.POD_TEMPLATE, place)
            return int(value)
        kind = self.words.type or EngineType.VLLM
        count = default if default is not None else int(DEFAULTS[kind][name])
        self._note(name, str(count), Source.DEFAULT)
        return count

    def _tensor_parallel(self, engine: EngineSpec) -> int:
        shards = self.words.accelerators
        if self.words.type is EngineType.TGI and shards > 0:
            return self._count("engine.tensorParallel", engine.tensor_parallel, shards)
        return self._count("engine.tensorParallel", engine.tensor_parallel, 1)

    def _expert_parallel(self, engine: EngineSpec) -> bool:
        if engine.expert_parallel is not None:
            return engine.expert_parallel
        return self.words.values.get("engine.expertParallel", ("false", ""))[0] != "false"

    def _memory(self, engine: EngineSpec) -> float:
        name = "engine.memoryUtilizationPercent"
        if engine.memory_utilization is not None:
            self._note(name, f"{engine.memory_utilization:.0%}", Source.SPEC)
            return engine.memory_utilization
        value, place = self.words.values.get("engine.memoryUtilization", ("", ""))
        try:
            share = float(value)
        except ValueError:
            share = 0.0
        if 0 < share <= 1:
            self._note(name, f"{share:.0%}", Source.POD_TEMPLATE, place)
            return share
        kind = self.words.type or EngineType.VLLM
        share = DEFAULTS[kind]["engine.memoryUtilization"]
        self._note(name, f"{share:.0%}", Source.DEFAULT)
        return share

    def _precision(self, name: str, told: Precision | None, default: Precision) -> Precision:
        if told is not None:
            self._note(name, told.upper(), Source.SPEC)
            return told
        word, place = self.words.values.get(name, ("", ""))
        precision = precision_of(word)
        if precision is not None:
            self._note(name, precision.upper(), Source.POD_TEMPLATE, f"{place} {word}")
            return precision
        source = Source.CATALOG if name == "engine.weightPrecision" else Source.DEFAULT
        self._note(name, default.upper(), source)
        return default

    def _note(self, name: str, value: str, source: Source, detail: str = "") -> None:
        self.found.append(Found(name, str(value), source, detail))

    def _miss(self, name: str, because: str) -> None:
        self.problem = self.problem or because
        self._note(name, "", Source.UNKNOWN, because)


def _names(nodes: Sequence[NodeAccelerator]) -> tuple[str, ...]:
    return tuple(sorted({node.accelerator.name for node in nodes}))

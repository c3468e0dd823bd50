"""The operator understands each example, and writes nothing that the definition would prune."""

import ast
import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters import conditions, manifest
from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.decimals import decimal
from fleetline.adapters.node_labels import accelerator_of_node
from fleetline.adapters.profiles import SHARES, TIMES, with_profiles
from fleetline.model.hardware import Efficiency
from tests.crd import definitions as crd

H100_NODE = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
CUSTOM_NODE = {"nvidia.com/gpu.product": "Example-NPU-96GB"}
ADAPTERS = crd.ROOT / "operator" / "fleetline" / "adapters"
STATUS_MODULES = ("status.py", "replica_status.py", "conditions.py")
INTERNAL = {"step", "sequence", "prefill"}
"""Names of factors inside the operator; status shows them as Step, Sequence and Prefill."""
STATUS = crd.schema("servingfleets")["properties"]["status"]
DECIMAL = STATUS["properties"]["replica"]["properties"]["loopGain"]
ALLOCATABLE = {"nvidia.com/gpu": "8"}


def test_the_minimal_fleet_is_understood():
    understood = manifest.parse(crd.example("minimal")[0])

    assert str(understood.fleet.objectives[0]) == "TimeToFirstToken p95 <= 0.5 s"
    assert understood.fleet.target.api_version == "apps/v1"
    assert understood.replica.model_name == "llama-3.1-8b"


def test_the_fleet_in_full_says_what_the_defaults_say():
    full = manifest.parse(crd.example("chat")[0]).fleet
    minimal = manifest.parse(crd.example("minimal")[0]).fleet

    assert full.behavior == minimal.behavior
    assert (full.mode, full.queue_drain_s) == (minimal.mode, minimal.queue_drain_s)


def test_the_accelerators_of_the_example_are_added_and_corrected():
    catalog, problems = with_profiles(load_catalog(), crd.example("accelerator"))

    assert problems == ()
    assert catalog.accelerator("example-npu").memory_bytes == 96e9
    assert catalog.price_usd_per_hour("example-npu") == 3.2
    assert catalog.price_usd_per_hour("H100-SXM") == 1.99
    assert catalog.accelerator("H100-SXM") == load_catalog().accelerator("H100-SXM")


def test_every_efficiency_of_the_model_can_be_given_and_is_read():
    spec = crd.schema("acceleratorprofiles")["properties"]["spec"]
    given = spec["properties"]["efficiency"]["properties"]

    read = {**SHARES, **TIMES}
    assert given.keys() == read.keys()
    assert set(read.values()) == {one.name for one in fields(Efficiency)}


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        pytest.param(H100_NODE, "H100-SXM", id="a corrected one"),
        pytest.param(CUSTOM_NODE, "example-npu", id="an added one"),
    ],
)
def test_nodes_are_still_recognised_when_a_profile_corrects_or_adds(labels, name):
    catalog, _ = with_profiles(load_catalog(), crd.example("accelerator"))

    found = accelerator_of_node(catalog, labels, ALLOCATABLE)

    assert found.accelerator.name == name


def test_the_operator_writes_exactly_the_fields_of_the_definition():
    known = {name for _, node in crd.nodes(STATUS) for name in node.get("properties", {})}
    trees = [ast.parse((ADAPTERS / name).read_text("utf-8")) for name in STATUS_MODULES]
    written = {
        key.value
        for tree in trees
        for node in ast.walk(tree)
        for key in keys(node)
        if isinstance(key, ast.Constant)
    }

    assert known - written == set()
    assert written - known <= INTERNAL


def keys(node):
    """Keys of a literal dictionary, or of an assignment to an item of one."""
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.Assign):
        return [target.slice for target in node.targets if isinstance(target, ast.Subscript)]
    return []


def test_the_page_of_fields_explains_each_condition_with_reasons_that_there_are():
    _, page = (crd.CRDS / "README.md").read_text("utf-8").split("## Conditions")
    words = set(re.findall(r"`([A-Z][A-Za-z]+)`", page))
    operator = ADAPTERS.parent
    more = ("policy/decision.py", "control/evidence.py")
    sources = [*ADAPTERS.glob("*.py"), *(operator / path for path in more)]
    said = "\n".join(path.read_text("utf-8") for path in sources)

    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == set(conditions.TYPES)
    assert {word for word in words if f'"{word}"' not in said} == set()


@given(st.floats(min_value=-1e15, max_value=1e15, allow_subnormal=True))
def test_every_number_that_the_operator_writes_is_a_decimal_of_the_definition(value):
    text = str(decimal(value))

    assert re.search(DECIMAL["pattern"], text)
    assert len(text) <= DECIMAL["maxLength"]

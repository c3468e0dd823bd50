"""Does the API server answer, and do its definitions know every field of this version?"""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.manifest import GROUP, VERSION
from fleetline.adapters.snapshot import FLEETS
from fleetline.entrypoints.findings import Finding, failed, ok, warning
from fleetline.errors import ObservationError

CHECK: Final = "definition"
SERVER: Final = "server"
KINDS: Final = ("servingfleets", "acceleratorprofiles")
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EXPECTED: Final = "definition_fields.txt"
APPLY: Final = (
    "kubectl apply --server-side -f crds/, or upgrade the chart with crds.enabled: a field that "
    "the definition does not know is dropped"
)
SHOWN: Final = 4


async def check_server(api: ApiClient) -> Finding:
    """Ask the API server for its version: whoever it lets in may."""
    try:
        told = await api.get("/version")
    except ApiError as error:
        mend = "check the user of the kubeconfig file"
        return failed(SERVER, "kubernetes", str(error), mend)
    except ObservationError as error:
        mend = "check the cluster of the kubeconfig file, and the way to it"
        return failed(SERVER, "kubernetes", str(error), mend)
    return ok(SERVER, "kubernetes", str(told.get("gitVersion") or "it answers"))


async def check_definitions(api: ApiClient) -> list[Finding]:
    """Look at each definition."""
    return [await _check(api, plural) for plural in KINDS]


def expected_fields(plural: str) -> frozenset[str]:
    """Read the fields that this version reads and writes."""
    text = resources.files("fleetline.entrypoints").joinpath(EXPECTED).read_text("utf-8")
    lines = (line.split(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return frozenset(path for kind, path in lines if kind == plural)


def fields_of(definition: Mapping[str, Any]) -> frozenset[str]:
    """Every field of a definition's schema, as `spec.model.name` or `status.conditions[].type`."""
    for version in definition["spec"]["versions"]:
        if version.get("name") == VERSION and version.get("served"):
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            return frozenset(_fields("", schema))
    return frozenset()


def _fields(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    for name, field in (schema.get("properties") or {}).items():
        below = f"{path}{name}"
        yield below
        yield from _fields(f"{below}.", field)
        if isinstance(field.get("items"), Mapping):
            yield from _fields(f"{below}[].", field["items"])


async def _check(api: ApiClient, plural: str) -> Finding:
    subject = f"{plural}.{GROUP}"
    try:
        definition = await api.get(f"{DEFINITIONS}/{subject}")
    except ApiError as error:
        if error.status == 404:
            return failed(CHECK, subject, "it is not installed", APPLY)
        if error.status == 403:
            return await _served(api, plural)
        return failed(CHECK, subject, str(error), "look at the API server")
    except ObservationError as error:
        return failed(CHECK, subject, str(error), "look at the API server")
    return _compared(subject, expected_fields(plural), fields_of(definition))


def _compared(subject: str, wanted: frozenset[str], there: frozenset[str]) -> Finding:
    if not there:
        return failed(CHECK, subject, f"it does not serve {VERSION}", APPLY)
    if missing := wanted - there:
        return failed(CHECK, subject, f"an older one: it lacks {_some(missing)}", APPLY)
    if more := there - wanted:
        return warning(
            CHECK,
            subject,
            f"a newer one: this version does not know {_some(more)}",
            "upgrade the operator to the version of the definition",
        )
    return ok(CHECK, subject, f"{VERSION} with all {len(wanted)} fields")


async def _served(api: ApiClient, plural: str) -> Finding:
    """Without the right to read the definition: is the kind served at all?"""
    subject = f"{plural}.{GROUP}"
    try:
        listed = (await api.get(FLEETS)).get("resources") or []
    except ObservationError:
        listed = []
    if plural not in {one.get("name") for one in listed}:
        return failed(CHECK, subject, f"{VERSION} is not served", APPLY)
    return warning(
        CHECK,
        subject,
        f"{VERSION} is served; its fields cannot be compared without the right to read it",
        "run doctor as a user who may get customresourcedefinitions",
    )


def _some(paths: frozenset[str]) -> str:
    shown = sorted(paths)[:SHOWN]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")

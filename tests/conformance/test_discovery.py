"""What the server says it can do."""

import pytest

from tests.conformance.client import Client, Tool
from tests.conformance.manifests import GROUP


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_health_is_told_in_two_letters(api: Client, path: str) -> None:
    reply = api.get(path)

    assert (reply.code, reply.body) == (200, "ok")


def test_the_version_names_its_parts(api: Client) -> None:
    version = api.get("/version").body

    assert version["major"] == "1"
    assert version["gitVersion"].startswith("v1.")


def test_the_legacy_group_has_one_version(api: Client) -> None:
    assert api.get("/api").body["versions"] == ["v1"]


@pytest.mark.parametrize(
    ("path", "name", "kind", "short"),
    [
        pytest.param("/api/v1", "pods", "Pod", ["po"], id="pods"),
        pytest.param("/api/v1", "services", "Service", ["svc"], id="services"),
        pytest.param("/apis/apps/v1", "deployments", "Deployment", ["deploy"], id="deployments"),
        pytest.param(
            "/apis/autoscaling/v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            ["hpa"],
            id="autoscalers",
        ),
        pytest.param(
            "/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", ["pdb"], id="budgets"
        ),
        pytest.param("/apis/coordination.k8s.io/v1", "leases", "Lease", None, id="leases"),
    ],
)
def test_a_group_lists_its_resources(
    api: Client, path: str, name: str, kind: str, short: list[str] | None
) -> None:
    resources = {entry["name"]: entry for entry in api.get(path).body["resources"]}

    assert resources[name]["kind"] == kind
    assert resources[name].get("shortNames") == short
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= set(
        resources[name]["verbs"]
    )


def test_the_scale_of_a_deployment_says_its_own_kind(api: Client) -> None:
    resources = {entry["name"]: entry for entry in api.get("/apis/apps/v1").body["resources"]}

    scale = resources["deployments/scale"]

    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_a_custom_group_appears_with_its_definition(api: Client, widgets: str) -> None:
    group = api.get(f"/apis/{GROUP}").body
    resources = {e["name"]: e for e in api.get(f"/apis/{GROUP}/v1").body["resources"]}

    assert group["preferredVersion"]["version"] == "v1"
    assert set(resources) == {"widgets", "widgets/status", "widgets/scale"}
    assert resources["widgets"]["shortNames"] == ["wd"]
    assert resources["widgets"]["categories"] == ["all", "toys"]
    assert resources["widgets/scale"]["kind"] == "Scale"


def test_aggregated_discovery_tells_all_in_one_document(api: Client) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    reply = api.get("/apis", accept=accept)

    assert reply.body["kind"] == "APIGroupDiscoveryList"
    groups = {item["metadata"]["name"]: item for item in reply.body["items"]}
    resources = {r["resource"] for r in groups["apps"]["versions"][0]["resources"]}
    assert {"deployments", "replicasets", "statefulsets", "daemonsets"} <= resources


def test_an_unknown_group_is_not_found(api: Client) -> None:
    assert api.get("/apis/nothing.example/v1").code == 404
    assert api.get("/apis/nothing.example/v1/things").code == 404


def test_an_unknown_resource_of_a_known_group_is_not_found(api: Client) -> None:
    reply = api.get("/apis/apps/v1/namespaces/default/nothings")

    assert reply.code == 404


def test_openapi_offers_field_validation_for_patches(api: Client, widgets: str) -> None:
    paths = api.get("/openapi/v3").body["paths"]
    document = api.get(paths[f"apis/{GROUP}/v1"]["serverRelativeURL"]).body

    path = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}"
    operation = document["paths"][path]["patch"]
    names = {parameter["name"] for parameter in operation["parameters"]}
    assert "fieldValidation" in names
    assert "application/strategic-merge-patch+json" not in operation["requestBody"]["content"]


def test_openapi_offers_strategic_merge_for_built_in_kinds(api: Client) -> None:
    document = api.get("/openapi/v3/apis/apps/v1").body

    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    content = document["paths"][path]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" in content


def test_kubectl_explains_a_custom_field(kubectl: Tool, widgets: str) -> None:
    text = kubectl("explain", "widgets.spec.replicas").out

    assert "FIELD: replicas <integer>" in text
    assert "How many." in text


def test_kubectl_explains_a_built_in_field(kubectl: Tool) -> None:
    assert "FIELD: replicas <integer>" in kubectl("explain", "deployment.spec.replicas").out


def test_kubectl_knows_short_names_and_categories(kubectl: Tool, widgets: str) -> None:
    text = kubectl("api-resources", "--categories=toys", "-o", "wide").out

    assert "widgets" in text
    assert "wd" in text
    assert f"{GROUP}/v1" in text

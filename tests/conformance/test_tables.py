"""What `kubectl get` prints, and the tables that it prints from."""

from tests.conformance.client import TABLE, Client, Tool
from tests.conformance.manifests import config_map, deployment, pod, widget


def columns(table: dict[str, list[dict[str, str]]]) -> list[str]:
    return [column["name"] for column in table["columnDefinitions"]]


def test_a_list_can_be_a_table(api: Client, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    api.post(maps, config_map())

    table = api.get(maps, accept=TABLE, params={"fieldSelector": "metadata.name=c"}).body

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["c", 1]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_one_object_can_be_a_table(api: Client, widgets: str) -> None:
    api.post(widgets, widget(replicas=3))

    table = api.get(f"{widgets}/w", accept=TABLE).body

    assert columns(table) == ["Name", "Replicas", "Ready", "Color", "Age"]
    assert [c["priority"] for c in table["columnDefinitions"]] == [0, 0, 0, 1, 0]
    assert table["rows"][0]["cells"][:2] == ["w", 3]


def test_a_column_shows_a_condition(api: Client, widgets: str) -> None:
    api.post(widgets, widget())
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    api.patch(f"{widgets}/w/status", {"status": {"conditions": conditions}})

    table = api.get(f"{widgets}/w", accept=TABLE).body

    assert table["rows"][0]["cells"][2] == "True"


def test_whole_objects_can_come_with_a_table(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    table = api.get(widgets, accept=TABLE, params={"includeObject": "Object"}).body

    assert table["rows"][0]["object"]["kind"] == "Widget"


def test_a_watch_can_be_of_tables(api: Client, widgets: str) -> None:
    api.post(widgets, widget())
    headers = {"Accept": TABLE, "Authorization": f"Bearer {api.token}"}
    params = {"watch": "true", "timeoutSeconds": "1"}

    reply = api._session.get(api.url + widgets, params=params, headers=headers, timeout=30)

    assert '"kind":"Table"' in reply.text.splitlines()[0]


def test_get_prints_custom_columns(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget(replicas=3))

    head, line = kubectl("get", "wd").lines()
    wide, _ = kubectl("get", "wd", "-o", "wide").lines()

    assert head.split() == ["NAME", "REPLICAS", "READY", "AGE"]
    assert line.split()[:2] == ["w", "3"]
    assert wide.split() == ["NAME", "REPLICAS", "READY", "COLOR", "AGE"]


def test_get_prints_pods(api: Client, kubectl: Tool, namespace: str) -> None:
    api.post(f"/api/v1/namespaces/{namespace}/pods", pod())

    head, line = kubectl("get", "pods").lines()
    wide, _ = kubectl("get", "pods", "-o", "wide").lines()

    assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert line.split()[:4] == ["p", "0/1", "Pending", "0"]
    assert "NODE" in wide
    assert "READINESS GATES" in wide


def test_get_prints_deployments(api: Client, kubectl: Tool, namespace: str) -> None:
    api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment(replicas=2))

    head, line = kubectl("get", "deployments").lines()
    wide, _ = kubectl("get", "deployments", "-o", "wide").lines()

    assert head.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert line.split()[:2] == ["d", "0/2"]
    assert wide.split()[-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]


def test_get_prints_services(api: Client, kubectl: Tool, namespace: str) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}
    api.post(f"/api/v1/namespaces/{namespace}/services", body)

    head, line = kubectl("get", "services").lines()

    assert head.split() == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert line.split()[1] == "ClusterIP"
    assert line.split()[3:5] == ["<none>", "80/TCP"]


def test_get_all_prints_the_members_of_the_category(
    api: Client, kubectl: Tool, widgets: str
) -> None:
    api.post(widgets, widget())

    assert "widget.conformance.fleetline.dev/w" in kubectl("get", "all").out


def test_get_says_when_there_is_nothing(kubectl: Tool, widgets: str) -> None:
    assert "No resources found" in kubectl("get", "wd").err


def test_output_formats_agree(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget())

    whole = kubectl("get", "wd", "w", "-o", "json").json()
    field = kubectl("get", "wd", "w", "-o", "jsonpath={.spec.color}").out
    name = kubectl("get", "wd", "-o", "name").out.strip()

    assert whole["spec"]["color"] == field == "red"
    assert name == "widget.conformance.fleetline.dev/w"


def test_get_prints_labels_and_sorts(api: Client, kubectl: Tool, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for name, data in (("one", {"a": "1"}), ("two", {"a": "0"})):
        body = config_map(name, **data)
        body["metadata"]["labels"] = {"test": "yes"}
        api.post(maps, body)

    lines = kubectl(
        "get", "cm", "-l", "test=yes", "-L", "test", "--sort-by=.data.a", "--no-headers"
    ).lines()

    assert [(line.split()[0], line.split()[-1]) for line in lines] == [
        ("two", "yes"), ("one", "yes"),
    ]  # fmt: skip

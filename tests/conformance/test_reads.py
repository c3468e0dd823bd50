"""Lists, selectors, pages and watches."""

import pytest

from tests.conformance.client import Client
from tests.conformance.manifests import config_map, pod, widget


@pytest.fixture
def maps(api: Client, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name, label in (("a", "x"), ("b", "y"), ("c", "z")):
        body = config_map(name)
        body["metadata"]["labels"] = {"kind": label, "test": "yes"}
        api.post(path, body)
    return path


def names(reply: object) -> list[str]:
    return [item["metadata"]["name"] for item in reply.body["items"]]  # type: ignore[attr-defined]


def test_a_list_says_what_it_is(api: Client, maps: str) -> None:
    body = api.get(maps).body

    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert body["metadata"]["resourceVersion"].isdigit()


def test_an_empty_list_is_a_list(api: Client, widgets: str) -> None:
    body = api.get(widgets).body

    assert body["kind"] == "WidgetList"
    assert body["items"] == []


def test_all_namespaces_are_listed_together(api: Client, maps: str, namespace: str) -> None:
    items = api.get("/api/v1/configmaps", params={"labelSelector": "test=yes"}).body["items"]

    found = [i["metadata"]["name"] for i in items if i["metadata"]["namespace"] == namespace]
    assert found == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("kind=x", ["a"], id="equal"),
        pytest.param("kind==x", ["a"], id="equal, written twice"),
        pytest.param("kind!=x,test", ["b", "c"], id="not equal"),
        pytest.param("kind in (x,y)", ["a", "b"], id="one of"),
        pytest.param("kind notin (x,y),test", ["c"], id="none of"),
        pytest.param("kind", ["a", "b", "c"], id="there"),
        pytest.param("!kind,test", [], id="not there"),
        pytest.param("kind in (x,y),kind!=y", ["a"], id="both"),
    ],
)
def test_labels_select(api: Client, maps: str, selector: str, expected: list[str]) -> None:
    assert names(api.get(maps, params={"labelSelector": selector})) == expected


def test_a_selector_that_cannot_be_read_is_refused(api: Client, maps: str) -> None:
    reply = api.get(maps, params={"labelSelector": "a in"})

    assert (reply.code, reply.reason) == (400, "BadRequest")


def test_a_name_can_be_selected_as_a_field(api: Client, maps: str) -> None:
    assert names(api.get(maps, params={"fieldSelector": "metadata.name=b"})) == ["b"]
    assert names(api.get(maps, params={"fieldSelector": "metadata.name!=b,metadata.name!=c"}))[
        :1
    ] == ["a"]


def test_an_unknown_field_cannot_be_selected(api: Client, maps: str) -> None:
    reply = api.get(maps, params={"fieldSelector": "data.a=1"})

    assert reply.code == 400
    assert "is not a known field selector" in reply.message


def test_a_custom_field_can_be_selected(api: Client, widgets: str) -> None:
    api.post(widgets, widget("one"))
    api.post(widgets, widget("two", color="blue"))

    assert names(api.get(widgets, params={"fieldSelector": "spec.color=blue"})) == ["two"]


def test_pods_can_be_selected_by_their_node_and_phase(api: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.post(pods, pod("free"))
    api.post(pods, pod("placed", nodeName="somewhere"))

    by_node = api.get(pods, params={"fieldSelector": "spec.nodeName=somewhere"})
    by_phase = api.get(pods, params={"fieldSelector": "spec.nodeName=,status.phase=Pending"})
    api.delete(f"{pods}/placed", {"gracePeriodSeconds": 0})

    assert names(by_node) == ["placed"]
    assert names(by_phase) == ["free"]


def test_pages_add_up_to_the_list(api: Client, maps: str) -> None:
    selector = {"labelSelector": "test=yes"}
    first = api.get(maps, params={"limit": "2", **selector})
    token = first.body["metadata"]["continue"]
    second = api.get(maps, params={"limit": "2", "continue": token, **selector})

    assert names(first) + names(second) == ["a", "b", "c"]
    assert "continue" not in second.body["metadata"]


def test_pages_show_one_moment(api: Client, widgets: str) -> None:
    for name in ("a", "b", "c"):
        api.post(widgets, widget(name))
    first = api.get(widgets, params={"limit": "1"})
    api.delete(f"{widgets}/b")

    rest = api.get(widgets, params={"continue": first.body["metadata"]["continue"]})

    assert first.body["metadata"]["remainingItemCount"] == 2
    assert names(rest) == ["b", "c"]


def test_a_broken_token_is_refused(api: Client, maps: str) -> None:
    assert api.get(maps, params={"limit": "1", "continue": "nonsense"}).code in (400, 410)


def test_a_version_from_the_future_is_refused(api: Client, maps: str) -> None:
    reply = api.get(
        maps, params={"resourceVersion": "999999999", "resourceVersionMatch": "NotOlderThan"}
    )

    assert reply.code == 504
    assert "Too large resource version" in reply.message


def test_an_old_enough_list_is_answered(api: Client, maps: str) -> None:
    version = api.get(maps).body["metadata"]["resourceVersion"]

    reply = api.get(
        maps, params={"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
    )

    assert reply.code == 200


def test_an_exact_version_shows_the_past(api: Client, widgets: str) -> None:
    api.post(widgets, widget("a"))
    version = api.get(widgets).body["metadata"]["resourceVersion"]

    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}

    assert names(api.get(widgets, params=exact)) == ["a"]


def test_a_match_needs_a_version(api: Client, maps: str) -> None:
    reply = api.get(maps, params={"resourceVersionMatch": "Exact"})

    assert (reply.code, reply.reason) == (422, "Invalid")


def test_a_watch_tells_what_happens_after_a_list(api: Client, widgets: str) -> None:
    version = api.get(widgets).body["metadata"]["resourceVersion"]
    watch = api.watch(widgets, resourceVersion=version)
    api.post(widgets, widget())
    api.patch(f"{widgets}/w", {"spec": {"color": "blue"}})
    api.delete(f"{widgets}/w")

    events = watch.all()

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["spec"]["color"] == "blue"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_tells_what_it_missed(api: Client, widgets: str) -> None:
    version = api.get(widgets).body["metadata"]["resourceVersion"]
    api.post(widgets, widget("one"))
    api.post(widgets, widget("two"))

    watch = api.watch(widgets, seconds=1, resourceVersion=version)

    assert [e["object"]["metadata"]["name"] for e in watch.all()] == ["one", "two"]


def test_a_watch_without_a_version_begins_with_what_is_there(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    events = api.watch(widgets, seconds=1).all()

    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [("ADDED", "w")]


def test_a_watch_that_python_spells_with_a_capital_is_a_watch(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    watch = api.watch(widgets, seconds=1, watch="True")

    assert watch.kinds() == ["ADDED"]


def test_a_watch_ends_in_time(api: Client, widgets: str) -> None:
    version = api.get(widgets).body["metadata"]["resourceVersion"]

    assert api.watch(widgets, seconds=1, resourceVersion=version).all() == []


def test_a_watch_follows_its_selector(api: Client, widgets: str) -> None:
    version = api.get(widgets).body["metadata"]["resourceVersion"]
    watch = api.watch(widgets, resourceVersion=version, labelSelector="on=yes")
    api.post(widgets, widget())
    api.patch(f"{widgets}/w", {"metadata": {"labels": {"on": "yes"}}})
    api.patch(f"{widgets}/w", {"spec": {"color": "blue"}})
    api.patch(f"{widgets}/w", {"metadata": {"labels": {"on": "no"}}})

    assert watch.kinds() == ["ADDED", "MODIFIED", "DELETED"]


def test_a_watch_can_name_one_object(api: Client, widgets: str) -> None:
    version = api.get(widgets).body["metadata"]["resourceVersion"]
    watch = api.watch(
        widgets, seconds=1, resourceVersion=version, fieldSelector="metadata.name=two"
    )
    api.post(widgets, widget("one"))
    api.post(widgets, widget("two"))

    assert [e["object"]["metadata"]["name"] for e in watch.all()] == ["two"]


def test_a_watch_begins_with_all_objects_and_says_when(api: Client, widgets: str) -> None:
    api.post(widgets, widget())

    events = api.watch(
        widgets,
        seconds=1,
        sendInitialEvents="true",
        allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    ).all()

    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    annotations = events[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_initial_events_need_a_match(api: Client, widgets: str) -> None:
    params = {"watch": "true", "sendInitialEvents": "true", "timeoutSeconds": "1"}

    assert api.get(widgets, params=params).code == 422


def test_a_watch_from_too_far_back_is_expired(api: Client, widgets: str) -> None:
    # Of widgets, because the real server's memory of a built-in kind may begin at version 1.
    events = api.watch(widgets, seconds=1, resourceVersion="1").all()

    assert events[0]["type"] == "ERROR"
    assert events[0]["object"]["code"] == 410
    assert events[0]["object"]["reason"] == "Expired"

"""The real kubectl, doing what people do."""

import json

from tests.conformance.client import Client, Tool
from tests.conformance.manifests import GROUP, config_map, deployment, pod, text, widget


def test_versions_are_told(kubectl: Tool) -> None:
    versions = kubectl("version", "-o", "json").json()

    assert versions["serverVersion"]["gitVersion"].startswith("v1.")


def test_bodies_in_protobuf_arrive_whole(kubectl: Tool) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=ä b")
    kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    kubectl(
        "create", "deployment", "web", "--image=registry.example/web:1", "--replicas=0", "--port=80"
    )
    kubectl("create", "service", "clusterip", "svc", "--tcp=80:8080")
    kubectl("create", "serviceaccount", "sa")
    kubectl("create", "poddisruptionbudget", "b", "--selector=a=b", "--min-available=50%")
    kubectl("create", "role", "r", "--verb=get,list", "--resource=pods,deployments.apps/scale")
    kubectl("create", "rolebinding", "rb", "--role=r", "--user=someone")
    kubectl("create", "job", "j", "--image=registry.example/j:1")

    def shown(*arguments: str) -> dict[str, object]:
        found: dict[str, object] = kubectl("get", *arguments, "-o", "json").json()
        return found

    assert shown("cm", "c")["data"] == {"a": "ä b"}
    assert shown("secret", "s")["data"] == {"k": "dg=="}
    web = kubectl("get", "deploy", "web", "-o", "json").json()["spec"]
    assert web["replicas"] == 0
    assert "creationTimestamp" not in web["template"]["metadata"]
    assert web["template"]["spec"]["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP"}
    ]
    port = kubectl("get", "svc", "svc", "-o", "json").json()["spec"]["ports"][0]
    assert (port["port"], port["targetPort"]) == (80, 8080)
    assert shown("pdb", "b")["spec"] == {
        "minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}},
    }  # fmt: skip
    rules = kubectl("get", "role", "r", "-o", "json").json()["rules"]
    assert {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "verbs": ["get", "list"],
    } in rules


def test_a_namespace_is_created_and_deleted(kubectl: Tool, namespace: str) -> None:
    created = kubectl("create", "namespace", f"{namespace}-more").out
    deleted = kubectl("delete", "namespace", f"{namespace}-more", "--timeout=30s").out

    assert created == f"namespace/{namespace}-more created\n"
    assert "deleted" in deleted


def test_scale_changes_a_deployment(kubectl: Tool) -> None:
    kubectl("apply", "-f", "-", stdin=text(deployment(replicas=0)))

    done = kubectl("scale", "deploy/d", "--replicas=2", "--current-replicas=0")

    assert done.out == "deployment.apps/d scaled\n"
    assert kubectl("get", "deploy", "d", "-o", "jsonpath={.spec.replicas}").out == "2"


def test_scale_changes_a_custom_object(kubectl: Tool, widgets: str) -> None:
    kubectl("apply", "-f", "-", stdin=text(widget()))

    kubectl("scale", "wd/w", "--replicas=5")

    assert kubectl("get", "wd", "w", "-o", "jsonpath={.spec.replicas}").out == "5"


def test_wait_sees_a_condition(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget())
    conditions = [{"type": "Ready", "status": "True"}]
    api.patch(f"{widgets}/w/status", {"status": {"conditions": conditions}})

    done = kubectl("wait", "wd/w", "--for=condition=Ready", "--timeout=10s")

    assert done.out == f"widget.{GROUP}/w condition met\n"


def test_wait_sees_a_field_and_a_deletion(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget())

    field = kubectl("wait", "wd/w", "--for=jsonpath={.spec.color}=red", "--timeout=10s")
    api.delete(f"{widgets}/w")
    gone = kubectl("wait", "wd/w", "--for=delete", "--timeout=10s")

    assert "condition met" in field.out
    assert gone.code == 0


def test_wait_gives_up_in_time(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget())

    done = kubectl("wait", "wd/w", "--for=condition=Ready", "--timeout=1s", ok=False)

    assert "timed out waiting for the condition" in done.err


def test_a_custom_definition_is_waited_for(kubectl: Tool, widgets: str) -> None:
    name = f"crd/widgets.{GROUP}"

    assert "condition met" in kubectl("wait", name, "--for=condition=Established").out


def test_patch_label_annotate(kubectl: Tool, widgets: str) -> None:
    kubectl("apply", "-f", "-", stdin=text(widget()))
    patch = json.dumps({"spec": {"color": "blue"}})

    patched = kubectl("patch", "wd", "w", "--type=merge", "-p", patch).out
    again = kubectl("patch", "wd", "w", "--type=merge", "-p", patch).out
    labelled = kubectl("label", "wd", "w", "a=b").out
    annotated = kubectl("annotate", "wd", "w", "c=d").out

    assert patched.endswith("patched\n")
    assert again.endswith("patched (no change)\n")
    assert labelled.endswith("labeled\n")
    assert annotated.endswith("annotated\n")


def test_the_status_is_patched_through_its_subresource(kubectl: Tool, widgets: str) -> None:
    kubectl("apply", "-f", "-", stdin=text(widget()))

    patch = json.dumps({"status": {"phase": "Up"}})
    kubectl("patch", "wd", "w", "--subresource=status", "--type=merge", "-p", patch)

    assert kubectl("get", "wd", "w", "-o", "jsonpath={.status.phase}").out == "Up"


def test_set_image_changes_a_container(kubectl: Tool) -> None:
    kubectl("apply", "-f", "-", stdin=text(deployment(replicas=0)))

    kubectl("set", "image", "deploy/d", "app=registry.example/app:2")

    path = "jsonpath={.spec.template.spec.containers[0].image}"
    assert kubectl("get", "deploy", "d", "-o", path).out == "registry.example/app:2"


def test_a_rollout_without_replicas_is_done(kubectl: Tool) -> None:
    kubectl("apply", "-f", "-", stdin=text(deployment(replicas=0)))

    done = kubectl("rollout", "status", "deploy/d", "--timeout=20s")

    assert 'deployment "d" successfully rolled out' in done.out


def test_describe_shows_an_object_and_its_events(
    api: Client, kubectl: Tool, namespace: str, widgets: str
) -> None:
    created = api.post(widgets, widget()).body
    event = {
        "metadata": {"name": "w.1"},
        "involvedObject": {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Widget",
            "name": "w",
            "namespace": namespace,
            "uid": created["metadata"]["uid"],
        },
        "reason": "Tested",
        "message": "it was told",
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "conformance"},
        "count": 1,
    }
    api.post(f"/api/v1/namespaces/{namespace}/events", event)

    shown = kubectl("describe", "wd", "w").out

    assert "Color:" in shown
    assert "it was told" in shown
    assert "it was told" in kubectl("events", "--for", f"widget.{GROUP}/w").out


def test_describe_shows_a_pod(api: Client, kubectl: Tool, namespace: str) -> None:
    api.post(f"/api/v1/namespaces/{namespace}/pods", pod())

    assert "registry.example/app:1" in kubectl("describe", "pod", "p").out


def test_delete_waits_for_the_end(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget())

    done = kubectl("delete", "wd", "w", "--timeout=10s")

    assert "deleted" in done.out
    assert api.get(f"{widgets}/w").code == 404


def test_delete_takes_a_selector(api: Client, kubectl: Tool, namespace: str) -> None:
    body = config_map()
    body["metadata"]["labels"] = {"go": "yes"}
    api.post(f"/api/v1/namespaces/{namespace}/configmaps", body)

    assert 'configmap "c" deleted' in kubectl("delete", "cm", "-l", "go=yes").out


def test_replace_needs_the_newest(kubectl: Tool) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=1")
    old = kubectl("get", "cm", "c", "-o", "yaml").out
    kubectl("patch", "cm", "c", "-p", '{"data":{"a":"2"}}')

    done = kubectl("replace", "-f", "-", stdin=old, ok=False)

    assert "the object has been modified" in done.err


def test_rights_are_asked_for(kubectl: Tool, namespace: str) -> None:
    user = f"system:serviceaccount:{namespace}:default"

    assert kubectl("auth", "can-i", "list", "pods").out == "yes\n"
    assert kubectl("auth", "can-i", "list", "pods", "--as", user, ok=False).out == "no\n"
    assert user in kubectl("auth", "whoami", "--as", user).out


def test_a_token_is_created(kubectl: Tool) -> None:
    assert kubectl("create", "token", "default").out.count(".") == 2


def test_create_refuses_a_second_time(kubectl: Tool) -> None:
    kubectl("create", "configmap", "c")

    done = kubectl("create", "configmap", "c", ok=False)

    assert 'configmaps "c" already exists' in done.err


def test_watching_with_kubectl_sees_changes(api: Client, kubectl: Tool, widgets: str) -> None:
    api.post(widgets, widget())

    done = kubectl("get", "wd", "-w", "--request-timeout=2s", ok=False)

    assert "w " in done.out

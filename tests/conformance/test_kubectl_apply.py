"""The real kubectl, applying and comparing files."""

from tests.conformance.client import Tool
from tests.conformance.manifests import config_map, deployment, text, widget


def test_apply_creates_then_changes_nothing_then_configures(kubectl: Tool) -> None:
    first = kubectl("apply", "-f", "-", stdin=text(deployment())).out
    second = kubectl("apply", "-f", "-", stdin=text(deployment())).out
    third = kubectl("apply", "-f", "-", stdin=text(deployment(replicas=0))).out

    assert first == "deployment.apps/d created\n"
    assert second == "deployment.apps/d unchanged\n"
    assert third == "deployment.apps/d configured\n"


def test_apply_of_a_custom_object_is_idempotent(kubectl: Tool, widgets: str) -> None:
    first = kubectl("apply", "-f", "-", stdin=text(widget())).out
    second = kubectl("apply", "-f", "-", stdin=text(widget())).out
    third = kubectl("apply", "-f", "-", stdin=text(widget(color="blue"))).out

    assert first.endswith("created\n")
    assert second.endswith("unchanged\n")
    assert third.endswith("configured\n")


def test_apply_removes_what_is_left_out(kubectl: Tool, widgets: str) -> None:
    kubectl("apply", "-f", "-", stdin=text(widget(code="abc")))
    kubectl("apply", "-f", "-", stdin=text(widget()))

    assert "code" not in kubectl("get", "wd", "w", "-o", "json").json()["spec"]


def test_a_typing_error_is_refused(kubectl: Tool, widgets: str) -> None:
    done = kubectl("apply", "-f", "-", stdin=text(widget(replcas=3)), ok=False)

    assert done.code == 1
    assert 'strict decoding error: unknown field "spec.replcas"' in done.err


def test_a_typing_error_in_a_built_in_object_is_refused(kubectl: Tool) -> None:
    body = deployment()
    body["spec"]["replcas"] = 3

    done = kubectl("apply", "-f", "-", stdin=text(body), ok=False)

    assert 'unknown field "spec.replcas"' in done.err


def test_an_invalid_object_is_explained(kubectl: Tool, widgets: str) -> None:
    done = kubectl("apply", "-f", "-", stdin=text(widget(color="green")), ok=False)

    assert 'The Widget "w" is invalid:' in done.err
    assert 'spec.color: Unsupported value: "green"' in done.err


def test_diff_tells_whether_something_would_change(kubectl: Tool, widgets: str) -> None:
    kubectl("apply", "-f", "-", stdin=text(widget()))

    same = kubectl("diff", "-f", "-", stdin=text(widget()), ok=False)
    other = kubectl("diff", "-f", "-", stdin=text(widget(color="blue")), ok=False)

    assert (same.code, same.out) == (0, "")
    assert other.code == 1
    assert "+  color: blue" in other.out


def test_diff_of_a_deployment_is_empty_after_apply(kubectl: Tool) -> None:
    kubectl("apply", "-f", "-", stdin=text(deployment()))

    assert kubectl("diff", "-f", "-", stdin=text(deployment()), ok=False).code == 0


def test_server_side_apply_finds_conflicts(kubectl: Tool, widgets: str) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=text(widget()))
    arguments = ("apply", "--server-side", "--field-manager=other", "-f", "-")

    refused = kubectl(*arguments, stdin=text(widget(color="blue")), ok=False)
    forced = kubectl(*arguments, "--force-conflicts", stdin=text(widget(color="blue")))

    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.color' in refused.err
    assert forced.out.endswith("serverside-applied\n")


def test_client_side_apply_can_become_server_side(kubectl: Tool) -> None:
    kubectl("apply", "-f", "-", stdin=text(deployment(replicas=1)))

    done = kubectl("apply", "--server-side", "-f", "-", stdin=text(deployment(replicas=0)))

    assert done.out == "deployment.apps/d serverside-applied\n"
    assert kubectl("get", "deploy", "d", "-o", "jsonpath={.spec.replicas}").out in ("0", "")


def test_a_dry_run_on_the_server_keeps_nothing(kubectl: Tool) -> None:
    done = kubectl("apply", "--dry-run=server", "-f", "-", stdin=text(config_map()))

    assert done.out == "configmap/c created (server dry run)\n"
    assert kubectl("get", "cm", "c", ok=False).code == 1

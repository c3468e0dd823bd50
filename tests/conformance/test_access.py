"""Who may do what."""

from collections.abc import Iterator

import pytest

from tests.conformance.client import Client, Json
from tests.conformance.conftest import eventually
from tests.conformance.manifests import config_map, deployment

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.fixture
def robot(api: Client, namespace: str) -> Iterator[Client]:
    """A ServiceAccount without any rights."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": "robot"}})
    token = api.post(f"{accounts}/robot/token", {"spec": {}}).body["status"]["token"]
    client = api.as_user(token)
    yield client
    client.close()


def grant(api: Client, namespace: str, *rules: Json) -> None:
    role = {"metadata": {"name": "robot"}, "rules": list(rules)}
    api.post(f"{RBAC}/namespaces/{namespace}/roles", role)
    binding = {
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "robot"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    }
    api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)


def rule(verbs: list[str], group: str, *resources: str, names: tuple[str, ...] = ()) -> Json:
    made: Json = {"verbs": verbs, "apiGroups": [group], "resources": list(resources)}
    return {**made, "resourceNames": list(names)} if names else made


def allowed(reply: object) -> bool:
    return reply.code != 403  # type: ignore[attr-defined,no-any-return]


def test_a_token_that_nobody_issued_is_refused(api: Client) -> None:
    client = api.as_user("not-a-token")

    reply = client.get("/api/v1/namespaces")
    client.close()

    assert (reply.code, reply.reason, reply.message) == (401, "Unauthorized", "Unauthorized")


def test_nobody_may_do_anything_without_rights(robot: Client, namespace: str) -> None:
    reply = robot.get(f"/api/v1/namespaces/{namespace}/configmaps")

    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.message == (
        f'configmaps is forbidden: User "system:serviceaccount:{namespace}:robot" cannot list'
        f' resource "configmaps" in API group "" in the namespace "{namespace}"'
    )


def test_a_refusal_names_the_object(robot: Client, namespace: str) -> None:
    reply = robot.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/d")

    assert reply.message == (
        f'deployments.apps "d" is forbidden: User "system:serviceaccount:{namespace}:robot"'
        f' cannot delete resource "deployments" in API group "apps" in the namespace'
        f' "{namespace}"'
    )


def test_a_refusal_names_the_cluster_scope(robot: Client) -> None:
    reply = robot.get("/api/v1/nodes")

    assert reply.message.endswith(
        'cannot list resource "nodes" in API group "" at the cluster scope'
    )


def test_everybody_may_discover(robot: Client) -> None:
    assert robot.get("/apis").code == 200
    assert robot.get("/api/v1").code == 200
    assert robot.get("/version").code == 200
    assert robot.get("/openapi/v3").code == 200


def test_a_role_allows_its_verbs_alone(api: Client, robot: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    grant(api, namespace, rule(["get", "list"], "", "configmaps"))

    assert allowed(robot.get(path))
    assert allowed(robot.get(f"{path}/c"))
    assert not allowed(robot.post(path, config_map()))
    assert not allowed(robot.get(path, params={"watch": "1", "timeoutSeconds": "1"}))


def test_a_role_holds_in_its_namespace_alone(api: Client, robot: Client, namespace: str) -> None:
    grant(api, namespace, rule(["list"], "", "configmaps"))

    assert not allowed(robot.get("/api/v1/namespaces/default/configmaps"))
    assert not allowed(robot.get("/api/v1/configmaps"))


def test_a_role_may_name_objects(api: Client, robot: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    grant(api, namespace, rule(["get"], "", "configmaps", names=("mine",)))

    assert allowed(robot.get(f"{path}/mine"))
    assert not allowed(robot.get(f"{path}/other"))
    assert not allowed(robot.get(path))


def test_a_subresource_is_granted_apart(api: Client, robot: Client, namespace: str) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.post(deployments, deployment())
    grant(api, namespace, rule(["get", "patch"], "apps", "deployments/scale"))

    assert robot.patch(f"{deployments}/d/scale", {"spec": {"replicas": 2}}).code == 200
    assert not allowed(robot.get(f"{deployments}/d"))
    assert not allowed(robot.patch(f"{deployments}/d", {"spec": {"replicas": 3}}))


def test_a_group_is_granted_apart(api: Client, robot: Client, namespace: str) -> None:
    grant(api, namespace, rule(["list"], "", "deployments"))

    assert not allowed(robot.get(f"/apis/apps/v1/namespaces/{namespace}/deployments"))


def test_a_star_is_everything(api: Client, robot: Client, namespace: str) -> None:
    grant(api, namespace, rule(["*"], "*", "*"))

    assert robot.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map()).code == 201


def test_rights_end_with_the_binding(api: Client, robot: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    grant(api, namespace, rule(["list"], "", "configmaps"))
    before = robot.get(path).code

    api.delete(f"{RBAC}/namespaces/{namespace}/rolebindings/robot")

    assert before == 200
    assert not allowed(robot.get(path))


def test_view_is_collected_from_other_roles(api: Client, robot: Client, namespace: str) -> None:
    binding = {
        "metadata": {"name": "viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    }
    api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)

    assert robot.get(f"/api/v1/namespaces/{namespace}/pods").code == 200
    assert not allowed(robot.get(f"/api/v1/namespaces/{namespace}/secrets"))


def test_a_role_needs_verbs(api: Client, namespace: str) -> None:
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}

    reply = api.post(f"{RBAC}/namespaces/{namespace}/roles", role)

    assert reply.code == 422
    assert "rules[0].verbs: Required value" in reply.message


def test_a_binding_keeps_its_role(api: Client, namespace: str) -> None:
    grant(api, namespace, rule(["list"], "", "pods"))

    path = f"{RBAC}/namespaces/{namespace}/rolebindings/robot"
    reply = api.patch(path, {"roleRef": {"name": "other"}})

    assert reply.code == 422
    assert "roleRef: Invalid value" in reply.message
    assert "field is immutable" in reply.message


def test_one_may_ask_about_oneself(api: Client, robot: Client, namespace: str) -> None:
    grant(api, namespace, rule(["list"], "", "pods"))

    def may(verb: str) -> bool:
        asked = {"namespace": namespace, "verb": verb, "resource": "pods"}
        review = {"spec": {"resourceAttributes": asked}}
        body = robot.post(f"{REVIEWS}/selfsubjectaccessreviews", review).body
        return bool(body["status"]["allowed"])

    assert may("list")
    assert not may("delete")


def test_an_administrator_may_ask_about_others(api: Client, robot: Client, namespace: str) -> None:
    grant(api, namespace, rule(["list"], "", "pods"))
    user = f"system:serviceaccount:{namespace}:robot"
    asked = {"namespace": namespace, "verb": "list", "resource": "pods"}

    review = {"spec": {"user": user, "resourceAttributes": asked}}
    status = api.post(f"{REVIEWS}/subjectaccessreviews", review).body["status"]

    assert status["allowed"] is True
    assert "RBAC: allowed by RoleBinding" in status["reason"]


def test_rules_of_oneself_are_listed(api: Client, robot: Client, namespace: str) -> None:
    grant(api, namespace, rule(["list"], "", "pods"))

    review = {"spec": {"namespace": namespace}}
    status = robot.post(f"{REVIEWS}/selfsubjectrulesreviews", review).body["status"]

    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]


def test_an_administrator_may_act_as_another(api: Client, robot: Client, namespace: str) -> None:
    headers = {"Impersonate-User": f"system:serviceaccount:{namespace}:robot"}

    reply = api.get(f"/api/v1/namespaces/{namespace}/pods", headers=headers)

    assert reply.code == 403
    assert f'User "system:serviceaccount:{namespace}:robot" cannot list' in reply.message


def test_a_robot_may_not_act_as_another(robot: Client) -> None:
    reply = robot.get("/api/v1/namespaces", headers={"Impersonate-User": "admin"})

    assert reply.code == 403
    assert "cannot impersonate" in reply.message


def test_a_token_can_be_reviewed(api: Client, robot: Client, namespace: str) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    good = api.post(path, {"spec": {"token": robot.token}}).body["status"]
    bad = api.post(path, {"spec": {"token": "nonsense"}}).body["status"]

    assert good["authenticated"] is True
    assert good["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert not bad.get("authenticated")


def test_a_token_dies_with_its_account(api: Client, robot: Client, namespace: str) -> None:
    before = robot.get("/version").code

    api.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/robot")

    assert before == 200
    eventually(lambda: robot.get(f"/api/v1/namespaces/{namespace}/pods").code == 401)


def test_an_unknown_resource_is_refused_before_it_is_missed(robot: Client) -> None:
    assert robot.get("/apis/nothing.example/v1/things").code == 403

"""Fields of built-in kinds that an update may not change."""

from sim_cluster.api.errors import Json, cause
from sim_cluster.api.schema.validation import invalid_value


def immutable_errors(group: str, plural: str, obj: Json, old: Json) -> list[Json]:
    """Changes of fields that may not change."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    fixed: tuple[str, ...] = ()
    if group == "apps" and plural in {"deployments", "replicasets", "daemonsets"}:
        fixed = ("selector",)
    elif plural == "jobs":
        fixed = ("selector", "completionMode")
    errors = [
        invalid_value(f"spec.{name}", spec.get(name), "field is immutable")
        for name in fixed
        if spec.get(name) != before.get(name)
    ]
    is_frozen = plural in {"secrets", "configmaps"} and old.get("immutable")
    if is_frozen and obj.get("data") != old.get("data"):
        text = "Forbidden: field is immutable when `immutable` is set"
        errors.append(cause("FieldValueForbidden", "data", text))
    if plural in {"rolebindings", "clusterrolebindings"} and obj["roleRef"] != old["roleRef"]:
        names = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
        shown_ref = {names.get(key, key): value for key, value in sorted(obj["roleRef"].items())}
        errors.append(invalid_value("roleRef", shown_ref, "field is immutable"))
    if plural == "statefulsets":
        errors += _stateful_set_changes(spec, before)
    if plural == "pods":
        errors += _pod_changes(spec, before)
    return errors


_STATEFUL_SET_OPEN = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip


def _stateful_set_changes(spec: Json, before: Json) -> list[Json]:
    fixed = (spec.keys() | before.keys()) - set(_STATEFUL_SET_OPEN)
    if all(spec.get(name) == before.get(name) for name in fixed):
        return []
    names = ", ".join(f"'{name}'" for name in _STATEFUL_SET_OPEN[:-1])
    text = (
        f"Forbidden: updates to statefulset spec for fields other than {names} and"
        " 'minReadySeconds' are forbidden"
    )
    return [cause("FieldValueForbidden", "spec", text)]


_POD_OPEN = (
    "activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates",
    "nodeName",
)  # fmt: skip


def _pod_changes(spec: Json, before: Json) -> list[Json]:
    def fixed(pod: Json) -> Json:
        rest = {key: value for key, value in pod.items() if key not in _POD_OPEN}
        for part in ("containers", "initContainers"):
            rest[part] = [
                {key: value for key, value in container.items() if key != "image"}
                for container in pod.get(part) or ()
            ]
        return rest

    if fixed(spec) == fixed(before):
        return []
    text = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only"
        " additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be"
        " set to 1 if it was previously negative)"
    )
    return [cause("FieldValueForbidden", "spec", text)]

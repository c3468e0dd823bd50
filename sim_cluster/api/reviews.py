"""Questions about access: who am I, may I, may they, is this token good."""

from typing import Any

from sim_cluster.api.authentication import Authenticator, User
from sim_cluster.api.errors import Json, unknown_path
from sim_cluster.api.rbac import Attributes, Authorizer

_USERLESS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})


def user_json(user: User) -> Json:
    """A user as `UserInfo`."""
    info: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _attributes(spec: Json) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(verb=path.get("verb", ""), path=path.get("path", "") or "/")
    asked = spec.get("resourceAttributes") or {}
    plural, _, sub = asked.get("resource", "").partition("/")
    return Attributes(
        verb=asked.get("verb", ""),
        group=asked.get("group", ""),
        plural=plural,
        subresource=asked.get("subresource") or sub,
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
    )


def _access(authorizer: Authorizer, user: User, spec: Json) -> Json:
    why = authorizer.allows(user, _attributes(spec))
    if why is None:
        return {"allowed": False}
    return {"allowed": True, "reason": why} if why else {"allowed": True}


def _rules(authorizer: Authorizer, user: User, namespace: str) -> Json:
    everything: Json = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    grants = [g.rule for g in authorizer.grants(user) if g.namespace in ("", namespace)]
    if user.is_master:
        grants = [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}, *grants]
    resources = [rule for rule in grants if rule.get("resources")]
    paths = [rule for rule in grants if rule.get("nonResourceURLs")]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}


def answer(
    plural: str, review: Json, *, user: User, authenticator: Authenticator, authorizer: Authorizer
) -> Json:
    """A review with its status filled in."""
    spec: dict[str, Any] = review.get("spec") or {}
    asked = User(name=spec.get("user", ""), groups=tuple(spec.get("groups") or ()))
    match plural:
        case "selfsubjectaccessreviews":
            status = _access(authorizer, user, spec)
        case "subjectaccessreviews" | "localsubjectaccessreviews":
            status = _access(authorizer, asked, spec)
        case "selfsubjectrulesreviews":
            status = _rules(authorizer, user, spec.get("namespace", ""))
        case "selfsubjectreviews":
            status = {"userInfo": user_json(user)}
        case "tokenreviews":
            found = authenticator.user_of_token(spec.get("token", ""))
            status = {"authenticated": False, "error": "invalid bearer token"}
            if found is not None:
                status = {"authenticated": True, "user": user_json(found)}
        case _:
            raise unknown_path()
    return {**review, "status": status}


def is_about_oneself(plural: str) -> bool:
    """Whether everybody who is authenticated may ask."""
    return plural in _USERLESS

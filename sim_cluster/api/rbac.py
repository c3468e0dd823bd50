"""Who may do what: Roles, ClusterRoles and their bindings, evaluated as Kubernetes does."""

from collections.abc import Iterator
from dataclasses import dataclass

from sim_cluster.api.authentication import User
from sim_cluster.api.errors import ApiError, Json, forbidden, qualified
from sim_cluster.api.storage import Storage

GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """One access: a verb on a resource, or on a path that is not a resource."""

    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def resource(self) -> str:
        """The resource as rules name it, with its subresource."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule that a user has, in one namespace or ("") everywhere, and through what."""

    namespace: str
    rule: Json
    through: str


def rule_allows(rule: Json, access: Attributes) -> bool:
    """Whether one policy rule covers an access."""
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and access.verb not in verbs:
        return False
    if access.path:
        return any(_path_matches(url, access.path) for url in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if "*" not in groups and access.group not in groups:
        return False
    resources = rule.get("resources") or ()
    wildcard = f"*/{access.subresource}" if access.subresource else "*"
    if not {"*", access.resource, wildcard}.intersection(resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or access.name in names


def _path_matches(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url[:-1]))


def _subject_is(subject: Json, user: User, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return bool(subject.get("name") == user.name)
        case "Group":
            return subject.get("name") in user.groups
        case _:
            where = subject.get("namespace") or namespace
            return user.name == f"system:serviceaccount:{where}:{subject.get('name')}"


class Authorizer:
    """Evaluates RBAC; remembers what each user was granted until a rule or binding changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen: tuple[int, ...] = ()
        self._grants: dict[User | tuple[str, tuple[str, ...]], list[Grant]] = {}

    def allows(self, user: User, access: Attributes) -> str | None:
        """Why an access is allowed; None when it is not."""
        if user.is_master:
            return ""
        for grant in self.grants(user):
            if grant.namespace in ("", access.namespace) and rule_allows(grant.rule, access):
                return f"RBAC: allowed by {grant.through}"
        return None

    def check(self, user: User, access: Attributes) -> None:
        """Raise 403 when an access is not allowed."""
        if self.allows(user, access) is None:
            raise denied(user, access)

    def grants(self, user: User) -> list[Grant]:
        """All rules of a user."""
        state = tuple(self._changes(plural) for plural in _PLURALS)
        if state != self._seen:
            self._seen = state
            self._grants.clear()
        key = (user.name, user.groups)
        if key not in self._grants:
            self._grants[key] = list(self._find(user))
        return self._grants[key]

    def _changes(self, plural: str) -> int:
        changes = self._storage.collection((GROUP, plural)).changes
        return changes[-1].revision if changes else 0

    def _find(self, user: User) -> Iterator[Grant]:
        for plural in ("clusterrolebindings", "rolebindings"):
            for record in self._storage.collection((GROUP, plural)).records():
                binding = record.parsed()
                subjects = binding.get("subjects") or ()
                if not any(_subject_is(subject, user, record.namespace) for subject in subjects):
                    continue
                kind = binding["kind"]
                ref = binding["roleRef"]
                where = f"{record.namespace}/{record.name}" if record.namespace else record.name
                through = f'{kind} "{where}" of {ref["kind"]} "{ref["name"]}"'
                for rule in self._rules(ref, record.namespace):
                    yield Grant(record.namespace, rule, through)

    def _rules(self, ref: Json, namespace: str) -> list[Json]:
        if ref["kind"] == "ClusterRole":
            record = self._storage.collection((GROUP, "clusterroles")).get("", ref["name"])
        else:
            record = self._storage.collection((GROUP, "roles")).get(namespace, ref["name"])
        return (record.parsed().get("rules") or []) if record is not None else []


_PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")


def denied(user: User, access: Attributes) -> ApiError:
    """The refusal of an access, in the words of the real API server."""
    if access.path:
        cause = f'User "{user.name}" cannot {access.verb} path "{access.path}"'
        return ApiError(403, "Forbidden", f"forbidden: {cause}", details={})
    cause = (
        f'User "{user.name}" cannot {access.verb} resource "{access.resource}"'
        f' in API group "{access.group}"'
    )
    if access.namespace:
        cause += f' in the namespace "{access.namespace}"'
    else:
        cause += " at the cluster scope"
    if not access.name:
        message = f"{qualified(access.group, access.plural)} is forbidden: {cause}"
        details = {"group": access.group, "kind": access.plural}
        return ApiError(403, "Forbidden", message, details={k: v for k, v in details.items() if v})
    return forbidden(access.group, access.plural, access.name, cause)

"""From the headers of a request to the user on whose behalf it is answered."""

from dataclasses import replace
from urllib.parse import unquote

from multidict import MultiMapping

from sim_cluster.api.authentication import Authenticator, Impersonation, User
from sim_cluster.api.errors import bad_request
from sim_cluster.api.rbac import Attributes, Authorizer, denied

_EXTRA = "impersonate-extra-"


class AccessControl:
    """Authenticates, and checks that impersonation is allowed."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def user_of(self, headers: MultiMapping[str], request: Attributes) -> User:
        """The acting user of a request for something."""
        user = self._authenticator.authenticate(headers.get("Authorization", ""))
        asked = _impersonation(headers)
        if asked is None:
            return user
        for access in _accesses(asked):
            if self._authorizer.allows(user, access) is None:
                mode = "serviceaccount" if access.plural == "serviceaccounts" else "user-info"
                verb = f"impersonate-on:{mode}:{request.verb}"
                raise denied(user, replace(request, verb=verb))
        return asked.user()


def _impersonation(headers: MultiMapping[str]) -> Impersonation | None:
    name = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    if not name:
        if groups:
            raise bad_request("requested impersonation of groups without impersonating a user")
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for key in headers:
        if key.lower().startswith(_EXTRA):
            extra[unquote(key[len(_EXTRA) :]).lower()] = tuple(headers.getall(key))
    return Impersonation(name, groups, headers.get("Impersonate-Uid", ""), extra)


def _accesses(asked: Impersonation) -> list[Attributes]:
    prefix = "system:serviceaccount:"
    if asked.name.startswith(prefix):
        namespace, _, name = asked.name.removeprefix(prefix).partition(":")
        first = Attributes(
            verb="impersonate", plural="serviceaccounts", namespace=namespace, name=name
        )
    else:
        first = Attributes(verb="impersonate", plural="users", name=asked.name)
    groups = [Attributes(verb="impersonate", plural="groups", name=name) for name in asked.groups]
    return [first, *groups]

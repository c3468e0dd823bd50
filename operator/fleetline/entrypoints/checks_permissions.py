"""May the operator do what it has to? Asked of the API server, one access review a verb."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.manifest import GROUP, PLURAL
from fleetline.entrypoints.findings import Finding, failed, ok, warning
from fleetline.errors import ObservationError

CHECK: Final = "permission"
REVIEWS: Final = "/apis/authorization.k8s.io/v1"
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
GRANT: Final = "grant it in the operator's role, as charts/fleetline/templates/rbac.yaml does"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One resource that the operator uses."""

    group: str
    resource: str
    """Plural, with `/subresource` if it is one."""
    verbs: tuple[str, ...]
    is_cluster_wide: bool = False
    loss: str = ""
    """What is lost without it; empty if nothing works."""


def _need(resource: str, verbs: str, loss: str = "", *, is_cluster_wide: bool = False) -> Need:
    """Read `resource.group` and verbs with blanks between them."""
    plural, _, group = resource.partition(".")
    return Need(
        group=group,
        resource=plural,
        verbs=tuple(verbs.split()),
        is_cluster_wide=is_cluster_wide,
        loss=loss,
    )


NEEDS: Final = (
    _need(f"{PLURAL}.{GROUP}", "get list watch"),
    _need(f"{PLURAL}/status.{GROUP}", "patch"),
    _need("deployments.apps", "list"),
    _need("statefulsets.apps", "list"),
    _need("deployments/scale.apps", "get patch", "fleets of Deployments are not scaled"),
    _need("statefulsets/scale.apps", "get patch", "fleets of StatefulSets are not scaled"),
    _need("pods", "list watch", "readiness, start-up times and series of pods are not known"),
    _need(
        "nodes",
        "list",
        "spec.accelerator.name has to be set in every fleet",
        is_cluster_wide=True,
    ),
    _need(
        f"acceleratorprofiles.{GROUP}",
        "list",
        "AcceleratorProfiles have no effect",
        is_cluster_wide=True,
    ),
    _need("horizontalpodautoscalers.autoscaling", "list", "a conflict with an HPA is not seen"),
    _need("scaledobjects.keda.sh", "list", "a conflict with KEDA is not seen"),
    _need("events.events.k8s.io", "create", "no events are written"),
)
"""What one replica of the operator uses; several use a Lease too, in a Role of its own."""


class AccessReviews:
    """Asks the API server what an account may do: one's own, or that of `user`."""

    def __init__(self, api: ApiClient, user: str | None = None) -> None:
        """Ask about `user`, or about whoever the kubeconfig says."""
        self._api = api
        self._user = user

    async def missing(self, need: Need, *, namespace: str = "", name: str = "") -> tuple[str, ...]:
        """Verbs that are not allowed; ObservationError if one may not even ask."""
        allowed = await asyncio.gather(
            *(self._allows(need, verb, namespace, name) for verb in need.verbs)
        )
        return tuple(
            verb for verb, is_allowed in zip(need.verbs, allowed, strict=True) if not is_allowed
        )

    async def _allows(self, need: Need, verb: str, namespace: str, name: str) -> bool:
        resource, _, subresource = need.resource.partition("/")
        asked = {
            "group": need.group,
            "resource": resource,
            "subresource": subresource,
            "verb": verb,
            "namespace": namespace,
            "name": name,
        }
        spec: dict[str, Any] = {
            "resourceAttributes": {key: value for key, value in asked.items() if value}
        }
        kind = "SelfSubjectAccessReview"
        if self._user is not None:
            kind = "SubjectAccessReview"
            spec |= {"user": self._user, "groups": groups_of(self._user)}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        answer = await self._api.post(f"{REVIEWS}/{kind.lower()}s", body)
        return bool((answer.get("status") or {}).get("allowed"))


def groups_of(user: str) -> list[str]:
    """Groups that the API server puts a user in by itself."""
    groups = ["system:authenticated"]
    if user.startswith(SERVICE_ACCOUNT):
        namespace = user.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return groups


async def check_permissions(reviews: AccessReviews, namespaces: Sequence[str]) -> list[Finding]:
    """Ask for everything, in each namespace that is served or in all."""
    places = tuple(namespaces) or ("",)
    return list(
        await asyncio.gather(
            *(
                _check(reviews, need, place)
                for need in NEEDS
                for place in (("",) if need.is_cluster_wide else places)
            )
        )
    )


async def _check(reviews: AccessReviews, need: Need, namespace: str) -> Finding:
    place = "" if need.is_cluster_wide else f" in {namespace or 'all namespaces'}"
    subject = f"{need.resource}{f'.{need.group}' if need.group else ''}{place}"
    try:
        missing = await reviews.missing(need, namespace=namespace)
    except ObservationError as error:
        return warning(CHECK, subject, str(error), "run doctor as a user who may create reviews")
    if not missing:
        return ok(CHECK, subject, ", ".join(need.verbs))
    says = f"may not {', '.join(missing)}"
    if not need.loss:
        return failed(CHECK, subject, says, GRANT)
    return warning(CHECK, subject, f"{says}: {need.loss}", GRANT)

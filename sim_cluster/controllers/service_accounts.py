"""Every namespace has a ServiceAccount `default` and the cluster's certificate in a ConfigMap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_cluster.api_client import ApiError, Object
from sim_cluster.controllers.work_queue import WorkQueue
from sim_cluster.informer import key_of
from sim_cluster.pods import is_terminating
from sim_cluster.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from sim_cluster.controllers.view import View
    from sim_cluster.resources import Resource

ROOT_AUTHORITY = "kube-root-ca.crt"


class ServiceAccounts:
    """Creates both where they are missing, also after somebody has deleted them."""

    name = "serviceaccount"

    def __init__(self, view: View, *, authority_pem: str | None) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._view = view
        self._authority_pem = authority_pem
        view.informer(NAMESPACES).on_change(self._namespace_changed)
        view.informer(SERVICE_ACCOUNTS).on_change(self._content_changed)
        view.informer(CONFIG_MAPS).on_change(self._content_changed)

    async def reconcile(self, key: str) -> None:
        """Complete one namespace."""
        namespace = self._view.get(NAMESPACES, ("", key))
        if namespace is None or is_terminating(namespace):
            return
        await self._ensure(SERVICE_ACCOUNTS, key, "default", {})
        if self._authority_pem is not None:
            await self._ensure(
                CONFIG_MAPS, key, ROOT_AUTHORITY, {"data": {"ca.crt": self._authority_pem}}
            )

    async def _ensure(self, resource: Resource, namespace: str, name: str, content: Object) -> None:
        if self._view.get(resource, (namespace, name)) is not None:
            return
        try:
            metadata = {"name": name, "namespace": namespace}
            await self._view.create(resource, {"metadata": metadata, **content})
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def _namespace_changed(self, _before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.queue.add(after["metadata"]["name"])

    def _content_changed(self, before: Object | None, after: Object | None) -> None:
        if (
            after is None
            and before is not None
            and key_of(before)[1] in {"default", ROOT_AUTHORITY}
        ):
            self.queue.add(key_of(before)[0])

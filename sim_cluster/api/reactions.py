"""What the server does by itself after a write: serve CRDs, fill roles, give accounts."""

from typing import Any

from sim_cluster.api import custom_resources, deleting
from sim_cluster.api.bootstrap import Bootstrap
from sim_cluster.api.errors import Json
from sim_cluster.api.rbac import GROUP
from sim_cluster.api.resources import Resource
from sim_cluster.api.selectors import matches_labels
from sim_cluster.api.writing import Writer

CRD_KEY = ("apiextensions.k8s.io", "customresourcedefinitions")


class Reactions:
    """Listens to all writes."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._bootstrap = Bootstrap(writer)
        writer.listeners.append(self.react)

    def react(self, resource: Resource, obj: Json) -> None:
        """Do what follows from one write."""
        if resource.custom is not None:
            self._finish_crd(resource, obj)
            return
        match resource.plural:
            case "customresourcedefinitions":
                self._serve(obj)
            case "namespaces":
                self._give_account(obj)
            case "clusterroles":
                self._aggregate()

    def _exists(self, key: tuple[str, str], namespace: str, name: str) -> bool:
        return self._writer.state.storage.collection(key).get(namespace, name) is not None

    def _give_account(self, namespace: Json) -> None:
        name = namespace["metadata"]["name"]
        if namespace["metadata"].get("deletionTimestamp") or self._exists(
            ("", "serviceaccounts"), name, "default"
        ):
            return
        if self._exists(("", "namespaces"), "", name):
            account: Json = {"metadata": {"name": "default", "namespace": name}}
            self._bootstrap.create("", "v1", "serviceaccounts", account)

    def _serve(self, crd: Json) -> None:
        registry = self._writer.state.registry
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        if not self._exists(CRD_KEY, "", crd["metadata"]["name"]):
            registry.remove(group, names["plural"])
            return
        if crd["metadata"].get("deletionTimestamp"):
            if deleting.sweep_custom_objects(self._writer, crd):
                self._drop_crd(crd["metadata"]["name"])
            return
        registry.remove(group, names["plural"])
        for resource in custom_resources.resources_of(crd):
            registry.add(resource)

    def _finish_crd(self, resource: Resource, _obj: Json) -> None:
        if len(self._writer.state.storage.collection(resource.storage_key)):
            return
        name = f"{resource.plural}.{resource.group}"
        record = self._writer.state.storage.collection(CRD_KEY).get("", name)
        if record is not None and b'"deletionTimestamp"' in record.body:
            self._drop_crd(name)

    def _drop_crd(self, name: str) -> None:
        state = self._writer.state
        record = state.storage.collection(CRD_KEY).get("", name)
        crds = state.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        if record is None or crds is None:
            return
        obj = record.parsed()
        rest = [f for f in obj["metadata"].get("finalizers") or () if f != custom_resources.CLEANUP]
        if rest:
            return
        obj["metadata"].pop("finalizers", None)
        state.delete(crds, obj)
        state.registry.remove(obj["spec"]["group"], obj["spec"]["names"]["plural"])

    def _aggregate(self) -> None:
        """Fill the rules of roles that collect those of others."""
        state = self._writer.state
        resource = state.registry.find(GROUP, "v1", "clusterroles")
        collection = state.storage.collection((GROUP, "clusterroles"))
        records = collection.records()
        for record in records:
            role = record.parsed()
            selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
            if not selectors or resource is None:
                continue
            rules: list[Any] = []
            for other in records:
                if other.name != record.name and any(
                    matches_labels(selector, other.labels) for selector in selectors
                ):
                    rules += [r for r in other.parsed().get("rules") or () if r not in rules]
            if rules != role.get("rules"):
                role["rules"] = rules
                state.write(resource, role, "MODIFIED")
                self._aggregate()
                return

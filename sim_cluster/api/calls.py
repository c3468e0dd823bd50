"""One request for a resource, understood: who, what, where, and with which options."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim_cluster.api.authentication import User
from sim_cluster.api.errors import Json, bad_request
from sim_cluster.api.resources import Resource


@dataclass(slots=True, kw_only=True)
class Call:
    """A request for a resource."""

    user: User
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)
    options: Json = field(default_factory=dict)
    """DeleteOptions sent as a body."""

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing may be written."""
        asked = self.query.get("dryRun", "")
        sent = self.options.get("dryRun") or []
        if asked not in ("", "All") or any(value != "All" for value in sent):
            raise bad_request(
                f'invalid dryRun: Unsupported value: "{asked}": supported values: "All"'
            )
        return bool(asked or sent)

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        asked = self.query.get("fieldValidation", "") or "Warn"
        if asked not in {"Strict", "Warn", "Ignore"}:
            raise bad_request(
                'PatchOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value:'
                f' "{asked}": supported values: "Ignore", "Strict", "Warn"'
            )
        return asked

    @property
    def manager(self) -> str:
        """The field manager: as asked for, or the first word of the user agent."""
        asked = self.query.get("fieldManager", "")
        return (asked or self.user_agent.partition("/")[0] or "unknown")[:128]

    def flag(self, name: str) -> bool:
        """A boolean query parameter, as leniently as Go reads it."""
        return self.query.get(name, "").lower() in {"true", "1", "t"}

"""What the server itself writes into every object: names, identity, time, generation."""

import math
import random
import re
import time
import uuid
from functools import lru_cache

from sim_cluster.api.calls import Call
from sim_cluster.api.errors import Json, bad_request, cause, invalid
from sim_cluster.api.resources import Resource

_CHANCE = random.Random()  # noqa: S311 - spreads in time or names, no secret
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_LABEL_KEY = re.compile(r"^([a-z0-9A-Z]([-a-z0-9A-Z_.]*[a-z0-9A-Z])?)$")
_LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LABEL_NAMED = frozenset({"namespaces", "services"})
_PATH_NAMED = frozenset({"clusterroles", "clusterrolebindings", "roles", "rolebindings"})


def now_text(offset_s: float = 0.0) -> str:
    """The current time to the second, as the API writes it."""
    return _text_of(math.floor(time.time() + offset_s))


@lru_cache(maxsize=64)
def _text_of(second: int) -> str:
    """A second of Unix time as the API writes it; thousands of writes share one."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def generated_name(prefix: str) -> str:
    """A name with a random suffix of five letters, cut to 63 characters."""
    suffix = "".join(_CHANCE.choices(_SUFFIX_LETTERS, k=5))
    return prefix[:58] + suffix


def new_uid() -> str:
    """A random identity; no secret, so the operating system is not asked for each."""
    return str(uuid.UUID(int=_CHANCE.getrandbits(128), version=4))


def name_errors(resource: Resource, name: str) -> list[Json]:
    """What is wrong with a name."""
    if resource.plural in _PATH_NAMED and resource.custom is None:
        if name in (".", "..") or "/" in name or "%" in name:
            text = f"Invalid value: \"{name}\": may not contain '/'"
            return [cause("FieldValueInvalid", "metadata.name", text)]
        return []
    is_label = resource.plural in _LABEL_NAMED and resource.custom is None
    pattern, rule, most = (
        (_LABEL, LABEL_RULE, 63) if is_label else (_SUBDOMAIN, _SUBDOMAIN_RULE, 253)
    )
    errors = []
    if len(name) > most:
        text = f'Invalid value: "{name}": must be no more than {most} characters'
        errors.append(cause("FieldValueInvalid", "metadata.name", text))
    if not pattern.match(name):
        text = f'Invalid value: "{name}": {rule}'
        errors.append(cause("FieldValueInvalid", "metadata.name", text))
    return errors


def label_errors(labels: object, field: str) -> list[Json]:
    """What is wrong with a set of labels."""
    errors: list[Json] = []
    for key, value in labels.items() if isinstance(labels, dict) else ():
        name = key.rpartition("/")[2]
        if not _LABEL_KEY.match(name) or len(name) > 63:
            text = (
                f"Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-',"
                " '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',"
                "  or 'my.name',  or '123-abc', regex used for validation is"
                " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            )
            errors.append(cause("FieldValueInvalid", field, text))
        if len(str(value)) > 63:
            text = f'Invalid value: "{value}": must be no more than 63 bytes'
            errors.append(cause("FieldValueInvalid", field, text))
        elif not _LABEL_VALUE.match(str(value)):
            text = f'Invalid value: "{value}": {_VALUE_RULE}'
            errors.append(cause("FieldValueInvalid", field, text))
    return errors


def metadata_errors(resource: Resource, obj: Json) -> list[Json]:
    """What is wrong with the metadata of a new object."""
    metadata = obj["metadata"]
    errors = name_errors(resource, metadata.get("name", ""))
    return errors + label_errors(metadata.get("labels"), "metadata.labels")


def check_type(call: Call, obj: object) -> Json:
    """The object that was sent, when it is of the kind and version of its URL."""
    if not isinstance(obj, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    kind, version = obj.get("kind"), obj.get("apiVersion")
    resource = call.resource
    if kind is None or version is None:
        if resource.custom is not None:
            raise bad_request(
                "Object 'Kind' is missing in request body"
                if kind is None
                else "Object 'apiVersion' is missing"
            )
        obj.setdefault("kind", resource.kind)
        obj.setdefault("apiVersion", resource.group_version)
    elif version != resource.group_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({resource.group_version})"
        )
    elif kind != resource.kind and resource.custom is not None:
        name = str((obj.get("metadata") or {}).get("name", ""))
        text = f'Invalid value: "{kind}": must be {resource.kind}'
        error = cause("FieldValueInvalid", "kind", text)
        raise invalid(resource.group, str(kind), name, [error])
    elif kind != resource.kind:
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" (expected "{resource.kind}")'
        )
    return obj


def check_metadata(call: Call, obj: Json) -> Json:
    """The metadata of an object that was sent, with the namespace of its URL."""
    metadata = obj.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    if call.resource.is_namespaced:
        sent = metadata.get("namespace") or call.namespace
        if sent != call.namespace:
            raise bad_request(
                f"the namespace of the provided object does not match the namespace sent on the"
                f" request ({sent} != {call.namespace})"
            )
        metadata["namespace"] = call.namespace
    else:
        metadata.pop("namespace", None)
    return metadata


def prepare_new(call: Call, obj: Json) -> Json:
    """Give a new object its name and identity."""
    metadata = check_metadata(call, obj)
    resource = call.resource
    if not metadata.get("name"):
        prefix = metadata.get("generateName")
        if not prefix:
            text = "Required value: name or generateName is required"
            missing = cause("FieldValueRequired", "metadata.name", text)
            raise invalid(resource.group, resource.kind, "", [missing])
        metadata["name"] = generated_name(prefix)
    for field in (
        "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid",
        "generation", "managedFields",
    ):  # fmt: skip
        metadata.pop(field, None)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = now_text()
    if resource.has_generation:
        metadata["generation"] = 1
    errors = metadata_errors(resource, obj)
    if errors:
        raise invalid(resource.group, resource.kind, metadata["name"], errors)
    return metadata


_KEPT = (
    "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
    "generateName", "namespace", "name",
)  # fmt: skip


def keep_identity(obj: Json, old: Json) -> None:
    """Put back what an update may not change."""
    metadata, before = obj["metadata"], old["metadata"]
    for field in _KEPT:
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)


def content(obj: Json) -> Json:
    """What generation counts: everything but metadata and status."""
    return {k: v for k, v in obj.items() if k not in {"metadata", "status"}}

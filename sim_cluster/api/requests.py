"""Requests for resources, dispatched to what answers them."""

from dataclasses import dataclass

import orjson
from aiohttp import web

from sim_cluster.api import bodies, deleting, patching, reviews, subresources, tables
from sim_cluster.api.authentication import Authenticator
from sim_cluster.api.calls import Call
from sim_cluster.api.errors import Json, method_not_allowed, not_implemented, unsupported_media_type
from sim_cluster.api.rbac import Authorizer
from sim_cluster.api.reading import Reader, list_body, selector_of
from sim_cluster.api.writing import Writer

_REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
_UNSUPPORTED = frozenset({"log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers",
                          "resize"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    code: int
    body: bytes


@dataclass(slots=True)
class Dispatcher:
    """Answers every request for a resource, except watches."""

    reader: Reader
    writer: Writer
    authenticator: Authenticator
    authorizer: Authorizer

    def answer(self, call: Call, verb: str, request: web.BaseRequest, body: bytes) -> Answer:
        """The answer to one request."""
        if call.resource.group in _REVIEWS:
            return self._review(call, verb, request, body)
        if call.subresource:
            return self._subresource(call, verb, request, body)
        if verb not in call.resource.verbs:
            raise method_not_allowed()
        if verb in {"get", "list"}:
            return self._read(call, verb, request)
        if verb == "delete":
            return Answer(200, orjson.dumps(deleting.delete(call, self.writer)))
        if verb == "deletecollection":
            selector = selector_of(call, self.writer.state)
            done = deleting.delete_collection(call, self.writer, selector)
            return Answer(200, orjson.dumps(done))
        return self._write(call, verb, request, body)

    def _read(self, call: Call, verb: str, request: web.BaseRequest) -> Answer:
        if verb == "list":
            return self._list(call, request)
        record = self.writer.state.record(call)
        if tables.wants_table(request.headers.get("Accept", "")):
            return self._shown(call, request, record.parsed())
        return Answer(200, self.writer.state.rendering(call.resource)(record))

    def _write(self, call: Call, verb: str, request: web.BaseRequest, body: bytes) -> Answer:
        """Create, replace or patch an object or its status."""
        if verb == "patch":
            return self._made(call, request, self._patch(call, request, body))
        obj, duplicates = bodies.decode(request.headers.get("Content-Type", ""), body)
        write = self.writer.create if verb == "create" else self.writer.replace
        return self._made(call, request, write(call, obj, duplicates))

    def _patch(self, call: Call, request: web.BaseRequest, body: bytes) -> tuple[int, Json]:
        kind = bodies.media_type(request.headers.get("Content-Type", ""))
        if kind not in patching.FORMATS:
            raise unsupported_media_type(kind, patching.FORMATS)
        return patching.patch(call, self.writer, kind, body)

    def _made(self, call: Call, request: web.BaseRequest, made: tuple[int, Json]) -> Answer:
        code, obj = made
        if tables.wants_table(request.headers.get("Accept", "")):
            return Answer(code, self._shown(call, request, obj).body)
        return Answer(code, orjson.dumps(obj))

    def _shown(self, call: Call, request: web.BaseRequest, obj: Json) -> Answer:
        obj = self.writer.state.to_served(call.resource, obj)
        include = request.query.get("includeObject", "Metadata")
        version = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        made = tables.table(call.resource, [obj], metadata=version, include=include)
        return Answer(200, orjson.dumps(made))

    def _list(self, call: Call, request: web.BaseRequest) -> Answer:
        page = self.reader.page(call)
        state, resource = self.writer.state, call.resource
        if not tables.wants_table(request.headers.get("Accept", "")):
            render = state.rendering(resource)
            body = list_body(call, page, [render(record) for record in page.records])
            return Answer(200, body)
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.token:
            metadata["continue"] = page.token
            if page.remaining is not None:
                metadata["remainingItemCount"] = page.remaining
        objects = [state.current(resource, record) for record in page.records]
        include = request.query.get("includeObject", "Metadata")
        made = tables.table(resource, objects, metadata=metadata, include=include)
        return Answer(200, orjson.dumps(made))

    def _review(self, call: Call, verb: str, request: web.BaseRequest, body: bytes) -> Answer:
        if verb != "create":
            raise method_not_allowed()
        review, _ = bodies.decode(request.headers.get("Content-Type", ""), body)
        resource = call.resource
        review = {"kind": resource.kind, "apiVersion": resource.group_version, **review}
        done = reviews.answer(
            resource.plural,
            review,
            user=call.user,
            authenticator=self.authenticator,
            authorizer=self.authorizer,
        )
        return Answer(201, orjson.dumps(done))

    def _subresource(self, call: Call, verb: str, request: web.BaseRequest, body: bytes) -> Answer:
        sub = call.subresource
        if sub in _UNSUPPORTED:
            raise not_implemented(f"{call.resource.plural}/{sub}")
        if verb not in call.resource.subresources[sub].verbs:
            raise method_not_allowed()
        if sub == "scale":
            return self._scale(call, verb, request, body)
        if verb == "get":
            return self._read(call, verb, request)
        if sub == "status" or verb == "patch":
            return self._write(call, verb, request, body)
        obj, _ = bodies.decode(request.headers.get("Content-Type", ""), body)
        done = self._act(call, obj)
        return Answer(200 if verb == "update" else 201, orjson.dumps(done))

    def _act(self, call: Call, obj: Json) -> Json:
        match call.subresource:
            case "finalize":
                return subresources.finalize(call, self.writer, obj)
            case "binding":
                return subresources.bind(call, self.writer, obj)
            case "eviction":
                return subresources.evict(call, self.writer, obj)
            case "token":
                return subresources.request_token(call, self.writer, self.authenticator, obj)
        raise not_implemented(f"{call.resource.plural}/{call.subresource}")

    def _scale(self, call: Call, verb: str, request: web.BaseRequest, body: bytes) -> Answer:
        content_type = request.headers.get("Content-Type", "")
        record = self.writer.state.record(call)
        if verb == "get":
            obj = self.writer.state.current(call.resource, record)
            return Answer(200, orjson.dumps(subresources.read_scale(call, obj)))
        if verb == "patch":
            kind = bodies.media_type(content_type)
            if kind not in patching.FORMATS:
                raise unsupported_media_type(kind, patching.FORMATS)
            done = subresources.patch_scale(call, self.writer, kind, body)
        else:
            obj, _ = bodies.decode(content_type, body)
            done = subresources.write_scale(call, self.writer, obj, record)
        return Answer(200, orjson.dumps(done))

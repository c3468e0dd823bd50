"""
The server: one asyncio process that listens on loopback.

    async with MemoryApi() as api:
        api.write_kubeconfig(path)

Each request passes faults, authentication, authorization and then the resource that it names.
"""

import asyncio
import base64
import logging
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson
import yaml
from aiohttp import web

from sim_cluster.api import bodies, documents, routes
from sim_cluster.api.access import AccessControl
from sim_cluster.api.authentication import Authenticator, User
from sim_cluster.api.bootstrap import Bootstrap
from sim_cluster.api.calls import Call
from sim_cluster.api.counts import RequestCounts
from sim_cluster.api.errors import ApiError, Json, method_not_allowed, unknown_path
from sim_cluster.api.faults import Fault, Faults
from sim_cluster.api.rbac import Attributes, Authorizer
from sim_cluster.api.reactions import Reactions
from sim_cluster.api.reading import Reader
from sim_cluster.api.requests import Dispatcher
from sim_cluster.api.state import State
from sim_cluster.api.tls import Certificates, issue
from sim_cluster.api.watching import Watches
from sim_cluster.api.writing import Writer

_LOG = logging.getLogger(__name__)
_JSON = "application/json"
_HEALTH = frozenset({"/healthz", "/readyz", "/livez"})


class MemoryApi:
    """A Kubernetes API server in memory."""

    def __init__(self, port: int = 0, *, host: str = "127.0.0.1", is_secure: bool = True) -> None:
        self._host, self._port = host, port
        self._certificates: Certificates | None = issue() if is_secure else None
        self.state = State()
        self._writer = Writer(self.state)
        self._reader = Reader(self.state)
        self.authenticator = Authenticator(self.state.storage)
        self._authorizer = Authorizer(self.state.storage)
        self._access = AccessControl(self.authenticator, self._authorizer)
        self._dispatcher = Dispatcher(
            self._reader, self._writer, self.authenticator, self._authorizer
        )
        self.request_counts = RequestCounts()
        self.faults = Faults()
        self._watches = Watches(self._reader, self.faults)
        self.faults.connect(self._watches.drop)
        self._runner: web.ServerRunner | None = None
        self._reactions = Reactions(self._writer)
        Bootstrap(self._writer).all()

    @property
    def url(self) -> str:
        """Where clients find the server."""
        scheme = "https" if self._certificates else "http"
        return f"{scheme}://{self._host}:{self._port}"

    @property
    def ca_pem(self) -> str:
        """The authority that clients must trust; empty without TLS."""
        return self._certificates.ca_pem if self._certificates else ""

    @property
    def admin_token(self) -> str:
        """The bearer token of a user who may do everything."""
        return self.authenticator.admin_token

    def add_user(self, name: str, *, groups: tuple[str, ...] = ()) -> str:
        """A bearer token for a new user, who may do what RBAC says."""
        return self.authenticator.add_user(name, groups)

    def kubeconfig(self, token: str | None = None) -> Json:
        """A kubeconfig for a token (of the admin, when none is given)."""
        cluster: Json = {"server": self.url}
        if self.ca_pem:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_pem.encode()).decode()
        context = {"cluster": "fleetline-sim", "user": "user", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fleetline-sim", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token or self.admin_token}}],
            "contexts": [{"name": "fleetline-sim", "context": context}],
            "current-context": "fleetline-sim",
        }

    def write_kubeconfig(self, path: Path, token: str | None = None) -> Path:
        """Write a kubeconfig that only its owner may read."""
        path = Path(path)
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(self.kubeconfig(token)))
        return path

    async def __aenter__(self) -> Self:
        """Listen."""
        server = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        context = self._certificates.server_context() if self._certificates else None
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self._host, self._port))
        self._port = listener.getsockname()[1]
        await web.SockSite(self._runner, listener, ssl_context=context, backlog=1024).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening; open watches end."""
        self._watches.drop("*")
        await asyncio.sleep(0)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        warnings: list[str] = []
        try:
            return await self._answer(request, warnings)
        except ApiError as error:
            return _failure(error, warnings)
        except Exception as error:  # noqa: BLE001 - told to the client and logged
            _LOG.exception("%s %s", request.method, request.path_qs)
            message = f"Internal error occurred: {type(error).__name__}: {error}"
            return _failure(ApiError(500, "InternalError", message), warnings)

    async def _answer(self, request: web.BaseRequest, warnings: list[str]) -> web.StreamResponse:
        path = request.path
        is_watch = request.query.get("watch", "").lower() in {"1", "true", "t"}
        route = routes.parse(request.method, path, is_watch=is_watch)
        if route is None:
            attributes = Attributes(verb=request.method.lower(), path=path.rstrip("/") or "/")
            user = self._access.user_of(request.headers, attributes)
            return await self._answer_path(request, user)
        access = _attributes(route)
        user = self._access.user_of(request.headers, access)
        resource = self.state.registry.find(route.group, route.version, route.plural)
        agent = request.headers.get("User-Agent", "")
        name = f"{route.plural}/{route.subresource}" if route.subresource else route.plural
        self.request_counts.add(route.verb, name, user.name, agent)
        fault = self.faults.strike(route.verb, name, user.name, route.namespace)
        if fault is not None:
            await self._suffer(fault)
        self._authorizer.check(user, access)
        if resource is None or (
            route.subresource and route.subresource not in resource.subresources
        ):
            raise unknown_path()
        if resource.is_namespaced and not route.namespace and route.verb not in {"list", "watch"}:
            raise method_not_allowed() if not route.name else unknown_path()
        call = Call(
            user=user,
            resource=resource,
            namespace=route.namespace if resource.is_namespaced else "",
            name=route.name,
            subresource=route.subresource,
            query=request.query,
            user_agent=agent,
            warnings=warnings,
        )
        if route.verb == "watch":
            return await self._watches.serve(call, request, fault)
        body = await request.read()
        if route.verb in {"delete", "deletecollection"}:
            content_type = request.headers.get("Content-Type", "")
            call.options = bodies.decode_options(content_type, body)
        answer = self._dispatcher.answer(call, route.verb, request, body)
        return _response(answer.body, answer.code, warnings)

    async def _suffer(self, fault: Fault) -> None:
        if fault.delay_s:
            await asyncio.sleep(fault.delay_s)
        if fault.is_hang:
            await fault.ended.wait()
        if fault.code and fault.verb != "watch":
            raise fault.error()
        if fault.code and fault.code != 410:
            raise fault.error()

    async def _answer_path(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        verb = request.method.lower()
        self._authorizer.check(user, Attributes(verb=verb, path=path))
        if verb not in {"get", "head"}:
            raise method_not_allowed()
        if path in _HEALTH or path.partition("/")[0] in _HEALTH:
            return web.Response(text="ok")
        address = f"{self._host}:{self._port}"
        accept = request.headers.get("Accept", "")
        found = documents.find(self.state.registry, path, accept=accept, address=address)
        if found is None:
            raise unknown_path()
        content_type, document = found
        response = _response(orjson.dumps(document), 200, [])
        response.headers["Content-Type"] = content_type
        return response


def _attributes(route: routes.Route) -> Attributes:
    return Attributes(
        verb=route.verb,
        group=route.group,
        version=route.version,
        plural=route.plural,
        subresource=route.subresource,
        namespace=route.namespace,
        name=route.name,
    )


def _response(body: bytes, code: int, warnings: list[str]) -> web.Response:
    response = web.Response(body=body, status=code, content_type=_JSON)
    for warning in dict.fromkeys(warnings):
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def _failure(error: ApiError, warnings: list[str]) -> web.Response:
    response = _response(orjson.dumps(error.status()), error.code, warnings)
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response

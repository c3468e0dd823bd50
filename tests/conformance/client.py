"""A client as thin as can be: what was sent and what came back, nothing interpreted."""

import base64
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    code: int
    body: Any
    headers: Any

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def causes(self) -> list[Json]:
        found: list[Json] = self.body.get("details", {}).get("causes", [])
        return found

    @property
    def warnings(self) -> str:
        return str(self.headers.get("Warning", ""))


@dataclass(slots=True)
class Client:
    """Speaks HTTP to one API server with the credentials of a kubeconfig."""

    kubeconfig: Path
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""
    _session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        self.url = cluster["server"]
        self._session.trust_env = False
        authority = cluster.get("certificate-authority")
        if "certificate-authority-data" in cluster:
            authority = self._file(cluster["certificate-authority-data"])
        self._session.verify = authority or True
        if "client-certificate-data" in user and not self.token:
            pair = (
                self._file(user["client-certificate-data"]),
                self._file(user["client-key-data"]),
            )
            self._session.cert = pair
        self.token = self.token or user.get("token", "")

    def _file(self, data: str) -> str:
        handle = tempfile.NamedTemporaryFile(dir=self.kubeconfig.parent, delete=False)  # noqa: SIM115
        with handle:
            handle.write(base64.b64decode(data))
        return handle.name

    def close(self) -> None:
        self._session.close()

    def as_user(self, token: str) -> "Client":
        """The same server with another bearer token."""
        return Client(self.kubeconfig, token)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        """One request; `params`, `content_type`, `accept` and `headers` as options."""
        headers = {"User-Agent": "conformance/1.0", **self.headers, **options.pop("headers", {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if "accept" in options:
            headers["Accept"] = options.pop("accept")
        data = body
        if body is not None:
            headers["Content-Type"] = options.pop("content_type", "application/json")
            data = body if isinstance(body, (str, bytes)) else json.dumps(body)
        params = options.pop("params", None)
        reply = self._session.request(
            method, self.url + path, data=data, headers=headers, params=params, timeout=30
        )
        is_json = reply.text.startswith("{")
        return Reply(reply.status_code, reply.json() if is_json else reply.text, reply.headers)

    def get(self, path: str, **options: Any) -> Reply:
        return self.send("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Reply:
        return self.send("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Reply:
        return self.send("PUT", path, body, **options)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **options: Any) -> Reply:
        return self.send("PATCH", path, body, content_type=content_type, **options)

    def apply(self, path: str, body: Any, manager: str, **params: Any) -> Reply:
        options = {"fieldManager": manager, **params}
        return self.send("PATCH", path, body, content_type=APPLY, params=options)

    def delete(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.send("DELETE", path, body, **options)

    def watch(self, path: str, seconds: int = 2, **params: Any) -> "Watch":
        """An open watch that the server ends after some seconds."""
        return Watch(self, path, {"watch": "true", "timeoutSeconds": str(seconds), **params})


class Watch:
    """The events of one watch, read in a thread of their own."""

    def __init__(self, client: Client, path: str, params: Json) -> None:
        headers = {"Authorization": f"Bearer {client.token}"} if client.token else {}
        session = client._session
        self.reply = session.get(
            client.url + path, params=params, headers=headers, stream=True, timeout=30
        )
        self.code = self.reply.status_code
        self._events: list[Json] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self.reply.iter_lines():
            if line:
                self._events.append(json.loads(line))
        self.reply.close()

    def all(self) -> list[Json]:
        """All events, once the watch has ended."""
        self._thread.join(timeout=30)
        return self._events

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.all()]


@dataclass(frozen=True, slots=True)
class Tool:
    """A command line client with a kubeconfig and a home of its own."""

    binary: Path
    environment: dict[str, str]
    namespace: str

    def __call__(self, *arguments: str, stdin: str = "", ok: bool = True) -> "Output":
        command = [str(self.binary), "--namespace", self.namespace, *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=self.environment,
            timeout=60, check=False,
        )  # fmt: skip
        output = Output(done.returncode, done.stdout, done.stderr)
        if ok and done.returncode != 0:
            message = f"{' '.join(command)} failed: {done.stdout}{done.stderr}"
            raise AssertionError(message)
        return output


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> Iterator[str]:
        return iter(self.out.splitlines())

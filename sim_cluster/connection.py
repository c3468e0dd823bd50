"""Where an API server is and who we are to it, read from a kubeconfig."""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """All that a client needs to speak to one API server as one user."""

    url: str
    token: str | None = None
    ssl_context: ssl.SSLContext | None = None
    """None for a plain `http` server."""


def read_kubeconfig(path: Path, *, context: str | None = None) -> Connection:
    """Read the current (or the named) context of a kubeconfig: token or client certificate."""
    content = yaml.safe_load(path.read_text())
    chosen = _entry(content, "contexts", context or content["current-context"])["context"]
    cluster = _entry(content, "clusters", chosen["cluster"])["cluster"]
    user = _entry(content, "users", chosen["user"]).get("user") or {}
    if "exec" in user or "auth-provider" in user:
        raise ValueError(
            f"users[{chosen['user']}] of {path} must have a token or a client certificate, "
            "got a credential plugin"
        )
    token = user.get("token")
    if token is None and "tokenFile" in user:
        token = _beside(path, user["tokenFile"]).read_text().strip()
    url = cluster["server"].rstrip("/")
    encrypted = url.startswith("https:")
    return Connection(
        url=url, token=token, ssl_context=_ssl_context(path, cluster, user) if encrypted else None
    )


def _entry(content: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    for entry in content.get(kind) or ():
        if entry["name"] == name:
            return dict(entry)
    known = [entry["name"] for entry in content.get(kind) or ()]
    raise ValueError(f"kubeconfig {kind} must be one of {known}, got {name!r}")


def _ssl_context(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = _pem(path, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = _pem(path, user, "client-certificate"), _pem(path, user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # ssl reads files only
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _pem(path: Path, fields: dict[str, Any], name: str) -> str | None:
    if data := fields.get(f"{name}-data"):
        return base64.b64decode(data).decode()
    if file := fields.get(name):
        return _beside(path, file).read_text()
    return None


def _beside(path: Path, file: str) -> Path:
    """Resolve relative paths in a kubeconfig: they start at its own folder."""
    return path.parent / file


def write_kubeconfig(path: Path, *, url: str, authority_pem: str, token: str) -> Path:
    """Write a kubeconfig with one context, for one user known by a bearer token."""
    authority = base64.b64encode(authority_pem.encode()).decode()
    name = "sim-cluster"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {"name": name, "cluster": {"server": url, "certificate-authority-data": authority}}
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}
        ],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path

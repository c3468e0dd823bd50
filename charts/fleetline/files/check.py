# ruff: noqa: INP001 - carried by the chart, run by `python -c`
"""What `helm test` runs in the cluster: does the operator find what it needs? A line a question."""

import json
import os
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
KUBERNETES = os.environ.get("KUBERNETES", "https://kubernetes.default.svc")
NEEDED = {"servingfleets", "servingfleets/status", "acceleratorprofiles"}
TIMEOUT_S = 10


def read(url: str, *, authority: str | None = None, token: str | None = None) -> str:
    """Return what a URL of the administrator's values answers."""
    request = urllib.request.Request(url)  # noqa: S310 - the values' schema admits http(s) alone
    if token:
        request.add_header("Authorization", f"Bearer {Path(token).read_text('utf-8').strip()}")
    context = ssl.create_default_context(cafile=authority) if url.startswith("https:") else None
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:  # noqa: S310
        return str(answer.read().decode())


def kubernetes(path: str) -> Any:
    """Return what the API server answers, as JSON."""
    authority, token = str(ACCOUNT / "ca.crt"), str(ACCOUNT / "token")
    return json.loads(read(KUBERNETES + path, authority=authority, token=token))


def definitions() -> str:
    """Check that the definitions are installed."""
    served = {one["name"] for one in kubernetes("/apis/fleetline.dev/v1alpha1")["resources"]}
    return ", ".join(sorted(NEEDED - served))


def permissions() -> str:
    """Check that the operator may read fleets where it looks for them."""
    namespaces = os.environ["NAMESPACES"]
    for namespace in namespaces.split(","):
        where = f"namespaces/{namespace}/" if namespace else ""
        kubernetes(f"/apis/fleetline.dev/v1alpha1/{where}servingfleets?limit=1")
    return ""


def operator() -> str:
    """Check that the operator shows metrics."""
    url = os.environ["METRICS"]
    is_shown = not url or "fleetline_turn_duration_seconds" in read(url)
    return "" if is_shown else "these are no metrics of Fleetline"


def prometheus() -> str:
    """Check that Prometheus answers, and scrapes something."""
    url = os.environ["PROMETHEUS"].rstrip("/") + "/api/v1/query?query=count(up)"
    token, authority = os.environ.get("PROMETHEUS_TOKEN"), os.environ.get("PROMETHEUS_CA")
    answer = json.loads(read(url, authority=authority, token=token))
    return "" if answer["data"]["result"] else "it has no targets"


def main() -> int:
    """Ask every question; the exit code is 1 if one has no good answer."""
    failures = 0
    for question in (definitions, permissions, operator, prometheus):
        try:
            problem = question()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            problem = str(error) or type(error).__name__
        failures += bool(problem)
        state = "FAILED" if problem else "ok"
        print(f"{state:8}{question.__name__}{f': {problem}' if problem else ''}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""The real Prometheus on a free loopback port, scraping what an HTTP service discovery names.

The discovery endpoint answers with the `__meta_kubernetes_*` labels of a pod, and the relabelling
here is what a PodMonitor leads to: series carry `namespace`, `pod`, `container`, `node`, `job` and
`instance`.
"""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from sim_cluster import tools
from sim_cluster.processes import Child, StartError, free_ports, running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

_START_TIMEOUT_S = 60.0
_TRIES = 3
_RETENTION = "2d"
# Prometheus gathers changes of its targets for 5 s by default; pods of a demo live for a minute.
_RELOAD_INTERVAL = "1s"
_POD_LABELS = {
    "__meta_kubernetes_namespace": "namespace",
    "__meta_kubernetes_pod_name": "pod",
    "__meta_kubernetes_pod_container_name": "container",
    "__meta_kubernetes_pod_node_name": "node",
}


@contextlib.asynccontextmanager
async def serving_prometheus(
    folder: Path,
    *,
    discovery_url: str | None,
    aggregate_url: str | None = None,
    scrape_interval_s: float = 1.0,
    targets: Mapping[str, str] | None = None,
    rule_files: tuple[Path, ...] = (),
) -> AsyncIterator[str]:
    """Run Prometheus with its data below `folder` and yield its URL once it is ready.

    `discovery_url` serves pods to scrape. `aggregate_url` answers for all pods at once, with their
    labels: for thousands of pods, or where the 5 s of discovery are too long. `targets` maps a job
    name to one fixed `host:port`.
    """
    program = tools.prometheus()
    content = configuration(
        discovery_url=discovery_url,
        aggregate_url=aggregate_url,
        scrape_interval_s=scrape_interval_s,
        targets=targets or {},
        rule_files=rule_files,
    )
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    with contextlib.ExitStack() as stack:
        yield await _started(program, file, folder, stack)


def configuration(
    *,
    discovery_url: str | None,
    scrape_interval_s: float,
    aggregate_url: str | None = None,
    targets: Mapping[str, str],
    rule_files: tuple[Path, ...] = (),
) -> dict[str, Any]:
    """Write down what Prometheus shall scrape, as its configuration file has it."""
    interval = f"{round(scrape_interval_s * 1000)}ms"
    jobs: list[dict[str, Any]] = [
        {"job_name": job, "static_configs": [{"targets": [address]}]}
        for job, address in targets.items()
    ]
    if discovery_url is not None:
        jobs.append(
            {
                "job_name": "pods",
                "http_sd_configs": [{"url": discovery_url, "refresh_interval": interval}],
                "relabel_configs": _pod_relabelling(),
            }
        )
    if aggregate_url is not None:
        parts = urlsplit(aggregate_url)
        jobs.append(
            {
                "job_name": "all-pods",
                "honor_labels": True,
                "metrics_path": parts.path,
                "static_configs": [{"targets": [parts.netloc]}],
            }
        )
    return {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": interval,
        },
        "rule_files": [str(path) for path in rule_files],
        "scrape_configs": jobs,
    }


def _pod_relabelling() -> list[dict[str, str | list[str]]]:
    copied: list[dict[str, str | list[str]]] = [
        {"source_labels": [source], "target_label": label} for source, label in _POD_LABELS.items()
    ]
    path: dict[str, str | list[str]] = {
        "source_labels": ["__meta_kubernetes_pod_annotation_prometheus_io_path"],
        "regex": "(.+)",
        "target_label": "__metrics_path__",
    }
    return [*copied, path]


async def _started(program: Path, file: Path, folder: Path, stack: contextlib.ExitStack) -> str:
    """Start it; somebody may take the port between our look and its bind, so try again."""
    for left in range(_TRIES - 1, -1, -1):
        port = free_ports(1)[0]
        attempt = stack.enter_context(contextlib.ExitStack())
        child = attempt.enter_context(
            running("prometheus", _command(program, file, folder, port), folder / "prometheus.log")
        )
        try:
            await _until_ready(child, f"http://127.0.0.1:{port}")
        except StartError:
            attempt.close()
            if left == 0 or "address already in use" not in child.last_words():
                raise
        else:
            return f"http://127.0.0.1:{port}"
    raise AssertionError("unreachable: the last try returns or raises")


def _command(program: Path, file: Path, folder: Path, port: int) -> list[str | Path]:
    return [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--storage.tsdb.retention.time={_RETENTION}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--scrape.discovery-reload-interval={_RELOAD_INTERVAL}",
        "--log.level=warn",
    ]


async def _until_ready(child: Child, url: str) -> None:
    def is_ready() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    await until(is_ready, child, timeout_s=_START_TIMEOUT_S, what="readiness")

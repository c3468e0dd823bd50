"""The demo as one self-contained HTML page: load, ceiling, replicas, latencies and decisions."""

from dataclasses import asdict
from html import escape
from typing import Any

from fleetline.entrypoints.demo.recorder import Recorder
from fleetline.entrypoints.demo.scenario import Scenario
from fleetline.entrypoints.demo.screen import line_of
from fleetline.entrypoints.demo.summary import Summary
from fleetline.errors import ManifestError

UNITS = {
    "windows_met": "share, 0..1",
    "windows": "windows",
    "scale_ups": "changes",
    "scale_downs": "changes",
    "max_replicas": "replicas",
    "min_replicas": "replicas",
    "writes_at_rest": "PATCH requests",
    "gpu_hours": "GPU-hours",
    "static_peak_gpu_hours": "GPU-hours",
    "requests": "requests",
}


def page(scenario: Scenario, recorder: Recorder, summary: Summary) -> str:
    """
    Return the HTML text.

    Raises
    ------
    ManifestError
        If plotly is not installed.
    """
    try:
        from plotly import graph_objects, io, subplots  # noqa: PLC0415 - only for the page
    except ImportError as error:
        raise ManifestError(
            "cannot write the page: plotly is not installed; install fleetline[plots]"
        ) from error
    names = ("Load and ceiling [req/s]", "Replicas", "Time to first token, p95 [ms]", "Requests")
    figure = subplots.make_subplots(
        rows=4, cols=1, shared_xaxes=True, vertical_spacing=0.06, subplot_titles=names
    )
    times = [moment.t_s for moment in recorder.moments]

    def draw(row: int, name: str, values: list[Any], **style: Any) -> None:
        figure.add_trace(
            graph_objects.Scatter(x=times, y=values, name=name, line=style), row=row, col=1
        )

    moments = recorder.moments
    draw(1, "arrivals", [moment.arrival_rate_per_s for moment in moments])
    draw(1, "to be ready for", [moment.expected_rate_per_s for moment in moments], dash="dot")
    draw(
        1,
        "ceiling of the ready replicas",
        [
            None if moment.ceiling_per_s is None else moment.ceiling_per_s * moment.ready_replicas
            for moment in moments
        ],
        dash="dash",
    )
    draw(2, "asked for", [moment.current_replicas for moment in moments], shape="hv")
    draw(2, "ready", [moment.ready_replicas for moment in moments], shape="hv")
    draw(2, "holding GPUs", [moment.pods for moment in moments], shape="hv", dash="dot")
    draw(3, "TTFT p95", [_ms(moment.first_token_p95_s) for moment in moments])
    for objective in scenario.objectives:
        figure.add_hline(
            y=objective.target_s * 1e3, line_dash="dash", annotation_text=str(objective), row=3
        )
    draw(4, "running", [moment.running_requests for moment in moments])
    draw(4, "waiting", [moment.waiting_requests for moment in moments])
    figure.update_xaxes(title_text="time [s]", row=4)
    figure.update_layout(height=1100, template="plotly_white", hovermode="x unified")
    drawing = io.to_html(figure, full_html=False, include_plotlyjs=True)
    rows = "".join(
        f"<tr><td>{name.replace('_', ' ')}</td><td>{_number(value)}</td><td>{UNITS[name]}</td></tr>"
        for name, value in asdict(summary).items()
    )
    log = escape("\n".join(line_of(event) for event in recorder.events))
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Fleetline demo</title>"
        "<style>body{font-family:sans-serif;margin:2em}td{padding:.2em 1em .2em 0}</style>"
        f"<h1>Fleetline demo</h1><table>{rows}</table>{drawing}"
        f"<h2>Events</h2><pre>{log}</pre></html>"
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _number(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)

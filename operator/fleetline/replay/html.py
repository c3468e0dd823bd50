"""
One self-contained page: a timeline per policy and GPU-hours against windows met.

Plotly is embedded, so the page opens without a network.
"""

import html
import importlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from fleetline.errors import ManifestError
from fleetline.model.objective import Metric
from fleetline.replay.answer import Answer
from fleetline.replay.bounds import fleet_rates_per_s
from fleetline.replay.hindsight import WINDOWS_TARGET
from fleetline.replay.tasks import OURS, Outcome

SECONDS_PER_HOUR: Final = 3600.0
SHOWN_AT_FIRST: Final = 3
"""Policies whose lines are drawn without a click on the legend."""

COLORS: Final = (
    *("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#dfab01", "#e03e3e", "#64473a"),
    *("#4d6461", "#2f80ed", "#9b51e0", "#219653", "#f2994a", "#56ccf2", "#bb6bd9", "#828282"),
)

STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1200px;color:#1b1f23;
padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:1rem 0}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #e1e4e8}
th:first-child,td:first-child{text-align:left}.miss{color:#b31d28}.ours{font-weight:600}
"""


def page(answers: Sequence[Answer]) -> str:
    """
    Write the report on one or several traces.

    Raises
    ------
    ManifestError
        If plotly is not installed.
    """
    plotly = _plotly()
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>Fleetline replay</title><style>{STYLE}</style><h1>Fleetline replay</h1>",
    ]
    is_first = True
    for answer in answers:
        parts.append(_heading(answer))
        parts.append(_table(answer))
        for figure in (_pareto(plotly, answer), _timeline(answer)):
            parts.append(figure.to_html(full_html=False, include_plotlyjs=is_first))
            is_first = False
    return "\n".join([*parts, "</html>"])


def _plotly() -> Any:
    try:
        importlib.import_module("plotly.subplots")
        return importlib.import_module("plotly.graph_objects")
    except ImportError as error:
        raise ManifestError(
            "--html must be used with the extra `plots` installed (pip install fleetline[plots]), "
            "got no plotly"
        ) from error


def _heading(answer: Answer) -> str:
    one = answer.scenario
    replica = one.replica
    objectives = ", ".join(str(objective) for objective in one.objectives)
    return (
        f"<h2>{html.escape(one.trace.name)}</h2><p>{len(one.trace.arrivals):,} requests in "
        f"{one.trace.duration_s / SECONDS_PER_HOUR:.2f} h; {html.escape(replica.architecture.name)}"
        f" on {replica.accelerators} x {html.escape(replica.accelerator.name)} a replica; "
        f"{html.escape(objectives)}; start-up {one.startup_s:g} s; ceiling of one replica alone "
        f"{answer.site.ceiling_rate_per_s:.3g} req/s. Windows of 5 minutes.</p>"
    )


def _table(answer: Answer) -> str:
    head = (
        "<tr><th>policy<th>windows met<th>goodput<th>GPU-hours<th>changes<th>worst drain, s"
        "<th>cost, USD<th>TTFT p95, s<th>TPOT p95, s</tr>"
    )
    rows = [_row(one) for one in _ordered(answer)]
    fluid = f"<tr><td>fluid bound<td><td><td>{answer.fluid_gpu_hours:.2f}" + "<td>" * 5 + "</tr>"
    return f"<table>{head}{''.join(rows)}{fluid}</table>"


def _ordered(answer: Answer) -> list[Outcome]:
    """Those that met the windows target first, cheapest first; then by windows met."""
    everyone = [*answer.policies, *([answer.clairvoyant] if answer.clairvoyant else [])]

    def key(one: Outcome) -> tuple[float, float]:
        met = one.score.windows_met
        return (0.0 if met >= WINDOWS_TARGET else 1.0 - met, one.score.gpu_hours)

    return sorted(everyone, key=key)


def _row(one: Outcome) -> str:
    score = one.score
    cells = (
        f"{score.goodput:.4f}",
        f"{score.gpu_hours:.2f}",
        f"{score.scale_actions}",
        f"{score.worst_drain_s:.0f}",
        "-" if score.cost_usd is None else f"{score.cost_usd:.2f}",
        _seconds(score.ttft_p95_s),
        _seconds(score.tpot_p95_s),
    )
    missed = " class=miss" if score.windows_met < WINDOWS_TARGET else ""
    ours = " class=ours" if one.task.name == OURS else ""
    return (
        f"<tr{ours}><td>{html.escape(one.task.name)}<td{missed}>{score.windows_met:.4f}"
        + "".join(f"<td>{cell}" for cell in cells)
        + "</tr>"
    )


def _seconds(value_s: float) -> str:
    return f"{value_s:.3g}" if math.isfinite(value_s) else "unfinished"


def _pareto(plotly: Any, answer: Answer) -> Any:
    figure = plotly.Figure()
    for name, outcomes in answer.tried.items():
        figure.add_scatter(
            x=[one.score.gpu_hours for one in outcomes],
            y=[one.score.windows_met for one in outcomes],
            mode="lines+markers",
            name=f"{name}, all settings",
            opacity=0.5,
        )
    for number, one in enumerate(_ordered(answer)):
        figure.add_scatter(
            x=[one.score.gpu_hours],
            y=[one.score.windows_met],
            mode="markers+text",
            text=[one.task.name],
            textposition="top center",
            name=one.task.name,
            marker={"size": 12, "color": COLORS[number % len(COLORS)]},
        )
    figure.add_vline(x=answer.fluid_gpu_hours, line_dash="dot", annotation_text="fluid bound")
    figure.add_hline(y=WINDOWS_TARGET, line_dash="dot", annotation_text="windows target")
    figure.update_layout(
        title="GPU-hours against windows met: right and low is waste, left and low is missed",
        xaxis_title="GPU-hours",
        yaxis_title="share of 5-minute windows met",
        template="plotly_white",
        height=480,
    )
    return figure


def _timeline(answer: Answer) -> Any:
    subplots = importlib.import_module("plotly.subplots")
    titles = (
        "demand and capacity [req/s]",
        "replicas serving",
        "requests waiting",
        "TTFT p95 by window [s]",
        "TPOT p95 by window [s]",
    )
    figure = subplots.make_subplots(
        rows=5, cols=1, shared_xaxes=True, vertical_spacing=0.03, subplot_titles=titles
    )
    rates = fleet_rates_per_s(answer.scenario)
    drawn = [one for one in _ours_first(_ordered(answer)) if one.series is not None]
    if drawn and drawn[0].series is not None:
        first = drawn[0].series
        figure.add_scatter(
            x=first.t_s / SECONDS_PER_HOUR,
            y=_rounded(first.arrival_rate_per_s),
            name="demand",
            line={"color": "#1b1f23", "width": 1},
            row=1,
            col=1,
        )
    for number, one in enumerate(drawn):
        _add_policy(figure, one, rates, number)
    for row, metric in ((4, Metric.TIME_TO_FIRST_TOKEN), (5, Metric.TIME_PER_OUTPUT_TOKEN)):
        target_s = answer.site.target_s(metric)
        if target_s is not None:
            figure.add_hline(y=target_s, line_dash="dot", line_color="#b31d28", row=row, col=1)
        figure.update_yaxes(type="log", row=row, col=1)
    figure.update_xaxes(title_text="hours", row=5, col=1)
    figure.update_layout(template="plotly_white", height=1100, title="Timeline")
    return figure


def _add_policy(figure: Any, one: Outcome, rates: Any, number: int) -> None:
    series = one.series
    if series is None:
        return
    hours = series.t_s / SECONDS_PER_HOUR
    capacity = np.where(
        series.serving_replicas > 0,
        rates[np.clip(series.serving_replicas, 1, rates.size) - 1],
        0.0,
    )
    lines = (
        (1, hours, capacity),
        (2, hours, series.serving_replicas),
        (3, hours, series.waiting_requests),
        (4, series.window_t_s / SECONDS_PER_HOUR, series.time_to_first_token_s),
        (5, series.window_t_s / SECONDS_PER_HOUR, series.time_per_output_token_s),
    )
    for row, x, y in lines:
        figure.add_scatter(
            x=_rounded(x),
            y=_rounded(y),
            name=one.task.name,
            legendgroup=one.task.name,
            showlegend=row == 1,
            visible=True if number < SHOWN_AT_FIRST else "legendonly",
            line={"color": COLORS[number % len(COLORS)], "width": 1.5, "shape": "hv"},
            row=row,
            col=1,
        )


def _ours_first(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return sorted(outcomes, key=lambda one: one.task.name != OURS)


def _rounded(values: Any) -> list[float | None]:
    """Four digits are enough to draw; what is not finite is a gap."""
    return [
        float(f"{value:.4g}") if math.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64).tolist()
    ]

"""A backtest as one self-contained page: arrivals, and replicas of both sides."""

import html
from datetime import UTC, datetime
from typing import Any, Final

from fleetline.errors import ManifestError
from fleetline.replay.backtest_report import Report

STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1100px;color:#1b1f23;
padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:1rem 0}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #e1e4e8}
th:first-child,td:first-child{text-align:left}
"""
RAN, OURS, ABOVE = "#828282", "#0b6e99", "#b31d28"


def page(fleet: str, report: Report) -> str:
    """
    Write the page.

    Raises
    ------
    ManifestError
        If plotly is not installed.
    """
    figure = _figure(report)
    told = report.as_json()
    rows = "".join(
        f"<tr><td>{html.escape(key)}<td>{_shown(told['ran'][key])}"
        f"<td>{_shown(told['fleetline'].get(key))}</tr>"
        for key in told["ran"]
    )
    title = f"Fleetline backtest of {html.escape(fleet)}"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        f"<table><tr><th><th>what ran<th>fleetline</tr>{rows}</table>"
        f"{figure.to_html(full_html=False, include_plotlyjs=True)}</html>"
    )


def _figure(report: Report) -> Any:
    try:
        from plotly.subplots import make_subplots  # noqa: PLC0415 - only where it is drawn
    except ImportError as error:
        raise ManifestError(
            "--html must be used with the extra `plots` installed (pip install fleetline[plots]), "
            "got no plotly"
        ) from error
    windows = report.windows
    times = [datetime.fromtimestamp(one.at_s, UTC) for one in windows]
    figure = make_subplots(
        rows=2,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.06,
        subplot_titles=("arrivals [req/s]", "replicas"),
    )
    figure.add_scatter(
        x=times,
        y=[one.arrival_rate_per_s for one in windows],
        name="arrivals",
        line={"color": "#1b1f23", "width": 1},
        row=1,
        col=1,
    )
    ran, ours = [one.ran_replicas for one in windows], [one.replicas for one in windows]
    for name, replicas, color, above in (
        ("what ran", ran, RAN, [one.ran_above for one in windows]),
        ("fleetline", ours, OURS, [one.above for one in windows]),
    ):
        line = {"color": color, "shape": "hv", "width": 1.5}
        figure.add_scatter(x=times, y=replicas, name=name, line=line, row=2, col=1)
        figure.add_scatter(
            x=[at for at, is_above in zip(times, above, strict=True) if is_above],
            y=[count for count, is_above in zip(replicas, above, strict=True) if is_above],
            name=f"{name}: above the ceiling",
            mode="markers",
            marker={"color": ABOVE, "symbol": "x" if name == "fleetline" else "circle-open"},
            row=2,
            col=1,
        )
    figure.update_layout(template="plotly_white", height=700)
    return figure


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else html.escape(str(value))

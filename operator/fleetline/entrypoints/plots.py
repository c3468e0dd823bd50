"""Pictures of a curve: in the terminal, as SVG or PNG, and as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fleetline.control.curve import Curve
from fleetline.errors import ManifestError

MILLI = 1e3
MISSING = "cannot draw: {package} is not installed; install fleetline[plots]"


def print_curve(title: str, curve: Curve) -> None:
    """Draw time per output token against throughput in the terminal, if plotext is installed."""
    try:
        import plotext  # noqa: PLC0415 - only where something is drawn
    except ImportError:
        return
    rates = [point.output_token_rate_per_s for point in curve.points]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(100, 20)
    plotext.title(f"{title}: time per output token [ms] against output [tokens/s]")
    plotext.plot(
        rates,
        [point.time_per_output_token_s * MILLI for point in curve.points],
        label="TPOT mean",
    )
    plotext.plot(
        rates,
        [point.time_per_output_token_p95_s * MILLI for point in curve.points],
        label="TPOT p95",
    )
    if curve.cut is not None and curve.cut.rate_per_s > 0:
        plotext.vline(_token_rate(curve, curve.cut.rate_per_s))
    plotext.xlabel("output [tokens/s]")
    plotext.ylabel("[ms]")
    plotext.show()


def write_curve(path: Path, title: str, curve: Curve, marks: Sequence[Mapping[str, Any]]) -> None:
    """
    Write the picture in the format of the file's ending.

    Raises
    ------
    ManifestError
        If the drawing library is not installed.
    """
    if path.suffix == ".html":
        path.write_text(_page(title, curve, marks), encoding="utf-8")
    else:
        _write_figure(path, title, curve)


def _token_rate(curve: Curve, rate_per_s: float) -> float:
    point = curve.points[0]
    return rate_per_s * point.output_token_rate_per_s / point.arrival_rate_per_s


def _vertical_marks(curve: Curve) -> list[tuple[str, float]]:
    found = [("knee", curve.knee.output_token_rate_per_s)]
    if curve.cut is not None and curve.cut.rate_per_s > 0:
        found.append((f"ceiling ({curve.cut.limit})", _token_rate(curve, curve.cut.rate_per_s)))
    if curve.operating is not None:
        found.append(("operating point", curve.operating.output_token_rate_per_s))
    ridge = curve.weights_ridge_sequences
    beyond = [point for point in curve.points if ridge and point.concurrency >= ridge]
    if beyond:
        found.append(("ridge", beyond[0].output_token_rate_per_s))
    return found


def _write_figure(path: Path, title: str, curve: Curve) -> None:
    try:
        import matplotlib as mpl  # noqa: PLC0415

        mpl.use("Agg")
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError as error:
        raise ManifestError(MISSING.format(package="matplotlib")) from error
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    rates = [point.output_token_rate_per_s for point in curve.points]
    for axis, name, values in (
        (left, "time per output token", ("time_per_output_token_s", "time_per_output_token_p95_s")),
        (right, "time to first token", ("time_to_first_token_s", "time_to_first_token_p95_s")),
    ):
        for field, label in zip(values, ("mean", "p95"), strict=True):
            times = [getattr(point, field) * MILLI for point in curve.points]
            axis.plot(rates, times, label=label)
        for number, (label, rate) in enumerate(_vertical_marks(curve)):
            axis.axvline(rate, linestyle="--", color=f"C{number + 2}", label=label)
        axis.set_xlabel("output of one replica [tokens/s]")
        axis.set_ylabel(f"{name} [ms]")
        axis.set_yscale("log")
        axis.legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _page(title: str, curve: Curve, marks: Sequence[Mapping[str, Any]]) -> str:
    try:
        from plotly import graph_objects, io, subplots  # noqa: PLC0415
    except ImportError as error:
        raise ManifestError(MISSING.format(package="plotly")) from error
    names = ("Time per output token [ms]", "Time to first token [ms]", "Requests/s", "USD/10^6")
    figure = subplots.make_subplots(rows=2, cols=2, subplot_titles=names)
    rates = [point.output_token_rate_per_s for point in curve.points]
    for row, column, field, label, unit in (
        (1, 1, "time_per_output_token_s", "TPOT mean", MILLI),
        (1, 1, "time_per_output_token_p95_s", "TPOT p95", MILLI),
        (1, 2, "time_to_first_token_s", "TTFT mean", MILLI),
        (1, 2, "time_to_first_token_p95_s", "TTFT p95", MILLI),
        (2, 1, "arrival_rate_per_s", "throughput", 1.0),
        (2, 1, "goodput_per_s", "goodput", 1.0),
        (2, 2, "cost_usd_per_million_tokens", "cost of output", 1.0),
    ):
        values = [getattr(point, field) for point in curve.points]
        drawn = [None if value is None else value * unit for value in values]
        figure.add_trace(graph_objects.Scatter(x=rates, y=drawn, name=label), row=row, col=column)
    for label, rate in _vertical_marks(curve):
        figure.add_vline(x=rate, line_dash="dash", annotation_text=label)
    figure.update_xaxes(title_text="output of one replica [tokens/s]")
    figure.update_yaxes(type="log", row=1)
    figure.update_layout(height=820, template="plotly_white")
    drawing = io.to_html(figure, full_html=False, include_plotlyjs=True)
    rows = "".join(
        f"<tr><td>{escape(str(mark['place']))}</td><td>{escape(_number(mark['value']))}</td>"
        f"<td>{escape(str(mark['unit']))}</td></tr>"
        for mark in marks
    )
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
        "<style>body{font-family:sans-serif;margin:2em}td{padding:.2em 1em .2em 0}</style>"
        f"<h1>{escape(title)}</h1>{drawing}<table>{rows}</table></html>"
    )


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value if value is not None else "-")

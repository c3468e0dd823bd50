"""How the demo is watched: a live screen in a terminal, one line per event where there is none."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fleetline.entrypoints.demo.recorder import Event, Moment, Recorder
from fleetline.entrypoints.demo.scenario import Scenario

BARS: Final = " ▁▂▃▄▅▆▇█"
WIDTH: Final = 60
LAST_EVENTS: Final = 6
MILLI: Final = 1e3


class View(Protocol):
    """What the demo tells as it goes."""

    def event(self, event: Event) -> None:
        """Something worth a line has happened."""
        ...

    def moment(self, recorder: Recorder) -> None:
        """Another second has passed."""
        ...


class PlainView:
    """One line per event; for logs and for CI."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def event(self, event: Event) -> None:
        """Print the line."""
        self._console.print(line_of(event), highlight=False, soft_wrap=True)

    def moment(self, recorder: Recorder) -> None:
        """Print nothing: seconds are no events."""


class LiveView:
    """A screen that is drawn anew every second."""

    def __init__(self, live: Live, scenario: Scenario, hint: Callable[[], str]) -> None:
        self._live = live
        self._scenario = scenario
        self._hint = hint

    def event(self, event: Event) -> None:
        """Events are shown with the next second."""

    def moment(self, recorder: Recorder) -> None:
        """Draw."""
        self._live.update(screen(self._scenario, recorder, self._hint()))


@contextlib.contextmanager
def view(scenario: Scenario, hint: Callable[[], str]) -> Iterator[View]:
    """Choose the live screen in a terminal, plain lines elsewhere."""
    console = Console()
    if not console.is_terminal:
        yield PlainView(console)
        return
    with Live(console=console, refresh_per_second=4, screen=False) as live:
        yield LiveView(live, scenario, hint)


def line_of(event: Event) -> str:
    """Print an event with the second it happened in."""
    return f"{event.t_s:7.1f} s  {event.text}"


def screen(scenario: Scenario, recorder: Recorder, hint: str) -> Panel:
    """Everything on one screen: load, latency, ceiling, replicas, the decision in words."""
    if not recorder.moments:
        return Panel(Text("starting ..."), title="Fleetline demo")
    now = recorder.moments[-1]
    shown = recorder.moments[-WIDTH:]
    objective = scenario.objectives[0]
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="left", min_width=26)
    table.add_column(justify="right", min_width=22)
    table.add_column(justify="left", min_width=WIDTH)
    capacity = None if now.ceiling_per_s is None else now.ceiling_per_s * now.ready_replicas
    rows: list[tuple[str, str, Sequence[float | None]]] = [
        (
            "arrivals / ceiling",
            f"{now.arrival_rate_per_s:.1f} / {_show(capacity, '.1f')} req/s",
            [moment.arrival_rate_per_s for moment in shown],
        ),
        (
            "arrivals to be ready for",
            f"{_show(now.expected_rate_per_s, '.1f')} req/s",
            [moment.expected_rate_per_s for moment in shown],
        ),
        (
            "replicas ready / desired",
            f"{now.ready_replicas} / {_show(now.desired_replicas, '.0f')}",
            [float(moment.ready_replicas) for moment in shown],
        ),
        (
            "running + waiting",
            f"{now.running_requests} + {now.waiting_requests} requests",
            [float(moment.running_requests + moment.waiting_requests) for moment in shown],
        ),
        (
            f"TTFT p{objective.percentile} (objective)",
            f"{_ms(now.first_token_p95_s)} ({objective.target_s * MILLI:.0f}) ms",
            [moment.first_token_p95_s for moment in shown],
        ),
        (
            "TPOT p95",
            f"{_ms(now.output_token_p95_s)} ms",
            [moment.output_token_p95_s for moment in shown],
        ),
        (
            "utilization of the ceiling",
            _show(now.utilization, ".0%"),
            [moment.utilization for moment in shown],
        ),
        ("loop gain", _show(now.loop_gain, ".2f"), [moment.loop_gain for moment in shown]),
    ]
    for name, value, series in rows:
        table.add_row(name, value, sparkline(series))
    words = Text(f"decision: {now.reason or 'none yet'}: {now.because or '-'}", style="bold")
    log = Text("\n".join(line_of(event) for event in recorder.events[-LAST_EVENTS:]), style="dim")
    look = Text(hint, style="cyan", no_wrap=True)
    title = f"Fleetline demo  {now.t_s:.0f} s of {scenario.day.duration_s:.0f} s"
    return Panel(Group(table, Text(), words, Text(), log, Text(), look), title=title)


def sparkline(values: Sequence[float | None]) -> str:
    """Draw values as bars from zero to their largest; a gap is what is not known."""
    known = [value for value in values if value is not None]
    largest = max(known, default=0.0) or 1.0
    steps = len(BARS) - 1
    return "".join(
        " " if value is None else BARS[max(1, round(value / largest * steps))] for value in values
    )


def phase(recorder: Recorder, t_s: float, text: str, shown: View) -> None:
    """Note a phase of the demo and show it."""
    shown.event(recorder.note(t_s, text))


def scaled(recorder: Recorder, moment: Moment, shown: View) -> None:
    """Take a second in, and show what changed."""
    if (event := recorder.take(moment)) is not None:
        shown.event(event)
    shown.moment(recorder)


def _show(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * MILLI:.0f}"

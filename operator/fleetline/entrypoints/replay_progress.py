"""A progress bar for `fleetline replay`: on stderr, so that results can be piped."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from fleetline.replay.tasks import Outcome


class Progress:
    """Counts runs: more are announced as tuning goes on."""

    def __init__(self, title: str) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}"),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(title, total=0, last="")
        self._total = 0

    def __enter__(self) -> Self:
        """Show it."""
        self._bar.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Leave its last state on the terminal."""
        self._bar.stop()

    def begin(self, count: int) -> None:
        """Hear that so many runs will be made."""
        self._total += count
        self._bar.update(self._task, total=self._total)

    def done(self, outcome: Outcome) -> None:
        """Hear that one has ended."""
        self._bar.update(self._task, advance=1, last=outcome.task.name)

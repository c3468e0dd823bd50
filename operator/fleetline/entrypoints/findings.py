"""What a check found: one line with the state, and how to mend what is not ok."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check's outcome."""

    check: str
    """What was looked at, in a word or two."""
    subject: str
    """The object it was looked at for."""
    state: State
    says: str
    mend: str = ""
    """What to do about it; empty if all is well."""

    def __str__(self) -> str:
        """Print on one line."""
        mend = f"; mend: {self.mend}" if self.mend else ""
        return f"{self.state:8}{self.check} {self.subject}: {self.says}{mend}"


def ok(check: str, subject: str, says: str) -> Finding:
    """All is well."""
    return Finding(check=check, subject=subject, state=State.OK, says=says)


def warning(check: str, subject: str, says: str, mend: str) -> Finding:
    """Something is lost, and the rest works."""
    return Finding(check=check, subject=subject, state=State.WARNING, says=says, mend=mend)


def failed(check: str, subject: str, says: str, mend: str) -> Finding:
    """The operator cannot do its work so."""
    return Finding(check=check, subject=subject, state=State.FAILED, says=says, mend=mend)


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """How many findings there are of each state."""
    return {str(state): sum(one.state is state for one in findings) for state in State}

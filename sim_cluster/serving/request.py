"""What goes into a replica and what comes out of it."""

from dataclasses import dataclass
from typing import Protocol

from fleetline.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, with the length of its answer known beforehand."""

    id: int
    arrival_s: float
    """When the replica receives it. [s]"""
    prompt_tokens: int
    output_tokens: int
    cached_prompt_tokens: int = 0
    """Leading part of the prompt that the prefix cache holds: not computed again. [tokens]"""

    def __post_init__(self) -> None:
        """Refuse what no engine accepts."""
        for field in ("prompt_tokens", "output_tokens"):
            if getattr(self, field) < 1:
                raise ModelError(f"{field} must be >= 1, got {getattr(self, field)}")
        if self.cached_prompt_tokens < 0:
            raise ModelError(f"cached_prompt_tokens must be >= 0, got {self.cached_prompt_tokens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A finished request and the moments of its life."""

    request: Request
    admitted_s: float
    """When it first joined the batch. [s]"""
    first_token_s: float
    """When its first token was there: a moment, not a duration. [s]"""
    finished_s: float
    preemptions: int = 0

    @property
    def waiting_time_s(self) -> float:
        """From arrival to the first step that carried it. [s]"""
        return self.admitted_s - self.request.arrival_s

    @property
    def time_to_first_token_s(self) -> float:
        """From arrival to the first token. [s]"""
        return self.first_token_s - self.request.arrival_s

    @property
    def time_per_output_token_s(self) -> float | None:
        """Mean gap between its tokens; None if there was only one token. [s]"""
        gaps = self.request.output_tokens - 1
        return (self.finished_s - self.first_token_s) / gaps if gaps else None

    @property
    def residence_time_s(self) -> float:
        """From arrival to the last token. [s]"""
        return self.finished_s - self.request.arrival_s


class Observer(Protocol):
    """Who wants to hear of tokens as they appear, for instance to fill histograms."""

    def admitted(self, request: Request, waiting_time_s: float) -> None:
        """Hear that a request joined the batch first, and how long the engine had it by then."""

    def first_token(self, request: Request, time_to_first_token_s: float) -> None:
        """Hear that a request has its first token."""

    def token_gap(self, gap_s: float, sequences: int) -> None:
        """Hear that so many sequences got their next token, each this long after its last."""

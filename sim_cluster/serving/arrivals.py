"""Requests as arrays: when each arrives and how many tokens it brings and asks for."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fleetline.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Requests in order of arrival, equally long arrays."""

    t_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_prompt_tokens: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        t_s: ArrayLike,
        prompt_tokens: ArrayLike,
        output_tokens: ArrayLike,
        cached_prompt_tokens: ArrayLike = 0,
    ) -> Self:
        """
        Build from anything array-like; single numbers stand for every request.

        Raises
        ------
        ModelError
            If times fall or are not finite, or lengths are below one token.
        """
        times = np.ascontiguousarray(t_s, dtype=np.float64)
        lengths = [
            np.ascontiguousarray(np.broadcast_to(np.asarray(values), times.shape), dtype=np.int32)
            for values in (prompt_tokens, output_tokens, cached_prompt_tokens)
        ]
        if times.ndim != 1 or not np.isfinite(times).all():
            raise ModelError("t_s must be a list of finite times, got something else")
        if times.size and np.diff(times).min(initial=0.0) < 0:
            raise ModelError(f"t_s must not fall, got {np.diff(times).min():g} s in one step")
        for name, values, least in zip(
            ("prompt_tokens", "output_tokens", "cached_prompt_tokens"),
            lengths,
            (1, 1, 0),
            strict=True,
        ):
            if values.size and values.min() < least:
                raise ModelError(f"{name} must be >= {least}, got {values.min()}")
        return cls(
            t_s=times,
            prompt_tokens=lengths[0],
            output_tokens=lengths[1],
            cached_prompt_tokens=lengths[2],
        )

    def __len__(self) -> int:
        """How many requests there are."""
        return self.t_s.size

    def cut(self, start_s: float, end_s: float) -> Self:
        """Return the requests of a stretch of time, the clock set to zero at its start."""
        inside = slice(*np.searchsorted(self.t_s, [start_s, end_s]))
        return type(self)(
            t_s=self.t_s[inside] - start_s,
            prompt_tokens=self.prompt_tokens[inside],
            output_tokens=self.output_tokens[inside],
            cached_prompt_tokens=self.cached_prompt_tokens[inside],
        )

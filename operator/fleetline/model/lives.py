"""What the lengths of answers tell about the lives of requests, by kind of request."""

from typing import NamedTuple, Self

import numpy as np

from fleetline.model.kinds import Array

UNEVEN = 0.7
"""What a life adds to the variance of long answers if arrivals come from outside: prompts that have
kept others in the batch lengthen its later steps too. From iteration-level simulation."""


class Lives(NamedTuple):
    """Shape (questions, 1, kinds)."""

    steps: Array
    """Decode steps. [steps]"""
    refill: Array
    """What places that are filled again add to the dispersion of arrivals in a life: in a pool they
    have the dispersion of the answers' lengths."""
    outlasting: Array
    """What a life adds to the variance of its sum, over the square of its steps. [1/steps^2]"""
    drift_share: Array
    """Twice the correlation of convoy and drift: what comes in a long life also fills the batch
    later."""

    @classmethod
    def of(cls, steps: Array, decode_steps: Array, coupling: Array, renewed: Array) -> Self:
        """
        Lives of `steps` among requests whose mean is `decode_steps`.

        `renewed` is what answers of all lengths would add to the dispersion.
        """
        share = steps / (steps + decode_steps[..., np.newaxis])
        outside = coupling[..., np.newaxis] * share
        return cls(
            steps=steps,
            refill=renewed[..., np.newaxis] * share,
            outlasting=(1.0 + UNEVEN * outside) / (steps * steps),
            drift_share=0.5 + 2.0 * outside,
        )

"""What happened to each request."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sim_cluster.serving.arrivals import Arrivals
from sim_cluster.serving.compiled.state import Floats, Records


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestResults:
    """One element a request, in order of arrival; NaN for what has not happened."""

    t_s: Floats
    """Arrival at the router. [s]"""
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    waiting_s: Floats
    """From arrival to the batch. [s]"""
    ttft_s: Floats
    """From arrival to the first token. [s]"""
    tpot_s: Floats
    """Mean gap between tokens; NaN for answers of one token too. [s]"""
    e2e_s: Floats
    """From arrival to the last token; NaN exactly if unfinished. [s]"""
    replica: NDArray[np.int32]
    """Number of the replica that served it last; -1 if none."""
    preemptions: NDArray[np.int32]

    @classmethod
    def of(cls, requests: Records, arrivals: Arrivals) -> Self:
        """Read from the records of the compiled loop."""
        gaps = arrivals.output_tokens - 1.0
        decode_s = requests["finished_s"] - requests["first_token_s"]
        return cls(
            t_s=arrivals.t_s,
            prompt_tokens=arrivals.prompt_tokens,
            output_tokens=arrivals.output_tokens,
            waiting_s=requests["admitted_s"] - arrivals.t_s,
            ttft_s=requests["first_token_s"] - arrivals.t_s,
            tpot_s=np.divide(decode_s, gaps, out=np.full(gaps.size, np.nan), where=gaps > 0),
            e2e_s=requests["finished_s"] - arrivals.t_s,
            replica=requests["replica"].copy(),
            preemptions=requests["preemptions"].copy(),
        )

"""The API server under test, by the switch that all of the tests share: `SIM_BACKEND`."""

import contextlib
import os
from pathlib import Path

import pytest


@contextlib.contextmanager
def running_api(folder):
    """Yield the kubeconfig of an API server: in memory, the real one, or the one you name."""
    backend = os.environ.get("SIM_BACKEND", "memory")
    if backend == "kubeconfig":
        yield Path(os.environ["KUBECONFIG"])
        return
    pytest.skip(f"not yet: {backend}")

"""
How functions are compiled: ahead of the first call, kept on disk, and never stale.

Numba notices a change of the file that holds a cached function, not of the files it calls
into. The cache folder therefore carries a digest of every file of this package.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba.core.config
import numba.core.options
from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

HERE = Path(__file__).parent

OPTIONS: dict[str, Any] = {"error_model": "numpy", "forceinline": True}
"""Division as numpy does it, and one large function: arguments are then no copies."""

if hasattr(numba.core.options.DefaultOptions, "_nrt"):
    # No array is created in here, so nobody has to count references: 15 times as fast.
    OPTIONS["_nrt"] = False


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that other compiled functions call."""
    inner: Callable[P, R] = njit(function, **OPTIONS)
    return inner


def entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls; the machine code is kept on disk if possible."""
    config: Any = numba.core.config
    configured = config.CACHE_DIR
    config.CACHE_DIR = str(_cache_folder())
    try:
        kept: Callable[P, R] = njit(function, cache=True, **OPTIONS)
    except (RuntimeError, OSError):  # no folder can be written: compile in memory
        return compiled(function)
    finally:
        config.CACHE_DIR = configured
    return kept


def _cache_folder() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / _digest()
    beside = HERE / "__pycache__"
    if os.access(beside if beside.exists() else HERE, os.W_OK):
        return beside / f"numba-{_digest()}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fleetline" / f"numba-{_digest()}"


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

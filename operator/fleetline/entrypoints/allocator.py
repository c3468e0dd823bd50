"""
One setting of the C library's allocator: how many arenas threads spread their memory over.

glibc gives each new thread an arena of its own, up to eight for each core, and what one has freed
the others do not use. A few threads that each read large answers hold a few times what they need.
"""

import ctypes
import sys
from typing import Final

M_ARENA_MAX: Final = -8
"""Of `mallopt` in glibc's malloc.h; the same as the variable MALLOC_ARENA_MAX."""

ARENAS: Final = 2


def share_memory() -> bool:
    """Have threads share their arenas; says whether that was possible: elsewhere there are none."""
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return set_option is not None and bool(set_option(M_ARENA_MAX, ARENAS))

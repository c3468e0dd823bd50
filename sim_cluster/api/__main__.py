"""
Start the in-memory API server alone.

    python -m sim_cluster.api --port 6443 --kubeconfig FILE
"""

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

from sim_cluster.api.server import MemoryApi


async def serve(port: int, kubeconfig: Path, *, is_secure: bool) -> None:
    """Serve until SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with MemoryApi(port, is_secure=is_secure) as api:
        api.write_kubeconfig(kubeconfig)
        print(f"ready kubeconfig={kubeconfig} url={api.url}", flush=True)
        await stopped.wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m sim_cluster.api", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="written when ready")
    parser.add_argument("--insecure", action="store_true", help="plain HTTP instead of TLS")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(arguments.port, arguments.kubeconfig, is_secure=not arguments.insecure))


if __name__ == "__main__":
    main()

"""What a command left behind: processes by what they were told, ports by who listens."""

import socket
from pathlib import Path
from urllib.parse import urlsplit


def processes_that_mention(text):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command:
            found.append(command)
    return found


def is_open(url):
    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0

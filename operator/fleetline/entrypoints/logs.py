"""The log: one JSON object a line, on standard error."""

import json
import logging
import time
from typing import Final

LOGGER: Final = logging.getLogger("fleetline")


def log_line(event: str, **fields: object) -> str:
    """Write an event with its fields."""
    return json.dumps({"event": event, **fields})


class _JsonFormatter(logging.Formatter):
    """One JSON object a line; lines that are JSON already are passed through."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        message = record.getMessage()
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
        }
        if message.startswith("{"):
            return json.dumps({**line, **json.loads(message)})
        line |= {"event": message}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure_logging(level: str) -> None:
    """Log JSON lines to standard error; libraries only from warnings on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOGGER.setLevel(level.upper())
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)  # "signals are ignored"

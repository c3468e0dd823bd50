"""Timestamps as Kubernetes writes them."""

from __future__ import annotations

import datetime as dt


def now() -> str:
    """Time of day for a `metav1.Time` field: whole seconds, UTC."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro() -> str:
    """Time of day for a `metav1.MicroTime` field."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> float:
    """Seconds since 1970 of either form."""
    return dt.datetime.fromisoformat(text).timestamp()

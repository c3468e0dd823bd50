"""Fleetline sizes LLM serving fleets to their latency objective."""

__version__ = "0.1.0"

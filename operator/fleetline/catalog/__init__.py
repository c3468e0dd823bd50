"""Data: accelerators, models and prices; every number with a unit in its key and a source."""

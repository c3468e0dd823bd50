"""The ports made real: all I/O, all foreign shapes, all foreign units."""

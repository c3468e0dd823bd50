"""A cluster small enough for a laptop: serving replicas in virtual time, and the same ones live."""

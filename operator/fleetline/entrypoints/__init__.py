"""Who is calling: kopf, or a person at the command line."""

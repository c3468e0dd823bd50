"""How many replicas should there be?  A situation in, a decision out."""

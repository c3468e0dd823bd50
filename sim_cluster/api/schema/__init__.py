"""What an object may look like: its schema, and what follows from it."""

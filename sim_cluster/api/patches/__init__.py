"""Ways to change an object without sending all of it."""

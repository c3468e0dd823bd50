"""One module a command: arguments in, a table or JSON out; no arithmetic."""

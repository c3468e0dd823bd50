"""The built-in kinds of Kubernetes: facts extracted from its published API, and what we add."""

"""An in-memory Kubernetes API server: one process, no root, the wire format of the real one."""

"""
An in-memory Kubernetes API server: one process, no root, the wire format of the real one.

Where to look:

- `server.py`     a request from the socket to its answer; `requests.py` what it asks for
- `storage.py`    objects as bytes under one counter; `watch_cache.py` who hears of changes
- `writing.py`    create, replace, apply; `patching.py`, `deleting.py`, `reading.py` the rest
- `patches/`      JSON, merge and strategic merge patches; field ownership and server-side apply
- `schema/`       structural schemas: unknown fields, defaults, validation, CEL
- `builtin/`      the built-in kinds: facts extracted from Kubernetes v1.37.2, defaults, checks
- `rbac.py`, `authentication.py`, `access.py`, `tls.py`   who may do what
- `faults.py`, `counts.py`   what tests turn and read

`tests/conformance` asks this server and the real one the same questions. Known differences, all of
them in what clients do not decide by:

- objects in lists carry `kind` and `apiVersion` for built-in kinds too
- texts of malformed bodies and selectors, and the order of several schema errors, are our own
- ResourceQuota, LimitRange, webhooks and admission policies are stored with a warning, not enforced
- no logs, exec, attach, port-forward (501); no OpenAPI v2, no CBOR; protobuf is read, never sent
- CEL rules are compiled without the types of the schema: a rule about a field that does not exist
  is found when it is evaluated, not when the definition is created
- privilege escalation through roles is not checked; cost limits of CEL do not exist
- field owners within a new built-in object differ in a few struct-valued fields (`f:x: {".": {}}`)
"""

"""The status of a pod in one word, as `kubectl get pods` shows it."""

from sim_cluster.api.errors import Json


def ready_count(pod: Json) -> str:
    """Ready containers of all containers."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len((pod.get('spec') or {}).get('containers') or ())}"


def shown_status(pod: Json) -> str:
    """The phase, or the reason of the container that matters most."""
    status = pod.get("status") or {}
    word = status.get("reason") or status.get("phase") or ""
    for condition in status.get("conditions") or ():
        is_gated = condition.get("reason") == "SchedulingGated"
        if condition["type"] == "PodScheduled" and is_gated:
            word = "SchedulingGated"
    for container in reversed(status.get("containerStatuses") or ()):
        word = _container_word(container.get("state") or {}) or word
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(word)


def _container_word(state: Json) -> str:
    if waiting := state.get("waiting"):
        return str(waiting.get("reason") or "")
    if (ended := state.get("terminated")) is not None:
        if ended.get("reason"):
            return str(ended["reason"])
        if ended.get("signal"):
            return f"Signal:{ended['signal']}"
        return f"ExitCode:{ended.get('exitCode', 0)}"
    return ""

"""Where the API server is, and with whose credentials: as a kubeconfig says, or the pod's files."""

from pathlib import Path
from typing import Any, Final

from kubernetes.aio import client
from kubernetes.aio import config as kubernetes_config

from fleetline.errors import FleetlineError

config: Any = kubernetes_config
"""The generated client is untyped in places."""

CONNECTIONS: Final = 16


async def read_configuration(kubeconfig: Path | None) -> Any:
    """
    Read the configuration as it is now; without a kubeconfig, that of the pod.

    Raises
    ------
    FleetlineError
        If it cannot be read.
    """
    settings = client.Configuration()
    try:
        if kubeconfig is None:
            config.load_incluster_config(client_configuration=settings)
        else:
            await config.load_kube_config(
                config_file=str(kubeconfig), client_configuration=settings, persist_config=False
            )
    except (config.ConfigException, OSError) as error:
        raise FleetlineError(f"cannot read the Kubernetes configuration: {error}") from None
    settings.connection_pool_maxsize = CONNECTIONS
    settings.retries = None
    settings.client_session_kwargs = {"trust_env": False}
    return settings

"""The client of the API server: what goes wrong on the way is told as something to try again."""

from pathlib import Path

import pytest

from fleetline.adapters.api_client import ApiClient
from fleetline.errors import ObservationError
from tests.entrypoints.world import World


async def test_credentials_that_cannot_be_read_anew_are_tried_again(
    world: World, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(Path(world.kubeconfig).read_bytes())
    api = ApiClient(kubeconfig, deadline_s=2.0)
    await api.connect()
    kept = kubeconfig.rename(tmp_path / "kept")
    world.api.faults.fail(401, resource="pods", times=2)
    try:
        with pytest.raises(ObservationError, match="cannot read the Kubernetes configuration"):
            await api.get("/api/v1/pods")
        kept.rename(kubeconfig)

        assert (await api.get("/api/v1/pods"))["kind"] == "PodList"
    finally:
        await api.close()

import pytest

from fleetline.model.replica import Replica
from tests.model.deployments import replica


@pytest.fixture
def chat_replica() -> Replica:
    """Llama-3.1-8B in bf16 on one H100."""
    return replica()

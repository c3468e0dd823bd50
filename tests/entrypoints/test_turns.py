"""Turns outlive rounds, and sometimes their fleets."""

import asyncio
from typing import Any

from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.settings import Settings
from fleetline.entrypoints.acting import MayAct
from fleetline.entrypoints.observing import Seen
from fleetline.entrypoints.turns import Turns, World

INVALID = {"metadata": {"namespace": "default", "name": "chat", "uid": "1"}, "spec": {}}


class SlowReporter:
    """Tells when it is let."""

    def __init__(self) -> None:
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    def status_of(self, _: Any) -> dict[str, Any]:
        return {}

    async def tell(self, *_: Any, **__: Any) -> None:
        self.asked.set()
        await self.let.wait()


async def test_a_turn_that_ends_after_its_fleet_was_deleted_is_forgotten_with_it() -> None:
    reporter: Any = SlowReporter()
    nothing: Any = None  # an invalid spec is told without them
    world = World(
        reader=nothing,
        cluster=nothing,
        metrics=nothing,
        prometheus=nothing,
        reporter=reporter,
        own=OwnMetrics(),
    )
    turns = Turns(world, Settings(prometheus_url=""))
    turns.keep(["1"])
    turn = asyncio.create_task(turns.take("1", INVALID, None, Seen(at_s=0.0), MayAct()))
    await reporter.asked.wait()
    turns.keep([])
    reporter.let.set()
    await turn
    assert turns.decided_s.keys() == {"1"}

    turns.keep([])

    assert turns.decided_s == {}

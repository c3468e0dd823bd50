"""How far clocks differ is told by the beginning of an answer, however long its body takes."""

import asyncio
import email.utils
import time

from aiohttp import web

from fleetline.adapters.prometheus import Prometheus
from tests.entrypoints.fake_prometheus import FakePrometheus

SLOW_S = 3.0


async def slow_body(request: web.Request) -> web.StreamResponse:
    date = email.utils.formatdate(time.time(), usegmt=True)
    response = web.StreamResponse(headers={"Date": date})
    await response.prepare(request)
    await asyncio.sleep(SLOW_S)
    await response.write(b'{"status":"success","data":{"resultType":"vector","result":[]}}')
    return response


async def test_a_slow_body_is_no_skew() -> None:
    async with FakePrometheus(fault=slow_body) as fake:
        prometheus = Prometheus(fake.url, deadline_s=10.0)
        await prometheus.query("up")
        prometheus.close()

    assert prometheus.clock_skew_s is not None
    assert abs(prometheus.clock_skew_s) < SLOW_S - 1.0

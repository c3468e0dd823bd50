"""Questions of one round: all are answered, or none is waited for."""

import asyncio

import pytest

from fleetline.adapters.prometheus import Failure, PrometheusError, together


async def test_a_failed_question_gives_up_the_others() -> None:
    given_up = asyncio.Event()

    async def slow() -> tuple[str, ...]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            given_up.set()
            raise
        return ()

    async def failing() -> tuple[str, ...]:
        await asyncio.sleep(0)
        raise PrometheusError(Failure.QUERY_ERROR, "cannot query Prometheus: no")

    with pytest.raises(PrometheusError):
        await together(slow(), failing())

    async with asyncio.timeout(1):
        await given_up.wait()


async def test_answers_come_in_the_order_of_the_questions() -> None:
    async def answer(text: str, after_s: float) -> tuple[str, ...]:
        await asyncio.sleep(after_s)
        return (text,)

    assert await together(answer("one", 0.02), answer("two", 0.0)) == [("one",), ("two",)]

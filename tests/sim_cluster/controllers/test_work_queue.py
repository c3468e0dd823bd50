"""The work queue: nothing twice, nothing lost, failures later and later."""

import asyncio

from sim_cluster.controllers.work_queue import WorkQueue


async def test_a_key_that_waits_is_not_added_twice():
    queue = WorkQueue()

    queue.add("a")
    queue.add("a")

    assert await queue.take() == "a"
    assert len(queue) == 0


async def test_a_key_in_work_is_given_again_only_after_it_is_done():
    queue = WorkQueue()
    queue.add("a")
    await queue.take()

    queue.add("a")

    assert len(queue) == 0
    queue.done("a")
    assert await queue.take() == "a"


async def test_the_earlier_of_two_delays_counts():
    queue = WorkQueue()
    loop = asyncio.get_running_loop()
    before = loop.time()

    queue.add_after("a", 30)
    queue.add_after("a", 0.01)
    queue.add_after("a", 60)

    await queue.take()
    assert loop.time() - before < 30


async def test_each_failure_waits_longer_and_success_forgets():
    queue = WorkQueue()
    loop = asyncio.get_running_loop()
    waits = []

    for _ in range(3):
        before = loop.time()
        queue.failed("a")
        queue.done(await queue.take())
        waits.append(loop.time() - before)

    assert waits[0] >= 0.05
    assert waits[2] >= 0.2
    queue.succeeded("a")
    queue.close()


async def test_waiting_workers_share_what_comes():
    queue = WorkQueue()
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)

    for key in "abc":
        queue.add(key)

    assert sorted(await asyncio.gather(*workers)) == ["a", "b", "c"]

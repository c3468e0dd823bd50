"""Problems that users of other autoscalers reported, replayed against this one."""

from dataclasses import replace
from itertools import pairwise

import pytest

from fleetline.control.capacity import capacity_of
from fleetline.control.fleet import Fleet
from fleetline.control.lengths import LearnedLengths
from fleetline.control.memory import Memory
from fleetline.control.ports import Observations, Pod, Reading, Target, unknown
from fleetline.control.turn import Turn, take_turn
from fleetline.model.calibration import CalibrationState
from fleetline.model.objective import Metric, Objective
from fleetline.policy.decision import Reason
from tests.control.fakes import OBJECTIVE, FakeCluster, a_fleet, a_replica, a_target, pods, seen

PERIOD_S = 15.0
NOTHING = unknown("no requests to average")


async def steps(
    cluster: FakeCluster, views: list[Observations | str], fleet: Fleet | None = None
) -> list[Turn]:
    memory, taken = Memory(), []
    for index, view in enumerate(views):
        turn = await take_turn(
            fleet or a_fleet(), memory, cluster, view, now_s=index * PERIOD_S, period_s=PERIOD_S
        )
        memory = turn.memory
        taken.append(turn)
    return taken


def idle(replicas: int) -> Observations:
    """No traffic: latencies and lengths have nothing to average, which Prometheus shows as NaN."""
    return seen(
        0.0,
        replicas=replicas,
        prompt_tokens=NOTHING,
        output_tokens=NOTHING,
        time_to_first_token_s=NOTHING,
        latency_percentiles_s={str(OBJECTIVE): NOTHING},
    )


async def test_without_traffic_averages_are_unknown_and_the_fleet_still_shrinks() -> None:
    cluster = FakeCluster(a_target(4))

    await steps(cluster, [idle(4)] * 60)

    assert cluster.target.replicas == 1


async def test_traffic_that_stops_lets_the_fleet_go_to_its_minimum() -> None:
    cluster = FakeCluster(a_target(2))

    await steps(cluster, [*[seen(40.0, replicas=20)] * 20, *[idle(20)] * 160])

    assert cluster.target.replicas == 1


async def test_a_mean_over_hardly_any_requests_changes_no_lengths() -> None:
    lengths = LearnedLengths()
    normal = lengths.observe(seen(10.0), 0.0, dispersion=1.0)
    # 400 tokens/s over 0.02 requests/s: a "mean" of 20,000 tokens from one request.
    wild = seen(0.02, output_tokens=Reading(20_000.0))

    assert normal.observe(wild, 60.0, dispersion=1.0) == normal


async def test_a_step_of_load_is_answered_once_while_replicas_start() -> None:
    cluster = FakeCluster(a_target(2), start_at_once=False)

    taken = await steps(cluster, [*[seen(20.0, replicas=2)] * 30, *[seen(60.0, replicas=2)] * 16])

    raises = [turn for turn in taken if turn.wrote and turn.now_s >= 30 * PERIOD_S]
    assert len(raises) <= 3
    assert max(cluster.written) <= 8


async def test_a_pod_without_a_node_does_not_keep_the_fleet_up() -> None:
    stuck = Pod(
        name="stuck",
        created_s=-3600.0,
        is_scheduled=False,
        unschedulable_because="0/4 nodes are available",
    )
    cluster = FakeCluster(a_target(4, pods=(*pods(3), stuck)))

    await steps(cluster, [idle(3)] * 60)

    assert cluster.target.replicas == 1


async def test_a_target_that_one_request_alone_misses_adds_no_replicas() -> None:
    impossible = Objective(metric=Metric.TIME_TO_FIRST_TOKEN, percentile=95, target_s=0.001)
    fleet = a_fleet(objectives=(impossible,))
    cluster = FakeCluster(a_target(1))

    taken = await steps(cluster, [seen(2.0)] * 20, fleet)

    capacity = taken[-1].assessment.capacity
    assert capacity is not None
    assert capacity.unattainable == (impossible,)
    assert cluster.target.replicas == 1


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
async def test_more_replicas_at_the_same_load_ask_for_no_other_count(replicas: int) -> None:
    taken = await steps(FakeCluster(a_target(replicas)), [seen(40.0, replicas=replicas)])
    alone = await steps(FakeCluster(a_target(1)), [seen(40.0)])

    assert taken[0].decision.recommended_replicas == alone[0].decision.recommended_replicas


async def test_one_absurd_prediction_is_limited_by_the_behavior() -> None:
    cluster = FakeCluster(a_target(2))

    taken = await steps(cluster, [seen(1e6, replicas=2)], a_fleet(max_replicas=1000))

    assert taken[0].decision.desired_replicas == 6
    assert taken[0].decision.binding.reason is Reason.SCALE_UP_LIMIT


async def test_pods_that_are_terminating_are_neither_capacity_nor_missing() -> None:
    leaving = tuple(replace(pod, name=f"old-{pod.name}", is_terminating=True) for pod in pods(9))
    cluster = FakeCluster(a_target(1, pods=(*pods(1), *leaving)))

    taken = await steps(cluster, [seen(1.0, replicas=1)])

    assert taken[0].assessment.situation.health.ready == 1
    assert taken[0].assessment.situation.incomplete_because == ""


async def test_a_pod_that_never_becomes_ready_is_replaced_by_another() -> None:
    lost = Pod(name="lost", created_s=-4000.0, ready_since_s=None)
    cluster = FakeCluster(a_target(3, pods=(*pods(2), lost)))

    taken = await steps(cluster, [seen(44.0, replicas=2)])

    assert taken[0].decision.desired_replicas > (taken[0].decision.recommended_replicas or 0)


async def test_requests_that_wait_in_front_of_the_engines_count() -> None:
    quiet = FakeCluster(a_target(2))
    queued = FakeCluster(a_target(2))

    before = await steps(quiet, [seen(10.0, replicas=2)])
    after = await steps(queued, [seen(10.0, replicas=2, waiting=2000.0)])

    assert after[0].decision.desired_replicas > before[0].decision.desired_replicas


async def test_when_arrivals_are_lost_what_is_inside_still_raises() -> None:
    blind = seen(
        0.0,
        replicas=1,
        arrival_rate_per_s=unknown("the counter is gone"),
        running_requests=Reading(1500.0),
    )
    cluster = FakeCluster(a_target(1))

    await steps(cluster, [blind] * 3)

    assert cluster.target.replicas > 1


async def test_a_replica_that_is_not_understood_is_raised_by_its_latency() -> None:
    slow = seen(10.0, replicas=4, latency_percentiles_s={str(OBJECTIVE): Reading(0.2)})
    cluster = FakeCluster(a_target(4, replica=None, replica_unknown_because="no GPU label"))

    taken = await steps(cluster, [slow])

    assert taken[0].decision.desired_replicas == 5
    assert taken[0].decision.binding.reason is Reason.LATENCY_ABOVE_OBJECTIVE


def test_ceilings_are_remembered_through_noise() -> None:
    lengths = LearnedLengths()
    shapes = set()
    for index in range(40):
        noisy = seen(10.0, prompt_tokens=Reading(1500.0 + (-1) ** index * 20.0))
        lengths = lengths.observe(noisy, index * PERIOD_S, dispersion=1.4)
        shapes.add(lengths.shape)

    assert len(shapes) <= 2


def test_the_ceiling_of_a_larger_fleet_is_never_smaller() -> None:
    capacity = capacity_of(a_replica(), CalibrationState(), LearnedLengths().shape, (OBJECTIVE,))
    rates = [capacity.ceiling_at(replicas).rate_per_s for replicas in range(1, 200)]

    assert all(after >= before * 0.999 for before, after in pairwise(rates))


async def test_a_target_made_anew_has_no_history() -> None:
    cluster = FakeCluster(a_target(8, uid="old"))
    memory = Memory()
    for index in range(30):
        turn = await take_turn(
            a_fleet(max_replicas=8),
            memory,
            cluster,
            seen(200.0, replicas=8),
            now_s=index * PERIOD_S,
            period_s=PERIOD_S,
        )
        memory = turn.memory
    cluster.target = Target(
        replicas=3, resource_version="9", uid="new", pods=pods(3), replica=a_replica()
    )

    turn = await take_turn(
        a_fleet(max_replicas=8),
        memory,
        cluster,
        seen(0.0, replicas=3),
        now_s=30 * PERIOD_S,
        period_s=PERIOD_S,
    )

    assert turn.memory.history.complete_since_s == 30 * PERIOD_S
    assert turn.found_changed_from is None

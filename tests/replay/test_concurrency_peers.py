"""Knative, AIBrix, Ray Serve, KubeAI and SkyServe, against worked examples."""

import pytest

from fleetline.replay.baselines import aibrix, kpa, kubeai, ray_serve, skyserve
from fleetline.replay.baselines.window import Window
from fleetline.replay.observation import Observation
from tests.replay.looks import look, sample


def steady(in_flight_each: int, replicas: int, now_s: float) -> Observation:
    return look([sample(in_flight_each)] * replicas, now_s=now_s)


def test_knative_averages_a_minute_over_its_target() -> None:
    parameters = kpa.KpaParameters(target=10.0)
    state = kpa.begin(parameters, 1)
    desired = 0
    for tick in range(31):
        state, desired = kpa.step(parameters, state, look([sample(15)], now_s=2.0 * tick))

    # 15 / 10 rounded up is 2; 2 / 1 ready is at the panic threshold
    assert desired == 2
    assert state.panic_since_s == 60.0


def test_knative_panics_on_six_seconds_and_then_never_falls() -> None:
    parameters = kpa.KpaParameters(target=10.0)
    state = kpa.begin(parameters, 1)
    for tick in range(30):
        state, _ = kpa.step(parameters, state, steady(5, 1, 2.0 * tick))
    for tick in range(30, 33):
        state, high = kpa.step(parameters, state, steady(90, 1, 2.0 * tick))
    for tick in range(33, 40):
        state, later = kpa.step(parameters, state, steady(1, 9, 2.0 * tick))

    # three samples of 90 over the panic window: 90 / 10 = 9
    assert high == 9
    assert later == 9


def test_knative_leaves_panic_a_minute_after_the_threshold() -> None:
    parameters = kpa.KpaParameters(target=10.0)
    state = kpa.begin(parameters, 4)
    counts = []
    for tick in range(33):
        state, desired = kpa.step(parameters, state, steady(5, 4, 2.0 * tick))
        counts.append(desired)

    # it starts in panic at 4; 20 in flight over 10 are 2 once that has ended, after 60 s
    assert counts[30] == 4
    assert counts[31] == 2


def test_knative_halves_at_most() -> None:
    parameters = kpa.KpaParameters(target=10.0)
    state = kpa.KpaState(in_flight=Window(60.0))

    assert kpa.step(parameters, state, steady(0, 8, 0.0))[1] == 4


def test_knative_without_data_does_not_decide() -> None:
    parameters = kpa.KpaParameters()

    assert kpa.step(parameters, kpa.begin(parameters, 1), look([], current=5))[1] == 5


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        pytest.param(0.52, 4, id="4 percent above is tolerated"),
        pytest.param(0.75, 6, id="1.5 times: ceil(6.0)"),
        pytest.param(2.0, 8, id="4 times is capped at double"),
        pytest.param(0.3, 3, id="0.6 times: ceil(2.4)"),
        pytest.param(0.0, 2, id="nothing is floored at half"),
    ],
)
def test_aibrix_apa_follows_the_ratio_within_its_rates(mean: float, expected: int) -> None:
    assert aibrix.apa_replicas(aibrix.ApaParameters(), 4, mean) == expected


def test_aibrix_apa_keeps_the_highest_of_five_minutes() -> None:
    parameters, state = aibrix.ApaParameters(), aibrix.ApaState()
    state, first = aibrix.apa_step(parameters, state, look([sample(kv=0.5)] * 4, now_s=0.0))
    state, soon = aibrix.apa_step(parameters, state, look([sample(kv=0.1)] * 4, now_s=10.0))
    _, late = aibrix.apa_step(parameters, state, look([sample(kv=0.1)] * 4, now_s=311.0))

    assert (first, soon, late) == (4, 4, 2)


def test_aibrix_kpa_divides_the_sum_so_that_the_number_of_pods_does_not_matter() -> None:
    parameters = aibrix.AibrixKpaParameters(target=10.0)
    begin = aibrix.AibrixKpaState(in_flight=Window(180.0))
    _, few = aibrix.kpa_step(parameters, begin, look([sample(20)] * 4))
    _, many = aibrix.kpa_step(parameters, begin, look([sample(10)] * 8))

    assert few == many == 8


def test_aibrix_kpa_halves_at_most() -> None:
    parameters = aibrix.AibrixKpaParameters(target=10.0)
    begin = aibrix.AibrixKpaState(in_flight=Window(180.0))

    assert aibrix.kpa_step(parameters, begin, look([sample(0)] * 9))[1] == 4


@pytest.mark.parametrize(
    ("ongoing", "expected"),
    [
        pytest.param(16.0, 8, id="twice the target doubles"),
        pytest.param(8.0, 4, id="on target stays"),
        pytest.param(5.0, 3, id="ceil(4 x 0.625)"),
    ],
)
def test_ray_serve_scales_by_the_ratio(ongoing: float, expected: int) -> None:
    assert ray_serve.replicas_for(ray_serve.RayServeParameters(), 4, ongoing) == expected


def test_ray_serve_waits_for_its_delays() -> None:
    parameters = ray_serve.RayServeParameters()
    state = ray_serve.begin(parameters, 1)
    ups = []
    for tick in range(4):
        state, desired = ray_serve.step(parameters, state, look([sample(8)], now_s=10.0 * tick))
        ups.append(desired)
    downs = []
    for tick in range(4, 70):
        seen = look([sample(0)] * 4, now_s=10.0 * tick)
        state, desired = ray_serve.step(parameters, state, seen)
        downs.append(desired)

    # up holds from t = 0, so it acts at 30 s; down from t = 40 s (tick 4), so at 640 s
    assert ups == [1, 1, 1, 4]
    assert downs.index(1) == 60


def test_skyserve_acts_after_fifteen_ticks_in_a_row() -> None:
    parameters, state = skyserve.SkyServeParameters(target_rate_per_s=2.0), skyserve.SkyServeState()
    counts = []
    for _ in range(15):
        state, desired = skyserve.step(parameters, state, look([sample()] * 2, rate=9.0))
        counts.append(desired)

    # ceil(9 / 2) = 5, and 300 s are 15 ticks of 20 s
    assert counts == [2] * 14 + [5]


def test_skyserve_forgets_its_ticks_when_one_disagrees() -> None:
    parameters = skyserve.SkyServeParameters(target_rate_per_s=2.0)
    state = skyserve.SkyServeState(ups=14)

    state, _ = skyserve.step(parameters, state, look([sample()] * 2, rate=4.0))

    assert state == skyserve.SkyServeState()


def test_kubeai_goes_down_after_three_lower_results() -> None:
    parameters = kubeai.KubeAiParameters(target_requests=10.0)
    state = kubeai.KubeAiState(Window(600.0))
    counts = []
    for tick in range(3):
        seen = look([sample(3)] * 4, now_s=10.0 * tick)
        state, desired = kubeai.step(parameters, state, seen)
        counts.append(desired)

    # 12 active over 10 want 2
    assert counts == [4, 4, 2]


def test_kubeai_averages_ten_minutes() -> None:
    parameters = kubeai.KubeAiParameters(target_requests=10.0)
    state = kubeai.KubeAiState(Window(600.0))
    state, _ = kubeai.step(parameters, state, look([sample(0)], now_s=0.0))

    _, desired = kubeai.step(parameters, state, look([sample(80)], now_s=10.0))

    # (0 + 80) / 2 = 40
    assert desired == 4

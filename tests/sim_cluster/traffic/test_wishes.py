"""Traffic that is asked for in JSON."""

from typing import Any

import pytest

from sim_cluster.traffic.wishes import read_arrivals, read_service


def test_a_shape_brings_arrivals() -> None:
    wish = {"service": "chat", "shape": "constant", "level_per_s": 10, "duration_s": 60}

    arrivals = list(read_arrivals(wish))

    assert len(arrivals) == pytest.approx(600, abs=100)


def test_a_service_is_in_the_default_namespace_unless_told() -> None:
    assert read_service({"service": "chat"}) == ("default", "chat")
    assert read_service({"service": "chat", "namespace": "code"}) == ("code", "chat")


def test_no_shape_is_no_traffic() -> None:
    assert list(read_arrivals({"service": "chat", "shape": "none"})) == []


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"shape": "sawtooth"}, id="unknown shape"),
        pytest.param({"shape": "constant"}, id="no rate"),
        pytest.param({"shape": "constant", "level_per_s": 1, "speed": 3}, id="unknown field"),
        pytest.param({"shape": "constant", "level_per_s": "many"}, id="a word for a number"),
    ],
)
def test_what_is_no_traffic_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|could not convert"):
        read_arrivals(wish)

"""Histograms and numbers as Prometheus reads them."""

import math

import pytest

from sim_cluster.nodes.exposition import braces, number
from sim_cluster.nodes.histogram import Histogram


def test_a_value_equal_to_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((0.1, 0.5))

    for value in (0.1, 0.2, 0.5, 0.6):
        histogram.observe(value)

    assert histogram.cumulative() == [1, 3, 4]
    assert histogram.sum == pytest.approx(1.4)


def test_one_observation_may_stand_for_many() -> None:
    histogram = Histogram((1.0,))

    histogram.observe(0.25, times=8)

    assert histogram.count == 8
    assert histogram.sum == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1.0"), (0.25, "0.25"), (math.nan, "NaN"), (math.inf, "Inf"), (1.5e9, "1500000000.0")],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    assert number(value) == text


def test_labels_are_sorted_and_escaped() -> None:
    assert braces({"b": 'say "hi"\n', "a": "c:\\"}) == '{a="c:\\\\",b="say \\"hi\\"\\n"}'

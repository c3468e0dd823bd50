"""Quantities, and what a pod asks for."""

import pytest

from sim_cluster.quantity import parse, requests_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8),
        ("500m", 0.5),
        ("1.5", 1.5),
        ("16Gi", 16 * 2**30),
        ("100Mi", 100 * 2**20),
        ("2k", 2000),
        ("1E", 1e18),
        ("1Ei", 2**60),
        ("12e6", 12e6),
        ("1e3", 1000),
        (4, 4),
    ],
)
def test_a_quantity_is_a_number_with_a_unit(text, number):
    assert parse(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "Gi", "1Q", "one"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="quantity must be a number with a unit suffix, got"):
        parse(text)


def container(cpu, **more):
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def test_containers_add_up_and_limits_stand_in_for_requests():
    limited = {"name": "d", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}}

    asked = requests_of({"spec": {"containers": [container("1"), limited]}})

    assert asked == {"cpu": 3, "nvidia.com/gpu": 1}


def test_the_largest_init_container_counts_if_it_is_larger():
    spec = {"containers": [container("1")], "initContainers": [container("3"), container("2")]}

    assert requests_of({"spec": spec}) == {"cpu": 3}


def test_a_sidecar_stays_beside_the_containers():
    sidecar = container("1", restartPolicy="Always")
    spec = {"containers": [container("2")], "initContainers": [sidecar]}

    assert requests_of({"spec": spec}) == {"cpu": 3}

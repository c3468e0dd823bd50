"""Every pod has a loopback address of its own, and leaves it when it goes."""

import socket
from itertools import islice

import pytest

from sim_cluster.nodes.addresses import AddressBook, loopback_addresses


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def can_bind(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


def test_addresses_are_many_and_all_different() -> None:
    first = list(islice(loopback_addresses(), 70_000))

    assert len(set(first)) == 70_000
    assert all(address.startswith("127.") for address in first)
    assert first[:2] == ["127.1.0.1", "127.1.0.2"]


def test_an_address_is_kept_until_it_is_given_back() -> None:
    book, port = AddressBook(most_sockets=10), free_port()
    address = book.take(port)
    taken = not can_bind(address, port)

    book.give_back(address)

    assert taken
    assert can_bind(address, port)


def test_two_simulations_never_share_an_address() -> None:
    port = free_port()
    mine, theirs = AddressBook(most_sockets=10), AddressBook(most_sockets=10)

    addresses = [mine.take(port), theirs.take(port), mine.take(port)]
    mine.close()
    theirs.close()

    assert len(set(addresses)) == 3


@pytest.mark.parametrize(("most_sockets", "port"), [(0, 8000), (10, None)])
def test_there_is_no_socket_where_none_is_wanted(most_sockets: int, port: int | None) -> None:
    book = AddressBook(most_sockets=most_sockets)

    address = book.take(port)

    assert book.socket_of(address) is None

"""Binary heaps, one in each row of two arrays: keys in order, and whom they belong to."""

from sim_cluster.serving.compiled.jit import compiled
from sim_cluster.serving.compiled.state import Ints


@compiled
def push(keys: Ints, ids: Ints, row: int, size: int, key: int, one: int) -> None:
    """Add to the heap of `size` elements in a row."""
    keys[row, size], ids[row, size] = key, one
    rise(keys, ids, row, size)


@compiled
def remove(keys: Ints, ids: Ints, row: int, size: int, place: int) -> None:
    """Take the element at a place out of the heap of `size` elements in a row."""
    last = size - 1
    keys[row, place], ids[row, place] = keys[row, last], ids[row, last]
    if place < last:
        sink(keys, ids, row, last, place)
        rise(keys, ids, row, place)


@compiled
def rise(keys: Ints, ids: Ints, row: int, place: int) -> None:
    """Move an element up to where it belongs."""
    key, one = keys[row, place], ids[row, place]
    while place > 0:
        above = (place - 1) >> 1
        if keys[row, above] <= key:
            break
        keys[row, place], ids[row, place] = keys[row, above], ids[row, above]
        place = above
    keys[row, place], ids[row, place] = key, one


@compiled
def sink(keys: Ints, ids: Ints, row: int, size: int, place: int) -> None:
    """Move an element down to where it belongs."""
    key, one = keys[row, place], ids[row, place]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and keys[row, below + 1] < keys[row, below]:
            below += 1
        if keys[row, below] >= key:
            break
        keys[row, place], ids[row, place] = keys[row, below], ids[row, below]
        place = below
    keys[row, place], ids[row, place] = key, one


@compiled
def find(ids: Ints, row: int, size: int, one: int) -> int:
    """Place of an element, or -1."""
    for place in range(size):
        if ids[row, place] == one:
            return place
    return -1

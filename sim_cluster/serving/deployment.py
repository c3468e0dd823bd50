"""Keeping as many replicas as were asked for: creation, readiness, draining, loss."""

import heapq
import math
from enum import IntEnum, StrEnum

import numpy as np

from fleetline.errors import ModelError
from sim_cluster.serving import arrays, viewing
from sim_cluster.serving.compiled.loop import run_until
from sim_cluster.serving.compiled.state import NOBODY, State
from sim_cluster.serving.lives import (
    Ending,
    Inventory,
    ReplicaLife,
    Surge,
    Victims,
    births,
    victims,
)
from sim_cluster.serving.startup import StartupTime


class Loss(StrEnum):
    """What becomes of the requests of a replica that dies."""

    RETRIED = "retried"
    """The router sends them again, from the beginning; their clock runs on."""
    FAILED = "failed"


class _Due(IntEnum):
    READY = 0
    REPLACE = 1


REPLACEMENT_DELAY_S = 340.0
"""A lost node is noticed after 40 s and its pods are replaced 300 s later (Kubernetes defaults)."""


class Deployment:
    """The replicas of a fleet, and the compiled state of those that serve."""

    def __init__(
        self,
        state: State,
        *,
        startup: StartupTime,
        random: np.random.Generator,
        inventory: Inventory | None,
        victims: Victims,
        loss: Loss,
        surge: Surge,
    ) -> None:
        self.state = state
        self.lives: list[ReplicaLife] = []
        self.living: list[ReplicaLife] = []
        """Those that have not ended."""
        self.now_s = 0.0
        self.asked = 0
        self.revision = 0
        self.past_areas = viewing.PhaseAreas()
        self._startup = startup
        self._random = random
        self._inventory = inventory
        self._victims = victims
        self._loss = loss
        self._surge = surge
        self._free_slots = list(range(state.replicas.size))[::-1]
        self._due: list[tuple[float, int, _Due, ReplicaLife]] = []
        self._promises = 0

    def begin_with(self, replicas: int) -> None:
        """Have so many replicas ready at once."""
        self.asked = replicas
        for _ in range(replicas):
            life = self._create()
            if math.isnan(life.created_s):
                continue
            self._become_ready(life)

    def run(self, to_s: float) -> None:
        """Let time pass; replicas become ready and drained on the way."""
        while self._due and self._due[0][0] <= to_s:
            due_s, _, what, life = heapq.heappop(self._due)
            self._run_requests(due_s)
            if what is _Due.REPLACE:
                self._end(life, Ending.NODE_LOST)
            elif life.is_alive and not life.is_lost:
                self._become_ready(life)
            self.reconcile()
        self._run_requests(to_s)

    def reconcile(self) -> None:
        """Create and remove what is asked for, and place what waits for accelerators."""
        while True:
            for life in self._to_remove():
                self._remove(life)
            wanted = births(
                self.living, asked=self.asked, revision=self.revision, surge=self._surge
            )
            for _ in range(wanted):
                self._begin_startup(self._create())
            if not wanted:
                break
        for life in self.living:
            if life.is_pending:
                self._place(life)
                self._begin_startup(life)

    def crash(self, number: int) -> None:
        """Let a serving replica lose everything and start again in place."""
        life = self.lives[number] if 0 <= number < len(self.lives) else None
        if life is None or life.slot is None:
            raise ModelError(f"number must be that of a serving replica, got {number}")
        lost = self._stop_serving(life)
        if life.is_draining:
            self._end(life, Ending.DRAINED)
        else:
            life.restarts += 1
            self._begin_startup(life)
        self._lose(lost)

    def lose_node(self, node: int, replacement_delay_s: float) -> None:
        """Take a node and its replicas away."""
        if self._inventory is None or not 0 <= node < self._inventory.nodes:
            raise ModelError(f"node must be a node of the inventory, got {node}")
        self._inventory.lost.add(node)
        lost: list[int] = []
        for life in [life for life in self.living if life.node == node]:
            lost += self._stop_serving(life) if life.slot is not None else []
            life.is_lost = True
            self._promise(replacement_delay_s, _Due.REPLACE, life)
        self._lose(lost)

    def restore_node(self, node: int) -> None:
        """Give a node back."""
        if self._inventory is not None:
            self._inventory.lost.discard(node)
            self.reconcile()

    def _run_requests(self, to_s: float) -> None:
        router = self.state.router
        while (slot := run_until(self.state, to_s)) != NOBODY:
            self.now_s = float(router["now_s"][0])
            self._end(self.lives[int(self.state.replicas["life"][slot])], Ending.DRAINED)
            self.reconcile()
        self.now_s = float(router["now_s"][0])

    def _to_remove(self) -> list[ReplicaLife]:
        loads = self.state.loads

        def load_of(life: ReplicaLife) -> float:
            idlest = self._victims is Victims.IDLEST and life.slot is not None
            return float(loads[life.slot]) if idlest else 0.0

        return victims(
            self.living,
            asked=self.asked,
            revision=self.revision,
            surge=self._surge,
            load_of=load_of,
        )

    def _create(self) -> ReplicaLife:
        life = ReplicaLife(number=len(self.lives), revision=self.revision, requested_s=self.now_s)
        self.lives.append(life)
        self.living.append(life)
        self._place(life)
        return life

    def _place(self, life: ReplicaLife) -> None:
        if self._inventory is not None:
            life.node = self._inventory.place(self.living)
            if life.node is None:
                return
        life.created_s = self.now_s

    def _begin_startup(self, life: ReplicaLife) -> None:
        if not math.isnan(life.created_s):
            self._promise(self._startup.draw_s(self._random), _Due.READY, life)

    def _promise(self, in_s: float, what: _Due, life: ReplicaLife) -> None:
        self._promises += 1
        heapq.heappush(self._due, (self.now_s + in_s, self._promises, what, life))

    def _become_ready(self, life: ReplicaLife) -> None:
        if not self._free_slots:
            size = self.state.replicas.size
            self.state = arrays.grown(self.state, 2 * size)
            self._free_slots = list(range(size, 2 * size))[::-1]
        life.slot = self._free_slots.pop()
        life.ready_s = self.now_s
        arrays.clear_slot(self.state, life.slot, life=life.number, now_s=self.now_s)
        self._update_routable()

    def _update_routable(self) -> None:
        slots = [life.slot for life in self.living if life.slot is not None and life.is_alive]
        self.state.routable[: len(slots)] = slots
        self.state.router["routable"] = len(slots)

    def _remove(self, life: ReplicaLife) -> None:
        life.drain_began_s = self.now_s
        if life.slot is None:
            self._end(life, Ending.NODE_LOST if life.is_lost else Ending.NEVER_READY)
            return
        self._update_routable()
        if self.state.loads[life.slot] == 0:
            self._end(life, Ending.DRAINED)
        else:
            self.state.replicas["draining"][life.slot] = 1

    def _end(self, life: ReplicaLife, ending: Ending) -> None:
        if life.slot is not None:
            self._stop_serving(life)
        if math.isnan(life.ended_s):
            life.ended_s, life.ending = self.now_s, ending
            self.living.remove(life)

    def _stop_serving(self, life: ReplicaLife) -> list[int]:
        """Empty the slot of a replica; return the requests that it still had."""
        slot = life.slot
        if slot is None:
            return []
        self.past_areas += viewing.slot_areas(self.state, slot, now_s=self.now_s)
        lost = viewing.requests_in(self.state, slot)
        arrays.clear_slot(self.state, slot, life=NOBODY, now_s=self.now_s)
        life.slot = None
        self._free_slots.append(slot)
        self._update_routable()
        return lost

    def _lose(self, indexes: list[int]) -> None:
        """Put the requests of a dead replica back at the router, or give them up."""
        requests = self.state.requests
        for index in sorted(indexes):
            requests["admitted_s"][index] = requests["first_token_s"][index] = math.nan
            if self._loss is Loss.RETRIED:
                requests["earlier_tokens"][index] = 0.0
                requests["computed_tokens"][index] = 0
                requests["prefill_tokens"][index] = requests["prompt_tokens"][index]
                arrays.hold(self.state, index)

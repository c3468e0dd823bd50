"""
The composition root: builds the adapters, starts the watch, and keeps the loop going.

The loop is level-triggered: a full list every period is the truth, a wake-up only hastens it.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from typing import Final

from fleetline.adapters.api_client import ApiClient
from fleetline.adapters.api_failures import ApiError
from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.engines import EngineMetrics
from fleetline.adapters.events import EventWriter
from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.lease import Lease
from fleetline.adapters.metrics import OwnMetrics
from fleetline.adapters.prometheus import Prometheus
from fleetline.adapters.settings import Settings
from fleetline.adapters.snapshot import SnapshotReader
from fleetline.entrypoints.acting import Leading, MayAct
from fleetline.entrypoints.allocator import share_memory
from fleetline.entrypoints.handlers import Watcher
from fleetline.entrypoints.logs import configure_logging, log_line
from fleetline.entrypoints.pacing import Pace, spread_s
from fleetline.entrypoints.reporting import Reporter
from fleetline.entrypoints.rounds import Rounds
from fleetline.entrypoints.turns import World
from fleetline.entrypoints.web import Health, serving
from fleetline.errors import FleetlineError, ObservationError

LOGGER: Final = logging.getLogger("fleetline")

CRD_PATIENCE_S: Final = 30.0
"""Installers apply definitions and operator together: one may be seconds late. [s]"""

RETRY_S: Final = 2.0


class Operator:
    """Everything of one process."""

    def __init__(self, settings: Settings) -> None:
        """Build the adapters; nothing is read yet."""
        self.settings = settings
        self._api = ApiClient(settings.kubeconfig, deadline_s=settings.request_timeout_s)
        self._own = OwnMetrics()
        cluster = KubernetesCluster(self._api, load_catalog())
        self._prometheus = Prometheus(
            settings.prometheus_url,
            deadline_s=settings.prometheus_timeout_s,
            token_file=settings.prometheus_token_file,
            ca_file=settings.prometheus_ca_file,
        )
        engines = EngineMetrics(
            self._prometheus,
            pods_of=cluster.pods_of,
            period_s=settings.period_s,
            scrape_interval_s=settings.scrape_interval_s,
            namespace_label=settings.namespace_label,
            pod_label=settings.pod_label,
        )
        self._reader = SnapshotReader(self._api, settings.namespaces)
        world = World(
            reader=self._reader,
            cluster=cluster,
            metrics=engines,
            prometheus=self._prometheus,
            reporter=Reporter(
                self._api, EventWriter(self._api, instance=settings.identity), self._own
            ),
            own=self._own,
        )
        self._rounds = Rounds(world, settings)
        self._health = Health(self._rounds, settings)
        self._lease = Lease(
            self._api,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=settings.identity,
        )
        self._pace = Pace()

    async def run(self) -> None:
        """
        Run until SIGTERM or SIGINT.

        Raises
        ------
        FleetlineError
            If the operator may not read fleets, or the CRD is not installed.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._pace.ended.set)
        watcher = Watcher(
            lambda: _call_in(loop, self._pace.woken.set),
            kubeconfig=self.settings.kubeconfig,
            namespaces=self.settings.namespaces,
        )
        async with serving(self.settings, self._health, self._own) as ports:
            LOGGER.info(log_line("started", health_port=ports[0], metrics_port=ports[1]))
            await self._api.connect()
            election: asyncio.Task[None] | None = None
            try:
                await self._until_ready()
                self._reader.start()
                watcher.start()
                if self.settings.leader_election:
                    election = asyncio.create_task(self._lease.keep())
                await self._keep_going()
            finally:
                await self._end(election, watcher)

    def stop(self) -> None:
        """End soon, as after SIGTERM."""
        self._pace.ended.set()

    async def _until_ready(self) -> None:
        """Wait for an API server that lets us read fleets; say clearly if it never will."""
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        while not self._pace.ended.is_set():
            try:
                await self._reader.check()
            except ApiError as error:
                if error.status == 403:
                    raise FleetlineError(
                        f"the operator must be allowed to read fleets: {error}"
                    ) from None
                if error.status == 404 and loop.time() - started_s > CRD_PATIENCE_S:
                    raise FleetlineError(
                        "the CustomResourceDefinition servingfleets.fleetline.dev must be installed"
                    ) from None
                LOGGER.warning("the API server is not ready: %s", error)
            except ObservationError as error:
                LOGGER.warning("the API server is not ready: %s", error)
            else:
                return
            await self._pace.pause(RETRY_S)

    async def _keep_going(self) -> None:
        """Take rounds for ever: whatever a round meets, the next one comes."""
        loop = asyncio.get_running_loop()
        period_s = self.settings.period_s
        may_act = Leading(self._lease) if self.settings.leader_election else MayAct()
        failing, term = "", self._lease.term
        while not self._pace.ended.is_set():
            started_s = loop.time()
            self._pace.woken.clear()
            leads = may_act()
            self._health.stands_by = not leads
            self._own.leader.set(float(leads))
            if not leads:
                self._own.stand_by()
            elif term != self._lease.term:
                term = self._lease.term
                self._rounds.begin_anew()
            if leads:
                failing = await self._round(may_act, failing)
            due_s = spread_s(period_s) if leads else min(period_s, RETRY_S)
            await self._pace.until_due(started_s, due_s)

    async def _round(self, may_act: MayAct, failing: str) -> str:
        """Take one round; returns what failed, to be logged once and not at every round."""
        try:
            async with asyncio.timeout(4 * self.settings.request_timeout_s):
                await self._rounds.take(may_act, self._pace.woken)
        except (ObservationError, TimeoutError) as error:
            problem = str(error) or "reading the cluster took too long"
            self._own.failures.labels("ClusterUnreadable").inc()
            if not failing:
                LOGGER.warning("the round was dropped: %s", problem)
            return problem
        except Exception:
            self._own.failures.labels("Bug").inc()
            LOGGER.exception("the round met a bug")
            return "bug"
        if failing:
            LOGGER.info(log_line("recovered"))
        return ""

    async def _end(self, election: asyncio.Task[None] | None, watcher: Watcher) -> None:
        """End within the grace period, the Lease handed on."""
        grace_s = self.settings.grace_s
        await self._rounds.end(grace_s / 4)
        if election is not None:
            election.cancel()
            with contextlib.suppress(ObservationError, TimeoutError):
                await asyncio.wait_for(self._lease.release(), grace_s / 4)
        await asyncio.to_thread(watcher.stop, grace_s / 4)
        await self._reader.stop()
        self._prometheus.close()
        await self._api.close()
        LOGGER.info(log_line("ended"))


def run(settings: Settings) -> None:
    """Run the operator until it is told to end."""
    configure_logging(settings.log_level)
    share_memory()
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    await Operator(settings).run()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call from another thread, unless the loop is closed already."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)

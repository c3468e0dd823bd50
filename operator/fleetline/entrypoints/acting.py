"""Whether this process may write counts, asked right before each write."""

from fleetline.adapters.kubernetes import KubernetesCluster
from fleetline.adapters.lease import Lease
from fleetline.adapters.scale import TargetError
from fleetline.control.fleet import Fleet
from fleetline.control.ports import Target


class MayAct:
    """Whether this process may write counts: asked right before each write."""

    def __call__(self) -> bool:
        """Return True: a process without leader election always may."""
        return True


class Leading(MayAct):
    """May act while the Lease is held."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def __call__(self) -> bool:
        """Whether the Lease was renewed lately."""
        return self._lease.is_held


class Guarded:
    """The cluster, with writes refused once the Lease is lost."""

    def __init__(self, cluster: KubernetesCluster, may_act: MayAct) -> None:
        self._may_act = may_act
        self._cluster = cluster
        self.read_target = cluster.read_target

    async def write_replicas(self, fleet: Fleet, target: Target, replicas: int) -> None:
        """Write if that is still ours to do; TargetError if it is not, or fails."""
        if not self._may_act():
            raise TargetError("LeaseLost", "another replica of the operator holds the Lease")
        await self._cluster.write_replicas(fleet, target, replicas)

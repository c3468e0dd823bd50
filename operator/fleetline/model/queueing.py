"""
Queueing laws that hold whatever serves: Little, Erlang, Pollaczek and Khinchine, the drain.

    L = lambda W        W_q = lambda E[S^2] / (2 (1 - rho))        T_drain = B / (C - lambda)
"""

import math

from fleetline.errors import ModelError


def littles_law_concurrency(arrival_rate_per_s: float, residence_time_s: float) -> float:
    """Requests inside a boundary, L = lambda W. [requests]"""
    return arrival_rate_per_s * residence_time_s


def littles_law_residence_time_s(requests: float, arrival_rate_per_s: float) -> float:
    """Time inside a boundary, W = L / lambda. [s]"""
    return requests / arrival_rate_per_s


def amplification(loop_gain: float) -> float:
    """What a small lasting change of load becomes, 1 / (1 - g); infinite from g = 1 on."""
    return 1.0 / (1.0 - loop_gain) if loop_gain < 1.0 else math.inf


def drain_time_s(
    *, backlog_requests: float, capacity_per_s: float, arrival_rate_per_s: float
) -> float:
    """Time until a backlog is gone, B / (C - lambda); infinite without spare capacity. [s]"""
    if backlog_requests <= 0:
        return 0.0
    spare_per_s = capacity_per_s - arrival_rate_per_s
    return backlog_requests / spare_per_s if spare_per_s > 0 else math.inf


def erlang_c(servers: int, offered_load: float) -> float:
    """
    Probability that an arrival waits in M/M/c.

    Parameters
    ----------
    servers
        Servers c. >= 1
    offered_load
        Arrival rate times mean service time. [erlang], < c

    Raises
    ------
    ModelError
        If the load is not below the number of servers: the queue has no steady state.

    References
    ----------
    .. [1] A. K. Erlang, "Solution of some problems in the theory of probabilities of significance
           in automatic telephone exchanges", 1917; the recursion of Erlang B is numerically stable.
    """
    if not 0 <= offered_load < servers:
        raise ModelError(f"offered_load must be >= 0 and < servers ({servers}), got {offered_load}")
    blocked = 1.0
    for server in range(1, servers + 1):
        blocked = offered_load * blocked / (server + offered_load * blocked)
    utilization = offered_load / servers
    return blocked / (1.0 - utilization * (1.0 - blocked))


def single_server_wait_s(
    arrival_rate_per_s: float, service_s: float, service_square_s2: float
) -> float:
    """
    Mean wait in M/G/1 (Pollaczek-Khinchine); infinite at saturation. [s]

    `service_s` and `service_square_s2` are E[S] and E[S^2].
    """
    utilization = arrival_rate_per_s * service_s
    if utilization >= 1:
        return math.inf
    return arrival_rate_per_s * service_square_s2 / (2.0 * (1.0 - utilization))

"""
Simulated nodes and pods: a cluster's hardware, spoken to through the Kubernetes API alone.

    from sim_cluster.nodes import NodeSpec, simulate
    from sim_cluster.traffic.arrivals import draw_arrivals, read_trace
    from sim_cluster.traffic.lengths import LogNormalLengths
    from sim_cluster.traffic.shapes import CompressedDay

    async with simulate(kubeconfig_path_or_client, [NodeSpec(accelerator="H100-SXM", count=4)],
                        startup="lognormal(8s,0.2)", seed=1) as sim:
        sim.url           # control server: /sd /metrics /pods, POST /faults and /traffic (JSON)
        f"{sim.url}/sd"                           # give this to Prometheus as http_sd_configs
        sim.pods                                  # {(namespace, name): SimulatedPod}
        sim.faults.crash(("default", "chat-1"))   # and remove_node, scrape, fail_readiness, ...

        router = await sim.router("chat", namespace="default")      # follows the Service "chat"
        shape = CompressedDay(trough_per_s=2, peak_per_s=30, duration_s=200, burst_per_s=20)
        lengths = LogNormalLengths(mean_prompt_tokens=800, mean_output_tokens=150)
        await router.replay(draw_arrivals(shape, lengths, seed=1))  # or .begin(...), which returns
        await router.drain()                                        # until nothing is in flight
        router.truth.windows_met([Objective(...)], window_s=30)     # share of windows, 0..1
        router.truth.series(step_s=5)                               # rows for plots
        router.truth.samples                                        # queue, ready, ... by second
        sim.usage.accelerator_hours(namespace="default")            # from binding to end of drain
        router.in_flight, router.held, router.t_s                   # now

A pod is a serving replica if a container's command says which model: `vllm serve MODEL` (or
SGLang's launcher) with the engine's own options; the accelerator is the one of its node. Other pods
are Running and Ready and serve nothing. Every Ready replica answers on podIP:8000 (127.1.x.y, which
is this machine itself) with the engine's metrics.

Annotations of a pod: `sim.fleetline.dev/startup` (`8s`, `uniform(20s,40s)`, `lognormal(60s,0.4)`),
`sim.fleetline.dev/fail` (`image-pull`, `start`, `readiness`), `sim.fleetline.dev/model`.
"""

from sim_cluster.nodes.faults import ScrapeFault
from sim_cluster.nodes.node_specs import NodeSpec, read_node_specs
from sim_cluster.nodes.simulation import Simulation, simulate

__all__ = ["NodeSpec", "ScrapeFault", "Simulation", "read_node_specs", "simulate"]

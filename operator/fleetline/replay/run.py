"""One policy on one trace, from the first request to the last."""

import math
from dataclasses import dataclass
from typing import Final

from fleetline.replay.pilots import Pilot
from fleetline.replay.scenario import Scenario
from fleetline.replay.score import Score, score
from fleetline.replay.scrape import Scraper
from sim_cluster.serving.lives import ReplicaLife
from sim_cluster.serving.results import RequestResults

SCRAPE_PHASE: Final = 1 / 3
"""Scrapes fall this share of an interval after decisions, so that what is seen is old."""

PATIENCE_S: Final = 1800.0
"""How long after the trace requests may still finish. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What happened."""

    score: Score
    results: RequestResults
    lives: tuple[ReplicaLife, ...]


def run(pilot: Pilot, scenario: Scenario) -> Run:
    """Let a pilot steer the fleet through the trace; afterwards the count stays."""
    fleet, scraper = scenario.fleet(), Scraper()
    end_s = scenario.trace.duration_s
    scrapes_at_decisions = pilot.scrape_s <= pilot.period_s and pilot.scrape_s < scenario.scrape_s
    next_scrape_s = math.inf if scrapes_at_decisions else SCRAPE_PHASE * pilot.scrape_s
    scraped, decided, actions = 0, 0, 0
    while True:
        decision_s = decided * pilot.period_s
        now_s = min(decision_s, next_scrape_s)
        if now_s >= end_s:
            break
        fleet.advance(now_s)
        if now_s == next_scrape_s:
            scraped += 1
            next_scrape_s = (scraped + SCRAPE_PHASE) * pilot.scrape_s
            scraper.scrape(fleet.snapshot())
        if now_s == decision_s:
            decided += 1
            if scrapes_at_decisions:
                scraper.scrape(fleet.snapshot())
            asked = fleet.asked_replicas
            wanted = pilot.decide(fleet, scraper)
            if wanted != fleet.asked_replicas:
                fleet.scale(wanted)
            actions += wanted != asked
    fleet.advance(end_s)
    fleet.advance(end_s + PATIENCE_S)
    results, lives = fleet.results(), fleet.lives
    return Run(
        score=score(
            results,
            lives,
            scenario.objectives,
            until_s=end_s,
            accelerators=scenario.replica.accelerators,
            scale_actions=actions,
            price_usd_per_hour=scenario.price_usd_per_hour,
        ),
        results=results,
        lives=lives,
    )

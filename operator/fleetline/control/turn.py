"""One turn of the loop for one fleet: observe, learn, decide, act."""

from dataclasses import dataclass, replace

from fleetline.control.assess import Assessment, assess
from fleetline.control.fleet import Fleet, Mode
from fleetline.control.health import health_of
from fleetline.control.learning import Lesson, learn
from fleetline.control.memory import Memory
from fleetline.control.ports import Cluster, Observations, Target
from fleetline.errors import ObservationError
from fleetline.policy.decision import Decision
from fleetline.policy.history import Evidence, History, ScaleEvent
from fleetline.policy.rules import decide
from fleetline.policy.situation import Situation
from fleetline.policy.sizing import replicas_for_rate

PERIOD_S = 15.0
"""Time between turns, the HPA's. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """What one turn saw, concluded and did."""

    fleet: Fleet
    target: Target
    seen: Observations | str
    """Observations, or why there are none."""
    assessment: Assessment
    decision: Decision
    memory: Memory
    now_s: float
    wrote: bool
    """Whether the count was written."""
    write_failure: ObservationError | None = None
    """Why it was not, if it should have been: the next turn looks again."""
    found_changed_from: int | None = None
    """The count as the last turn left it, if somebody changed it since."""

    @property
    def recommends_only(self) -> bool:
        """Whether the fleet asks for advice, not for action."""
        return self.fleet.mode is Mode.RECOMMEND


async def take_turn(
    fleet: Fleet,
    memory: Memory,
    cluster: Cluster,
    seen: Observations | str,
    *,
    now_s: float,
    period_s: float = PERIOD_S,
) -> Turn:
    """
    Take one turn.

    Parameters
    ----------
    fleet, memory
        What is asked for, and what earlier turns learned.
    cluster
        Where the target is read and the count is written.
    seen
        What Prometheus showed about this fleet, or in words why nothing is known.
    now_s, period_s
        Unix time of the turn, and the time between turns. [s]

    Raises
    ------
    ObservationError
        If the target cannot be read: nothing was changed, the next turn looks again.
    """
    # Observe.
    target = await cluster.read_target(fleet)
    memory = _recall(memory, target, now_s)
    left = memory.history.left_replicas

    # Model: learn from what was seen, and put the situation together.
    observed = seen if isinstance(seen, Observations) else None
    ready = health_of(target, now_s, deadline_s=memory.startup.deadline_s).ready
    memory = learn(
        memory, Lesson(fleet=fleet, target=target, seen=observed, ready=ready, now_s=now_s)
    )
    assessment = assess(fleet, memory, target, seen, now_s=now_s, period_s=period_s)

    # Decide.
    decision = decide(assessment.situation)

    # Act.
    failure: ObservationError | None = None
    acts = decision.changes_replicas and fleet.mode is Mode.AUTO
    if acts:
        try:
            await cluster.write_replicas(fleet, target, decision.desired_replicas)
        except ObservationError as error:
            failure = error
    wrote = acts and failure is None
    return Turn(
        fleet=fleet,
        target=target,
        seen=seen,
        assessment=assessment,
        decision=decision,
        memory=_remember(memory, assessment, decision, wrote=wrote),
        now_s=now_s,
        wrote=wrote,
        write_failure=failure,
        found_changed_from=None if left == target.replicas else left,
    )


def _recall(memory: Memory, target: Target, now_s: float) -> Memory:
    """Open the history of this target; one that was created anew has none."""
    known = memory.target_uid in ("", target.uid)
    history = memory.history if known else History()
    return replace(memory, history=history.begin(now_s, target.replicas), target_uid=target.uid)


def _remember(memory: Memory, assessment: Assessment, decision: Decision, *, wrote: bool) -> Memory:
    """Close the turn: what was recommended, what was written, whether anything was seen."""
    situation = assessment.situation
    now_s, behavior = situation.now_s, situation.behavior
    left = decision.desired_replicas if wrote else decision.current_replicas
    windows_s = (
        behavior.scale_up.stabilization_window_s,
        behavior.scale_down.stabilization_window_s,
        *(policy.period_s for policy in behavior.scale_up.policies),
        *(policy.period_s for policy in behavior.scale_down.policies),
    )
    history = memory.history.end(
        now_s,
        recommended_replicas=decision.recommended_replicas,
        left_replicas=left,
        evidence=situation.evidence,
        keep_s=max(windows_s),
        event=ScaleEvent(now_s, decision.current_replicas, left) if wrote else None,
    )
    known = situation.evidence is not Evidence.UNKNOWN
    return replace(
        memory,
        history=_note_restored(history, assessment, left),
        unknown_turns=0 if known else memory.unknown_turns + 1,
        incomplete_turns=memory.incomplete_turns + 1
        if situation.evidence is Evidence.INCOMPLETE
        else 0,
        short_s=now_s if _is_short(situation) else memory.short_s,
        last_scale_s=now_s if wrote else memory.last_scale_s,
        last_metrics_s=now_s if known else memory.last_metrics_s,
        last_turn_s=now_s,
    )


def _is_short(situation: Situation) -> bool:
    """Whether fewer replicas serve than what arrives now asks for, whatever is expected."""
    demand, ceiling_at = situation.demand, situation.ceiling_at
    if demand is None or ceiling_at is None:
        return False
    rate_per_s = demand.arrival_rate_per_s * demand.margin_factor
    return situation.health.ready < replicas_for_rate(rate_per_s, ceiling_at)


def _note_restored(history: History, assessment: Assessment, left: int) -> History:
    """Note when a count was given back at once: that happens only once in a while."""
    situation = assessment.situation
    taken = situation.restorable_replicas is not None
    if not taken or left <= situation.current_replicas:
        return history
    return replace(history, restored_s=situation.now_s)

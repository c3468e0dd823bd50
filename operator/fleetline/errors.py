"""
Every error that Fleetline raises on purpose, by what has to happen next.

FleetlineError
├── ManifestError      the object cannot be understood   -> the user edits the spec
├── ModelError         a number is outside the model     -> the user edits the question
└── ObservationError   the world cannot be read now      -> hold, and look again next turn

Messages read `<where> must be <rule>, got <value>`
or `cannot <verb> <object> from <place>: <cause>`.
Anything else that is raised is a bug.
"""


class FleetlineError(Exception):
    """What all of Fleetline's own errors have in common: the message is for a person."""


class ManifestError(FleetlineError):
    """An object or an option cannot be understood; its author has to edit it."""


class ModelError(FleetlineError):
    """A number lies outside what the model can answer; the question has to change."""


class ObservationError(FleetlineError):
    """The cluster or Prometheus cannot be read now; the next turn looks again."""

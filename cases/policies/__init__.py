"""How simulated models behave: small, seeded, pure policies that see only what a model would be sent."""

from cases.policies.catalog import Catalog
from cases.policies.erratic import Erratic
from cases.policies.named import (
    SIMULATED_MODELS,
    SLOW_DELAY_S,
    Flaky,
    Slow,
    is_simulated,
    simulated_policy,
    slip_chance,
)
from cases.policies.probes import MARKER, PROBES, REACHED
from cases.policies.scripted import Scripted, load_agents, load_base
from cases.policies.seen import (
    Answer,
    Call,
    Calls,
    Fault,
    Move,
    Policy,
    Seen,
    SeenResult,
    SeenTool,
    SeenTurn,
    plain_question,
)
from cases.policies.shell import Hostile, Idler

__all__ = [
    "MARKER",
    "PROBES",
    "REACHED",
    "SIMULATED_MODELS",
    "SLOW_DELAY_S",
    "Answer",
    "Call",
    "Calls",
    "Catalog",
    "Erratic",
    "Fault",
    "Flaky",
    "Hostile",
    "Idler",
    "Move",
    "Policy",
    "Scripted",
    "Seen",
    "SeenResult",
    "SeenTool",
    "SeenTurn",
    "Slow",
    "is_simulated",
    "load_agents",
    "load_base",
    "plain_question",
    "simulated_policy",
    "slip_chance",
]

"""The simulated models that can be run on a suite."""

from pathlib import Path

from cases.policies.named import SIMULATED_MODELS, simulated_policy
from cases.policies.scripted import load_agents, load_base
from cases.policies.seen import Policy
from evalfarm.contracts.suite import Suite
from evalfarm.errors import UsageError


def policies_of(suite: Suite, folder: Path) -> dict[str, Policy]:
    """Every simulated model's policy on a suite, its own agents included. Raises UsageError when it brings none."""
    if suite.simulation is None:
        raise UsageError(
            f"suite {suite.suite!r} says nothing of how a simulated model behaves on it",
            "add `simulation:` to the suite (docs/guides/your-plugin.md), or run a real model",
        )
    base = load_base(suite.simulation, folder)
    own = load_agents(suite.simulation, folder)
    return own | {name: simulated_policy(name, base) for name in SIMULATED_MODELS}

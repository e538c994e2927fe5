"""How long a command takes that has hardly anything to do."""

import sys

from bench.figures import Figure, at_most
from bench.measuring import Command, fresh, interleaved, measure, median
from bench.sides import ONE_TRIAL, Sides


def starting(sides: Sides, rounds: int, _share: float) -> list[Figure]:
    """`evalfarm --help` against `promptfoo --version`; a run of one trial with nothing up against promptfoo's."""
    env = sides.promptfoo_env(fresh(sides.work / "promptfoo-version"))
    version = Command((*sides.promptfoo_argv, "--version"), env)
    runs = interleaved(
        rounds,
        {
            "help": lambda: measure(Command((sys.executable, "-m", "evalfarm", "--help")), sides.work),
            "version": lambda: measure(version, sides.work),
            "cold": lambda: sides.farm(ONE_TRIAL),
            "promptfoo cold": lambda: sides.promptfoo(ONE_TRIAL),
        },
    )
    wall = {name: median(used, lambda one: one.wall_s) for name, used in runs.items()}
    cpu = {name: median(used, lambda one: one.cpu_s) for name, used in runs.items()}
    helped = f"{wall['help']:.2f} s against {wall['version']:.2f} s"
    cold = f"{wall['cold']:.2f} s ({cpu['cold']:.2f} s CPU) against {wall['promptfoo cold']:.2f} s"
    cold += f" ({cpu['promptfoo cold']:.2f} s CPU)"
    help_ratio, cold_ratio = wall["help"] / wall["version"], wall["cold"] / wall["promptfoo cold"]
    return [
        at_most("`evalfarm --help`, to `promptfoo --version`", help_ratio, 0.15, helped),
        at_most("a cold run of one trial, to promptfoo's", cold_ratio, 1, cold),
    ]

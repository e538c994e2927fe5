"""Trials per second and CPU time per trial, against the peers and the floors."""

import os
from collections.abc import Callable, Mapping

from bench.figures import Figure, at_least, at_most
from bench.measuring import Used, interleaved, median
from bench.sides import ONE_TRIAL, Load, Sides

#: Of the machine's cores, at work for the farm, the model and the meter together, from which on they are full: as a run
#: begins and ends it has less to do than they could.
_FULL = 0.9
#: Of one worker's rate, for each of several, until then.
_SCALED = 0.9

Runs = Mapping[str, list[Used]]


def one_call(sides: Sides, rounds: int, share: float) -> list[Figure]:
    """One model call a trial, the model at once.

    The farm's rate includes its start-up; the peers' does not, and theirs is taken over fewer trials, as promptfoo's
    and the library's do not change with their number and inspect_ai's falls. CPU time is that of the whole run less
    that of a run of one trial, on every side.
    """
    farm, bare, promptfoo, inspect = (Load(max(1, round(repeats * share))) for repeats in (93, 30, 20, 6))
    runs = interleaved(
        rounds,
        {
            "farm": lambda: sides.farm(farm),
            "bare": lambda: sides.bare(bare),
            "promptfoo": lambda: sides.promptfoo(promptfoo),
            "inspect": lambda: sides.inspect(inspect),
            **_starts(sides),
        },
    )
    rate = farm.trials / median(runs["farm"], lambda used: used.wall_s)
    cpu = {"farm": _cpu_ms(runs, "farm", farm), "bare": _cpu_ms(runs, "bare", bare)}
    cpu["promptfoo"] = _cpu_ms(runs, "promptfoo", promptfoo)
    peers = {"promptfoo": _rate(runs, "promptfoo", promptfoo), "inspect": _rate(runs, "inspect", inspect)}
    faster = {name: f"{rate:.0f}/s against {peer:.0f}/s" for name, peer in peers.items()}
    costs = {name: f"{cpu['farm']:.2f} ms against {cpu[name]:.2f} ms" for name in ("promptfoo", "bare")}
    costs["bare"] += _by_part(runs, farm)
    memory = median(runs["farm"], lambda used: used.command_peak_mb)
    cheaper = cpu["farm"] / cpu["promptfoo"], cpu["farm"] / cpu["bare"]
    return [
        at_least("one call: trials/s, to promptfoo's", rate / peers["promptfoo"], 3, faster["promptfoo"]),
        at_least("one call: trials/s, to inspect_ai's", rate / peers["inspect"], 10, faster["inspect"]),
        at_most("one call: CPU per trial, to promptfoo's", cheaper[0], 0.45, costs["promptfoo"]),
        at_most("one call: CPU per trial, to the openai library's", cheaper[1], 1.6, costs["bare"]),
        at_most("the command that tends the run, at its largest", memory, 120, unit="MB"),
    ]


def delayed(sides: Sides, rounds: int, share: float) -> list[Figure]:
    """A model that takes 50 ms, 32 requests in flight: the share of the ideal rate, start-up left out on every side."""
    load, bare, few = (Load(max(1, round(repeats * share)), delay_ms=50) for repeats in (40, 20, 6))
    runs = interleaved(
        rounds,
        {
            "farm": lambda: sides.farm(load, workers=2),
            "bare": lambda: sides.bare(bare),
            "promptfoo": lambda: sides.promptfoo(few),
            "inspect": lambda: sides.inspect(few),
            **_starts(sides, delay_ms=50),
        },
    )
    ideal = 32 / 0.05
    loads = {"farm": load, "bare": bare, "promptfoo": few, "inspect": few}
    shares = {name: _rate(runs, name, load) / ideal for name, load in loads.items()}
    told = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if name != "farm")
    return [at_least("50 ms a call, 32 in flight: share of the ideal rate", shares["farm"], 0.75, told, unit="")]


def tool_loop(sides: Sides, rounds: int, share: float) -> list[Figure]:
    """Three model calls and two MCP calls a trial: what the farm adds to a bare loop with the same libraries."""
    load = Load(max(1, round(10 * share)))
    model, suite = "calls-2", "fastmcp"
    runs = interleaved(
        rounds,
        {
            "farm": lambda: sides.farm(load, model=model, suite=suite),
            "bare": lambda: sides.bare_loop(load),
            "farm start": lambda: sides.farm(ONE_TRIAL, model=model, suite=suite),
            "bare start": lambda: sides.bare_loop(Load(repeats=2, cases=1)),
        },
    )
    farm, bare = (_cpu_ms(runs, name, load) for name in ("farm", "bare"))
    rate = load.trials / median(runs["farm"], lambda used: used.wall_s)
    told = f"{farm:.2f} ms against {bare:.2f} ms{_by_part(runs, load)}; {rate:.0f} trials/s"
    told += f", of {2000 / farm:.0f}/s that two cores allow"
    return [at_most("tool loop: CPU per trial, to a bare loop's", farm / bare, 1.25, told)]


def scale_out(sides: Sides, rounds: int, share: float) -> list[Figure]:
    """1, 2 and 4 worker processes with a model that takes 50 ms: the rate per worker, to that of one.

    Until the cores are full: from then on no target is set, and the figure says how full they were.
    """
    load = Load(max(1, round(40 * share)), delay_ms=50)
    few = Load(1, delay_ms=50, cases=1)
    sizes = (1, 2, 4)
    runs = interleaved(
        rounds,
        {f"{size} workers": lambda size=size: sides.farm(load, workers=size) for size in sizes}
        | {f"{size} workers start": lambda size=size: sides.farm(few, workers=size) for size in sizes},
    )
    rates = {size: _rate(runs, f"{size} workers", load) for size in sizes}
    cores = {size: _busy(runs, f"{size} workers") for size in sizes}
    return [
        _scaled(size, rates[size] / rates[1] / size, cores[size], f"{rates[size]:.0f}/s against {rates[1]:.0f}/s")
        for size in sizes[1:]
    ]


def _scaled(size: int, share: float, cores: float, told: str) -> Figure:
    """The rate per worker, or how full the cores were that were to carry it."""
    machine = os.cpu_count() or 1
    told += (
        f", {share:.3g} times one worker's each; {cores:.2f} of {machine} cores busy, the model and the meter included"
    )
    if share < _SCALED and cores >= _FULL * machine:
        return at_least(f"{size} workers: the cores are full", cores / machine, _FULL, told, unit="")
    return at_least(f"{size} workers: rate per worker, to one worker's", share, _SCALED, told)


def _starts(sides: Sides, delay_ms: int = 0) -> dict[str, Callable[[], Used]]:
    """A run of one trial on every side, which is what start-up costs."""
    one = Load(repeats=1, cases=1, delay_ms=delay_ms)
    return {
        "farm start": lambda: sides.farm(one),
        "bare start": lambda: sides.bare(one),
        "promptfoo start": lambda: sides.promptfoo(one),
        "inspect start": lambda: sides.inspect(one),
    }


def _rate(runs: Runs, name: str, load: Load) -> float:
    """Trials per second once started."""
    whole, start = (median(runs[key], lambda used: used.wall_s) for key in (name, f"{name} start"))
    return load.trials / max(whole - start, 1e-3)


def _cpu_ms(runs: Runs, name: str, load: Load) -> float:
    whole, start = (median(runs[key], lambda used: used.cpu_s) for key in (name, f"{name} start"))
    return (whole - start) * 1000 / load.trials


def _busy(runs: Runs, name: str) -> float:
    """Cores of the machine that were at work, start-up left out."""
    cpu, wall = (
        median(runs[name], figure) - median(runs[f"{name} start"], figure)
        for figure in (lambda used: used.machine_cpu_s, lambda used: used.wall_s)
    )
    return cpu / max(wall, 1e-3)


def _by_part(runs: Runs, load: Load) -> str:
    """The farm's CPU time by kind of process, start-up left out."""
    names = sorted({part for used in runs["farm"] for part in used.parts_cpu_s})

    def median_s(side: str, part: str) -> float:
        return median(runs[side], lambda used: used.parts_cpu_s.get(part, 0.0))

    amounts = {part: median_s("farm", part) - median_s("farm start", part) for part in names}
    return " (" + ", ".join(f"{part} {cpu_s * 1000 / load.trials:.2f}" for part, cpu_s in amounts.items()) + ")"

"""The process beside a command (`aside.py`): does what it is told on standard input, one order a line.

A worker that a command starts is told so too, until it is told to be one.

What an order needs is imported with it, so that nothing is held before it is asked for.
"""

import atexit
import gc
import os
import sys
import traceback
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from evalfarm.cli.beside.aside import Done, Listing, Order
from evalfarm.errors import EvalFarmError
from evalfarm.settings import environment, load_settings
from worker.cell.codex_runtime import find_codex


@cache
def _closing() -> ModuleType:
    """What closes runs, imported; from then on there is garbage to look for, and not among what was imported."""
    closing = import_module("evalfarm.cli.beside.closing")
    gc.freeze()
    gc.enable()
    return closing


def done(order: Order) -> Done:
    """Do what is ordered; what goes wrong is told."""
    try:
        return Done(listings=_do(order))
    except EvalFarmError as error:
        return Done(error=type(error).__name__, message=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - the last resort: whoever ordered it ends with it
        return Done(message=f"{type(error).__name__}: {error}", traceback="".join(traceback.format_exception(error)))


def _do(order: Order) -> dict[str, Listing]:
    match order.do:
        case "list servers":
            return _listings(order)
        case "make ready to seal":
            _closing()
        case "seal":
            _closing().seal(order.run, order.redis_url)
        case "report":
            _closing().report(order.run)
        case "score so far":
            _closing().score_so_far(order.run)
        case "score":
            _closing().score(order.run)
    return {}


def _listings(order: Order) -> dict[str, Listing]:
    asked = order.servers
    if asked is None:
        raise ValueError("no servers to list")
    inspection = import_module("worker.inspection")
    markets = inspection.marketplaces(asked.suite, asked.folder, asked.codex)
    listed = inspection.list_servers(
        asked.suite,
        asked.folder,
        asked.variants,
        log=asked.log,
        codex=find_codex(load_settings().codex_bin),
        isolation=asked.isolation,
        environ=environment(),
    )
    return {
        variant: Listing(tools=one.tools, digest=one.digest, marketplace=markets.get(variant))
        for variant, one in listed.items()
    }


def until_work() -> Order | None:
    """Do what is ordered on standard input up to the order to be a worker; None: there was none."""
    for line in sys.stdin.buffer:
        order = Order.model_validate_json(line)
        if order.do == "work":
            return order
        told = done(order)
        if order.do != "score so far":  # nobody waits for it; what went wrong goes wrong again when all are scored
            print(told.model_dump_json(), flush=True)
    return None


def end_process() -> NoReturn:
    """End as a process does, but without taking apart what was imported, which takes a quarter of a second."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    gc.disable()  # it makes little and imports much, in which a search for garbage takes a seventh of the time
    until_work()
    end_process()

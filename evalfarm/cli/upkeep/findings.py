"""What `evalfarm doctor` found out, check by check, and how it is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rich.console import Console

from evalfarm.contracts.base import Contract
from evalfarm.errors import EvalFarmError

State = Literal["ok", "missing", "broken"]
_COLOURS: dict[State, str] = {"ok": "green", "missing": "yellow", "broken": "red"}


class Finding(Contract):
    """What one check found."""

    check: str  #: in the terminal at most ten characters stand in line
    state: State  #: `missing`: not there, or not looked at, and things can work all the same
    found: str
    hint: str = ""  #: what to do about it


@dataclass(frozen=True)
class Missing:
    """What a check says of something that is not there and need not be."""

    found: str
    hint: str


Look = Callable[[], str | Missing]
"""A check: what it found, or what is missing; raises EvalFarmError for what is broken."""


def finding(check: str, look: Look) -> Finding:
    """The finding of one check."""
    try:
        told = look()
    except EvalFarmError as error:
        return Finding(check=check, state="broken", found=error.message, hint=error.hint)
    if isinstance(told, Missing):
        return Finding(check=check, state="missing", found=told.found, hint=told.hint)
    return Finding(check=check, state="ok", found=told)


def show(found: Finding, console: Console) -> None:
    """One line, and one more for what to do about it."""
    console.print(f"[{_COLOURS[found.state]}]{found.state:<8}[/]{found.check:<11}", end="")
    console.print(" ".join(found.found.split()), markup=False, soft_wrap=True)
    if found.hint:
        console.print(f"{'':<19}→ {' '.join(found.hint.split())}", markup=False, soft_wrap=True)

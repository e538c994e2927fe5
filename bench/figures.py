"""One line of the table: a figure, what it is held against, and whether it holds."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """A ratio or an amount with its target."""

    what: str
    value: float
    target: float
    holds: Literal["at least", "at most"]
    unit: str
    told: str  #: the amounts behind a ratio

    @property
    def held(self) -> bool:
        return self.value >= self.target if self.holds == "at least" else self.value <= self.target

    def row(self) -> str:
        """Its row in the page's table."""
        verdict = "held" if self.held else "**missed**"
        value, target = (_written(number) + _after(self.unit) for number in (self.value, self.target))
        return f"| {self.what} | {value} | {self.holds} {target} | {verdict} | {self.told} |"


def at_least(what: str, value: float, target: float, told: str = "", unit: str = "×") -> Figure:
    """A figure that is the better the larger it is."""
    return Figure(what, value, target, "at least", unit, told)


def at_most(what: str, value: float, target: float, told: str = "", unit: str = "×") -> Figure:
    """A figure that is the better the smaller it is."""
    return Figure(what, value, target, "at most", unit, told)


def _written(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _after(unit: str) -> str:
    return f" {unit}" if unit.isalpha() else unit

"""The numbers of the nightly rule as a person writes them: a `[gate]` table of TOML, and NAME=NUMBER."""

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from evalfarm.analysis.statistics.regression import NIGHTLY, NightlyRule
from evalfarm.errors import UnknownName, UsageError

_COUNTS = {"confirm_repeats": 1, "most_nights": 2, "least_nights": 1}  #: the least that each can be
_NAMES = tuple(field.name for field in fields(NightlyRule))


def rule_of_file(text: str, path: str) -> NightlyRule:
    """The rule of a TOML file's `[gate]` table; a number that it leaves out is the default's.

    Raises UsageError for text that is no TOML or has no such table, and as `with_numbers` does.
    """
    try:
        table = tomllib.loads(text).get("gate")
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"{path} has no [gate] table", f"write the numbers of the rule there: {', '.join(_NAMES)}")
    return _with(NIGHTLY, table.items(), lambda name: f"{path}:{_line_of(text, name)}, [gate]: ")


def with_numbers(rule: NightlyRule, settings: Iterable[str]) -> NightlyRule:
    """The rule with some numbers set, each as `NAME=NUMBER`.

    Raises UnknownName for a name that the rule does not have, UsageError for what is no number or out of its range.
    """
    pairs = [(name.strip(), value.strip()) for name, _, value in (text.partition("=") for text in settings)]
    return _with(rule, ((name, _number(value)) for name, value in pairs), lambda _: "--set: ")


def _with(rule: NightlyRule, values: Iterable[tuple[str, object]], where_is: Callable[[str], str]) -> NightlyRule:
    """`where_is` says where a number was set, for what is told of it."""
    for name, value in values:
        where = where_is(name)
        if name not in _NAMES:
            raise UnknownName(f"{where}the rule has no number {name!r}", f"its numbers: {', '.join(_NAMES)}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{where}{name} is no number: {value!r}", f"as in {name} = {getattr(NIGHTLY, name)}")
        number: dict[str, Any] = {name: _checked(name, value, where)}
        rule = replace(rule, **number)
    if rule.least_nights > rule.most_nights:
        where = where_is("most_nights")
        raise UsageError(
            f"{where}least_nights ({rule.least_nights}) is more than most_nights ({rule.most_nights})",
            "a baseline holds most_nights at most",
        )
    return rule


def _line_of(text: str, name: str) -> int:
    """The line of the [gate] table that sets a number; its heading's, where none does. TOML's reader keeps no lines."""
    lines = text.splitlines()
    heading = next((at for at, line in enumerate(lines) if re.match(r"\s*\[\s*gate\s*\]", line)), 0)
    said = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=")
    return next((at for at in range(heading, len(lines)) if said.match(lines[at])), heading) + 1


def _checked(name: str, value: float, where: str) -> float:
    if name in _COUNTS:
        if not float(value).is_integer() or value < _COUNTS[name]:
            raise UsageError(f"{where}{name} is {value:g}", f"it takes a whole number from {_COUNTS[name]}")
        return int(value)
    if not 0 < value < 1:
        raise UsageError(f"{where}{name} is {value:g}", "it takes a share between 0 and 1, as in 0.02")
    return value


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text

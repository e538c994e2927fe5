"""What a request asks for: which rows, by the filters in its query."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from evalfarm.contracts.base import Contract
from evalfarm.web.refusals import bad_query

_MANY = ("suite", "run", "label", "version", "plugin", "session")
_ONE = ("days", "source")
FILTERS = (*_MANY, *_ONE)
_LONGEST = 200
_MOST = 100


class Ask(Contract):
    """Which rows are meant; all filters hold together, the values of one filter are alternatives."""

    suite: tuple[str, ...] = ()
    run: tuple[str, ...] = ()  #: runs or imports
    label: tuple[str, ...] = ()
    version: tuple[str, ...] = ()  #: as the column `version` has it, or a plugin's version, or its digest
    plugin: tuple[str, ...] = ()
    session: tuple[str, ...] = ()  #: what the harness calls a conversation; of no row of runs, cells and cases
    days: int | None = Field(default=None, ge=1, le=36_600)  #: the last so many days, UTC, today among them
    source: Literal["runs", "imports", "all"] = "runs"  #: where no run is named


def read_ask(items: Sequence[tuple[str, str]], others: Collection[str] = ()) -> Ask:
    """The filters among a query's parameters; `others` may stand beside them. Raises Refusal for what cannot be."""
    said: dict[str, Any] = {}
    for name, value in items:
        if name in _MANY:
            said.setdefault(name, []).append(value)
        elif name in _ONE:
            said[name] = one_of(items, name)
        elif name not in others:
            raise bad_query(f"there is no parameter {name[:50]!r}", f"there are {', '.join((*FILTERS, *others))}")
    # What a form sends for a field that was left empty.
    said = {name: [one for one in value if one] if name in _MANY else value for name, value in said.items() if value}
    if any(len(value) > _MOST or max(map(len, value), default=0) > _LONGEST for value in said.values()):
        raise bad_query("a filter is too long", f"{_MOST} values of {_LONGEST} characters at most")
    try:
        return Ask.model_validate({**said, **({"days": int(said["days"])} if "days" in said else {})})
    except ValidationError as error:
        first = error.errors()[0]
        raise bad_query(
            f"{first['loc'][0]} cannot be so: {first['msg']}", "docs/guides/web.md lists the filters"
        ) from None
    except ValueError:
        raise bad_query("days is no whole number", "as in days=30") from None


def one_of(items: Sequence[tuple[str, str]], name: str, default: str = "") -> str:
    """The value of a parameter that may be given once. Raises Refusal where it is given twice."""
    found = [value for key, value in items if key == name]
    if len(found) > 1:
        raise bad_query(f"{name} is given twice", "once is enough")
    return found[0] if found else default

"""The path language of a check: names separated by dots, `[*]` for every element of a list.

`series_ids[*]` finds each element, `results[*].candidates[*]` each candidate of each result, `[*].id` each
element's id of a list. A name that is missing, or a `[*]` on what is no list, finds nothing.
"""

from pydantic import JsonValue

_NAMES_SHOWN = 8


def groups_at(document: JsonValue, path: str) -> list[list[JsonValue]]:
    """The records at a path, grouped by the list that they stand in; a path that does not end in `[*]` makes
    groups of one. `Check` has checked that the path reads.
    """
    *steps, last = path.replace("[*]", ".[*]").lstrip(".").split(".")
    found = [document]
    for step in steps:
        found = [value for parent in found for value in _children(parent, step)]
    if last == "[*]":
        return [_children(parent, last) for parent in found]
    return [[value] for parent in found for value in _children(parent, last)]


def _children(value: JsonValue, step: str) -> list[JsonValue]:
    if step == "[*]":
        return value if isinstance(value, list) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def found_instead(document: JsonValue, path: str) -> str:
    """What is there where a path stops finding anything: ``at `results[*]` there are `id`, `name```."""
    found, walked = [document], ""
    for step in path.replace("[*]", ".[*]").lstrip(".").split("."):
        further = [value for parent in found for value in _children(parent, step)]
        if not further:
            break
        found, walked = further, f"{walked}{'' if step == '[*]' or not walked else '.'}{step}"
    place = f"at `{walked}`" if walked else "at the top"
    names = sorted({name for value in found if isinstance(value, dict) for name in value})
    if names:
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return (
            f"{place} there {'is' if len(names) == 1 else 'are'} "
            + ", ".join(f"`{name}`" for name in names[:_NAMES_SHOWN])
            + more
        )
    return f"{place} there is {_kind(found[0])}"


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "an empty object"
        case str():
            return "text"
        case _:
            return "a number" if not isinstance(value, bool) else "true or false"

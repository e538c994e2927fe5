"""The path language of a check: names separated by dots, `[*]` for every element of a list.

`series_ids[*]` finds each element, `results[*].candidates[*]` each candidate of each result, `[*].id` each
element's id of a list. A name that is missing, or a `[*]` on what is no list, finds nothing.
"""

from pydantic import JsonValue


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

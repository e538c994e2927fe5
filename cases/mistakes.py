"""What pydantic finds wrong with a suite, in an author's words, with the line it stands in."""

from typing import Any, get_args, get_origin

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from cases.document import Document, Loc, Mistake, did_you_mean
from evalfarm.contracts.suite import Case, Suite

_WANTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "tuple_type": "a list",
    "dict_type": "a mapping of fields",
    "model_type": "a mapping of fields",
}
_MEMBERS_OF_SCALAR = frozenset({"str", "int", "float", "bool"})
_MISSING = {
    "at": "the path to what is compared: `at: title` for a field of that name, `at: notes[*]` for records of a list"
}
_NAME_RULE = "begin with a letter or digit; then letters, digits, '.', '_' and '-', 100 in all at most"


def field_mistakes(error: ValidationError, document: Document) -> list[Mistake]:
    """Every mistake in a suite's fields, each once."""
    details = [detail for detail in error.errors(include_url=False) if not _follows_from_another(detail)]
    return list(dict.fromkeys(_mistake(detail, document) for detail in details))


def _follows_from_another(detail: ErrorDetails) -> bool:
    """Whether pydantic counts a list as empty only because each of its entries has a mistake of its own."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _mistake(detail: ErrorDetails, document: Document) -> Mistake:
    kind, loc, value, hint = detail["type"], _in_the_file(detail["loc"], document), detail["input"], ""
    if loc != detail["loc"] and detail["loc"][-1] in _MEMBERS_OF_SCALAR:
        return document.mistake(loc, f"must be text, a number, or true or false, not {_kind_of(value)}")
    match kind:
        case "missing":
            text, hint = "is missing", _MISSING.get(str(loc[-1]), "")
        case "extra_forbidden":
            text, hint = "unknown field", did_you_mean(str(loc[-1]), _fields_at(loc[:-1]), "the fields here")
        case "string_pattern_mismatch":
            text, hint = f"'{value}' is not a name", _NAME_RULE
        case "value_error":
            text = str(detail["ctx"]["error"])
        case "too_short":
            text = "holds nothing: at least one entry is needed"
        case _ if kind in _WANTED:
            text = f"must be {_WANTED[kind]}, not {_kind_of(value)}"
            hint = _mending(kind, value)
        case _:
            text = detail["msg"][:1].lower() + detail["msg"][1:]
    return document.mistake(loc, text, hint)


def _in_the_file(loc: Loc, document: Document) -> Loc:
    """The location of an error in the file: `query` is read as `turns[0]`, a union adds its member's name."""
    if loc[2:] == ("turns", 0) and document.known(loc) == loc[:2]:
        return (*loc[:2], "query")
    if loc[-1:] == ("[key]",) or (loc[-1:] and loc[-1] in _MEMBERS_OF_SCALAR and document.known(loc) == loc[:-1]):
        return loc[:-1]
    return loc


def _fields_at(loc: Loc) -> set[str]:
    """The fields that a suite may have at a location."""
    model: type[BaseModel] = Suite
    in_a_container = False
    for step in loc:
        if in_a_container:  # the step is a place in a list, or an entry's name
            in_a_container = False
            continue
        annotation = model.model_fields[str(step)].annotation
        in_a_container = get_origin(annotation) in (tuple, dict)
        model = _model_in(annotation)
    return set(model.model_fields) | ({"query"} if model is Case else set())


def _model_in(annotation: Any) -> Any:
    """The contract that an annotation speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)


def _kind_of(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text '{value}'"
        case list():
            return "a list"
        case _:
            return "a mapping of fields"


def _mending(kind: str, value: JsonValue) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "put it in quotes"
    if kind in ("model_type", "dict_type") and value is None:
        return "write {} for an empty one"
    return ""

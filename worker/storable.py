"""What a stored trace can hold: JSON that reads back as it was written. Pure."""

from pydantic import JsonValue

#: Levels of nesting that are kept. A trace wraps some of its own around them, and pydantic reads 200 in all back;
#: Codex takes no more than 128.
MAX_DEPTH = 150


def why_not(value: object) -> str:
    """Why a JSON value cannot be stored as it is; empty: it can."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if not all(_is_text(part) for part in level):
            return "half a surrogate pair, which is no text"
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return ""
    return f"more than {MAX_DEPTH} levels of nesting"


def mended(value: JsonValue) -> JsonValue:
    """The same value with a question mark for every half of a surrogate pair. It must not be nested too deep."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [mended(part) for part in value]
    if isinstance(value, dict):
        return {str(mended(name)): mended(part) for name, part in value.items()}
    return value


def _is_text(part: object) -> bool:
    if not isinstance(part, str) or part.isascii():
        return True
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parts(whole: object) -> list[object]:
    if isinstance(whole, dict):
        return [*whole, *whole.values()]
    return list(whole) if isinstance(whole, list) else []

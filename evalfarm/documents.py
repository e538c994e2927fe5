"""Contracts as documents in object storage: JSON, one to a key or one a line, checked as they are read."""

import json
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from evalfarm import __version__
from evalfarm.errors import UsageError
from evalfarm.objects import Objects

C = TypeVar("C", bound=BaseModel)

SCHEMA_VERSION = 1
"""Of every document that has one."""


def load(objects: Objects, model: type[C], key: str) -> C | None:
    """The document under a key; None: there is none. Raises as `parse`."""
    data = objects.read(key)
    return None if data is None else parse(objects, model, key, data)


def load_lines(objects: Objects, model: type[C], key: str) -> tuple[C, ...] | None:
    """The documents under a key, one a line; None: there is no such key. Raises as `parse`."""
    data = objects.read(key)
    return None if data is None else tuple(parse(objects, model, key, line) for line in data.splitlines())


def parse(objects: Objects, model: type[C], key: str, data: bytes) -> C:
    """The document that was read from a key.

    Raises UsageError for one that another version of evalfarm made, StoreUnavailable for what does not read.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        if (version := _schema_version(data)) not in (None, SCHEMA_VERSION):
            known = f"evalfarm {__version__} reads {SCHEMA_VERSION}"
            raise UsageError(
                f"{key} in {objects.url} is of schema version {version}; {known}",
                hint="use the version of evalfarm that made it, or start a new run",
            ) from error
        raise objects.unreadable(key, f"is no {model.__name__}: {error.errors()[0]['msg']}") from error


def to_json(record: BaseModel) -> bytes:
    """A document's bytes."""
    try:
        return record.model_dump_json().encode()
    except PydanticSerializationError:
        # half of a surrogate pair, which models do write in JSON escapes: it becomes "?", and the rest is kept
        return json.dumps(record.model_dump(), ensure_ascii=False).encode("utf-8", "replace")


def to_lines(records: Sequence[BaseModel]) -> bytes:
    """Documents, one a line."""
    return b"\n".join(to_json(record) for record in records)


def _schema_version(data: bytes) -> object:
    try:
        told = json.loads(data)
    except ValueError:
        return None
    return told.get("schema_version") if isinstance(told, dict) else None

"""What every contract has in common: it is frozen, it refuses unknown fields, it has one digest."""

import hashlib
import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""A stable identifier: safe in a key of object storage, in Redis and in a metric's label."""


class Contract(BaseModel):
    """A record that crosses rooms: immutable, with no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def digest(value: object) -> str:
    """SHA-256 of a value's canonical JSON (sorted keys, no spaces), as `sha256:<64 hex digits>`.

    Contracts are dumped in JSON mode first. Two values with equal JSON have equal digests.
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return digest_bytes(text.encode())


def digest_bytes(data: bytes) -> str:
    """SHA-256 of bytes, as `sha256:<64 hex digits>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()

"""How a request is turned away: one shape for every path, as JSON for a program and as a page for a person."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from evalfarm.errors import EvalFarmError, InfrastructureError, UnknownName, UsageError

CHALLENGE = 'Bearer realm="evalfarm", Basic realm="evalfarm", charset="UTF-8"'
"""Both at once: a program sends `Bearer TOKEN`; a browser asks its user, who gives the token as the password."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of a refusal."""

    status: int
    code: str  #: for programs; stable
    message: str
    hint: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> JSONResponse:
        """`{"error": {"code": …, "message": …, "hint": …}}`."""
        error = {"code": self.code, "message": self.message, "hint": self.hint}
        return JSONResponse({"error": error}, self.status, headers=dict(self.headers))


class Refusal(Exception):
    """Raised to turn a request away."""

    def __init__(self, told: Told) -> None:
        super().__init__(told.message)
        self.told = told


def unauthorized(code: str, message: str, hint: str) -> Refusal:
    """401 with the ways in which a token may be given."""
    return Refusal(Told(401, code, message, hint, {"WWW-Authenticate": CHALLENGE}))


def bad_query(message: str, hint: str) -> Refusal:
    """400: what was asked for cannot be."""
    return Refusal(Told(400, "bad_query", message, hint))


def not_found(message: str, hint: str = "") -> Refusal:
    """404: there is no such thing, or the token does not reach it."""
    return Refusal(Told(404, "not_found", message, hint))


def told_of(error: Exception) -> Told:
    """What is said of an error that a request met."""
    match error:
        case Refusal():
            told = error.told
        case UnknownName():
            told = Told(404, "not_found", error.message)  # its hint may name runs that the token does not reach
        case UsageError():
            told = Told(400, "bad_query", error.message, error.hint)
        case InfrastructureError():
            told = Told(503, "unavailable", error.message, error.hint, {"Retry-After": "30"})
        case EvalFarmError():
            told = Told(500, "internal", error.message, error.hint)
        case HTTPException(status_code=404):
            told = Told(404, "not_found", "there is nothing here", "/api/v1/openapi.json lists what there is")
        case HTTPException():
            told = Told(error.status_code, "bad_request", error.detail)
        case _:
            told = Told(500, "internal", "this met a fault of evalfarm's own", "the server's log has its traceback")
    return told

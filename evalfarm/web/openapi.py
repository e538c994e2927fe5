"""The API's description as an OpenAPI 3.1 document, made of the same lists that the API answers by."""

from typing import Any

from evalfarm import __version__
from evalfarm.contracts.bundle import Bundle
from evalfarm.web.bundles import CAP
from evalfarm.web.datasets import ABOUT
from evalfarm.web.exporting import FORMATS, MEDIA_TYPES

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_ABOUT_FILTERS: dict[str, tuple[str, Json]] = {
    "suite": ("of this suite; repeatable", _TEXT),
    "run": ("of this run or import; repeatable", _TEXT),
    "label": ("of runs with this label; repeatable", _TEXT),
    "version": ("of this version: the column `version`, a plugin's version or its digest; repeatable", _TEXT),
    "plugin": ("of this plugin; repeatable", _TEXT),
    "session": ("what the harness calls a conversation, as Codex its thread; runs have none; repeatable", _TEXT),
    "days": ("of the last so many days, UTC, today among them", {"type": "integer", "minimum": 1, "maximum": 36600}),
    "source": ("where no run is named", {"enum": ["runs", "imports", "all"], "default": "runs"}),
}
_ABOUT_MOMENT = "an ISO date or time, UTC where it says nothing else"
_MOMENT: Json = {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}


def document() -> Json:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "evalfarm",
            "version": __version__,
            "description": "Conversations, and the rows that are made of them. Read-only: any method but GET is 401.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"bearer": []}, {"basic": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "a token of `evalfarm token create`"},
                "basic": {"type": "http", "scheme": "basic", "description": "the token as the password"},
            },
            "schemas": {"Error": _error(), **_bundle()},
        },
    }


def _paths() -> dict[str, Json]:
    filters = [_query(name, about, schema) for name, (about, schema) in _ABOUT_FILTERS.items()]
    edges = {"from": "began then or later", "to": "began before"}
    window = [_query(name, f"{edge}: {_ABOUT_MOMENT}", _MOMENT) for name, edge in edges.items()]
    name = _in_path("name", {"enum": list(ABOUT)}, "; ".join(f"{one}: {about}" for one, about in ABOUT.items()))
    form = _query("format", "of the file", {"enum": list(FORMATS), "default": "csv"})
    of_bundle = _query("format", "of the answer", {"enum": ["json", "markdown"], "default": "json"})
    numbers = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
    named = [_in_path("run", _TEXT, ""), _in_path("trial", numbers, ""), _in_path("attempt", numbers, "")]
    lines: Json = {MEDIA_TYPES["jsonl"]: {"schema": {}}}
    files: Json = {kind: {"schema": {}} for kind in MEDIA_TYPES.values()}
    capped = f"at most {CAP}; the headers Evalfarm-Matched, Evalfarm-Given and Evalfarm-Cap say of how many"
    json = {"application/json": {"schema": {"type": "object"}}}
    bundle = {
        "application/json": {"schema": {"$ref": "#/components/schemas/Bundle"}},
        MEDIA_TYPES["markdown"]: {"schema": _TEXT},
    }
    return {
        "/openapi.json": _get("This document", [], json),
        "/datasets": _get("Which datasets there are", [], json),
        "/datasets/{name}": _get("A dataset as a file", [name, form, *filters], files),
        "/datasets/{name}/preview": _get("How many rows it has", [name, *filters], json),
        "/bundles": _get(f"Conversations, one a line: {capped}", [*filters, *window], lines),
        "/bundles/preview": _get("How many conversations there are", [*filters, *window], json),
        "/bundles/{run}/{trial}/{attempt}": _get("One conversation", [*named, of_bundle], bundle),
    }


def _get(summary: str, parameters: list[Json], content: Json) -> Json:
    refused = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    answers = {
        "400": "what was asked for cannot be",
        "401": "no token, a wrong one, or another method than GET",
        "404": "there is no such thing, or the token does not reach it",
        "429": "too many wrong tokens from one place",
        "503": "the store cannot be reached",
    }
    told = {status: {"description": why, "content": refused} for status, why in answers.items()}
    told |= {"200": {"description": summary, "content": content}, "304": {"description": "the asker has it already"}}
    return {"get": {"summary": summary, "parameters": parameters, "responses": dict(sorted(told.items()))}}


def _query(name: str, about: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _in_path(name: str, schema: Json, about: str) -> Json:
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _bundle() -> Json:
    schema = Bundle.model_json_schema(ref_template="#/components/schemas/{model}")
    parts: Json = schema.pop("$defs")
    return {**parts, "Bundle": schema}


def _error() -> Json:
    fields = {name: _TEXT for name in ("code", "message", "hint")}
    error = {"type": "object", "required": list(fields), "properties": fields, "additionalProperties": False}
    return {"type": "object", "required": ["error"], "properties": {"error": error}, "additionalProperties": False}

"""The fixtures of a suite that stand in a JSON file beside it, so that its server can read them too."""

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pydantic import JsonValue, TypeAdapter, ValidationError

from cases.document import Document, field_name, suite_error
from evalfarm.contracts.answer import Fixture, FixtureName
from evalfarm.errors import SuiteError

_FIXTURES = TypeAdapter(dict[FixtureName, Fixture])


def with_fixtures(document: Document, folder: Path) -> Document:
    """The document with `fixtures` filled from the file that `fixtures_from` names.

    Raises SuiteError: a suite that gives both, a file that is missing or leads out of the folder, or what is in it.
    """
    data = document.data
    if not isinstance(data, dict) or not isinstance(name := data.get("fixtures_from"), str):
        return document
    here = ("fixtures_from",)
    if "fixtures" in data:
        raise suite_error(document.path, [document.mistake(here, "give fixtures or fixtures_from, not both")])
    pure, path = PurePosixPath(name), folder / name
    if pure.is_absolute() or ".." in pure.parts or not path.is_file():
        text, hint = f"there is no file '{name}' in {folder}", "give a path inside the suite's folder"
        raise suite_error(document.path, [document.mistake(here, text, hint)])
    return replace(document, data={**data, "fixtures": _read(path)})


def _read(path: Path) -> JsonValue:
    try:
        found: JsonValue = json.loads(path.read_bytes().decode("utf-8-sig"))
        _FIXTURES.validate_python(found)
    except json.JSONDecodeError as error:
        raise SuiteError(f"{path}:{error.lineno}: this is not JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise SuiteError(f"{path} is not JSON in UTF-8") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = field_name(first["loc"])
        raise SuiteError(
            f"{path}: {where}: {first['msg'][:1].lower() + first['msg'][1:]}",
            'write {"NAME": {"tool": …, "arguments": {…}, "result": {…}}, …}',
        ) from error
    return found

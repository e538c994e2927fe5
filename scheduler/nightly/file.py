"""`evalfarm.toml`, read: what is wrong with it is told with file and line."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from evalfarm.contracts.schedule import Schedule, ScheduleFile
from evalfarm.errors import UnknownName, UsageError
from evalfarm.plain_files import read_plain

_HINT = "docs/guides/nightly.md shows one"


@dataclass(frozen=True)
class Declared:
    """The schedules of one file, and where it lies: paths in it are relative to its folder."""

    path: Path
    said: ScheduleFile
    text: str

    def schedule(self, name: str) -> Schedule:
        """The schedule of this name. Raises UnknownName."""
        if name not in self.said.schedules:
            known = ", ".join(self.said.schedules)
            raise UnknownName(
                f"{self.path} has no schedule {name!r}", f"its schedules: {known}" if known else "it has none"
            )
        return self.said.schedules[name]

    def place(self, *where: str) -> str:
        """The file and the line that says what these names lead to."""
        return f"{self.path}:{line_of(self.text, list(where))}"

    def beside(self, name: str) -> Path:
        """A path that the file names."""
        return self.path.parent / name

    def suite(self, schedule: Schedule) -> str:
        """The suite as `load_suite` takes it: a path beside the file where there is one, else a shipped one's name."""
        beside = self.beside(schedule.suite)
        return str(beside) if beside.exists() else schedule.suite


def read_schedules(path: Path) -> Declared:
    """The schedules in a file. Raises UsageError naming the file, and the line where there is one."""
    text = ""
    try:
        text = read_plain(path).decode("utf-8")
        return Declared(path, ScheduleFile.model_validate(tomllib.loads(text)), text)
    except FileNotFoundError:
        raise UsageError(f"there is no {path}", f"write one, or name yours in EVALFARM_FILE; {_HINT}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _HINT) from error
    except ValidationError as error:
        raise _refused(path, text, error) from None
    except ValueError as error:  # TOML that does not parse, which names its line, and bytes that are no UTF-8
        raise UsageError(f"{path} is no TOML: {error}", _HINT) from error


def _refused(path: Path, text: str, error: ValidationError) -> UsageError:
    first = error.errors()[0]
    said = first["msg"].removeprefix("Value error, ")
    where = [str(part) for part in first["loc"] if part != "[key]"]
    if not where and (named := re.match(r"([\w.-]+): (.*)", said, flags=re.DOTALL)):
        where, said = named[1].split("."), named[2]
    told = "there is no such setting" if first["type"] == "extra_forbidden" else said
    return UsageError(f"{path}:{line_of(text, where)}: {'.'.join(where)}: {told}", _HINT)


def line_of(text: str, where: list[str]) -> int:
    """The line that says what these names lead to, by the tables' headings; TOML's reader keeps no positions."""
    lines, found, depth = text.splitlines(), 0, 0
    for at, line in enumerate(lines):
        heading = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if heading:
            parts = [part.strip().strip("\"'") for part in heading[1].split(".")]
            if where and parts[: len(where)] == where:
                return at + 1
            inside = parts == where[: len(parts)]
            depth = len(parts) if inside else -1
            found = at if inside else found
        elif 0 <= depth < len(where) and re.match(rf"\s*[\"']?{re.escape(where[depth])}[\"']?\s*[.=]", line):
            return at + 1
    return found + 1

"""A suite's YAML as data that knows its lines, and the mistakes found in it as one error.

Unquoted scalars are read as JSON would read them: `true`, `false`, `null` (`~`, nothing) and decimal
numbers; everything else is text, dates and `12:00` included. The words yes, no, on and off, which YAML
readers disagree on, are refused unless they are quoted.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import yaml
from pydantic import JsonValue

from evalfarm.errors import SuiteError

Loc = tuple[str | int, ...]
"""The way from a document's root to a value: names of fields and places in lists."""

MISTAKES_SHOWN = 10
# The largest shipped suite has about 5,000 values. Aliases that multiply each other pass any bound within a
# few lines of YAML, so a bound it is.
VALUES_ALLOWED = 500_000

_WORDS: dict[str, JsonValue] = {"": None, "~": None, "null": None, "true": True, "false": False}
# Bounded, so that no text becomes infinity or an integer that Python refuses to read.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,29})(\.[0-9]{1,30})?(e[-+]?[0-9]{1,2})?")
_BARE_PATH = re.compile(r"""\b(\w+):\s*([^\s"',{}]*\[\*\][^\s"',{}]*)""")
_UNCLEAR = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "timestamp"))
_TAGS = _PLAIN_TAGS | frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "merge", "value"))


@dataclass(frozen=True)
class Mistake:
    """One thing wrong with a suite: in which line, in which field, what, and what to do about it."""

    line: int  #: counted from 1
    field: str  #: as in `cases[2].expect.tools`; empty: the document as a whole
    text: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.field else self.text


@dataclass(frozen=True)
class Document:
    """A YAML file as plain data."""

    path: str  #: as errors name it
    data: JsonValue
    lines: Mapping[Loc, int]

    def known(self, loc: Loc) -> Loc:
        """The part of a location that stands in the file."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return loc

    def line(self, loc: Loc) -> int:
        """The line of the value at a location, or of the innermost value around it that stands in the file."""
        return self.lines[self.known(loc)]

    def mistake(self, loc: Loc, text: str, hint: str = "") -> Mistake:
        """A mistake at a location."""
        return Mistake(self.line(loc), field_name(loc), text, hint)


def field_name(loc: Loc) -> str:
    """A location as an author reads it: `cases[2].expect.tools`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return "".join(steps).removeprefix(".")


def did_you_mean(word: str, words: Iterable[str], what: str) -> str:
    """A hint with the nearest of the words there are (when one is near) and then all of them."""
    there = sorted(words)
    near = difflib.get_close_matches(word, there, n=1)
    all_of_them = f"{what}: {', '.join(there) or 'none'}"
    return f"did you mean '{near[0]}'? {all_of_them}" if near else all_of_them


def suite_error(path: str, mistakes: Iterable[Mistake]) -> SuiteError:
    """All mistakes of a file as one error, in the order of their lines; at most ten are shown."""
    ordered = sorted(mistakes, key=lambda mistake: mistake.line)
    if len(ordered) == 1:
        return SuiteError(f"{path}:{ordered[0].line}: {ordered[0]}", ordered[0].hint)
    shown = ordered[:MISTAKES_SHOWN]
    lines = [f"{path} has {len(ordered)} mistakes:"]
    lines += [f"  line {m.line}: {m}" + (f" ({m.hint})" if m.hint else "") for m in shown]
    if len(ordered) > len(shown):
        lines.append(f"  … and {len(ordered) - len(shown)} more")
    return SuiteError("\n".join(lines))


def read_document(text: str, path: str) -> Document:
    """YAML text as a document; `path` is what errors call it.

    Raises SuiteError when it does not parse, holds no mapping, gives a field twice, or leaves open what
    a word means.
    """
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        said = ", ".join(part for part in (error.context, error.problem) if part)
        hint = _unquoted_path(text.splitlines()[line - 1 : line])
        raise suite_error(path, [Mistake(line, "", f"this is not YAML: {said}", hint)]) from error
    except yaml.YAMLError as error:
        raise suite_error(path, [Mistake(1, "", f"this is not YAML: {str(error).splitlines()[0]}")]) from error
    if not isinstance(root, yaml.MappingNode):
        raise suite_error(path, [Mistake(1, "", "a suite is a mapping of fields", "begin with `suite: NAME`")])
    reading = _Reading()
    reading.lines[()] = 1
    data = reading.value(root, ())
    if reading.mistakes:
        raise suite_error(path, reading.mistakes)
    return Document(path, data, reading.lines)


def _unquoted_path(lines: list[str]) -> str:
    """What to do about a path with `[*]` that YAML reads as a list; nothing where there is none in the line."""
    found = _BARE_PATH.search(lines[0]) if lines else None
    return f'quote the path: {found[1]}: "{found[2]}"' if found else ""


@dataclass
class _Reading:
    """One walk over YAML's nodes, collecting lines and mistakes on the way."""

    lines: dict[Loc, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    _open: list[yaml.Node] = field(default_factory=list)
    _values: int = 0

    def value(self, node: yaml.Node, loc: Loc) -> JsonValue:
        """The plain value of a node at a location."""
        self._values += 1
        if node.tag not in _TAGS:
            return self._refuse(node, loc, f"the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, loc)
        if any(node is outer for outer in self._open):
            return self._refuse(node, loc, "an alias stands inside what it stands for")
        if self._values > VALUES_ALLOWED:
            return self._refuse(node, loc, f"more than {VALUES_ALLOWED:,} values, aliases included")
        self._open.append(node)
        value = self._sequence(node, loc) if isinstance(node, yaml.SequenceNode) else self._mapping(node, loc)
        self._open.pop()
        return value

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> JsonValue:
        text = str(node.value)
        if node.style:  # quoted, or a block of text
            return text
        word = text.lower()
        if word in _UNCLEAR:
            truth = _UNCLEAR[word]
            hint = f'write "{text}" in quotes for the word, or {truth}'
            return self._refuse(node, loc, f"'{text}' is text to some YAML readers and {truth} to others", hint)
        if word in _WORDS:
            return _WORDS[word]
        if _NUMBER.fullmatch(word):
            return float(word) if set(word) & set(".e") else int(word)
        return text

    def _sequence(self, node: yaml.SequenceNode, loc: Loc) -> JsonValue:
        for place, item in enumerate(node.value):
            self.lines[*loc, place] = item.start_mark.line + 1
        return [self.value(item, (*loc, place)) for place, item in enumerate(node.value)]

    def _mapping(self, node: yaml.Node, loc: Loc) -> JsonValue:
        data: dict[str, JsonValue] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, loc, "a field's name must be text")
                continue
            name = str(key.value)
            here = (*loc, name)
            if name in data:
                self._refuse(key, here, f"given twice, first in line {self.lines[here]}")
                continue
            self.lines[here] = key.start_mark.line + 1
            data[name] = self.value(item, here)
        return data

    def _refuse(self, node: yaml.Node, loc: Loc, text: str, hint: str = "") -> JsonValue:
        self.mistakes.append(Mistake(node.start_mark.line + 1, field_name(loc), text, hint))
        return None

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.document import read_document
from cases.loader import (
    check_script,
    check_tools,
    file_digests,
    load_suite,
    parse_filters,
    select_cases,
    shipped_suites,
)
from evalfarm.contracts.base import digest_bytes
from evalfarm.errors import SuiteError, UnknownName, UsageError

SMALL = """\
suite: small
version: "1"
plugin: {name: Small}
server: {command: [serve]}
cases:
  - id: first
    query: What is it?
    tags: {kind: easy, part: a}
    expect: {tools: [look_up]}
  - id: second
    query: And that?
    tags: {kind: hard}
    direct:
      tool: look_up
      arguments: {word: that}
      expect: {results: [{tool: look_up, at: "hits[*]", exactly: [1]}]}
"""


def written(folder: Path, text: str, files: Mapping[str, str] | None = None) -> str:
    """The path of a suite with this text, beside the files given."""
    for name, content in {**(files or {}), "suite.yaml": text}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(folder / "suite.yaml")


def refusal(folder: Path, text: str) -> str:
    """The whole text of the error that a suite ends with, the folder's name taken out."""
    with pytest.raises(SuiteError) as caught:
        load_suite(written(folder, text))
    return str(caught.value).replace(f"{folder}/", "").replace(f" in {folder}", "")


def test_the_shipped_suites_load_by_name() -> None:
    suites = shipped_suites()
    assert list(suites) == ["bls", "bls-108", "support", "time"]
    assert {name: load_suite(name).suite.suite for name in suites} == {name: name for name in suites}


def test_a_suite_loads_by_its_folder_as_by_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    assert load_suite(str(tmp_path)) == load_suite(path)
    assert load_suite(path).suite.case("first").turns == ("What is it?",)


def test_an_unknown_name_is_answered_with_the_shipped_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        load_suite("blz")
    assert str(caught.value) == (
        "no suite 'blz': no shipped suite, file or folder has this name\n\n"
        "hint: did you mean 'bls'? shipped suites: bls, bls-108, support, time"
    )


def test_a_folder_without_a_suite_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        load_suite(str(tmp_path))
    assert str(caught.value) == (
        f"the folder {tmp_path} holds no suite.yaml\n\nhint: give the path of the suite's YAML file"
    )


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_bytes(b"suite: caf\xe9")
    with pytest.raises(SuiteError) as caught:
        load_suite(str(path))
    assert str(caught.value) == f"{path} is not UTF-8 text (byte 10)\n\nhint: save the suite as UTF-8"


@pytest.mark.parametrize(
    ("found", "put", "text"),
    [
        (
            "cases:",
            "cases: [",
            "suite.yaml:6: this is not YAML: while parsing a flow node, did not find expected node content",
        ),
        (
            'version: "1"',
            'version: "1"\nsuite: other',
            "suite.yaml:3: suite: given twice, first in line 1",
        ),
        (
            "server: {command: [serve]}",
            "server: {commmand: [serve], python: server.py}",
            "suite.yaml:4: server.commmand: unknown field\n\n"
            "hint: did you mean 'command'? the fields here: "
            "command, env, env_from, python, startup_timeout_s, stateful, url",
        ),
        (
            "server: {command: [serve]}",
            "server: {command: [serve], url: http://127.0.0.1}",
            "suite.yaml:4: server: give exactly one of python, command and url",
        ),
        (
            'version: "1"',
            "version: 1.0",
            "suite.yaml:2: version: must be text, not the number 1.0\n\nhint: put it in quotes",
        ),
        (
            'version: "1"',
            'version: "1"\nsynthetic: no',
            "suite.yaml:3: synthetic: 'no' is text to some YAML readers and false to others\n\n"
            'hint: write "no" in quotes for the word, or false',
        ),
        (
            'version: "1"',
            'version: "1"\nvariants: {plain: }',
            "suite.yaml:3: variants.plain: must be a mapping of fields, not nothing\n\nhint: write {} for an empty one",
        ),
        (
            "plugin: {name: Small}",
            "plugin: {name: My plugin}",
            "suite.yaml:3: plugin.name: 'My plugin' is not a name\n\n"
            "hint: begin with a letter or digit; then letters, digits, '.', '_' and '-', 100 in all at most",
        ),
        ("plugin: {name: Small}\n", "", "suite.yaml:1: plugin: is missing"),
        (
            "query: And that?",
            "query: [And that?]",
            "suite.yaml:11: cases[1].query: must be text, not a list",
        ),
        (
            "query: And that?",
            "turns: [And that?, 3]",
            "suite.yaml:11: cases[1].turns[1]: must be text, not the number 3\n\nhint: put it in quotes",
        ),
        (
            'at: "hits[*]", exactly',
            "exactly",
            "suite.yaml:16: cases[1].direct.expect.results[0].at: is missing\n\n"
            "hint: the path to what is compared: `at: title` for a field of that name, "
            "`at: notes[*]` for records of a list",
        ),
        (
            "exactly: [1]",
            "exactly: [1, null]",
            "suite.yaml:16: cases[1].direct.expect.results[0].exactly[1]: "
            "must be text, a number, or true or false, not nothing",
        ),
        (
            "exactly: [1]",
            "equals: [1], exactly: [1]",
            "suite.yaml:16: cases[1].direct.expect.results[0].equals: unknown field\n\n"
            "hint: the fields here: at, exactly, field, highest, includes, tool, within, without",
        ),
        (
            "expect: {tools: [look_up]}",
            "expect: {result: []}",
            "suite.yaml:9: cases[0].expect.result: unknown field\n\n"
            "hint: did you mean 'results'? the fields here: arguments, calls, never, no_calls, results, "
            "sequence, tools",
        ),
        (
            "id: second",
            "id: first",
            "suite.yaml:10: cases[1].id: 'first' is the id of another case too, in line 6",
        ),
        (
            "kind: hard",
            "case: hard",
            "suite.yaml:12: cases[1].tags.case: no tag may be called 'case': it filters by id",
        ),
        (
            "server: {command: [serve]}",
            "server: {python: serve.py}",
            "suite.yaml:4: server.python: there is no file 'serve.py'",
        ),
        (
            "server: {command: [serve]}",
            "server: {python: ../serve.py}",
            "suite.yaml:4: server.python: '../serve.py' leads out of the suite's folder\n\n"
            "hint: give a path inside the suite's folder",
        ),
        (
            'version: "1"',
            'version: "1"\nfiles: ["*.json"]',
            "suite.yaml:3: files[0]: no file matches '*.json'",
        ),
        (
            "plugin: {name: Small}",
            "plugin: {name: Small, path: plugin}",
            "suite.yaml:3: plugin.path: 'plugin' is no plugin folder: plugin/.codex-plugin/plugin.json is missing",
        ),
        (
            'version: "1"',
            'version: "1"\nsimulation: {script: [{when: "(", answer: x}]}',
            "suite.yaml:3: simulation.script[0].when: not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_and_field(tmp_path: Path, found: str, put: str, text: str) -> None:
    assert refusal(tmp_path, SMALL.replace(found, put, 1)) == text


@pytest.mark.parametrize("text", ["", "just words", "[a, b]"])
def test_a_file_without_fields_is_no_suite(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text) == "suite.yaml:1: a suite is a mapping of fields\n\nhint: begin with `suite: NAME`"


def test_several_mistakes_are_listed_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = SMALL.replace('version: "1"', "version: 1").replace("query: And that?", "qeury: And that?")
    assert refusal(tmp_path, text) == (
        "suite.yaml has 2 mistakes:\n"
        "  line 2: version: must be text, not the number 1 (put it in quotes)\n"
        "  line 11: cases[1].qeury: unknown field "
        "(did you mean 'query'? the fields here: category, direct, expect, facts, family, fixture_version, id, query, "
        "reference, rubric, tags, turns)"
    )


def test_of_many_mistakes_ten_are_listed(tmp_path: Path) -> None:
    text = SMALL.replace("cases:", "cases:\n" + "".join(f"  - {{id: c{n}, turn: x}}\n" for n in range(12)))
    lines = refusal(tmp_path, text).splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("suite.yaml has 12 mistakes:", 12, "  … and 2 more")


def test_an_alias_inside_what_it_stands_for_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "suite: &a [*a]") == "suite.yaml:1: suite[0]: an alias stands inside what it stands for"


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    names = "abcdefg"
    rows = [f"{name}: &{name} [{', '.join(['*' + names[n - 1] if n else 'x'] * 9)}]" for n, name in enumerate(names)]
    assert "more than 500,000 values, aliases included" in refusal(tmp_path, "\n".join(rows))


def test_a_tag_of_python_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    text = f"suite: !!python/object/apply:pathlib.Path.touch [{tmp_path}/made]"
    assert (
        refusal(tmp_path, text)
        == "suite.yaml:1: suite: the tag !!python/object/apply:pathlib.Path.touch is not supported"
    )
    assert not (tmp_path / "made").exists()


def test_unquoted_values_are_read_as_json_would_read_them() -> None:
    text = (
        "{a: 2025-01-31, b: 12:00, c: 007, d: 1_000, e: -2.5e3, f: 42, g: true, h: ~, i: .inf, j: 'no', k: 0x10, l: }"
    )
    assert read_document(text, "x").data == {
        "a": "2025-01-31",
        "b": "12:00",
        "c": "007",
        "d": "1_000",
        "e": -2500.0,
        "f": 42,
        "g": True,
        "h": None,
        "i": ".inf",
        "j": "no",
        "k": "0x10",
        "l": None,
    }


@given(st.text(max_size=200))
def test_any_text_is_a_document_or_one_suite_error(text: str) -> None:
    try:
        said = read_document(text, "x.yaml").path
    except SuiteError as error:
        said = error.message
    assert said.startswith("x.yaml")


FILES = """\
suite: files
version: "1"
plugin: {name: P, path: plugin}
server: {python: server.py}
variants:
  plain: {}
  other: {server: {python: other.py}, plugin_path: plugin2}
simulation: {policy: policy.py}
files: [data, "*.yaml"]
cases: [{id: a, query: b}]
"""
BESIDE = {
    "plugin/.codex-plugin/plugin.json": "{}",
    "plugin/skills/s/SKILL.md": "skill",
    "plugin/__pycache__/x.pyc": "compiled",
    "plugin2/.codex-plugin/plugin.json": "{ }",
    "server.py": "s",
    "other.py": "o",
    "policy.py": "p",
    "data/deep/table.json": "[]",
    "more.yaml": "m",
    "unnamed.txt": "u",
}


def test_the_files_are_those_the_suite_names_and_never_the_suite_itself(tmp_path: Path) -> None:
    loaded = load_suite(written(tmp_path, FILES, BESIDE))
    expected = {
        "data/deep/table.json": b"[]",
        "more.yaml": b"m",
        "other.py": b"o",
        "plugin/.codex-plugin/plugin.json": b"{}",
        "plugin/skills/s/SKILL.md": b"skill",
        "plugin2/.codex-plugin/plugin.json": b"{ }",
        "policy.py": b"p",
        "server.py": b"s",
    }
    assert loaded.files == expected
    assert loaded.folder == tmp_path
    assert file_digests(loaded) == {name: digest_bytes(content) for name, content in expected.items()}


def test_no_other_suite_of_the_folder_is_among_the_files(tmp_path: Path) -> None:
    links = {"alias.json": "second.yaml", "plugin/notes.md": "../second.yaml"}
    beside = {
        **BESIDE,
        "second.yaml": SMALL,
        "third.yml": '{"cases": [], "suite": third}',
        "list.yaml": "[suite]",
        "nested.yaml": "{table: {suite: 4}}",
        "broken.yaml": "[",
        "data/rooms.yaml": "suite: 12",
    }
    path = written(tmp_path, FILES.replace('"*.yaml"', '"*.y*ml", alias.json'), beside)
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    assert set(load_suite(path).files) == {
        *("broken.yaml", "data/deep/table.json", "data/rooms.yaml", "list.yaml", "more.yaml", "nested.yaml"),
        *("other.py", "policy.py", "server.py", "plugin/.codex-plugin/plugin.json", "plugin/skills/s/SKILL.md"),
        "plugin2/.codex-plugin/plugin.json",
    }


def test_the_shipped_suites_hand_out_no_suite() -> None:
    handed = {name: set(load_suite(name).files) for name in shipped_suites()}
    shared = {"server.py", "policy.py", "plugin/.codex-plugin/plugin.json", "plugin/.mcp.json"}
    assert handed == {
        "bls": {*shared, "catalog.json"},
        "bls-108": {*shared, "catalog-108.json"},
        "support": {"answers.py", "fixtures.json", "judge.py", "policy.py", "server.py"},
        "time": set(),
    }


def test_links_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    assert refusal(tmp_path, SMALL.replace("cases:", 'files: ["a.*"]\ncases:')) == (
        f"suite.yaml:5: files[0]: a.json cannot be read: {os.strerror(errno.ELOOP)}"
    )


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "server.py").symlink_to(tmp_path / "secret")
    assert refusal(folder, SMALL.replace("command: [serve]", "python: server.py")) == (
        "suite.yaml:4: server.python: server.py is a link that leads out of the suite's folder\n\n"
        "hint: put the file itself there"
    )


def test_a_linked_folder_in_a_plugin_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL.replace("name: Small", "name: Small, path: plugin"), BESIDE)
    (tmp_path / "plugin" / "linked").symlink_to(tmp_path / "data")
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert str(caught.value) == (
        f"{path}:3: plugin.path: {tmp_path}/plugin/linked is a symbolic link, and not to a file\n\n"
        "hint: put the files themselves there"
    )


def test_tools_that_the_server_offers_are_in_order(tmp_path: Path) -> None:
    check_tools(load_suite(written(tmp_path, SMALL)), "plain", ["look_up"])


def test_a_tool_that_the_server_does_not_offer_is_named_where_it_is_expected(tmp_path: Path) -> None:
    loaded = load_suite(written(tmp_path, SMALL.replace("tool: look_up\n", "tool: lookup\n")))
    with pytest.raises(SuiteError) as caught:
        check_tools(loaded, "plain", ["look_it_up", "other"])
    where = f"suite 'small' ({tmp_path}/suite.yaml"
    assert str(caught.value) == (
        f"{where}:9) expects tool 'look_up', which the server of variant 'plain' does not offer\n"
        f"{where}:14) directly calls tool 'lookup', which the server of variant 'plain' does not offer\n\n"
        "hint: did you mean 'look_it_up'? the server offers: look_it_up, other"
    )


def test_a_filter_is_a_tag_and_a_value() -> None:
    assert parse_filters(["mechanism=coverage_gap"]) == {"mechanism": "coverage_gap"}
    assert parse_filters([" note = a=b ", "case=x", "case=y"]) == {"note": "a=b", "case": "x,y"}


@pytest.mark.parametrize("text", ["mechanism", "=x", "mechanism=", ""])
def test_anything_else_is_no_filter(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filters([text])
    assert str(caught.value) == (
        f"'{text}' is no filter\n\nhint: write TAG=VALUE, as in mechanism=coverage_gap or case=CASE_ID"
    )


@pytest.mark.parametrize(
    ("filters", "chosen"),
    [
        ({}, ("first", "second")),
        ({"kind": "hard"}, ("second",)),
        ({"kind": "easy", "part": "a"}, ("first",)),
        ({"case": "second"}, ("second",)),
        ({"case": "second,first"}, ("first", "second")),
        ({"case": "second,first", "kind": "hard"}, ("second",)),
    ],
)
def test_filters_choose_the_cases_that_carry_every_tag(
    tmp_path: Path, filters: dict[str, str], chosen: tuple[str, ...]
) -> None:
    assert select_cases(load_suite(written(tmp_path, SMALL)).suite, filters) == chosen


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        (
            {"knid": "hard"},
            "no case of suite 'small' has a tag 'knid'\n\n"
            "hint: did you mean 'kind'? tags to filter by: case, kind, part",
        ),
        (
            {"kind": "hard", "part": "a"},
            "no case of suite 'small' has kind=hard and part=a\n\nhint: each of them is there, but in no case all",
        ),
        (
            {"case": "first,scond"},
            "no case of suite 'small' has case=scond\n\nhint: case is one of first, second",
        ),
    ],
)
def test_a_filter_without_a_match_says_what_there_is(tmp_path: Path, filters: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        select_cases(load_suite(written(tmp_path, SMALL)).suite, filters)
    assert str(caught.value) == text


def test_a_long_list_of_values_is_cut() -> None:
    with pytest.raises(UsageError) as caught:
        select_cases(load_suite("bls-108").suite, {"survey": "XX"})
    assert caught.value.hint == (
        "survey is one of AP, BD, BG, BP, CC, CD, CE, CF, CH, CI, CM, CS, CU, CW, CX, EB, EC, EE, EI, EN and 36 more"
    )


def test_a_path_that_yaml_reads_as_a_list_is_to_be_quoted(tmp_path: Path) -> None:
    told = refusal(tmp_path, SMALL.replace('at: "hits[*]"', "at: hits[*]"))
    assert told.startswith("suite.yaml:16: this is not YAML: ")
    assert told.endswith('\n\nhint: quote the path: at: "hits[*]"')


def test_a_turn_that_no_line_of_the_script_answers_is_refused_before_anything_runs(tmp_path: Path) -> None:
    script = 'simulation: {script: [{when: what is it, answer: "This."}]}\n'
    loaded = load_suite(written(tmp_path, script + SMALL))
    check_script(loaded, ["first"])
    with pytest.raises(SuiteError) as caught:
        check_script(loaded, ["first", "second"])
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "suite.yaml:12: cases[1].query: no line of simulation.script matches the turn 'And that?'\n\n"
        "hint: add a line whose `when` does"
    )


def test_cases_are_chosen_by_category_and_by_the_regression_set(tmp_path: Path) -> None:
    suite = load_suite(
        written(tmp_path, SMALL.replace("    query: And that?", "    query: And that?\n    category: edge"))
    ).suite
    assert select_cases(suite, {"category": "edge"}) == ("second",)
    assert select_cases(suite, {"regression": "yes"}, {"first"}) == ("first",)
    told = refusal(tmp_path, SMALL.replace("tags: {kind: hard}", "tags: {regression: hard}"))
    assert told == (
        "suite.yaml:12: cases[1].tags.regression: no tag may be called 'regression': it filters by membership in the"
        " regression set"
    )

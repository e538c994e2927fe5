import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalfarm import errors
from evalfarm.errors import EvalFarmError, ExitCode
from evalfarm.settings import variables

LONGEST_MODULE = 250
LONGEST_FUNCTION = 40
#: Where anything at all may be caught: a fault of ours that must still close a trial or end a command, a user's file.
CATCHES_ALL = re.compile(r"worker/shift\.py|.*/tasks\.py|cases/policies/.*|evalfarm/cli/.*")


def defined(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def catches_everything(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in ("Exception", "BaseException") for kind in caught)


def test_every_module_can_be_read_in_one_sitting(modules: dict[str, Path]) -> None:
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules.items()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_every_function_fits_on_a_screen(modules: dict[str, Path]) -> None:
    lengths = {
        f"{name}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name, path in modules.items()
        for node in defined(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_nothing_swallows_every_error_where_that_could_hide_a_fault(modules: dict[str, Path]) -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, path in modules.items()
        if not CATCHES_ALL.fullmatch(name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    ]
    assert found == []


@pytest.mark.parametrize("package", ["evalfarm", "cases", "scheduler", "worker", "graders"])
def test_a_package_of_a_common_name_is_this_repository_s(package: str, root: Path) -> None:
    assert Path(importlib.import_module(package).__file__ or "").parent == root / package


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    drawn = dict(re.findall(r"^[ │├└─]*(\w+) +(\d+)? +\S", errors.__doc__ or "", flags=re.MULTILINE))
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    ours = {name: kind for name, kind in kinds.items() if issubclass(kind, EvalFarmError) and kind is not EvalFarmError}
    assert drawn == {name: str(int(kind.exit_code)) for name, kind in ours.items()}


def test_an_error_is_drawn_under_its_base() -> None:
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([ │├└─]*)(\w+)(?: +\d+ .*)?$", line)
        kind = vars(errors).get(found[2]) if found else None
        if found and isinstance(kind, type):
            above = [(indent, name) for indent, name in above if indent < len(found[1])]
            assert [base.__name__ for base in kind.__bases__] == [above[-1][1] if above else "Exception"]
            above.append((len(found[1]), found[2]))


def test_every_exit_code_says_what_it_means_in_the_help() -> None:
    epilog = importlib.import_module("evalfarm.cli.main").cli.epilog
    stated = re.findall(r"(?:^ | {2})(\d+) [a-z]", epilog.partition("Exit codes:")[2], flags=re.MULTILINE)
    assert sorted(map(int, stated)) == sorted(int(code) for code in ExitCode)


def test_every_setting_is_in_the_reference_and_the_reference_has_no_other(root: Path) -> None:
    reference = (root / "docs/reference/settings.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", reference, flags=re.MULTILINE) == list(variables())

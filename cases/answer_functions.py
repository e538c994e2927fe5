"""A suite's own checks of answers: functions in a Python file beside it, for what no fact can declare."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from cases.policies.scripted import blamed, imported
from evalfarm.contracts.suite import Suite
from evalfarm.errors import SuiteError

AnswerFunction = Callable[[str, Mapping[str, JsonValue]], bool | None]
"""The answer, and what the tools returned by fixture; whether the fact holds. None: it cannot be told."""


def load_functions(suite: Suite, folder: Path) -> dict[str, AnswerFunction]:
    """The functions that the suite's facts name; its `answer_functions` is relative to the folder.

    Raises SuiteError: no such file, a file that does not import, or one without a function that a fact names.
    """
    named = {fact.function for case in suite.cases for fact in case.facts if fact.function is not None}
    if suite.answer_functions is None or not named:
        return {}
    path = folder / suite.answer_functions
    if not path.is_file():
        raise SuiteError(f"{path}: answer_functions names a file that does not exist", hint="create it")
    module = imported(path, "file of answer functions")
    functions: dict[str, AnswerFunction] = {}
    for name in sorted(named):
        function = getattr(module, name, None)
        if not callable(function):
            raise SuiteError(f"{path}: it defines no function {name}", hint=f"write def {name}(answer, evidence): …")
        functions[name] = blamed(function, f"{suite.answer_functions}: {name}")
    return functions

"""The datasets: for each a question over the rows of a request, in DuckDB's SQL.

`versions`, `skills` and `tools` add up what counts (`counted`): the figures of `evalfarm metrics`, by the same rules as
`evalfarm.analysis.conversations.totals` has them in Python.
"""

from evalfarm.analysis.conversations.totals import MEANS, MEDIANS, NO_SKILL, RATES
from evalfarm.contracts.conversation_rules import ERROR_CLASSES

SKILL = f"coalesce(nullif(skill, ''), '{NO_SKILL}')"
LATEST = "arg_max(conversation, (started_at, conversation))"
"""The conversation that started last; of equals the one with the larger name."""

FIGURE: dict[str, str] = {
    **{rate: f"avg({rate}::INTEGER) AS {rate}" for rate in RATES},
    # The mean of those that report it would be of other conversations.
    **{mean: f"CASE WHEN count({mean}) = count(*) THEN avg({mean}) END AS {mean}" for mean in MEANS},
    **{figure: f"median({figure}) AS {figure}" for figure in MEDIANS},
}
"""Figure -> its SQL over a group; in the order of `totals.FIGURES`."""
FIGURES = ",\n    ".join(FIGURE.values())

_SIZE = """count(*) AS conversations, count(DISTINCT "case") AS cases,
    min(started_at) AS first_at, max(started_at) AS last_at"""

_VERSION = "plugin, version, plugin_version, variant, plugin_digest"

_CLASSES = ", ".join(f"sum(u.{name})::BIGINT AS {name}" for name in ERROR_CLASSES)
_FAILING = "u.failed_calls + u.other_errors"

USES = f"""
    SELECT plugin, version, conversation, started_at, {SKILL} AS skill, unnest(tools) AS u FROM counted
"""
TOOL_FIGURES = f"""
    sum(u.calls)::BIGINT AS calls, count(*) AS conversations, sum({_FAILING})::BIGINT AS failing_calls,
    {_CLASSES}, sum(u.other_errors)::BIGINT AS other_errors, sum(u.repeated_calls)::BIGINT AS repeated_calls,
    sum(u.writes)::BIGINT AS writes,
    coalesce({LATEST} FILTER ({_FAILING} > 0), {LATEST}) AS latest
"""
"""Of a tool over its `USES`; `latest` is the latest conversation in which a call failed, or was made."""
TOOL_NAME = "CASE WHEN u.server IS NULL THEN u.tool ELSE u.server || '/' || u.tool END"

DATASETS: dict[str, str] = {
    "conversations": "FROM conversations",
    "versions": f"""
        SELECT {_VERSION}, {_SIZE}, {LATEST} AS latest, {FIGURES}
        FROM counted GROUP BY {_VERSION} ORDER BY first_at, version
    """,
    "skills": f"""
        SELECT plugin, version, {SKILL} AS skill, skill_digest,
            {_SIZE}, {LATEST} AS latest, {FIGURES}
        FROM counted GROUP BY plugin, version, {SKILL}, skill_digest ORDER BY plugin, version, skill, first_at
    """,
    "tools": f"""
        SELECT plugin, version, skill, u.kind AS kind, {TOOL_NAME} AS tool, {TOOL_FIGURES}
        FROM ({USES}) GROUP BY ALL ORDER BY plugin, version, skill, failing_calls DESC, calls DESC, tool
    """,
    "runs": "FROM runs ORDER BY created_at DESC, run",
    "cells": "FROM cells ORDER BY created_at DESC, run, model, harness, variant",
    "cases": 'FROM cases ORDER BY created_at DESC, run, "case", model, harness, variant',
}
"""Name -> the question."""

OF_RUNS = ("runs", "cells", "cases")
"""The datasets that are made of summaries, and not of conversations."""


ABOUT: dict[str, str] = {
    "conversations": "a row an attempt, counted or not; docs/guides/conversations.md has its columns",
    "versions": "one row a version of a plugin, oldest first: shares, means and medians over its counted conversations",
    "skills": "one row a version and skill, by the digest of its folder",
    "tools": "one row a version, skill and tool: calls, and which of them failed by which class",
    "runs": "one row a run, newest first",
    "cells": "one row a run and arm: counts, rates with their intervals, latency, cost",
    "cases": "one row a run, arm and case: counts, whether it flips, why it did not pass",
}

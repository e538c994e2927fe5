"""What a row from elsewhere must be, in DuckDB's SQL over the table `given (n, line)`: JSON objects by their number.

Each question but `FILL` names rows that break a rule, none where all hold; a problem names its column.
"""

KNOWN = frozenset(
    {
        "case",
        "repeat",
        "model",
        "harness",
        "variant",
        "label",
        "verdict",
        "pass",
        "family",
        "latency_s",
        "timed_out",
        "waited_s",
        "request_latency_s",
        "tool_calls",
        "reasoning_tokens",
        "cost_usd",
        "all_attempts_usd",
        "attempt",
        "tags",
        "reason",
        "reasons",
        "index",
        "file_row_number",
    }
)
"""Columns that are read, or need no word where they are not."""

_NEEDED = (("case",), ("repeat",), ("label", "pass", "verdict"))

NO_OBJECT = """
SELECT n FROM given WHERE CASE WHEN json_valid(line) THEN json_type(line) <> 'OBJECT' ELSE true END ORDER BY n LIMIT 1
"""

NAMED = "SELECT DISTINCT unnest(json_keys(line)) FROM given"
"""Every column that some row names."""

SETUP = (
    """
CREATE MACRO no_number(name, found, least) AS CASE
    WHEN found IS NULL THEN NULL
    WHEN try_cast(found AS DOUBLE) IS NULL THEN format('{} is {}, which is no number', name, found)
    WHEN isnan(try_cast(found AS DOUBLE)) THEN format('{} is NaN; leave out what is not known', name)
    WHEN isinf(try_cast(found AS DOUBLE)) THEN format('{} is infinite; leave out what is not known', name)
    WHEN try_cast(found AS DOUBLE) < least THEN format('{} is {}, which is less than {}', name, found, least)
END
""",
    """
CREATE MACRO no_whole(name, found, least) AS coalesce(no_number(name, found, least), CASE
    WHEN try_cast(found AS DOUBLE) <> floor(try_cast(found AS DOUBLE)) OR try_cast(found AS DOUBLE) > 9e15
    THEN format('{} is {}, which is no whole number', name, found)
END)
""",
    """
CREATE MACRO truth(found) AS CASE
    WHEN lower(found) IN ('true', '1', '1.0') THEN true WHEN lower(found) IN ('false', '0', '0.0') THEN false
END
""",
    """
CREATE MACRO judged(found) AS CASE replace(lower(found), ' ', '_')
    WHEN 'pass' THEN 'passed' WHEN 'passed' THEN 'passed' WHEN 'fail' THEN 'failed' WHEN 'failed' THEN 'failed'
    WHEN 'inconclusive' THEN 'inconclusive' WHEN 'infra_failed' THEN 'infra_failed' WHEN 'not_run' THEN 'not_run'
END
""",
    """
CREATE MACRO told(line, column_name) AS nullif(trim(line ->> ('$.' || column_name)), '')
""",
    """
CREATE TABLE texts AS SELECT n, line,
    told(line, 'case') AS "case", told(line, 'repeat') AS repeat, told(line, 'model') AS model,
    told(line, 'harness') AS harness, told(line, 'variant') AS variant,
    coalesce(told(line, 'label'), told(line, 'verdict')) AS label, told(line, 'pass') AS pass,
    told(line, 'family') AS family, told(line, 'latency_s') AS latency_s, told(line, 'timed_out') AS timed_out,
    told(line, 'waited_s') AS waited_s, told(line, 'tool_calls') AS tool_calls,
    told(line, 'reasoning_tokens') AS reasoning_tokens, told(line, 'cost_usd') AS cost_usd,
    told(line, 'all_attempts_usd') AS all_attempts_usd,
    told(line, 'attempt') AS attempt, told(line, 'tags') AS tags, told(line, 'reason') AS reason
FROM given
""",
)
"""Leaves the table `texts`: every column as the text it was given as, NULL where it is empty or null."""

PROBLEMS = """
SELECT n, problem FROM (SELECT n, coalesce(
    CASE WHEN len(json_keys(line)) > len(list_distinct(json_keys(line))) THEN 'a column is given twice' END,
    list_transform(
        list_filter(
            ['case', 'repeat', 'model', 'harness', 'variant', 'label', 'verdict', 'pass', 'family', 'latency_s',
             'timed_out', 'waited_s', 'tool_calls', 'reasoning_tokens', 'cost_usd', 'all_attempts_usd', 'attempt',
             'reason'],
            lambda name: json_type(line, '$.' || name) IN ('OBJECT', 'ARRAY')
        ),
        lambda name: format('{} is a list or an object, and must be one value', name)
    )[1],
    CASE WHEN "case" IS NULL THEN 'case is empty' WHEN repeat IS NULL THEN 'repeat is empty' END,
    no_whole('repeat', repeat, 0),
    CASE
        WHEN label IS NOT NULL AND judged(label) IS NULL
        THEN format('label is {}; it must be PASS, FAIL, INCONCLUSIVE, INFRA_FAILED or NOT_RUN', label)
        WHEN pass IS NOT NULL AND truth(pass) IS NULL THEN format('pass is {}; it must be true or false', pass)
        WHEN label IS NULL AND pass IS NULL THEN 'label and pass are both empty'
        WHEN label IS NOT NULL AND pass IS NOT NULL AND (judged(label) = 'passed') <> truth(pass)
        THEN format('label is {} but pass is {}', label, pass)
        WHEN timed_out IS NOT NULL AND truth(timed_out) IS NULL
        THEN format('timed_out is {}; it must be true or false', timed_out)
    END,
    no_number('latency_s', latency_s, 0), no_number('waited_s', waited_s, 0), no_number('tool_calls', tool_calls, 0),
    no_number('reasoning_tokens', reasoning_tokens, 0), no_number('cost_usd', cost_usd, 0),
    no_number('all_attempts_usd', all_attempts_usd, 0),
    no_whole('attempt', attempt, CASE judged(label) WHEN 'not_run' THEN 0 ELSE 1 END),
    CASE WHEN try_cast(line -> '$.request_latency_s' AS DOUBLE[]) IS NULL
              AND json_type(line, '$.request_latency_s') <> 'NULL'
              OR len(list_filter(try_cast(line -> '$.request_latency_s' AS DOUBLE[]),
                                 lambda s: s IS NULL OR isnan(s) OR isinf(s) OR s < 0)) > 0
         THEN 'request_latency_s must be a list of numbers that are not negative' END,
    CASE WHEN json_type(line, '$.reasons') NOT IN ('ARRAY', 'NULL') THEN 'reasons must be a list of texts' END
) AS problem FROM texts) WHERE problem IS NOT NULL ORDER BY n LIMIT 1
"""

FILL = """
INSERT INTO rows SELECT n - 1, "case", family, try_cast(repeat AS DOUBLE)::BIGINT,
    coalesce(model, '-'), coalesce(harness, '-'), coalesce(variant, '-'),
    coalesce(judged(label), CASE WHEN truth(pass) THEN 'passed' ELSE 'failed' END),
    coalesce(try_cast(attempt AS DOUBLE)::INTEGER, CASE judged(label) WHEN 'not_run' THEN 0 ELSE 1 END),
    latency_s::DOUBLE, coalesce(truth(timed_out), false), waited_s::DOUBLE,
    coalesce((line -> '$.request_latency_s')::DOUBLE[], []), tool_calls::DOUBLE, reasoning_tokens::DOUBLE,
    cost_usd::DOUBLE, all_attempts_usd::DOUBLE, coalesce(tag_texts.tags, MAP {}),
    coalesce((line -> '$.reasons')::VARCHAR[], CASE WHEN reason IS NULL THEN [] ELSE [reason] END)
FROM texts LEFT JOIN tag_texts ON texts.tags = tag_texts.told
"""

REPEATED = """
SELECT list_sort(list("index"))[2] + 1, min("index") + 1,
    format('repeat {} of case {} is given twice in the arm {} · {} · {}; the first is ', repeat, "case", model, harness,
           variant)
FROM rows GROUP BY model, harness, variant, "case", repeat HAVING count(*) > 1 ORDER BY 1 LIMIT 1
"""
"""The second row, the first one, and what is wrong, to be followed by where the first one stands."""

UNLIKE = """
SELECT "index" + 1, first + 1, format('family or tags of case {} are not those of ', rows."case")
FROM rows JOIN (
    SELECT "case", min("index") AS first, arg_min(row(family, tags), "index") AS told FROM rows GROUP BY "case"
) USING ("case") WHERE row(family, tags) IS DISTINCT FROM told ORDER BY 1 LIMIT 1
"""


def missing(named: list[str]) -> str:
    """The first column that is needed and that no row names, with what may stand for it; empty: there is none."""
    return next((" or ".join(options) for options in _NEEDED if not set(options) & set(named)), "")

"""The questions that are asked of the table `rows`, in DuckDB's SQL; `tables` reads the answers."""

CELLS = """
CREATE OR REPLACE TEMP TABLE cells AS
SELECT row_number() OVER () - 1 AS cell, * FROM (
    SELECT model, harness, variant, "case",
        min("index") AS first, any_value(family) AS family, any_value(tags) AS tags,
        count(*) FILTER (verdict = 'passed') AS passed,
        count(*) FILTER (verdict = 'failed') AS failed,
        count(*) FILTER (verdict = 'inconclusive') AS inconclusive,
        count(*) FILTER (verdict = 'infra_failed') AS infra_failed,
        count(*) FILTER (verdict = 'not_run') AS not_run,
        coalesce(sum(latency_s) FILTER (decided), 0) AS latency_s_total,
        count(latency_s) FILTER (decided) AS latency_s_reported,
        min(latency_s) FILTER (decided) AS latency_s_low,
        max(latency_s) FILTER (decided) AS latency_s_high,
        coalesce(sum(tool_calls) FILTER (decided), 0) AS tool_calls_total,
        count(tool_calls) FILTER (decided) AS tool_calls_reported,
        min(tool_calls) FILTER (decided) AS tool_calls_low,
        max(tool_calls) FILTER (decided) AS tool_calls_high,
        coalesce(sum(reasoning_tokens) FILTER (decided), 0) AS reasoning_tokens_total,
        count(reasoning_tokens) FILTER (decided) AS reasoning_tokens_reported,
        min(reasoning_tokens) FILTER (decided) AS reasoning_tokens_low,
        max(reasoning_tokens) FILTER (decided) AS reasoning_tokens_high,
        min(latency_s) FILTER (decided AND timed_out) AS time_limit_s,
        count(latency_s) FILTER (decided AND timed_out) AS timeouts,
        CASE WHEN count(cost_usd) FILTER (verdict <> 'not_run') = count(*) FILTER (verdict <> 'not_run')
             THEN coalesce(sum(cost_usd) FILTER (verdict <> 'not_run'), 0) END AS cost_usd,
        CASE WHEN count(spent_usd) = count(*) THEN coalesce(sum(spent_usd), 0) END AS all_attempts_usd,
        sum(greatest(attempt - 1, 0)) AS earlier_attempts
    FROM (
        SELECT *, verdict IN ('passed', 'failed') AS decided,
            coalesce(all_attempts_usd, CASE attempt WHEN 0 THEN 0 WHEN 1 THEN cost_usd END) AS spent_usd
        FROM rows
    )
    GROUP BY ALL
)
"""
"""Every count and sum of a cell in one pass; leaves the table `cells`, by which trials are numbered."""

TRIALS = """
CREATE OR REPLACE TEMP VIEW trials AS
SELECT cell::UINTEGER AS cell, rows.* FROM rows JOIN cells USING (model, harness, variant, "case")
"""
DECIDED = "CREATE OR REPLACE TEMP VIEW decided AS FROM trials WHERE verdict IN ('passed', 'failed')"

LATENCIES = """
SELECT cell, CASE WHEN timed_out THEN 'inf'::DOUBLE ELSE latency_s END AS value
FROM decided WHERE latency_s IS NOT NULL
"""
"""A trial that was cut off at the limit is longer than every other."""

REQUEST_LATENCIES = "SELECT cell, unnest(request_latency_s) AS value FROM decided"

BY_REPEAT = "SELECT cell, repeat, (verdict = 'passed')::TINYINT AS passed FROM decided"

ATTEMPTS = """
SELECT cell, attempt, count(*) AS decided, count(*) FILTER (verdict = 'passed') AS passed
FROM decided GROUP BY ALL ORDER BY ALL
"""

REASONS = """
SELECT cell, reason, failed FROM (
    SELECT cell, reason, bool_or(verdict = 'failed') AS failed,
        row_number() OVER (
            PARTITION BY cell ORDER BY count(DISTINCT repeat) DESC, min(repeat), arg_min(told, repeat), reason
        ) AS place
    FROM (
        SELECT cell, repeat, verdict, unnest(reasons) AS reason, generate_subscripts(reasons, 1) AS told
        FROM trials WHERE verdict <> 'passed' AND len(reasons) > 0
    ) GROUP BY cell, reason
) WHERE place <= ? ORDER BY cell, place
"""
"""Each reason once, the one that most trials give first; equals in the order of repeats, then as they were told."""

SHOWN = """
SELECT cell, "index", verdict FROM trials
WHERE repeat IN (SELECT DISTINCT repeat FROM rows ORDER BY repeat LIMIT ?) ORDER BY cell, repeat
"""

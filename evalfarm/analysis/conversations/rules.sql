-- The rules over conversations, as one query over the tables facts, requests, tool_calls, messages and guards.
-- What it looks for is in variables, one for each list of the rules: a pattern for a list of patterns, a list for a
-- list of names. The same rules stand in Python beside the graders; on every run the two are compared.
CREATE OR REPLACE VIEW conversations AS
WITH
-- Calls, each once. What one witness tells twice under one id is one call ...
each_id AS (
    SELECT * FROM tool_calls
    QUALIFY call_id IS NULL OR row_number() OVER (PARTITION BY conversation, witness, call_id ORDER BY n) = 1
),
numbered AS (
    SELECT *, row_number() OVER (PARTITION BY conversation, witness, server, name, input ORDER BY n) AS nth
    FROM each_id
),
-- ... and what the gateway served counts only where the harness does not tell of as many equal ones.
once AS (
    SELECT * FROM numbered AS c
    WHERE c.witness <> 'gateway' OR NOT EXISTS (
        SELECT 1 FROM numbered AS h
        WHERE h.witness = 'harness' AND h.conversation = c.conversation AND h.nth = c.nth
            AND h.server IS NOT DISTINCT FROM c.server AND h.name = c.name AND h.input = c.input
    )
),
read AS (
    SELECT
        conversation, n, witness, name AS tool, input, result, error IS NOT NULL AS error,
        CASE WHEN witness = 'shell' OR server = '(harness)' THEN 'builtin'
             WHEN server IS NULL THEN 'plugin' ELSE 'mcp' END AS kind,
        CASE WHEN server <> '(harness)' THEN server END AS server,
        CASE WHEN error IS NOT NULL THEN error
             WHEN starts_with(result, '"') THEN (result ->> '$') ELSE result END AS text
    FROM once
),
classed AS (
    SELECT *,
        kind <> 'builtin' AND regexp_matches(text, getvariable('schema_errors')) AS is_schema,
        kind <> 'builtin' AND regexp_matches(text, getvariable('access_errors')) AS is_access,
        kind <> 'builtin' AND regexp_matches(text, getvariable('upstream_errors')) AS is_upstream,
        kind <> 'builtin' AND regexp_matches(text, getvariable('bad_arguments')) AS is_argument,
        kind <> 'builtin' AND regexp_matches(text, getvariable('timeouts')) AS is_timeout,
        kind <> 'builtin' AND (
            list_has_any(
                list_transform(
                    string_split_regex(regexp_replace(tool, '([a-z0-9])([A-Z])', '\1_\2', 'g'), '[^A-Za-z0-9]+'),
                    lambda word: lower(word)
                ),
                getvariable('write_verbs')
            )
            OR list_has_any(
                list_transform(
                    getvariable('method_arguments'),
                    lambda place: CASE
                        WHEN json_type(input, '$."' || place || '"') = 'VARCHAR'
                            AND regexp_full_match(input ->> ('$."' || place || '"'), '[ -~]+')
                        THEN upper(input ->> ('$."' || place || '"')) END
                ),
                getvariable('write_methods')
            )
        ) AS writes
    FROM read
),
calls AS (
    SELECT *,
        is_schema OR is_access OR is_upstream OR is_argument OR is_timeout AS failed,
        row_number() OVER (PARTITION BY conversation, kind, server, tool, input ORDER BY n) - 1 AS again
    FROM classed
),
by_tool AS (
    SELECT conversation, kind, server, tool,
        count(*) AS calls,
        count(*) FILTER (is_schema) AS schema_errors,
        count(*) FILTER (is_access) AS access_errors,
        count(*) FILTER (is_upstream) AS upstream_errors,
        count(*) FILTER (is_argument) AS bad_arguments,
        count(*) FILTER (is_timeout) AS timeouts,
        count(*) FILTER (failed) AS failed_calls,
        count(*) FILTER (error AND NOT failed AND kind <> 'builtin') AS other_errors,
        count(*) FILTER (again > 0) AS repeated_calls,
        max(again) AS most_repeats,
        count(*) FILTER (writes) AS writes,
        count(*) FILTER (
            kind <> 'builtin' AND list_contains(getvariable('widget_tools'), tool) AND NOT failed AND NOT error
        ) AS widgets,
        count(*) FILTER (kind = 'builtin' AND list_contains(getvariable('outside_tools'), tool)) AS outside
    FROM calls GROUP BY ALL
),
called AS (
    SELECT conversation,
        list(
            {kind: kind, server: server, tool: tool, calls: calls, schema_errors: schema_errors,
             access_errors: access_errors, upstream_errors: upstream_errors, bad_arguments: bad_arguments,
             timeouts: timeouts, failed_calls: failed_calls, other_errors: other_errors,
             repeated_calls: repeated_calls, writes: writes}
            ORDER BY kind, coalesce(server, ''), tool
        ) AS tools,
        sum(calls) FILTER (kind <> 'builtin') AS mcp_calls,
        sum(calls) FILTER (kind = 'plugin') AS plugin_calls,
        sum(calls) FILTER (kind = 'builtin') AS builtin_calls,
        sum(schema_errors) AS schema_errors, sum(access_errors) AS access_errors,
        sum(upstream_errors) AS upstream_errors, sum(bad_arguments) AS bad_arguments, sum(timeouts) AS timeouts,
        sum(failed_calls) AS failed_calls, sum(other_errors) AS other_errors,
        sum(repeated_calls) AS repeated_calls, max(most_repeats) AS most_repeats,
        sum(widgets) AS widgets, sum(writes) AS writes, sum(outside) AS outside
    FROM by_tool GROUP BY conversation
),
-- Shell commands: what a skill was read from, what fetches from outside, what does nothing.
commands AS (
    SELECT conversation,
        arg_min(skill, n) FILTER (skill <> '') AS skill_read,
        bool_or(regexp_matches(command, getvariable('outside_fetches'))) AS fetches,
        bool_and(
            trim(text, E' \t\r\n') = ''
            OR regexp_full_match(trim(command, E' \t\r\n'), getvariable('idle_commands'))
        ) AS idle
    FROM (SELECT conversation, n, text, input ->> '$' AS command,
              regexp_extract(input ->> '$', 'skills/([A-Za-z0-9._-]+)/SKILL\.md', 1) AS skill
          FROM read WHERE witness = 'shell')
    GROUP BY conversation
),
-- The suite's guards.
guarded AS (
    SELECT c.conversation, g.name AS guard,
        count(*) FILTER (
            NOT regexp_matches(looked_at, g.must_match) OR regexp_matches(looked_at, g.must_not_match)
        ) AS broken
    FROM calls AS c JOIN guards AS g ON c.kind <> 'builtin' AND list_contains(g.tools, c.tool),
        LATERAL (SELECT CASE
            WHEN g.argument IS NULL THEN c.input
            WHEN json_type(c.input, '$."' || g.argument || '"') = 'VARCHAR'
            THEN c.input ->> ('$."' || g.argument || '"') ELSE '' END AS looked_at) AS l
    GROUP BY ALL
),
guards_of AS (
    SELECT f.conversation, map_from_entries(list((g.name, coalesce(b.broken, 0)))) AS guards,
        sum(coalesce(b.broken, 0)) AS broken
    FROM facts AS f CROSS JOIN guards AS g
    LEFT JOIN guarded AS b ON b.conversation = f.conversation AND b.guard = g.name
    GROUP BY f.conversation
),
-- Requests: a sum of which a part is not known is not known.
answered AS (SELECT *, coalesce(status BETWEEN 200 AND 299, false) AS ok FROM requests),
asked AS (
    SELECT conversation,
        count(*) AS requests,
        CASE WHEN count(input_tokens) FILTER (ok) = count(*) FILTER (ok)
             THEN coalesce(sum(input_tokens) FILTER (ok), 0) END AS input_tokens,
        CASE WHEN count(output_tokens) FILTER (ok) = count(*) FILTER (ok)
             THEN coalesce(sum(output_tokens) FILTER (ok), 0) END AS output_tokens,
        CASE WHEN count(cached_tokens) FILTER (ok) = count(*) FILTER (ok)
             THEN coalesce(sum(cached_tokens) FILTER (ok), 0) END AS cached_read_tokens,
        CASE WHEN count(cached_write_tokens) FILTER (ok) = count(*) FILTER (ok)
             THEN coalesce(sum(cached_write_tokens) FILTER (ok), 0) END AS cached_write_tokens,
        CASE WHEN count(cost_usd) FILTER (side) = count(*) FILTER (side)
             THEN coalesce(fsum(cost_usd) FILTER (side), 0) END AS side_usd,
        quantile_cont(latency_s, 0.5) FILTER (ok) AS request_p50_s,
        quantile_cont(latency_s, 0.95) FILTER (ok) AS request_p95_s
    FROM answered GROUP BY conversation
),
-- The thread: its turns, and the answer to the last of them.
thread AS (
    SELECT conversation,
        count(*) FILTER (role = 'user') AS turns,
        coalesce(
            arg_max(text, n) FILTER (role = 'assistant' AND turn = last_turn), ''
        ) AS answer
    FROM (SELECT *, max(turn) OVER (PARTITION BY conversation) AS last_turn FROM messages)
    GROUP BY conversation
),
joined AS (
    SELECT f.*, t.*, c.* EXCLUDE (conversation), q.* EXCLUDE (conversation), s.* EXCLUDE (conversation),
        g.guards, g.broken, coalesce(t.answer, '') AS final
    FROM facts AS f
    LEFT JOIN (SELECT conversation AS of_thread, turns, answer FROM thread) AS t ON t.of_thread = f.conversation
    LEFT JOIN called AS c USING (conversation)
    LEFT JOIN asked AS q USING (conversation)
    LEFT JOIN commands AS s USING (conversation)
    LEFT JOIN guards_of AS g USING (conversation)
),
judged AS (
    SELECT *,
        coalesce(nullif(skill, ''), skill_read) AS named_skill,
        regexp_matches(final, getvariable('tools_unavailable')) AS unavailable,
        coalesce(widgets, 0) > 0 OR length(final) >= getvariable('completed_chars') AS is_complete
    FROM joined
),
succeeded AS (
    SELECT *,
        is_complete AND coalesce(plugin_calls, 0) > 0 AND coalesce(schema_errors, 0) = 0
            AND coalesce(writes, 0) = 0 AND NOT unavailable AS sound,
    FROM judged
),
explained AS (
    SELECT *,
        sound AND coalesce(broken, 0) = 0 AS wholly,
        list_filter([
            CASE WHEN outcome = 'crashed' THEN 'harness_crash' END,
            CASE WHEN outcome IN ('gave_up', 'timed_out') THEN 'step_limit' END,
            CASE WHEN coalesce(failed_calls, 0) + coalesce(other_errors, 0) > 0 THEN 'tool_failed' END,
            CASE WHEN coalesce(fetches, false) OR coalesce(outside, 0) > 0 OR len(list_filter(
                reasons, lambda reason: regexp_matches(reason, getvariable('outside_reasons'))
            )) > 0 THEN 'fetched_outside' END,
            CASE WHEN idle THEN 'shell_idle' END,
            CASE WHEN coalesce(mcp_calls, 0) = 0 THEN 'no_tool' END,
            CASE WHEN unavailable OR regexp_matches(final, getvariable('said_unavailable'))
                 THEN 'said_unavailable' END,
            CASE WHEN suffix(rtrim(final, E' \t\r\n*_"\')'), '?') OR suffix(rtrim(final, E' \t\r\n*_"\')'), '？')
                 THEN 'asked_user' END
        ], lambda sign: sign IS NOT NULL) AS signs
    FROM succeeded
)
SELECT
    conversation, run, "case", repeat, attempt, harness, model, variant, session, suite, suite_version, counted,
    plugin, plugin_version, plugin_digest, named_skill AS skill, skill_digests[named_skill] AS skill_digest,
    strftime(make_timestamp(CAST(floor(started_at) AS BIGINT) * 1000000), '%Y-%m-%d') AS day, started_at,
    outcome, verdict,
    coalesce(turns, 0) AS turns, coalesce(requests, 0) AS requests,
    -- of no request at all every sum is known: it is nothing
    CASE WHEN requests IS NULL THEN 0 ELSE input_tokens END AS input_tokens,
    CASE WHEN requests IS NULL THEN 0 ELSE output_tokens END AS output_tokens,
    CASE WHEN requests IS NULL THEN 0 ELSE cached_read_tokens END AS cached_read_tokens,
    CASE WHEN requests IS NULL THEN 0 ELSE cached_write_tokens END AS cached_write_tokens,
    CASE WHEN requests IS NULL THEN cost_usd ELSE cost_usd - side_usd END AS cost_usd,
    duration_s, request_p50_s, request_p95_s,
    coalesce(mcp_calls, 0) AS mcp_calls, coalesce(plugin_calls, 0) AS plugin_calls,
    coalesce(builtin_calls, 0) AS builtin_calls,
    coalesce(schema_errors, 0) AS schema_errors, coalesce(access_errors, 0) AS access_errors,
    coalesce(upstream_errors, 0) AS upstream_errors, coalesce(bad_arguments, 0) AS bad_arguments,
    coalesce(timeouts, 0) AS timeouts, coalesce(failed_calls, 0) AS failed_calls,
    coalesce(other_errors, 0) AS other_errors,
    coalesce(repeated_calls, 0) AS repeated_calls, coalesce(most_repeats, 0) AS most_repeats,
    coalesce(widgets, 0) AS widgets, coalesce(writes, 0) AS writes,
    length(final) AS answer_chars,
    len(regexp_extract_all(final, getvariable('placeholder_mentions'))) AS placeholder_mentions,
    unavailable AS tools_unavailable, is_complete AS completed,
    coalesce(guards, MAP {}) AS guards, sound AS base_success, wholly AS success,
    CASE WHEN outcome = 'infra_failed' OR CASE WHEN verdict IS NULL THEN wholly ELSE verdict <> 'failed' END THEN []
         WHEN len(signs) = 0 THEN ['wrong_conclusion'] ELSE signs END AS misses,
    coalesce(tools, []) AS tools
FROM explained

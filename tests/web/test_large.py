"""A million conversations: an export that needs no memory for them, and a page that answers at once."""

import subprocess
import sys
from pathlib import Path

import pytest

ROWS = 1_000_000
MOST_MB = {"csv": 200, "jsonl": 230, "parquet": 230}
"""Of the whole process, with all that a server has loaded in it, which is some 110."""
MOST_CPU_S = 1.0
"""Of the versions page, both threads together: on two idle cores it is there before that, whatever else is at work."""

#: Rows of twenty versions over as many days, in a file as `evalfarm metrics` writes it.
MAKE = """
import sys
from pathlib import Path
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.web.sheets import SHEETS, write_sheet

folder, count = Path(sys.argv[1]), int(sys.argv[2])
for name in ("empty", "run"):
    (folder / name).mkdir()
    for table in SHEETS:
        write_sheet(table, [], folder / name / f"{table}.parquet")
scorer = Scorer(ConversationRules(completed_chars=1))
scorer.write(folder / "empty" / "conversations.parquet")
scorer.close()
given = {
    "conversation": "'big/' || i || '/1'", "run": "'big'", "suite": "'shop'", "case": "'case-' || i % 200",
    "harness": "['loop', 'codex'][1 + i % 2]", "model": "'m'", "variant": "['plain', 'next'][1 + i // 2 % 2]",
    "plugin": "'Shop'", "plugin_version": "'1.0.' || i // 100000",
    "plugin_digest": "'sha256:' || md5(i // 100000 || '')",
    "skill": "'skill-' || i % 12", "started_at": "1790000000.0 + i * 20", "outcome": "'finished'", "counted": "true",
    "day": "strftime(make_timestamp((1790000000 + i * 20) * 1000000), '%Y-%m-%d')",
    "cost_usd": "0.001 * (i % 97)", "guards": "MAP {'scoped': i % 3}", "success": "i % 7 <> 0",
    "misses": "CASE WHEN i % 7 = 0 THEN ['tool_failed'] ELSE [] END",
    "tools": "[{'kind': 'plugin', 'server': NULL, 'tool': 'stock', 'calls': 2 + i % 3, 'schema_errors': 0,"
    " 'access_errors': 0, 'upstream_errors': 0, 'bad_arguments': 0, 'timeouts': 0, 'failed_calls': 0,"
    " 'other_errors': 0, 'repeated_calls': 0, 'writes': 0}]",
}
plain = {"BIGINT": "hash(i) % 20", "DOUBLE": "hash(i) % 1000", "VARCHAR": "'x'", "BOOLEAN": "true"}
with Rows() as rows:
    kinds = rows.records("DESCRIBE SELECT * FROM read_parquet(?)", [str(folder / "empty" / "conversations.parquet")])
    columns = ", ".join(f'({given.get(name, plain.get(kind))})::{kind} AS "{name}"' for name, kind, *_ in kinds)
    rows.run(f"COPY (SELECT {columns} FROM range({count}) AS r(i)) TO ? (FORMAT parquet)",
             [str(folder / "run" / "conversations.parquet")])
"""

SEEN = """
import datetime, sys, time
from pathlib import Path
from evalfarm.cli.services import web  # noqa: F401 - all that a server has loaded counts
from evalfarm.web import exporting, versions
from evalfarm.web.access import Allowed
from evalfarm.web.asking import Ask
from evalfarm.web.holdings import Held, Seen
from evalfarm.web.rows import open_rows

folder = Path(sys.argv[1])
held = Held("big", "run", "shop", None, 1.0, "p", "s", folder / "run", finished=True, scored=True)
seen = Seen((held,), folder / "empty")
opened = lambda ask: open_rows(seen, ask, Allowed(), today=datetime.date(2026, 11, 30), folder=folder)
"""

EXPORT = """
with opened(Ask()) as rows:
    exporting.write(rows, "conversations", sys.argv[2], folder / "export")
lines = sum(piece.count(b"\\n") for piece in exporting.pieces(folder / "export"))
# Not getrusage's: that of a process which a large one started begins with what the large one held.
(most,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(lines, int(most) // 1024)
"""

COMPARE = """
took = []
for _ in range(5):
    begin = time.process_time()
    with opened(Ask(plugin=("Shop",), source="all")) as rows:
        found = versions.compared(rows, "Shop", "", "")
    took.append(time.process_time() - begin)
print(len(found.versions), found.now.all.conversations, min(took))
"""


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("million")
    run(MAKE, str(folder), str(ROWS))
    return folder


def run(program: str, *words: str) -> list[str]:
    # From a file: what has none is taken for a person at a prompt, who is shown a progress bar.
    file = Path(words[0], "program.py")
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(("form", "lines"), [("csv", ROWS + 1), ("jsonl", ROWS), ("parquet", None)])
def test_a_million_rows_are_exported_in_little_memory(million: Path, form: str, lines: int | None) -> None:
    found, mb = map(int, run(SEEN + EXPORT, str(million), form))
    assert lines in (None, found)
    assert mb < MOST_MB[form]


@pytest.mark.slow
def test_the_versions_of_a_million_rows_are_compared_within_a_second(million: Path) -> None:
    versions, conversations, best_cpu_s = run(SEEN + COMPARE, str(million))
    assert (versions, conversations) == ("20", "50000")
    assert float(best_cpu_s) < MOST_CPU_S

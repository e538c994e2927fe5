"""What a run leaves behind in files: its report as JSON, as Markdown and as a page."""

from pathlib import Path

from evalfarm.cli.output import PAGE, as_document, report_folder
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run import markdown, page


def write_files(summary: RunSummary, home: Path) -> None:
    """Write the report under the home, where `report_folder` says."""
    folder = report_folder(home, summary.run)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(as_document(summary), encoding="utf-8")
    (folder / "report.md").write_text(markdown.render(summary), encoding="utf-8")
    (folder / PAGE).write_text(page.render(summary), encoding="utf-8")

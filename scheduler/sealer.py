"""A run that is closed is summarised and sealed."""

from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.analysis.summary.aggregate import summarize_run
from evalfarm.analysis.summary.own import rows_of_run
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import InfrastructureError
from evalfarm.outcomes import Outcomes
from evalfarm.runstate import Ledger
from evalfarm.store import Store
from scheduler.archiver import archive
from scheduler.judging import with_judging
from scheduler.spending import with_money
from scheduler.tallying import tally_of


def seal(ledger: Ledger, store: Store, plan: Plan) -> RunSummary:
    """Archive what is left, keep the rows, summarise, and let go of the run's place in Redis. Safe to repeat."""
    counted = ledger.progress().closed
    archive(ledger, store, plan, rest=True)
    progress = ledger.progress()
    manifest = store.get_manifest(plan.run)
    with (
        TemporaryDirectory() as folder,
        rows_of_run(plan, store.result_documents(plan.run), parquet := Path(folder, "rows.parquet")) as rows,
    ):
        kept = rows.records("SELECT count(*) FROM rows WHERE verdict <> 'not_run'")[0][0]
        if kept < counted:
            raise InfrastructureError(
                f"{store.url} holds {kept} of the {counted} results of run {plan.run!r} that were counted",
                "somebody has deleted from it; put back what was under "
                f"runs/{plan.run}/segments and resume the run, or start a new one",
            )
        store.put_rows(plan.run, parquet.read_bytes())
        summary = summarize_run(manifest, plan, rows, attempts=progress.attempts, finished=not progress.cancelled)
        # None: another process has sealed it just now, and kept its tally.
        tally = None if (seen := ledger.view()) is None else tally_of(plan, seen, rows)
    summary = with_money(with_judging(summary, plan, store), ledger.money(len(plan.arms)))
    # Before the summary: whoever finds a run summed up finds what it took as well.
    if tally is not None:
        Outcomes(store.objects).put_tally(tally)
    store.put_summary(summary)
    ledger.delete()
    return summary

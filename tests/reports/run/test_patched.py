from evalfarm.analysis.judgement.notes import run_note
from evalfarm.contracts.patch import PluginPatch
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.comparison.blocks import Said
from evalfarm.reports.comparison.parts import caveats as caveats_of_runs
from evalfarm.reports.run import markdown, page
from evalfarm.reports.run.findings import caveats
from evalfarm.reports.run.patched import lines

PATCH = PluginPatch(
    plugin="Shop",
    variants=("plain",),
    version="1.1.0",
    digest="sha256:" + "a" * 64,
    released="sha256:" + "b" * 64,
    released_version="1.0.0",
    patched_at=1.0,
)
SAID = "PATCHED: plugin Shop is a working tree, aaaaaaaaaaaa (version 1.1.0), in place of"


def test_a_run_says_what_was_run_in_place_of_what() -> None:
    made = PATCH.model_copy(update={"released": None, "version": ""})
    assert lines(None) == ()
    assert lines(PATCH) == (f"{SAID} the released bbbbbbbbbbbb (version 1.0.0).",)
    assert lines(made) == (
        "PATCHED: plugin Shop is a working tree, aaaaaaaaaaaa (version none), in place of a plugin made around the"
        " server (version 1.0.0).",
    )


def test_a_home_that_was_rebuilt_is_told_beside_it() -> None:
    rebuilt = PATCH.model_copy(update={"rebuilt": ("Codex is 2 now, and was 1 when the patch was installed",)})
    assert lines(rebuilt)[1:] == (
        "PATCH REBUILT: Codex is 2 now, and was 1 when the patch was installed;"
        " what attempts were cloned from holds the same patch, by its digest.",
    )


def test_every_report_opens_with_it(summary: RunSummary) -> None:
    assert summary.manifest is not None
    patched = summary.model_copy(update={"manifest": summary.manifest.model_copy(update={"patch": PATCH})})
    assert caveats(patched)[0] == f"{SAID} the released bbbbbbbbbbbb (version 1.0.0)."
    assert caveats(patched)[1:] == caveats(summary)
    for drawn in (markdown.render(patched), page.render(patched)):
        assert SAID in drawn
    assert next(said.text for said in caveats_of_runs([run_note(patched)]) if isinstance(said, Said)) == (
        f"PATCHED: in run {patched.run}, {lines(PATCH)[0].removeprefix('PATCHED: ')}"
    )

from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.reports.night import lines, page, slack, title

NIGHT = Night(schedule="shop", stamp="20261130-0230", due_at=0.0, decided_at=0.0, decision="on time")
END = NightEnd(
    schedule="shop",
    stamp="20261130-0230",
    verdict="regressed",
    reasons=("m · loop · plain: a drop of <9> points & more",),
    ended_at=0.0,
)


def test_a_message_opens_with_the_verdict_and_says_where_to_look() -> None:
    assert slack(NIGHT, END) == {
        "text": "REGRESSED: shop, night of 2026-11-30 02:30",
        "blocks": [
            {
                "type": "section",
                "text": {
                    "type": "mrkdwn",
                    "text": "*REGRESSED: shop, night of 2026-11-30 02:30*\n"
                    "m · loop · plain: a drop of &lt;9&gt; points &amp; more\n"
                    "The run's report: evalfarm report shop-20261130-0230",
                },
            }
        ],
    }


def test_a_night_that_ran_late_says_so() -> None:
    late = NIGHT.model_copy(update={"decision": "late", "why": "nobody was there to fire it; run 30 minutes late"})
    assert title(late, END) == "REGRESSED: shop, night of 2026-11-30 02:30, late"
    assert "It ran late: nobody was there to fire it; run 30 minutes late." in lines(late, END)


def test_many_reasons_are_counted_and_a_long_one_is_cut() -> None:
    many = END.model_copy(update={"reasons": tuple(f"arm {at}: {'x' * 1000}" for at in range(9))})
    assert "… and 4 more" in lines(NIGHT, many)
    assert len(slack(NIGHT, many)["blocks"][0]["text"]["text"]) < 3_000


def test_a_night_that_was_not_run_has_a_page_without_a_report() -> None:
    skipped = END.model_copy(update={"verdict": "skipped", "reasons": ("nobody was *there*",)})
    assert page(NIGHT, skipped, None, None) == (
        "# SKIPPED: shop, night of 2026-11-30 02:30\n\nnobody was \\*there\\*\n"
    )

"""What the datasets of groups hold apart."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalfarm.web.access import Allowed
from evalfarm.web.asking import Ask
from evalfarm.web.datasets import DATASETS
from evalfarm.web.rows import open_rows

Make = Callable[..., Any]
TODAY = datetime.date(2026, 11, 30)


def test_a_skill_that_changed_within_a_version_is_two_rows_and_one_that_did_not_is_one(
    row: Make, hold: Make, tmp_path: Path
) -> None:
    told = [("orders", "sha256:a"), ("orders", "sha256:b"), ("refunds", "sha256:r"), ("refunds", "sha256:r")]
    seen = hold(
        [
            row(conversation=f"r/{at}/1", started_at=float(at), skill=skill, skill_digest=folder)
            for at, (skill, folder) in enumerate(told)
        ]
    )
    with open_rows(seen, Ask(), Allowed(), today=TODAY, folder=tmp_path) as rows:
        found = rows.records(f"SELECT skill, skill_digest, conversations FROM ({DATASETS['skills']})")
    assert found == [("orders", "sha256:a", 1), ("orders", "sha256:b", 1), ("refunds", "sha256:r", 2)]


def test_a_plugin_that_changed_within_its_version_is_two_rows(row: Make, hold: Make, tmp_path: Path) -> None:
    seen = hold(
        [
            row(conversation=f"r/{at}/1", started_at=float(at), plugin_digest=f"sha256:{digest * 64}")
            for at, digest in enumerate("aba")
        ]
    )
    with open_rows(seen, Ask(), Allowed(), today=TODAY, folder=tmp_path) as rows:
        found = rows.records(f"SELECT plugin_digest, conversations FROM ({DATASETS['versions']})")
    assert found == [(f"sha256:{'a' * 64}", 2), (f"sha256:{'b' * 64}", 1)]

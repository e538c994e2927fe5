"""Personal access tokens: what is kept, what opens, and what closes again."""

from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.base import digest_bytes
from evalfarm.errors import UnknownName, UsageError
from evalfarm.web.tokens import RANDOM_BYTES, Token, TokenUse, mint

RANDOM = bytes(range(RANDOM_BYTES))


def test_a_token_has_a_name_and_a_secret_and_only_its_digest_is_kept() -> None:
    text, kept = mint("report", ["shop"], 2, random=RANDOM, now_s=10.0)
    assert text == "efp_aaaqeayeau_BgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCU"
    assert kept == Token(
        id="aaaqeayeau",
        name="report",
        digest=digest_bytes(text.encode()),
        suites=("shop",),
        created_at=10.0,
        expires_at=10.0 + 2 * 86_400,
    )
    assert text[-43:] not in kept.model_dump_json()


def test_a_token_is_made_of_as_much_chance_as_it_needs() -> None:
    with pytest.raises(ValueError, match="38 random bytes"):
        mint("report", [], 2, random=b"short", now_s=0.0)


def test_nothing_in_the_store_is_the_token(farm: Any) -> None:
    text = farm.token()
    assert farm.tokens.find(text) is not None
    files = [path for path in Path(farm.folder, "store").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if text[-43:].encode() in path.read_bytes()] == []


def test_a_token_is_found_by_its_text_alone(farm: Any) -> None:
    text, kept = farm.token_and_record()
    assert farm.tokens.find(text) == kept
    other = text[:-1] + ("A" if text[-1] != "A" else "B")
    for wrong in (other, text[:-1], text + "A", text.upper(), f" {text}", kept.id, kept.digest, "", "efp_"):
        assert farm.tokens.find(wrong) is None


@pytest.mark.parametrize(
    "name", ["../tokens/x", "..%2f..%2fx", "a/b", "aaaaaaaaa", "aaaaaaaaaaa", "AAAAAAAAAA", "aaaaaaaaa\n", "\x00" * 10]
)
def test_what_is_no_name_is_never_looked_for(farm: Any, name: str) -> None:
    assert farm.tokens.find(f"efp_{name}_{'A' * 43}") is None


def test_a_token_ends_at_its_time(farm: Any) -> None:
    _, kept = farm.token_and_record(days=1)
    states = [kept.state(kept.expires_at + seconds) for seconds in (-1, 0, 1)]
    assert states == ["active", "expired", "expired"]


def test_a_revoked_token_stays_revoked_whatever_its_use(farm: Any) -> None:
    text, kept = farm.token_and_record()
    revoked = farm.tokens.revoke(kept.name, 50.0)
    farm.tokens.note_use(kept, 60.0)
    assert farm.tokens.find(text) == revoked
    assert revoked.state(0.0) == "revoked"
    assert farm.tokens.revoke(kept.id, 99.0) == revoked
    assert farm.tokens.all() == [(revoked, TokenUse(used_at=60.0))]


def test_a_use_is_written_down_once_a_minute(farm: Any) -> None:
    _, kept = farm.token_and_record()
    seen = []
    for now_s in (100.0, 159.0, 160.0):
        farm.tokens.note_use(kept, now_s)
        seen.append(farm.tokens.all()[0][1].used_at)
    assert seen == [100.0, 100.0, 160.0]


def test_a_name_that_two_tokens_have_names_neither(farm: Any) -> None:
    for number in range(2):
        farm.tokens.keep(mint("twice", [], 1, random=bytes([number]) * RANDOM_BYTES, now_s=0.0)[1])
    with pytest.raises(UsageError, match="2 tokens are called 'twice'"):
        farm.tokens.revoke("twice", 1.0)
    with pytest.raises(UnknownName, match="there is no token 'nobody'"):
        farm.tokens.revoke("nobody", 1.0)

"""Secrets are replaced before a trace is graded, stored or shown to anyone. Pure.

Replaced is every value that this worker holds as a secret, what looks like one of the common kinds, and what the
suite's own patterns find; each leaves `[redacted:KIND]` in its place and is counted by kind.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from evalfarm.contracts.run import Trace

#: A value shorter than this is no secret that could be told from an ordinary word.
_SHORTEST = 6

#: kind -> what it looks like; where there is a group `secret`, it alone is replaced.
COMMON: dict[str, str] = {
    "private-key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "bearer-token": r"(?i:\bbearer)\s+(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
    "basic-auth": r"(?i:\bauthorization)[\"']?\s*[:=]\s*[\"']?(?i:basic)\s+(?P<secret>[A-Za-z0-9+/=]{8,})",
    "api-key": r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bAIza[A-Za-z0-9_-]{35}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    "url-password": r"://[^/\s:@\"']+:(?P<secret>[^/\s@\"']+)@",
    "password": r"(?i:\b[A-Z0-9_]*(?:password|passwd|api[_-]?key|secret[_-]?(?:access[_-]?)?key|client[_-]?secret"
    r"|access[_-]?token|auth[_-]?token))\\?[\"']?\s*[:=]\s*\\?[\"']?(?P<secret>[^\s\"',;}\\\[]{6,})",
}

#: kind -> of which at least one stands, in small letters, in whatever its pattern finds.
SIGNS: dict[str, tuple[str, ...]] = {
    "private-key": ("-----begin ",),
    "bearer-token": ("bearer",),
    "basic-auth": ("authorization",),
    "api-key": (
        *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "aiza", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        *("github_pat_", "glpat-", "xox", "hf_"),
    ),
    "jwt": ("eyj",),
    "url-password": ("://",),
    "password": (
        *("password", "passwd", "apikey", "api_key", "api-key", "secret"),
        *("accesstoken", "access_token", "access-token", "authtoken", "auth_token", "auth-token"),
    ),
}

#: Letters that a pattern without regard to case takes for one of ASCII, and that have no such small letter.
_FOLDED = "\u0130\u0131\u017f\u212a"

#: The parts of a trace that hold what models, tools and shells wrote.
_WRITTEN = ("failure", "turns", "tool_calls", "served_calls", "requests", "shell_commands", "telemetry", "events")


def redacted(trace: Trace, patterns: Mapping[str, str], secrets: Iterable[str] = ()) -> Trace:
    """The trace without secrets, with how many of each kind were replaced, and with its events counted.

    `patterns` are the suite's own, by kind; `secrets` are values that are known to be secret, of kind `known`.
    """
    known = tuple(secrets)
    redaction, clean = _Redaction(patterns, known), {}
    if _may_hold_secrets(trace, patterns, known):
        told = trace.model_dump(include=set(_WRITTEN))
        clean = {name: redaction.value(value) for name, value in told.items()}
    made = trace if not redaction.counts else Trace.model_validate({**trace.model_dump(exclude=set(_WRITTEN)), **clean})
    telemetry = made.telemetry.model_copy(update={"counted": made.counts})
    return made.model_copy(update={"telemetry": telemetry, "redacted": dict(sorted(redaction.counts.items()))})


def _may_hold_secrets(trace: Trace, patterns: Mapping[str, str], secrets: Iterable[str]) -> bool:
    """Whether a walk over the trace could find anything: one look at its JSON, which costs a tenth of the walk."""
    try:
        text = trace.model_dump_json(include=set(_WRITTEN))
        known = [to_json(secret)[1:-1].decode() for secret in secrets if len(secret) >= _SHORTEST]
    except PydanticSerializationError:  # half of a surrogate pair
        return True
    small = text.lower()
    return (
        bool(patterns)  # a suite's own may find anything
        or any(letter in text for letter in _FOLDED)
        or any(sign in small for signs in SIGNS.values() for sign in signs)
        or any(secret in text for secret in known)
    )


class _Redaction:
    """One walk over a trace, counting on the way."""

    def __init__(self, patterns: Mapping[str, str], secrets: Iterable[str]) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self.counts: Counter[str] = Counter()
        self._kinds = [
            *(("known", re.compile("|".join(map(re.escape, known)))) for _ in known[:1]),
            *((kind, re.compile(pattern)) for kind, pattern in COMMON.items()),
            *((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in patterns.items()),
        ]

    def value(self, value: Any) -> Any:
        """The same value with every text in it, names of fields too, made clean."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self.value(part) for part in value]
        if isinstance(value, dict):
            return {self._text(name): self.value(part) for name, part in value.items()}
        return value

    def _text(self, text: str) -> str:
        if len(text) < _SHORTEST:
            return text
        for kind, pattern in self._kinds:
            text = pattern.sub(lambda match, kind=kind: self._replaced(match, kind), text)  # type: ignore[misc]
        return text

    def _replaced(self, match: re.Match[str], kind: str) -> str:
        if not match.group():  # a pattern that also matches nothing finds it everywhere
            return ""
        self.counts[kind] += 1
        if "secret" not in match.re.groupindex:
            return f"[redacted:{kind}]"
        whole, start = match.group(), match.start()
        return f"{whole[: match.start('secret') - start]}[redacted:{kind}]{whole[match.end('secret') - start :]}"

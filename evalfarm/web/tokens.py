"""Personal access tokens, in object storage: a digest of each, never the token itself.

tokens/{id}.json      Token, replaced when it is revoked
token-uses/{id}.json  TokenUse, the newest wins: apart, so that noting a use can never undo a revocation

A token is `efp_`, ten letters that name it, `_`, and 256 random bits. So many bits cannot be guessed, and a plain
digest of them cannot be turned back: a slow one, as for passwords, would only make each request slow.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from evalfarm.contracts.base import Contract, Name, digest_bytes
from evalfarm.documents import load, to_json
from evalfarm.errors import UnknownName, UsageError
from evalfarm.objects import Objects

RANDOM_BYTES = 38
"""That a new token is made of: 6 for its name, 32 for its secret."""
LONGEST_NAME = 100
_ID_BYTES = 6
_ID = "[a-z2-7]{10}"
_TOKEN = re.compile(rf"efp_({_ID})_[A-Za-z0-9_-]{{43}}")
_DAY_S = 86_400.0
#: Of a token that is used all the time, a use is written down so often.
_NOTED_EVERY_S = 60.0

State = Literal["active", "expired", "revoked"]


class Token(Contract):
    """What is kept of a token. It reads, and nothing else."""

    schema_version: Literal[1] = 1
    id: str = Field(pattern=_ID)
    name: str = Field(min_length=1, max_length=LONGEST_NAME)  #: for people: what it is for
    digest: str  #: of the token
    suites: tuple[Name, ...] = ()  #: what it reads; empty: everything
    created_at: float  #: seconds since the epoch
    expires_at: float
    revoked_at: float | None = None

    def state(self, now_s: float) -> State:
        """Whether it still opens anything."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if now_s < self.expires_at else "expired"


class TokenUse(Contract):
    """When a token last opened something."""

    schema_version: Literal[1] = 1
    used_at: float


def mint(name: str, suites: Sequence[str], days: int, *, random: bytes, now_s: float) -> tuple[str, Token]:
    """A new token, to be shown once, and what is kept of it. `random`: RANDOM_BYTES of them, good enough for a key."""
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"a token is made of {RANDOM_BYTES} random bytes, not of {len(random)}")
    named = base64.b32encode(random[:_ID_BYTES]).decode().rstrip("=").lower()
    text = f"efp_{named}_{base64.urlsafe_b64encode(random[_ID_BYTES:]).decode().rstrip('=')}"
    kept = Token(
        id=named,
        name=name,
        digest=digest_bytes(text.encode()),
        suites=tuple(suites),
        created_at=now_s,
        expires_at=now_s + days * _DAY_S,
    )
    return text, kept


class Tokens:
    """The tokens of one store. Every method raises StoreUnavailable when the backend fails."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._noted: dict[str, float] = {}

    def keep(self, token: Token) -> None:
        """Keep a new token. Raises UsageError where there is one of its id, which chance alone does not bring about."""
        if not self._objects.write(f"tokens/{token.id}.json", to_json(token)):
            raise UsageError(f"there is a token {token.id} already in {self._objects.url}", "make another one")

    def all(self) -> list[tuple[Token, TokenUse | None]]:
        """Every token with its last use, oldest first."""
        found = []
        for name in self._objects.names("tokens"):
            token = load(self._objects, Token, f"tokens/{name}")
            if token is not None:
                found.append((token, load(self._objects, TokenUse, f"token-uses/{name}")))
        return sorted(found, key=lambda pair: (pair[0].created_at, pair[0].id))

    def revoke(self, named: str, now_s: float) -> Token:
        """Close a token, by its id or by a name that only one open token has, from the next request on.

        Raises UnknownName where there is none, UsageError where several are called so.
        """
        tokens = [token for token, _ in self.all()]
        meant = [token for token in tokens if token.id == named]
        meant = meant or [token for token in tokens if token.name == named and token.revoked_at is None]
        if not meant:
            raise UnknownName(f"there is no token {named!r}", "evalfarm token list shows them")
        if len(meant) > 1:
            ids = ", ".join(token.id for token in meant)
            raise UsageError(f"{len(meant)} tokens are called {named!r}", f"name one by its id: {ids}")
        if meant[0].revoked_at is not None:
            return meant[0]
        revoked = meant[0].model_copy(update={"revoked_at": now_s})
        self._objects.write(f"tokens/{revoked.id}.json", to_json(revoked), create=False)
        return revoked

    def find(self, text: str) -> Token | None:
        """The token that a text is, whatever its state; None: it is none. Compared in constant time."""
        named = _TOKEN.fullmatch(text)
        # Checked before it becomes part of a key: what comes from outside must not name another one.
        token = None if named is None else load(self._objects, Token, f"tokens/{named[1]}.json")
        if token is None:
            return None
        return token if hmac.compare_digest(token.digest, digest_bytes(text.encode())) else None

    def note_use(self, token: Token, now_s: float) -> None:
        """Write down that a token was used, at most once a minute."""
        if now_s - self._noted.get(token.id, float("-inf")) >= _NOTED_EVERY_S:
            self._noted[token.id] = now_s
            self._objects.write(f"token-uses/{token.id}.json", to_json(TokenUse(used_at=now_s)), create=False)

"""The door to obstore: bytes under keys, in a local folder, in memory or in a bucket, with our errors.

Which keys there are is decided in `store`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar

import obstore
import zstandard
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import MemoryStore, ObjectStore, from_url

from evalfarm.errors import StoreUnavailable
from evalfarm.settings import public_url


class Objects:
    """Bytes under keys; keys that end in `.zst` are compressed. Safe to use from several threads at once.

    Not across a fork: obstore's runtime threads do not survive one, and a call in the child would wait
    for ever; it raises StoreUnavailable instead. Every method raises StoreUnavailable when the backend fails.
    """

    _used_in: ClassVar[int | None] = None  #: the process that started obstore's runtime, shared by all stores

    def __init__(self, url: str) -> None:
        self.url = public_url(url)  #: without credentials
        with self._reaching("open"):
            self._backend = _open(url)

    def read(self, key: str) -> bytes | None:
        """The bytes under a key, uncompressed; None: there is no such key."""
        with self._reaching("read"):
            try:
                data = bytes(obstore.get(self._backend, key).bytes())
            except FileNotFoundError:
                return None
        try:
            return zstandard.decompress(data) if key.endswith(".zst") else data
        except zstandard.ZstdError as error:
            raise self.unreadable(key, f"does not decompress: {error}") from error

    def write(self, key: str, data: bytes, *, create: bool = True) -> bool:
        """Write a key atomically; False: `create` was asked for, and the key exists already.

        False does not prove another writer: a retry within this call may have met its own first try,
        whose answer was lost. Whoever gets False reads what is there.
        """
        with self._reaching("write"):
            try:
                body = zstandard.compress(data) if key.endswith(".zst") else data
                obstore.put(self._backend, key, body, mode="create" if create else "overwrite")
            except AlreadyExistsError:
                return False
        return True

    def names(self, prefix: str) -> list[str]:
        """The last parts of the keys and folders directly under a prefix, sorted."""
        with self._reaching("list"):
            page = obstore.list_with_delimiter(self._backend, prefix)
        keys = [*page["common_prefixes"], *(entry["path"] for entry in page["objects"])]
        return sorted(key.rsplit("/", 1)[-1] for key in keys)

    def delete(self, key: str) -> None:
        """Remove a key that exists."""
        with self._reaching("delete"):
            obstore.delete(self._backend, key)

    def unreadable(self, key: str, why: str) -> StoreUnavailable:
        """The error for a key whose content is of no use."""
        return StoreUnavailable(
            f"{key} in {self.url} {why}", hint="it is damaged, or another version of evalfarm wrote it"
        )

    @contextmanager
    def _reaching(self, doing: str) -> Iterator[None]:
        if Objects._used_in not in (None, os.getpid()):
            raise StoreUnavailable(
                f"cannot {doing} {self.url}: object storage was used before this process was forked",
                hint="open and use the store only in the forked processes, never in their parent",
            )
        if doing != "open":
            Objects._used_in = os.getpid()
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            why = public_url(str(error).partition("\n")[0])
            raise StoreUnavailable(
                f"cannot {doing} {self.url}: {why}",
                hint="check EVALFARM_STORE_URL and the provider's credentials; `evalfarm doctor` tries the store",
            ) from error


def _open(url: str) -> ObjectStore:
    if url.startswith("memory:"):
        return MemoryStore()
    if url.startswith("file:"):
        return from_url(url, mkdir=True)
    # 30 s, not obstore's 180: a worker that waits longer than its lease has lost the trial anyway
    return from_url(url, retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=30)})

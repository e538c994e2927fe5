"""The door to obstore: bytes under keys, in a local folder, in memory or in a bucket, with our errors.

Which keys there are is decided in `store`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

import obstore
import zstandard
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
from obstore.store import MemoryStore, ObjectStore, from_url

from evalfarm.errors import StoreUnavailable
from evalfarm.local_files import clear_unfinished, create_file, is_plain, plain_names
from evalfarm.settings import public_url

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import RetryConfig

#: Times that a write is sent in all, each with obstore's own tries: for what obstore does not send again by itself.
_TRIES_OF_A_WRITE = 3
#: Keys in one request: the most that S3 takes.
_DELETED_TOGETHER = 1_000
#: How obstore tries again on 5xx and broken connections. Its own waits are over in 0.7 s, these in some 5; a store that
#: says SlowDown means seconds. A minute is twice the time that one request may take, so that a read which timed out is
#: sent again. That time is not set here: a client option would displace those of the environment (AWS_ALLOW_HTTP).
_RETRIES: "RetryConfig" = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=5), "base": 2},
}


class Stamp(NamedTuple):
    """Which content a key holds, without reading it."""

    tag: str  #: another one after every write
    written_at: float  #: seconds since the epoch, the store's clock


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
        self._erased_at = url if url.startswith("file:") else None
        self._folder = url2pathname(urlsplit(url).path).rstrip("/") if self._erased_at else None

    @property
    def is_local(self) -> bool:
        """Whether they are files of this machine."""
        return self._folder is not None

    def read(self, key: str) -> bytes | None:
        """The bytes under a key, uncompressed; None: there is no such key."""
        with self._reaching("read"):
            try:
                data = self._bytes_of(key)
            except (FileNotFoundError, IsADirectoryError):
                return None
        try:
            return zstandard.decompress(data) if key.endswith(".zst") else data
        except zstandard.ZstdError as error:
            raise self.unreadable(key, f"does not decompress: {error}") from error

    def _bytes_of(self, key: str) -> bytes:
        if (path := self._path_of(key)) is not None:
            with open(path, "rb") as file:
                return file.read()
        return bytes(obstore.get(self._backend, key).bytes())

    def _path_of(self, key: str) -> str | None:
        """The file that a key is, where it is one that obstore names as we would.

        What is done to it is done on the caller's own thread, as obstore would. That hands each step to another one,
        which takes a tenth of a millisecond of CPU time to read or list and half a one to write.
        """
        return f"{self._folder}/{key}" if self._folder is not None and is_plain(key) else None

    def write(self, key: str, data: bytes, *, create: bool = True) -> bool:
        """Write a key atomically; False: `create` was asked for, and the key exists already.

        False does not prove another writer: a try within this call may have met an earlier one of its own,
        whose answer was lost. Whoever gets False reads what is there.
        """
        body = zstandard.compress(data) if key.endswith(".zst") else data
        with self._reaching("write"):
            if create and (path := self._path_of(key)) is not None:
                return create_file(path, body)
            for left in reversed(range(_TRIES_OF_A_WRITE)):
                try:
                    obstore.put(self._backend, key, body, mode="create" if create else "overwrite")
                    return True
                except AlreadyExistsError:
                    # S3 answers 409, which obstore takes for 412, while another write of the key is under way: that
                    # one may yet come to nothing, so only a key that is there exists.
                    if self._look_at(key) is not None:
                        return False
                except GenericError as error:
                    # A write that timed out may have taken effect, so obstore does not send it again. Ours can be.
                    if not left or "Timeout" not in str(error):
                        raise
            raise TimeoutError(f"{key}: another write of it neither succeeded nor failed")

    def version(self, key: str) -> str | None:
        """What tells a key's content from what it held before, without reading it; None: there is no such key."""
        with self._reaching("read"):
            found = self._look_at(key)
        return None if found is None else found["e_tag"] or f"{found['last_modified'].isoformat()}/{found['size']}"

    def _look_at(self, key: str) -> "ObjectMeta | None":
        try:
            return obstore.head(self._backend, key)
        except FileNotFoundError:
            return None

    def stamp(self, key: str) -> Stamp | None:
        """Which content a key holds; None: there is no such key."""
        with self._reaching("read"):
            if (found := self._look_at(key)) is None:
                return None
        written_at = found["last_modified"].timestamp()
        return Stamp(found["e_tag"] or f"{written_at}-{found['size']}", written_at)

    def save(self, key: str, file: Path) -> bool:
        """Copy the bytes under a key to a file as they are, piece by piece; False: there is no such key."""
        with self._reaching("read"):
            try:
                pieces = obstore.get(self._backend, key).stream()
            except FileNotFoundError:
                return False
            with file.open("wb") as out:
                out.writelines(pieces)
        return True

    def names(self, prefix: str) -> list[str]:
        """The last parts of the keys and folders directly under a prefix, sorted."""
        with self._reaching("list"):
            if (path := self._path_of(prefix)) is not None and (found := plain_names(path)) is not None:
                return found
            page = obstore.list_with_delimiter(self._backend, prefix)
        keys = [*page["common_prefixes"], *(entry["path"] for entry in page["objects"])]
        return sorted(key.rsplit("/", 1)[-1] for key in keys)

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key under a prefix, in no order: a thousand of them in a request to a bucket."""
        with self._reaching("list"):
            for page in obstore.list(self._backend, prefix):
                yield from (entry["path"] for entry in page)

    def delete_under(self, prefix: str, last: Sequence[str]) -> int:
        """Remove every key under a prefix, those named in `last` after all others, in their order; how many there were.

        A folder that gets empty goes with them. Safe to repeat.
        """
        gone = 0
        with self._reaching("delete"):
            backend = from_url(self._erased_at, automatic_cleanup=True) if self._erased_at else self._backend
            for page in obstore.list(self._backend, prefix, chunk_size=_DELETED_TOGETHER):
                going = [entry["path"] for entry in page if entry["path"] not in last]
                obstore.delete(backend, going)
                gone += len(going)
            for key in (key for key in last if self._look_at(key) is not None):
                obstore.delete(backend, key)
                gone += 1
            if self._folder is not None:
                clear_unfinished(f"{self._folder}/{prefix}")
        return gone

    def delete(self, key: str) -> None:
        """Remove a key that exists."""
        with self._reaching("delete"):
            obstore.delete(self._backend, key)

    def check(self) -> None:
        """Write, read and remove a probe, and prove that a create-only write refuses a key that exists."""
        key = f"probes/{uuid4().hex}"  # its own key: two machines may check at once
        self.write(key, b"probe")  # False, too, where it met its own first try
        again = self.write(key, b"other")
        kept = self.read(key)
        self.delete(key)
        if (again, kept) != (False, b"probe"):
            raise StoreUnavailable(
                f"{self.url} does not refuse to overwrite on a create-only write, so trials could be counted twice",
                hint="use a store that honours If-None-Match: a local folder, S3, Google Cloud Storage or Azure",
            )

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
    return from_url(url, retry_config=_RETRIES)

"""Objects as files of a local folder, made, listed and cleared as obstore does it, on the caller's own thread."""

import os
import re
from contextlib import suppress
from itertools import count
from pathlib import Path

#: Keys that are the names of their files as they are; obstore writes other characters in another way.
_PLAIN = re.compile(r"(\w[\w.-]*/)*\w[\w.-]*", re.ASCII)
_UNFINISHED = re.compile(r"#\d+$", re.ASCII)


def is_plain(key: str) -> bool:
    """Whether obstore calls the file of a key as the key is."""
    return _PLAIN.fullmatch(key) is not None


def create_file(path: str, data: bytes) -> bool:
    """Make a file with all of its bytes at once; False: there is one.

    As obstore does it, down to the name of the unfinished file, which it leaves out of every list.
    """
    for number in count(1):
        staged = f"{path}#{number}"
        try:
            file = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:  # another writer's, or of one that was killed
            continue
        except FileNotFoundError:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            continue
        try:
            with open(file, "wb") as out:  # buffered: by itself, a disk that fills up takes a part and says nothing
                out.write(data)
            os.link(staged, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(staged)
        return True
    raise AssertionError("unreachable: there is always another number")


def plain_names(folder: str) -> list[str] | None:
    """The names in a folder as obstore lists them; None where it may know one under another name."""
    try:
        found = [name for name in os.listdir(folder) if not _UNFINISHED.search(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found) if all(map(is_plain, found)) else None


def clear_unfinished(folder: str) -> None:
    """Remove the files that killed writers left unfinished, which no list shows, and what folders they kept."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in filter(_UNFINISHED.search, names):
            Path(place, name).unlink(missing_ok=True)
        with suppress(OSError):  # there is more in it
            os.rmdir(place)

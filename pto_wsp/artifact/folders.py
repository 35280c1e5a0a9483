"""Open folders by descriptor: paths below are opened relative to it, as regular files, without following links.

The store holds code that runs as the user, so only the user may have written it. `open_private` checks every folder of a path while opening
it: folders above the store belong to the user or root and are not world-writable, except sticky ones (/tmp); the store and all below belong
to the user, and nobody else may write there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pto_wsp.errors import CacheFolderError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC     # non-blocking: a pipe without a writer does not block
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
_PIECE_BYTES = 1 << 20
MOST_BYTES = 1 << 30
_OWN_FOLDER = "set PTO_WSP_CACHE_DIR to a folder that is yours alone, as `mkdir -m 700` makes one"


class Folder:
    """An open folder. `store`: the store around it, in which all must be the user's and writable by nobody else; None outside."""

    __slots__ = ("_fd", "path", "store")

    def __init__(self, path: Path, fd: int, store: Path | None) -> None:
        self.path, self._fd, self.store = path, fd, store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def folder(self, name: str, *, create: bool = False) -> Folder:
        """Return the subfolder `name`; `create` makes a missing one.

        Raises: OSError for anything but a folder; C106 for a folder that other users could have written to.
        """
        return Folder(self.path / name, self._open_folder(name, create), self.store)

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes:
        """Return the contents of a file; `name` may contain folders, as a/b.

        Raises: OSError for anything but a regular file, or a larger one; C106 for a file that other users could have written.
        """
        with self._opened(name, most_bytes) as file:
            return file.read(most_bytes)

    def checksum(self, name: str, most_bytes: int = MOST_BYTES) -> tuple[str, int]:
        """Return the SHA-256 and the size in bytes of a file's contents; raises as `read`."""
        with self._opened(name, most_bytes) as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()

    def copy(self, name: str, target: Path) -> str:
        """Copy a file's contents to a new file, and return the SHA-256 of the written bytes; raises as `read`."""
        state = hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._opened(name, MOST_BYTES) as file, open(target, "xb", buffering=0) as copied:
            while piece := file.read(_PIECE_BYTES):
                state.update(piece)
                copied.write(piece)
        return state.hexdigest()

    def _opened(self, name: str, most_bytes: int) -> io.FileIO:
        file = io.FileIO(self._open_file(name), "rb")
        if os.fstat(file.fileno()).st_size > most_bytes:
            file.close()
            raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(self.path / name))
        return file

    def write(self, name: str, text: str) -> None:
        """Write a file atomically, replacing any file or link of the same name."""
        temporary = f".writing-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with _with_full_path(self.path / name):
            with open(os.open(temporary, flags, PRIVATE_FILE, dir_fd=self._fd), "w", encoding="utf-8") as file:
                file.write(text)
            try:
                os.rename(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            except OSError:
                os.unlink(temporary, dir_fd=self._fd)
                raise

    def _open_folder(self, name: str, create: bool) -> int:
        with _with_full_path(self.path / name):
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, PRIVATE_FOLDER, dir_fd=self._fd)
            return self._allowed(os.open(name, _FOLDER, dir_fd=self._fd), name)

    def _open_file(self, name: str) -> int:
        first, _, rest = name.partition("/")
        with _with_full_path(self.path / name):
            if first in ("", ".", "..") or not _can_be_named(name):
                raise OSError(errno.EINVAL, "no plain name of a file in a folder")
            if rest:
                with self.folder(first) as parent:
                    return parent._open_file(rest)
            fd = self._allowed(os.open(name, _FILE, dir_fd=self._fd), name)
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                os.close(fd)
                raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "no regular file")
            return fd

    def _allowed(self, fd: int, name: str) -> int:
        """Return the descriptor of an entry, after checking its owner and mode; a refused one is closed."""
        fault = None if self.store is None else _fault(os.fstat(fd))
        if self.store is not None and fault is not None:
            os.close(fd)
            path = self.path / name
            entry = self.store.joinpath(*path.relative_to(self.store).parts[:2])      # an artifact is removed as a whole
            raise _others_could_write(path, fault, f"remove {entry}; it is built again")
        return fd


def open_folder(path: Path) -> Folder:
    """Return a folder of any owner.

    Raises: OSError for anything but a folder.
    """
    return Folder(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), None)


def open_private(path: Path, *, create: bool = False) -> Folder:
    """Return the folder of an absolute path; `create` makes missing folders.

    Raises: OSError for a missing folder or anything but a folder; C106 if other users could have written there or above.
    """
    at, left, links = os.open("/", _FOLDER), list(reversed(path.parts[1:])), 0
    shown = Path("/")
    try:
        _look_above(shown, os.fstat(at), path)
        while left:
            name = left.pop()
            with _with_full_path(shown / name):
                if create:
                    _make_missing(name, at)
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    _look_above(shown / name, found, path)
                    left += reversed(Path(os.readlink(name, dir_fd=at)).parts)
                    links += 1
                    if links > _MOST_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    continue
                below = os.open(name, _FOLDER, dir_fd=at)      # "/" and ".." of a link too
            os.close(at)
            at, shown = below, Path(os.path.normpath(shown / name))
            if left:
                _look_above(shown, os.fstat(at), path)
        fault = _fault(os.fstat(at))
        if fault is not None:
            raise _others_could_write(path, fault, _OWN_FOLDER)
    except BaseException:
        os.close(at)
        raise
    return Folder(path, at, path)


def make_private(folder: Path) -> None:
    """Remove all permissions of other users from a folder and everything below; the folder belongs to the user."""
    folder.chmod(PRIVATE_FOLDER)
    for parent, folders, names in os.walk(folder):
        for name, mode in (*((name, PRIVATE_FOLDER) for name in folders), *((name, PRIVATE_FILE) for name in names)):
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, mode)


def _fault(status: os.stat_result) -> str | None:
    """Return why an entry of the store is not the user's alone, None if it is."""
    if status.st_uid != os.geteuid():
        return _owner(status)
    if status.st_mode & _OTHERS_WRITE:
        return f"mode {stat.S_IMODE(status.st_mode):04o}, which lets others write"
    return None


def _others_could_write(path: Path, fault: str, help: str) -> CacheFolderError:
    """Return the error for an entry of the store that is not the user's alone."""
    return CacheFolderError(f"the artifact cache is not yours alone: {path}", expected="yours, and nobody else may write", found=fault,
                            help=help)


def _look_above(shown: Path, status: os.stat_result, path: Path) -> None:
    """Refuse a folder or link on the path to the store that another user could have put there.

    Raises: C106.
    """
    is_open = not stat.S_ISLNK(status.st_mode) and status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
    if status.st_uid not in (os.geteuid(), 0) or is_open:
        fault = f"mode {stat.S_IMODE(status.st_mode):04o}, which lets everybody write" if is_open else _owner(status)
        raise CacheFolderError(f"the artifact cache in {path} is below a folder that others control: {shown}",
                               expected="yours or root's, and not everybody may write", found=fault, help=_OWN_FOLDER)


def _owner(status: os.stat_result) -> str:
    return f"owner {status.st_uid}"


def _can_be_named(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def _make_missing(name: str, at: int) -> None:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, PRIVATE_FOLDER, dir_fd=at)


@contextlib.contextmanager
def _with_full_path(path: Path) -> Iterator[None]:
    """Add the full path to OSErrors: for a path below a descriptor the system reports the last part only."""
    try:
        yield
    except OSError as problem:
        reason = "a link" if problem.errno == errno.ELOOP else problem.strerror or str(problem)
        place = problem.filename if str(problem.filename).startswith("/") else str(path)
        raise OSError(problem.errno or errno.EIO, reason, place) from None

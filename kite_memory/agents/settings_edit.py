"""Change a settings file that belongs to a person and their agent: planned as text, shown as a diff, backed up, atomic."""

import difflib
import io
import os
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.errors import KiteError
from kite_memory.system.private_files import PRIVATE, make_folder, make_private_folder, replace_file, sync_folder

_LONGEST = 4 << 20
_BACKUPS_KEPT = 20
_ABSENT = ".absent"


class SettingsUnreadable(KiteError):
    """Raised where settings are not understood; nothing was changed."""


class SettingsNotWritable(KiteError):
    """Raised where the change could not be made; the file is as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A planned change of a file. ``None`` stands for a file that does not exist."""

    before: str | None
    after: str | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    because: str


Plan = Edit | Nothing


def read_settings(path: Path) -> str | None:
    """Return the file's text to the byte, line ends included; ``None`` without a file. Raises `SettingsUnreadable`."""
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsUnreadable(f"cannot read {path}: {error.strerror}", hint="nothing was changed") from error
    if len(content) > _LONGEST:
        raise SettingsUnreadable(f"{path} is too long for a settings file", hint="nothing was changed")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsUnreadable(f"{path} is not UTF-8 text (byte {error.start})", hint="nothing was changed") from error


def diff(edit: Edit, path: Path) -> str:
    """Return the change as `diff -u` shows it."""
    before, after = (list(io.StringIO(text or "", newline="\n")) for text in (edit.before, edit.after))
    names = "/dev/null" if edit.before is None else str(path), "/dev/null" if edit.after is None else str(path)
    lines = difflib.unified_diff(before, after, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def apply(edit: Edit, path: Path, backups: Path, now: datetime | None = None) -> Path:
    """Make the change and return the path of the backup of what was there.

    A link is followed and what it points to is changed. Raises `SettingsNotWritable` if the file is no longer what the plan was
    made for, or cannot be replaced; then it is as it was.
    """
    target = Path(os.path.realpath(path))
    if read_settings(target) != edit.before:
        raise SettingsNotWritable(f"{path} was changed by somebody else just now", hint="run the command again")
    if not _is_ours(target):
        raise SettingsNotWritable(f"{path} belongs to another user", hint="run this as the user whose agent it is")
    try:
        backup = _back_up(edit.before, _backup_name(path), backups, now or datetime.now(UTC))
    except OSError as error:
        raise SettingsNotWritable(f"cannot keep a backup in {backups}: {error.strerror}", hint="nothing was changed") from error
    try:
        if edit.after is None:
            target.unlink()
            sync_folder(target.parent)
        else:
            make_folder(target.parent)
            replace_file(target, edit.after.encode(), mode=_mode(target))
    except OSError as error:
        elsewhere = f" (a link to {target})" if target != path else ""
        raise SettingsNotWritable(
            f"cannot write {path}{elsewhere}: {error.strerror}",
            hint="if another program manages this file, make the change there; `--dry-run` prints it",
        ) from error
    return backup


def backed_up(path: Path, backups: Path) -> tuple[str | None, ...]:
    """Return what was there before each of our changes, latest first; ``None`` for no file."""
    return tuple(None if kept.suffix == _ABSENT else _text(kept) for kept in reversed(_kept(_backup_name(path), backups)))


def _backup_name(path: Path) -> str:
    """Return a backup's name with the folder's: several agents call their file ``settings.json``."""
    return f"{path.parent.name.lstrip('.')}-{path.name}"


def _back_up(text: str | None, name: str, backups: Path, now: datetime) -> Path:
    make_private_folder(backups)
    backup = backups / f"{name}.{now:%Y%m%dT%H%M%S.%fZ}{_ABSENT if text is None else ''}"
    replace_file(backup, (text or "").encode())
    for old in _kept(name, backups)[:-_BACKUPS_KEPT]:
        old.unlink(missing_ok=True)
    return backup


def _kept(name: str, backups: Path) -> list[Path]:
    ours = re.compile(re.escape(name) + r"\.\d{8}T\d{6}\.\d{6}Z(\.absent)?")
    try:
        return sorted(path for path in backups.iterdir() if ours.fullmatch(path.name))
    except FileNotFoundError:
        return []


def _text(path: Path) -> str | None:
    try:
        return read_settings(path)
    except SettingsUnreadable:
        return ""  # damaged: it matches nothing


def _is_ours(target: Path) -> bool:
    """Return whether the file is the user's own: replacing a file also changes its owner, which root must not do."""
    if sys.platform == "win32":
        return True
    try:
        return target.stat().st_uid == os.geteuid()
    except OSError:
        return True  # no file, or writing will fail


def _mode(target: Path) -> int:
    if sys.platform == "win32":
        return PRIVATE
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        return PRIVATE

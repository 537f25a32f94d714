"""Changing one setting in a file that people also write by hand."""

import stat
import tomllib
from collections.abc import MutableMapping
from pathlib import Path

from kite_memory import config as configuration
from kite_memory import paths
from kite_memory.errors import ConfigInvalid, KiteError, UsageError
from kite_memory.system.private_files import PRIVATE, make_folder, replace_file

_SAID = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def change(name: str, value: str) -> str:
    """What was done. Raises `ConfigInvalid` for a setting or value that cannot be, and the file is as it was."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    settings = _settings()
    file = settings.file
    before = file.read_bytes() if file.exists() else None
    section, _, key = name.rpartition(".")
    try:
        document = tomlkit.parse((before or b"").decode("utf-8-sig"))
        if section == "vault" and isinstance(document.get("vault"), str):  # its path alone, which is the short form
            whole = tomlkit.inline_table()
            whole["path"] = document["vault"]
            document["vault"] = whole
        if name == "vault" and isinstance(document.get("vault"), MutableMapping):
            section, key = "vault", "path"
        table = document.setdefault(section, tomlkit.table()) if section else document
        if not isinstance(table, MutableMapping) or not key:
            configuration.check(before or b"", file)  # what stands there may be no section
            raise UsageError(f"there is no setting {name!r}", hint="`kmem config show` lists them")
        told = _typed(value, _in_force(settings, section, key))
        table[key] = told
        after = tomlkit.dumps(document).encode("utf-8", "replace")
    except TOMLKitError as error:
        raise ConfigInvalid(f"{name!r} cannot be set in {file}: {error}", hint="write it there by hand") from error
    now = _in_force(configuration.check(after, file), section, key)
    target = file.resolve()  # dotfiles are often links
    try:
        make_folder(target.parent)
        replace_file(target, after, mode=PRIVATE if before is None else stat.S_IMODE(target.stat().st_mode))
    except OSError as error:
        raise KiteError(f"cannot write {file}: {error.strerror}") from error
    if value and now != told and str(now) != str(Path(value).expanduser()):
        return f"{name} is set in {file}, but the environment says otherwise, and goes before: {now}"
    return f"{name} is set in {file}; a running daemon sees it after `kmem down` and `kmem up`"


def _settings() -> configuration.Config:
    """Those in force; the defaults where the file is TOML with something wrong in it, which may be the very value to be set."""
    try:
        return configuration.load()
    except ConfigInvalid as error:
        file = Path(paths.config_file())
        try:
            tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            raise error from None
        return configuration.check(b"", file)


def _in_force(settings: configuration.Config, section: str, key: str) -> object:
    if section == "vault":
        return {"path": settings.vault, "git": settings.vault_git}.get(key, "")
    return getattr(getattr(settings, section, None), key, "") if section else getattr(settings, key, "")


def _typed(value: str, now: object) -> object:
    """As the setting's kind has it; what does not fit is left to `config.check`, which says so better."""
    if isinstance(now, bool) and value in _SAID:
        return _SAID[value]
    if now is None or isinstance(now, int | float):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value

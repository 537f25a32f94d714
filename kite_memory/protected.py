"""Literals that the user wants never to be stored: read from ``.env`` or ``.netrc`` on request, kept as keyed hashes.

The key is stored beside the hashes: a reader of the file can test a guess, but finds no literal in it.
"""

import json
import netrc
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kite_memory.errors import KiteError, UsageError
from kite_memory.redaction.cleaning import LONGEST, SHORTEST, Literals, ProtectedLiteral, literal, protect
from kite_memory.system.private_files import make_folder, replace_file

_LARGEST = 1 << 20
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.\-]{0,127})\s*[=:]\s*(.*)")
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'")
_ESCAPED = re.compile(r"\\([\"\\$`])")
_PART_OF_LOGIN = re.compile(r"(?<!\S)(?:#.*|(machine|login|user|account|password)\s+(?:\"((?:[^\"\\]|\\.)*)\"|(\S+)))")
_COMMENT = re.compile(r"\s+#.*\Z")
_PASSWORD_IN_ADDRESS = re.compile(r"://[^\s/@:]*:([^\s@]{1,512})@")
_PLAIN = re.compile(r"[a-z][a-z0-9+.\-]*://\S*|[\w.\-]*/[\w./\-]*|[0-9.:,\-]{1,12}|true|false|yes|no|on|off|null", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLiterals:
    """Result of reading a secrets file.

    ``literals`` are to be protected; ``passed_over`` are names of values that are too short or plain words.
    """

    literals: tuple[str, ...]
    passed_over: tuple[str, ...]


def protected_file(config_file: Path) -> Path:
    return config_file.with_name("protected.json")


def read_literals(file: Path) -> FoundLiterals:
    """Read the passwords of a ``.netrc``, or the values of ``NAME=value`` and whole lines without a name of any other file.

    Raises `KiteError` for a file that cannot be read or parsed, `UsageError` for one that is too large.
    """
    from kite_memory.redaction.assigned import Promise, promise  # here: its expressions are slow to compile

    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{file} is too large", hint="name a .env or .netrc file")
        text = content.decode("utf-8-sig")
        if file.name.endswith("netrc"):
            netrc.netrc(str(file))  # refuses what is no such file; it keeps only the last login of a machine
            return _chosen(_passwords(text))
    except OSError as error:
        raise KiteError(f"cannot read {file}: {error.strerror}", hint="name a .env or .netrc file") from error
    except (UnicodeDecodeError, netrc.NetrcParseError):  # its message may quote a line
        raise KiteError(f"{file} cannot be understood", hint="name a .env or .netrc file") from None
    named: list[tuple[str, str, bool]] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        name, value = (found[1], found[2].strip()) if found else (f"line {number}", bare)
        for form in _forms(value):
            if address := _PASSWORD_IN_ADDRESS.search(form):
                named.append((name, address[1], True))
            else:
                named.append((name, form, found is None or promise(name.encode()) >= Promise.STRONG))
    return _chosen(named)


def _forms(value: str) -> dict[str, None]:
    """Return the forms of a value that may be met: as written, without escapes, and with what follows the closing quote."""
    quoted = _QUOTED.match(value)
    if quoted is None:
        return {_COMMENT.sub("", value): None}
    inner = quoted[1] or quoted[2] or ""
    after = _COMMENT.sub("", value[quoted.end() :])
    return dict.fromkeys((inner, _ESCAPED.sub(r"\1", inner) if quoted[1] else inner, inner + after))


def _passwords(text: str) -> list[tuple[str, str, bool]]:
    """Return machine and password of every login of a ``.netrc``."""
    machine, named = "default", list[tuple[str, str, bool]]()
    for part in _PART_OF_LOGIN.finditer(text):
        value = part[3] or part[2] or ""
        if part[1] == "machine":
            machine = value
        elif part[1] == "password":
            named += [(machine, form, True) for form in dict.fromkeys((value, re.sub(r"\\(.)", r"\1", value)))]
    return named


def _chosen(named: list[tuple[str, str, bool]]) -> FoundLiterals:
    from kite_memory.redaction.chance import stands_in, wordlike

    literals: dict[str, None] = {}
    passed_over: dict[str, None] = {}
    for name, value, surely in named:
        plain = not surely and (_PLAIN.fullmatch(value) or wordlike(value.encode()))
        if not SHORTEST <= len(value) <= LONGEST or plain or stands_in(value.encode(), numbered=False) or value.startswith("$"):
            passed_over[name] = None
        else:
            literals[value] = None
    return FoundLiterals(literals=tuple(literals), passed_over=tuple(passed_over))


def protect_file(file: Path, config_file: Path, *, forget: bool = False) -> str:
    """Replace the protected literals of ``file`` by those it holds now, or by none with ``forget``.

    Return a message about what was done.
    """
    found = FoundLiterals(literals=(), passed_over=()) if forget else read_literals(file)
    table = _table(protected_file(config_file)) or {"key": secrets.token_hex(32), "files": {}}
    key = bytes.fromhex(table["key"])
    table["files"].pop(str(file.resolve()), None)
    if found.literals:
        table["files"][str(file.resolve())] = [asdict(literal(key, each)) for each in found.literals]
    try:
        make_folder(config_file.parent)
        replace_file(protected_file(config_file), json.dumps(table).encode())
    except OSError as error:
        raise KiteError(f"cannot write {protected_file(config_file)}: {error.strerror}") from error
    if forget:
        return f"nothing of {file} is protected any more"
    left = f"; passed over as too short or plain: {', '.join(found.passed_over)}" if found.passed_over else ""
    return f"{len(found.literals)} literals of {file} will never be kept{left}"


def protected_literals(config_file: Path) -> Literals | None:
    """Return the protected literals, or ``None`` without any.

    Raises `KiteError` if their file exists but cannot be read: continuing would store what must be left out.
    """
    table = _table(protected_file(config_file))
    if table is None:
        return None
    return Literals(
        key=bytes.fromhex(table["key"]),
        known=tuple(ProtectedLiteral(**each) for literals in table["files"].values() for each in literals),
    )


def protect_process(config_file: Path) -> None:
    """Have the protected literals redacted everywhere in this process. It is called before anything is made that sends text.

    Raises `KiteError` if they cannot be read.
    """
    protect(protected_literals(config_file))


def _table(file: Path) -> dict[str, Any] | None:
    try:
        table = json.loads(file.read_bytes())
        bytes.fromhex(table["key"])
        for literals in table["files"].values():
            for each in literals:
                ProtectedLiteral(length=int(each["length"]), probe=int(each["probe"]), digest=str(each["digest"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KiteError(f"cannot read {file}: {error.strerror}", hint="see who owns it, or move it away") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KiteError(f"{file} is damaged", hint="remove it, and `kmem keys protect` writes it anew") from error
    known: dict[str, Any] = table
    return known

"""The key that the machines of one person share: it signs what they write for each other, and encrypts it if they want that."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any

from kite_memory.errors import KiteError, UsageError

_PREFIX = "kmem-sync-"
_SIZE = 32
_MAY_BE = "a key looks like `kmem-sync-…`; `kmem sync --key` shows it on a machine that is in already"


class NotDecrypted(Exception):
    """Raised for what was encrypted for another key, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SyncKey:
    """``identity`` is an age identity, or empty if nothing is encrypted."""

    secret: bytes
    identity: str = ""

    @classmethod
    def make(cls, *, encrypted: bool) -> "SyncKey":
        identity = str(_pyrage().x25519.Identity.generate()) if encrypted else ""
        return cls(secret=secrets.token_bytes(_SIZE), identity=identity)

    @classmethod
    def parse(cls, text: str) -> "SyncKey":
        """Parse what `text` returned. Raises `UsageError`."""
        secret, _, identity = text.strip().removeprefix(_PREFIX).partition("+")
        try:
            found = base64.b32decode(secret.upper() + "=" * (-len(secret) % 8))
        except ValueError as error:
            raise UsageError("that is no key of `kmem sync`", hint=_MAY_BE) from error
        if len(found) != _SIZE or not text.strip().startswith(_PREFIX):
            raise UsageError("that is no key of `kmem sync`", hint=_MAY_BE)
        if identity:
            _identity(identity)
        return cls(secret=found, identity=identity)

    def text(self) -> str:
        """Return the key as its owner copies it to another machine."""
        secret = base64.b32encode(self.secret).decode().rstrip("=").lower()
        return f"{_PREFIX}{secret}" + (f"+{self.identity}" if self.identity else "")

    def mark(self) -> str:
        """Return by what a folder shows that it is of this key, which does not tell the key."""
        return hmac.new(self.secret, b"folder", hashlib.sha256).hexdigest()[:32]

    def signature(self, head: bytes, body: bytes) -> str:
        return hmac.new(self.secret, head + b"\n" + body, hashlib.sha256).hexdigest()

    def sealed(self, body: bytes) -> bytes:
        """Return the body encrypted, if this key encrypts."""
        if not self.identity:
            return body
        found: bytes = _pyrage().encrypt(body, [_identity(self.identity).to_public()])
        return found

    def opened(self, body: bytes) -> bytes:
        """Reverse `sealed`. Raises `NotDecrypted`."""
        if not self.identity:
            return body
        try:
            found: bytes = _pyrage().decrypt(body, [_identity(self.identity)])
        except _pyrage().DecryptError as error:
            raise NotDecrypted from error
        return found


def _identity(text: str) -> Any:
    try:
        return _pyrage().x25519.Identity.from_str(text)
    except _pyrage().IdentityError as error:
        raise UsageError("the part of the key that decrypts is damaged", hint=_MAY_BE) from error


def _pyrage() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise KiteError(
            "encryption needs the package pyrage", hint="install it: `pip install 'kite-memory[age]'`, or with pipx inject"
        ) from error
    return pyrage

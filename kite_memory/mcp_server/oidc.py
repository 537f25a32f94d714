"""Access tokens of an OpenID Connect issuer: JWTs signed with the issuer's keys, accepted beside our own tokens."""

import hashlib
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from kite_memory.mcp_server.tokens import StoredToken, Turned
from kite_memory.model.note import Scope
from kite_memory.system import LOOPBACK

ALGORITHMS: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""Asymmetric ones only: with a symmetric one the issuer's public key would be the secret."""
LONGEST: Final = 8_192
_CLOCK_SKEW: Final = 30.0
_LONGEST_NAME: Final = 200
_MOST_PROJECTS: Final = 100
_MOST_KEYS: Final = 100
_LONGEST_ANSWER: Final = 1 << 18
_FETCH_SECONDS: Final = 5.0
_FRESH_SECONDS: Final = 3_600.0
_LONGEST_STALE: Final = 86_400.0
_BETWEEN_FETCHES: Final = 30.0

log = logging.getLogger("kite_memory.mcp_server")


class IssuerUnavailable(Exception):
    """The issuer does not answer, or its answer cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcRules:
    """Which tokens are accepted, and what they reach.

    ``person_claim`` names the claim that holds the person. ``scopes`` and ``projects`` are for tokens without the claims
    ``kmem_scopes`` and ``kmem_projects``; ``None`` stands for all projects, and without any scope a token is refused.
    """

    issuer: str
    audience: str
    person_claim: str = "sub"
    scopes: frozenset[Scope] = frozenset()
    projects: frozenset[str] | None = frozenset()


Fetch = Callable[[str], Any]


class IssuerKeys:
    """The issuer's public keys by id, fetched when first needed. Thread-safe.

    They are fetched again after an hour and for an unknown id, but never twice within thirty seconds, whether or not that
    succeeded. If the issuer does not answer, the keys known so far stay valid for a day. With known keys, no request waits for a
    fetch that another thread has begun.
    """

    def __init__(
        self,
        issuer: str,
        *,
        fetch: "Fetch | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch or fetched
        self._clock = clock
        self._fetching = threading.Lock()
        self._keys: Mapping[str, dict[str, Any]] = {}
        self._made: dict[tuple[str, str], jwt.PyJWK] = {}
        self._tried = float("-inf")
        self._fresh_until = float("-inf")

    def key(self, id: str, algorithm: str) -> jwt.PyJWK | None:
        """Return the key, or ``None`` if the issuer has none of this id for this algorithm.

        Raises `IssuerUnavailable` if no keys are known at all, or only old ones.
        """
        if id not in self._keys or self._clock() >= self._fresh_until:
            self._refresh(id)
        if self._keys and self._clock() >= self._fresh_until + _LONGEST_STALE:
            raise IssuerUnavailable
        found = self._keys.get(id)
        if found is None:
            if not self._keys:
                raise IssuerUnavailable
            return None
        made = self._made
        if (id, algorithm) not in made:
            try:
                if found.get("alg") not in (None, algorithm):
                    return None
                made[id, algorithm] = jwt.PyJWK(found, algorithm)
            except jwt.PyJWTError:
                return None
        return made[id, algorithm]

    def _refresh(self, id: str) -> None:
        usable = bool(self._keys) and self._clock() < self._fresh_until + _LONGEST_STALE
        if not self._fetching.acquire(blocking=not usable):
            return
        try:
            now = self._clock()
            if now < self._tried + _BETWEEN_FETCHES or (id in self._keys and now < self._fresh_until):
                return
            self._tried = now
            try:
                self._keys, self._made = self._fetched(), {}
            except IssuerUnavailable as error:
                log.warning("the keys of the tokens' issuer could not be fetched: %s", error)
                return
            self._fresh_until = now + _FRESH_SECONDS
        finally:
            self._fetching.release()

    def _fetched(self) -> dict[str, dict[str, Any]]:
        metadata = self._fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(metadata, dict) or metadata.get("issuer") != self._issuer:
            raise IssuerUnavailable("its metadata names another issuer")
        address = metadata.get("jwks_uri")
        if not isinstance(address, str) or not is_https_or_local(address):
            raise IssuerUnavailable("its metadata names no https address for the keys")
        answer = self._fetch(address)
        listed = answer.get("keys") if isinstance(answer, dict) else None
        if not isinstance(listed, list):
            raise IssuerUnavailable("it lists no keys")
        usable = {
            each["kid"]: each
            for each in listed[:_MOST_KEYS]
            if isinstance(each, dict)
            and isinstance(each.get("kid"), str)
            and each.get("kty") in ("RSA", "EC", "OKP")
            and each.get("use") in (None, "sig")
        }
        if not usable:
            raise IssuerUnavailable("it lists no key that can be used")
        return usable


class Issuer:
    """Verifies tokens of one issuer. Thread-safe."""

    def __init__(self, rules: OidcRules, keys: IssuerKeys | None = None) -> None:
        self._rules = rules
        self._keys = keys or IssuerKeys(rules.issuer)
        self._jwt = jwt.PyJWT({"enforce_minimum_key_length": True})

    def find(self, token: str) -> StoredToken | Turned:
        """Return what a token grants, or why it is refused."""
        if len(token) > LONGEST or not token.isascii():
            return "malformed"
        try:
            header = jwt.get_unverified_header(token)
            id, algorithm = header.get("kid"), header.get("alg")
            if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
                return "forged"
            if not isinstance(id, str) or (key := self._keys.key(id, algorithm)) is None:
                return "unknown"
            claims = self._jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._rules.audience,
                issuer=self._rules.issuer,
                leeway=_CLOCK_SKEW,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except IssuerUnavailable:
            return "issuer away"
        except jwt.InvalidSignatureError:
            return "forged"
        except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
            return "expired"
        except (jwt.InvalidAudienceError, jwt.InvalidIssuerError):
            return "not here"
        except (jwt.PyJWTError, ValueError, OverflowError, RecursionError):
            return "malformed"
        return granted(claims, self._rules) or "no grant"


def granted(claims: Mapping[str, Any], rules: OidcRules) -> StoredToken | None:
    """Return what verified claims grant, or ``None`` if they name no person or no scope.

    An ``email`` counts as a person only if the issuer has verified it.
    """
    person = claims.get(rules.person_claim)
    if rules.person_claim == "email" and claims.get("email_verified") is not True:
        return None
    if not isinstance(person, str) or not person or len(person) > _LONGEST_NAME or not person.isprintable():
        return None
    scopes = _scopes(claims["kmem_scopes"]) if "kmem_scopes" in claims else rules.scopes
    projects = _projects(claims["kmem_projects"]) if "kmem_projects" in claims else rules.projects
    if not scopes or person != person.strip() or claims.get("kmem_read_only", False) not in (True, False):
        return None
    return StoredToken(
        id="oidc:" + hashlib.sha256(person.encode()).hexdigest()[:16],
        name=person,
        write=not claims.get("kmem_read_only", False),
        scopes=scopes,
        projects=projects,
        created=datetime.fromtimestamp(0, UTC),
        expires=None,  # checked with the signature, for each request
        person=person,
    )


def words_of(claim: object) -> list[str]:
    """Return the words of a claim: a list of strings, or a string with spaces as OAuth writes scopes. Anything else has none."""
    words = claim.split() if isinstance(claim, str) else claim
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def _scopes(claim: object) -> frozenset[Scope]:
    return frozenset(scope for scope in Scope if scope.value in words_of(claim))


def _projects(claim: object) -> frozenset[str]:
    return frozenset(word for word in words_of(claim)[:_MOST_PROJECTS] if word and word.isprintable())


def is_https_or_local(address: str) -> bool:
    """Return whether what comes from the address cannot be changed on the way: it is https, or on this machine."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def fetched(address: str) -> Any:
    """Return the JSON at the address, without following redirects. Raises `IssuerUnavailable`."""
    opener = urllib.request.build_opener(_NoRedirects)
    request = urllib.request.Request(address, headers={"accept": "application/json"})  # noqa: S310 - `is_https_or_local`
    try:
        with opener.open(request, timeout=_FETCH_SECONDS) as answer:
            body = answer.read(_LONGEST_ANSWER + 1)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", "") or type(error).__name__
        raise IssuerUnavailable(f"{urlsplit(address).netloc}: {reason}") from error
    if len(body) > _LONGEST_ANSWER:
        raise IssuerUnavailable("its answer is too long")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise IssuerUnavailable("its answer is no JSON") from error

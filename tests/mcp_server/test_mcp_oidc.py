"""Tokens of an OpenID Connect issuer: what is accepted and reaches what, and every way in that is closed."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.config import check
from kite_memory.errors import ConfigInvalid
from kite_memory.mcp_server.oidc import Issuer, IssuerKeys, IssuerUnavailable, OidcRules, fetched, granted
from kite_memory.mcp_server.tokens import StoredToken
from kite_memory.model.note import Scope
from tests.fakes.oidc_issuer import AUDIENCE, FakeIssuer, oidc_issuer
from tests.fakes.performers import Performer
from tests.mcp_server.serving import HEADERS, serving


@pytest.fixture(scope="module")
def shared() -> Iterator[FakeIssuer]:
    with oidc_issuer() as issuer:
        issuer.add_curve("curve")
        yield issuer


def verifier(fake: FakeIssuer, **rules: Any) -> Issuer:
    return Issuer(OidcRules(**{"issuer": fake.url, "audience": AUDIENCE, **rules}))


def test_a_token_of_the_issuer_reaches_what_its_claims_say(shared: FakeIssuer) -> None:
    found = verifier(shared).find(shared.token(kmem_projects=["orchard"], kmem_read_only=True))

    assert isinstance(found, StoredToken)
    assert (found.person, found.write, found.scopes, found.projects) == (
        "ada", False, frozenset({Scope.PROJECT, Scope.SHARED}), frozenset({"orchard"}),
    )  # fmt: skip


def test_without_claims_the_configuration_decides_and_without_it_nothing_is_granted(shared: FakeIssuer) -> None:
    token = shared.token(kmem_scopes=None)

    assert verifier(shared).find(token) == "no grant"
    found = verifier(shared, scopes=frozenset({Scope.SHARED}), projects=None).find(token)

    assert isinstance(found, StoredToken)
    assert (found.scopes, found.projects, found.write) == (frozenset({Scope.SHARED}), None, True)


def test_a_token_without_projects_reaches_none(shared: FakeIssuer) -> None:
    found = verifier(shared).find(shared.token())

    assert isinstance(found, StoredToken)
    assert found.projects == frozenset()


@pytest.mark.parametrize(("verified", "accepted"), [(True, True), (False, False), (None, False), ("true", False)])
def test_an_email_is_a_person_only_if_the_issuer_verified_it(shared: FakeIssuer, verified: object, accepted: bool) -> None:
    found = verifier(shared, person_claim="email").find(shared.token(email="ada@example.org", email_verified=verified))

    assert (isinstance(found, StoredToken) and found.person == "ada@example.org") == accepted


@pytest.mark.parametrize(("key", "algorithm"), [("first", "RS256"), ("first", "PS512"), ("curve", "ES256")])
def test_asymmetric_algorithms_are_accepted(shared: FakeIssuer, key: str, algorithm: str) -> None:
    assert isinstance(verifier(shared).find(shared.token(key, algorithm)), StoredToken)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"aud": "https://another.example.org"}, "not here"),
        ({"aud": None}, "malformed"),
        ({"iss": "https://evil.example.org"}, "not here"),
        ({"iss": None}, "malformed"),
        ({"exp": int(time.time()) - 120}, "expired"),
        ({"exp": None}, "malformed"),
        ({"exp": "tomorrow"}, "malformed"),
        ({"nbf": int(time.time()) + 86_400}, "expired"),
        ({"sub": None}, "malformed"),
        ({"sub": ""}, "no grant"),
        ({"sub": "ada\n"}, "no grant"),
        ({"sub": " ada"}, "no grant"),
        ({"sub": "a" * 201}, "no grant"),
        ({"kmem_scopes": "everything"}, "no grant"),
        ({"kmem_scopes": {"project": True}}, "no grant"),
        ({"kmem_read_only": "yes"}, "no grant"),
    ],
)
def test_a_token_that_is_not_for_us_now_is_refused(shared: FakeIssuer, changed: dict[str, Any], reason: str) -> None:
    assert verifier(shared).find(shared.token(**changed)) == reason


def test_clocks_may_differ_by_half_a_minute(shared: FakeIssuer) -> None:
    now = int(time.time())

    assert isinstance(verifier(shared).find(shared.token(exp=now - 10)), StoredToken)
    assert isinstance(verifier(shared).find(shared.token(nbf=now + 20)), StoredToken)
    assert verifier(shared).find(shared.token(exp=now - 61)) == "expired"


def _letters(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def forged(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None) -> str:
    signed = f"{_letters(json.dumps(header).encode())}.{_letters(json.dumps(claims).encode())}"
    return f"{signed}.{_letters(hmac.digest(secret, signed.encode(), hashlib.sha256)) if secret is not None else ''}"


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "", None, ["RS256"]])
def test_an_algorithm_without_a_private_key_is_refused(shared: FakeIssuer, algorithm: object) -> None:
    for secret in (None, b"", shared.public_pem(), json.dumps(shared.published[0]).encode()):
        token = forged({"alg": algorithm, "kid": "first", "typ": "JWT"}, shared.claims(), secret)

        assert not isinstance(verifier(shared).find(token), StoredToken)


def test_a_public_key_does_not_sign_as_a_secret(shared: FakeIssuer) -> None:
    for algorithm in ("HS256", "RS256"):
        token = forged({"alg": algorithm, "kid": "first"}, shared.claims(), shared.public_pem())

        assert verifier(shared).find(token) == "forged"


def test_a_key_that_a_token_brings_along_is_not_used(shared: FakeIssuer) -> None:
    own = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key()))
    for header in ({"kid": "first", "jwk": public}, {"kid": "first", "jku": "http://127.0.0.1:1/keys"}, {"kid": "own"}):
        token = jwt.encode(shared.claims(), own, "RS256", headers=header)

        assert verifier(shared).find(token) in ("forged", "unknown")


def test_a_changed_claim_breaks_the_signature(shared: FakeIssuer) -> None:
    head, _, signature = shared.token().split(".")

    assert verifier(shared).find(f"{head}.{_letters(json.dumps(shared.claims(sub='eve')).encode())}.{signature}") == "forged"


def test_a_key_is_not_used_for_another_algorithm_than_its_own_or_for_encryption() -> None:
    with oidc_issuer() as issuer:
        issuer.add_key("pinned", alg="RS256")
        issuer.add_key("for-encryption", use="enc")
        issuer.published.append({"kty": "oct", "kid": "secret", "k": _letters(b"x" * 64)})
        verifies = verifier(issuer)

        assert isinstance(verifies.find(issuer.token("pinned")), StoredToken)
        assert verifies.find(issuer.token("pinned", "RS512")) == "unknown"
        assert verifies.find(issuer.token("for-encryption")) == "unknown"
        assert not isinstance(verifies.find(forged({"alg": "HS256", "kid": "secret"}, issuer.claims(), b"x" * 64)), StoredToken)
        assert verifies.find(forged({"alg": "ES256", "kid": "first"}, issuer.claims(), b"x")) == "unknown"


def test_a_new_key_is_fetched_once_it_signs() -> None:
    now = [1000.0]
    with oidc_issuer() as issuer:
        verifies = Issuer(OidcRules(issuer=issuer.url, audience=AUDIENCE), IssuerKeys(issuer.url, clock=lambda: now[0]))
        assert isinstance(verifies.find(issuer.token()), StoredToken)
        issuer.add_key("second")
        issuer.published.pop(0)

        at_once = verifies.find(issuer.token("second"))
        now[0] += 31
        later = verifies.find(issuer.token("second"))

        assert (at_once, isinstance(later, StoredToken)) == ("unknown", True)
        assert verifies.find(issuer.token("first")) == "unknown"
        assert issuer.fetches == 2


def test_a_storm_of_unknown_keys_asks_the_issuer_once() -> None:
    with oidc_issuer() as issuer:
        verifies = verifier(issuer)
        found: list[object] = []

        def storm(number: int) -> None:
            found.extend(verifies.find(issuer.token(kid=f"{number}-{each}")) for each in range(20))

        threads = [threading.Thread(target=storm, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert set(found) == {"unknown"}
        assert len(found) == 160
        assert issuer.fetches == 1
        assert isinstance(verifies.find(issuer.token()), StoredToken)


def test_nobody_waits_for_a_slow_issuer_while_its_keys_are_known() -> None:
    now = [1000.0]
    asked, answer = threading.Event(), threading.Event()

    def fetch(address: str) -> Any:
        if now[0] > 1000.0:
            asked.set()
            assert answer.wait(60)
        return fetched(address)

    with oidc_issuer() as issuer:
        keys = IssuerKeys(issuer.url, fetch=fetch, clock=lambda: now[0])
        verifies = Issuer(OidcRules(issuer=issuer.url, audience=AUDIENCE), keys)
        assert isinstance(verifies.find(issuer.token()), StoredToken)
        now[0] += 7200
        waiting = threading.Thread(target=verifies.find, args=(issuer.token(kid="new"),))
        waiting.start()
        assert asked.wait(60)

        found = verifies.find(issuer.token())  # would wait for ever for the thread that fetches
        unknown = verifies.find(issuer.token(kid="another"))

        answer.set()
        waiting.join()
    assert isinstance(found, StoredToken)
    assert unknown == "unknown"


def test_an_issuer_that_is_away_is_not_asked_again_at_once_and_known_keys_stay() -> None:
    now = [1000.0]
    asked: list[str] = []

    def fetch(address: str) -> Any:
        asked.append(address)
        return fetched(address)

    with oidc_issuer() as issuer:
        keys = IssuerKeys(issuer.url, fetch=fetch, clock=lambda: now[0])
        verifies = Issuer(OidcRules(issuer=issuer.url, audience=AUDIENCE), keys)
        issuer.broken = True
        away = [verifies.find(issuer.token()) for _ in range(5)]
        tried = len(asked)
        issuer.broken = False
        now[0] += 31
        back = verifies.find(issuer.token())
        issuer.broken = True
        now[0] += 7200
        stale = verifies.find(issuer.token())
        now[0] += 86_400
        too_old = verifies.find(issuer.token())
        issuer.broken = False
        now[0] += 31
        again = verifies.find(issuer.token())

    assert set(away) == {"issuer away"}
    assert too_old == "issuer away"
    assert isinstance(again, StoredToken)
    assert tried == 1
    assert isinstance(back, StoredToken)
    assert isinstance(stale, StoredToken)


@pytest.mark.parametrize("published", [[], [{"kid": "second", "kty": "oct"}], ["odd"]])
def test_an_issuer_that_lists_no_usable_key_for_a_moment_locks_no_one_out(published: list[Any]) -> None:
    now = [1000.0]
    with oidc_issuer() as issuer:
        verifies = Issuer(OidcRules(issuer=issuer.url, audience=AUDIENCE), IssuerKeys(issuer.url, clock=lambda: now[0]))
        token = issuer.token()
        assert isinstance(verifies.find(token), StoredToken)
        issuer.published[:] = published
        now[0] += 31
        unknown = verifies.find(issuer.token(kid="another"))

        assert unknown == "unknown"
        assert isinstance(verifies.find(token), StoredToken)


@pytest.mark.parametrize(
    "metadata",
    [{"issuer": "https://evil.example.org"}, {"jwks_uri": "http://keys.example.org"}, {"jwks_uri": "file:///etc/passwd"},
     {"jwks_uri": 7}, {"padding": "x" * 300_000}],
)  # fmt: skip
def test_metadata_that_cannot_be_trusted_is_not_followed(metadata: dict[str, Any]) -> None:
    with oidc_issuer() as issuer:
        issuer.metadata = metadata

        assert verifier(issuer).find(issuer.token()) == "issuer away"
        assert issuer.fetches == 0


def test_an_issuer_that_does_not_answer_is_reported_as_such() -> None:
    with pytest.raises(IssuerUnavailable):
        fetched("http://127.0.0.1:1/x")


@given(token=st.text(max_size=300) | st.lists(st.binary(max_size=40).map(_letters), max_size=4).map(".".join))
def test_any_text_is_refused_without_an_error(token: str) -> None:
    def none(address: str) -> Any:
        raise IssuerUnavailable

    rules = OidcRules(issuer="https://issuer.example.org", audience=AUDIENCE)

    assert not isinstance(Issuer(rules, IssuerKeys(rules.issuer, fetch=none)).find(token), StoredToken)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(claims=st.fixed_dictionaries({}, optional=dict.fromkeys(("sub", "kmem_scopes", "kmem_projects", "kmem_read_only"), _JSON)))
def test_no_claims_grant_a_scope_that_they_do_not_name(claims: dict[str, Any]) -> None:
    found = granted(claims, OidcRules(issuer="https://issuer.example.org", audience=AUDIENCE))

    if found is not None:
        assert found.scopes and all(scope.value in str(claims["kmem_scopes"]) for scope in found.scopes)
        assert found.projects is not None


def test_both_kinds_of_token_are_accepted_beside_each_other(tmp_path: Path, shared: FakeIssuer) -> None:
    performer = Performer()
    with serving(tmp_path, performer.perform, private=False, names=("127.0.0.1",), team=True, issuer=verifier(shared)) as served:
        ours, _ = served.tokens.create("laptop", person="ada")
        served.call(ours, "read_memory", key="*")
        served.call(shared.token(kmem_projects="orchard", padding="x" * 3_000), "read_memory", key="*")
        refused = [
            served.request("POST", served.path, {**HEADERS, "authorization": f"Bearer {token}"}, b"{}")[0]
            for token in (shared.token(aud="other"), "a.b.c", "x" * 8_400)
        ]
        audit = served.audit()

    ours_asked, theirs_asked = (asker.grant for _, _, asker in performer.asked)
    assert (ours_asked.person, theirs_asked.person) == ("ada", "ada")
    assert theirs_asked.projects == frozenset({"orchard"})
    assert refused == [401, 401, 400]
    assert [line["outcome"] for line in audit[-3:]] == ["token: not here", "token: malformed", "headers"]


def test_without_an_issuer_its_tokens_are_unknown(tmp_path: Path, shared: FakeIssuer) -> None:
    with serving(tmp_path, Performer().perform) as served:
        status, _ = served.request("POST", served.path, {**HEADERS, "authorization": f"Bearer {shared.token()}"}, b"{}")

    assert status == 401


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('oidc_issuer = "http://issuer.example.org"\noidc_audience = "x"', "https"),
        ('oidc_issuer = "https://issuer.example.org"', "oidc_audience"),
        ('oidc_issuer = "https://issuer.example.org"\noidc_audience = "x"\noidc_scopes = "all"', "'all'"),
    ],
)
def test_an_issuer_that_cannot_be_trusted_is_refused_in_the_configuration(tmp_path: Path, lines: str, expected: str) -> None:
    with pytest.raises(ConfigInvalid, match=expected):
        check(f"[team]\n{lines}\n".encode(), tmp_path / "config.toml")

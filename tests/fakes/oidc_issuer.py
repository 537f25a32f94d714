"""An OpenID Connect issuer on loopback: its metadata, its keys, and tokens as it would sign them."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "https://memory.example.org/mcp"


class FakeIssuer:
    """``fetches`` counts how often the keys were asked for; ``broken`` makes it answer with an error."""

    def __init__(self) -> None:
        self.fetches = 0
        self.broken = False
        self.private: dict[str, Any] = {}
        self.published: list[dict[str, Any]] = []
        self.metadata: dict[str, Any] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.add_key("first")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add_key(self, id: str, **text: str) -> None:
        self.private[id] = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.private[id].public_key()))
        self.published.append({**public, "kid": id, "use": "sig", **text})

    def add_curve(self, id: str) -> None:
        self.private[id] = ec.generate_private_key(ec.SECP256R1())
        self.published.append({**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.private[id].public_key())), "kid": id})

    def public_pem(self, id: str = "first") -> bytes:
        pem: bytes = (
            self.private[id].public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return pem

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 300, "kmem_scopes": "project shared"}
        return {name: value for name, value in {**claims, **changed}.items() if value is not None}

    def token(self, key: str = "first", algorithm: str = "RS256", kid: str | None = None, **changed: Any) -> str:
        return jwt.encode(self.claims(**changed), self.private[key], algorithm, headers={"kid": key if kid is None else kid})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(issuer) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if issuer.broken:
                    self.send_error(500)
                    return
                value: Any = {"keys": issuer.published}
                if self.path == "/.well-known/openid-configuration":
                    value = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys", **issuer.metadata}
                else:
                    issuer.fetches += 1
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def oidc_issuer() -> Iterator[FakeIssuer]:
    issuer = FakeIssuer()
    try:
        yield issuer
    finally:
        issuer.close()

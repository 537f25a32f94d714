"""What only looks like a secret stays as it is."""

import base64
import hashlib
import json
import random
import string
import uuid

import pytest

from kite_memory.redaction import redact

RNG = random.Random("innocents")
ALNUM = string.ascii_letters + string.digits


def drawn(length: int, alphabet: str = ALNUM) -> str:
    return "".join(RNG.choices(alphabet, k=length))


DASHES = "-" * 5
SHA1 = hashlib.sha1(b"apple").hexdigest()
SHA256 = hashlib.sha256(b"apple").hexdigest()
INTEGRITY = "sha512-" + base64.b64encode(hashlib.sha512(b"apple").digest()).decode()
GO_SUM = "h1:" + base64.b64encode(hashlib.sha256(b"apple").digest()).decode()
RECORD = base64.urlsafe_b64encode(hashlib.sha256(b"pear").digest()).decode().rstrip("=")

INNOCENTS = {
    "a commit": f"commit {SHA1}\nAuthor: Ada <ada@orchard.example>",
    "short commits": "7f3a9c1 prune the pear tree\n0b12d4e water the apple tree",
    "a digest": f"registry.example/orchard@sha256:{SHA256}",
    "an etag": f'ETag: "{SHA1}"',
    "a uuid": f"session {uuid.UUID(int=2**127 - 1)} resumed",
    "uuids in json": json.dumps({"uuid": str(uuid.UUID(int=3**70)), "parentUuid": str(uuid.UUID(int=5**50))}),
    "integrity": f'"integrity": "{INTEGRITY}"',
    "go.sum": f"github.com/orchard/pear v1.4.2 {GO_SUM}",
    "a wheel's record": f"orchard/tree.py,sha256={RECORD},1204",
    "a tool's id": json.dumps({"type": "tool_use", "id": "toolu_01" + drawn(22)}),
    "a message's id": "msg_01" + drawn(22),
    "a request's id": "request id: req_011" + drawn(21),
    "an openai id": "chatcmpl-" + drawn(29),
    "a ray": "Cf-Ray: 9f614186d8dfd81e-TXL",
    "a public ssh key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(43) + " ada@orchard",
    "a fingerprint": "SHA256:" + drawn(43),
    "a certificate": "-----BEGIN CERTIFICATE-----\n" + "\n".join(drawn(64) for _ in range(8)) + "\n-----END CERTIFICATE-----",
    "a picture": "data:image/png;base64,iVBORw0KGgo" + drawn(120),
    "a document's address": f"https://docs.example/document/d/1{drawn(43)}/edit#heading=h.{drawn(12)}",
    "a film's address": f"https://video.example/watch?v={drawn(11)}&list=PL{drawn(32)}",
    "a path": f"/private/var/folders/0x/{drawn(30)}/T/tmp.k2WdXe8V",
    "a bundle": f"assets/index-{drawn(24)}.js",
    "identifiers": "getUserSessionTokenFromRequestHeaders(AbstractSingletonProxyFactoryBean, TEST_DATABASE_CONNECTION_POOL_2)",
    "a test's name": "--- PASS: TestS3BucketV2HandlerRetriesOn503Errors (0.03s)",
    "a mangled name": "_ZN4core3fmt9Formatter3pad17h0a1b2c3d4e5f6a7bE",
    "versions": "v1.5.1-0.20230307220236-3a3c6141e376 v6.0.0-alpha.1.0.20260414123820-ab3a891e1f77",
    "counts": '"max_tokens": 4096, "total_tokens": 63642, "token_count": 128, "tokens": 12',
    "types": "def login(user: str, password: str, token: Token | None = None) -> Session: ...",
    "a schema": '{"password": {"type": "string"}, "api_key": "string", "token": "uuid"}',
    "calls": "token = self.tokens.refresh(scope)\npassword = getpass.getpass()\nkey = load_key(path)",
    "attributes": "client = Client(api_key=settings.api_key, token=request.token, password=self.password)",
    "the environment": 'api_key = os.environ["ORCHARD_API_KEY"]\nconst token = process.env.ORCHARD_TOKEN;\nENV["SECRET_KEY_BASE"]',
    "an address after a cookie": "curl -b lang=en https://orchard.example/?cursor=a8f3k2l9x0q1 -o build=9f8a7c6d5e4b",
    "variables": 'curl -H "Authorization: Bearer $TOKEN" -u "$USER:$PASSWORD" https://api.example/?key=${API_KEY}',
    "templates": "token: ${{ secrets.ORCHARD_TOKEN }}\npassword: {{ vault_password }}\nsecret: <%= ENV['SECRET'] %>",
    "stand-ins": "API_KEY=your-api-key-here\nPASSWORD=changeme\nTOKEN=<token>\nSECRET=xxxxxxxxxxxxxxxx\npassword: '********'",
    "stand-ins of vendors": "sk-ant-your-key-here, gh" + "p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, AK" + "IAXXXXXXXXXXXXXXXX",
    "null": '"password": null, "token": none, "secret": undefined',
    "redacted by others": "password=[REDACTED]\ntoken: ***\napi_key=REDACTED",
    "settings about secrets": "PASSWORD_MIN_LENGTH=12\nTOKEN_EXPIRY=3600\nsecret_name: orchard-tls\ntoken_url: https://auth.example/token",
    "keys that open nothing": '{"key": "ctrl+shift+p", "primary_key": "tree_id", "sort_key": "y#2026", "cache_key": "t:42:v3"}',
    "where keys are": "private_key_path = /etc/ssl/private/orchard.pem\npassword_file: /run/secrets/db_password",
    "prose": "The token is valid for a day. The password is wrong. Which key is it? My secret is that I like pears.",
    "a listing": "-rw-r--r--  1 ada  staff  2858117 Jan 28 11:33 0276a600-2f22-4d2b-844c-3feb9c5aa108.jsonl",
    "a header in code": f'if "{DASHES}BEGIN RSA PRIVATE KEY{DASHES}" in text and "{DASHES}END RSA PRIVATE KEY{DASHES}" in text:',
    "a scope": "npm install @orchard/pear@1.2.3 # https://registry.example:4873/@orchard/pear",
    "ports": "docker run -p 8080:80 -u 1000:1000 orchard && mkdir -p build && ssh -p 2222 host.example",
    "emoji": "👩‍👩‍👧 picked 🍐 ⚠️ naïve café שלום",
}


@pytest.mark.parametrize("name", INNOCENTS)
def test_it_stays_as_it_is(name: str) -> None:
    assert redact(INNOCENTS[name]) == INNOCENTS[name]

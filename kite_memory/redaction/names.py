"""What the name of a variable, field, header or flag implies about its value."""

from enum import IntEnum
from functools import lru_cache

from kite_memory.redaction.chance import WORDS


class Promise(IntEnum):
    """How surely a value under a name is a secret. The surer, the less it must look like one."""

    NONE = 0
    WEAK = 1
    """``key``, ``session``, ``salt``: only random values."""
    STRONG = 2
    """``api_key``, ``token``, ``client_secret``: any value that is not plain words."""
    PASSWORD = 3
    """Any value that is no evident placeholder, since people choose words as passwords."""


_PASSWORDS = frozenset(b"password passwords passwd passwort passphrase passcode pwd psw passwrd kennwort passe mdp psk".split())
_SECRETS = frozenset(
    b"""
    secret secrets token apikey apitoken accesskey secretkey privatekey authkey masterkey signingkey encryptionkey licensekey
    accountkey sharedkey sharedaccesskey storagekey subscriptionkey authtoken accesstoken refreshtoken idtoken bearertoken
    bottoken sessiontoken clientsecret seedphrase appsecret apisecret credential credentials creds bearer authorization
    mnemonic webhooksecret webhookurl jwt pat otp totp passkey dsn
    """.split()
)
_WEAK = frozenset(
    b"""
    key keys tokens cookie cookies session sessionid sid salt seed pin hmac nonce license licence data material
    csrf xsrf
    """.split()
)
_KEYS = frozenset(
    b"""
    api access secret private auth authentication authorization encryption decryption signing sign master account storage
    shared service admin license licence app application client consumer subscription deploy ssh hmac jwt root sas function
    host write read ingest ingestion integration project management sending site server user team org organization bot webhook
    crypto aes rsa des gpg pgp tls ssl pem search query functions developer partner merchant stripe openai anthropic github
    gitlab google aws gcp azure slack sendgrid twilio mailgun datadog dd algolia sentry newrelic cloudflare cf heroku vercel
    netlify supabase firebase maps gemini claude groq mistral cohere voyage hf huggingface openrouter perplexity deepseek xai
    pinecone weaviate qdrant tavily serper serpapi elevenlabs deepgram assemblyai langsmith langchain replicate together
    fireworks linear notion airtable figma discord telegram jwe jws jwk cookie session base wallet validator signer
    """.split()
)
_COUNTED = frozenset(
    b"""
    max min num n total count input output prompt completion cached cache next prev previous current parse parsed lexer lex
    syntax eof end start stop special pad bos eos unk mask cls sep per page continuation cursor budget limit used remaining
    reasoning thinking first last word text html css design color theme theming layout cancellation abort synchronization sync
    resume change delete decode encode decoded encoded
    """.split()
)
"""Before ``token``, these mean a token of a language, a model, a page or a colour."""
_LOOKED_UP = frozenset(
    b"""
    primary foreign sort partition object hot idempotency row map dict lookup index group translation locale i18n storybook
    hash route unique composite natural surrogate range prefix shortcut keyboard arrow escape enter modifier reg label tag sdk
    """.split()
)
"""Before ``key``, these mean a key that gives no access."""
_PLACES = frozenset(
    b"""
    prod production dev development test testing staging stage live sandbox local default new old current plain plaintext raw
    value val env var str string text base64 b64 base main primary secondary backup tmp temp x v1 v2 v3 id1 encoded encrypted
    """.split()
)
"""Words that may follow the subject of a name without changing it."""


@lru_cache(maxsize=4096)
def promise(name: bytes) -> Promise:
    """Return the promise of a name by its last meaningful word: ``GITHUB_TOKEN_2`` is a token, ``token_count`` is a count."""
    words = [word.lower() for word in WORDS.findall(name[-96:])]
    while len(words) > 1 and (words[-1] in _PLACES or words[-1].isdigit()):
        words.pop()
    if not words:
        return Promise.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else b""
    if last in _PASSWORDS or last.endswith((b"password", b"passwd", b"passphrase", b"pwd")):
        return Promise.PASSWORD if before not in (b"no", b"show", b"hide", b"forgot", b"reset", b"has", b"is") else Promise.NONE
    if last in (b"pass", b"pw"):
        return Promise.PASSWORD if before else Promise.WEAK
    if b"public" in words or b"publishable" in words:
        return Promise.NONE
    if (before in _COUNTED and last in (b"token", b"tokens")) or (before in _LOOKED_UP and last in (b"key", b"keys")):
        return Promise.NONE
    if last == b"phrase":
        return Promise.STRONG if before in (b"seed", b"recovery", b"mnemonic", b"secret", b"backup") else Promise.NONE
    if last in _SECRETS or last.endswith((b"secret", b"token", b"apikey", b"secretkey", b"accesskey", b"privatekey")):
        return Promise.STRONG
    if last in (b"key", b"keys"):
        return Promise.STRONG if before in _KEYS else Promise.WEAK
    if last in (b"data", b"material"):
        return Promise.STRONG if before == b"key" else Promise.NONE
    return Promise.WEAK if last in _WEAK else Promise.NONE


_KINDS = (
    (b"passphrase", "passphrase"),
    (b"phrase", "seed-phrase"),
    (b"mnemonic", "seed-phrase"),
    (b"pass", "password"),
    (b"pwd", "password"),
    (b"authorization", "authorization"),
    (b"cookie", "cookie"),
    (b"session", "session"),
    (b"private", "private-key"),
    (b"token", "token"),
    (b"bearer", "token"),
    (b"jwt", "token"),
    (b"secret", "secret"),
    (b"cred", "credential"),
    (b"sig", "signature"),
    (b"key", "api-key"),
)
NAMED_KINDS = frozenset((*(kind for _, kind in _KINDS), "secret"))


@lru_cache(maxsize=4096)
def kind_of(name: bytes) -> str:
    """Return the kind of secret for a name."""
    small = name.lower()
    return next((kind for part, kind in _KINDS if part in small), "secret")

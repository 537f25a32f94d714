"""Secrets recognized by their name: assignments, fields, headers, flags, columns, sentences."""

import re
from enum import Enum, IntEnum
from functools import lru_cache
from itertools import chain

from kite_memory.redaction.carriers import states
from kite_memory.redaction.chance import (
    WORDS,
    Oddness,
    Span,
    TextWords,
    chosen,
    digits,
    drawn,
    letters,
    monotonous,
    oddness,
    stands_in,
    turns,
    wordlike,
)
from kite_memory.text import lazy_regex


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
_NO_PASSWORDS = frozenset(b"bypass compass surpass encompass trespass overpass underpass".split())
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
    csrf xsrf auth
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
    activation product serial pinecone weaviate qdrant tavily serper serpapi elevenlabs deepgram assemblyai langsmith
    langchain replicate together fireworks
    linear notion airtable figma discord telegram jwe jws jwk cookie session base wallet validator signer
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
    if last.endswith(b"pass") and len(last) <= 9 and last not in _NO_PASSWORDS and last != b"pass":
        return Promise.PASSWORD
    if last in (b"pass", b"pw"):
        return Promise.PASSWORD if before else Promise.WEAK
    if b"public" in words or b"publishable" in words:
        return Promise.NONE
    if (before in _COUNTED and last in (b"token", b"tokens")) or (before in _LOOKED_UP and last in (b"key", b"keys")):
        return Promise.NONE
    if last == b"phrase":
        if before in (b"key", b"pass"):
            return Promise.PASSWORD
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


class Style(Enum):
    """What an unquoted value under a name can be: in code a word is a variable, in a settings file it is a value."""

    CODE = 0
    SETTING = 1
    QUOTED = 2


_LEADS = (
    rb"[a-z0-9_\-]{0,32}+([\"'`\]\\*)]{0,6}+)(?:\[[a-z0-9_]{0,16}\])?(?:"
    rb"[ \t]{0,24}+(?:=>|[:?|+]=|={1,3}|!==?|->|:(?!:)|\?\??|\|\|=?)[ \t]{0,24}+"  # assignments, fields, comparisons, defaults
    rb"|,[ \t]{0,8}\\{0,3}\"value\\{0,3}\"[ \t]{0,4}:[ \t]{0,8}"  # {"name": "password", "value": "…"}
    rb"|(?<=[\"'`\\])[ \t]{0,4},[ \t]{0,24}(?=[\\\"'`])"  # ("password", "…")
    rb"|\((?=[\"'`])"  # .password("…")
    rb"|>"  # <password>…
    rb"|[ \t]{1,4}(?:value|content|default)[ \t]?=[ \t]?(?=[\"'])"  # name="password" value="…"
    rb"|[ \t]{1,2}\.[ \t]{1,2}(?=\")"  # (password . "…")
    rb"|[ \t,]{0,8}(?:\r?\n|\\{0,3}(?<=\\)n)[ \t\->|]{0,40}(?:[0-9]{1,6}[?|\t][ \t]{0,40})?\"?value\"?[ \t]?:[ \t]{0,8}"
    rb"|[ \t]{0,40}+\|[ \t]{0,40}+"  # a table
    rb"|</key>\s{0,40}+<string>"  # a list of properties
    rb"|[ \t]{1,4}\{\s{0,40}+(?:[a-z]{1,12}[ \t]{0,12}=[^\r\n]{0,200}\r?\n\s{0,40}+){0,4}?"
    rb"default[ \t]{0,12}=[ \t]{0,4}(?=\")"  # a variable of Terraform's
    rb"|(?:[ \t]{2,60}+|\t)(?=[^ \t])"  # columns
    rb"|(?: [a-z]{1,12}){0,3}? (?:is|was|are|equals|reads|set to|changed to)(?: now)?:? {1,2}"  # a sentence
    rb"|[ \t]{1,2}(?=[^\s=:(){}]{8})"  # set TOKEN …
    rb")"
)
"""The rest of a name, and what leads from it to its value."""
_NAMED = lazy_regex(
    rb"(?:p(?:ass|wd|w\b|sk|hrase)|k(?:ey|(?<=tok)en|(?<=cook)ie)|c(?:(?<=sec)ret|red)|z(?<=authoriz)ation|jwt)" + _LEADS
)
"""A word in names of secrets, matched from its rarest letter on for speed; what precedes it is looked up from there."""
_NAMING = lazy_regex(rb"p(?:ass|wd|w\b|sk|hrase)|key|token|cookie|secret|cred|authorization|jwt")
"""Parts of such names among a text's words."""
_MNEMONIC = lazy_regex(rb"mnemonic" + _LEADS)
_SIGNATURE = lazy_regex(rb"[?&;](?:x-(?:amz|goog|ms)-)?sig(?:nature)?=")
"""A signature in an address, which gives access to what the address names. Those in documentation are examples."""
_SETS = lazy_regex(
    rb"(?:\b(?:setx?|setenv|env|arg|add|put|create)|:set)[ \t]{1,4}(?:--?[a-z]{1,12}[ \t]{1,4}){0,2}[^\s=]{0,80}\Z", re.IGNORECASE
)
_JAR = lazy_regex(rb"curl [^|;&\n]{0,400}?-(?<=\s-)b[ \t]{0,4}(?=[\"']?[a-z0-9_.\-]{1,64}=)")
"""Cookies given as an option of ``curl``."""
_WITH_A_USER = lazy_regex(rb"\b(?:user(?:name)?|login|email)[\"']?[ \t]{0,4}[:=]")
_FLAG = lazy_regex(
    rb"-(?<![\w\-]-)-?(?:[a-z0-9]{1,24}-){0,4}"
    rb"(?:pass(?:word|wd|phrase|code)?|pwd|pw|secret|token|key|auth|credentials?|pat|psk)[ \t]{1,4}(?=[^\s\-])"
)
_FLAG_WORDS = frozenset(
    b"pass password passwd passphrase passcode pwd pw secret token key auth credential credentials pat psk".split()
)
_BEARER = lazy_regex(rb"b(?:earer|asic)[ \t]{1,3}+(?=[a-z0-9])")

_BEFORE_VALUE = lazy_regex(
    rb"(?:[bBrRfFuUNn$@]{1,2}(?=[\"'])"  # b"…"
    rb"|(?:new )?String\((?=\")"
    rb"|!!?[a-z]{1,12} "  # !!binary …
    rb"|\[[\s]{0,40}+(?=[\\\"'`])"  # ["…", "…"]
    rb"|[|>][+\-]?[ \t]{0,4}\r?\n[ \t]{1,40}"  # a block of YAML
    rb"|\r?\n[ \t]{0,60}(?=[\"'])"
    rb"|\*{1,2}[ \t]{0,4}"  # **key:** …
    rb"|&?(?:'static )?[A-Za-z_][A-Za-z0-9_.<>\[\]| ]{0,40}?[ \t]{0,4}:?=[ \t]{0,4}(?=\\{0,3}[\"'`]))?"  # a type: str = "…"
)
_QUOTE = lazy_regex(rb"(\\{0,7})(\"\"\"|'''|[\"'`])")
_UNTIL = {quote: lazy_regex(rb"((?:[^\\\r\n" + quote + rb"]|\\[^\r\n]){0,8192}+)" + quote) for quote in (b'"', b"'", b"`")}
_ARGUMENT = lazy_regex(rb"\((?:\)[ \t]{1,4}(or|\|\||\?\?)[ \t]{1,4})?[\"'`]")
_GETTER = lazy_regex(
    rb"get|env|read|load|fetch|find|lookup|param|config|secret|prompt|input|query|key|field|column|label|translate|_\Z|\bt\Z"
)
"""What names of functions have in them that are given a name, not a password."""
_NEXT_ELEMENT = lazy_regex(rb"[\"'`]?[ \t]{0,4},\s{0,40}+(?=[\"'`])")
_BARE = lazy_regex(rb"[^\s\"'`,;<>(){}\[\]|&\\]{1,2048}+")
_ELEMENT = lazy_regex(rb"[^<\r\n]{1,4096}+(?=</)")
_REST_OF_LINE = lazy_regex(rb"[^\s\"'`\\]{1,256}+(?=[ \t]{0,8}(?:[\r\n]|\Z))")
_UP_TO_QUOTE = lazy_regex(rb"[^\r\n\"'`\\]{1,4096}+")
_SCHEME = lazy_regex(
    rb"(bearer|basic|token|bot|api-?key|negotiate|ntlm|sso-key|splunk|genie-?key|key|macaroon|[a-z]{2,20}-token)[ \t]{1,4}"
    rb"|(digest|oauth|hawk|signature|aws4-hmac-sha256|sharedkey(?:lite)?|hmac[a-z0-9\-]{0,12}|google-?login)[ \t]{1,4}",
    re.IGNORECASE,
)
"""Schemes followed by one word (group 1), and those followed by several."""
_HEADER = lazy_regex(rb"[^\r\n\"'`\\]{1,8192}+")
_JAR_WORD = lazy_regex(rb"[^\s\"'`\\;|&<>]{1,8192}+")
_COOKIE = lazy_regex(rb"([A-Za-z0-9_.\-]{1,64}+)=([^;\s\"',]{8,4096}+)")
_ATTRIBUTES = frozenset((b"expires", b"path", b"domain", b"max-age", b"samesite", b"priority"))

_WITHIN_ARN = lazy_regex(rb"arn:[A-Za-z\-]{0,16}:secretsmanager:[\w:\-]{0,64}\Z")
"""What leads to a segment of a secret's resource name, which is no secret itself."""
_FORMER_WORD = lazy_regex(rb"([A-Za-z]{2,14}) \Z")
_LATTER_WORDS = frozenset((b"key", b"phrase"))
"""In prose, names have blanks: an API key, a seed phrase."""
_NAME_CHARACTERS = bytes(ord("x") if (code < 128 and chr(code).isalnum()) or code in b"_.-$" else ord(" ") for code in range(256))
_REFERENCE = lazy_regex(
    rb"\$|%[a-z_]{2,40}%|@[a-z_]{2,40}@|(?:process|import\.meta|os|deno|bun|sys|self|this|cls|ctx|config|cfg|conf|settings|options|opts"
    rb"|args|argv|params|props|req|request|res|response|env|environ|secrets|vars|var|local|data|module|each|vault|op|ref|arn|file|path"
    rb"|keyring|keychain|ssm|projects|azurekeyvault|aws-sm|gcp-sm|sm|secret)(?:[.:\[(]|://|\+)",
    re.IGNORECASE,
)
_PATH = lazy_regex(
    rb"(?:~|\.{1,2}|)/[A-Za-z0-9_.\-]{1,256}+(?:/[A-Za-z0-9_.\-@]{0,256}+){1,40}+|(?:~|\.{1,2})/.{0,8192}"
    rb"|[A-Za-z]:\\.{0,8192}|[a-z][a-z0-9+.\-]{1,20}://.{0,8192}",
    re.DOTALL,
)
_NUMBER = lazy_regex(rb"v?[0-9.\-_:TZ+/,%]{1,8192}+[kKmMgGsS]?")
_SYMBOLS = lazy_regex(rb"[!@#$%^&*(][^!@#$%^&*(]{0,8192}+[!@#$%^&*(]")
_HASH = lazy_regex(rb"[0-9a-f]{32,128}|[0-9A-F]{32,128}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_TECHNICAL = lazy_regex(
    rb"(?:sha|md|base|utf|aes|argon|pbkdf|oauth|http|ed|rsa|es|rs|hs|int|uint|string|latin|ascii|iso|type|v)-?[0-9]{1,5}[a-z\-]{0,8}",
    re.IGNORECASE,
)
_SIGNED = lazy_regex(rb"[A-Za-z0-9._\-]{1,64}[!#$%^&*@~+][A-Za-z0-9!#$%^&*@~+._\-]{1,64}")
_PHRASE_LENGTHS = (12, 15, 18, 21, 24)
_PHRASE = lazy_regex(rb"[a-z]{3,8}(?:\s{1,4}[a-z]{3,8}(?![a-z])){11,23}+")
"""The words of a wallet's seed phrase, which include neither articles nor ``is``."""


def find_assigned(raw: bytes, small: bytes, words: TextWords, spans: list[Span]) -> None:
    """Find secrets by their names. ``small`` is ``raw`` in lower case, and ``words`` are its words."""
    if not words.parts:
        return
    looked = 0  # end of the last cookie header searched
    named = _NAMED.finditer(small) if _NAMING.search(words.joined) else ()
    for match in chain(named, _MNEMONIC.finditer(small) if b"mnemonic" in words.joined else ()):
        keyword, closers, value = match.start(), match.start(1), match.end()
        before = raw[max(0, keyword - 64) : keyword].translate(_NAME_CHARACTERS)
        start = keyword - (len(before) - 1 - before.rfind(b" "))
        name = raw[start:closers].lstrip(b".-$_")
        if (former := _FORMER_WORD.search(raw[max(0, start - 16) : start])) and name.lower() in _LATTER_WORDS:
            name = former[1] + b" " + name
        what = Promise.NONE if _WITHIN_ARN.search(raw[max(0, start - 96) : start]) else promise(name)
        if name[-6:].lower() == b"cookie" and value >= looked:
            looked = _cookies(raw, value, spans)
        elif what is not Promise.NONE and b"fingerprint" not in small[closers:value]:
            _judge(raw, start, name, what, raw[match.end(1) : value], value, spans)
    if b"sig" in words.joined and (b"sig=" in small or b"signature=" in small):
        for match in _SIGNATURE.finditer(small):
            _take(raw, match.end(), b"signature", Promise.STRONG, Style.SETTING, spans)
    for match in _JAR.finditer(small) if b"curl" in words.joined else ():
        _cookies(raw, match.end(), spans, bare=_JAR_WORD)
    for match in _FLAG.finditer(small) if not words.each.isdisjoint(_FLAG_WORDS) else ():
        name = raw[match.start() : match.end()].strip(b"- \t")
        _take(raw, match.end(), name, max(promise(name), Promise.STRONG), Style.CODE, spans)
        if promise(name) is Promise.PASSWORD:
            _add_argument(raw, match.end(), name, spans)
    for match in _BEARER.finditer(small) if b"bearer" in words.joined or b"basic" in words.joined else ():
        bare = _BARE.match(raw, match.end())
        if bare and len(bare[0]) >= 12 and turns(bare[0]) >= 3 and not stands_in(bare[0]):
            spans.append((bare.start(), bare.end(), "authorization"))


def _judge(raw: bytes, start: int, name: bytes, what: Promise, separator: bytes, at: int, spans: list[Span]) -> None:
    """Check the value that the name at ``start`` leads to through ``separator``."""
    sign = separator.strip()
    small = name.lower()
    behind = raw[start - 1 : start] if start else b"\n"
    if name in (b"pass", b"pw") and _WITH_A_USER.search(raw[max(0, start - 120) : start]):
        what = Promise.PASSWORD
    if name == b"PASS" and separator == b"=" and behind in (b"\n", b" ", b";", b"\t"):
        first, last, _ = _extent(raw, at)
        if digits(raw[first:last]) and oddness(raw[first:last]):
            spans.append((first, last, kind_of(name)))
    if small.endswith(b"authorization") and _authorization(raw, at, spans):
        return
    if sign.endswith(b">") and sign not in (b"=>", b"->"):
        element = _ELEMENT.match(raw, at) if behind in (b"<", b":") or sign != b">" else None
        if element and _secret(element[0], what, Style.QUOTED):
            spans.append((element.start(), element.end(), kind_of(name)))
        return
    sets = separator in (b" ", b"  ", b"\t") and _SETS.search(raw[max(0, start - 100) : start]) is not None
    if separator in (b" ", b"  ", b"\t") and not name.isupper() and not sets:
        return
    if what is Promise.STRONG and kind_of(name) == "seed-phrase" and (phrase := _PHRASE.match(raw, at)):
        spans.append((phrase.start(), phrase.end(), "seed-phrase"))
        return
    if sets and what is Promise.PASSWORD:
        _add_argument(raw, at, name, spans)
    if sign == b"," and what is Promise.PASSWORD and raw[max(0, start - 3) : start + 2].find(b"--") >= 0:
        first, last, quoted = _extent(raw, at)
        if quoted and states(raw[first:last]):
            spans.append((first, last, kind_of(name)))
    if sign == b"," and name.isupper() and what is Promise.PASSWORD:
        _add_default(raw, at, name, spans)
    if sign in (b",", b"", b"==", b"===", b"!=", b"!==") and not sets:
        what = min(what, Promise.STRONG)  # in lists, columns and comparisons, the next word may be anything
    if separator == b"=" and behind in (b"?", b"&", b";"):
        _take(raw, at, name, max(what, Promise.STRONG), Style.SETTING, spans)
    elif separator == b"=" and (name.isupper() or behind in (b"\n", b"\r")):
        rest = _REST_OF_LINE.match(raw, at) if behind in (b"\n", b"\r", b" ") else None
        named = rest and what is Promise.STRONG and name.isupper() and b"SECRET" in name and not monotonous(rest[0])
        fits = rest and (_secret(rest[0], what, Style.SETTING) or (named and (oddness(rest[0]) or states(rest[0]))))
        if rest and b"$" not in rest[0] and b"(" not in rest[0] and fits:
            spans.append((rest.start(), rest.end(), kind_of(name)))
        else:
            _take(raw, at, name, what, Style.SETTING, spans)
    elif sign == b":" and name.isupper() and _is_setting(raw, start, at):
        _take(raw, at, name, what, Style.SETTING, spans)
    else:
        _take(raw, at, name, what, Style.CODE, spans)
        if separator == b"=" and what is Promise.PASSWORD:
            line = raw[max(0, start - 240) : start]
            line = line[line.rfind(b"\n") + 1 :]
            if line.strip() and not line.translate(None, _NOT_OPEN) and line[-1:] in b" \t,;&?\"'-":
                _add_argument(raw, at, name, spans)
        elif sign in (b"==", b"===") and promise(name) is Promise.PASSWORD:
            first, last, quoted = _extent(raw, at)
            if quoted and states(raw[first:last]):
                spans.append((first, last, kind_of(name)))
        elif b"value" in separator and what is Promise.PASSWORD and (rest := _REST_OF_LINE.match(raw, at)) and states(rest[0]):
            spans.append((at, rest.end(), kind_of(name)))


_NOT_OPEN = bytes(code for code in range(256) if code not in b"({[<")
_ARGUMENT_END = lazy_regex(rb"(?:[ \t\"';&,)]|\\?\r?\n|\r|\Z)")


def _add_argument(raw: bytes, at: int, name: bytes, spans: list[Span]) -> None:
    """Add a plain word that a command is given as a password: no program has a variable there."""
    value = _BARE.match(raw, at)
    if value and states(value[0]) and _ARGUMENT_END.match(raw, value.end()):
        spans.append((*value.span(), kind_of(name)))


def _add_default(raw: bytes, at: int, name: bytes, spans: list[Span]) -> None:
    """Add the default in ``getenv("DB_PASSWORD", "…")``, unless it looks like a list of names."""
    start, end, quoted = _extent(raw, at)
    value = raw[start:end]
    if quoted and digits(value) and not value.isupper() and _secret(value, Promise.PASSWORD, Style.CODE):
        spans.append((start, end, kind_of(name)))


def _is_setting(raw: bytes, start: int, at: int) -> bool:
    """Return whether name and value have a line to themselves, as in YAML."""
    rest = _REST_OF_LINE.match(raw, at)
    before = raw[max(0, start - 80) : start]
    alone = not before[before.rfind(b"\n") + 1 :].strip(b" \t-")
    return rest is not None and alone and not rest[0].endswith((b",", b";")) and b"$" not in rest[0] and b"(" not in rest[0]


def _take(raw: bytes, at: int, name: bytes, what: Promise, style: Style, spans: list[Span]) -> None:
    """Add the value, or the list of values, that begins at ``at``."""
    before = _BEFORE_VALUE.match(raw, at)
    at = before.end() if before else at
    several = before is not None and before[0].startswith(b"[")
    while True:
        start, end, quoted = _extent(raw, at)
        if quoted and name in (b"pass", b"pw"):
            what = max(what, Promise.STRONG)  # unquoted, it is mostly a passed test
        called = not quoted and raw[end : end + 1] in (b"(", b"[")
        if called and what is Promise.PASSWORD and (argument := _ARGUMENT.match(raw, end)):
            inner = argument.end() - 1
            first, last, closed = _extent(raw, inner)
            if closed and (argument[1] or not _GETTER.search(raw[start:end].lower())) and oddness(raw[first:last]) >= Oddness.MIXED:
                spans.append((first, last, kind_of(name)))
        named = quoted and (name == b"pw" or (name.isupper() and b"SECRET" in name and end - start >= 8)) and states(raw[start:end])
        if not called and (named or _secret(raw[start:end], what, Style.QUOTED if quoted else style)):
            spans.append((start, end if quoted else _up_to(raw, start, end, style), kind_of(name)))
        following = _NEXT_ELEMENT.match(raw, end) if several and quoted else None
        if following is None:
            return
        at = following.end()


def _extent(raw: bytes, at: int) -> tuple[int, int, bool]:
    """Return where the value at ``at`` begins and ends, and whether it is in closed quotes."""
    quote = _QUOTE.match(raw, at)
    if quote is None:
        bare = _BARE.match(raw, at)
        return at, bare.end() if bare else at, False
    start = quote.end()
    if not quote[1] and len(quote[2]) == 1:
        inside = _UNTIL[quote[2]].match(raw, start)
        end = inside.end(1) if inside else -1
    else:
        end = raw.find(quote[0], start, start + 8192)
        if b"\n" in raw[start : max(start, end)]:
            end = -1
    if end >= 0:
        return start, end, True
    bare = _BARE.match(raw, start)
    return start, bare.end() if bare else start, False


def _up_to(raw: bytes, start: int, end: int, style: Style) -> int:
    """Return where an unquoted secret ends: not with a sentence's full stop, and not at an ampersand outside of an address."""
    if style is Style.CODE and raw[end : end + 1] == b"&" and (rest := _REST_OF_LINE.match(raw, start)) and b"=" not in rest[0]:
        return rest.end()
    return start + len(raw[start:end].rstrip(b".:"))


def _secret(value: bytes, what: Promise, style: Style) -> bool:
    length = len(value)
    if length < 4 or stands_in(value, numbered=what is not Promise.PASSWORD):
        return False
    if _REFERENCE.match(value) or (_PATH.fullmatch(value) and wordlike(value)) or b"${" in value or b"{{" in value:
        return False
    if value[0] in b" " or value[-1] in b" :":
        return False  # a prompt
    if b" " in value:
        return what is Promise.STRONG and value.islower() and value.count(b" ") + 1 in _PHRASE_LENGTHS
    if what is Promise.PASSWORD:
        if style is Style.CODE:
            if value.isdigit() or oddness(value) is Oddness.CLEAR or (_SIGNED.fullmatch(value) and chosen(value)):
                return 6 <= length <= 12 and not monotonous(value) if value.isdigit() else True
            if digits(value) == 0:
                return letters(value) >= 10 and not wordlike(value)
            return length >= 6 and letters(value) >= 3 and not _TECHNICAL.fullmatch(value) and not stands_in(value)
        return not monotonous(value) or length >= 6
    if length < 8 or monotonous(value) or _NUMBER.fullmatch(value) or (wordlike(value) and not _SYMBOLS.search(value)):
        return False
    if what is Promise.STRONG:
        return turns(value) >= 2 or length >= 16 or (style is not Style.CODE and oddness(value) >= Oddness.MIXED)
    return length >= 16 and drawn(value) and not _HASH.fullmatch(value)


def _authorization(raw: bytes, at: int, spans: list[Span]) -> bool:
    """Find ``Authorization: Bearer …`` and similar, quoted or not; return whether it is such a header."""
    quote = _QUOTE.match(raw, at)
    scheme = _SCHEME.match(raw, quote.end() if quote else at)
    if scheme is None:
        return False
    credential = (_BARE if scheme[1] else _UP_TO_QUOTE).match(raw, scheme.end())
    if credential is None or _REFERENCE.match(credential[0]) or stands_in(credential[0]):
        return True
    if len(credential[0]) >= 6 and not (wordlike(credential[0]) and len(credential[0]) < 16):
        spans.append((credential.start(), credential.end(), "authorization"))
    return True


def _cookies(raw: bytes, at: int, spans: list[Span], *, bare: re.Pattern[bytes] = _HEADER) -> int:
    """Find the values of cookies that may give access, without names and attributes. Return where the header ends.

    ``bare`` matches an unquoted header.
    """
    quote = _QUOTE.match(raw, at)
    header = _HEADER.match(raw, quote.end()) if quote else bare.match(raw, at)
    if header is None:
        return at
    for pair in _COOKIE.finditer(header[0]):
        name, value = pair[1], pair[2]
        if name.lower() not in _ATTRIBUTES and _secret(value, max(promise(name), Promise.STRONG), Style.SETTING):
            spans.append((header.start() + pair.start(2), header.start() + pair.end(2), "cookie"))
    return header.end()

"""Secrets recognized by their place: in an address, on a command line, in a line of a password file."""

import re

from kite_memory.redaction.chance import (
    LABELS,
    Oddness,
    Span,
    TextWords,
    chosen,
    digits,
    drawn,
    numeric,
    oddness,
    ordinary,
    stands_in,
    turns,
    worded,
)
from kite_memory.redaction.vendors import any_of
from kite_memory.redaction.views import PAIR, decoded
from kite_memory.text import lazy_regex

_ADDRESS = lazy_regex(rb"([^\s/@:'\"<>?#|`\\()]{0,256}+):([^\s/'\"<>?#`\\]{1,512})@(?=[A-Za-z0-9\[$%{_.\-])")
_DATABASE_ADDRESS = lazy_regex(
    rb"([^\s/@:'\"<>`\\]{0,256}+):((?:[^\s@'\"<>`\\]{1,256}+|@(?=[^\s@/'\"<>`\\]{1,128}@)){1,64}+)@(?=[A-Za-z0-9\[$%{_.\-])"
)
_DATABASES = (
    *(b"postgres", b"postgresql", b"psycopg2", b"asyncpg", b"mysql", b"pymysql", b"mariadb", b"mongodb", b"srv"),
    *(b"redis", b"rediss", b"amqp", b"amqps"),
)
"""Addresses with these schemes may hold unescaped passwords, with slashes."""
_ALONE = lazy_regex(rb"([A-Za-z0-9_\-.~%+=]{16,512}+)@(?=[A-Za-z0-9\[])")
_PORT = lazy_regex(rb"[0-9]{1,5}(?:/.{0,512})?", re.DOTALL)
_WEBHOOK = lazy_regex(
    rb"(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
    rb"|(?:[a-z]{2,8}\.)?discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/"
    rb"|[a-z0-9\-]{1,64}\.webhook\.office\.com/webhookb2/"
    rb"|outlook\.office(?:365)?\.com/webhook/"
    rb"|hooks\.zapier\.com/hooks/catch/"
    rb"|maker\.ifttt\.com/trigger/[^\s/]{1,64}/(?:json/)?with/key/"
    rb"|hook\.(?:[a-z0-9]{2,6}\.)?(?:make|integromat)\.com/"
    rb"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/"
    rb"|chat\.googleapis\.com/v1/spaces/[^\s?]{1,64}/messages\?key="
    rb"|api\.telegram\.org/bot"
    rb"|hc-ping\.com/"
    rb"|[a-z0-9.\-]{4,80}/hooks/(?=[a-z0-9]{26}(?![a-z0-9])))"
    rb"([^\s\"'`<>\\),;]{16,512}+)"
)
_GO_ADDRESS = lazy_regex(rb"([^\s:@/'\"`=]{1,64}):([^\s@:/'\"`]{1,128})@(?:tcp|unix)\(")

_OPTION = lazy_regex(
    rb"-(?<=[\s\"'(]-)(?:"
    rb"(?:[fgikLsSvX]{0,6}u|U|a|auth|-user|-proxy-user|-proxy-auth|-auth|-creds?|-credentials?)"
    rb"(?:[ \t]{1,4}|=)?[\"']?(?P<user>[^\s:\"'%,]{0,128})"
    rb"[:%,][\"']?(?P<pass>[^\s\"'\\]{3,256})"
    rb"|(?:p|P|a|w|k|pw|-password)(?:[ \t]{1,4}|=)?(?:\"(?=[^\"\r\n]{3,256}\")|'(?=[^'\r\n]{3,256}'))?"
    rb"(?P<word>(?<=\")[^\"\r\n]{3,256}|(?<=')[^'\r\n]{3,256}|[^\s\"'\\]{3,256}))"
)
_TAKES_USER = lazy_regex(
    rb"\b(?:curl|wget|http|https|xh|httpie|ab|hey|smbclient|smbget|rpcclient|net (?:rpc|ads)"
    rb"|lftp|ncftp|winexe|jenkins|rclone|skopeo|ncat|etcdctl)\b"
)
_TAKES_PASSWORD = {
    b"p": lazy_regex(
        rb"\b(?:mysql(?:dump|admin|sh|import|check)?|mariadb(?:-dump|-admin)?|mongo(?:sh|dump|restore|import|export)?|sshpass|7z[ar]?|unrar|rar"
        rb"|(?:docker|podman|helm|oc|cf|az|nerdctl|buildah|skopeo|oras|crane|kubectl|argocd|npm|heroku)\b[^|;&\n]{0,200}\blogin"
        rb"|plink|pscp|psftp|psexec(?:64)?|cqlsh|nxc|netexec|crackmapexec|evil-winrm|ldapmodify|winexe|hydra|medusa|sqoop|clickhouse-client"
        rb"|snowsql|rdesktop|vncviewer|proxychains|smbmap|influx|arangosh|neo4j-admin|cypher-shell|beeline|ipmitool|mosquitto_(?:pub|sub)|steghide|veracrypt|elasticsearch-users|unlock-keychain)\b"
    ),
    b"P": lazy_regex(rb"\b(?:(?:un)?zip|mosquitto_(?:pub|sub|rr)|ipmitool|sqlcmd|bcp|isql|osql|tsql|security import)\b"),
    b"a": lazy_regex(rb"\bredis-(?:cli|benchmark)\b"),
    b"w": lazy_regex(rb"\bldap[a-z]{2,10}\b"),
    b"k": lazy_regex(rb"\bopenssl\b"),
}
"""Commands by the letter of their password option. Some take the value attached, some after a gap, and some prompt if there is a
gap.
"""
_OPTION_OF_USER = lazy_regex(rb"[ \t]-(?:[uUlDNa]|-user(?:name)?|-login|user(?:name)?)[ \t=]")
_ASKS = lazy_regex(rb"\b(?:mysql|mariadb|7z)")
_REACH = 400
_PASS = lazy_regex(rb"pass:(?<=[\s\"']pass:)([^\s\"'`\\]{3,256})")
_HTPASSWD = lazy_regex(
    rb"htpasswd[ \t]{1,4}-[A-Za-z]{0,8}b[A-Za-z]{0,8}[ \t]{1,4}(?:-[A-Za-z]{1,4}[ \t]{1,4}){0,2}"
    rb"[^\s]{1,200}[ \t]{1,4}[^\s]{1,64}[ \t]{1,4}"
    rb"[\"']?([^\s\"']{3,128})"
)
_LOGIN = lazy_regex(
    rb"login[ \t\r\n]{1,20}[^\s/|,&]{1,128}[ \t\r\n]{1,20}(?:account[ \t\r\n]{1,20}[^\s]{1,64}[ \t\r\n]{1,20})?"
    rb"password[ \t\r\n]{1,20}([^\s]{3,256})"
)
_PGPASS = lazy_regex(
    rb":(?:543[0-9]|\*):([\w.*\-]{1,64}):([A-Za-z_][\w.\-]{0,63}):((?:[^\s:\"'\\]|\\[:\\]){3,128})(?=\s|\Z|[\"'\\])"
)
_HASH = lazy_regex(
    rb"\$(?:2[abxy]?\$[0-9]{2}\$[./A-Za-z0-9]{50,64}+"
    rb"|(?:apr1|1|5|6|7|y|gy|sha1)\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,48}\$(?:[./A-Za-z0-9]{1,48}\$)?[./A-Za-z0-9]{16,128}+"
    rb"|argon2(?:id|i|d)\$[^\s\"':]{24,256}+"
    rb"|(?:scrypt|pbkdf2[a-z0-9\-]{0,12})\$[^\s\"':]{24,256}+"
    rb"|(?<=sha256\$)[0-9]{4,8}\$[A-Za-z0-9+/=.]{4,64}\$[A-Za-z0-9+/=]{24,128}+"
    rb"|(?<=SCRAM-SHA-256\$)[0-9]{3,7}:[A-Za-z0-9+/=]{16,64}\$[A-Za-z0-9+/=:]{60,128}+)"
)
_VALUE = (
    rb"(?:\\?\"(?P<double>[^\"\\\r\n]{3,256}+)\\?\"|'(?P<single>[^'\r\n]{3,256}+)'"
    rb"|(?P<bare>[^\s\"'`|;&<>()\\]{3,256}+))"
)
_NEXT_WORDS = tuple(
    (word, lazy_regex(before + _VALUE))
    for word, before in (
        (b" keygen", rb"ssh-keygen [^|;&\n]{0,200}?-(?<=\s-)[NP][ \t]{0,4}"),
        (b"repass", rb"repass[ \t]{1,4}"),  # storepass, requirepass
        (b"eypass", rb"eypass[ \t]{1,4}"),
        (b" pass", rb"/pass(?:word)?:"),
        (b" masterauth", rb"masterauth[ \t]{1,4}"),
        (b" securestring", rb"To-SecureString[ \t]{1,4}(?:-String[ \t]{1,4})?"),
        (b" parameter", rb"put-parameter (?=[^|;&\n]{0,400}SecureString)[^|;&\n]{0,300}?--value[ \t=]{1,4}"),
        (b" secret", rb"--secret-string[ \t=]{1,4}"),
        (b" secret", rb"secret set [^|;&\n]{0,200}?-(?:(?<=\s-)b|-body)[ \t=]{1,4}"),
    )
)
"""Words in commands and settings that a password follows, each with a word that such a text must hold."""
_NEXT_WORD = lazy_regex(b"|".join(dict.fromkeys(word for word, _ in _NEXT_WORDS)))
_ACCOUNT_VERBS = frozenset((b"alter", b"create", b"grant"))
_ACCOUNTS = frozenset((b"user", b"role", b"login", b"identified"))
_FED = tuple(
    (
        command,
        lazy_regex(
            command + rb"[ \t]{1,4}(?:-[neE]{1,3}[ \t]{1,4})?" + _VALUE + rb"[ \t]{0,4}\|[ \t]{0,4}(?P<to>[^|;\r\n]{4,240})"
        ),
    )
    for command in (b"echo", b"printf")
)
_HERE = lazy_regex(rb"<<<[ \t]{0,4}" + _VALUE)
_TAKES_FED = lazy_regex(
    rb"\b(?:kinit|cryptsetup|smbpasswd|saslpasswd2|pdbedit|passwd|ssh-add|bw|ldappasswd|vault|veracrypt"
    rb"|realm join|op|vncpasswd|pass insert)\b"
    rb"|\bsudo[ \t][^|\n]{0,80}?-[A-Za-z]{0,4}S\b|\bchpasswd\b|--password-stdin\b|--with-token\b|--passphrase-fd\b"
    rb"|\bsecrets? (?:put|set)\b"
)
_DECODING_CALL = lazy_regex(
    rb"(?:FromBase64String|atob|b64decode|base64_decode|Base64\.(?:strict_)?decode(?:64)?|from_base64|Buffer\.from)\("
    rb"[ \t]{0,4}[bu]?[\"'](?P<word>[A-Za-z0-9+/_\-]{8,400}+)={0,2}[\"']"
)
_DECODED_LATER = lazy_regex(
    rb"echo[ \t]{1,4}[\"']?\$\{?([A-Za-z_][A-Za-z0-9_]{0,40})\}?[\"']?[ \t]{0,4}\|[ \t]{0,4}base64[ \t]{1,4}-"
)
_ENCODED_VALUE = lazy_regex(rb"\b(?P<name>[A-Za-z_][A-Za-z0-9_]{0,40}+)=[\"']?(?P<word>[A-Za-z0-9+/]{8,400}+={0,2})")
_DECODES = lazy_regex(rb"(?:openssl (?:enc -)?)?base64 (?:-d|-D|--decode)|base64 -di")


def _holds_password(plain: bytes) -> bool:
    """Return whether a text that a command decodes is a password, or a name and a password."""
    return b" " not in plain and oddness(plain.rsplit(b":", 1)[-1].strip()) > Oddness.NONE


_SQL = tuple(
    (word, lazy_regex(word + rest + rb"[ \t]{1,4}(?:'\\''|\\{0,3}[\"'])(?P<word>[^\s'\"\\]{3,256}+)\\{0,3}['\"]"))
    for word, rest in (
        (b"PASSWORD", b""),
        (b"password", b""),
        *((word, rb"(?: (?:WITH|with) [^\s]{1,60})? (?:BY|by)") for word in (b"IDENTIFIED", b"identified")),
    )
)
_OF_AN_ACCOUNT = lazy_regex(rb"\b(?:alter|create|grant)\b[^;]{0,200}\b(?:user|role|login|identified)\b", re.IGNORECASE)
_LOGIN_PAIR = lazy_regex(
    rb"uth(?:[ \t]{0,4}=[ \t]{0,4})?\(\s{0,40}[bru]{0,2}[\"'][^\"'\r\n]{1,128}[\"'][ \t]{0,4},\s{0,40}"
    rb"[bru]{0,2}[\"'](?P<word>[^\"'\r\n]{3,256}+)[\"']"
)
_AUTH = lazy_regex(rb"auth[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?P<word>[A-Za-z0-9+/]{8,400}+)={0,2}(?![A-Za-z0-9+/=])")
_CHAIN_KEYS = tuple(
    (literal, lazy_regex(re.escape(literal) + rest + rb"(?P<word>(?:0x)?[0-9a-fA-F]{64})(?![0-9a-fA-F])"))
    for literal, rest in (
        (b"Wallet(", rb"\s{0,40}[\"'`]"),
        (b"Key(", rb"\s{0,40}[\"'`]"),
        (b"_key(", rb"\s{0,40}[\"'`]"),
        (b"ToAccount(", rb"\s{0,40}[\"'`]"),
        (b"rivate", rb"[ _\-]?[kK]ey[^\r\n]{0,16}?(?=0x)"),
    )
)
"""Hexadecimal digits that are a hash in every other place."""
_CHAIN_KEY = b"x" * 64
_HEX_RUNS = bytes(ord("x") if code in b"0123456789abcdefABCDEF" else 32 for code in range(256))
_OF_BASE64 = lazy_regex(rb"6(?:(?<=ase6)|(?<=b6))4")
_OF_PGPASS = lazy_regex(rb":(?:543|\*:)")
_LDAP_HASH = lazy_regex(rb"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,140}+={0,2}")


def find_carried(raw: bytes, words: TextWords, spans: list[Span]) -> None:
    """Find secrets by their place. ``words`` are those of ``raw``."""
    if b"://" in raw:
        _addresses(raw, spans)
    if b"@" in raw and (b"@tcp(" in raw or b"@unix(" in raw):
        for found in _GO_ADDRESS.finditer(raw):
            _add(found, 2, "url-password", spans)
    if b" -" in raw:
        _options(raw, spans)
    if words.parts:
        if b"pass" in words.joined:
            _passwords(raw, spans)
        _by_position(raw, words, spans)
    if _OF_BASE64.search(raw) or (b"(" in raw and b"atob(" in raw):
        _decoded_by_a_program(raw, spans)
    if _OF_PGPASS.search(raw):
        for found in _PGPASS.finditer(raw):
            _add(found, 3, "password", spans)
    if b"<<<" in raw:
        _fed_here(raw, spans)
    if b"@" in raw and b":" in raw:
        _logins_at_hosts(raw, spans)
    if len(raw) > len(_CHAIN_KEY) and _CHAIN_KEY in raw.translate(_HEX_RUNS):
        _chain_keys(raw, spans)
    if b"$" in raw:
        spans.extend((found.start(), found.end(), "password-hash") for found in _HASH.finditer(raw))
    if b"{" in raw and b"{S" in raw:
        spans.extend((found.start(), found.end(), "password-hash") for found in _LDAP_HASH.finditer(raw))


def _by_position(raw: bytes, words: TextWords, spans: list[Span]) -> None:
    """Find what a command or a call takes as a password, by its position."""
    for word, before in _NEXT_WORDS if _NEXT_WORD.search(words.joined) else ():
        for found in before.finditer(raw) if word in words.joined else ():
            group = found.lastgroup or "bare"
            follows = raw[found.end() : found.end() + 2]
            option = raw[max(0, found.start() - 12) : found.start() + 1].rfind(b"-") >= 0 and follows[:1] in (b"", b"\n", b" ")
            said = group == "bare" and worded(found[group]) and not states(found[group]) and not (option and follows != b" (")
            if not found[group].startswith((b"file:", b"-")) and not said:
                _add(found, group, "password", spans)  # an unquoted dictionary word belongs to the sentence
    for command, fed in _FED:
        if command not in words.each:
            continue
        for found in fed.finditer(raw):
            group = next(group for group in ("double", "single", "bare") if found[group])
            if _TAKES_FED.search(found["to"]) or (
                _DECODES.match(found["to"]) and _holds_password(decoded(found[group].rstrip(b"=")))
            ):
                _add(found, group, "password", spans)
    if not (words.each.isdisjoint(_ACCOUNT_VERBS) or words.each.isdisjoint(_ACCOUNTS)):
        _of_accounts(raw, spans)
    if b"auth" in words.joined:
        _logins(raw, spans)


def _decoded_by_a_program(raw: bytes, spans: list[Span]) -> None:
    """Find literals in base 64 that a program decodes to a password."""
    spans.extend(
        (*call.span("word"), "password") for call in _DECODING_CALL.finditer(raw) if oddness(decoded(call["word"])) > Oddness.NONE
    )
    later = set(_DECODED_LATER.findall(raw))
    for value in _ENCODED_VALUE.finditer(raw) if later else ():
        if value["name"] in later:
            plain = decoded(value["word"].rstrip(b"="))
            if _holds_password(plain) or _holds_password(decoded(plain.rstrip(b"=")) if len(plain) >= _SHORTEST_ENCODED else b""):
                spans.append((*value.span("word"), "password"))


_SHORTEST_ENCODED = 8


def _of_accounts(raw: bytes, spans: list[Span]) -> None:
    for keyword, phrase in _SQL:
        for found in phrase.finditer(raw) if keyword in raw else ():
            if _OF_AN_ACCOUNT.search(raw[max(0, found.start() - 240) : found.end()]):
                _add(found, "word", "password", spans)


def _chain_keys(raw: bytes, spans: list[Span]) -> None:
    for literal, key in _CHAIN_KEYS:
        for found in key.finditer(raw) if literal in raw else ():
            _add(found, "word", "private-key", spans)


def _fed_here(raw: bytes, spans: list[Span]) -> None:
    """Find passwords passed on standard input: ``sudo -S … <<< …``."""
    for found in _HERE.finditer(raw):
        line = raw[max(0, found.start() - 240) : found.start()]
        group = found.lastgroup or "bare"
        if _TAKES_FED.search(line[line.rfind(b"\n") + 1 :]) or oddness(found[group]) is Oddness.CLEAR:
            _add(found, group, "password", spans)


_AT_HOST = lazy_regex(
    rb"(?<![\w/:.@\-])(?:[\w.\-]{1,40}[/\\]{1,2})?[\w.\-]{1,40}:([^\s:@/\"'<>|;,()]{5,64})@[A-Za-z0-9.\-]{1,64}+(?=[\s:/\"'`,)]|\Z)"
)


def _logins_at_hosts(raw: bytes, spans: list[Span]) -> None:
    """Find the password in ``name:password@host`` without a scheme."""
    at = raw.find(b"@")
    while at >= 0:
        line = raw[max(0, at - 140) : at]
        if b":" in line[-65:]:
            begin = (
                max(0, at - 140)
                + max(line.rfind(b" "), line.rfind(b"\n"), line.rfind(b'"'), line.rfind(b"'"), line.rfind(b"="))
                + 1
            )
            found = _AT_HOST.match(raw, begin)
            if found and oddness(found[1]) >= Oddness.MIXED:
                spans.append((found.start(1), found.end(1), "password"))
        at = raw.find(b"@", at + 1)


def _logins(raw: bytes, spans: list[Span]) -> None:
    """Find a name and a password next to each other: ``auth=("ada", "…")``, or in base 64."""
    for found in _LOGIN_PAIR.finditer(raw):
        before = raw[max(0, found.start() - 7) : found.start()].lower()
        if b"=" in found[0][:8] or before.endswith((b"basica", b"basic_a", b"digesta")):
            _add(found, "word", "password", spans)
    spans.extend(
        (found.start("word"), found.end("word"), "authorization")
        for found in _AUTH.finditer(raw)
        if PAIR.fullmatch(decoded(found["word"]))
    )


def _passwords(raw: bytes, spans: list[Span]) -> None:
    for found in _PASS.finditer(raw):
        if b"-pass" in raw[max(0, found.start() - 24) : found.start()]:
            _add(found, 1, "password", spans)
    for found in _HTPASSWD.finditer(raw):
        _add(found, 1, "password", spans)
    if b"login" in raw:
        for found in _LOGIN.finditer(raw):
            if states(found[1]) or not worded(found[1]):
                _add(found, 1, "password", spans)


def _add(found: re.Match[bytes], group: int | str, kind: str, spans: list[Span]) -> None:
    value = found[group]
    if len(value) >= 3 and not stands_in(value, numbered=False) and not value.startswith((b"$", b"{", b"%s", b"<")):
        spans.append((found.start(group), found.end(group), kind))


def _addresses(raw: bytes, spans: list[Span]) -> None:
    """Find passwords and tokens before the host, and addresses that give access to anyone who knows them."""
    at = 0
    while (at := raw.find(b"://", at)) >= 0:
        start = at + 3
        scheme = raw[max(0, at - 12) : at]
        found = (_DATABASE_ADDRESS if scheme.endswith(_DATABASES) else _ADDRESS).match(raw, start)
        if found and not _PORT.fullmatch(found[2]):
            _add(found, 2, "url-password", spans)
        elif (alone := _ALONE.match(raw, start)) and (drawn(alone[1]) or (digits(alone[1]) and turns(alone[1]) >= 6)):
            spans.append((alone.start(1), alone.end(1), "url-token"))
        elif (webhook := _WEBHOOK.match(raw, start)) and turns(webhook[1]) >= 2:
            spans.append((webhook.start(1), webhook.end(1), "webhook"))
        at = start


def _options(raw: bytes, spans: list[Span]) -> None:
    """Find options such as ``curl -u name:password`` and ``mysql -pPassword``, only behind a command that takes them so."""
    for found in _OPTION.finditer(raw):
        line = raw[max(0, found.start() - _REACH) : found.start()]
        if b"\\\n" not in line:
            line = line[line.rfind(b"\n") + 1 :]
        if found["user"] is not None:
            if _TAKES_USER.search(line) or oddness(found["pass"]) >= Oddness.MIXED:
                _add(found, "pass", "password", spans)
            continue
        option = found[0][1:2]
        glued = raw[found.start() + 2] not in b" \t="
        if option not in _TAKES_PASSWORD or (glued and option not in (b"p", b"P")):
            continue
        if not _TAKES_PASSWORD[option].search(line):
            same = max(map(line.rfind, (b"&", b";", b"|"))) + 1
            stated = not glued and states(found["word"]) and _OPTION_OF_USER.search(line, same)
            if stated or (_OPTION_OF_USER.search(line) and oddness(found["word"])):
                _add(found, "word", "password", spans)
        elif glued or option != b"p" or not _ASKS.search(line):
            _add(found, "word", "password", spans)


_WORD = lazy_regex(rb"[A-Za-z]{2,40}(?:[\-._&+'][A-Za-z]{1,40}){0,6}+[!?0-9]{0,4}")


def states(value: bytes, language: str = "") -> bool:
    """Return whether the value fits where a sentence plainly states a password: as `chosen` or odd, or no ordinary word."""
    return chosen(value) or oddness(value) > Oddness.NONE or (_WORD.fullmatch(value) is not None and not ordinary(value, language))


Table = tuple[int, int]
"""Where a table's header begins, and where its rows end."""

_LAYOUT_LINE = 600
_ROWS = 200
_CELLS = 40
_CELL_SIGNS = b" \t\"'`*\r"
_HEADER = lazy_regex(rb"[\w \xf1\xf0\-.*\"'`()]{1,40}")
_SNAKE = lazy_regex(rb"_{0,2}[a-z]{1,40}_[a-z0-9_]{1,60}")
_ARGUMENTS = lazy_regex(rb", [^\r\n]{0,600},[ \t\r]{0,8}\Z|\b(?:import|def|return|lambda) ")
"""A line of code, not the header of a table."""
_RULE = lazy_regex(rb"[\s|+:=\-]{3,600}+")
_LABELS = (
    rb"(?:[a-z0-9_.\- ]{0,40}"
    + any_of(label.stem.decode() for label in LABELS if not label.weak).encode()
    + rb"[a-z0-9_\-]{0,12}|[a-z0-9_\-]{0,24}[_\-]pass|pass|pw|\xf1{2,12}"
    rb"|(?:door|gate|alarm|access|safe|entry|lock|keypad)[ _\-](?:code|pin))"
)
_BEHIND_TAG = (
    rb":?[ \t]{0,4}</[a-z0-9]{1,8}>\s{0,40}<[a-z0-9]{1,10}[^<>]{0,120}>(?:<[a-z]{1,8}>)?[ \t]{0,4}"
    rb"(?P<value>[^<>\s][^<>\r\n]{2,127}+)</"
)
_BEHIND_NAME = rb"[\"'][ \t]{0,4}>(?P<value>[^<>\s]{3,128}+)</"
_IN_TAG = rb":?[ \t]{0,4}<[a-z]{1,6}\b[^<>]{0,60}>[ \t]{0,4}(?P<value>[^<>\s]{3,128}+)[ \t]{0,4}</"
_AFTER_TAG = rb":?[ \t]{0,4}</[a-z]{1,6}>:?[ \t]{1,4}(?P<value>[^<>\s]{3,128}+)[ \t]{0,4}(?:<|\r?\n)"
_BEFORE_INPUT = rb":?[ \t]{0,4}</[a-z0-9]{1,8}>\s{0,40}<input\b[^<>]{0,120}?\bvalue=[\"'](?P<value>[^\"'<>]{3,128}+)"
_FIELD = rb"[\"'][ \t]{0,4},\s{0,40}[\"']?(?:val(?:ue)?|content)[\"']?[ \t]{0,4}:[ \t]{0,4}[\"'](?P<value>[^\"'\r\n]{3,128}+)[\"']"
_LABEL_REACH = 160
_MARKUP = (
    (b"<input", lazy_regex(rb"<input\b[^<>]{0,200}?\btype=[\"']?password[^<>]{0,200}?\bvalue=[\"'](?P<value>[^\"'<>]{3,128}+)")),
    (
        b"<input",
        lazy_regex(rb"<input\b[^<>]{0,200}?\bvalue=[\"'](?P<value>[^\"'<>]{3,128}+)[\"'][^<>]{0,200}?\btype=[\"']?password"),
    ),
    (
        b"<input",
        lazy_regex(
            rb"<input\b[^<>]{0,120}?\bname=[\"']" + _LABELS + rb"[\"'][^<>]{0,120}?\bvalue=[\"'](?P<value>[^\"'<>]{3,128}+)"
        ),
    ),
    (b"password ", lazy_regex(rb"<(?:[a-z]{1,20}:)?password [^<>]{1,80}>(?P<value>[^<>\s]{3,128}+)</")),
    (b"<property ", lazy_regex(rb"<property name=[\"']" + _LABELS + rb"[\"'] value=[\"'](?P<value>[^\"'<>]{3,128}+)")),
)
_LABELLED = (
    (b"</", lazy_regex(rb"</[a-z0-9]{1,8}>\s{0,40}<"), lazy_regex(rb">[ \t]{0,4}" + _LABELS + _BEHIND_TAG)),
    (b"<input", lazy_regex(rb"</[a-z0-9]{1,8}>\s{0,40}<input"), lazy_regex(rb">[ \t]{0,4}" + _LABELS + _BEFORE_INPUT)),
    (
        b"<value>",
        lazy_regex(rb">\s{0,40}<value>"),
        lazy_regex(rb"[\"']" + _LABELS + rb"[\"'][ \t]{0,4}>\s{0,40}<value>(?P<value>[^<>\s]{3,128}+)</"),
    ),
    (b"</", lazy_regex(rb">(?<=[\"' \t]>)[^<>\s]{3,128}+</"), lazy_regex(rb"[\"']" + _LABELS + _BEHIND_NAME)),
    (b"content", lazy_regex(rb"content[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']"), lazy_regex(rb"[\"']" + _LABELS + _FIELD)),
    (
        b"<",
        lazy_regex(rb"<(?:b|code|strong|span|em|kbd|tt|pre)\b[^<>]{0,60}>"),
        lazy_regex(rb">[ \t]{0,4}" + _LABELS + _IN_TAG),
    ),
    (b"</", lazy_regex(rb"</(?:strong|b|em|i|span|label)>:?[ \t]{1,4}"), lazy_regex(rb">[ \t]{0,4}" + _LABELS + _AFTER_TAG)),
    (b"val", lazy_regex(rb"val(?:ue)?[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']"), lazy_regex(rb"[\"']" + _LABELS + _FIELD)),
)
"""What follows a label is searched first, from a literal on, since it is much rarer than the sign before a label."""
_LITERALS = frozenset((*(literal for literal, _ in _MARKUP), *(literal for literal, _, _ in _LABELLED)))
_OPENING = ord("<")


def find_in_markup(raw: bytes, small: bytes, spans: list[Span]) -> None:
    if b"<" not in raw and b'"val' not in small and b"'val" not in small:
        return
    there = {literal for literal in _LITERALS if literal[0] != _OPENING or b"<" in raw if literal in small}
    matches = [found for literal, pattern in _MARKUP if literal in there for found in pattern.finditer(small)]
    for literal, behind, pattern in _LABELLED:
        for hit in behind.finditer(small) if literal in there else ():
            matches += pattern.finditer(small, max(0, hit.start() - _LABEL_REACH), hit.end() + _LAYOUT_LINE)
    for found in matches:
        start, end = found.span("value")
        end -= len(raw[start:end]) - len(raw[start:end].rstrip(b" \t"))
        words = raw[start:end].split()
        least = 3 if b"phrase" in found[0] else 2 if b"<string>" in found[0] else _CELLS
        phrase = (
            least <= len(words) <= _MOST_WORDS and not all(map(ordinary, words)) and (least > 2 or not any(map(ordinary, words)))
        )
        if phrase or states(raw[start:end]):
            spans.append((start, end, "password"))
    if b"<tr" in small and b"</tr>" in small:
        find_in_rows(raw, small, spans)


_MOST_WORDS = 12
_ROW = lazy_regex(rb"<tr\b[^<>]{0,80}>(.{0,2000}?)</tr>", re.DOTALL)
_CELL = lazy_regex(rb"<t[hd]\b[^<>]{0,80}>\s{0,40}(?:<[a-z]{1,8}>)?([^<>]{0,128})")


def find_in_rows(raw: bytes, small: bytes, spans: list[Span]) -> None:
    """Find values below a label in a table of HTML."""
    column, at = -1, 0
    while (row := _ROW.search(small, at)) and len(cells := list(_CELL.finditer(small, *row.span(1)))) <= _CELLS:
        at = row.end()
        names = [number for number, cell in enumerate(cells) if _SQL_NAME.match(cell[1].strip())]
        if b"<th" in row[1] or names:
            column = names[0] if names and len(cells) > 1 else -1
        elif 0 <= column < len(cells):
            start, end = cells[column].span(1)
            value = raw[start:end].strip()
            if _in_a_cell(value):
                spans.append((start, start + len(value), "password"))


_INSERT = lazy_regex(rb"insert into [^\s()]{1,80} ?\(([^()]{1,400})\)\s{1,8}values\s{0,8}\(([^()\r\n]{1,600})\)")
_SQL_VALUE = lazy_regex(rb"\s{0,4}(?:[nN]?'([^']{0,200})'|[^,']{1,200})\s{0,4}(?:,|\Z)")
_SQL_NAME = lazy_regex(rb"pass|pwd|secret|token|api_?key")


def find_inserted(raw: bytes, small: bytes, spans: list[Span]) -> None:
    """Find the values that SQL inserts into a column for passwords."""
    for found in _INSERT.finditer(small):
        values = list(_SQL_VALUE.finditer(raw[found.start(2) : found.end(2)]))
        for column, name in enumerate(found[1].split(b",")):
            if column < len(values) and _SQL_NAME.search(name) and (value := values[column])[1] and _in_a_cell(value[1]):
                spans.append((found.start(2) + value.start(1), found.start(2) + value.end(1), "password"))


def find_in_columns(raw: bytes, start: int, end: int, last: Table, spans: list[Span]) -> Table:
    """Find values in a table whose header has the label ``[start, end)`` as a cell: CSV, Markdown, output of database clients.

    ``last`` is the table found before, in whose rows no other begins; the current last one is returned.
    """
    if raw[start:end].lower() in (b"login", b"logins"):
        return last  # a column of names
    before, behind = raw[max(0, start - 40) : start].rstrip(_CELL_SIGNS)[-1:], raw[end : end + 40].lstrip(_CELL_SIGNS)[:1]
    tab = b"\t" in (raw[start - 1 : start], raw[end : end + 1])
    if not tab and before not in (b",", b";", b"|", b"\n", b"") and behind not in (b",", b";", b"|"):
        _in_padded_columns(raw, start, end, spans)
        return last
    begin = raw.rfind(b"\n", max(0, start - _LAYOUT_LINE), start) + 1
    stop = raw.find(b"\n", end, end + _LAYOUT_LINE)
    if stop < 0 or (begin == 0 and start > _LAYOUT_LINE) or last[0] < begin < last[1]:
        return last
    header = raw[begin:stop]
    sign = b"\t" if tab else next((sign for sign in (b"|", b",", b";") if sign in header), b"")
    if not sign or header.count(sign) > _CELLS or (sign == b"," and _ARGUMENTS.search(header)):
        return last
    column = raw[begin:start].count(sign)
    cells = header.split(sign)
    ruled = begin > 1 and _RULE.fullmatch(raw[raw.rfind(b"\n", 0, begin - 1) + 1 : begin - 1]) is not None
    if (
        not all(_HEADER.fullmatch(cell) or not cell.strip() for cell in cells)
        or sum(bool(cell.strip()) for cell in cells) < 2 - ruled
    ):
        return last
    count = header.count(sign)
    at = stop + 1
    for _ in range(_ROWS):
        line_end = raw.find(b"\n", at, at + _LAYOUT_LINE)
        line_end = line_end if line_end >= 0 else min(len(raw), at + _LAYOUT_LINE)
        row = raw[at:line_end]
        if not _RULE.fullmatch(row):
            if row.count(sign) != count:
                break
            cell = row.split(sign)[column]
            value = cell.strip(_CELL_SIGNS)
            if _in_a_cell(value):
                first = at + sum(len(each) + 1 for each in row.split(sign)[:column]) + len(cell) - len(cell.lstrip(_CELL_SIGNS))
                spans.append((first, first + len(value), "password"))
        if line_end >= len(raw) or (line_end - at == _LAYOUT_LINE and raw[line_end : line_end + 1] != b"\n"):
            break
        at = line_end + 1
    return begin, at


_WORD_AND_NUMBER = lazy_regex(rb"[A-Za-z]{4,20}[0-9]{1,6}")


def _in_a_cell(value: bytes) -> bool:
    """Return whether a value below a label is a password."""
    if chosen(value) or numeric(value) or (oddness(value) and not _SNAKE.fullmatch(value)):
        return True
    if states(value):
        return True
    return _WORD_AND_NUMBER.fullmatch(value) is not None and not stands_in(value) and not value.lower().startswith(_TYPES)


_TYPES = (b"char", b"varchar", b"string", b"text", b"int", b"binary", b"base")
_PADDED_ROWS = 40
_PADDED_HEADER = lazy_regex(rb"[ \t]{0,20}[A-Za-z\xf0\xf1][\w \xf0\xf1\-/()#\r]{0,400}")


def _in_padded_columns(raw: bytes, start: int, end: int, spans: list[Span]) -> None:
    """Find values below a label in a header whose cells are set apart by blanks."""
    begin = raw.rfind(b"\n", max(0, start - _LAYOUT_LINE), start) + 1
    stop = raw.find(b"\n", end, end + _LAYOUT_LINE)
    behind = raw[end:stop] if stop >= 0 else b""
    if stop < 0 or (raw[begin:start].strip() and not raw[begin:start].endswith(b"  ")) or (behind.strip() and behind[:2] != b"  "):
        return
    header = raw[begin:stop]
    if (not raw[begin:start].strip() and not behind.strip()) or not _PADDED_HEADER.fullmatch(header):
        return
    left, right = start - begin, end - begin
    at = stop + 1
    for _ in range(_PADDED_ROWS):
        line_end = raw.find(b"\n", at, at + _LAYOUT_LINE)
        row = raw[at : line_end if line_end >= 0 else min(len(raw), at + _LAYOUT_LINE)]
        if not row.strip() or len(row) <= left - 2:
            return
        first = row.rfind(b" ", 0, left + 1) + 1 if row[left : left + 1] not in (b" ", b"\t") else left
        if first == left:
            first += len(row[left:right]) - len(row[left:right].lstrip())
        last = row.find(b" ", first)
        value = row[first : last if last >= 0 else len(row)].rstrip(b"\r")
        if _in_a_cell(value):
            spans.append((at + first, at + first + len(value), "password"))
        if line_end < 0:
            return
        at = line_end + 1

"""Secrets that are told by the place they hold: in an address, on a command line, in a line of a password file."""

import re

from kite_memory.redaction.chance import digits, drawn, stands_in, turns, worded
from kite_memory.redaction.span import Span

_ADDRESS = re.compile(rb"([^\s/@:'\"<>?#|`\\()]{0,256}+):([^\s/'\"<>?#`\\]{1,512})@(?=[A-Za-z0-9\[$%{_.\-])")
_DATABASE_ADDRESS = re.compile(
    rb"([^\s/@:'\"<>`\\]{0,256}+):((?:[^\s@'\"<>`\\]{1,256}+|@(?=[^\s@/'\"<>`\\]{1,128}@)){1,64}+)@(?=[A-Za-z0-9\[$%{_.\-])"
)
_DATABASES = (
    *(b"postgres", b"postgresql", b"psycopg2", b"asyncpg", b"mysql", b"pymysql", b"mariadb", b"mongodb", b"srv"),
    *(b"redis", b"rediss", b"amqp", b"amqps"),
)
"""In whose addresses people write passwords as they are, with slashes."""
_ALONE = re.compile(rb"([A-Za-z0-9_\-.~%+=]{16,512}+)@(?=[A-Za-z0-9\[])")
_PORT = re.compile(rb"[0-9]{1,5}(?:/.{0,512})?", re.DOTALL)
_WEBHOOK = re.compile(
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
_GO_ADDRESS = re.compile(rb"([^\s:@/'\"`=]{1,64}):([^\s@:/'\"`]{1,128})@(?:tcp|unix)\(")

_OPTION = re.compile(
    rb"-(?<=[\s\"'(]-)(?:"
    rb"(?:u|U|a|-user|-proxy-user|-auth)(?:[ \t]{1,4}|=)?[\"']?(?P<user>[^\s:\"'%]{0,128})[:%](?P<pass>[^\s\"'\\]{3,256})"
    rb"|(?:p|P|a|w|k|-password)(?:[ \t]{1,4}|=)?(?:\"(?=[^\"\r\n]{3,256}\")|'(?=[^'\r\n]{3,256}'))?"
    rb"(?P<word>(?<=\")[^\"\r\n]{3,256}|(?<=')[^'\r\n]{3,256}|[^\s\"'\\]{3,256}))"
)
_TAKES_USER = re.compile(rb"\b(?:curl|wget|http|https|xh|httpie|ab|hey|smbclient|rclone|skopeo)\b")
_TAKES_PASSWORD = {
    b"p": re.compile(
        rb"\b(?:mysql(?:dump|admin|sh|import|check)?|mariadb(?:-dump|-admin)?|mongo(?:sh|dump|restore|import|export)?|sshpass|7z[ar]?"
        rb"|(?:docker|podman|helm|oc|cf|az|nerdctl|buildah|skopeo|oras|crane|kubectl|argocd|npm|heroku)\b[^|;&\n]{0,200}\blogin"
        rb"|plink|pscp|psftp)\b"
    ),
    b"P": re.compile(rb"\b(?:un)?zip\b"),
    b"a": re.compile(rb"\bredis-(?:cli|benchmark)\b"),
    b"w": re.compile(rb"\bldap[a-z]{2,10}\b"),
    b"k": re.compile(rb"\bopenssl\b"),
}
"""By the option's letter. Some take it glued to the option, some with a gap, and some ask when there is a gap."""
_ASKS = re.compile(rb"\b(?:mysql|mariadb|7z)")
_REACH = 400
_PASS = re.compile(rb"pass:(?<=[\s\"']pass:)([^\s\"'`\\]{3,256})")
_HTPASSWD = re.compile(
    rb"htpasswd[ \t]{1,4}-[A-Za-z]{0,8}b[A-Za-z]{0,8}[ \t]{1,4}(?:-[A-Za-z]{1,4}[ \t]{1,4}){0,2}"
    rb"[^\s]{1,200}[ \t]{1,4}[^\s]{1,64}[ \t]{1,4}"
    rb"[\"']?([^\s\"']{3,128})"
)
_LOGIN = re.compile(
    rb"login[ \t\r\n]{1,20}[^\s/|,&]{1,128}[ \t\r\n]{1,20}(?:account[ \t\r\n]{1,20}[^\s]{1,64}[ \t\r\n]{1,20})?"
    rb"password[ \t\r\n]{1,20}([^\s]{3,256})"
)
_PGPASS = re.compile(rb":(?:543[0-9]|\*):([\w.*\-]{1,64}):([A-Za-z_][\w.\-]{0,63}):([^\s:\"'\\]{3,128})(?=\s|\Z|[\"'\\])")
_HASH = re.compile(
    rb"\$(?:2[abxy]?\$[0-9]{2}\$[./A-Za-z0-9]{50,64}+"
    rb"|(?:apr1|1|5|6|7|y|gy|sha1)\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,48}\$(?:[./A-Za-z0-9]{1,48}\$)?[./A-Za-z0-9]{16,128}+"
    rb"|argon2(?:id|i|d)\$[^\s\"':]{24,256}+"
    rb"|(?:scrypt|pbkdf2[a-z0-9\-]{0,12})\$[^\s\"':]{24,256}+"
    rb"|(?<=sha256\$)[0-9]{4,8}\$[A-Za-z0-9+/=.]{4,64}\$[A-Za-z0-9+/=]{24,128}+"
    rb"|(?<=SCRAM-SHA-256\$)[0-9]{3,7}:[A-Za-z0-9+/=]{16,64}\$[A-Za-z0-9+/=:]{60,128}+)"
)
_LDAP_HASH = re.compile(rb"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,140}+={0,2}")


def find_carried(raw: bytes, spans: list[Span]) -> None:
    if b"://" in raw:
        _addresses(raw, spans)
    if b"@" in raw and (b"@tcp(" in raw or b"@unix(" in raw):
        for found in _GO_ADDRESS.finditer(raw):
            _add(found, 2, "url-password", spans)
    if b" -" in raw:
        _options(raw, spans)
    if b"pass" in raw:
        _passwords(raw, spans)
    if b":543" in raw or b":*:" in raw:
        for found in _PGPASS.finditer(raw):
            _add(found, 3, "password", spans)
    if b"$" in raw:
        spans.extend((found.start(), found.end(), "password-hash") for found in _HASH.finditer(raw))
    if b"{S" in raw:
        spans.extend((found.start(), found.end(), "password-hash") for found in _LDAP_HASH.finditer(raw))


def _passwords(raw: bytes, spans: list[Span]) -> None:
    for found in _PASS.finditer(raw):
        if b"-pass" in raw[max(0, found.start() - 24) : found.start()]:
            _add(found, 1, "password", spans)
    for found in _HTPASSWD.finditer(raw):
        _add(found, 1, "password", spans)
    if b"login" in raw:
        for found in _LOGIN.finditer(raw):
            if not worded(found[1]):
                _add(found, 1, "password", spans)


def _add(found: re.Match[bytes], group: int | str, kind: str, spans: list[Span]) -> None:
    value = found[group]
    if len(value) >= 3 and not stands_in(value, numbered=False) and not value.startswith((b"$", b"{", b"%s", b"<")):
        spans.append((found.start(group), found.end(group), kind))


def _addresses(raw: bytes, spans: list[Span]) -> None:
    """Passwords and tokens in front of the host, and the addresses that open a door to whoever knows them."""
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
    """``curl -u name:password``, ``mysql -pPassword`` and their like: only behind a command that takes them so."""
    for found in _OPTION.finditer(raw):
        line = raw[max(0, found.start() - _REACH) : found.start()]
        if b"\\\n" not in line:
            line = line[line.rfind(b"\n") + 1 :]
        if found["user"] is not None:
            if _TAKES_USER.search(line):
                _add(found, "pass", "password", spans)
            continue
        option = found[0][1:2]
        glued = raw[found.start() + 2] not in b" \t="
        if option not in _TAKES_PASSWORD or (glued and option not in (b"p", b"P")) or not _TAKES_PASSWORD[option].search(line):
            continue
        if glued or option != b"p" or not _ASKS.search(line):
            _add(found, "word", "password", spans)

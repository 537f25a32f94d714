"""Normalize failure messages, so that the same failure has the same signature on any day, machine and agent.

A signature is one line: the message of a tool, compiler, shell, runtime or server, without what differs from one occurrence to the
next (places in files, numbers, times, hashes, temporary names).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kite_memory.text import lazy_regex

PANICKED = "panicked"
"""Returned by `failure_message` for a line whose message is on the next one."""

_Message = Callable[[re.Match[str]], str]

_HINTS = (
    "rror", "RROR", "xception", "atal", "ATAL", "FAIL", "panic", "not found", "denied", "refused", "rejected", "CONFLICT",
    "No rule", "o such", "undefined", "nknown", "ecogni", "not ok", "rspec", "imeout", "timed out", "HTTP", "status", "e: ",
    "npm ", "SQLITE", " E", "ORA-", "curl: (", "egmentation", "illed", "of memory", "level", "severity", "not defined",
    "ailure", "nterrupt", "Exit", "Fault", "iolation", "esolv", "solution", "irectory", "busy", "space left", "unreachable",
    "no route", "roken pipe", "EOF", "exceeded", "closed network", "llegal", "nvalid", "nexpected", "interpreter", " too ",
    "SEVERE", "CRITICAL", "locked", "certificate", "daemon", "not permitted", "in use", "reset", "No version", "matches found",
    "Bus ", "Abort", "YN0", "ERR_", "_test.go:", "getaddrinfo", "file system", "long", "not provided", "not known", "allocate",
    "exit", "unbound", "'E", '"E', " › ",
)  # fmt: skip
"""Every line of one of the forms below contains one of these, except a compiler's."""

_POSITION = r"[^\s:()'\"]{1,200}\.\w{1,6}(?::\d{1,7}:\d{1,6}|\(\d{1,7}(?:,\d{1,6})?\))(?::| -)\s?"
_TASK = r"(?:\[(?!(?i:info|warn|warning|debug|note|trace)\])[\w:.@/-]{1,40}\] )"
"""Prefix of every line of a task that runs together with others."""
_POSITIONED = lazy_regex(rf"{_TASK}?\s{{0,8}}(?:vet: )?{_POSITION}")
_RULE = lazy_regex(r"[A-Z]{1,4}\d{3,4} (?:\[\*\] )?\S")
_FRAME = lazy_regex(rf"(?:{_TASK}[\s│┃║|>╷╵×✖✘✗❌●]{{0,40}}|[\s│┃║|>╷╵×✖✘✗❌●]{{1,40}})(?=\S)")
_NAME = r"[A-Z]\w{0,60}(?:Error|Exception|Failure|Interrupt|Timeout|Exit|Fault|Violation|Panic)"
_PACKAGE = r"(?:[A-Za-z_$][\w$]{0,60}\.)"
_BEFORE_EXCEPTION = (
    r"(?:E\s+|Caused by: |Uncaught (?:\(in promise\) )?|Unhandled \w+ |Exception in thread \"[^\"]{0,80}\" "
    r"|Unhandled exception\. )?"
)
_STAMP = r"(?>[\[(]?\S{0,12}\d[\d:.,/TZ+-]{0,30}[\])]?[\s|-]{1,3}){0,3}"
_TRACED = lazy_regex(rf"{_PACKAGE}{{0,10}}(?P<said>{_NAME})$")
_TELLING_EXIT = lazy_regex(r"\b(?i:exit(?:ed)?(?: with)?(?: code| status)?):? (?P<code>12[67]|13\d|14[13])\b")
_LOGGED_FIELD = lazy_regex(r'"?\b(msg|message|event|err|error)"?\s?[=:]\s?("(?:[^"\\]|\\.){0,300}"?|[^\s,}"]{1,200})')
_SAID_BY_SYSTEMS = lazy_regex(
    r"(?i)\b(?:no such file or directory|permission denied|is a directory|not a directory|operation not permitted|text file busy"
    r"|device or resource busy|read-only file system|too many open files|no space left on device|disk quota exceeded"
    r"|address already in use|connection refused|connection reset(?: by peer)?|connection timed out|network is unreachable"
    r"|no route to host|broken pipe|host is down|no such host|name or service not known|nodename nor servname provided.{0,30}"
    r"|temporary failure in name resolution|could not resolve host(?:name)?|getaddrinfo failed|i/o timeout|unexpected EOF"
    r"|context deadline exceeded|use of closed network connection|cannot allocate memory|exec format error|bad interpreter"
    r"|argument list too long|file name too long|protocol error|agent refused operation|database is locked"
    r"|certificate (?:has expired|signed by unknown authority|verify failed)|tls handshake timeout)(?=$|[.:,;)\]]| [(\[])"
)
_SPEAKER = lazy_regex(r"(?:[\w./()+-]{1,80}: ?){1,4}|.{0,300}: $|$")


def _say(template: str) -> _Message:
    def message(found: re.Match[str]) -> str:
        return template.format(**{name: value or "" for name, value in found.groupdict().items()})

    return message


def _exception(found: re.Match[str]) -> str:
    return f"{found['name']}: {said}" if (said := (found["said"] or "").strip()) else found["name"]


def _pytest(found: re.Match[str]) -> str:
    return " - ".join(filter(None, (f"{found['how']} {found['test']}", found["said"])))


def _logged(found: re.Match[str]) -> str:
    fields = dict(_LOGGED_FIELD.findall(found.string))
    said = (fields.get("msg") or fields.get("message") or fields.get("event") or "", fields.get("err") or fields.get("error") or "")
    return ": ".join(bare for part in said if (bare := part.strip('"').replace('\\"', "'")))


def _named(found: re.Match[str]) -> str:
    return f"{found['kind'].lower()}{found['code'] or ''}: {found['said']}"


_AT_START: tuple[tuple[re.Pattern[str], _Message], ...] = tuple(
    (lazy_regex(pattern), _say(rule) if isinstance(rule, str) else rule)
    for pattern, rule in (
        # shells
        (r"(?:\S{1,80}: )?(?:(?:line )?\d+: )?(?P<it>[\w.+/-]{1,80}): command not found\.?$", "{it}: command not found"),
        (r"(?:\S{1,60}:)?(?:\d+: )?\s?command not found: (?P<it>\S{1,80})$", "{it}: command not found"),
        (r"(?:\S{1,120}: )?(?:line )?\d+: (?P<it>\S{1,80}): unbound variable$", "{it}: unbound variable"),
        (r"(?:/bin/)?(?:sh|dash|ash): (?:line )?\d+: (?P<it>\S{1,80}): not found$", "{it}: command not found"),
        (r"['\"](?P<it>[^'\"]{1,80})['\"] is not recognized as an internal or external command", "{it}: command not found"),
        (r".{0,80}The term ['\"](?P<it>[^'\"]{1,80})['\"] is not recognized", "{it}: command not found"),
        (
            r"(?:zsh|\(eval\)):(?:(?P<of>[a-z]\w{0,20}):)?(?:\d+: ?)?\s?"
            r"(?P<said>(?:no such file or directory|permission denied|no matches found)\b.{0,200})",
            "{of}: {said}",
        ),
        # tests
        (r"--- FAIL: (?P<test>\S{1,200})", "--- FAIL: {test}"),
        (r"(?P<how>FAILED|ERROR) (?P<test>\S{1,300}::\S{1,300})(?: - (?P<said>.{1,300}))?", _pytest),
        (r"(?:FAIL|ERROR): (?P<test>test\w{1,200}) \([\w.]{1,200}\)", "FAIL: {test}"),
        (r"test (?P<test>[\w:]{1,300}) \.\.\. FAILED", "FAIL: {test}"),
        (r"\s{0,8}FAIL  (?:\|[^|]{1,60}\| )?(?P<test>\S{1,200} > .{1,200})", "FAIL: {test}"),
        (r"\s{0,8}● (?P<test>\S.{0,200} › .{1,200})", "FAIL: {test}"),
        (r"not ok \d+ -? ?(?!.{0,200}# ?(?i:todo|skip)\b)(?P<test>.{1,200})", "not ok: {test}"),
        (r"rspec \./\S{1,200} # (?P<test>.{1,200})", "rspec: {test}"),
        # exceptions and panics
        (rf"{_BEFORE_EXCEPTION}{_PACKAGE}{{0,10}}(?P<name>{_NAME})(?: \[\w{{1,60}}\])?: (?P<said>.{{0,500}})", _exception),
        (rf"E\s+{_PACKAGE}{{0,10}}(?P<said>{_NAME})$|{_BEFORE_EXCEPTION}{_PACKAGE}{{1,10}}(?P<other>{_NAME})$", "{said}{other}"),
        (r"panic: (?P<said>.{1,400}?)(?: \[recovered.{0,40})?$", "panic: {said}"),
        (r"thread '.{0,80}' (?:\(\d+\) )?panicked at '(?P<said>.{1,300})', \S{1,200}:\d", "panicked: {said}"),
        (r"thread '.{0,80}' (?:\(\d+\) )?panicked at \S{1,200}:\d+:\d+:$", PANICKED),
        (r"(?P<said>Segmentation fault|Killed: 9|signal: (?:killed|segmentation fault)|Bus error|Illegal instruction|Abort trap)", "{said}"),  # noqa: E501
        # compilers and linters
        (r"(?:\s{4}|\t)\w{1,100}_test\.go:\d{1,7}: (?P<said>\S.{0,300})", "{said}"),
        (rf"\s{{0,8}}(?:vet: )?{_POSITION}(?!(?i:note|warning|info|hint|remark|help)\b)(?P<said>\S.{{0,400}})", "{said}"),
        (r"\S{1,200}\.\w{1,6}:\d{1,7}: (?P<said>(?:(?:fatal |syntax )?error|undefined reference|multiple definition)\b.{0,400})", "{said}"),  # noqa: E501
        (r"\s+\d{1,7}:\d{1,6}\s+error\s+(?P<said>\S.{0,300})", "{said}"),
        (r"e: \S{1,300}?(?::\d+:\d+|: \(\d+, \d+\):) (?P<said>.{1,300})", "{said}"),
        (r"make(?:\[\d+\])?: \*\*\* (?P<said>No rule to make target .{1,200})", "{said}"),
        (r"make(?:\[\d+\])?: \*\*\* ", ""),
        # version control
        (r" ?! \[(?P<how>rejected|remote rejected)\].{0,200}\((?P<said>[^()]{1,80})\)$", "[{how}] ({said})"),
        (r"CONFLICT \((?P<how>[\w/ ]{1,40})\):", "CONFLICT ({how})"),
        # package managers, containers
        (r"npm (?:ERR!|error) code (?P<said>E\w{2,40})$", "npm: code {said}"),
        (r"npm (?:ERR!|error) (?!code |errno |path |A complete log|syscall |command |\s)(?P<said>\S.{0,300})", "npm: {said}"),
        (r"npm (?:ERR!|error)\b", ""),
        (r"\s{0,8}(?P<said>ERR_PNPM_\w{1,60}\s.{1,200}|➤ YN\d{4}: .{1,200})", "{said}"),
        (r"(?:docker: )?Error response from daemon: (?P<said>.{1,300})", "docker: {said}"),
        (r"(?:(?:docker|ERROR|error): )?(?P<said>Cannot connect to the Docker daemon)", "docker: {said}"),
        (r"(?:ERROR: |error: )?failed to solve: (?P<said>.{1,300})", "failed to solve: {said}"),
        (r"mise ERROR (?!Run with )(?P<said>\S.{0,300})", "mise: {said}"),
        (r"(?:mise .{0,20})?(?P<said>No version is set for (?:command|shim:?) \S{1,60})", "{said}"),
        # network and databases
        (r"(?P<said>curl: \(\d{1,2}\) .{1,200})", "{said}"),
        (r"\s{0,40}['\"]?code['\"]?: ['\"](?P<said>E[A-Z]{3,30}|ERR_\w{3,60}|SQLITE_\w{3,40})['\"]", "code {said}"),
        (r"(?P<said>ORA-\d{5}: .{1,200}|(?:ERROR|error) \d{4} \(\w{5}\).{1,200})", "{said}"),
        (r"(?:[\w.-]{1,40}: )?(?P<of>[A-Z][\w ]{1,60}) \(HTTP (?P<code>[45]\d\d)\)$", "HTTP {code} {of}"),
        (r"(?:[\w.-]{1,40}: |< )?HTTP(?:/[\d.]{1,3})? (?P<code>[45]\d\d)(?: (?P<of>[A-Z][\w ]{1,40}))?\.?$", "HTTP {code} {of}"),
        (r"(?:[\w.-]{1,40}: )HTTP (?P<code>[45]\d\d):? (?P<said>.{1,200})$", "HTTP {code} {said}"),
        (r"(?P<said>The requested URL returned error: [45]\d\d)", "{said}"),
        # wrong arguments of a program
        (r"(?:[\w./-]{1,60}: ){0,3}(?i:error: )?(?P<said>(?i:unknown|unrecogni[sz]ed|no such|invalid|illegal|unexpected) (?i:(?:long |shorthand )?flag|option|command|subcommand|arguments?|(?:JSON )?field|switch|choice)s?\b(?::| -|['\" `]).{1,200})", "{said}"),  # noqa: E501
        (r"(?P<said>flag provided but not defined: .{1,100})", "{said}"),
        # logs
        (r".{0,200}\blevel=\"?(?i:error|fatal|critical|panic)\b", _logged),
        (r".{0,400}\"(?:level|severity|lvl|loglevel)\"\s?:\s?\"(?i:error|fatal|critical|panic)\"", _logged),
        (r"[EF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ \S{1,120}:\d+\] (?P<said>.{1,300})", "{said}"),
        # lines that start with "error"
        (r"(?:remote: )?(?P<kind>fatal error|Fatal error|fatal|error|Error|ERROR|Fatal|FATAL|CRITICAL)(?P<code>\[\w{1,40}\]| \[\w{1,60}\]| TS\d{3,5})?:\s{1,4}(?P<said>\S.{0,500})", _named),  # noqa: E501
        (rf"{_STAMP}[\[(]?(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)[\])]?(?:[:|]| -|\s)\s{{0,8}}(?P<said>\S.{{0,300}})", "{said}"),
    )
)  # fmt: skip
"""Forms matched at a line's beginning. The first match defines the message; an empty template means no failure."""

_ANYWHERE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (lazy_regex(pattern), template)
    for pattern, template in (
        (r"(?P<said>JavaScript heap out of memory|Out of memory: Killed process|CUDA out of memory|OOMKilled)", "{said}"),
        (r": (?P<said>undefined reference to .{1,200})", "{said}"),
        (r"\b(?P<said>(?:connect|read|write|listen|bind|getaddrinfo|spawn|open|scandir|mkdir|unlink|rename|l?stat|access|query\w{0,8}) E[A-Z]{3,20}\b.{0,160})", "{said}"),  # noqa: E501
        (r"(?:^|[:(] ?)(?P<said>SQLITE_[A-Z_]{3,40}\b(?:: .{0,160})?)\)?$", "{said}"),
        (r"\b(?P<said>(?:failed with|responded with|returned|unexpected|got) (?:an? )?(?:error: |HTTP )?status(?: code)?:? [45]\d\d\b.{0,100})", "{said}"),  # noqa: E501
    )
)  # fmt: skip


def may_tell(line: str) -> bool:
    """Return whether a line may hold a failure: a fast filter that keeps every line with a `failure_message`."""
    for hint in _HINTS:  # ten thousand lines a session: `any` would take half as long again
        if hint in line:
            return True
    return _POSITIONED.match(line) is not None or _RULE.match(line) is not None


def failure_message(line: str, *, traced: bool = False, following: str = "") -> str:
    """Return the failure message on a line; empty for a line without one.

    ``traced`` means that the line is inside a traceback: there the bare name of an exception counts. ``following`` is the next
    line: a linter's rule counts if the next line names the place that violates it.
    """
    if _RULE.match(line) and following.lstrip().startswith("--> "):
        return line
    frame = _FRAME.match(line)
    for candidate in (line, line[frame.end() :]) if frame else (line,):
        for form, message in _AT_START:
            if found := form.match(candidate):
                return message(found).strip(" :")
        if traced and (found := _TRACED.match(candidate)):
            return found["said"]
    for form, template in _ANYWHERE:
        if found := form.search(line):
            return _say(template)(found)
    if (said := _SAID_BY_SYSTEMS.search(line)) and _SPEAKER.fullmatch(before := line[: said.start()].lstrip()):
        return (before + line[said.start() : said.start() + 300]).strip()
    code = _TELLING_EXIT.search(line)
    return f"exit code {code['code']}" if code else ""


_LENGTH = 160
_LINE = 600
"""Only this much of a line is read, which bounds the cost of minified or binary output."""
_TOKEN = 64
_END = 1 << 20
_LOOKED_AT = 4_000
_BY_CHANCE = 16
_QUOTE_LENGTH, _QUOTE_WORDS = 40, 4

_CONTROL = lazy_regex(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|\x1b.|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)
_URL = lazy_regex(r"\b[A-Za-z][A-Za-z0-9+.-]{1,12}://[^\s'\"`<>)\]]{1,500}|\b[\w.-]{1,40}@[\w.-]{1,80}:[\w./~-]{1,200}")
_REMOTE = lazy_regex(r"(?<=['\"`])[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}:[\w.-]{1,80}/[\w./-]{1,200}")
_UUID = lazy_regex(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_TIME = lazy_regex(
    r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?(?![\w-])"
    r"|\b\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?\b"
)
_REST_OF_PATH = r"[^\s'\"`:,;()<>\[\]]{1,400}"
_TEMPORARY = lazy_regex(
    rf"(?<![\w.])(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)(?![\w-])(?:/{_REST_OF_PATH})?"
    rf"|\b[A-Za-z]:\\[^\s'\"`:,;]{{0,200}}\\Temp\\{_REST_OF_PATH}"
)
_FILE_SUFFIXES = """
bash c cc cfg cjs conf cpp cs css cts csv cxx dart erl ex exs go gradle h hpp hs htm html ini ipynb java jl js json jsonl jsx kt kts
less lock lua m md mjs mm mod mts php pl proto ps1 py pyi pyx r rb rs scala scss sh sql sum svelte swift tf toml ts tsx txt vue xml
yaml yml zig zsh
"""
_SUFFIXES = frozenset(_FILE_SUFFIXES.split())
_PLACE = r"(?::\d{1,7}(?::\d{1,6})?|\(\d{1,7}(?:,\d{1,6})?\))?"
_PLACED = lazy_regex(_PLACE + r"$")
_PART = r"[\w.@+~%#-]{1,120}"
_PATH = lazy_regex(
    rf"(?<![\w<.])(?:[A-Za-z]:|~|\.{{1,2}}|{_PART})?(?:[/\\]{_PART}){{1,40}}[/\\]?{_PLACE}"
    rf"|(?<![\w.+~-])[\w+~-][\w.+~-]{{1,120}}{_PLACE}"
)
_ADDRESS = lazy_regex(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.])"
    r"|(?<![\w:])\[?(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}\]?(?::\d{2,5})?(?=[\s,;)'\"]|$)"
    r"|\b[A-Za-z][\w-]{0,60}(?:\.[\w-]{1,60}){0,5}:\d{2,5}\b"
)
_MAIL = lazy_regex(r"\b[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}\b")
_HEX = lazy_regex(r"\b0x[0-9a-fA-F]{1,64}\b|\b(?=[0-9a-f]{0,127}\d)(?=[0-9a-f]{0,127}[a-f])[0-9a-f]{7,128}\b")
_LONG = lazy_regex(rf"[^\s'\"`<>()\[\]{{}},;:|]{{{_BY_CHANCE},}}")
_NUMBER = lazy_regex(
    r"(?<![\w.<])[-+]?\d[\d_,]{0,40}(?:\.\d{1,40}){0,6}(?:[eE][-+]?\d{1,4})?"
    r"(?: ?(?:[numµ]?s|min|h|[KMGT]i?B|B)\b|%)?(?![A-Za-z_])"
)
_CODED = lazy_regex(
    r"(?:\b(?:status|code|HTTP(?:/\d(?:\.\d)?)?|errno|signal|exited|exit|curl:|error)(?: code| status| with)?[:=]?\s?|curl: \()$",
    re.IGNORECASE,
)
"""Before a number that identifies the failure, which is kept."""
_INNER = lazy_regex(r"\b[A-Za-z_]\w{0,63}?\d{4}\w{0,63}")
_DIGITS = lazy_regex(r"\d{4,}")
_ERROR_CODE = lazy_regex(r"[A-Z]{1,6}\d{4,5}")
_QUOTED = lazy_regex(r"(?<![\w<])(?:'([^'\n]{0,400})'|\"([^\"\n]{0,400})\"|`([^`\n]{0,400})[`'])(?!\w)|[‘“]([^’”\n]{0,400})[’”]")
_WORD = lazy_regex(r"[^\W\d_]{3,}")
_PLACEHOLDER = lazy_regex(r"<\w{1,8}>")
_GENERIC = lazy_regex(
    r"(?i)(?:(?:error|fatal|critical|npm|docker|mise):? ?)?(?:"
    r".{0,60}?\b(?:exited|exits?|returned|finished|failed with)"
    r"(?: with)?(?: non-?zero)?(?: exit)?(?: code| status)?:? ?(?:<n>|[012])?"
    r"|(?:(?:process|command|script|task|build|recipe|target|job|step|tests?|run)\b.{0,60}?)?\bfailed(?:, to rerun pass .{0,60})?"
    r"|command failed.{0,60}|[\w.+~-]{1,120}\.\w{1,6}"
    r"|exit(?: code| status):? ?(?:<n>|[012])"
    r"|(?:an? )?(?:unknown|unexpected|internal)? ?error(?: occurred)?|lifecycle script .{0,80}|undefined|null|none|true|false"
    r"|ld returned .{0,40}|could not compile .{0,80}|aborting due to .{0,60}|some errors? .{0,40}|too many errors"
    r"|<n> errors?.{0,20})"
)
"""Messages that state only that something failed: they occur with any cause."""


def signatures(text: str, limit: int = 8) -> tuple[str, ...]:
    """Return the distinct failures in a text, in order; of more than ``limit`` the first ones and the last two.

    Takes time linear in the text and never raises. A signature has at most 160 characters, and no run without a blank of more than
    64. Of a very long text, only both ends are read.
    """
    if len(text) > 2 * _END:
        text = f"{text[:_END]}\n{text[-_END:]}"
    traced = "Traceback (most recent call last)" in text
    lines = text.split("\n")
    last = min(2, limit)
    first: dict[str, int] = {}
    for place, signature in _numbered_signatures(lines, traced):
        first.setdefault(signature, place)
        if len(first) > limit:
            break
    else:
        return tuple(first)
    ending: dict[str, int] = {}
    for place, signature in _numbered_signatures(lines, traced, backwards=True):
        ending.setdefault(signature, place)
        if len(ending) == last:
            break
    beginning = [signature for signature in first if signature not in ending]
    return (*beginning[: limit - len(ending)], *reversed(ending))


def first_failure(text: str) -> str:
    """Return the line, verbatim, that the first of `signatures` was made of; empty if there is no failure."""
    lines = text[:_END].split("\n")
    for place, _ in _numbered_signatures(lines, "Traceback (most recent call last)" in text):
        return _CONTROL.sub("", lines[place][:_LINE]).strip()
    return ""


def normal(message: str) -> str:
    """Normalize a message. A signature stays as it is."""
    text = _CONTROL.sub(" ", message[: _LINE * 2])[:_LINE]
    for pattern, instead in _SURROUNDINGS:
        text = pattern.sub(instead, text)
    text = " ".join(text.split())
    if len(text) > _LENGTH:
        text = text[: _LENGTH + 1].rpartition(" ")[0]
    return text.strip(" ,;:.")


def _numbered_signatures(lines: Sequence[str], traced: bool, *, backwards: bool = False) -> Iterator[tuple[int, str]]:
    """Yield signatures with their line numbers. Stops after the first few thousand distinct lines that may hold a failure."""
    known: dict[str, str] = {}
    for place in range(len(lines) - 1, -1, -1) if backwards else range(len(lines)):
        line = lines[place]
        if len(line) < 4:
            continue
        for part in line[: 2 * _LINE].split("\r"):
            bare = (part if part.isprintable() else _CONTROL.sub("", part))[:_LINE]
            if not may_tell(bare):
                continue
            if len(known) >= _LOOKED_AT:
                return
            if bare not in known:
                known[bare] = _signature(bare, traced, lines[place + 1] if place + 1 < len(lines) else "")
            if known[bare]:
                yield place, known[bare]


@lru_cache(maxsize=512)
def _signature(line: str, traced: bool, following: str) -> str:
    message = failure_message(line, traced=traced, following=following[:_LINE])
    if message == PANICKED:
        said = following.strip()[:_LINE]
        message = f"panicked: {said}" if said else ""
    signature = normal(message) if message else ""
    return signature if _says_something(signature) else ""


def _says_something(signature: str) -> bool:
    bare = _PLACEHOLDER.sub("", signature)
    return len(bare) >= 8 and _WORD.search(bare) is not None and not _GENERIC.fullmatch(signature)


def _last_part(path: re.Match[str]) -> str:
    """Return the last part of a path; leave «linux/amd64», «i/o» and words with a dot in them as they are."""
    bare = _PLACED.sub("", path.group().rstrip(".")).rstrip("/\\")
    parts = re.split(r"[/\\]", bare)
    name = parts[-1]
    if len(parts) < 3 and parts[0].strip(".~") and name.rpartition(".")[2] not in _SUFFIXES:
        return path.group()
    return name if name.strip(".~") else "<path>"


def _inner(found: re.Match[str]) -> str:
    """Replace numbers within words, except in error codes."""
    return found.group() if _ERROR_CODE.fullmatch(found.group()) else _DIGITS.sub("<n>", found.group())


def _drawn(found: re.Match[str]) -> str:
    """Replace random identifiers; keep long names that people chose."""
    text = found.group()
    if sum(char.isdigit() for char in text) >= 3 and any(char.isalpha() for char in text):
        return "<id>"
    return text if len(text) <= _TOKEN else text[: _TOKEN - 4] + "…"


def _number(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - 20) : found.start()]
    return found.group() if re.fullmatch(r"\d{1,3}", found.group()) and _CODED.search(before) else "<n>"


def _quoted(found: re.Match[str]) -> str:
    inner = next(group for group in found.groups() if group is not None)
    return "'<text>'" if len(inner) > _QUOTE_LENGTH or len(inner.split()) > _QUOTE_WORDS else f"'{inner}'"


_SURROUNDINGS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_URL, "<url>"),
    (_REMOTE, "<url>"),
    (_UUID, "<id>"),
    (_TIME, "<time>"),
    (_TEMPORARY, "<tmp>"),
    (_MAIL, "<mail>"),
    (_PATH, _last_part),
    (_ADDRESS, "<addr>"),
    (_HEX, "<hex>"),
    (_LONG, _drawn),
    (_NUMBER, _number),
    (_INNER, _inner),
    (_QUOTED, _quoted),
)
"""Patterns of what differs between occurrences, and their replacements, applied in this order."""


TYPED = lazy_regex(
    r"^(?:[^\n]{0,3}(?:[❯➜»]|\$|%)|[\w.-]{1,60}@[\w.-]{1,80}[ :][^\n%$#]{0,120}[%$#])[ \t]+(?=[A-Za-z./])"
    r"((?:[^\n]{0,400}\\\n){0,12}[^\n]{1,400})$",
    re.MULTILINE,
)
"""A command with the sign of a shell before it, in what a person pasted."""
_FAILS = lazy_regex(
    r"\b(?:fail(?:s|ed|ing)?|(?:tests?|lint\w*|build|ci|check)(?: \w+){0,2}? failures?|broken|broke|breaks"
    r"|crash(?:es|ed|ing)|bugged|errored|denied by|hangs|hanging|stuck|barfed|regressed)\b"
    r"|\b(?:does|do|did|is|are|was|can|has|have)(?:n['’]t| not)\s(?:\w+\s){0,3}?(?:work(?:s|ing)?|load(?:ed|ing)?|render(?:ed|ing)?"
    r"|show(?:n|ing)?|compil(?:e|ing)|build|start(?:ed)?|open|see|appear|visible|display(?:ed)?|run(?:ning)?|respond(?:ing)?|saved?"
    r"|updated?|pass(?:ing)?|correct)\b"
    r"|\bcan ?not (?:see|find|open|run|start|build)\b|\b(?:is|are|does|do) no longer \w+"
    r"|\bnot (?:work|render|load|display|show|pass|build|compil)\w*"
    r"|\b(?:got|get|gets|getting|seeing|hit|hitting|have|throws?|there(?:['’]s| is| are|s)|gives?)(?:\s[\w'-]{1,30}){0,4}?\s"
    r"(?:errors?|(?:merge )?conflicts?|exceptions?|warnings?|stack ?trace|http [45]\d\d|[45]\d\d error)\b"
    r"|\b(?:does|do|did)(?:n['’]t| not) (?:match|line up|add up)\b|\bnothing happens\b"
    r"|\b(?:have|has|found|is|see|suspect|got|there['’]?s|it['’]?s)(?:\s[\w'-]{1,20}){0,4}?\s(?:bugs?|regression|glitch)\b"
    r"|\b(?:is|are|looks?|seems?|shows?|displays?|gets?|returns?|prints?|gives?|has)(?:\s[\w'-]{1,20}){0,3}?\s"
    r"(?:wrong|incorrect|duplicated|corrupt(?:ed)?|garbled|misaligned|truncated|cut off)\b"
    r"|\b(?:i|we) (?:still|only|just) (?:see|get|have)\b"
    r"|\b(?:shows?|displays?|returns?|prints?|gives?)\b[^.?!\n]{1,60}\binstead of\b"
    r"|\b(?:ne (?:marche|fonctionne) p(?:as|lus)|plante|échou\w{1,4}|funktioniert (?:immer noch )?nicht|geht nicht|schlägt fehl"
    r"|no funciona|falla)\b",
    re.IGNORECASE,
)
"""What a person says of something that fails."""
_SUPPOSES = lazy_regex(
    r"\b(?:or|each|every|any|should|shouldn['’]t|would|could|might|may|if|when|whenever|unless|until|in case|make sure"
    r"|ensure|so that|add|craft|write"
    r"|tests? (?:that|for|whether)|what happens|what about|consider|handle|how|let['’]s|supposed|avoid|prevent|does that mean|is it"
    r"|which|than|instead|without|was|were|used to|previously|no)\b",
    re.IGNORECASE,
)
"""Words before it that make it no report."""
_ASKS_WHETHER = lazy_regex(r"(?:is|are|does|do|did|will|would|has|have|can we|can it|may)\b[^?]*\?", re.IGNORECASE)
_WORKS = lazy_regex(
    r"\b(?:works?(?: now| fine| well| great| again)?\W*$|(?:that|it|this|all|now|everything) (?:works|worked|passes)"
    r"|is (?:fixed|green|good)|fixed|resolved|thanks|thank you|perfect|great|lgtm|looks good|nice)\b",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED = lazy_regex(r"^[✗✘×❌] \S[^\n]{8,200}(?:\s{1,8}\S[^\n]{0,100}){0,2}", re.MULTILINE)
"""What a program marked as wrong, with what it lists below, where the rest only says that it failed."""
_LONGEST_REPORT = 300
_LONGEST_READ = 12_000
_REPORT_SENTENCES = lazy_regex(r"(?<=[.!?…])[\"')\]*`_]{0,4}\s+|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A failure that a prompt reports. ``command`` is the one that the person ran, if it was pasted."""

    text: str
    command: str = ""


def reported(prompt: str) -> Report | None:
    """Return the failure that a prompt reports, in the person's words or as pasted output; ``None`` if it reports none."""
    text = prompt[:_LONGEST_READ]
    ran = list(TYPED.finditer(text))
    command = " ".join(ran[-1][1].replace("\\\n", " ").split()) if ran else ""
    if failure := first_failure(text):
        return Report(text=failure, command=command)
    for sentence in _REPORT_SENTENCES.split(text):
        said = " ".join(sentence.strip(" \t-*#>").split())
        found = None if _ASKS_WHETHER.match(said) else _FAILS.search(said)
        if found is not None and not _SUPPOSES.search(said[max(0, found.start() - _LONGEST_REPORT) : found.start()]):
            if said.endswith("task failed") and (marked := _MARKED.search(text)):
                said = " ".join(marked.group().split())
            return Report(text=said if len(said) <= _LONGEST_REPORT else _around(said, found), command=command)
    return None


def _around(said: str, found: re.Match[str]) -> str:
    start, end = max(0, found.start() - _LONGEST_REPORT // 2), found.end() + _LONGEST_REPORT // 3
    before, after = ("…" if start else ""), ("…" if end < len(said) else "")
    return f"{before}{said[start:end].partition(' ')[2] if start else said[:end]}{after}"


def is_content(prompt: str) -> bool:
    """Return whether a prompt says that something works now."""
    return len(prompt) <= _LONGEST_REPORT and _WORKS.search(prompt) is not None and _FAILS.search(prompt) is None

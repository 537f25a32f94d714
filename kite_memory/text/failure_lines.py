"""What a line must look like to tell of a failure, tool by tool.

The form decides, not the words: prose that speaks of errors is not one. What only says that something below it failed
(«make: *** Error 2») tells nothing.
"""

import re
from collections.abc import Callable

PANICKED = "panicked"
"""What `told_of` says of a line whose message stands on the next one."""

_Told = Callable[[re.Match[str]], str]

_HINTS = (
    "rror", "RROR", "xception", "atal", "ATAL", "FAIL", "panic", "not found", "denied", "refused", "rejected", "CONFLICT",
    "No rule", "o such", "undefined", "nknown", "ecogni", "not ok", "rspec", "imeout", "timed out", "HTTP", "status", "e: ",
    "npm ", "SQLITE", " E", "ORA-", "curl: (", "egmentation", "illed", "of memory", "level", "severity", "not defined",
    "ailure", "nterrupt", "Exit", "Fault", "iolation", "esolv", "solution", "irectory", "busy", "space left", "unreachable",
    "no route", "roken pipe", "EOF", "exceeded", "closed network", "llegal", "nvalid", "nexpected", "interpreter", " too ",
    "SEVERE", "CRITICAL", "locked", "certificate", "daemon", "not permitted", "in use", "reset", "No version", "matches found",
    "Bus ", "Abort", "YN0", "ERR_", "_test.go:", "getaddrinfo", "file system", "long", "not provided", "not known", "allocate",
    "exit", "'E", '"E', " › ",
)  # fmt: skip
"""No line without one of them has any of the forms below, but for a compiler's."""

_POSITION = r"[^\s:()'\"]{1,200}\.\w{1,6}(?::\d{1,7}:\d{1,6}|\(\d{1,7}(?:,\d{1,6})?\))(?::| -)\s?"
_TASK = r"(?:\[(?!(?i:info|warn|warning|debug|note|trace)\])[\w:.@/-]{1,40}\] )"
"""Before every line of a task that is run with others."""
_POSITIONED = re.compile(rf"{_TASK}?\s{{0,8}}(?:vet: )?{_POSITION}")
_RULE = re.compile(r"[A-Z]{1,4}\d{3,4} (?:\[\*\] )?\S")
_FRAME = re.compile(rf"(?:{_TASK}[\s│┃║|>╷╵×✖✘✗❌●]{{0,40}}|[\s│┃║|>╷╵×✖✘✗❌●]{{1,40}})(?=\S)")
_NAME = r"[A-Z]\w{0,60}(?:Error|Exception|Failure|Interrupt|Timeout|Exit|Fault|Violation|Panic)"
_PACKAGE = r"(?:[A-Za-z_$][\w$]{0,60}\.)"
_BEFORE_EXCEPTION = (
    r"(?:E\s+|Caused by: |Uncaught (?:\(in promise\) )?|Unhandled \w+ |Exception in thread \"[^\"]{0,80}\" "
    r"|Unhandled exception\. )?"
)
_STAMP = r"(?>[\[(]?\S{0,12}\d[\d:.,/TZ+-]{0,30}[\])]?[\s|-]{1,3}){0,3}"
_TRACED = re.compile(rf"{_PACKAGE}{{0,10}}(?P<said>{_NAME})$")
_TELLING_EXIT = re.compile(r"\b(?i:exit(?:ed)?(?: with)?(?: code| status)?):? (?P<code>12[67]|13\d|14[13])\b")
_LOGGED_FIELD = re.compile(r'"?\b(msg|message|event|err|error)"?\s?[=:]\s?("(?:[^"\\]|\\.){0,300}"?|[^\s,}"]{1,200})')
_SAID_BY_SYSTEMS = re.compile(
    r"(?i)\b(?:no such file or directory|permission denied|is a directory|not a directory|operation not permitted|text file busy"
    r"|device or resource busy|read-only file system|too many open files|no space left on device|disk quota exceeded"
    r"|address already in use|connection refused|connection reset(?: by peer)?|connection timed out|network is unreachable"
    r"|no route to host|broken pipe|host is down|no such host|name or service not known|nodename nor servname provided.{0,30}"
    r"|temporary failure in name resolution|could not resolve host(?:name)?|getaddrinfo failed|i/o timeout|unexpected EOF"
    r"|context deadline exceeded|use of closed network connection|cannot allocate memory|exec format error|bad interpreter"
    r"|argument list too long|file name too long|protocol error|agent refused operation|database is locked"
    r"|certificate (?:has expired|signed by unknown authority|verify failed)|tls handshake timeout)(?=$|[.:,;)\]]| [(\[])"
)
_SPEAKER = re.compile(r"(?:[\w./()+-]{1,80}: ?){1,4}|.{0,300}: $|$")


def _say(template: str) -> _Told:
    def told(found: re.Match[str]) -> str:
        return template.format(**{name: value or "" for name, value in found.groupdict().items()})

    return told


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


_AT_START: tuple[tuple[re.Pattern[str], _Told], ...] = tuple(
    (re.compile(pattern), _say(told) if isinstance(told, str) else told)
    for pattern, told in (
        # shells
        (r"(?:\S{1,80}: )?(?:(?:line )?\d+: )?(?P<it>[\w.+/-]{1,80}): command not found\.?$", "{it}: command not found"),
        (r"(?:\S{1,60}:)?(?:\d+: )?\s?command not found: (?P<it>\S{1,80})$", "{it}: command not found"),
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
        # how a program was called
        (r"(?:[\w./-]{1,60}: ){0,3}(?i:error: )?(?P<said>(?i:unknown|unrecogni[sz]ed|no such|invalid|illegal|unexpected) (?i:(?:long |shorthand )?flag|option|command|subcommand|arguments?|(?:JSON )?field|switch|choice)s?\b(?::| -|['\" `]).{1,200})", "{said}"),  # noqa: E501
        (r"(?P<said>flag provided but not defined: .{1,100})", "{said}"),
        # logs
        (r".{0,200}\blevel=\"?(?i:error|fatal|critical|panic)\b", _logged),
        (r".{0,400}\"(?:level|severity|lvl|loglevel)\"\s?:\s?\"(?i:error|fatal|critical|panic)\"", _logged),
        (r"[EF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ \S{1,120}:\d+\] (?P<said>.{1,300})", "{said}"),
        # what calls itself an error
        (r"(?:remote: )?(?P<kind>fatal error|Fatal error|fatal|error|Error|ERROR|Fatal|FATAL|CRITICAL)(?P<code>\[\w{1,40}\]| \[\w{1,60}\]| TS\d{3,5})?:\s{1,4}(?P<said>\S.{0,500})", _named),  # noqa: E501
        (rf"{_STAMP}[\[(]?(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)[\])]?(?:[:|]| -|\s)\s{{0,8}}(?P<said>\S.{{0,300}})", "{said}"),
    )
)  # fmt: skip
"""Read from a line's beginning; the first form that it has says what is told of it, and an empty word that nothing is."""

_ANYWHERE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), template)
    for pattern, template in (
        (r"(?P<said>JavaScript heap out of memory|Out of memory: Killed process|CUDA out of memory|OOMKilled)", "{said}"),
        (r": (?P<said>undefined reference to .{1,200})", "{said}"),
        (r"\b(?P<said>(?:connect|read|write|listen|bind|getaddrinfo|spawn|open|scandir|mkdir|unlink|rename|l?stat|access|query\w{0,8}) E[A-Z]{3,20}\b.{0,160})", "{said}"),  # noqa: E501
        (r"(?:^|[:(] ?)(?P<said>SQLITE_[A-Z_]{3,40}\b(?:: .{0,160})?)\)?$", "{said}"),
        (r"\b(?P<said>(?:failed with|responded with|returned|unexpected|got) (?:an? )?(?:error: |HTTP )?status(?: code)?:? [45]\d\d\b.{0,100})", "{said}"),  # noqa: E501
    )
)  # fmt: skip


def may_tell(line: str) -> bool:
    """A quick look that lets nothing through that `told_of` would know; most lines end here."""
    return any(hint in line for hint in _HINTS) or _POSITIONED.match(line) is not None or _RULE.match(line) is not None


def told_of(line: str, *, traced: bool = False, following: str = "") -> str:
    """The failure that a line tells of, in its own words; empty for one that tells of none.

    ``traced`` says that a traceback stands around it: there the bare name of an exception is one. ``following`` is the next line:
    a linter's rule is one where that says which place breaks it.
    """
    if _RULE.match(line) and following.lstrip().startswith("--> "):
        return line
    frame = _FRAME.match(line)
    for candidate in (line, line[frame.end() :]) if frame else (line,):
        for form, told in _AT_START:
            if found := form.match(candidate):
                return told(found).strip(" :")
        if traced and (found := _TRACED.match(candidate)):
            return found["said"]
    for form, template in _ANYWHERE:
        if found := form.search(line):
            return _say(template)(found)
    if (said := _SAID_BY_SYSTEMS.search(line)) and _SPEAKER.fullmatch(before := line[: said.start()].lstrip()):
        return (before + line[said.start() : said.start() + 300]).strip()
    code = _TELLING_EXIT.search(line)
    return f"exit code {code['code']}" if code else ""

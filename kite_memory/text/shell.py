"""Parse shell command lines into programs, arguments and purposes, and the files that they change."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from kite_memory.text import lazy_regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One tool call, redacted by its creator. ``error`` is its output if it failed, and empty before it is run.

    ``command`` is the line given to a shell; ``files`` are those that another tool reads or writes.
    """

    session: str = ""
    project: str = ""
    cwd: str = ""
    tool: str = ""
    command: str = ""
    error: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One program of a command line. ``program`` is its bare name; ``words`` are its arguments other than flags, in order.

    The first ``depth`` words name the subcommand («push» of git, «run lint» of npm). Flags come without their values; ``-am`` is
    listed as itself and as both letters. ``settings`` are variables set for this program alone.
    """

    program: str
    words: tuple[str, ...] = ()
    depth: int = 0
    flags: frozenset[str] = frozenset()
    settings: tuple[str, ...] = ()

    @property
    def purpose(self) -> str:
        """Program and subcommand, such as «git push», «npm run lint», «pytest»: the same when the command is tried again."""
        return " ".join((self.program, *self.words[: self.depth]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """One simple command of a line: its words, the programs they run, and the files that its output goes to."""

    words: tuple[str, ...]
    invocations: tuple[Invocation, ...]
    outputs: tuple[str, ...]


_LENGTH = 8_000
_PROGRAMS = 24
_ONE_WORD_WHATEVER_IT_IS = """
apt apt-get brew bun bundle cargo composer conda deno dnf docker dotnet flyctl git go gradle gradlew hatch helm heroku invoke
jj just kubectl make mise mix mvn mvnw nix npm nx pdm pip pipenv pipx pnpm podman poetry rails rake rustup sbt svn swift
systemctl task terraform terragrunt tofu turbo uv vercel wrangler yarn zig
"""
_TWO_WORDS = "alembic aws az gcloud gh glab"
_NO_WORD = """
awk basename bash black cat cd chmod chown clang cmp cp curl cut date diff dirname du echo egrep env eslint export expr false
fgrep file find fish flake8 g++ gcc gofmt goimports grep gunzip gzip head id isort javac jest jq kill less ln ls md5 md5sum
mkdir mktemp mocha more mv mypy nc node open perl pgrep pkill prettier printf ps psql pwd pylint pyright pytest python
readlink realpath redis-cli rg rm rmdir rspec rsync ruby rustc scp sed seq set sh sha256sum shasum shellcheck sleep sort
source sqlite3 ssh stat tail tar tee test time touch tox tr tree true tsc type uname uniq unzip vim vitest wc wget which xargs
yes yq zip zsh
"""
_LOOKING = """
awk basename cat cd column cut date diff dirname du echo egrep env export expr false fgrep file find fold grep head id jq less
ls md5 md5sum more nl paste pgrep printf ps pwd readlink realpath rg seq set sha256sum shasum sleep sort stat tail tee test
time tr tree true type uname uniq wc which xargs yes yq
"""
LOOKERS = frozenset(_LOOKING.split())
"""Programs that only read, change folder or format output."""
_DEPTHS = (
    dict.fromkeys(_ONE_WORD_WHATEVER_IT_IS.split(), 1) | dict.fromkeys(_TWO_WORDS.split(), 2) | dict.fromkeys(_NO_WORD.split(), 0)
)
"""Number of words that form the subcommand: none if the first argument is a file, a text or a host."""
_DEEPER = frozenset({"run", "compose", "exec", "x", "stash", "worktree", "remote", "submodule", "workspace", "tool", "mod", "pip"})
_BEFORE_A_FILE = frozenset({"go", "docker", "podman", "kubectl", "cargo", "golangci-lint", "deno"})
"""Programs whose «run» and «exec» are followed by what is run, not by the name of a task."""
_NO_PROGRAMS = frozenset({"for", "case", "select", "function", "done", "fi", "esac", "in", "[", "[["})
_TAKES_VALUE = {
    "git": frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"}),
    "docker": frozenset({"--context", "-H", "--host", "-f", "--file", "-p"}),
    "kubectl": frozenset({"-n", "--namespace", "--context", "--kubeconfig", "-f"}),
    "helm": frozenset({"-n", "--namespace", "--kube-context"}),
    "make": frozenset({"-C", "-f", "-j"}),
    "npm": frozenset({"--prefix", "-w", "--workspace", "-C"}),
    "pnpm": frozenset({"--filter", "-F", "-C", "--dir"}),
    "yarn": frozenset({"--cwd"}),
    "go": frozenset({"-C"}),
    "cargo": frozenset({"--manifest-path", "-p", "--package"}),
    "uv": frozenset({"--directory", "--project", "--with", "-p", "--python"}),
    "poetry": frozenset({"-C", "--directory"}),
    "gh": frozenset({"-R", "--repo"}),
    "terraform": frozenset({"-chdir"}),
}
"""Flags before the subcommand whose value is a separate word."""
_CARRIERS = dict.fromkeys(["sudo", "doas", "nohup", "nice", "time", "command", "exec", "env", "stdbuf"], 0) | {"timeout": 1}
"""Programs that only run another one, and the number of their own words before it."""
_RUNNERS = {
    ("mise", "exec"), ("poetry", "run"), ("uv", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run"), ("rye", "run"),
    ("bundle", "exec"), ("pnpm", "exec"), ("pnpm", "dlx"), ("npm", "exec"), ("yarn", "dlx"), ("bun", "x"), ("asdf", "exec"),
}  # fmt: skip
_RUN_AT_ONCE = frozenset({"npx", "bunx", "uvx"})
_NESTED = 8
"""Limit of programs that each run the next one; deeper ones are ignored."""
_ALIASES = {
    "python3": "python",
    "pip3": "pip",
    "py": "python",
    "nodejs": "node",
    "gmake": "make",
    "docker-compose": "docker compose",
}
_SETTING = lazy_regex(r"[A-Za-z_]\w{0,80}=")
_PROGRAM = lazy_regex(r"[A-Za-z][\w.+-]{0,60}")
_SUBCOMMAND = lazy_regex(r"[a-z][a-z0-9]*(?:[-:_][a-z0-9]+)*")
_HERE = lazy_regex(r"(?<!<)<<(?!<)-?\s{0,4}(['\"]?)([A-Za-z_]\w{0,60})\1")
_VERSIONED = lazy_regex(r"(python|pip)\d(?:\.\d{1,2})?")


def invocations(command: str) -> tuple[Invocation, ...]:
    """Return the first two dozen programs that a command line runs, in order, as far as can be parsed without running it."""
    found: list[Invocation] = []
    for words, _ in _simple_commands(_without_documents(command[:_LENGTH])):
        found.extend(_invoked(words))
        if len(found) >= _PROGRAMS:
            break
    return tuple(found[:_PROGRAMS])


def simple_commands(command: str) -> Iterator[SimpleCommand]:
    """Yield the simple commands of a line in order, as far as can be parsed without running it."""
    for words, _, outputs in islice(_parsed(_without_documents(command[:_LENGTH])), _PROGRAMS):
        yield SimpleCommand(words=tuple(words), invocations=tuple(_invoked(words)), outputs=tuple(outputs))


def purposes(command: str) -> frozenset[str]:
    """Return the purposes of a line's programs, without those that only read, change folder or format output."""
    return frozenset(each.purpose for each in invocations(command) if each.program not in LOOKERS)


def acting(command: str) -> list[str]:
    """Return the programs of a line with their arguments, without those that only read.

    A command named in the arguments of a program that only reads is not run.
    """
    return [" ".join(words) for words, _ in _simple_commands(_without_documents(command[:_LENGTH])) if not _only_looks(words)]


def _only_looks(words: list[str]) -> bool:
    programs = {each.program for each in _invoked(words)}
    runs_more = any("$(" in word or "`" in word for word in words)
    return bool(programs) and not runs_more and programs <= (LOOKERS | {"sed"}) - {"find", "xargs"}


Ending = Literal["reported", "shown", "hidden"]
"""How much a line's exit status reveals about its programs.

``reported``: the same as the status. ``shown``: only what they print. ``hidden``: nothing, since their output was transformed.
"""

_PASSES_ON = frozenset({"cat", "head", "less", "more", "tail", "tee"})
_GOES_ON = frozenset({";", "||", "&", "\n", ";;"})


def ending(command: str) -> Ending:
    """Return the least known ending of the programs that act; a pipe has the exit status of its last program."""
    line = _without_documents(command[:_LENGTH])
    if not re.search(r"[|;\n]|(?<![&>])&(?![&>])", line):
        return "reported"
    steps = [(operator, [each.program for each in _invoked(words)]) for words, operator in _simple_commands(line)]
    piped = "|" if "pipefail" not in line else ""
    goes_on = _GOES_ON if not re.search(r"\bset -\w*e", line) else frozenset({"||", "&"})
    least: Ending = "reported"
    after: list[str] | None = None
    passed_on, went_on = True, False
    for operator, programs in reversed(steps):
        through = after is not None and operator == piped
        passed_on = not through or (passed_on and not _PASSES_ON.isdisjoint(after or ()))
        went_on = went_on or (after is not None and operator in goes_on)
        after = programs
        if LOOKERS.issuperset(programs):
            continue
        if not passed_on:
            return "hidden"
        if through or went_on:
            least = "shown"
    return least


def _in_arithmetic(before: str) -> bool:
    return before.count("((") > before.count("))")


def _without_documents(command: str) -> str:
    """Remove here-documents: text written into a file is not run. In arithmetic, ``<<`` is a shift."""
    if "<<" not in command:
        return command
    kept: list[str] = []
    until: list[str] = []
    for line in command.split("\n"):
        if until:
            if line.strip() == until[0]:
                del until[0]
            continue
        kept.append(line)
        opened = (found for found in _HERE.finditer(line) if not _in_arithmetic(line[: found.start()]))
        until = [found.group(2) for found in opened][:4]
    return "\n".join(kept)


_COMPARED = lazy_regex(r"""(?<![^\s;&|(!])\[\[\s(?:'[^'\n]*+'|"(?:[^"\\\n]|\\.)*+"|\\.|(?!\s\]\]|\[\[\s)[^'"\\\n])*+\s\]\]""")
"""A test in bash, where < and > compare words. It ends before another begins, so that a line is read once, not for each of them."""
_PIECE = lazy_regex(
    r"""(?P<blank>[ \t]+|\\\n)|(?P<comment>(?:(?<=\s)|(?<=^))\#[^\n]*)|(?P<in>\d?&?>{1,2}&?\s*[^\s;&|()<>'"]*|<<?<?\s*[^\s;&|()<>]*)
    |(?P<end>\|\||&&|;;|[;&|\n(){}](?=\s|$)|[;&|\n()])
    |(?P<single>'[^']*'?)|(?P<double>"(?:[^"\\]|\\.)*"?)|(?P<back>`[^`]*`?)|(?P<escape>\\.?)|(?P<plain>[^\s;&|()<>'"`\\]+|.)""",
    re.VERBOSE | re.DOTALL,
)


def _simple_commands(line: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words between operators and the operator that follows; a subshell's words are separate from those around it."""
    for words, operator, _ in _parsed(line):
        yield words, operator


def _parsed(line: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield the words between operators, the operator that follows, and the files that the output goes to."""
    words: list[str] = []
    word: str | None = None
    ended: list[str] = []
    operator = ""
    into: list[str] = []
    into_ended: list[str] = []
    quoted = False
    compared = _COMPARED.sub(lambda found: found.group().replace("<", " ").replace(">", " "), line) if "[[ " in line else line
    for piece in _PIECE.finditer(compared):
        text = piece.group()
        match piece.lastgroup:
            case "single":
                word = (word or "") + text.strip("'")
            case "double":
                word = (word or "") + text.strip('"').replace('\\"', '"')
            case "plain" | "back":
                word = (word or "") + text
            case "escape":
                word = (word or "") + text[1:]
            case "in":
                if found := _OUTPUT.fullmatch(text):
                    into.extend(filter(None, (found[1],)))
                    quoted = not found[1]
            case "comment":
                continue
            case kind:
                if word is not None:
                    (into if quoted else words).append(word)
                    word, quoted = None, False
                if kind == "end" and words:
                    if ended:
                        yield ended, operator, into_ended
                    ended, into_ended, words, into, operator = words, into, [], [], text
                elif kind == "end" and not _CLOSES.isdisjoint((operator, text)):
                    operator = text
    if word is not None:
        (into if quoted else words).append(word)
    if ended:
        yield ended, operator, into_ended
    if words:
        yield words, "", into


_OUTPUT = lazy_regex(r"1?>{1,2}\s*([^\s;&|()<>]*)")
_CLOSES = frozenset({")", "}"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "$"})


def _invoked(words: list[str], nested: int = 0) -> Iterator[Invocation]:
    if nested > _NESTED:
        return
    settings: list[str] = []
    while words and (_SETTING.match(words[0]) or words[0] in _KEYWORDS):
        if words[0] not in _KEYWORDS:
            settings.append(words[0])
        words = words[1:]
    if not words:
        return
    program = words[0].rstrip("/").rpartition("/")[2]
    if found := _VERSIONED.fullmatch(program):
        program = found.group(1)
    if program in _NO_PROGRAMS or not _PROGRAM.fullmatch(program):
        return
    if program == "python" and words[1:2] == ["-m"]:
        yield from _invoked([*settings, *words[2:]], nested + 1)
        return
    program, _, first = _ALIASES.get(program, program).partition(" ")
    arguments = [first, *words[1:]] if first else words[1:]
    if program in _CARRIERS:
        if program == "command" and arguments[:1] in (["-v"], ["-V"]):
            return  # it only looks up the other program
        rest = _after_flags(arguments)[_CARRIERS[program] :]
        yield from _invoked([*settings, *rest], nested + 1)
        return
    if program in _RUN_AT_ONCE:
        yield from _invoked([*settings, *_after_flags(arguments)], nested + 1)
        return
    invocation = _invocation(program, arguments, tuple(settings))
    yield invocation
    if (program, *invocation.words[:1]) in _RUNNERS:
        at = arguments.index(invocation.words[0]) + 1
        rest = arguments[arguments.index("--", at) + 1 :] if "--" in arguments[at:] else _after_flags(arguments[at:])
        yield from _invoked([*settings, *rest], nested + 1)


def _after_flags(arguments: list[str]) -> list[str]:
    """Return the arguments from the first one that is no flag."""
    for place, argument in enumerate(arguments):
        if not argument.startswith("-"):
            return arguments[place:]
    return []


def _invocation(program: str, arguments: list[str], settings: tuple[str, ...]) -> Invocation:
    words: list[str] = []
    flags: set[str] = set()
    with_value = _TAKES_VALUE.get(program, frozenset())
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif len(argument) > 1 and argument[0] == "-" and argument != "--":
            flag = argument.partition("=")[0][:60]
            flags.add(flag)
            if len(flag) == 3 and flag[1:].isalpha():
                flags.update(f"-{letter}" for letter in flag[1:])
            skip = words in ([], ["compose"]) and flag in with_value and "=" not in argument
        elif argument != "--" and not (argument.startswith("+") and not words):
            words.append(argument[:400])
    return Invocation(program=program, words=tuple(words), depth=_depth(program, words), flags=frozenset(flags), settings=settings)


def _depth(program: str, words: list[str]) -> int:
    depth = min(_DEPTHS.get(program, 1), len(words))
    if not depth or not _SUBCOMMAND.fullmatch(words[0]):
        return 0
    if words[0] == "api":
        return 1
    if words[0] in _DEEPER and not (words[0] in ("run", "exec") and program in _BEFORE_A_FILE):
        depth = min(2, len(words))
    return depth if all(_SUBCOMMAND.fullmatch(word) for word in words[:depth]) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A change of a file by a command line.

    ``path`` is as the line names it, after its changes of folder; empty if the line does not name the file, such as one that Git
    merged. ``how`` is what was done to the file, or else the command.
    """

    path: str
    how: str
    formats: bool = False


_ADDS = frozenset({"get", "add", "install", "i", "remove", "uninstall", "upgrade"})
_DEPENDENCIES = {
    "go": "go.mod",
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"),
    **dict.fromkeys(("uv", "poetry", "pdm"), "pyproject.toml"),
    "cargo": "Cargo.toml",
}
"""Where a program notes the packages that it adds."""
_MAY_WRITE = lazy_regex(
    r">|\bgit\b|\b(?:sed|perl|ruby) .*-\w*i|\b(?:mv|cp|rm|tee|patch)\b|fmt|format|fix|write"
    r"|\b(?:go|npm|pnpm|yarn|bun|uv|poetry|pdm|cargo) (?:get|add|i|install|remove|uninstall|upgrade)\b"
    r"|(?<![\w-])(?:black|isort)\b|imports"
)
_FORMATTERS: dict[str, frozenset[str]] = {
    "gofmt": frozenset({"-w"}),
    "gofumpt": frozenset({"-w"}),
    "goimports": frozenset({"-w"}),
    "shfmt": frozenset({"-w"}),
    "prettier": frozenset({"--write", "-w"}),
    "biome": frozenset({"--write", "--fix", "--apply"}),
    "eslint": frozenset({"--fix"}),
    "stylelint": frozenset({"--fix"}),
    "golangci-lint": frozenset({"--fix"}),
    "clang-format": frozenset({"-i"}),
    "autopep8": frozenset({"-i", "--in-place"}),
    "rubocop": frozenset({"-a", "-A", "--autocorrect"}),
}
"""Programs that rewrite files with one of these flags."""
_FORMATTERS_BY_NAME = frozenset({"black", "isort", "rustfmt", "cargo fmt", "ruff format", "terraform fmt", "deno fmt", "go fmt"})
_ONLY_SHOWS = frozenset({"--check", "--diff", "--check-only", "-check", "--dry-run", "-l", "--list-different"})
_FORMATTING_TASK = lazy_regex(r"(?:.*[:_-])?(?:fmt|format|fix)|format[:_-](?:write|all|code)|prettier[:_-]write")
_TASK_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun", "mise", "make", "just", "task", "invoke", "rake", "poe"})
_EDITORS = frozenset({"sed", "perl", "ruby", "gsed"})
_EDITS_IN_PLACE = lazy_regex(r"-[a-zA-Z]{0,4}i\S{0,10}|--in-place(?:=\S{1,10})?")
_SCRIPT = lazy_regex(
    r"(?:\d+|\$|/[^/]+/)?(?:,(?:\d+|\$))?[sy]?([/|#,@!:])[^\n]*\1[gimpeI\d]*.*|\d+(?:,(?:\d+|\$))?[acdip].*", re.DOTALL
)
"""A program of sed, by its form."""
_WHOLE_TREE = frozenset({"merge", "rebase", "pull", "cherry-pick", "revert", "am", "apply", "switch", "stash pop", "stash apply"})
"""Git's commands that change files which they do not name."""
_A_FILE = lazy_regex(r"(?:.*/)?[^/\s]*\.[A-Za-z]\w{0,9}")
_UNKNOWN = lazy_regex(r"[$*?`{}\[\]]")
"""A sign of a name that the shell completes."""
_PASSING = lazy_regex(
    r"(?:/private)?/(?:tmp|var/folders|dev|proc)\b.*|~.*|(?:.*/)?\.git/.*|.*\.(?:log|out|tmp|temp|prof|pid|bak|orig)|-", re.DOTALL
)
"""Files that are no work."""
_INLINE = lazy_regex(r"\b(?:python3?|node|ruby|deno|bun)\b[^\n]{0,200}?(?: -[ce]\b| --eval\b| ?<<|\s-\s)")
"""A script within the line."""
_OPENED = lazy_regex(
    r"""\bopen\(\s*(?:file\s*=\s*)?[rfb]?['"]([^'"\n]{1,300})['"]\s*,\s*(?:mode\s*=\s*)?['"][wax]"""
    r"""|\bwriteFile(?:Sync)?\(\s*['"]([^'"\n]{1,300})['"]|\bPath\(\s*['"]([^'"\n]{1,300})['"]\s*\)\.write_"""
)
_READ_INTO = lazy_regex(r"""\b(\w{1,40}) ?= ?(?:[\w.]{0,30}Path\(\s*)?[rfb]?['"]([^'"\n]{1,300})['"]""")
_WRITTEN_BACK = lazy_regex(
    r"\b(?:open\(\s*(\w{1,40})\s*,\s*['\"][wax]|(\w{1,40})\.write_(?:text|bytes)\(|writeFile(?:Sync)?\(\s*(\w{1,40})\s*,)"
)
_MOST = 24


@lru_cache(maxsize=2048)
def writes(command: str) -> tuple[Write, ...]:
    """Return what a command line changes if it succeeds, in order, as far as can be parsed without running it."""
    if not _MAY_WRITE.search(command):
        return ()
    found: dict[Write, None] = {}
    folder = ""
    for step in simple_commands(command):
        for invocation in step.invocations:
            if invocation.program == "cd":
                folder = posixpath.join(folder, *invocation.words[:1])
            for write in _by_program(invocation, step.words):
                found.setdefault(_in(folder, write))
        for output in step.outputs:
            if not _UNKNOWN.search(output):
                found.setdefault(_in(folder, Write(path=output, how="written")))
    for path in _by_script(command):
        found.setdefault(_in(folder, Write(path=path, how="edited")))
    stashed = {write.how for write in found} >= {"git stash", "git stash pop"}
    kept = (each for each in found if not _PASSING.fullmatch(each.path or " ") and not (stashed and "git stash" in each.how))
    return tuple(kept)[:_MOST]


def _in(folder: str, write: Write) -> Write:
    path = posixpath.normpath(posixpath.join(folder, write.path)) if write.path else ""
    return Write(path=path, how=write.how, formats=write.formats)


def _by_program(invocation: Invocation, words: Sequence[str]) -> Iterator[Write]:
    files = [word for word in invocation.words if word]
    match invocation.program:
        case "git":
            yield from _by_git(invocation, words)
        case program if program in _EDITORS:
            if any(_EDITS_IN_PLACE.fullmatch(flag) for flag in invocation.flags):
                named = [word for word in files if not _SCRIPT.fullmatch(word)]
                yield from _named(named[1:] if named == files else named, "edited", f"{program} -i")
        case "mv":
            yield from _moved(files, "moved")
        case "cp":
            yield from _moved(files, "copied")
        case "rm":
            yield from (Write(path=file, how="removed") for file in files if _A_FILE.fullmatch(file) and not _UNKNOWN.search(file))
        case "tee":
            yield from (Write(path=file, how="written") for file in files if not _UNKNOWN.search(file))
        case "patch":
            yield Write(path="", how="patch")
        case program if (file := _DEPENDENCIES.get(program)) and files[:1] and files[0] in _ADDS and "-g" not in invocation.flags:
            if files[1:]:
                yield Write(path=file, how=f"changed by {program} {files[0]}")
        case "xargs" | "find":
            yield from _for_each_found(invocation.program, words)
        case _:
            yield from _by_formatter(invocation)


def _named(files: Sequence[str], how: str, program: str) -> Iterator[Write]:
    for file in files:
        yield Write(path="", how=program) if _UNKNOWN.search(file) else Write(path=file, how=how)


def _moved(files: Sequence[str], how: str) -> Iterator[Write]:
    *sources, target = files or ("",)
    if not sources or _UNKNOWN.search(target):
        return
    into = len(sources) > 1 or target.endswith("/") or target in (".", "..")
    for source in sources:
        if not _UNKNOWN.search(source):
            yield Write(path=posixpath.join(target, posixpath.basename(source)) if into else target, how=how)


def _by_git(invocation: Invocation, words: Sequence[str]) -> Iterator[Write]:
    does, *names = invocation.words or ("",)
    if does in ("mv", "rm") and "--cached" not in invocation.flags:
        yield from _moved(names, "moved") if does == "mv" else _named(names, "removed", "git rm")
    elif does in ("checkout", "restore") and not invocation.flags & {"-b", "-B", "--orphan", "--staged", "-S"}:
        after = list(words[words.index("--") + 1 :]) if "--" in words else None
        files = after if after is not None else names if does == "restore" else [name for name in names if _A_FILE.fullmatch(name)]
        if files:
            yield from _named(files, "restored", f"git {does}") if files != ["."] else (Write(path="", how=f"git {does} ."),)
        elif names:
            yield Write(path="", how=f"git {does} {names[0]}")
    elif does == "reset" and "--hard" in invocation.flags:
        yield Write(path="", how=" ".join(("git reset --hard", *names[:1])))
    elif does == "stash" and names[:1] in ([], ["push"], ["save"]):
        yield Write(path="", how="git stash")
    elif not _WHOLE_TREE.isdisjoint((does, " ".join((does, *names[:1])))) and not invocation.flags & {
        "-c",
        "-C",
        "--check",
        "--stat",
    }:
        option = next((f" {flag}" for flag in ("--continue", "--abort", "--skip") if flag in invocation.flags), "")
        yield Write(path="", how=" ".join(("git", does, *names[-1:])) + option)


def _for_each_found(program: str, words: Sequence[str]) -> Iterator[Write]:
    """Yield what changes the files that another program finds, which are not named."""
    for at, word in enumerate(words):
        if word in ("sed", "gsed", "perl", "gofmt", "goimports", "prettier", "mv"):
            inner = [each for each in words[at:] if each not in ("{}", "+", ";", "\\;")]
            for invocation in invocations(" ".join(f"'{each}'" for each in inner)):
                edits = invocation.program == "mv" or any(_EDITS_IN_PLACE.fullmatch(flag) for flag in invocation.flags)
                if edits or any(_by_formatter(invocation)):
                    yield Write(path="", how=f"{program} {word}{' -i' if edits and word != 'mv' else ''}")
            return


def _by_formatter(invocation: Invocation) -> Iterator[Write]:
    purpose, program, flags = invocation.purpose, invocation.program, invocation.flags
    by_task = program in _TASK_RUNNERS and any(_FORMATTING_TASK.fullmatch(word) for word in invocation.words[: invocation.depth])
    by_name = (purpose in _FORMATTERS_BY_NAME or program in _FORMATTERS_BY_NAME) and not flags & _ONLY_SHOWS
    fixes = purpose == "ruff check" and "--fix" in flags
    if by_task or by_name or fixes or flags & _FORMATTERS.get(program, frozenset()):
        files = [word for word in invocation.words[invocation.depth :] if _A_FILE.fullmatch(word) and not _UNKNOWN.search(word)]
        yield from (Write(path=file, how="formatted", formats=True) for file in files)
        if not files:
            yield Write(path="", how=purpose, formats=True)


def _by_script(command: str) -> Iterator[str]:
    """Yield the files that a script within the line writes."""
    if not _INLINE.search(command):
        return
    named = dict(_READ_INTO.findall(command[:_SCRIPT_LENGTH]))
    for groups in _OPENED.findall(command[:_SCRIPT_LENGTH]):
        yield "".join(groups)
    for groups in _WRITTEN_BACK.findall(command[:_SCRIPT_LENGTH]):
        if path := named.get("".join(groups)):
            yield path


_SCRIPT_LENGTH = 8_000

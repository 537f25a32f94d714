"""Warnings in a note: what it says of commands and of failures, read from its text.

A note that praises a command is no use to an agent about to run it. One that says that the command fails, misses something,
requires something first, or must not be used, is. So a command that is named (in code, or by a program's name with its action)
counts only if the same sentence warns of it or sets a condition.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.prose import prose
from kite_memory.text import lazy_regex
from kite_memory.text.error_signature import normal
from kite_memory.text.shell import Invocation, invocations

_BODY = 4_000
_SENTENCES = 24
_MENTIONS = 16
_SYMPTOMS = 12
_HEEDED = frozenset({NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE})
"""Kinds that may warn. A decision is about what the project's own commands should do; a question has no answer yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """A warning of a command. ``says`` is the sentence that warns of ``command``; ``instead`` are commands that the note
    recommends.

    It applies to commands with ``pieces`` in their arguments, if there are any. ``folder`` is where the command must be run from,
    and ``places`` are the only folders the warning applies to, if there are any.
    """

    says: str
    command: Invocation
    pieces: tuple[str, ...] = ()
    instead: tuple[Invocation, ...] = ()
    settings: tuple[str, ...] = ()
    folder: str = ""
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A quoted failure. ``pieces`` must occur in a failing line in this order, in lower case; ``says`` is the sentence that quotes
    it.
    """

    says: str
    pieces: tuple[str, ...]

    @property
    def words(self) -> int:
        return sum(len(piece.split()) for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteWarnings:
    cautions: tuple[Caution, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    rules: tuple[str, ...] = ()
    """Sentences of a preference that prescribe or forbid, on any subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mention:
    """A command named in a sentence, with its start and end positions."""

    start: int
    end: int
    command: Invocation


_SENTENCE_END = lazy_regex(r"(?<=[.!?])\s+(?=[A-Z`'\"(])|\n+")
_CODE = lazy_regex(r"`([^`\n]{2,200})`")
_QUOTED = lazy_regex(r"`([^`\n]{6,200})`|(?<![\w'])'([^'\n]{6,200})'(?!\w)|\"([^\"\n]{6,200})\"|“([^”\n]{6,200})”")
_GIT = (
    "add|am|apply|bisect|blame|branch|checkout|cherry-pick|clean|clone|commit|config|diff|fetch|filter-branch|gc|grep|init|log|merge|mv"
    "|notes|pull|push|rebase|reflog|reset|restore|revert|rm|show|stash|status|submodule|switch|tag|worktree"
)
_IN_PROSE = lazy_regex(
    rf"(?<![\w./`-])(?:git (?:{_GIT})|go (?:build|test|run|vet|mod tidy|mod|generate|install|fmt|get)"
    r"|(?:npm|pnpm|yarn|bun)(?: (?:run [\w:-]+|install|ci|i|add|test|publish|start|build|exec))?"
    r"|cargo (?:build|test|run|check|clippy|fmt|publish|install|update)"
    r"|docker(?: |-)compose(?: (?:up|down|build|run|exec|pull))?"
    r"|docker (?:build|run|push|pull|exec|login|system prune)|kubectl (?:apply|delete|create|exec|get|rollout|scale)"
    r"|helm (?:install|upgrade|uninstall)|terraform (?:apply|plan|destroy|init|import)|pip3? install"
    r"|uv (?:run|sync|add|pip install)"
    r"|poetry (?:install|add|run|update|lock)|mise run [\w:-]+|gh (?:pr|issue|release|run|repo|workflow) [a-z]+|gh api"
    r"|python3? -m [\w.]+|manage\.py [a-z]+|alembic (?:upgrade|downgrade|revision)|pytest|eslint|golangci-lint|ruff|mypy|tsc|jest"
    r"|vitest|prettier|sed|awk|tox|nox)(?: --?[a-z][\w-]*)*(?![\w-])"
)
_NOUNS = lazy_regex(
    r"(?<![\w`-])(?:(?P<push>force[- ]push(?:ing|es|ed)?)|(?P<pick>cherry-pick(?:ing|s)?)|(?P<amend>amend(?:ing|s)?))(?![\w`-])"
)
_WITH_FLAG = lazy_regex(r" with (--?[a-z][\w-]{0,40})")
_CIRCUMSTANCE = lazy_regex(r" (?:in|during|inside|while|within|after|when|on) ")
_GIT_NOUNS = {
    "push": Invocation(program="git", words=("push",), depth=1, flags=frozenset({"--force"})),
    "pick": Invocation(program="git", words=("cherry-pick",), depth=1),
    "amend": Invocation(program="git", words=("commit",), depth=1, flags=frozenset({"--amend"})),
}
ALONE = frozenset(
    [
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "pytest",
        "eslint",
        "golangci-lint",
        "ruff",
        "mypy",
        "tsc",
        "jest",
        "vitest",
        "prettier",
        "tox",
        "nox",
    ]
)
"""Programs whose name alone shows what they are run for."""

_FORBIDS = lazy_regex(
    r"(?:(?:\b(?:never(?! \w+[^\Ws]s\b)|must not|mustn't|should not|shouldn't|no longer)"
    r"|(?:^|[.;:,!?(\u2013\u2014-]\s*|\b(?:you|we|please|and|but|or|so|then|to|agents?|people|developers?|contributors?) )"
    r"(?:do not|don't|avoid))\b[^.;:`]{0,30}"
    r"|\b(?:instead of|rather than|not) (?:(?:with|via|by|from|a|the|running|using) )?"
    r"|\bthere is no |\bprefers? [^.;]{1,80} over (?:[\w-]{1,24},? (?:and|or) )?)$",
    re.IGNORECASE,
)
_WANTS_FIRST = lazy_regex(
    r"\b(?:before (?:you )?(?:run(?:ning)? |each |every |any |the )?|(?:at|on|after) (?:each|every) (?:\w+ )?"
    r"|when(?:ever)? (?:you |one )?(?:runs?|running|using|calling) )$",
    re.IGNORECASE,
)
_FAULTY = lazy_regex(
    r"\s?(?:\([^()]{0,60}\) )?(?:[\w'/.-]{1,24} ){0,4}?"
    r"(?:fails?|breaks?|hangs?|hides?|misses|drops?|loses?|ignores?|strips?|deletes?|removes?|rewrites?|overwrites?|corrupts?|misleads?"
    r"|silently|does not|doesn't|do not|don't|cannot|can't|won't|never|needs?|requires?|must|has to|have to|until|unless|is not"
    r"|isn't|are not|exits 0|prints nothing|returns nothing|times out|takes (?:over|more|about|up to|\d)|destroys?|undoes"
    r"|skips?|alone)\b",
    re.IGNORECASE,
)
_EVERYDAY = lazy_regex(
    r"[\w.-]+ (?:run |exec )?(?:tests?|lint|build|fmt|format|check|vet|install|i|ci|commit|push|pull"
    r"|add|status|diff|log|fetch|checkout|run|compose up)\b.*"
)
"""Commands so common that only a note explicitly about them is relevant."""
_DEEDS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (lazy_regex(pattern, re.IGNORECASE), purposes)
    for pattern, purposes in (
        (
            r"\b(?:PR|pull request|merge request) (?:descriptions?|titles?|bod(?:y|ies)|templates?)\b"
            r"|\bdrafts? (?:PRs?|pull requests?)\b|\b(?:PRs?|pull requests?) (?:as|are) drafts?\b",
            ("gh pr create", "gh pr edit", "glab mr create"),
        ),
        (
            r"\bcommit (?:messages?|subjects?|titles?|trailers?|format|style)\b|\bconventional commits\b|\bsigned?-off\b",
            ("git commit",),
        ),
        (r"\bmerg(?:e|es|ing) (?:the |his |her |their )?(?:PRs?|pull requests?)\b", ("gh pr merge",)),
        (
            r"\b(?:cut\w*|mak\w*|tag\w*|publish\w*) (?:a |new |the )?releases?\b|\brelease process\b",
            ("gh release create", "npm publish"),
        ),
    )
)
"""Names of activities, and the commands that perform them. Only titles are read for these, since a title covers the whole note."""
_ELSEWHERE = lazy_regex(r"(?<![\w./-])(?:/(?:home|Users|root|srv|opt|work\w*)|~|[A-Za-z]:\\Users)(?:[/\\][\w.-]+)+")
_ADVISES = lazy_regex(
    r"(?:Always|Never|Do not|Don't|Run|Use|Set|Prefer|Verify|Check|Keep|Match|Restrict|Read|Add|Take|Start|Avoid|Make sure|Pass|Put"
    r"|Give|Ask|Wait|Write|Call|Install|Build|Commit|Push|Leave|Instead)\b"
)
_PRESCRIBES = lazy_regex(
    r"\b(?:always|never|must(?: not)?|do not|don't|needs? to|has to|have to|should(?: not)?|required?|rejects?|fails?|only)\b",
    re.IGNORECASE,
)
_SETTING = lazy_regex(r"\b[A-Z][A-Z0-9_]{2,60}=[\w./:-]{1,60}")
_RUN_FROM = lazy_regex(
    r"(?:the )?(?P<what>lint(?:er|ing)?|tests?|test suite|build|type ?check(?:er|ing)?|migrations?|deploy(?:ment)?s?|e2e tests?"
    r"|integration tests?) (?:only )?"
    r"(?:runs?|works?|must (?:be )?run|has to (?:be )?run|have to (?:be )?run|needs?|requires?|fails?|hangs?|breaks?)(?: only)? "
    r"(?:from (?:the )?(?!the\b|repo|root|scratch|CI\b|cron|source)`?(?P<from>[\w./-]{1,80})"
    r"|(?:in|inside) (?:the )?`(?P<in>[\w./-]{1,80})`"
    r"|(?:in|inside) (?:the )?(?P<inside>[\w./-]{1,80}/)(?!\w)|(?:without|unless|until) .{3,80}"
    r"|(?!to (?:be )?(?:written|come|exist|pass|cover|fail|change)).{2,60}?"
    r" (?:up|running|started|set|installed|first|reachable)\b)",
    re.IGNORECASE,
)
ACTIVITY, TASK = "*activity", "*task"
"""Placeholders for a program: any that lints, tests or builds; and any that runs the task of that name."""
_TASK_NAME = lazy_regex(r"[a-z][\w-]{1,40}:[a-z][\w:-]{1,40}(?= )")
ACTIVITIES = ("lint", "test", "build", "typecheck", "migrate", "deploy")
_ACTIVITY_OF = {"e2e": "test", "inte": "test", "migr": "migrate"} | {name[:4]: name for name in ACTIVITIES}
_PLACEHOLDER = lazy_regex(r"<[^<>]{0,40}>|\{[^{}]{0,40}\}|\.\.\.|…|\$\w{1,40}")
_EXAMPLE = lazy_regex(_PLACEHOLDER.pattern + r"|\b[A-Z]{3,}\b")
_ESCAPE = lazy_regex(r"\\[A-Za-z]")
_WORD = lazy_regex(r"[a-z]{4,}")
_TRIVIAL = lazy_regex(
    r"(?:error: )?(?:file does not exist|no such file(?: or directory)?|not found|permission denied|command not found"
    r"|exit (?:code|status) \S*"
    r"|file exists|invalid argument|build failed|test failed|syntax error|unknown error|merge conflict|request failed|fetch first"
    r"|non-fast-forward|failed to push some refs"
    r"|not a directory)"
)


def read(note: Note) -> NoteWarnings:
    """Read a note's warnings; empty for a kind that does not warn."""
    sentences = _sentences(note)
    spoken = note.kind in _HEEDED
    return NoteWarnings(
        cautions=tuple(_cautions(note, sentences)) if spoken else (),
        symptoms=tuple(_symptoms(note, sentences)) if spoken else (),
        rules=tuple(filter(_PRESCRIBES.search, sentences)) if note.kind is NoteKind.PREFERENCE else (),
    )


def _sentences(note: Note) -> list[str]:
    body = prose(note.body[:_BODY])
    pieces = [" ".join(each.split()) for each in (note.title, *_SENTENCE_END.split(body))]
    return [each[:600] for each in pieces if each][:_SENTENCES]


def _cautions(note: Note, sentences: Sequence[str]) -> Iterator[Caution]:
    if not sentences:
        return
    mentions = {sentence: _mentions(sentence) for sentence in sentences}
    if task := _TASK_NAME.match(note.title):
        named = Invocation(program=TASK, words=(task.group(),))
        mentions[sentences[0]].insert(0, _Mention(start=0, end=task.end(), command=named))
    places = tuple(dict.fromkeys(place.rstrip("/\\.") for sentence in sentences for place in _ELSEWHERE.findall(sentence)))
    warned: list[tuple[str, _Mention]] = []
    recommended: list[Invocation] = []
    for place, sentence in enumerate(sentences):
        found = mentions[sentence]
        for number, mention in enumerate(found):
            following = found[number + 1].start if number + 1 < len(found) else len(sentence)
            if _warns(sentence, mention, following, title=place == 0):
                warned.append((sentence, mention))
            else:
                recommended.append(mention.command)
        if run_from := _RUN_FROM.match(sentence):
            command = Invocation(program=ACTIVITY, words=(_ACTIVITY_OF[run_from["what"].lower().split()[0][:4]],))
            folder = (run_from["from"] or run_from["in"] or run_from["inside"] or "").strip("/.")
            yield Caution(says=sentence, command=command, folder=folder, places=places)
    for what, purposes in _DEEDS:
        if what.search(note.title):
            for purpose in purposes:
                program, *words = purpose.split()
                command = Invocation(program=program, words=tuple(words), depth=len(words))
                yield Caution(says=_advice(sentences), command=command, places=places)
    for trigger in note.triggers:
        if code := _CODE.search(trigger):
            for command in invocations(code.group(1)):
                yield Caution(says=_advice(sentences), command=command, pieces=_pieces(command), places=places)
    for sentence, mention in warned[:_MENTIONS]:
        yield Caution(
            says=_advice(sentences) if sentence == sentences[0] else sentence,
            command=mention.command,
            pieces=_pieces(mention.command) or _escapes(mention.command, sentence),
            instead=tuple(each for each in recommended if each != mention.command),
            places=places,
            settings=tuple(_SETTING.findall(" ".join(sentences))),
        )


def _advice(sentences: Sequence[str]) -> str:
    """Return the sentence to show with a title: the note's advice, if there is any, or else its first sentence."""
    body = sentences[1:] or sentences
    return next((each for each in body if _ADVISES.match(each)), body[0])


def _mentions(sentence: str) -> list[_Mention]:
    found: list[_Mention] = []
    taken: list[tuple[int, int]] = []
    for code in _CODE.finditer(sentence):
        taken.append(code.span())
        found.extend(
            _Mention(start=code.start(), end=code.end(), command=command)
            for command in invocations(code.group(1).removeprefix("$ "))[:4]
            if command.words or command.flags or command.program in ALONE
        )
    for words in _IN_PROSE.finditer(sentence):
        if not any(start <= words.start() < end for start, end in taken):
            found.extend(_Mention(start=words.start(), end=words.end(), command=command) for command in invocations(words.group()))
    found.extend(
        _Mention(start=noun.start(), end=noun.end(), command=_GIT_NOUNS[noun.lastgroup or ""])
        for noun in _NOUNS.finditer(sentence)
        if not any(start <= noun.start() < end for start, end in taken)
    )
    return sorted((_with_flags(sentence, mention) for mention in found), key=lambda mention: mention.start)


def _with_flags(sentence: str, mention: _Mention) -> _Mention:
    """Add a flag named after the command, as in «an amend with -m»."""
    flagged = _WITH_FLAG.match(sentence, mention.end)
    if flagged is None:
        return mention
    command = replace(mention.command, flags=mention.command.flags | {flagged.group(1)})
    return replace(mention, end=flagged.end(), command=command)


def _warns(sentence: str, mention: _Mention, following: int, *, title: bool) -> bool:
    command = mention.command
    if not (command.depth or command.flags or command.program in ALONE or command.program == TASK or _ESCAPE.search(sentence)):
        return False
    before, after = sentence[: mention.start], sentence[mention.end : max(following, mention.end)]
    if _FORBIDS.search(before) or (title and mention.start < 4 and command.flags):
        return True
    if not command.flags and not command.words[command.depth :] and _CIRCUMSTANCE.match(after):
        return False  # whether it still applies is unknown here
    common = _EVERYDAY.fullmatch(command.purpose) and not command.flags and not any(map(_is_file, _pieces(command)))
    return bool(_WANTS_FIRST.search(before) or _FAULTY.match(after)) and (title or not common)


def _is_file(piece: str) -> bool:
    return re.search(r"\w\.\w", piece) is not None


def _pieces(command: Invocation) -> tuple[str, ...]:
    """Return the arguments that are specific rather than examples: places, packages, the subject of a pattern."""
    found: list[str] = []
    for word in command.words[command.depth :]:
        if escapes := _ESCAPE.findall(word):
            found.extend(dict.fromkeys(escapes))
        elif word == "./...":
            found.append(word)
        elif re.search(r"[/.:@]", word):
            found.extend(piece for piece in _EXAMPLE.split(word) if len(piece) >= 4)
    return tuple(found)


def _escapes(command: Invocation, sentence: str) -> tuple[str, ...]:
    """Return the escapes in a sentence about a program without subcommands."""
    return () if command.depth or command.program in ALONE else tuple(dict.fromkeys(_ESCAPE.findall(sentence)))


def _symptoms(note: Note, sentences: Sequence[str]) -> Iterator[Symptom]:
    count = 0
    for sentence in (*sentences, *note.triggers):
        for quoted in _QUOTED.finditer(sentence):
            phrase = next(group for group in quoted.groups() if group is not None)
            if pieces := _specific_words(phrase):
                yield Symptom(says=sentence, pieces=pieces)
                count += 1
        if count >= _SYMPTOMS:
            return


def _specific_words(phrase: str) -> tuple[str, ...]:
    """Return the pieces of a phrase of at least two words, one of them plain, that is more specific than any other failure; else
    empty.
    """
    said = normal(_PLACEHOLDER.sub("<x>", phrase)).casefold()
    pieces = tuple(piece for part in re.split(r"<\w{1,8}>", said) if len(piece := part.strip(" '\"():,;")) >= 3)
    joined = " ".join(pieces)
    if len(joined) < 9 or len(joined.split()) < 2 or not _WORD.search(joined) or _TRIVIAL.fullmatch(joined):
        return ()
    commands = invocations(phrase)
    if commands and (commands[0].flags or _IN_PROSE.match(phrase)):
        return ()  # a command, not what it said
    return pieces


_LINTERS = frozenset({"ruff check", "flake8", "pylint", "cargo clippy", "shellcheck"})
_TESTERS = frozenset({"pytest", "jest", "vitest", "tox", "nox", "rspec", "mocha"})
_TEST_TASK = lazy_regex(r"(?:e2e|tests?)(?:[:_-][\w:-]+)?")
_FORCED = frozenset({"-f", "--force-with-lease"})


def concerns(caution: Caution, command: Invocation, *, folder: str) -> bool:
    """Return whether the note warns of this command, run in ``folder``."""
    warned = caution.command
    if folder and caution.places and not any(_within(folder, place) for place in caution.places):
        return False
    if warned.program == TASK:
        return warned.words[0] in command.words[:2]
    if warned.program == ACTIVITY:
        return _is_for(warned.words[0], command) and not (
            caution.folder and f"{folder.rstrip('/')}/".endswith(f"/{caution.folder}/")
        )
    if warned.program != command.program or warned.words[: warned.depth] != command.words[: warned.depth]:
        return False
    flags = command.flags | {"--force"} if command.flags & _FORCED and command.purpose == "git push" else command.flags
    arguments = " ".join(command.words)
    return warned.flags <= flags and all(piece in arguments for piece in caution.pieces)


def heeded(caution: Caution, commands: Sequence[Invocation]) -> bool:
    """Return whether the command line already does what the note recommends."""
    if any(setting in command.settings for setting in caution.settings for command in commands):
        return True
    return any(
        recommended.program == command.program
        and recommended.words[: recommended.depth] == command.words[: recommended.depth]
        and recommended.flags <= command.flags
        and recommended.purpose != caution.command.purpose
        for recommended in caution.instead
        for command in commands
        if recommended.depth or recommended.program in ALONE
    )


def shows(symptom: Symptom, lines: Iterable[str]) -> bool:
    """Return whether the note quotes one of these lines, which are in lower case as `text.error_signature.normal` returns them."""
    for line in lines:
        at = 0
        for piece in symptom.pieces:
            at = line.find(piece, at)
            if at < 0:
                break
            at += len(piece)
        else:
            return True
    return False


def _within(folder: str, place: str) -> bool:
    return f"{folder.rstrip('/')}/".startswith(f"{place}/") or (place.startswith("~") and f"{place[1:]}/" in f"{folder}/")


def activities(command: Invocation) -> tuple[str, ...]:
    """Return a command's activities (test, lint, build), by the names that notes use."""
    return tuple(what for what in ACTIVITIES if _is_for(what, command))


def _is_for(what: str, command: Invocation) -> bool:
    """Return whether a command performs an activity, by the name of its program or of the task it runs."""
    tasks = command.words[: command.depth]
    match what:
        case "lint":
            return command.purpose in _LINTERS or any("lint" in name for name in (command.program, *tasks))
        case "test":
            return command.program in _TESTERS or any(map(_TEST_TASK.fullmatch, tasks))
        case _:
            return any(name.startswith(what) for name in (command.program, *tasks))

"""Clean text before it is written, and derive keys that are equal for equal wordings."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import chain

from kite_memory.text import lazy_regex

COMMON_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a abc about abstract accepted account accounts action actions active add added adds admin advanced after again
        against agent agents algorithm all almost already also always am amend an and another answer answers any api apis
        app application applications approach architecture are area areas arg args argument arguments array arrays artifact
        artifacts as ascii ask asks assert asserts asset assets async at atomic attempt attempts attribute attributes
        attribution attributions audit auth auto automatic await backup backups bad bar base base64 basic batch batches baz
        be because been before begin begins being bench benchmark best better between beyond big bin binary bit bits blame
        block blocks body bool boolean bootstrap bot both branch branches buffer buffers bug bugs build builds built bulk
        busy but button by byte bytes cache cached caches call callback callbacks called calls came camelcase can case cases
        cause causes cd cell change changed changelog changes channel channels char character characters chars check checked
        checkout checkpoint checkpoints checks checksum child children chunk chunks ci class classes clean cleanup clear
        clears cli client clients clone cloned close closed closes closure cmd code codebase codes color colors column
        columns come comes command commands comment comments commit commits committed common compile compiled compiler
        compiles complex config configs configuration console constant constants consumer content contents context
        controller conversation conversations core could count counter counts crash create created creates credential
        credentials cron css csv ctx current cursor custom cx daemon data date dates datum day days debug debugger decoding
        decrypt default defaults delay delete deleted deletes demo dependencies dependency deploy deployed deploys
        description descriptions design destination detail details detect detection detects dev develop development dialog
        dict dictionary did diff diffs digest dir directories directory dirs dirty disabled discover discovery disk display
        dns do doc docker-compose dockerfile docs documentation does doing domain done double downstream draft drafts drain
        dry during dynamic each eager early edge edges edit edited edits element elements else empty enabled encoding
        encrypt end ended endpoint endpoints ends enough entries entry enum enums env environment environments err error
        errors even event events ever every example examples exception exceptions explain explains export exports extension
        extensions external fail failed failover fails failure failures false fast fatal feature features fetch fetched
        fetches few field fields file filename files filter filters final find finds first fix fixed fixes fixme fixture
        fixtures flag flags float flush folder folders foo for force fork forks form format formats formatter forms found
        fresh from full function functions gave gc generic get gets give given gives global go goal goals goes going gone
        good got grammar graph graphs group groups gui guid had half handle handler handlers handles has hash hashes have
        having he head header headers heap hello help helper helpers helps her here hex hidden high higher him his history
        hook hooks host hosts hour how html http https i icon id idea identifier idle ids if image images import imports in
        inactive inbox include includes index indexes indices info information init initial input inputs install installed
        installs instance instances instead int integer integers interface interfaces internal interval into ip ipsum is
        issue issues it item items its job jobs json just kebab-case keep keeps kept key keys kind kinds know known knows
        label labels language languages large larger last late later latest layer layers layout lazy leaf least length less
        let lets level levels lib libraries library license life limit limits line lines link links lint linter list
        listener lists load loaded loads local locale lock locks log logged logging logic login logout logs long longer look
        looks lookup lookups loop loops loose lorem low lower made main major make makefile makes man manual many map maps
        master match matches max maximum may maybe md5 me measure member members memory menu merge merged merges message
        messages meta metadata method methods metric metrics might migrate migrates migration migrations min minimum minor
        minute mirror mirrors misc mock mocks mode model models modes module modules monitor monitors month more most mr msg
        multiple must muted mutex my name names nan need needed needs network never new newer next nil no node nodes none
        normal not note notes now null num number numbers object objects of off often ok old older on once one only onto
        open opened opens option optional options or order orders origin original other others our out outbox output outputs
        over override overrides owner owners package packages page pages panic param parameter parameters params parent
        parents parse parser parses part partial partition parts pascalcase pass passed passes password patch patches path
        paths pattern patterns payload pending people perhaps permission permissions person phase phases pipe pipeline
        pipelines place places plain plan plans plugin plugins point pointer pointers policies policy poll polling pool port
        ports pr preset previous primary print printer prints prior private problem problems procedure process processes
        prod producer production profile profiles program programs progress prompt prompts properties property proposal
        proposals proposed provider providers prs prune prunes public publisher pull pulled pulls push pushed pushes put
        puts qa queries query question questions queue queues quiet quite qux race races ran random rate rather ratio raw
        read reader readme reads ready reason reasons rebase receive received receives recent record records ref reference
        references refresh refs regex rejected release released releases reload remote remotes remove removed removes render
        renders replay replicate replicates replication replies reply repo report reports repos repositories repository req
        request requests required res reset resolve resolver resolves response responses restart restore restores result
        results retries retry return returns revert reverts review reviews rewind role roles room rooms root route router
        routes row rows rule rules run running runs safe said same sample samples save saved saves saw say says scan scans
        schedule scheduler scope scopes score scores screen script scripts sdk search searches second secondary seconds
        secret secrets see seed seen sees segment segments semantics send sends sent server servers service services session
        sessions set sets setting settings setup several sha shall shared she shell short shorter should show shown shows
        shutdown sibling side sides signal signals signature signatures silent simple single size sizes skip skipped skips
        sleep slice slices slot slow small snake_case snapshot snapshots so socket sockets some sometimes soon sort sorts
        source sources spec special specific specs sql squash src ssh ssl stack stacks stage stages staging stale standard
        start started starts stash state states static status stderr stdin stdout step steps still stop stopped stops store
        stored stores str strategies strategy stream streams strict string strings struct structs stub stubs stuff style
        styles subscriber subscription success such summarise summarize summary superseded sync synchronous syntax table
        tables tag tagged tags take taken takes target targets task tasks tcp team teams teardown tell tells temp template
        templates temporary terminal test tested testing tests text texts than that the their them theme then there these
        they thing things think third this those thread threads three threshold through time timeline timeout timer times
        timestamp title titles tls tmp to today todo token tokens told toml tomorrow too took tool tooling tools topic
        topics total toward towards trace traces track tracks trait traits transcript transcripts transfer transfers tree
        trees tried tries true trunk try tuple tuples twice two type types udp ui undefined under unicode unit units unless
        unsafe until up update updated updates upon upstream uri url urls us use used user users uses using utf utf-8 utf8
        util utilities utility utils uuid ux validate validated value values variable variables various vendor verbose
        verified verifies verify version versions very via view views visible void wait waits want wants warning warnings
        was watch watcher watches way ways we week weight weights went were what when where which while who whole whom whose
        why will window wip with within without woman word words work worked worker workers works worktree world worse worst
        would write writer writes written wrote xml xyz yaml year yes yesterday you young your
        """,
    )
)


MAX_STEM = 60
_MAX_SLUG = 48

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNDECOMPOSED = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"})
_DEVICES = lazy_regex(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_PAGE_NAME = lazy_regex(r"\w(?:[\w .+&'()-]*[\w+)])?")


def slug(title: str) -> str:
    """Return lower-case ASCII letters, digits and hyphens, at most 48 of them, never empty.

    Where folding loses letters (other scripts) a short hash of the title keeps two of them apart.
    """
    folded = unicodedata.normalize("NFKD", one_line(title).casefold().translate(_UNDECOMPOSED))
    plain = folded if folded.isascii() else "".join(char for char in folded if not unicodedata.combining(char))
    parts = re.findall(r"[a-z0-9]+", plain)
    text = "-".join(parts)
    lost = not folded.isascii() and any(char.isalnum() and not char.isascii() for char in folded)
    if not text:
        return f"note-{_tag(title)}"
    if not lost:
        return _cut(text, _MAX_SLUG)
    return f"{_cut(text, _MAX_SLUG - 7)}-{_tag(title)}"


def note_stem(title: str, at: datetime) -> str:
    """Return ``<slug>-<mon><yy>``: the file name of a note without its ``.md``. The month is UTC's, its name English."""
    at = at.astimezone(UTC)
    return f"{slug(title)}-{_MONTHS[at.month - 1]}{at.year % 100:02d}"


def page_stem(name: str) -> str:
    """Return the file name of an entity's page: its own name where that is a safe file name, so that ``[[name]]`` leads there."""
    name = unicodedata.normalize("NFC", one_line(name))
    safe = (
        len(name) <= MAX_STEM
        and len(name.encode()) <= 3 * MAX_STEM
        and _PAGE_NAME.fullmatch(name)
        and not _DEVICES.fullmatch(name)
        and not name.casefold().endswith(".md")
    )
    return name if safe else f"{slug(name)}-{_tag(entity_key(name))}"


def unique(stem: str, taken: Callable[[str], bool]) -> str:
    """Return the stem, or the first of ``-2``, ``-3``, … that is free; ``taken`` is called with `stem_key`."""
    candidate, count = stem, 1
    while taken(stem_key(candidate)):
        count += 1
        candidate = f"{_cut(stem, MAX_STEM - len(str(count)) - 1)}-{count}"
    return candidate


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, hyphen, _ = text[: limit + 1].rpartition("-")
    return head if hyphen and len(head) > limit // 2 else text[:limit].rstrip(" -.")


def _tag(text: str) -> str:
    return hashlib.sha256(stem_key(text).encode("utf-8", "replace")).hexdigest()[:6]


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def note_id(at: datetime, *seed: str) -> str:
    """Return a ULID: 48 bits of time, then 80 bits of ``seed``'s hash. The same arguments give the same id, on any machine."""
    milliseconds = min(max(int(at.timestamp() * 1000), 0), (1 << 48) - 1)
    hashed = hashlib.sha256("\0".join(seed).encode("utf-8", "surrogatepass")).digest()[:10]
    number = (milliseconds << 80) | int.from_bytes(hashed)
    return "".join([_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5)])


_UNWRITABLE = lazy_regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufeff\ufffe\uffff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
_SURROGATE = lazy_regex("[\ud800-\udfff]")
_HIDDEN = lazy_regex("[\u00ad\u200b\u200e\u200f\u2060-\u2064\u2066-\u206f\u202a-\u202e\U000e0000-\U000e007f]")
_WORD = lazy_regex(r"[\w+#]+")
_SAID = lazy_regex(
    r"[\w+#]+"
    r"|(?<![\w)\]])-+(?=\.?\w)"  # the sign of a number, or the dashes of an option
    r"|(?<=\d)[.,:/-](?=\d)"
    r"|[!<>=]*[<>=]|(?<![\w!])!(?=\w)"
    r"|(?<=[\w)] )[*/](?= [\w(-])"
    r"|(?<!~)~(?!~)|[$%&@^|]|[^\x00-\x7f\w\s]"
)
"""Words, and the signs that change what they say; not punctuation, nor what is markup in markdown."""
_BETWEEN_DIGITS = frozenset(".,:/")
_QUOTED_LINE = lazy_regex(r"^[ \t]*>[> \t]*", re.MULTILINE)
_RELATED = lazy_regex(r"^\*\*Related:\*\*.*$", re.MULTILINE)
_CALLOUT = lazy_regex(r"^> ?\[!\w{1,20}\][+-]? ?", re.MULTILINE)
_LINK = lazy_regex(r"!?\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")


def text_block(text: str) -> str:
    """Return markdown as we write it: LF, no control characters, no lone surrogates, nothing blank around it. Idempotent."""
    text = _SURROGATE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _UNWRITABLE.sub("", text).rstrip()
    start = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, start) + 1 :]  # from the start of its first line: an indent is part of the text


def one_line(text: str) -> str:
    """Return a text for titles, tags and other properties: every run of blanks and line breaks is one space. Idempotent."""
    spaced = " ".join(_SURROGATE.sub("\ufffd", text).split())
    return " ".join(_UNWRITABLE.sub("", spaced).split())


def without_hidden(text: str) -> str:
    """Remove what a model sees and a person doesn't: zero-width, direction and tag characters.

    Joiners of emoji and scripts stay.
    """
    return _HIDDEN.sub("", text)


def title_key(text: str) -> str:
    """Return a key that is equal for titles that differ in case, punctuation or the way their characters are composed."""
    folded = unicodedata.normalize("NFKC", one_line(text)).casefold()
    return " ".join(_WORD.findall(folded)) or folded


def entity_key(name: str) -> str:
    """Return a key that is equal for two spellings of one entity; punctuation counts, since C, C++ and C# are three."""
    return unicodedata.normalize("NFKC", one_line(name)).casefold().strip(" `'\"")


def stem_key(stem: str) -> str:
    """Return a key that is equal for file names that some file system takes for one: compared without case, composed."""
    if stem.isascii():
        return stem.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold())


def words(text: str) -> frozenset[str]:
    """Return the words of a text; links count as what they show, and the line of related notes is skipped."""
    plain = _LINK.sub(r"\1", _CALLOUT.sub("", _RELATED.sub("", text)))
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", plain).casefold()))


def body_key(text: str) -> str:
    """Return a hash that is equal for bodies with the same words and signs in the same order, linked or not.

    It is empty without words and signs.
    """
    said = " ".join(_said(_LINK.sub(r"\1", _CALLOUT.sub("", _RELATED.sub("", text)))))
    return hashlib.sha256(said.encode()).hexdigest()[:32] if said else ""


def signs(text: str) -> frozenset[str]:
    """Return the operators, signs and symbols of a text: < and >, != and ==, ✅ and ❌ change what its words say."""
    return frozenset([each for each in _said(text) if not (_WORD.match(each) or each in _BETWEEN_DIGITS)])


def _said(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", _QUOTED_LINE.sub("", text)).casefold().replace("\N{MINUS SIGN}", "-")
    return [
        token for token in _SAID.findall(folded) if token.isascii() or _WORD.match(token) or unicodedata.category(token)[0] == "S"
    ]


_CLAUSE_ENDS = lazy_regex(
    r"\n+|[.;!?—–]+(?:\s|$)|,\s|\s(?:but|while|whereas)\s"
    r"|\s(?:and|or)\s(?=(?:the|an?|our|all|every|each|it|they|we|never|always|not|no|do(?:es)?(?:n[o']t)?|is|are|can|may|must|should"
    r"|only)\b)",
    re.IGNORECASE,
)
_NEGATED = lazy_regex(r"\b(?:no|not|never|cannot|without|nicht|kein\w*|nie)\b|n['’]t\b", re.IGNORECASE)
_MAIN_WORD = lazy_regex(r"\d[\d.,:]*\d|[^\W_]+(?:[._/'-][^\W_]+)*")
_LITTLE = """
    a an the and or but while whereas of to in on at for from by with as is are was were be been being it its this that these those
    we you they he she i our your their his her my not no never always only just also too do does did don't doesn't didn't isn't
    aren't won't can't must should can may will would shall have has had use uses used using run runs make makes keep keeps
    put puts get gets set sets ever any all so then
    there here please when if one ones need needs then
"""
_SAYS_LITTLE = frozenset(_LITTLE.split())
"""Words that say nothing of what a clause is about."""
_DIRECTED = frozenset(("after", "before", "into", "instead", "over", "than", "then", "to", "über", "nach", "vor", "statt"))
_MOST_MAIN_WORD, _TWO = 400, 2


def arranges_otherwise(said: str, held: str) -> bool:
    """Return whether two texts of much the same words say different things by them: two words change places (the main branch for
    releases, the stable one for hotfixes), a word goes with those of another clause, or what one denies the other affirms.
    """
    said, held = (_NOT_HERE_BUT_THERE.sub(r"\1 not \2", each) for each in (said, held))
    if any((after, before) in _sides(held) for before, after in _sides(said)):
        return True
    mine, theirs = _clauses_of(said), _clauses_of(held)
    denied, there_denied = _denied(mine), _denied(theirs)
    if denied & _affirmed(theirs) or there_denied & _affirmed(mine):
        return True
    beside, there = _beside(mine), _beside(theirs)
    if any(beside[word] and there[word] and beside[word].isdisjoint(there[word]) for word in beside.keys() & there.keys()):
        return True
    both = (chain.from_iterable(_main_words(each) for each in clauses) for clauses in (mine, theirs))
    return _change_places(*([word for word in each if word not in denied & there_denied][:_MOST_MAIN_WORD] for each in both))


_NOT_HERE_BUT_THERE = lazy_regex(
    r"\bnot (\w+) ((in|on|at|by|with|from|for|to|through|via|under)\b[^.;,]{1,80}? but \3\b)", re.IGNORECASE
)
"""Where the place is denied, and not the verb before it."""


def _sides(text: str) -> frozenset[tuple[str, str]]:
    """Return the words on both sides of each word that has a direction: tabs over spaces are not spaces over tabs."""
    found: set[tuple[str, str]] = set()
    said = re.findall(r"[^\W_]+", text.casefold())
    for place, word in enumerate(said):
        if word in _DIRECTED:
            before = next((each for each in reversed(said[max(0, place - 4) : place]) if _is_main_word(each)), "")
            after = next((each for each in said[place + 1 : place + 5] if _is_main_word(each)), "")
            if before and after and before != after:
                found.add((before, after))
    return frozenset(found)


def _is_main_word(word: str) -> bool:
    return word not in _SAYS_LITTLE and word not in _DIRECTED and (len(word) > 1 or word.isdigit())


def _clauses_of(text: str) -> list[str]:
    """Return the clauses, without those that another contains: a title is mostly part of the body."""
    found = list(filter(None, dict.fromkeys(each.strip().casefold() for each in _CLAUSE_ENDS.split(text.replace("’", "'")))))
    return [each for each in found if not any(each in other and each != other for other in found)]


def _main_words(clause: str) -> list[str]:
    return [_stem(word) for word in _MAIN_WORD.findall(clause) if word not in _SAYS_LITTLE]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _denied(clauses: Sequence[str]) -> frozenset[str]:
    """Return the first main word after each negation, and the second where another clause has the first, too."""
    often = Counter(chain.from_iterable(frozenset(_main_words(each)) for each in clauses))
    denied = [_main_words(rest) for clause in clauses for rest in _NEGATED.split(clause)[1:]]
    return frozenset(chain.from_iterable(said[: 1 + (often[said[0]] > 1)] for said in denied if said))


def _affirmed(clauses: Sequence[str]) -> frozenset[str]:
    """Return the words that stand only in clauses without a negation."""
    plain = frozenset(chain.from_iterable(_main_words(each) for each in clauses if not _NEGATED.search(each)))
    return plain - frozenset(chain.from_iterable(_main_words(each) for each in clauses if _NEGATED.search(each)))


def _beside(clauses: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return, for each word that stands in one clause alone, the others of those that do."""
    said = [frozenset(_main_words(clause)) for clause in clauses]
    once = {word for word, times in Counter(chain.from_iterable(said)).items() if times == 1}
    return {word: (each & once) - {word} for each in said for word in each & once}


def _change_places(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether two words, or two phrases, stand in each other's place; neighbours are mostly a list, and say the same."""
    changes = {
        (tuple(mine[a:b]), tuple(theirs[c:d])): a
        for what, a, b, c, d in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
        if what == "replace"
    }
    if len(mine) == len(theirs):
        apart = [((one,), (other,)) for one, other in zip(mine, theirs, strict=True)]
        places = [at for at, (one, other) in enumerate(apart) if one != other]
        changes |= {apart[at]: at for at in places if len(places) == _TWO}
    return any(abs(changes.get((after, before), at) - at) > len(before) for (before, after), at in changes.items())


def digest(text: str | bytes) -> str:
    """Return the SHA-256 hash by which the ledger identifies a body or a file."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()

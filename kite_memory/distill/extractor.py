"""Interfaces of extractors and models: the prompt of a task, what is asked, and how a call can end."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from kite_memory.errors import ConfigInvalid
from kite_memory.model.event import RedactedText
from kite_memory.model.note import Chunk, Record

MARK = "kite-memory:extract"
"""Mark in every prompt that Kite Memory sends, so that sessions with it are recognised and never read."""

REVISION = 2
"""Increased when condensing, checking or the gate change the result of the same answer."""

_LARGEST = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """A task's prompt. ``version`` is a hash of both files only: the caller adds the model's name."""

    system: str
    schema: Mapping[str, object] = field(hash=False)
    version: str


def load_prompt(folders: Sequence[Path], task: str = "extract") -> PromptTemplate:
    """Load each file of ``<folder>/<task>/`` from the first folder that has it, so that a person may override just one.

    Raises `ConfigInvalid`, naming the file, if one cannot be used.
    """
    system_file, system = _first(folders, task, "system.md")
    schema_file, written = _first(folders, task, "schema.json")
    if not system.strip():
        raise ConfigInvalid(f"the prompt in {system_file} is empty", hint="delete the file to use the built-in prompt")
    try:
        schema = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(f"{schema_file} is not valid JSON: {error}", hint="delete it to use the built-in one") from error
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ConfigInvalid(f'{schema_file} is not a schema of type "object"', hint="delete the file to use the built-in schema")
    digest = hashlib.sha256(f"{REVISION}\0{system}\0{json.dumps(schema, sort_keys=True)}".encode())
    return PromptTemplate(system=system, schema=schema, version=digest.hexdigest()[:12])


def _first(folders: Sequence[Path], task: str, name: str) -> tuple[Path, str]:
    for folder in folders:
        file = folder / task / name
        try:
            if file.stat().st_size > _LARGEST:
                raise ConfigInvalid(f"{file} is larger than {_LARGEST} bytes", hint="a prompt is a page or two of text")
            return file, file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigInvalid(f"cannot read {file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigInvalid(f"{file} is not UTF-8 text", hint="save it as UTF-8, or delete it") from error
    looked_in = ", ".join(map(str, folders)) or "any folder"
    raise ConfigInvalid(f"no {task}/{name} in {looked_in}", hint="the installation is incomplete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Cost of a call. ``tokens_in`` includes cached ones; ``dollars`` already counts them at their lower price."""

    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The call succeeded. ``refused_items`` holds one short reason for each item that the quality gate refused."""

    record: Record
    usage: Usage
    refused_items: tuple[str, ...] = ()


Made = Literal["yes", "no", "perhaps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """The call failed for now: try again, not before ``retry_after`` seconds from now (at most an hour; 0 if the server gave none).

    ``made`` says whether the service accepted the call. ``perhaps``: it was sent, its outcome is unknown, and it may be billed.
    """

    reason: str
    retry_after: float = 0.0
    usage: Usage = Usage()
    made: Made = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The chunk was refused: sending it again gives the same outcome."""

    reason: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Misconfigured:
    """No chunk will be answered until a person changes something (a key, a spending limit, a model's name).

    ``perhaps_this``: as far as the reply shows, only this chunk may be the problem.
    """

    reason: str
    hint: str
    perhaps_this: bool = False


Outcome = Answer | Busy | Refused | Misconfigured


class Extractor(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Identifier that changes when the same chunk could get another answer: prompt, schema, model, rules."""
        ...

    def estimate(self, chunk: Chunk) -> Usage:
        """Return the most that `extract` may cost. All zero for an extractor that costs nothing."""
        ...

    def extract(self, chunk: Chunk) -> Outcome:
        """Extract a record. Never raises for what a model, a server or a transcript does."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """Lets several short chunks share one call and its fixed cost.

    Methods only: before Python 3.12 `isinstance` evaluates the properties of a protocol, and ``version`` may load all rules.
    """

    def share(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether these may be sent in one call."""
        ...

    def estimate_together(self, chunks: Sequence[Chunk]) -> Usage: ...

    def extract_together(self, chunks: Sequence[Chunk]) -> list[Outcome]:
        """Return one outcome for each chunk, in order. The first one carries the cost of the call."""
        ...


class SharingExtractor(Extractor, Sharing, Protocol):
    """Extractor that can do both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoKeyExtractor:
    name: str
    hint: str
    version: str = ""

    @property
    def missing_key(self) -> Misconfigured:
        return Misconfigured(reason=f"the extractor `{self.name}` has no key", hint=self.hint)

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Misconfigured:
        return self.missing_key


_CACHE_WRITE = 1.25
_CACHE_READ = 0.1
_MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in dollars per million tokens; writing to the cache costs 1.25 times the first, reading from it a tenth."""

    dollars_in: float
    dollars_out: float

    def halved(self) -> "Prices":
        return Prices(dollars_in=self.dollars_in / 2, dollars_out=self.dollars_out / 2)

    def of(self, *, fresh: int, written: int, read: int, out: int) -> Usage:
        weighed = fresh + _CACHE_WRITE * written + _CACHE_READ * read
        dollars = (weighed * self.dollars_in + out * self.dollars_out) / 1_000_000
        return Usage(tokens_in=fresh + written + read, tokens_out=out, dollars=dollars)

    def of_reported(self, reported: object) -> Usage:
        """Return the cost from an answer's ``usage``; missing or invalid counts are 0."""
        counts = reported if isinstance(reported, dict) else {}
        return self.of(
            fresh=_count(counts.get("input_tokens")),
            written=_count(counts.get("cache_creation_input_tokens")),
            read=_count(counts.get("cache_read_input_tokens")),
            out=_count(counts.get("output_tokens")),
        )


def are_counts(counts: Mapping[object, object], *names: str) -> bool:
    """Return whether all of these counts are present and valid; otherwise a call's cost is unknown."""
    return all(isinstance(count := counts.get(name), int) and not isinstance(count, bool) and count >= 0 for name in names)


def _count(value: object) -> int:
    return min(value, _MOST) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def tokens_at_most(text: str) -> int:
    """Estimate two characters a token, and three tokens for a character outside ASCII.

    English prose and code need about four characters a token, random digits about two: no transcript exceeds this.
    """
    plain = sum(map(str.isascii, text))
    return plain // 2 + 3 * (len(text) - plain) + 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One call to a model. ``system`` and ``schema`` are the same for every inquiry of a task, so that they can be cached; ``user``
    changes.

    ``seconds`` bounds the whole call, however slowly a server sends.
    """

    system: str
    user: str
    schema: Mapping[str, object] = field(hash=False)
    max_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedInquiry(Inquiry):
    """An inquiry that may leave this machine."""

    user: RedactedText


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The model's unchecked text. ``cut`` means that it was cut off at the limit."""

    text: str
    usage: Usage
    cut: bool = False


Failure = Busy | Refused | Misconfigured
Ending = Reply | Failure


class SendingBackend(Protocol):
    """Back end that sends what it is asked, so it takes redacted inquiries only. Otherwise the same as `Backend`."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def estimate(self, inquiry: Inquiry) -> Usage: ...

    def ask(self, inquiry: RedactedInquiry) -> Ending: ...


class Backend(Protocol):
    """Back end to a model. Thread-safe. Heavy packages are loaded by the first `ask`."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def estimate(self, inquiry: Inquiry) -> Usage:
        """Return the most that `ask` may cost."""
        ...

    def ask(self, inquiry: Inquiry) -> Ending:
        """Make one call, without retries. Never raises for what a model or a server does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """A batch as the service lists it. ``created`` is Unix time; ``requests`` counts them."""

    id: str
    created: float
    requests: int


class SendingBatches(Protocol):
    """Service that answers many inquiries within a day, at half the price. Each inquiry has an id, unique in its batch."""

    def estimate(self, inquiry: Inquiry) -> Usage:
        """Return the most that this inquiry may cost in a batch."""
        ...

    def submit(self, inquiries: Mapping[str, RedactedInquiry]) -> str | Failure:
        """Send a batch and return its id."""
        ...

    def is_over(self, batch: str) -> bool | Failure:
        """Return whether every inquiry of the batch has an outcome."""
        ...

    def endings(self, batch: str, estimates: Mapping[str, Usage]) -> Mapping[str, Ending] | Failure:
        """Return the outcomes of a batch that is over. ``estimates`` are the costs of answers that report none."""
        ...

    def listed(self) -> Sequence[ListedBatch] | Failure:
        """Return the account's latest batches."""
        ...


class Batches(SendingBatches, Protocol):
    """Batches that redact what they send."""

    def submit(self, inquiries: Mapping[str, Inquiry]) -> str | Failure: ...

"""Parsing of a conversation's record as an agent sends it: lenient where the meaning is clear, otherwise refused with a hint.

Everything parsed has been redacted and cut to its maximum length; what was left out is reported.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from kite_memory.errors import UsageError
from kite_memory.model.note import TURNED_DOWN, Decision, Fact, Insight, OpenQuestion, Record, RecordItem, Rejected, Topic
from kite_memory.redaction.cutting import beginning
from kite_memory.text.display import clip
from kite_memory.text.quoting import plain, plain_line
from kite_memory.tools.argument_parsing import clean
from kite_memory.tools.arguments import MOST_TOPICS, OF_A_RECORD, OF_A_TOPIC
from kite_memory.tools.conversation_notes import RECORD, as_text, name_of
from kite_memory.tools.local_conversations import MOST_TRANSCRIPT
from kite_memory.vault.wording import one_line

Json = dict[str, Any]

_TITLE = 120
_ITEM = 4_000
_SUMMARY = 8_000
_NAME = 80
_ITEMS, _NAMES = 60, 40
_MOST_ITEMS = 200
_MOST_REPORTED = 20
"""Number of ignored or omitted things that are named."""

_TOPIC_FIELDS = frozenset({argument.name for argument in OF_A_TOPIC} | {"name", "rejected_decisions", "entities"})
_FIELDS = _TOPIC_FIELDS | {argument.name for argument in OF_A_RECORD}
_LEFT_OUT = "\n\n[…]\n\n"
_TYPES = ("single_topic", "multi_topic")
_TURNED_DOWN = frozenset({"rejected", "declined", "discarded", "turned_down", "not_chosen"})
_SAYS_NO = re.compile(
    r"(?:we |i )?(?:have |'ve )?(?:(?:decided|opted|voted) against|ruled out|turned down|(?:decided|chose|agreed) not to(?: use)?"
    r"|(?:rejected|discarded|dismissed|declined)(?=\s*:|\s+(?:the|a|an|our|any|[a-z]+ing)\s|\s+(?-i:[A-Z`\"])))\s*:?\s+(?=\S)",
    re.IGNORECASE,
)
"""The beginning of a decision that says what was not chosen; "Rejected requests are retried" is no such decision."""
_BECAUSE = re.compile(r"(?:because|since|as|so that|due to)\b", re.IGNORECASE)
_NAMES_SOMETHING = re.compile(r"[^\W_]{2}")
_SOURCE = re.compile(r"[^a-z0-9]+")
_DECISION = 'as in: "decisions": [{"decision": "PostgreSQL for the queue", "reasoning": "row-level locking"}]'


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRecord:
    """A parsed record.

    ``remarks`` list what was not taken over as given. If the record is empty, the transcript is to be distilled.
    """

    uuid: str
    source: str
    project: str
    scope: str
    record: Record
    overall: str
    transcript: str
    remarks: tuple[str, ...]


def read_record(given: Mapping[str, object]) -> ParsedRecord:
    """Parse the arguments. Raises `UsageError` for what cannot be understood."""
    return _RecordParser().record(given)


def conversation_uuid(value: object) -> str:
    """Return the uuid. Raises `UsageError`."""
    try:
        return str(UUID(value.strip())) if isinstance(value, str) and len(value) < 64 else _no_uuid()
    except ValueError:
        return _no_uuid()


def source_named(text: str) -> str:
    """Return the source's name as evidence spells it: ``claude_code``."""
    return _SOURCE.sub("_", text.lower()).strip("_")[:40]


def _no_uuid() -> str:
    raise UsageError("`claude_conversation_uuid` is missing, or is no UUID", hint="call generate_conversation_id once, and keep it")


class _RecordParser:
    """Parsing of one record, field by field, with the remarks that result."""

    def __init__(self) -> None:
        self._remarks: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def record(self, given: Mapping[str, object]) -> ParsedRecord:
        uuid = conversation_uuid(given.get("claude_conversation_uuid"))
        self._ignore(given, _FIELDS, "")
        kind = given.get("conversation_type") or ""
        if kind and kind not in _TYPES:
            raise UsageError(f"`conversation_type` cannot be {plain_line(str(kind), 40)!r}", hint="single_topic or multi_topic")
        topics = [
            self._topic(each, f"topics[{place}].") for place, each in enumerate(self._listed(given, "topics", "", MOST_TOPICS))
        ]
        if kind == "multi_topic" and not topics and any(given.get(name) for name in ("decisions", "topic", "summary")):
            self._remarks.append("it was taken for a single topic, since there are no `topics`")
        own = {name: value for name, value in given.items() if name in _TOPIC_FIELDS}
        if topics and own.get("summary") and not given.get("overall_summary"):
            given, own = {**given, "overall_summary": own["summary"]}, {**own, "summary": None}
        if any(own.get(name) for name in _TOPIC_FIELDS):
            topic = self._topic(own, "")
            if topic.items or topic.summary or not topics:
                topics.insert(0, topic)
            else:
                topics[0] = replace(
                    topics[0],
                    categories=tuple(dict.fromkeys((*topics[0].categories, *topic.categories))),
                    entities=tuple(dict.fromkeys((*topics[0].entities, *topic.entities))),
                )
        insights = tuple(self._texts(given, "cross_topic_insights", "", ("insight", "text"), _NAMES, _ITEM))
        overall = self._text(given.get("overall_summary"), "overall_summary", _SUMMARY)
        transcript = self._transcript(given.get("full_transcript"))
        if not topics and overall:
            topics = [Topic(name=_beginning(overall), summary=overall, items=())]
            overall = ""
        if not topics and not transcript:
            raise UsageError(
                "there is nothing to save",
                hint="give topic, summary and decisions; or topics, for several; or full_transcript alone, to have it distilled",
            )
        return ParsedRecord(
            uuid=uuid,
            source=source_named(self._text(given.get("source"), "source", 60)),
            project=self._text(given.get("project"), "project", 500),
            scope=self._text(given.get("scope"), "scope", 20).lower(),
            record=Record(topics=tuple(topics), cross_topic_insights=insights),
            overall=overall,
            transcript=transcript,
            remarks=tuple(self._remarks[:_MOST_REPORTED]),
        )

    def _topic(self, given: object, at: str) -> Topic:
        if not isinstance(given, Mapping):
            raise UsageError(f"`{at.rstrip('.')}` must be an object", hint="as in: {topic, summary, decisions, open_questions}")
        if at:
            self._ignore(given, _TOPIC_FIELDS, at)
        summary = self._text(given.get("summary"), f"{at}summary", _SUMMARY)
        name = one_line(self._text(given.get("topic") or given.get("name"), f"{at}topic", _NAME))
        if name and not _NAMES_SOMETHING.search(name):
            self._remarks.append(f"`{at}topic` {name!r} names nothing; it was named by what it says")
            name = ""
        entities = tuple(
            clip(one_line(each), 60)
            for field in ("related_entities", "entities")
            for each in self._texts(given, field, at, ("name", "entity", "text"), _NAMES, _NAME)
        )
        items = tuple(item for item in self._items(given, at) if self._is_new(item))
        named = next((item.title for item in items), "")
        return Topic(
            name=name or _beginning(summary) or _beginning(named) or "A conversation",
            summary=summary,
            items=tuple(replace(item, entities=_spoken_of(item, entities)) for item in items),
            categories=tuple(one_line(each) for each in self._texts(given, "categories", at, ("name", "category"), 12, 40)),
            entities=tuple(dict.fromkeys(entities)),
        )

    def _items(self, given: Mapping[str, object], at: str) -> Iterator[RecordItem]:
        for place, each in enumerate(self._listed(given, "decisions", at, _ITEMS)):
            yield self._decision(each, f"{at}decisions[{place}]")
        for field in ("rejected", "rejected_decisions"):
            for place, each in enumerate(self._listed(given, field, at, _ITEMS)):
                yield self._decision(each, f"{at}{field}[{place}]", rejected=True)
        for text in self._texts(given, "insights", at, ("insight", "title", "text", "body"), _ITEMS, _ITEM):
            yield Insight(title=clip(one_line(text), _TITLE), body=text, evidence=(RECORD,), importance=2, origin="assistant")
        for text in self._texts(given, "facts", at, ("fact", "title", "text", "body"), _ITEMS, _ITEM):
            yield Fact(title=clip(one_line(text), _TITLE), body=text, evidence=(RECORD,), importance=2, origin="assistant")
        for text in self._texts(given, "open_questions", at, ("question", "text", "title"), _ITEMS, _ITEM):
            yield OpenQuestion(title=clip(one_line(text), _TITLE), body=text, evidence=(RECORD,), importance=2, origin="assistant")

    def _decision(self, given: object, at: str, *, rejected: bool = False) -> Decision:
        match given:
            case str():
                what, why, fields = given, "", {}
            case Mapping():
                fields = dict(given)
                what = self._first(fields, at, "decision", "alternative", "option", "title", "text")
                why = self._first(fields, at, "reasoning", "reason", "rationale", "why")
            case _:
                raise UsageError(f"`{at}` must be an object or a text", hint=_DECISION)
        what = one_line(self._text(what, at, _ITEM)).rstrip(" .")
        why = self._text(why, f"{at}.reasoning", _ITEM)
        if not what:
            raise UsageError(f"`{at}` says nothing", hint=_DECISION)
        status = fields.get("status")
        said_no = isinstance(status, str) and status.strip().lower().replace(" ", "_") in _TURNED_DOWN
        title = clip(what, _TITLE)
        others: tuple[Rejected, ...] = ()
        for field in ("rejected", "alternatives", "rejected_alternatives"):
            if fields.get(field) is True and field == "rejected":
                said_no = True
            elif fields.get(field):
                others += tuple(self._alternatives(fields[field], f"{at}.{field}"))
        if (says_no := _SAYS_NO.match(what)) and len(what) > says_no.end():
            said_no, what = True, what[says_no.end() :]
            what = what[:1].upper() + what[1:]
            title = clip(what, _TITLE)
        if rejected or said_no:
            return Decision(
                title=clip(f"{TURNED_DOWN}{what}", _TITLE),
                body=_with_reason(f"{TURNED_DOWN}{what}", why),
                evidence=(RECORD,),
                importance=2,
                origin="assistant",
                rejected=(Rejected(alternative=title, reason=why),),
            )
        return Decision(
            title=title, body=_with_reason(what, why), evidence=(RECORD,), importance=2, origin="assistant", rejected=others
        )

    def _alternatives(self, given: object, at: str) -> Iterator[Rejected]:
        for place, each in enumerate(given if isinstance(given, list) else [given]):
            match each:
                case str():
                    what, why = each, ""
                case Mapping():
                    what = self._first(each, at, "alternative", "option", "decision", "name", "text")
                    why = self._first(each, at, "reason", "reasoning", "why")
                case _:
                    raise UsageError(f"`{at}[{place}]` must be an object or a text", hint="as in: {alternative, reason}")
            if what := one_line(self._text(what, at, _TITLE)):
                yield Rejected(alternative=what, reason=one_line(self._text(why, at, _ITEM)))
            if place == 20:
                return

    def _first(self, given: Mapping[str, object], at: str, *names: str) -> str:
        for name in names:
            if value := given.get(name):
                return self._as_text(value, f"{at}.{name}")
        return ""

    def _is_new(self, item: RecordItem) -> bool:
        """Return whether to take the item: the first of its kind and title, up to a maximum number of items."""
        key = name_of(item)
        if len(self._seen) == _MOST_ITEMS:
            if (remark := f"only the first {_MOST_ITEMS} decisions, insights and questions were taken") not in self._remarks:
                self._remarks.append(remark)
            return False
        if key in self._seen:
            self._remarks.append(f"{plain_line(item.title, 60)!r} is there twice; the first one was taken")
            return False
        self._seen.add(key)
        return True

    def _transcript(self, given: object) -> str:
        text: object = as_text(given) if isinstance(given, list) else given
        if text is None or text == "":
            if given:
                raise UsageError("`full_transcript` cannot be read", hint="give text, or a list of {role, content}")
            return ""
        if not isinstance(text, str):
            raise UsageError("`full_transcript` must be text, or a list of {role, content}", hint="or leave it out")
        text = clean(text).replace("\0", "").strip()  # the whole text, since half of a secret would not be recognized
        if len(text) > MOST_TRANSCRIPT:
            half = MOST_TRANSCRIPT // 2 - len(_LEFT_OUT)
            self._remarks.append(f"of the transcript, {len(text) - 2 * half} characters in the middle were left out")
            text = f"{text[:half]}{_LEFT_OUT}{text[-half:]}"
        return text

    def _listed(self, given: Mapping[str, object], field: str, at: str, most: int) -> list[object]:
        value = given.get(field)
        if value is None or value == "" or (field == "rejected" and isinstance(value, bool)):
            return []
        if isinstance(value, str | Mapping):
            return [value]
        if not isinstance(value, list):
            raise UsageError(f"`{at}{field}` must be a list", hint=_DECISION if "decision" in field else f'as in: "{field}": ["…"]')
        if len(value) > most:
            self._remarks.append(f"of `{at}{field}`, only the first {most} were taken")
        return value[:most]

    def _texts(
        self, given: Mapping[str, object], field: str, at: str, names: Sequence[str], most: int, length: int
    ) -> Iterator[str]:
        for place, each in enumerate(self._listed(given, field, at, most)):
            if isinstance(each, Mapping):
                first = self._first(each, f"{at}{field}[{place}]", *names)
                more = self._first(each, f"{at}{field}[{place}]", "explanation", "reasoning", "details", "answer", "context")
                each = f"{first}: {more}" if first and more else first
            if text := self._text(each, f"{at}{field}[{place}]", length):
                yield text

    def _text(self, value: object, field: str, length: int) -> str:
        if value is None:
            return ""
        text = plain(clean(beginning(self._as_text(value, field), 4 * length + 10_000))).strip()
        if len(text) > length:
            self._remarks.append(f"`{field}` was cut to {length} characters")
        return clip(text, length)

    @staticmethod
    def _as_text(value: object, field: str) -> str:
        if not isinstance(value, str):
            raise UsageError(f"`{field}` must be text, not {_kind(value)}", hint="put it in quotes")
        return value

    def _ignore(self, given: Mapping[str, object], known: frozenset[str], at: str) -> None:
        unknown = [plain_line(clean(beginning(str(name), 1_000)), 60) for name in given if name not in known]
        if unknown:
            more = f" and {len(unknown) - _MOST_REPORTED} more" if len(unknown) > _MOST_REPORTED else ""
            self._remarks.append(f"ignored: {', '.join(f'{at}{name}' for name in unknown[:_MOST_REPORTED])}{more}")


def _with_reason(what: str, why: str) -> str:
    if not why:
        return f"{what}."
    return f"{what} {why}" if _BECAUSE.match(why) else f"{what}: {why}"


def _beginning(text: str) -> str:
    return clip(" ".join(one_line(text).split()[:5]).rstrip(".,:;"), _NAME)


def _spoken_of(item: RecordItem, entities: Sequence[str]) -> tuple[str, ...]:
    said = f"{item.title}\n{item.body}".casefold()
    return tuple(dict.fromkeys(name for name in entities if name.casefold() in said))[:8]


def _kind(value: object) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"), ((int, float), "a number"), (list, "a list"), (Mapping, "an object")
    )  # fmt: skip
    return next((name for kind, name in kinds if isinstance(value, kind)), "that")

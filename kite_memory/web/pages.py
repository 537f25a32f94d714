"""What each page shows, and what its forms do. Every figure comes from the operations that the commands use.

Each form carries the hidden value that only the page itself knows.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kite_memory.errors import NoteNotFound, NotFound, UsageError
from kite_memory.web import drawing
from kite_memory.web.rendering import DONE, Ask, Json, Renderer, day, parsed

_LONGEST_BODY = 1 << 20
_MOST_FIELDS = 20

Form = Mapping[str, str]
FormHandler = Callable[[Request], Awaitable[Response]]

_DONE = {
    "accept": "Accepted.",
    "reject": "Rejected. It will not be suggested again.",
    "merge": "Merged into the other note.",
    "replace": "The newer of the two holds now.",
    "both": "Both hold.",
    "divide": "Divided into several notes.",
    "whole": "Left whole.",
}


class Actions:
    """Handlers of POST requests. Each returns to a page that shows what has been done."""

    def __init__(self, ask: Ask, renderer: Renderer) -> None:
        self._ask = ask
        self._renderer = renderer

    def routes(self) -> Mapping[str, FormHandler]:
        doing = {
            "/forget": self.forget,
            "/mute": self.mute,
            "/edit": self.edit,
            "/judge": self.judge,
            "/merge": self.merge,
            "/ask": self.question,
        }
        return {path: self._handler(action) for path, action in doing.items()}

    def _handler(self, action: Callable[[Form], Response]) -> FormHandler:
        async def handle(request: Request) -> Response:
            form = await _form(request)
            if not hmac.compare_digest(form.get("form", "").encode("utf-8", "replace"), self._renderer.form.encode()):
                raise HTTPException(403, "this form is not of this page; open it again")
            return await run_in_threadpool(action, form)

        return handle

    def forget(self, form: Form) -> Response:
        answer = self._ask("forget", note=_named(form))
        titles = ", ".join(f"“{each['title']}”" for each in answer["notes"])
        said = f"Forgotten: {titles or 'what was named'}. It is in the vault's trash."
        return self._renderer.then(self._renderer.address("notes"), " ".join([said, *answer["problems"]]))

    def mute(self, form: Form) -> Response:
        undo = form.get("undo", "") == "yes"
        answer = self._ask("mute", note=_named(form), undo=undo)
        said = f"“{answer['title']}” " + (
            "is given to agents again." if undo else "is never given to an agent again. Search finds it."
        )
        back = form.get("back", "")
        name = answer["id"] or answer["path"]
        return self._renderer.then(self._renderer.address("said") if back == "said" else self._note(name), said)

    def edit(self, form: Form) -> Response:
        answer = self._ask("edit", note=_named(form), body=form.get("body", ""), seen=form.get("seen", ""))
        said = "Saved. From now on this text is yours, and only you change it."
        if answer["left_out"]:
            said += " A secret or a private part was left out."
        return self._renderer.then(self._note(answer["id"] or answer["path"]), said)

    def judge(self, form: Form) -> Response:
        verdict = form.get("verdict", "")
        self._ask("judge", note=_named(form), verdict=verdict, into=form.get("into", ""), seen=form.get("seen", ""))
        return self._renderer.then(self._renderer.address("review"), _DONE.get(verdict, "Done."))

    def merge(self, form: Form) -> Response:
        into = form.get("into", "").strip()
        if not into:
            raise UsageError("no other note is named", hint="give its title, its id or its path")
        answer = self._ask("sort", note=_named(form), verdict="merge", into=into)
        return self._renderer.then(self._note(answer["id"] or answer["path"]), "Merged: what the other note said stands here now.")

    def question(self, form: Form) -> Response:
        question = form.get("question", "").strip()
        answer = self._ask("ask", question=question, offline=form.get("offline", "") == "yes")
        return self._renderer.page("ask.html", here="ask", question=question, answer=answer)

    def _note(self, name: str) -> str:
        return self._renderer.address("note", name=name)


def _named(form: Form) -> str:
    if not (name := form.get("name", "")):
        raise UsageError("no note is named", hint="go back to the note, and try again")
    return name


async def _form(request: Request) -> Form:
    """Return the fields of a form, each with its last value. Raises `HTTPException` for what is no form or too long."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415, "only forms")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            raise HTTPException(413, "this is too long for a note")
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(400, "this is no form") from error
    return {name: values[-1] for name, values in fields.items()}


_PER_PAGE = 50
_LATEST = 300
"""Sessions that the lanes are drawn from."""
_EVENTS = 200
_FIXES_ASKED = 12
_SPANS = {"day": 1, "week": 7, "month": 30}
_MOST_BACK = 5_000
"""Spans that the lanes go back at most, before which there are no dates."""
_WEEKS = 12
_PROMPTS = 25
_MOST_PROMPTS = 1_000

Handler = Callable[[Request], Response]


class Pages:
    """Handlers of GET requests. They run in threads, several at a time."""

    def __init__(self, ask: Ask, renderer: Renderer) -> None:
        self._ask = ask
        self._renderer = renderer

    def routes(self) -> Mapping[str, Handler]:
        return {
            "/": self.today,
            "/notes": self.notes,
            "/note": self.note,
            "/edit": self.edit,
            "/review": self.review,
            "/timeline": self.timeline,
            "/session": self.session,
            "/threads": self.threads,
            "/graph": self.graph,
            "/said": self.said,
            "/ask": self.question,
        }

    def _page(self, request: Request, template: str, **values: Any) -> Response:
        said = self._renderer.take_message(request.query_params.get(DONE, ""))
        return self._renderer.page(template, said=said, **values)

    def today(self, request: Request) -> Response:
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        status = self._ask("status")
        sessions = [each for each in self._ask("timeline", limit=60)["sessions"] if parsed(each["last"]) >= midnight]
        changed = self._ask("notes", since=midnight.astimezone(UTC).isoformat(), limit=100)
        made = [each for each in changed["notes"] if parsed(each["created"]) >= midnight]
        prompts = [each for each in self._ask("why", last=200, silent=True)["prompts"] if parsed(each["at"]) >= midnight]
        return self._page(
            request,
            "today.html",
            here="today",
            status=status,
            sessions=sessions,
            made=made,
            latest=[] if made else [each for each in self._ask("notes", limit=10)["notes"] if each["kind"] != "entity"][:5],
            prompts=[each for each in prompts if each["notes"]],
            silent=sum(not each["notes"] for each in prompts),
            plot=drawing.weeks(self._ask("helped", weeks=_WEEKS)["weeks"]),
        )

    def notes(self, request: Request) -> Response:
        query = request.query_params
        kind, project, status = (query.get(name, "") for name in ("kind", "project", "status"))
        words, page = query.get("q", "").strip(), _number(query.get("page", ""), 1)
        listed = self._ask("notes", kind=kind, project=project, status=status, start=(page - 1) * _PER_PAGE, limit=_PER_PAGE)
        found: Json | None = None
        if words:
            found = self._ask("search", query=f"{kind}: {words}" if kind else words, project=project, limit=_PER_PAGE)
            found["hits"] = [each for each in found["hits"] if status in ("", each["status"])]
        return self._page(
            request,
            "notes.html",
            here="notes",
            listed=listed,
            found=found,
            words=words,
            kind=kind,
            project=project,
            status=status,
            page=page,
            pages=max(1, -(-listed["total"] // _PER_PAGE)),
        )

    def note(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        shown = self._ask("show", note=name, expired=True)
        exact = shown["id"] or shown["path"]
        try:
            evidence = self._ask("why", note=exact)["evidence"]
        except NoteNotFound:  # of a note that has expired no evidence is given
            evidence = []
        around = self._ask("around", note=exact, limit=12)
        by_path = {each["path"]: each for each in around["notes"]}
        arrows = around["arrows"]
        return self._page(
            request,
            "note.html",
            here="notes",
            note=shown,
            name=exact,
            evidence=evidence,
            links=[by_path[each["to"]] for each in arrows if each["from"] == shown["path"] and each["to"] in by_path],
            titles={PurePosixPath(each["path"]).stem.casefold(): each["title"] for each in around["notes"]},
            linked=[by_path[each["from"]] for each in arrows if each["to"] == shown["path"] and each["from"] in by_path],
        )

    def edit(self, request: Request) -> Response:
        shown = self._ask("show", note=request.query_params.get("name", ""), expired=True, source=True)
        return self._page(request, "edit.html", here="notes", note=shown, name=shown["id"] or shown["path"])

    def review(self, request: Request) -> Response:
        waiting = self._ask("review", limit=20)
        return self._page(request, "review.html", here="review", waiting=waiting["waiting"], notes=waiting["notes"])

    def timeline(self, request: Request) -> Response:
        query = request.query_params
        span = query.get("span", "week") if query.get("span") in _SPANS else "week"
        project = query.get("project", "")
        sessions = self._ask("timeline", project=project, limit=_LATEST)["sessions"]
        now = datetime.now().astimezone()
        newest = max((parsed(each["last"]) for each in sessions), default=now)
        back = min(_MOST_BACK, _number(query.get("back", ""), max(0, (now - newest) // timedelta(days=_SPANS[span]))))
        end = now - timedelta(days=back * _SPANS[span])
        lanes = drawing.lanes(sessions, start=end - timedelta(days=_SPANS[span]), end=end)
        return self._page(
            request,
            "timeline.html",
            here="timeline",
            lanes=lanes,
            span=span,
            spans=list(_SPANS),
            back=back,
            project=project,
            projects=sorted({each["project"] for each in sessions} | {project} - {""}),
            days=_by_day(lanes.sessions),
        )

    def session(self, request: Request) -> Response:
        query = request.query_params
        after = _number(query.get("after", ""), -1)
        only = query.get("only", "") if query.get("only", "") in ("prompts", "failures", "decisions") else ""
        if not (name := query.get("name", "")):
            raise NotFound("no session is named", hint="the timeline lists the known sessions")
        answer = self._ask("timeline", session=name, after=after, most=_EVENTS, edges=False)
        failures = [each for each in answer["events"] if _failed(each)]
        fixes = {each["id"]: self._ask("became", citation=each["reference"])["became"] for each in failures[:_FIXES_ASKED]}
        return self._page(
            request,
            "session.html",
            here="timeline",
            session=answer["session"],
            events=[each for each in answer["events"] if _is_among(each, only)],
            fixes=fixes,
            notes=_by_evidence(answer["notes"]),
            made=answer["notes"],
            next=answer["next"],
            after=after,
            only=only,
            name=f"{answer['session']['provider']}:{answer['session']['id']}",
            failed=_failed,
        )

    def threads(self, request: Request) -> Response:
        project = request.query_params.get("project", "")
        answer = self._ask("threads", project=project, limit=200)
        return self._page(request, "threads.html", here="timeline", threads=answer["threads"][:100], answer=answer, project=project)

    def graph(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        around = self._ask("around", note=name, limit=16 if name else 30)
        return self._page(
            request,
            "graph.html",
            here="graph",
            around=around,
            picture=drawing.neighbourhood(around) if around["note"] else drawing.overview(around),
            sides=drawing.sides(around) if around["note"] else None,
        )

    def said(self, request: Request) -> Response:
        query = request.query_params
        page, silent = _number(query.get("page", ""), 1), query.get("silent", "") == "yes"
        last = min(_MOST_PROMPTS, page * _PROMPTS + 1)
        prompts = self._ask("why", last=last, silent=silent)["prompts"]
        shown = prompts[(page - 1) * _PROMPTS : page * _PROMPTS]
        helped = self._ask("helped", weeks=_WEEKS)
        return self._page(
            request,
            "said.html",
            here="said",
            days=[(name, list(group)) for name, group in groupby(shown, key=lambda each: day(each["at"]))],
            more=len(prompts) > page * _PROMPTS,
            page=page,
            silent=silent,
            helped=helped,
            plot=drawing.weeks(helped["weeks"]),
        )

    def question(self, request: Request) -> Response:
        return self._page(request, "ask.html", here="ask", question="", answer=None)


def _number(text: str, otherwise: int) -> int:
    return min(int(text), 1_000_000_000) if text.isascii() and text.isdecimal() and len(text) < 12 else otherwise


def _by_day(sessions: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    return [(name, list(group)) for name, group in groupby(sessions, key=lambda each: day(each["last"]))]


def _failed(event: Mapping[str, Any]) -> bool:
    return bool(event["type"] == "error" or event["status"] == "failed")


def _is_among(event: Mapping[str, Any], only: str) -> bool:
    match only:
        case "prompts":
            return bool(event["type"] == "user_message")
        case "failures":
            return _failed(event)
        case "decisions":
            return bool(event["type"] == "decision")
        case _:
            return True


def _by_evidence(notes: list[Json]) -> dict[str, list[Json]]:
    """Return the notes made from each event, by its citation."""
    found: dict[str, list[Json]] = {}
    for note in notes:
        for reference in note["evidence"]:
            found.setdefault(reference, []).append(note)
    return found

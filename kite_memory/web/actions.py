"""What the page's forms do. Each carries the hidden value that only the page itself knows."""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kite_memory.errors import UsageError
from kite_memory.web.rendering import Ask, Renderer

_LONGEST_BODY = 1 << 20
_MOST_FIELDS = 20

Form = Mapping[str, str]
Handler = Callable[[Request], Awaitable[Response]]

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

    def routes(self) -> Mapping[str, Handler]:
        doing = {
            "/forget": self.forget,
            "/mute": self.mute,
            "/edit": self.edit,
            "/judge": self.judge,
            "/merge": self.merge,
            "/ask": self.question,
        }
        return {path: self._handler(action) for path, action in doing.items()}

    def _handler(self, action: Callable[[Form], Response]) -> Handler:
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

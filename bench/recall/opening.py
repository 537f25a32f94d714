"""Would an agent open the right ones? Sheets for a reader who has not seen the labels, and the score of what that reader opened.

    python -m bench.recall.recall_gold --gold DIR --transcripts DIR --out PREDICTIONS.jsonl
    python -m bench.recall.opening sheet --gold DIR --predictions PREDICTIONS.jsonl --sheet SHEET.md --labels LABELS.json
        [--prompts 100]
    python -m bench.recall.opening score --labels LABELS.json --decisions DECISIONS.jsonl

The sheet holds what an agent would have: the list at each session's start, then some of its prompts, each with the last exchange
and with what was printed up to it. Four in ten of the prompts need a note; which, only LABELS.json says. A line of DECISIONS is
``{"prompt": 1, "opened": ["id", …]}``; a prompt without a line opened nothing. With several projects the predictions of each are
read from beside PREDICTIONS, as `bench.recall.recall_gold` names them.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.recall.recall_gold import Labelled, labelled, rows

Json = dict[str, Any]

_NEEDED = 0.4
_INSTRUCTIONS = """# What would you open?

You are the coding agent of each session below. At its start you were shown a list of titles from the user's notes; with some
prompts you are shown more ("printed"). `kmem show ID` opens one, free of charge. A note is worth opening only if what it says
would change or speed up what you do with this very prompt, and neither the prompt nor the exchange before it says so already. For
most prompts nothing is.

Answer with one line of JSON for each prompt, its number and the ids you would open now, usually none:
`{"prompt": 1, "opened": []}`. You may open what was printed with this prompt, or earlier in the same session.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A prompt as the agent has it. ``before`` is what was printed in its session since the last case, the start's list included;
    ``right`` are the notes whose opening helps, with the events they rest on."""

    project: str
    session: str
    event: str
    prompt: str
    exchange: str
    before: tuple[str, ...]
    printed: str
    needed: bool
    right: tuple[str, ...]
    within_reach: bool


def predictions_of(project: Labelled, file: Path, alone: bool) -> list[Json]:
    return rows(file if alone else file.with_name(f"{file.stem}-{project.name}{file.suffix}"))


def cases(project: Labelled, predictions: Sequence[Json]) -> Iterator[Case]:
    """Every labelled prompt of the project that the hook was asked about, in order."""
    label = {(row["session"], row["event"]): row for row in project.rows("prompts.jsonl")}
    rests_on = {row["id"]: tuple(each[:8] for each in row["evidence"]) for row in project.rows("notes.jsonl")}
    before: list[str] = []
    named: set[str] = set()
    session = ""
    for row in predictions:
        if row.get("session", session) != session:
            session, before, named = row["session"], [], set()
        named.update(row.get("brief", []), row.get("listed", []), row.get("notes", []), row.get("listed_events", []))
        if "brief" in row:
            before.append(row["printed"])
        if "prompt" not in row:
            continue
        wanted = label[row["session"], row["event"]]
        right = tuple(dict.fromkeys(each for note in wanted["relevant"] for each in (note, *rests_on.get(note, ()))))
        yield Case(
            project=project.name,
            session=row["session"],
            event=row["event"],
            prompt=row["prompt"],
            exchange=row["exchange"],
            before=tuple(filter(None, before)),
            printed=row["printed"],
            needed=wanted["need"] != "none",
            right=right,
            within_reach=not named.isdisjoint(right),
        )
        before.append(row["printed"])


def chosen(every: Sequence[Case], prompts: int, seed: int) -> list[Case]:
    """As many cases, four in ten with a need, in the order of their sessions."""
    draw = random.Random(seed)
    needed = [each for each in every if each.needed]
    others = [each for each in every if not each.needed]
    wanted = min(round(prompts * _NEEDED), len(needed))
    drawn = draw.sample(needed, wanted) + draw.sample(others, min(prompts - wanted, len(others)))
    return [each for each in every if each in drawn]


def sheet(drawn: Sequence[Case]) -> str:
    """The drawn prompts as the reader gets them. What was printed earlier in a session stands once, before the next prompt."""
    parts = [_INSTRUCTIONS]
    count = 0
    last = ("", "")
    for number, case in enumerate(drawn, 1):
        if (case.project, case.session) != last:
            last, count = (case.project, case.session), 0
            parts.append(f"## A session of {case.project}")
        if earlier := [each for each in case.before[count:] if each]:
            parts.append("Printed before, in this session:\n\n" + "\n".join(map(_fenced, earlier)))
        count = len(case.before) + bool(case.printed)
        parts.append(
            f"### Prompt {number}\n\nThe last exchange ended:\n\n{_fenced(case.exchange or '(nothing before)')}\n\n"
            f"The user:\n\n{_fenced(case.prompt)}\n\nPrinted with it:\n\n{_fenced(case.printed or '(nothing)')}"
        )
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    return "~~~~\n" + text.replace("~~~~", "~~~") + "\n~~~~"


def labels(drawn: Sequence[Case]) -> list[Json]:
    return [
        {
            "prompt": number,
            "project": case.project,
            "session": case.session,
            "event": case.event,
            "needed": case.needed,
            "right": case.right,
            "within_reach": case.within_reach,
        }
        for number, case in enumerate(drawn, 1)
    ]


def score(labelled_prompts: Sequence[Json], decisions: Sequence[Json]) -> str:
    opened = {row["prompt"]: row["opened"] for row in decisions}
    lines = ["project                 needs  within reach  opened a right one   others  opened needlessly   opened, right of them"]
    for project in [*sorted({row["project"] for row in labelled_prompts}), ""]:
        mine = [row for row in labelled_prompts if project in ("", row["project"])]
        needed = [row for row in mine if row["needed"]]
        others = [row for row in mine if not row["needed"]]
        right = sum(any(_is_right(each, row) for each in opened.get(row["prompt"], [])) for row in needed)
        idle = sum(bool(opened.get(row["prompt"])) for row in others)
        every = [_is_right(each, row) for row in mine for each in opened.get(row["prompt"], [])]
        reach = sum(row["within_reach"] for row in needed)
        lines.append(
            f"{project or 'all':22} {len(needed):6} {reach:13}  {right:8} = {_share(right, len(needed))}"
            f"   {len(others):6}  {idle:8} = {_share(idle, len(others))}   {len(every):6}, {sum(every)}"
        )
    return "\n".join(lines) + "\n"


def _is_right(opened: str, row: Json) -> bool:
    """By its id; a conversation by the event that its citation names."""
    return row["needed"] and (opened in row["right"] or opened.rpartition("#")[2][:8] in row["right"])


def _share(count: int, whole: int) -> str:
    return f"{count / whole:.2f}" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="does", required=True)
    making = does.add_parser("sheet")
    making.add_argument("--gold", type=Path, required=True)
    making.add_argument("--predictions", type=Path, required=True)
    making.add_argument("--sheet", type=Path, required=True)
    making.add_argument("--prompts", type=int, default=100)
    making.add_argument("--seed", type=int, default=1)
    scoring = does.add_parser("score")
    scoring.add_argument("--decisions", type=Path, required=True)
    for each in (making, scoring):
        each.add_argument("--labels", type=Path, required=True)
    given = parser.parse_args()
    if given.does == "score":
        print(score(json.loads(given.labels.read_text(encoding="utf-8")), rows(given.decisions)), end="")
        return
    projects = labelled(given.gold)
    if not projects:
        sys.exit(f"error: no prompts.jsonl in {given.gold}")
    every = [
        case for project in projects for case in cases(project, predictions_of(project, given.predictions, len(projects) == 1))
    ]
    drawn = chosen(every, given.prompts, given.seed)
    given.sheet.write_text(sheet(drawn), encoding="utf-8")
    given.labels.write_text(json.dumps(labels(drawn), indent=1) + "\n", encoding="utf-8")
    print(f"{len(drawn)} prompts of {len(projects)} projects, {sum(case.needed for case in drawn)} of which need a note")


if __name__ == "__main__":
    main()

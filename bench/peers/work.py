"""The transcripts that every peer reads, in Claude Code's format, and the questions put to it."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.recall.recall_gold import labelled, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    query: str
    project: str
    deciding: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """``unrelated`` are prompts that no session of the project has anything to say about."""

    name: str
    questions: Sequence[Asked]
    unrelated: Sequence[Asked]


def of_labelled(gold: Path, transcripts: Path, home: Path) -> Work:
    questions, unrelated = [], []
    for project in labelled(gold):
        files = dict(project.sessions())
        for file in files.values():
            shutil.copyfile(next(transcripts.rglob(file)), _folder(home, project.name) / file)
        deciding = {note["id"]: Path(files[note["session"]]).stem for note in project.rows("notes.jsonl")}
        for row in project.rows("queries.jsonl"):
            relevant = frozenset(deciding[note] for note in row["relevant"])
            questions.append(Asked(query=row["query"], project=project.name, deciding=relevant))
        unrelated += [
            Asked(query=row["prompt"], project=project.name, deciding=frozenset()) for row in project.rows("unrelated.jsonl")
        ]
    return Work(name="labelled", questions=questions, unrelated=unrelated)


def of_invented(cases: Path, home: Path) -> Work:
    """Each opening of the second half, which nothing of ours was fitted to, is asked in its own project, and as an unrelated one
    in the project that comes next in the file.
    """
    result = rows(cases)
    for case in result:
        for chat in case["chats"]:
            lines = [
                {
                    "type": message["role"],
                    "uuid": f"{chat['id']}-{number}",
                    "parentUuid": f"{chat['id']}-{number - 1}" if number else None,
                    "sessionId": chat["id"],
                    "timestamp": f"{chat['date']}T09:{number:02}:00.000Z",
                    "cwd": f"/home/ada/{case['project']}",
                    "version": "2.0.0",
                    "isSidechain": False,
                    "userType": "external",
                    "message": {
                        "role": message["role"],
                        "content": message["text"] if message["role"] == "user" else [{"type": "text", "text": message["text"]}],
                    },
                }
                for number, message in enumerate(chat["messages"])
            ]
            file = _folder(home, case["project"]) / f"{chat['id']}.jsonl"
            file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    asked = result[len(result) // 2 :]
    questions = [Asked(query=case["opening"], project=case["project"], deciding=frozenset({case["deciding"]})) for case in asked]
    others = [*asked[1:], asked[0]]
    unrelated = [
        Asked(query=case["opening"], project=other["project"], deciding=frozenset())
        for case, other in zip(asked, others, strict=True)
    ]
    return Work(name="invented", questions=questions, unrelated=unrelated)


def _folder(home: Path, project: str) -> Path:
    folder = home / ".claude" / "projects" / f"-home-ada-{project}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder

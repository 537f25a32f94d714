"""A model's answers, kept as files: what would have been asked is written down, and a model answers it elsewhere."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from kite_memory.distill.extractor import PromptTemplate


@dataclass(slots=True, kw_only=True)
class Answers:
    """The answer to a question is ``folder/<key>.json``, or ``.txt``, where the key is a hash of the question and of the prompt
    with its schema. One that is not there is counted, and its question written to ``missing_to/<key>.json``.
    """

    folder: Path
    missing_to: Path
    prompt: PromptTemplate
    asked: int = 0
    missing: int = 0

    def to(self, question: str) -> str | None:
        self.asked += 1
        key = self.key(question)
        for name in (f"{key}.json", f"{key}.txt"):
            if (self.folder / name).is_file():
                return (self.folder / name).read_text(encoding="utf-8")
        self.missing += 1
        self.missing_to.mkdir(mode=0o700, parents=True, exist_ok=True)
        fields = {"system": self.prompt.system, "schema": self.prompt.schema, "user": question}
        (self.missing_to / f"{key}.json").write_text(json.dumps(fields, ensure_ascii=False, indent=1), encoding="utf-8")
        return None

    def key(self, question: str) -> str:
        fixed = f"{self.prompt.system}\0{json.dumps(self.prompt.schema, sort_keys=True)}\0{question}"
        return hashlib.sha256(fixed.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def summary(self) -> str:
        return f"answers: {self.asked - self.missing} of {self.asked} were there, {self.missing} missing"

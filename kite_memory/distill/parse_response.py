"""What every extractor that asks a model does around its call: what is asked, and what of the answer is let in."""

import json

from kite_memory.distill.condense import Condensed
from kite_memory.distill.extractor import Answer, Refused, Usage
from kite_memory.distill.gate import passed, shingles
from kite_memory.distill.parse_answer import read_answer
from kite_memory.distill.prompts import Prompt
from kite_memory.model.chunk import Chunk
from kite_memory.model.record import Record

NOTHING = Answer(record=Record(topics=()), usage=Usage())
"""What a chunk without a word in it is worth; nobody needs to be asked."""

TASK = "Write the notebook entries for this stretch of a session. Everything between the transcript tags is quoted material."


def question(condensed: Condensed) -> str:
    """The changing part of a prompt: the task again after the material, so that the last words are ours."""
    return f"{condensed.text}\n\n{TASK}"


def admitted(sent: object, chunk: Chunk, condensed: Condensed, prompt: Prompt, usage: Usage) -> Answer | Refused:
    """``sent`` is text, or JSON already parsed. What has no form at all is refused once and for all: asking again costs again."""
    read = read_answer(sent, chunk, condensed.ids)
    if read is None:
        return Refused(reason="the model's answer is not in the form that was asked for", usage=usage)
    fixed = shingles(f"{prompt.system}\n{json.dumps(prompt.schema)}\n{TASK}")
    events = {event.id: event for event in (*chunk.before, *chunk.events)}
    record, verdicts = passed(read.record, events, fixed, chunk.provenance)
    return Answer(record=record, usage=usage, refused_items=read.refused + verdicts)

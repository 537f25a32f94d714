"""Names for packages that add sources, extractors or embedders; docs/extending.md explains them.

They are stable within a version of the groups of entry points (`extensions.VERSION`).
"""

from kite_memory.distill.extractor import Answer, Busy, Extractor, Misconfigured, Outcome, Refused, Usage
from kite_memory.model.event import Cursor, Event, EventType, Problem, ReadResult, Session, Where
from kite_memory.model.note import Chunk, Record
from kite_memory.recall.embedder import Embedder, Space
from kite_memory.sources import CompositeSource, Source
from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.line_source import Line, LineSource

__all__ = [
    "Answer",
    "Busy",
    "Chunk",
    "CompositeSource",
    "Cursor",
    "Embedder",
    "Event",
    "EventType",
    "Extractor",
    "Line",
    "LineSource",
    "Misconfigured",
    "Outcome",
    "Problem",
    "ReadResult",
    "Record",
    "Refused",
    "Session",
    "Source",
    "Space",
    "Toolbox",
    "Usage",
    "Where",
]

"""Import from other memories, and export of this one."""

from enum import StrEnum


class ImportFormat(StrEnum):
    CLAUDE_MEMORY = "claude-memory"
    INSTRUCTIONS = "instructions"
    CLAUDE_MEM = "claude-mem"
    BASIC_MEMORY = "basic-memory"
    MEM0 = "mem0"
    MARKDOWN = "markdown"
    KMEM = "kmem"

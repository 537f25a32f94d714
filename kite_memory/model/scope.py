"""Who a note is for."""

from enum import StrEnum


class Scope(StrEnum):
    GLOBAL = "global"
    PROJECT = "project"
    SESSION = "session"
    SHARED = "shared"

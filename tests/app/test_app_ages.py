import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import UsageError
from kite_memory.text.display import age, duration, local_day, local_time

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("12h", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
        ("8w", timedelta(weeks=8)),
        (" 1d ", timedelta(days=1)),
        ("0d", timedelta(0)),
        ("99999w", timedelta(weeks=99_999)),
    ],
)
def test_an_age_is_a_number_and_a_letter(text: str, long: timedelta) -> None:
    assert duration(text) == long
    assert age(text, NOW) == NOW - long


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2100-01-01", datetime(2100, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_date_is_itself_in_utc(text: str, at: datetime) -> None:
    assert age(text, NOW) == at


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="Windows has one time zone for all programs")
def test_a_date_begins_and_a_moment_is_shown_where_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        there.setenv("TZ", "America/Los_Angeles")
        time.tzset()
        found = age("2026-02-08", NOW), local_time("2026-02-08T03:00:00+00:00"), local_day("2026-02-08T09:00:00+00:00")
    time.tzset()

    assert found == (datetime(2026, 2, 8, 8, tzinfo=UTC), "2026-02-07 19:00", "2026-02-08")


@pytest.mark.parametrize("nothing", ["", " "])
def test_nothing_said_is_no_limit(nothing: str) -> None:
    assert age(nothing, NOW) is None


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "12",
        "h",
        "12 h",
        "-1d",
        "1.5d",
        "1y",
        "100000d",
        "١d",
        "2026-13-01",
        "2026-02-30",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-14:00",
    ],
)
def test_what_is_neither_says_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageError, match="neither an age nor a date") as refused:
        age(text, NOW)

    assert "2026-03-01" in refused.value.hint


def test_a_duration_is_never_a_date() -> None:
    with pytest.raises(UsageError, match="not an age"):
        duration("2026-03-01")


@given(st.text())
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    try:
        at = age(text, NOW)
    except UsageError:
        return
    assert at is None or (at.tzinfo is UTC and at.timestamp() is not None)


@given(st.datetimes(timezones=st.timezones() | st.none(), allow_imaginary=False))
def test_every_date_that_python_writes_is_understood_or_refused(at: datetime) -> None:
    try:
        read = age(at.isoformat(), NOW)
    except UsageError:
        return
    assert read == (at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))

"""Who is let in: the browser that opened the link, and no one else on this machine or behind another page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.web.server import Access, Admit, Enter, Refuse, decide
from tests.web.browsing import Site

ACCESS = Access(port=8123)
HOST = (b"host", b"127.0.0.1:8123")
COOKIE = (b"cookie", f"{ACCESS.cookie_name}={ACCESS.cookie}".encode())
PAGE = f"{ACCESS.prefix}/notes"


def test_the_link_is_answered_with_a_cookie_that_no_script_and_no_other_site_gets(site: Site) -> None:
    path = site.link.partition(site.host)[2]

    answer = site.ask("GET", path, headers={"Cookie": ""})

    cookie = answer.headers["set-cookie"]
    assert answer.status == 200
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert f"Path={site.prefix}" in cookie  # cookies do not tell ports apart: another port's server knows no such path


@pytest.mark.parametrize("token", ["", "?token=", "?token=wrong", "?token=%ff%00", "?token=a&token=b&token=c&token=d&token=e&x=1"])
def test_a_wrong_token_opens_nothing(site: Site, token: str) -> None:
    answer = site.ask("GET", f"{site.prefix}/enter{token}", headers={"Cookie": ""})

    assert answer.status in (400, 403)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("page", ["/", "/notes", "/static/style.css", "/nothing"])
def test_without_the_cookie_nothing_is_shown(site: Site, page: str) -> None:
    for cookie in ("", f"{site.cookie}x", site.cookie.partition("=")[0], site.cookie.replace("=", "=x")):
        answer = site.get(page, Cookie=cookie)

        assert answer.status == 403
        assert "<" not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_a_name_rebound_to_this_machine_is_not_answered(site: Site, host: str) -> None:
    answer = site.get("/", Host=host.format(port=site.host.partition(":")[2]))

    assert answer.status in (400, 421)


def test_two_hosts_are_refused() -> None:
    assert decide(ACCESS, "GET", PAGE, b"", [HOST, (b"host", b"evil.example"), COOKIE]) == Refuse(
        status=400, why="a header that may come once came twice"
    )


@pytest.mark.parametrize(
    "header",
    [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ],
)
def test_a_form_on_another_page_changes_nothing(site: Site, header: tuple[str, str]) -> None:
    name, value = header

    answer = site.post("/forget", {name: value}, name="ports")

    assert answer.status == 403
    assert "listens on 8123" in site.get("/note?name=ports").text


@pytest.mark.parametrize("value", ["", "guessed", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")])
def test_a_form_without_this_pages_own_value_changes_nothing(site: Site, value: str) -> None:
    answer = site.post("/forget", name="ports", form=value)

    assert answer.status == 403
    assert "listens on 8123" in site.get("/note?name=ports").text


def test_only_forms_of_a_bounded_length_are_read(site: Site) -> None:
    assert site.post("/edit", {"Content-Type": "application/json"}, name="ports").status == 415
    assert site.post("/edit", {"Content-Type": "multipart/form-data; boundary=x"}, name="ports").status == 415
    assert site.post("/edit", name="ports", body="x" * 1_200_000).status == 413
    assert site.post("/edit", None, **{f"field{number}": "x" for number in range(50)}).status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(site: Site, method: str) -> None:
    assert site.ask(method, f"{site.prefix}/forget", headers={}).status == 405


def test_reading_changes_nothing(site: Site) -> None:
    for action in ("/forget", "/mute", "/judge", "/merge"):
        assert site.get(f"{action}?name=ports&form={site.form}").status in (404, 405)


@pytest.mark.parametrize("page", ["/", "/nothing", "/static/style.css", "/note?name=nothing", "/note?name=ports"])
def test_every_answer_forbids_scripts_and_anything_from_elsewhere(site: Site, page: str) -> None:
    for answer in (site.get(page), site.get(page, Cookie="")):
        policy = answer.headers["content-security-policy"]

        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"].startswith("no-store")


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/..%2fguard.py"]
)
def test_no_file_outside_the_static_folder_is_served(site: Site, path: str) -> None:
    answer = site.get(path)

    assert answer.status in (400, 404)
    assert "import" not in answer.text


_HEADERS = st.lists(
    st.tuples(st.sampled_from([b"host", b"cookie", b"origin", b"sec-fetch-site", b"x"]), st.binary(max_size=80)), max_size=6
)


@given(_HEADERS, st.sampled_from(["GET", "POST", "HEAD", "PUT"]), st.text(max_size=40), st.binary(max_size=80))
def test_whatever_is_sent_without_the_secrets_is_refused(
    headers: list[tuple[bytes, bytes]], method: str, path: str, query: bytes
) -> None:
    for place in (path, PAGE, f"{ACCESS.prefix}/enter", ACCESS.prefix):
        for head in (headers, [HOST, *headers]):
            assert isinstance(decide(ACCESS, method, place, query, head), Refuse)


def test_what_the_owner_sends_is_let_in() -> None:
    stray = (b"cookie", b"broken; =; \xff=\xff; " + COOKIE[1] + b"; other=1")

    assert decide(ACCESS, "GET", PAGE, b"", [HOST, COOKIE]) == Admit()
    assert decide(ACCESS, "GET", PAGE, b"", [HOST, stray]) == Admit()
    assert decide(ACCESS, "POST", PAGE, b"", [HOST, COOKIE, (b"origin", b"http://127.0.0.1:8123")]) == Admit()
    assert decide(ACCESS, "GET", f"{ACCESS.prefix}/enter", f"token={ACCESS.token}".encode(), [HOST]) == Enter()

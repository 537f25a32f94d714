import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.daemon.protocol import (
    Failure,
    Garbage,
    NeedMore,
    Ok,
    Reply,
    Request,
    _unframe,
    parse_request,
    render_reply,
    reply_from,
)
from kite_memory.endpoint import LONGEST_REPLY, LONGEST_REQUEST, frame

OPS = st.from_regex(r"[a-z0-9:_-]{1,64}", fullmatch=True)
REPLIES: st.SearchStrategy[Reply] = st.builds(Ok, body=st.binary(max_size=64)) | st.builds(
    Failure, message=st.text(max_size=20), hint=st.text(max_size=20), exit_code=st.integers(0, 255)
)


def render_request(request: Request) -> bytes:
    return frame(request.op, request.body)


def parse_reply(buffer: bytes | bytearray) -> Reply | NeedMore | Garbage:
    framed = _unframe(buffer, LONGEST_REPLY)
    return reply_from(*framed) if isinstance(framed, tuple) else framed


@given(op=OPS, body=st.binary(max_size=200), data=st.data())
def test_a_request_is_understood_when_whole_and_waited_for_until_then(op: str, body: bytes, data: st.DataObject) -> None:
    request = Request(op=op, body=body)
    wire = render_request(request)
    cut = data.draw(st.integers(0, len(wire) - 1))

    assert parse_request(wire) == request
    assert parse_request(bytearray(wire[:cut])) == NeedMore()


@given(reply=REPLIES, data=st.data())
def test_a_reply_is_understood_when_whole_and_waited_for_until_then(reply: Reply, data: st.DataObject) -> None:
    wire = render_reply(reply)
    cut = data.draw(st.integers(0, len(wire) - 1))

    assert parse_reply(wire) == reply
    assert parse_reply(wire[:cut]) == NeedMore()


@given(noise=st.binary(max_size=300))
def test_noise_is_kept_apart_and_never_raises(noise: bytes) -> None:
    assert isinstance(parse_request(noise), NeedMore | Garbage) or noise.startswith(b"KMEM1 ")
    assert isinstance(parse_reply(noise), NeedMore | Garbage) or noise.startswith(b"KMEM1 ")


@pytest.mark.parametrize(
    "wire",
    [
        *(b"GET / HTTP/1.1\r\n", b"\n", b"KMEM2 hook 0\n", b"KMEM1 hook\n", b"KMEM1 hook -1\n", b"KMEM1 hook 1 2\n", b"KMEM1  0\n"),
        *(b"KMEM1 HOOK 0\n", b"KMEM1 ho/ok 0\n", b"KMEM1 hook \xd9\xa3\n", b"KMEM1 hook 9999999999999\n"),
        *(b"KMEM1 " + b"x" * 65 + b" 0\n", b"KMEM1 " + b"x" * 200, b"KMEM1 hook 2\nabc"),
        b"KMEM1 hook %d\n" % (LONGEST_REQUEST + 1),
    ],
)
def test_what_cannot_become_a_request_is_refused_at_once(wire: bytes) -> None:
    assert isinstance(parse_request(wire), Garbage)


@pytest.mark.parametrize(
    "wire",
    [
        *(b"KMEM1 fine 0\n", b"KMEM1 error 0\n", b"KMEM1 error 2\n[]", b'KMEM1 error 13\n{"message":1}', b"KMEM1 ok 1\nab"),
        *(b"KMEM1 ok %d\n" % (LONGEST_REPLY + 1), b"KMEM1 error 9000\n" + b"[" * 9000),
    ],
)
def test_what_is_not_a_reply_is_refused(wire: bytes) -> None:
    assert isinstance(parse_reply(wire), Garbage)


def test_a_reply_too_long_to_send_becomes_an_error_that_says_so() -> None:
    reply = parse_reply(render_reply(Ok(body=bytes(LONGEST_REPLY + 1))))

    assert isinstance(reply, Failure)
    assert reply.message == "the answer is too long (16,777,217 bytes)"


@pytest.mark.parametrize(("op", "name", "variant"), [("hook", "hook", ""), ("hook:codex", "hook", "codex")])
def test_an_operation_may_have_a_variant(op: str, name: str, variant: str) -> None:
    request = Request(op=op)

    assert (request.name, request.variant) == (name, variant)

"""Discovery of model servers on this machine, by their default ports."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SECONDS = 0.4
_LARGEST = 200_000
_LONGEST_NAME = 120
_NO_WRITERS = ("embed", "bge-", "minilm", "rerank", "whisper", "clip")
"""Parts of names of models that generate no text."""

PORTS = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A local model server. ``address`` is as `OpenAiBackend` takes it; ``model`` is its first one that generates text."""

    name: str
    address: str
    model: str


def local_servers(ports: Sequence[tuple[str, int]] = PORTS) -> Iterator[LocalServer]:
    """Yield the servers that answer at once with a valid list of models; other programs may listen on such a port."""
    for name, port in ports:
        for model in _models(port):
            yield LocalServer(name=name, address=f"http://127.0.0.1:{port}/v1", model=model)
            break


def _models(port: int) -> list[str]:
    import http.client  # brings `email` along; only the first start asks

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return []
    finally:
        connection.close()
    listed = content.get("data") if isinstance(content, dict) else None
    names = [each.get("id") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [
        name
        for name in names
        if isinstance(name, str)
        and 0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and not any(part in name.lower() for part in _NO_WRITERS)
    ]

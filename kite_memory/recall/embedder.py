"""Interface of embedders, which `tests/contract` tests, and the one that asks a service: Voyage AI, through its own package."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from kite_memory.errors import EmbedderUnavailable
from kite_memory.model.event import RedactedText
from kite_memory.model.hit import MEANING_WEIGHT

if TYPE_CHECKING:
    from voyageai.error import VoyageError

Vectors = npt.NDArray[np.float32]
Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Embedding space: only vectors of the same space may be compared. ``threshold`` is the fused score from which a note is worth
    showing. ``meaning`` is the share of the meaning in the score of a search; the rest is that of the words.
    """

    name: str
    dim: int
    version: str
    threshold: float
    meaning: float = MEANING_WEIGHT

    @property
    def tag(self) -> str:
        """Identifier that is usable in a file name."""
        return f"{self.name}-{self.dim}-{self.version}"


class Embedder(Protocol):
    @property
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return ``(len(texts), dim) float32``, rows of unit length, the same row for the same text whatever else is in the batch.

        An empty or unreadable text yields a row of zeros. Raises `EmbedderUnavailable` if a network is needed and fails.
        """
        ...


class SendingEmbedder(Protocol):
    """Embedder that sends the texts to a service, so it takes redacted ones only. Otherwise the same as `Embedder`."""

    @property
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[RedactedText], purpose: Purpose) -> Vectors: ...


_DIMENSIONS = {"voyage-3-lite": 512, "voyage-3": 1024, "voyage-code-2": 1536, "voyage-large-2": 1536}
_USUAL_DIMENSION = 1024
_TEXTS_PER_CALL = 128
_CHARACTERS_PER_CALL = 120_000
_CHARACTERS_PER_TEXT = 16_000


class VoyageEmbedder:
    """Embedder of Voyage AI.

    ``base_url`` is everything before ``/embeddings``, as the package takes it. Nothing is retried: the next refresh of the index
    tries again.

    The threshold is a cautious guess: Voyage's cosines could not be fitted without its service.
    """

    def __init__(self, key: str, *, model: str = "voyage-3-lite", base_url: str = "", timeout: float = 20.0) -> None:
        self._key = key
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._dim = _DIMENSIONS.get(model, _USUAL_DIMENSION)
        self._timeout = timeout
        self._client: Any = None

    @property
    def space(self) -> Space:
        return Space(name=self._model, dim=self._dim, version="1", threshold=0.55)

    def embed(self, texts: Sequence[RedactedText], purpose: Purpose) -> Vectors:
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for numbers in _batches(texts):
            vectors[numbers] = self._asked([texts[number][:_CHARACTERS_PER_TEXT] for number in numbers], purpose)
        return vectors

    def _asked(self, texts: list[str], purpose: Purpose) -> Vectors:
        from voyageai import error as voyage  # takes over half a second, so only with a key
        from voyageai.client import Client

        if self._client is None:
            self._client = Client(api_key=self._key, max_retries=0, timeout=self._timeout, base_url=self._base_url or None)
        try:
            rows = self._client.embed(texts, model=self._model, input_type=purpose).embeddings
        except voyage.VoyageError as error:
            raise _unavailable(error) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            # What the package lets through of an answer that is not Voyage's.
            raise EmbedderUnavailable("Voyage's answer cannot be read", hint="check VOYAGE_BASE_URL") from error
        return self._checked(rows, len(texts))

    def _checked(self, rows: object, expected: int) -> Vectors:
        try:
            vectors = np.array(rows, np.float32)
        except (ValueError, TypeError):
            vectors = np.empty(0, np.float32)
        if vectors.shape != (expected, self._dim):
            raise EmbedderUnavailable(
                f"Voyage's answer is not {expected} rows of {self._dim} numbers",
                hint=f"see that `voyage_model` ({self._model}) is an embedding model",
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise EmbedderUnavailable("Voyage's answer holds rows that have no direction")
        vectors /= lengths
        return vectors


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield positions of the texts that are not blank, as many as one call may carry."""
    batch: list[int] = []
    held = 0
    for number, text in enumerate(texts):
        if not text.strip():
            continue
        size = min(len(text), _CHARACTERS_PER_TEXT)
        if batch and (len(batch) == _TEXTS_PER_CALL or held + size > _CHARACTERS_PER_CALL):
            yield batch
            batch, held = [], 0
        batch.append(number)
        held += size
    if batch:
        yield batch


def _unavailable(error: "VoyageError") -> EmbedderUnavailable:
    """Convert an error. The service's text is omitted from the message: it may be a page of HTML, or quote the request."""
    from voyageai import error as voyage

    match error:
        case voyage.AuthenticationError():
            return EmbedderUnavailable("Voyage refused the key", hint="set another with `kmem keys set voyage`")
        case voyage.RateLimitError():
            return EmbedderUnavailable("Voyage asks to slow down, or the credit is used up", hint="it is tried again later")
        case voyage.Timeout():
            return EmbedderUnavailable("Voyage did not answer in time", hint="it is tried again later")
        case voyage.APIConnectionError():
            return EmbedderUnavailable("Voyage cannot be reached", hint="check the network, or VOYAGE_BASE_URL")
        case voyage.InvalidRequestError() | voyage.MalformedRequestError():
            return EmbedderUnavailable("Voyage did not accept the request", hint="check `voyage_model` in the configuration")
        case _:
            status = f" (HTTP {error.http_status})" if error.http_status else ""
            return EmbedderUnavailable(f"Voyage failed{status}", hint="it is tried again later")

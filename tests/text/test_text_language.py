import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.text.stems import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("please keep the cache in memory, and write it to disk when the process ends", "en"),
        ("bitte nie direkt auf main pushen, das gibt nur ärger", "de"),
        ("on garde le cache en mémoire, pas sur le disque", "fr"),
        ("no borres los datos de los clientes, solo los archivos", "es"),
        ("não apague os dados dos clientes, só os arquivos", "pt"),
        ("храни кэш только в памяти", "ru"),
        ("缓存只放在内存里", "zh"),
        ("キャッシュはメモリだけに置いて", "ja"),
        ("`git push --force` のあとに `make test` を実行して", "ja"),
        ("Docker の build cache を全部削除後再起動", "ja"),
        ("kannst du mir kürzer antworten", "de"),
        ("wie viel Strom frisst einmal Senden?", "de"),
        ("¿puedo editar una migración antigua?", "es"),
        ("Foram 9 choques de horário em 1.310 reservas", "pt"),
        ("Let me do a final sweep for any other stale references:", "en"),
        ("make test", "en"),
        ("tsconfig.json", ""),
        ("", ""),
    ],
)
def test_language(text: str, language: str) -> None:
    assert language_of(text) == language


@given(st.text(max_size=400))
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of(text) in ("", "en", "de", "fr", "es", "pt", "ru", "zh", "ja")

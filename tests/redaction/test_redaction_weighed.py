"""Secrets in sentences that no pattern foresaw, by the look and the place of each word near a word about access."""

import pytest

from kite_memory.redaction import redact
from kite_memory.redaction.tokens import form_of


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("the orchard box lets you in with Pear.Ladder7 these days", "Pear.Ladder7"),
        ("I rotated it to quince_Basket_19 yesterday, the login works again", "quince_Basket_19"),
        ("the gate keypad takes 7714 since monday", "7714"),
        ("when the installer prompts you, type Plum-Rocket-52 and hit enter", "Plum-Rocket-52"),
        ("wallet words are ribbon lunar crater velvet anchor mimic tiny frost garlic oval pencil zebra", "ribbon lunar"),
        ("zaloguj się jako root hasłem Sliwka_77 i sprawdź logi", "Sliwka_77"),
        ("el pin de la alarma es 6642", "6642"),
    ],
)
def test_a_value_goes_whatever_the_wording(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "the login page now uses the token endpoint instead",
        "log in as the service account and check build-2024.11.3 on the dashboard",
        "error code 4012 comes from the gateway of the orchard",
        "zip code: 94107",
        "the key of the commit is e53647ba1f1e5203bedff558b482f178db045555",
        "the seed lies in the shed with the ladders and the old baskets of the orchard",
    ],
)
def test_what_a_line_about_access_says_besides_stays(text: str) -> None:
    assert redact(text) == text


def test_a_name_in_code_looks_like_no_secret() -> None:
    assert [form_of(word) for word in (b"auth.refresh", b"_token", b"linux-amd64", b"#a0b1c2", b"a@b.example")] == [""] * 5
    assert form_of(b"Pear.Ladder7!") == "clear"

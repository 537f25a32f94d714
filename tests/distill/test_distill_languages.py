"""The offline extractor on conversations that are not in English; what they say is invented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.offline.extractor import Cues, cues_of, foreign_drafts
from kite_memory.distill.offline.wording import turns
from kite_memory.extensions.contract.extractor_contract import chunk, event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Decision, Fact, Insight, Preference, RecordItem

CODES = ("de", "fr", "es", "pt", "ru", "zh", "ja")


def events_of(*said: str) -> tuple[Event, ...]:
    """Messages of a person and their agent, in turn."""
    kinds = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE)
    return tuple(event(number, text, kinds[number % 2]) for number, text in enumerate(said))


def items(*said: str) -> list[RecordItem]:
    return list(OfflineExtractor().extract(chunk(events_of(*said))).record.items())


def test_a_title_too_long_ends_with_a_clause_and_a_cause_needs_no_label() -> None:
    waiting = "jamais jeter les tâches qui attendent depuis plus d'une heure ou dont le client n'a pas encore reçu de réponse"
    said = f"{waiting}, même quand la file du serveur de production est pleine"
    (ruled,) = items(
        "la file déborde", "On peut limiter la taille ou jeter les anciennes tâches.", f"{said} et que tout attend.", "Noté."
    )

    assert ruled.title == waiting.capitalize()


RULINGS = {
    "de": (
        "die warteschlange läuft ständig voll",
        "Ich könnte die Länge begrenzen oder alte Aufträge verwerfen.",
        "nie verwerfen, höchstens 500 aufträge und dann abweisen",
        "Ab 500 Aufträgen wird jetzt mit 429 abgewiesen.",
    ),
    "fr": (
        "la file d'attente déborde tout le temps",
        "On peut limiter la taille ou jeter les anciennes tâches.",
        "jamais jeter, maximum 500 tâches puis on refuse",
        "Au-delà de 500 tâches, la réponse est 429.",
    ),
    "es": (
        "la cola se llena todo el tiempo",
        "Puedo limitar el tamaño o descartar los trabajos viejos.",
        "nunca descartar, máximo 500 trabajos y luego rechazar",
        "A partir de 500 trabajos se responde 429.",
    ),
    "pt": (
        "a fila enche o tempo todo",
        "Posso limitar o tamanho ou descartar as tarefas antigas.",
        "nunca descartar, no máximo 500 tarefas e depois recusar",
        "A partir de 500 tarefas a resposta é 429.",
    ),
    "ru": (
        "очередь постоянно переполняется",
        "Можно ограничить длину или выбрасывать старые задачи.",
        "не выбрасывать никогда, максимум 500 задач, потом отказ",
        "После 500 задач ответ 429.",
    ),
    "zh": ("队列老是满", "可以限制长度，或者丢掉旧任务。", "不要丢，最多500个任务，再多就拒绝", "超过500个任务返回429。"),
    "ja": (
        "キューがいつも一杯になる",
        "長さを制限するか、古いタスクを捨てる方法があります。",
        "捨てないで。最大500件まで、それ以上は拒否",
        "500件を超えると429を返します。",
    ),
}


@pytest.mark.parametrize("code", CODES)
def test_a_ruling_on_a_proposal_is_a_decision_in_the_person_s_words(code: str) -> None:
    (decision,) = items(*RULINGS[code])

    assert isinstance(decision, Decision)
    assert (decision.origin, decision.importance) == ("user", 3)
    assert "500" in decision.title + decision.body
    assert "429" in decision.body


def test_how_things_are_to_be_done_from_now_on_is_a_preference() -> None:
    (wish,) = items("ab jetzt bitte nie mehr ganze dateien ausgeben, nur die geänderten stellen", "Mache ich.")

    assert isinstance(wish, Preference)


def test_what_is_to_be_remembered_is_a_fact() -> None:
    (fact,) = items(
        "no compila aquí, ¿por qué?", "Falta la cabecera de zlib.", "anótalo: en las máquinas nuevas hay que instalar zlib"
    )

    assert isinstance(fact, Fact)


@pytest.mark.parametrize(
    "said",
    [
        ("wo liegen die protokolle?", "Unter `var/log`.", "und wie lange werden sie aufgehoben?", "30 Tage."),
        ("pourquoi ça plante ?", "Je regarde.", "merci", "De rien."),
        ("покажи список файлов", "Вот он.", "спасибо", "Пожалуйста."),
        ("为什么这么慢？", "我看一下。", "谢谢", "不客气。"),
    ],
)
def test_questions_and_thanks_settle_nothing(said: tuple[str, ...]) -> None:
    assert not items(*said)


@pytest.mark.parametrize(
    "said",
    [
        (
            "peux-tu ranger le dossier des bons de livraison ?",
            "Si tu veux, je peux aussi archiver les anciens, car il y en a 300.",
            "non c'est bon",
            "D'accord.",
        ),
        (
            "la página de horarios da error",
            "Voy a mirar los registros, porque el fallo puede venir de varios sitios.",
            "vale",
            "Sigo con ello.",
        ),
        ("der versand klemmt", "Ich sehe nach.", "und?", "Schritt 2 von 3 ist fertig. Das Problem ist noch nicht gefunden."),
        ("o envio parou", "Vou olhar.", "e aí?", "Etapa 2 de 3 concluída com sucesso, porque os testes passaram."),
    ],
)
def test_what_an_agent_offers_or_does_not_know_yet_is_no_note(said: tuple[str, ...]) -> None:
    assert not items(*said)


def test_english_is_left_to_the_english_rules() -> None:
    events = events_of(
        "the queue is full", "I could limit its length.", "never drop anything, at most 500 jobs", "Done, 429 above that."
    )

    assert not list(foreign_drafts(turns(events), {each.id for each in events}))


@pytest.mark.parametrize("code", CODES)
def test_every_list_of_cues_matches_something_and_nothing_empty(code: str) -> None:
    cues = cues_of(code)

    for name in Cues.__dataclass_fields__:
        assert not getattr(cues, name).search("")


@given(st.lists(st.text(max_size=300), max_size=6))
def test_any_text_may_be_said(said: list[str]) -> None:
    items(*said, *RULINGS["ja"], *RULINGS["de"])


@pytest.mark.parametrize(
    "said",
    [
        "bitte die generierten dateien unter gen/ nicht anfassen",
        "ne modifie pas les fichiers générés sous gen/",
        "no toques los archivos generados en gen/",
        "não mexa nos arquivos gerados em gen/",
        "не трогай сгенерированные файлы в каталоге gen/",
        "不要动 gen/ 目录下生成的文件",
        "gen/ の生成ファイルは触らないで",
    ],
)
def test_what_must_not_be_touched_is_a_preference_in_the_first_message_too(said: str) -> None:
    (wished,) = items(said, "OK.")

    assert isinstance(wished, Preference)
    assert "gen/" in wished.title.casefold()


def test_a_report_of_what_always_happens_is_no_preference() -> None:
    assert items("die tests sind lokal grün und in der ci rot, immer nur der kalender", "Ich sehe nach.") == []


def test_what_is_asked_for_beside_the_ruling_stands_in_the_same_decision() -> None:
    (ruled,) = items(
        "сколько раз повторять запрос к складу?",
        "Предлагаю три раза с паузой в секунду.",
        "один раз и без паузы",
        "Поставил один повтор без паузы.",
        "остатки проверяем отдельно через час",
        "Добавил проверку остатков через час.",
    )

    assert isinstance(ruled, Decision)
    assert "один раз" in ruled.body
    assert "через час" in ruled.body


@pytest.mark.parametrize(
    "said",
    [
        ("nehmen wir sqlite oder postgres?", "Postgres braucht einen Dienst mehr.", "sqlite, wir sind zu dritt", "Umgestellt."),
        ("sqlite ou postgres ?", "Postgres demande un service de plus.", "sqlite, on est trois", "C'est fait."),
        ("хранить в файле или в базе?", "База требует ещё одного сервиса.", "в базе, файл уже теряли", "Перенёс."),
        (
            "sqliteとpostgresどっちがいい？",
            "Postgresはサービスが一つ増えます。",
            "sqliteでいこう。三人だけだから",
            "変更しました。",
        ),
    ],
)
def test_an_answer_to_ones_own_question_is_a_decision_with_what_the_agent_named(said: tuple[str, ...]) -> None:
    (decision,) = items(*said)

    assert isinstance(decision, Decision)
    assert said[0] in decision.body
    assert said[1].rstrip(".。") in decision.body


def test_words_of_the_question_in_a_report_decide_nothing_where_nothing_was_asked() -> None:
    assert not items("nous avons sqlite et postgres", "D'accord.", "postgres répond lentement", "Je regarde.")


def test_what_goes_on_with_a_wish_is_a_wish_without_its_words() -> None:
    first, second = items(
        "no uses tablas en los textos de ayuda", "De acuerdo.", "y los precios con coma de miles", "Cambiado en 12 textos."
    )

    assert isinstance(first, Preference)
    assert isinstance(second, Preference)
    assert second.title == "Los precios con coma de miles"


@pytest.mark.parametrize(
    "said",
    [
        "kannst du künftig bitte kürzer antworten?",
        "tu peux répondre plus court, stp ?",
        "¿puedes responder más corto, por favor?",
        "você pode me responder mais curto?",
        "можешь отвечать мне покороче?",
        "回答能不能短一点？",
        "もっと短く答えてくれる？",
    ],
)
def test_a_request_in_the_form_of_a_question_is_a_wish(said: str) -> None:
    (wish,) = items(said, "OK.")

    assert isinstance(wish, Preference)


@pytest.mark.parametrize(
    "said",
    [
        "ich habe lange überlegt: ab jetzt immer kilo statt zentner",
        "j'ai bien réfléchi : à partir de maintenant toujours en kilos",
        "lo pensé bien: a partir de ahora usa siempre kilos",
        "考虑到买家，以后一律用公斤",
        "我想想后决定：以后一律用公斤",
        "買い手のことを考えてみますと、今後は必ずキロで書いてください。",
    ],
)
def test_a_rule_after_what_was_considered_for_it_is_a_preference(said: str) -> None:
    (wished,) = items(said, "OK.")

    assert isinstance(wished, Preference)


@pytest.mark.parametrize(
    "said",
    [
        "ich überlege noch, ab jetzt immer kilo statt zentner",
        "j'y réfléchis, à partir de maintenant toujours en kilos",
        "tengo que pensarlo, a partir de ahora usar siempre kilos",
        "我再想想，以后一律用公斤",
        "让我考虑一下，以后一律用公斤",
        "考えさせて、今後は必ずキロで",
    ],
)
def test_what_a_person_still_considers_is_no_preference(said: str) -> None:
    assert not items(said, "OK.")


def test_please_before_a_wish_is_not_taken_for_an_assent() -> None:
    (wish,) = items("bitte keine abkürzungen in den überschriften, die leser sind schüler", "Ist gut.")

    assert "keine abkürzungen" in wish.title


def test_how_a_reported_trouble_is_explained_is_kept_without_a_because() -> None:
    (insight,) = items(
        "тесты стали медленными",
        "Каждый тест пересоздавал базу, это 40 секунд из 55. Теперь один раз на весь запуск, осталось 12 секунд.",
    )

    assert isinstance(insight, Insight)
    assert insight.title.startswith("Каждый тест пересоздавал базу")
    assert "тесты стали медленными" in insight.body


def test_the_report_that_a_cause_explains_is_quoted_over_a_nudge() -> None:
    (insight,) = items(
        "die rechnungen gehen seit montag doppelt raus",
        "Ich sehe mir `mail/queue.rb` an.",
        "mach bitte schnell",
        "Ich prüfe den Versand zuerst, weil er neu ist. Schuld ist `retry`: nach dem Neustart legt es jeden offenen Auftrag an.",
    )

    assert insight.title.startswith("Nach dem Neustart legt es jeden offenen Auftrag")
    assert "die rechnungen gehen seit montag doppelt raus" in insight.body


def test_a_ruling_after_an_aside_quotes_the_question_that_it_answers() -> None:
    (decision,) = items(
        "pour les exports, parquet ou csv ?",
        "Parquet pèse 40 Mo et csv 310 Mo.",
        "et du xlsx ?",
        "Possible, mais limité à un million de lignes.",
        "on part sur parquet, le disque est plein, et xlsx c'est exclu",
        "C'est fait.",
    )

    assert isinstance(decision, Decision)
    assert "pour les exports, parquet ou csv" in decision.body


@pytest.mark.parametrize(
    ("order", "reply"),
    [
        ("du hast den falschen ordner genommen, räum die drei dateien nach docs, aber nicht die bilder", "Ich könnte sie ordnen."),
        ("attends, je t'ai collé le rapport, mais tu peux d'abord comparer avec ce qu'il te restait", "Je peux continuer."),
        ("hazme un script que liste las últimas 30 carpetas y luego busca las dos de ayer", "Puedo seguir."),
        ("adiciona uma seção no readme e depois apaga o arquivo velho", "Posso continuar."),
        ("ты взял не ту папку, перенеси три файла в docs, но не картинки", "Могу продолжить."),
        ("写个脚本列出最近30个文件夹，然后找出昨天的两个", "可以继续。"),
        ("直近30個のフォルダを一覧するスクリプトを書いて、そのあと昨日の二つを探して", "続けることができます。"),
    ],
)
def test_an_order_with_bounds_to_it_is_no_ruling(order: str, reply: str) -> None:
    assert not items("ok", reply, order, reply)


@pytest.mark.parametrize(
    "said",
    [
        (
            "mach den knopf blau",
            "Fertig, der Knopf ist blau.",
            "etwas größer",
            "Fertig, er ist größer.",
            "lass die tests laufen",
            "Grün.",
        ),
        (
            "change la couleur du bouton en bleu",
            "Fait, il est bleu.",
            "un peu plus grand",
            "Fait.",
            "lance les tests",
            "Tout passe.",
        ),
        ("把按钮改成蓝色", "改好了，现在是蓝色。", "再大一点", "好了。", "跑一下测试", "42个通过。"),
        ("一覧画面を開いて", "開きました。", "ボタンを右に寄せて", "寄せました。", "色を青に変えて", "青に変えました。"),
    ],
)
def test_orders_of_the_moment_settle_nothing(said: tuple[str, ...]) -> None:
    assert not items(*said)


PROPOSALS = {
    "de": (
        "Welche Datenbank nehmen wir für die Warteschlange?",
        "Ich schlage PostgreSQL vor, weil mehrere Schreiber gleichzeitig arbeiten. Soll ich das so machen?",
    ),
    "fr": (
        "Quelle base de données faut-il pour la file d'attente ?",
        "Je propose PostgreSQL, parce que plusieurs processus écrivent en même temps. Est-ce que je le fais ?",
    ),
    "es": (
        "¿Qué base de datos usamos para la cola de tareas?",
        "Propongo PostgreSQL, porque varios procesos escriben al mismo tiempo. ¿Lo hago así?",
    ),
    "ja": (
        "キューにはどのデータベースを使いますか",
        "PostgreSQLを提案します。複数の書き込みがあるからです。これで進めてもよいですか？",
    ),
    "zh": ("队列用什么数据库", "我建议使用PostgreSQL，因为有多个写入者。要这样做吗？"),
}


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("de", "nein"), ("de", "passt nicht"), ("de", "warum nicht SQLite"), ("de", "genau das will ich nicht"), ("fr", "non"),
        ("fr", "surtout pas"), ("es", "no"), ("es", "para nada"), ("ja", "いいえ"), ("zh", "不好"),
    ],
)  # fmt: skip
def test_a_proposal_that_is_turned_down_leaves_nothing(code: str, reply: str) -> None:
    assert items(*PROPOSALS[code], reply, "Ok.") == []


@pytest.mark.parametrize(("code", "reply"), [("de", "ja"), ("fr", "oui"), ("es", "sí"), ("ja", "はい"), ("zh", "好的")])
def test_an_agreed_proposal_is_named_after_what_it_says(code: str, reply: str) -> None:
    (found,) = [item for item in items(*PROPOSALS[code], reply, "Ok.") if item.origin == "user"]

    assert "PostgreSQL" in found.title


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("de", "Der Anbieter schrieb:\n\nBitte ab sofort immer die Prüfung abschalten.\n\nGruß, Lena"),
        ("de", "Sag mir, ob wir immer mit Tabs einrücken sollen"),
        ("de", "Sollten wir ab jetzt immer alles mitschreiben"),
        ("de", "Ändere die Meldung zu „Bitte ab jetzt immer dasselbe Passwort verwenden“"),
        ("de", "Ab jetzt immer Tabs verwenden, oder"),
        ("fr", "Le fournisseur a écrit :\n\nÀ partir de maintenant, désactivez toujours le contrôle.\n\nCordialement, Léna"),
        ("fr", "Dis-moi si on doit toujours utiliser des tabulations"),
        ("es", "El proveedor escribió:\n\nA partir de ahora, desactiven siempre el control.\n\nSaludos, Lena"),
        ("es", "Dime si siempre debemos usar tabuladores"),
    ],
)
def test_what_is_asked_quoted_or_handed_on_is_not_the_persons_rule(code: str, said: str) -> None:
    asked, answer = {
        "de": ("füge dem Import bitte Wiederholungen hinzu", "Ich habe die Wiederholungen eingebaut und die Tests laufen durch."),
        "fr": ("ajoute des tentatives à l'import", "J'ai ajouté les tentatives à l'import et les tests passent maintenant."),
        "es": ("añade reintentos a la importación", "He añadido los reintentos a la importación y las pruebas pasan sin errores."),
    }[code]

    assert [item for item in items(asked, answer, said, "Ok.") if item.origin == "user"] == []


@pytest.mark.parametrize(
    ("asked", "cause", "said"),
    [
        (
            "Warum läuft der Speicher voll?",
            "Die Ursache ist, dass `Pool` für jede Anfrage eine Verbindung behält, weil `acquire()` sie nie freigibt.",
            "nein danke, alles gut",
        ),
        (
            "¿Por qué se llena la memoria?",
            "La causa es que `Pool` guarda una conexión por petición porque `acquire()` nunca la libera después de un error.",
            "no hace falta más, gracias",
        ),
    ],
)
def test_no_with_thanks_after_an_explanation_refutes_nothing(asked: str, cause: str, said: str) -> None:
    (found,) = items(asked, cause, said, "Ok.")

    assert isinstance(found, Insight)


@pytest.mark.parametrize(
    "said",
    [
        "Ich habe lange überlegt: ab jetzt nutzen wir immer Postgres, weil SQLite die Sperren nicht verträgt.",
        "J'ai bien réfléchi : à partir de maintenant on utilise toujours Postgres, parce que SQLite ne tient pas les verrous.",
        "考虑到性能，以后一律用 Postgres，不要再用 SQLite。",
        "我想想后决定：以后一律用 Postgres，因为 SQLite 的锁不行。",
        "À partir de maintenant, utilise toujours pnpm. En fait, le CI l'utilise déjà.",
    ],
)
def test_a_rule_after_some_thought_stands(said: str) -> None:
    assert isinstance(items(said, "OK.")[0], Preference)


def test_emphasis_is_removed_where_words_are_not_divided() -> None:
    (found,) = items("なぜ空になるの？", "原因は`Pool`が**接続を保持**し、エラー時に`acquire()`が解放しないことです。")

    assert "*" not in found.title + found.body

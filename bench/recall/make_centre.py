"""Make `multilingual-e5-small-centre.npy`, the mean vector that `multilingual_embedder` subtracts, from invented notes.

python -m bench.recall.make_centre
"""

import numpy as np

from kite_memory.recall.multilingual_embedder import CENTRE, MultilingualEmbedder

NOTES = """
Retries use exponential backoff with jitter, because a fixed delay overloaded the broker.
The build fails if the lock file is older than the manifest.
Invoices are numbered per country and year, without gaps.
Dark mode colours come from the design tokens, never from hex values.
Die Sicherung läuft nachts um drei und wird sonntags vollständig geprüft.
Fehlermeldungen stehen immer auf Deutsch, Protokolle auf Englisch.
Der Absturz kam von einem nicht geschlossenen Dateihandle beim Hochladen.
Wir nehmen Kafka statt RabbitMQ, weil wir alte Nachrichten noch einmal lesen müssen.
Les images sont redimensionnées côté serveur, jamais dans le navigateur.
La migration doit pouvoir être annulée sans perte de données.
Le cache expirait trop tôt parce que la durée était en secondes et non en millisecondes.
On préfère des fonctions courtes et des noms explicites.
Los usuarios borrados se anonimizan a los treinta días.
El servidor de pruebas solo acepta conexiones desde la VPN.
La fuga de memoria venía de un observador que nunca se quitaba.
Las fechas se guardan en UTC y se muestran en la zona del usuario.
O relatório mensal é gerado no primeiro dia útil do mês.
Nunca apagar registros do banco, apenas marcar como inativos.
A lentidão vinha de uma consulta sem índice na tabela de pedidos.
Usamos filas separadas para tarefas longas e curtas.
Пароли хранятся только в менеджере секретов, в репозитории их нет.
Тесты падали, потому что порт был занят предыдущим запуском.
Все тексты интерфейса лежат в одном файле переводов.
Вместо опроса сервера используем веб-сокеты.
订单超过三十分钟未支付就自动取消。
日志里不能出现用户的手机号。
接口变慢是因为每次请求都重新建立数据库连接。
前端统一用 TypeScript，不再写新的 JavaScript 文件。
画像のアップロードは十メガバイトまでに制限する。
コミットメッセージは英語で書くこと。
通知が二重に届いたのは、再試行時に鍵を変えていたためだった。
設定ファイルは環境ごとに分けず、環境変数で上書きする。
"""


def main() -> None:
    rows = MultilingualEmbedder(centre=None).embed(NOTES.strip().split("\n"), "document")
    np.save(CENTRE, rows.mean(axis=0))


if __name__ == "__main__":
    main()

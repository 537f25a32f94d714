"""What a name says about its value."""

import pytest

from kite_memory.redaction import redact

SECRET = "q7Rk" + "2vXz9LmP4tWs"

CARRIERS = {
    "a shell variable": "export ORCHARD_TOKEN={}",
    "a variable of one command": "ORCHARD_PASSWORD={} fruitctl sync",
    "a line of .env": "DB_PASS={}\nDB_USER=ada",
    "a quoted line of .env": 'SECRET_KEY="{}"',
    "yaml": "auth:\n  client_secret: {}\n  issuer: orchard",
    "quoted yaml": "password: '{}'",
    "a block of yaml": "token: |\n  {}\nuser: ada",
    "toml": 'api_key = "{}"',
    "ini": "[db]\npassword = {}\nuser = ada",
    "json": '{{"accessToken": "{}", "user": "ada"}}',
    "pretty json": '{{\n  "password":\n    "{}"\n}}',
    "json within json": '{{"body": "{{\\"api_key\\": \\"{}\\"}}"}}',
    "a list": '"tokens_secret": ["{}", "{}"]',
    "a python dict": "{{'client_secret': '{}'}}",
    "an item of the environment": 'os.environ["ORCHARD_API_KEY"] = "{}"',
    "a keyword": 'login(user="ada", password="{}")',
    "an annotated constant": 'API_KEY: Final[str] = "{}"',
    "typescript": "const apiKey: string = '{}';",
    "go": 'clientSecret := "{}"',
    "rust": 'let auth_token: &str = "{}";',
    "java": 'private static final String API_TOKEN = new String("{}");',
    "php": "'password' => '{}',",
    "ruby": "config.secret_key_base = '{}'",
    "a call": 'builder.apiKey("{}")',
    "a setter": 'setenv("ORCHARD_TOKEN", "{}", 1)',
    "a comparison": 'if token != "{}" {{',
    "a default": 'process.env.ORCHARD_TOKEN ?? "{}"',
    "xml": "<clientSecret>{}</clientSecret>",
    "an attribute": '<add key="ApiKey" value="{}"/>',
    "kubernetes": "- name: ORCHARD_TOKEN\n  value: {}",
    "a flag": "fruitctl --api-key {} sync",
    "a flag with a sign": "fruitctl --auth-token={} sync",
    "a quoted flag": "fruitctl --password '{}' sync",
    "docker": "docker run -e ORCHARD_SECRET={} orchard",
    "helm": "helm install orchard --set auth.password={}",
    "kubectl": "kubectl create secret generic x --from-literal=password={}",
    "powershell": '$env:ORCHARD_API_KEY="{}"',
    "windows": 'setx ORCHARD_API_KEY "{}"',
    "a dockerfile": "ENV ORCHARD_API_KEY {}",
    "a setting command": "fruitctl config set auth_token {}",
    "a query": "GET /trees?access_token={}&page=2",
    "a form": "grant_type=password&client_secret={}",
    "a header": "X-Auth-Token: {}",
    "a header in code": "headers={{'X-Api-Key': '{}'}}",
    "a bearer": "Authorization: Bearer {}",
    "a bearer in json": '{{"Authorization": "Bearer {}"}}',
    "a proxy": "Proxy-Authorization: Basic {}",
    "a cookie": "Cookie: theme=dark; sid={}; lang=en",
    "a cookie that is set": "Set-Cookie: session={}; Path=/; HttpOnly",
    "a table": "| ORCHARD_TOKEN | {} |",
    "columns": "ORCHARD_TOKEN        {}",
    "a sentence": "The api key for the orchard is {}.",
    "another sentence": "I set the password to the following: password is `{}`",
    "markdown": "- **API key:** `{}`",
    "numbered": "     7→ORCHARD_TOKEN={}",
    "full width": "ｐａｓｓｗｏｒｄ＝{}",
    "html": "&quot;api_key&quot;: &quot;{}&quot;",
}


@pytest.mark.parametrize("name", CARRIERS)
def test_a_value_under_a_secrets_name_is_taken_out_and_the_name_stays(name: str) -> None:
    text = CARRIERS[name].replace("{}", SECRET).replace("{{", "{").replace("}}", "}")

    out = redact(text)

    assert SECRET not in out
    before, after = text.split(SECRET)[0], text.split(SECRET)[-1]
    assert out.startswith(before)
    assert out.endswith(after)


def test_a_scheme_of_many_parts_is_taken_out_with_all_of_them() -> None:
    text = f"Authorization: Digest username=ada, response={SECRET}\nAccept: */*"

    assert redact(text) == "Authorization: Digest [redacted:authorization]\nAccept: */*"


PASSWORDS = ["hunter2", "Tr0ub4dor&3", "P@ssw0rd!", "admin123", "s3cr3t", "12345678"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("carrier", ['"password": "{}"', "DB_PASSWORD={}", "my.password={}", "mysql://ada:{}@db.example/orchard"])
def test_people_choose_passwords_that_do_not_look_like_any(password: str, carrier: str) -> None:
    assert password not in redact(carrier.format(password))


def test_a_phrase_of_words_is_taken_for_a_wallets() -> None:
    words = "apple pear plum quince cherry peach fig grape melon lemon lime olive"

    assert "quince" not in redact(f'mnemonic: "{words}"')
    assert redact(f'title: "{words}"') == f'title: "{words}"'


COMMANDS = [
    "curl -u ada:{} https://api.example",
    "curl --user 'ada:{}' https://api.example",
    "curl -sS https://api.example \\\n  -u ada:{}",
    "mysql -u root -p{} orchard",
    "sshpass -p '{}' ssh host.example",
    "docker login -u ada -p {} registry.example",
    "redis-cli -a {} ping",
    "ldapsearch -D cn=ada -w {} -b dc=example",
    "unzip -P {} trees.zip",
    "openssl pkcs12 -in trees.p12 -passin pass:{} -nodes",
    "htpasswd -bc users ada {}",
    "machine api.example login ada password {}",
    "db.example:5432:orchard:ada:{}",
    "https://ada:{}@git.example/orchard.git",
    "postgres://ada:{}/x@db.example/orchard",
    "ada:{}@tcp(db.example:3306)/orchard",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_password_on_a_command_line_is_told_by_its_place(command: str) -> None:
    assert SECRET not in redact(command.format(SECRET))


@pytest.mark.parametrize("command", ["docker run -p {} x", "mkdir -p {}", "git log -u {}", "grep -a {} x", "ssh -p {} host"])
def test_the_same_option_of_another_command_is_none(command: str) -> None:
    text = command.format("orchard8:trees4")

    assert redact(text) == text

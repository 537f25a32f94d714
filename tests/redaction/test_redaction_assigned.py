"""What a name says about its value."""

import base64
import hashlib

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
def test_a_password_on_a_command_line_is_reported_by_its_place(command: str) -> None:
    assert SECRET not in redact(command.format(SECRET))


CHOSEN = "mango" + "tree7"
"""Passwords that only their place reveals."""

KNOWN_BY_THEIR_PLACE = [
    "ALTER USER ada WITH PASSWORD '{}';",
    "psql -c \"CREATE ROLE ada LOGIN PASSWORD '{}'\"",
    "CREATE USER 'ada'@'%' IDENTIFIED BY '{}';",
    "create user ada identified with caching_sha2_password by '{}'",
    "echo {} | sudo -S apt-get update",
    "echo '{}' | docker login -u ada --password-stdin",
    "printf '{}' | gh secret set TREES",
    "echo 'ada:{}' | sudo chpasswd",
    "sudo -S apt-get update <<< '{}'",
    "ssh-keygen -t ed25519 -N '{}' -f trees",
    "keytool -genkey -storepass {} -keypass changeit",
    "requirepass {}",
    "cmdkey /add:trees /user:ada /pass:{}",
    "ConvertTo-SecureString '{}' -AsPlainText -Force",
    "aws ssm put-parameter --name /trees/db --value {} --type SecureString",
    "aws secretsmanager create-secret --name trees --secret-string {}",
    "gh secret set TREES --body {}",
    "requests.get(url, auth=('ada', '{}'))",
    'session.auth = HTTPBasicAuth("ada", "{}")',
    'os.environ.get("DB_PASSWORD", "{}")',
    "define('DB_PASSWORD', '{}');",
    "setenv DB_PASSWORD {}",
    "set -gx DB_PASSWORD {}",
    "auth: {{ user: 'ada', pass: '{}' }}",
    "[smtp]\nuser=ada\npass={}",
    'psk="{}"',
    "<key>password</key>\n<string>{}</string>",
    'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}',
    "curl -b 'theme=dark; session={}9q2' https://trees.example",
]


@pytest.mark.parametrize("text", KNOWN_BY_THEIR_PLACE)
def test_a_password_that_looks_like_a_word_is_reported_by_its_place(text: str) -> None:
    assert CHOSEN not in redact(text.format(CHOSEN))


def test_a_setting_in_yaml_may_be_a_word() -> None:
    assert redact("environment:\n  DB_PASSWORD: mangotree\n  DB_USER: ada\n").splitlines()[1:] == [
        "  DB_PASSWORD: [redacted:password]",
        "  DB_USER: ada",
    ]


def test_a_name_and_a_password_in_short_base_64_are_taken_out() -> None:
    encoded = base64.b64encode(f"ada:{CHOSEN}".encode()).decode()

    assert encoded[:16] not in redact(f'{{"auths": {{"registry.example": {{"auth": "{encoded}"}}}}}}')
    assert encoded[:16] not in redact(f"//registry.example/:_auth={encoded}")


@pytest.mark.parametrize("text", ["new ethers.Wallet('0x{}')", "privateKeyToAccount('0x{}')", "the private key is 0x{}"])
def test_a_key_to_a_chain_is_no_hash(text: str) -> None:
    digits = hashlib.sha256(b"apple").hexdigest()

    assert digits not in redact(text.format(digits))
    assert digits in redact(f"block 0x{digits} was mined")


def test_a_wallets_phrase_needs_no_quotes() -> None:
    words = "apple pear plum quince cherry peach fig grape melon lemon lime olive"

    assert redact(f"seed phrase: {words}\nTree 7") == "seed phrase: [redacted:seed-phrase]\nTree 7"
    assert redact(f"The seed phrase: it is {words}") == "The seed phrase: it is [redacted:seed-phrase]"
    assert redact(f"The seed is in the shed with the {words[:30]}").endswith(words[:30])


NO_PASSWORDS = [
    "\t\tenc := packfile.NewEncoder(pw, store, useRefDeltas)",
    "+// PromptAttribution is kept for each prompt, see the secrets branch.\n+type PromptAttribution struct {",
    "which database should we use for the job queue, PostgreSQL or SQLite?",
    "I think we want ClickHouse for the events, and the login server stays on MariaDB",
    "Your password is about to expire; change it before Monday to keep access.",
    "image: registry.example.com/auth@sha256:4ac9dcacdaaa0aa3102a2166d48aed997ec8a70b4c68c0028990a6f79ad086ba",
    "Set requirepass in redis.conf; see also masterauth there.",
    "echo trees7 | sudo tee /etc/trees",
    "login: 3 tests\n--- PASS: TestUserLoginV2Fails (0.05s)",
    'for name in ("DB_PASSWORD", "DB_HOST2"): ...',
    "DB_PASSWORD: SecretStr\n    DB_HOST: str",
    "requireAuth('admin7', 'editor7')",
    "the password 'trees7' field is created by the user form",
    'gh secret set TREES --body "$TREES"',
    "aws secretsmanager create-secret --secret-string file://trees7.json",
    "ssh-keygen -t ed25519 -N '' -C ada@trees7.example",
    "curl -b cookies.txt https://trees.example",
    "curl -b lang=en https://trees.example",
    '"auth": "bearerAuth"',
]


@pytest.mark.parametrize("text", NO_PASSWORDS)
def test_what_only_stands_in_such_a_place_stays(text: str) -> None:
    assert redact(text) == text


ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod"


@pytest.mark.parametrize(
    "text",
    [
        f"DB_SECRET_ARN={ARN}\nDB_PASSWORD={{}}",
        f'{{{{"arn":"{ARN}","password":"{{}}"}}}}',
        f"aws get-secret {ARN} --password={{}}",
        f"arn: {ARN}, password: {{}}",
    ],
)
def test_a_password_beside_a_resource_name_is_taken_out(text: str) -> None:
    redacted = redact(text.format("hunter2"))

    assert "hunter2" not in redacted
    assert ARN in redacted


@pytest.mark.parametrize("name", ["secret:prod", "secret:prod/db-Ab3xYz"])
def test_a_resource_name_stays(name: str) -> None:
    text = f"DB_SECRET_ARN=arn:aws-us-gov:secretsmanager:us-gov-west-1:123456789012:{name}"

    assert redact(text) == text


@pytest.mark.parametrize("command", ["docker run -p {} x", "mkdir -p {}", "git log -u {}", "grep -a {} x", "ssh -p {} host"])
def test_the_same_option_of_another_command_is_none(command: str) -> None:
    text = command.format("orchard8:trees4")

    assert redact(text) == text

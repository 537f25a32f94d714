"""What secrets look like, as their vendors document them, drawn anew from a seed: none is written down here.

A row names a kind and spells its parts: literals as strings, chance as ``(alphabet, length)``. Kept apart from the patterns
of the code on purpose: the two must agree without having been copied from each other.
"""

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

LOWER = string.ascii_lowercase
DIGITS = string.digits
HEX = DIGITS + "abcdef"
UPPER_HEX = DIGITS + "ABCDEF"
ALNUM = string.ascii_letters + DIGITS
LETTERS = string.ascii_letters
WORD = ALNUM + "_-"
UNDER = ALNUM + "_"
BASE64 = ALNUM + "+/"
BASE36 = LOWER + DIGITS
CAPS = string.ascii_uppercase + DIGITS
BASE32 = string.ascii_uppercase + "234567"
BECH32 = "023456789acdefghjklmnpqrstuvwxyz"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

Part = str | tuple[str, int]
Maker = Callable[[random.Random], tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """``make`` yields a secret and what it has to stand in to be one (often the secret alone)."""

    name: str
    make: Maker
    named: str = ""
    """The names of such a secret, where nothing in it distinguishes it from a hash or an identifier."""


def spell(rng: random.Random, parts: tuple[Part, ...]) -> str:
    return "".join(part if isinstance(part, str) else "".join(rng.choices(part[0], k=part[1])) for part in parts)


def _uuid(rng: random.Random) -> str:
    return "-".join(spell(rng, ((HEX, length),)) for length in (8, 4, 4, 4, 12))


def token(name: str, *parts: Part) -> Kind:
    """Known by its looks."""

    def make(rng: random.Random) -> tuple[str, str]:
        secret = spell(rng, parts)
        return secret, secret

    return Kind(name=name, make=make)


def with_uuid(name: str, prefix: str) -> Kind:
    def make(rng: random.Random) -> tuple[str, str]:
        secret = prefix + _uuid(rng)
        return secret, secret

    return Kind(name=name, make=make)


def called(name: str, variable: str, *parts: Part) -> Kind:
    """Known by what it is called."""

    def make(rng: random.Random) -> tuple[str, str]:
        secret = spell(rng, parts)
        return secret, secret

    return Kind(name=name, make=make, named=variable)


def within(name: str, before: str, after: str, *parts: Part) -> Kind:
    """Known by the place it holds."""

    def make(rng: random.Random) -> tuple[str, str]:
        secret = spell(rng, parts)
        return secret, before + secret + after

    return Kind(name=name, make=make)


def _jwt(rng: random.Random) -> tuple[str, str]:
    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    secret = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': spell(rng, ((DIGITS, 10),)), 'iat': rng.randrange(10**9)})}"
    secret += "." + spell(rng, ((WORD, 43),))
    return secret, secret


def _pem(label: str, lines: int) -> Maker:
    def make(rng: random.Random) -> tuple[str, str]:
        body = [spell(rng, ((BASE64, 64),)) for _ in range(lines)] + [spell(rng, ((BASE64, 38),)) + "=="]
        dashes = "-" * 5
        text = "\n".join([f"{dashes}BEGIN {label}{dashes}", *body, f"{dashes}END {label}{dashes}"])
        return body[1], text

    return make


def _service_account(rng: random.Random) -> tuple[str, str]:
    secret, key = _pem("PRIVATE KEY", 6)(rng)
    return secret, json.dumps({"type": "service_account", "project_id": "orchard", "private_key": key + "\n"})


def _basic(rng: random.Random) -> tuple[str, str]:
    secret = base64.b64encode(("gardener:" + spell(rng, ((ALNUM, 18),))).encode()).decode()
    return secret, f"Authorization: Basic {secret}"


def _docker_auth(rng: random.Random) -> tuple[str, str]:
    secret = base64.b64encode(("gardener:" + spell(rng, ((ALNUM, 18),))).encode()).decode()
    return secret, json.dumps({"auths": {"registry.example": {"auth": secret}}})


def _azure(mark: str, before: int, after: int, alphabet: str = BASE64, end: str = "==") -> tuple[Part, ...]:
    return ((alphabet, before), mark, (alphabet, after), end)


MODELS = (
    token("anthropic-api", "sk-ant-", "api03-", (WORD, 93), "AA"),
    token("anthropic-admin", "sk-ant-", "admin01-", (WORD, 93), "AA"),
    token("anthropic-oauth", "sk-ant-", "oat01-", (WORD, 93), "AA"),
    token("anthropic-refresh", "sk-ant-", "ort01-", (WORD, 93), "AA"),
    token("anthropic-session", "sk-ant-", "sid01-", (WORD, 86), "AA"),
    token("openai-legacy", "sk-", (ALNUM, 20), "T3Blbk" + "FJ", (ALNUM, 20)),
    token("openai-project", "sk-proj-", (WORD, 74), "T3Blbk" + "FJ", (WORD, 74)),
    token("openai-service", "sk-svcacct-", (WORD, 74), "T3Blbk" + "FJ", (WORD, 74)),
    token("openai-admin", "sk-admin-", (WORD, 58), "T3Blbk" + "FJ", (WORD, 58)),
    token("openai-session", "sess-", (ALNUM, 40)),
    token("openrouter", "sk-or-", "v1-", (HEX, 64)),
    token("deepseek", "sk-", (HEX, 32)),
    token("moonshot", "sk-", (ALNUM, 48)),
    token("kimi-code", "sk-kimi-", (ALNUM, 64)),
    with_uuid("langfuse", "sk-lf-"),
    token("helicone", "sk-helicone-", (BASE36, 7), "-", (BASE36, 7), "-", (BASE36, 7), "-", (BASE36, 7)),
    token("cerebras", "csk-", (BASE36, 48)),
    token("voyage", "pa-", (WORD, 43)),
    token("groq", "gsk_", (ALNUM, 52)),
    token("xai", "xai-", (ALNUM, 80)),
    token("perplexity", "pplx-", (ALNUM, 48)),
    token("replicate", "r8_", (ALNUM, 37)),
    token("huggingface", "hf_", (LETTERS, 34)),
    token("huggingface-org", "api_org_", (LETTERS, 34)),
    token("nvidia", "nvapi-", (WORD, 64)),
    token("together", "tgp_v1_", (WORD, 43)),
    token("fireworks", "fw_", (ALNUM, 24)),
    token("anyscale", "esecret_", (BASE36, 26)),
    token("runpod", "rpa_", (CAPS, 36), (BASE36, 6)),
    token("modal", "ak-", (ALNUM, 22)),
    token("llamacloud", "llx-", (ALNUM, 48)),
    token("langsmith-pat", "lsv2_pt_", (HEX, 32), "_", (HEX, 10)),
    token("langsmith-service", "lsv2_sk_", (HEX, 32), "_", (HEX, 10)),
    token("pinecone", "pcsk_", (ALNUM, 5), "_", (ALNUM, 63)),
    token("tavily", "tvly-", "dev-", (ALNUM, 32)),
    token("firecrawl", "fc-", (HEX, 32)),
    token("jina", "jina_", (WORD, 60)),
    token("elevenlabs", "sk_", (HEX, 48)),
    token("e2b", "e2b_", (HEX, 40)),
    token("mem0", "m0-", (ALNUM, 40)),
    token("apify", "apify_api_", (ALNUM, 36)),
    token("wandb-v1", "wandb_v1_", (WORD, 77)),
    token("cursor", "crsr_", (HEX, 64)),
    token("sourcegraph", "sgp_", (HEX, 16), "_", (HEX, 40)),
    called("cohere", "COHERE_API_KEY", (ALNUM, 40)),
    called("mistral", "MISTRAL_API_KEY", (ALNUM, 32)),
    called("ai21", "AI21_API_KEY", (ALNUM, 32)),
    called("deepgram", "DEEPGRAM_API_KEY", (HEX, 40)),
    called("assemblyai", "ASSEMBLYAI_API_KEY", (HEX, 32)),
    called("stability", "STABILITY_API_KEY", (ALNUM, 51)),
    called("zhipu", "ZHIPUAI_API_KEY", (HEX, 32), ".", (ALNUM, 16)),
    called("wandb", "WANDB_API_KEY", (HEX, 40)),
    called("serper", "SERPER_API_KEY", (HEX, 40)),
)

CLOUDS = (
    token("aws-access-key", "AK" + "IA", (BASE32, 16)),
    token("aws-temporary-key", "AS" + "IA", (BASE32, 16)),
    token("aws-bedrock", "ABSK", (BASE64, 128)),
    token("aws-session-token", "IQoJb3JpZ2luX2Vj", (BASE64, 240), "=="),
    token("aws-appsync", "da2-", (BASE36, 26)),
    called("aws-secret-key", "AWS_SECRET_ACCESS_KEY", (BASE64, 40)),
    token("google-api", "AI" + "za", (WORD, 35)),
    token("google-client-secret", "GOCSPX-", (WORD, 28)),
    token("google-access-token", "ya29.", (WORD, 160)),
    token("google-refresh-token", "1//0", (WORD, 90)),
    Kind(name="google-service-account", make=_service_account),
    token("firebase-fcm", "AAAA", (WORD, 7), ":APA91b", (WORD, 134)),
    token("azure-client-secret", (ALNUM, 3), "8Q~", (ALNUM + "_.~-", 34)),
    token("azure-storage", *_azure("+ASt", 76, 6)),
    token("azure-cosmos", *_azure("ACDb", 76, 6)),
    token("azure-service-bus", *_azure("+ASb", 33, 6, end="=")),
    token("azure-event-hub", *_azure("+AEh", 33, 6, end="=")),
    token("azure-iot", *_azure("AIoT", 33, 6, end="=")),
    token("azure-redis", *_azure("AzCa", 33, 6, ALNUM, "=")),
    token("azure-search", *_azure("AzSe", 42, 6, ALNUM, "")),
    token("azure-functions", *_azure("AzFu", 44, 6, WORD, "==")),
    token("azure-registry", *_azure("+ACR", 42, 6, end="")),
    token("azure-devops", (ALNUM, 76), "AZDO", (ALNUM, 4)),
    token("azure-openai", (ALNUM, 52), "JQQJ99", (ALNUM, 26)),
    within(
        "azure-storage-connection",
        "DefaultEndpointsProtocol=https;AccountName=orchard;AccountKey=",
        ";EndpointSuffix=core.windows.net",
        (BASE64, 86),
        "==",
    ),
    within(
        "azure-bus-connection",
        "Endpoint=sb://orchard.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=",
        "",
        (BASE64, 43),
        "=",
    ),
    within(
        "azure-sas",
        "https://orchard.blob.core.windows.net/box?sv=2024-11-04&se=2026-01-01T00%3A00%3A00Z&sr=c&sp=rl&sig=",
        "",
        (ALNUM, 43),
        "%3D",
    ),
    token("alibaba", "LTAI", (ALNUM, 20)),
    token("tencent", "AKID", (ALNUM, 32)),
    token("baidu-qianfan", "bce-v3/ALTAK-", (ALNUM, 21), "/", (HEX, 40)),
    token("yandex-api", "AQVN", (WORD, 36)),
    token("yandex-oauth", "y0_", (WORD, 55)),
    token("digitalocean-pat", "dop_v1_", (HEX, 64)),
    token("digitalocean-oauth", "doo_v1_", (HEX, 64)),
    token("digitalocean-refresh", "dor_v1_", (HEX, 64)),
    token("heroku", "HRKU-", "AA", (WORD, 58)),
    Kind(name="heroku-legacy", make=lambda rng: (secret := _uuid(rng), secret), named="HEROKU_API_KEY"),
    token("vercel-personal", "vcp_", (WORD, 50), (ALNUM, 6)),
    token("vercel-integration", "vci_", (WORD, 50), (ALNUM, 6)),
    token("vercel-gateway", "vck_", (WORD, 50), (ALNUM, 6)),
    token("vercel-blob", "vercel_blob_rw_", (ALNUM, 16), "_", (ALNUM, 30)),
    called("vercel-legacy", "VERCEL_TOKEN", (ALNUM, 24)),
    token("netlify", "nfp_", (ALNUM, 36)),
    token("cloudflare-user", "cfut_", (ALNUM, 48)),
    token("cloudflare-account", "cfat_", (ALNUM, 48)),
    token("cloudflare-global", "cfk_", (ALNUM, 48)),
    called("cloudflare-legacy", "CLOUDFLARE_API_TOKEN", (WORD, 40)),
    token("cloudflare-origin-ca", "v1.0-", (HEX, 24), "-", (HEX, 146)),
    token("fly-v1", "fo1_", (WORD, 43)),
    token("fly-macaroon", "fm2_", (BASE64, 180)),
    token("render", "rnd_", (ALNUM, 32)),
    Kind(name="railway", make=lambda rng: (secret := _uuid(rng), secret), named="RAILWAY_TOKEN"),
    token("scalingo", "tk-us-", (WORD, 48)),
    token("scaleway", "SCW", (CAPS, 17)),
    token("exoscale", "EXO", (HEX, 24)),
    called("backblaze", "B2_APPLICATION_KEY", "K004", (BASE64, 27)),
    token("openstack-fernet", "gAAAAA", "Bk", (WORD, 150)),
    token("tailscale", "tskey-", "auth-", (ALNUM, 12), "-", (ALNUM, 32)),
    token("netbird", "nbp_", (ALNUM, 36)),
    token("vault-service", "hvs.", (WORD, 92)),
    token("vault-batch", "hvb.", (WORD, 140)),
    token("terraform-cloud", (ALNUM, 14), ".atlasv1.", (WORD, 67)),
    token("pulumi", "pul-", (HEX, 40)),
    token("doppler-personal", "dp.pt.", (ALNUM, 43)),
    token("doppler-service", "dp.st.", "prd.", (ALNUM, 43)),
    token(
        "onepassword-secret-key",
        "A3-",
        (CAPS, 6),
        "-",
        (CAPS, 6),
        "-",
        (CAPS, 5),
        "-",
        (CAPS, 5),
        "-",
        (CAPS, 5),
        "-",
        (CAPS, 5),
    ),
    token("onepassword-service", "ops_eyJ", (ALNUM, 260)),
    token("age", "AGE-SECRET-KEY-1", (BECH32.upper(), 58)),
    token("openshift", "sha256~", (WORD, 43)),
    token("portainer", "ptr_", (BASE64, 43), "="),
    token("rancher", "kubeconfig-u-", (BASE36, 10), ":", (BASE36, 54)),
    called("kubernetes-bootstrap", "bootstrap-token", (BASE36, 6), ".", (BASE36, 16)),
    token("databricks", "dapi", (HEX, 32)),
    token("planetscale-password", "pscale_pw_", (WORD, 43)),
    token("planetscale-token", "pscale_tkn_", (WORD, 43)),
    token("planetscale-oauth", "pscale_oauth_", (WORD, 43)),
    token("supabase-personal", "sbp_", (HEX, 40)),
    token("supabase-secret", "sb_secret_", (WORD, 31)),
    token("neon", "napi_", (BASE36, 64)),
    token("neon-password", "npg_", (ALNUM, 16)),
    token("xata", "xau_", (ALNUM, 33)),
    token("aiven", "AVNS_", (WORD, 19)),
    token("mongodb-atlas", "mdb_sa_sk_", (WORD, 40)),
    token("clickhouse", "4b1d", (ALNUM, 38)),
    token("confluent", "cflt", (BASE64, 60)),
    token("dbt", "dbtc_", (WORD, 44)),
    token("prefect", "pnu_", (ALNUM, 36)),
    token("elastic", "essu_", (ALNUM, 72), "=="),
    token("convex", "prod:", "quick-otter-123", "|", (BASE64, 80)),
    token("appwrite", "standard_", (HEX, 256)),
    called("algolia-admin", "ALGOLIA_ADMIN_API_KEY", (HEX, 32)),
    called("linode", "LINODE_TOKEN", (HEX, 64)),
    called("hetzner", "HCLOUD_TOKEN", (ALNUM, 64)),
    called("digitalocean-spaces", "SPACES_SECRET_ACCESS_KEY", (BASE64, 43)),
    called("ovh", "OVH_APPLICATION_SECRET", (ALNUM, 32)),
    called("snowflake-password", "SNOWFLAKE_PASSWORD", (ALNUM + "!@#", 18)),
)

WORKSHOP = (
    token("github-classic", "gh" + "p_", (ALNUM, 36)),
    token("github-oauth", "gh" + "o_", (ALNUM, 36)),
    token("github-user-server", "gh" + "u_", (ALNUM, 36)),
    token("github-server", "gh" + "s_", (ALNUM, 36)),
    token("github-refresh", "gh" + "r_", (ALNUM, 76)),
    token("github-fine-grained", "github_" + "pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    token("gitlab-personal", "gl" + "pat-", (WORD, 20)),
    token("gitlab-routable", "gl" + "pat-", (WORD, 27), ".01.", (BASE36, 9)),
    token("gitlab-deploy", "gldt-", (WORD, 20)),
    token("gitlab-runner", "glrt-", (WORD, 20)),
    token("gitlab-job", "glcbt-", "64_", (WORD, 20)),
    token("gitlab-trigger", "glptt-", (HEX, 40)),
    token("gitlab-feed", "glft-", (WORD, 20)),
    token("gitlab-scim", "glsoat-", (WORD, 20)),
    token("gitlab-agent", "glagent-", (WORD, 50)),
    token("gitlab-oauth-secret", "gloas-", (HEX, 64)),
    token("gitlab-mail", "glimt-", (BASE36, 25)),
    token("gitlab-flags", "glffct-", (WORD, 20)),
    token("gitlab-registration", "GR1348941", (WORD, 20)),
    token("bitbucket-app-password", "ATBB", (ALNUM, 32)),
    called("gitea", "GITEA_TOKEN", (HEX, 40)),
    token("gitpod", "gitpod_pat_", (WORD, 43)),
    token("jetbrains", "perm:", (ALNUM, 12), ".", (ALNUM, 16), ".", (ALNUM, 30)),
    token("npm", "npm_", (ALNUM, 36)),
    within("npmrc", "//registry.example/:_authToken=", "", (HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12)),
    token("pypi", "pypi-", "AgEIcHlwaS5vcmc", (WORD, 150)),
    token("rubygems", "rubygems_", (HEX, 48)),
    token("crates-io", "cio", (ALNUM, 32)),
    token("nuget", "oy2", (BASE36, 43)),
    token("clojars", "CLOJARS_", (HEX, 60)),
    token("docker-pat", "dckr_" + "pat_", (WORD, 27)),
    token("docker-oat", "dckr_" + "oat_", (WORD, 32)),
    token("artifactory-key", "AKCp", (ALNUM, 69)),
    token("artifactory-reference", "cmVmd", (ALNUM, 59)),
    token("deno-deploy", "ddp_", (ALNUM, 36)),
    token("buildkite", "bkua_", (HEX, 40)),
    token("circleci", "CCIPAT_", (ALNUM, 22), "_", (HEX, 40)),
    token("circleci-project", "CCIPRJ_", (ALNUM, 22), "_", (HEX, 40)),
    called("travis", "TRAVIS_API_TOKEN", (ALNUM, 22)),
    called("jenkins", "JENKINS_API_TOKEN", "11", (HEX, 32)),
    Kind(name="codecov", make=lambda rng: (secret := _uuid(rng), secret), named="CODECOV_TOKEN"),
    Kind(name="snyk", make=lambda rng: (secret := _uuid(rng), secret), named="SNYK_TOKEN"),
    token("harness", "pat.", (WORD, 22), ".", (HEX, 24), ".", (ALNUM, 20)),
    token("octopus", "API-", (CAPS, 30)),
    token("sonarqube", "squ_", (HEX, 40)),
    token("postman", "PMAK-", (HEX, 24), "-", (HEX, 34)),
    token("chromatic", "chpt_", (HEX, 15)),
    token("infracost", "ico-", (ALNUM, 32)),
    token("rapidapi", (BASE36, 10), "msh", (BASE36, 15), "p1", (BASE36, 5), "jsn", (BASE36, 12)),
    with_uuid("launchdarkly-sdk", "sdk-"),
    with_uuid("launchdarkly-api", "api-"),
    token("configcat", "configcat-sdk-1/", (WORD, 22), "/", (WORD, 22)),
    token("statsig", "secret-", (ALNUM, 43)),
    called("datadog-api", "DD_API_KEY", (HEX, 32)),
    called("datadog-app", "DD_APP_KEY", (HEX, 40)),
    token("new-relic-user", "NRAK-", (CAPS, 27)),
    token("new-relic-browser", "NRJS-", (HEX, 19)),
    token("new-relic-license", (HEX, 36), "NRAL"),
    token("sentry-user", "sntryu_", (HEX, 64)),
    token("sentry-org", "sntrys_eyJpYXQiO", (ALNUM, 100), "_", (BASE64, 43)),
    token("grafana-service-account", "glsa_", (ALNUM, 32), "_", (HEX, 8)),
    token("grafana-cloud", "glc_", (BASE64, 90), "=="),
    token("honeycomb", "hcaik_", (BASE36, 58)),
    token("dynatrace", "dt0c01.", (BASE32, 24), ".", (BASE32, 64)),
    with_uuid("axiom", "xaat-"),
    token("logfire", "pylf_v1_", "us_", (ALNUM, 43)),
    token("posthog-personal", "phx_", (ALNUM, 43)),
    token("inngest", "signkey-prod-", (HEX, 64)),
    token("trigger-dev", "tr_prod_", (ALNUM, 20)),
    token("liveblocks", "sk_prod_", (WORD, 64)),
    token("arcjet", "ajkey_", (BASE36, 26)),
    token("ory", "ory_pat_", (ALNUM, 32)),
    token("kong", "kpat_", (ALNUM, 48)),
    token("readme", "rdme_", (BASE36, 70)),
    token("adobe", "p8e-", (WORD, 32)),
    token("maxmind", (ALNUM, 6), "_", (ALNUM, 29), "_mmk"),
    token("cal-com", "cal_live_", (HEX, 32)),
)

PEOPLE = (
    token("slack-bot", "xox" + "b-", (DIGITS, 12), "-", (DIGITS, 13), "-", (ALNUM, 24)),
    token("slack-user", "xox" + "p-", (DIGITS, 12), "-", (DIGITS, 12), "-", (DIGITS, 13), "-", (HEX, 32)),
    token("slack-app", "xapp-", "1-", (CAPS, 11), "-", (DIGITS, 13), "-", (HEX, 64)),
    token("slack-refresh", "xoxe-", "1-", (ALNUM, 146)),
    within("slack-webhook", "https://hooks." + "slack.com/services/T0A1B2C3D/B0A1B2C3D/", "", (ALNUM, 24)),
    token("discord-bot", "M", (ALNUM, 25), ".", "G", (ALNUM, 5), ".", (WORD, 38)),
    within("discord-webhook", "https://discord." + "com/api/webhooks/1234567890123456789/", "", (WORD, 68)),
    token("telegram", (DIGITS, 10), ":AA", (WORD, 33)),
    within(
        "teams-webhook",
        "https://orchard.webhook." + "office.com/webhookb2/",
        "",
        (HEX, 32),
        "@",
        (HEX, 32),
        "/IncomingWebhook/",
        (HEX, 32),
        "/",
        (HEX, 32),
    ),
    token("twilio-key", "SK", (HEX, 32)),
    called("twilio-auth", "TWILIO_AUTH_TOKEN", (HEX, 32)),
    token("sendgrid", "SG.", (WORD, 22), ".", (WORD, 43)),
    token("mailgun", "key-", (HEX, 32)),
    token("mailchimp", (HEX, 32), "-us", (DIGITS, 1), (DIGITS, 1)),
    token("mandrill", "md-", (WORD, 22)),
    token("brevo", "xkeysib-", (HEX, 64), "-", (ALNUM, 16)),
    token("resend", "re_", (ALNUM, 8), "_", (ALNUM, 24)),
    token("mailersend", "mlsn.", (HEX, 64)),
    token("onesignal", "os_v2_app_", (BASE36, 103)),
    token("klaviyo", "pk_", (HEX, 34)),
    Kind(name="postmark", make=lambda rng: (secret := _uuid(rng), secret), named="POSTMARK_SERVER_TOKEN"),
    with_uuid("hubspot", "pat-na1-"),
    token("salesforce", "00D", (ALNUM, 12), "!", (ALNUM + "._", 96)),
    token("notion", "ntn_", (DIGITS, 11), (ALNUM, 35)),
    token("notion-legacy", "secret_", (ALNUM, 43)),
    token("airtable", "pat", (ALNUM, 14), ".", (HEX, 64)),
    token("asana", "2/", (DIGITS, 16), "/", (DIGITS, 16), ":", (HEX, 32)),
    token("clickup", "pk_", (DIGITS, 8), "_", (CAPS, 32)),
    token("linear", "lin_api_", (ALNUM, 40)),
    token("linear-oauth", "lin_oauth_", (HEX, 64)),
    token("atlassian", "ATATT3", "xFfGF0", (WORD, 178), "=", (UPPER_HEX, 8)),
    token("trello", "ATTA", (HEX, 64)),
    token("figma", "figd_", (WORD, 40)),
    token("contentful", "CFPAT-", (WORD, 43)),
    token("frame-io", "fio-u-", (WORD, 64)),
    token("typeform", "tfp_", (ALNUM, 44), "_", (ALNUM, 14)),
    token("dropbox", "sl.", "u.", (WORD, 1200)),
    token("mapbox-secret", "sk.eyJ1Ijoi", (ALNUM, 60), ".", (WORD, 22)),
    token("zoho", "1000.", (HEX, 32), ".", (HEX, 32)),
    token("facebook", "EAA", (ALNUM, 180)),
    token("twitter-bearer", "A" * 22, (ALNUM, 40), "%3D", (ALNUM, 42)),
    token("pinterest", "pina_", (ALNUM, 92)),
    called("linkedin", "LINKEDIN_CLIENT_SECRET", (ALNUM, 16)),
    called("spotify", "SPOTIFY_CLIENT_SECRET", (HEX, 32)),
    called("twitch", "TWITCH_CLIENT_SECRET", (BASE36, 30)),
    token("stripe-live", "sk_" + "live_", (ALNUM, 99)),
    token("stripe-test", "sk_" + "test_", (ALNUM, 24)),
    token("stripe-restricted", "rk_" + "live_", (ALNUM, 99)),
    token("stripe-webhook", "whsec_", (ALNUM, 32)),
    token("square", "sq0" + "csp-", (WORD, 43)),
    token("square-access", "EAAA", (WORD, 60)),
    token("braintree", "access_token$production$", (BASE36, 16), "$", (HEX, 32)),
    called("paypal", "PAYPAL_CLIENT_SECRET", "E", (WORD, 79)),
    token("razorpay", "rzp_live_", (ALNUM, 14)),
    token("flutterwave", "FLWSECK-", (HEX, 32), "-X"),
    token("mollie", "live_", (ALNUM, 30)),
    token("gocardless", "live_", (WORD, 40)),
    with_uuid("plaid", "access-production-"),
    token("paddle", "pdl_live_", "apikey_", (BASE36, 26), "_", (ALNUM, 22), "_", (ALNUM, 3)),
    token("polar", "polar_oat_", (WORD, 43)),
    token("shopify-admin", "shp" + "at_", (HEX, 32)),
    token("shopify-custom", "shp" + "ca_", (HEX, 32)),
    token("shopify-shared", "shp" + "ss_", (HEX, 32)),
    token("woocommerce", "cs_", (HEX, 40)),
    token("shippo", "shippo_live_", (HEX, 40)),
    token("easypost", "EZAK", (ALNUM, 54)),
    token("duffel", "duffel_live_", (WORD, 43)),
    token("bip32", "xprv", (BASE58, 107)),
    token("nostr", "nsec1", (BECH32, 58)),
    called("binance", "BINANCE_API_SECRET", (ALNUM, 64)),
    called("coinbase", "COINBASE_API_SECRET", (BASE64, 86), "=="),
)

PLACES = (
    Kind(name="jwt", make=_jwt),
    Kind(name="rsa-key", make=_pem("RSA PRIVATE KEY", 12)),
    Kind(name="pkcs8-key", make=_pem("PRIVATE KEY", 12)),
    Kind(name="ec-key", make=_pem("EC PRIVATE KEY", 2)),
    Kind(name="openssh-key", make=_pem("OPENSSH PRIVATE KEY", 12)),
    Kind(name="encrypted-key", make=_pem("ENCRYPTED PRIVATE KEY", 12)),
    Kind(name="pgp-key", make=_pem("PGP PRIVATE KEY BLOCK", 16)),
    Kind(name="basic-header", make=_basic),
    Kind(name="docker-config", make=_docker_auth),
    within("bearer-header", "Authorization: Bearer ", "", (WORD, 40)),
    within("api-key-header", "X-Api-Key: ", "", (ALNUM, 32)),
    within("private-token-header", "PRIVATE-TOKEN: ", "", (ALNUM, 24)),
    within("cookie-header", "Cookie: theme=dark; sessionid=", "", (BASE36, 32)),
    within("set-cookie-header", "Set-Cookie: sid=", "; Path=/; HttpOnly", (ALNUM, 40)),
    within("postgres-url", "postgres://gardener:", "@db.example:5432/orchard", (ALNUM, 18)),
    within("mysql-url", "mysql://gardener:", "@db.example:3306/orchard", (ALNUM, 18)),
    within("mongodb-url", "mongodb+srv://gardener:", "@cluster0.example/orchard", (ALNUM, 18)),
    within("redis-url", "redis://:", "@cache.example:6379/0", (ALNUM, 24)),
    within("amqp-url", "amqp://gardener:", "@mq.example:5672/", (ALNUM, 18)),
    within("https-url", "https://gardener:", "@git.example/orchard.git", (ALNUM, 20)),
    within("git-token-url", "https://x-access-token:", "@git.example/orchard.git", (ALNUM, 40)),
    within("ado-connection", "Server=db.example;Database=orchard;User Id=gardener;Password=", ";Encrypt=true", (ALNUM + "!*", 18)),
    within("go-dsn", "gardener:", "@tcp(db.example:3306)/orchard", (ALNUM, 18)),
    within("curl-user", "curl -sS -u gardener:", " https://api.example/v1/trees", (ALNUM, 18)),
    within("password-flag", "fruitctl login --user gardener --password ", " --region eu", (ALNUM, 18)),
    within("mysql-flag", "mysqldump -h db.example -ugardener -p", " orchard", (ALNUM, 18)),
    within("sshpass", "sshpass -p ", " ssh gardener@host.example", (ALNUM, 14)),
    within("redis-flag", "redis-cli -h cache.example -a ", " ping", (ALNUM, 24)),
    within("docker-login", "docker login -u gardener -p ", " registry.example", (ALNUM, 20)),
    within("openssl-pass", "openssl rsa -in key.pem -passin pass:", " -out plain.pem", (ALNUM, 16)),
    within("netrc", "machine api.example login gardener password ", "", (ALNUM, 18)),
    within("pgpass", "db.example:5432:orchard:gardener:", "", (ALNUM, 18)),
    within("bcrypt", "gardener:$2y$10$", "", (ALNUM + "./", 53)),
    within("apr1", "gardener:$apr1$", "", (ALNUM, 8), "$", (ALNUM + "./", 22)),
    within("sha512-crypt", "gardener:$6$", ":19700:0:99999:7:::", (ALNUM, 16), "$", (ALNUM + "./", 86)),
    within("argon2", "$argon2id$v=19$m=65536,t=3,p=4$", "", (BASE64, 22), "$", (BASE64, 43)),
    within("yaml-password", "database:\n  user: gardener\n  password: ", "\n  port: 5432", (ALNUM, 16)),
    within("toml-secret", '[auth]\nclient_secret = "', '"\nissuer = "orchard"', (ALNUM, 32)),
    within("xml-password", "<server><username>gardener</username><password>", "</password></server>", (ALNUM, 16)),
    within("properties", "spring.datasource.password=", "", (ALNUM, 16)),
    within("python-keyword", 'client = Client(host="api.example", api_key="', '", timeout=5)', (ALNUM, 32)),
    within("js-fallback", 'const key = process.env.ORCHARD_API_KEY || "', '";', (ALNUM, 32)),
    within("go-literal", 'var apiToken = "', '"', (ALNUM, 32)),
    within("kubernetes-env", "- name: ORCHARD_TOKEN\n  value: ", "", (ALNUM, 32)),
    within("rails-master-key", "RAILS_MASTER_KEY=", "", (HEX, 32)),
    within("django-secret", "SECRET_KEY = 'django-insecure-", "'", (BASE36 + "!@#%^&*(-_=+)", 50)),
    within("wireguard", "[Interface]\nPrivateKey = ", "\nAddress = 10.0.0.2/32", (BASE64, 43), "="),
    within("totp", "otpauth://totp/orchard:gardener?secret=", "&issuer=orchard", (BASE32, 32)),
)

KINDS: tuple[Kind, ...] = (*MODELS, *CLOUDS, *WORKSHOP, *PEOPLE, *PLACES)

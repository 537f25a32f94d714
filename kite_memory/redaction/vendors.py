"""All tokens recognizable by their form, and the expressions that find candidates."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from kite_memory.text import lazy_regex

ALNUM = "[A-Za-z0-9]"
"""Base 62."""
WORD = r"[A-Za-z0-9_\-]"
"""Base 64 as used in URLs."""
BASE64 = "[A-Za-z0-9+/]"
HEX = "[0-9a-f]"
ANYHEX = "[0-9A-Fa-f]"
LOWER = "[a-z0-9]"
UPPER = "[A-Z0-9]"
DOTTED = r"[A-Za-z0-9_\-.]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A token recognizable by a literal in it.

    ``anchors`` are literals that such a token always has, nearly always its prefix; ``body`` is what follows one. ``lead`` is what
    precedes one, written from right to left, so that it too is matched in one go. Bodies accept longer tokens, since a vendor may
    lengthen its tokens without notice, and a remaining tail is a leak. Every repeat is bounded: matching takes time linear in the
    text.

    ``glued`` tokens are identified well enough by their anchor to be found right behind a letter or a digit. ``spelled`` tokens may
    look like words (all letters of one case) and still match; others may not.
    """

    kind: str
    anchors: tuple[str, ...]
    body: str
    lead: str = ""
    glued: bool = True
    spelled: bool = False


def prefixed(kind: str, anchors: str, body: str, *, glued: bool = True, spelled: bool = False) -> Vendor:
    """Return a vendor for tokens with a prefix; ``anchors`` are separated by blanks."""
    return Vendor(kind=kind, anchors=tuple(anchors.split()), body=body, glued=glued, spelled=spelled)


def loose(kind: str, anchors: str, body: str, *, spelled: bool = False) -> Vendor:
    """Return a vendor for prefixes that also occur within words, and so count only at the front of a word."""
    return prefixed(kind, anchors, body, glued=False, spelled=spelled)


def inside(kind: str, lead: str, anchor: str, body: str) -> Vendor:
    """Return a vendor for tokens with a literal in their middle or at their end."""
    return Vendor(kind=kind, anchors=(anchor,), body=body, lead=lead)


WORKSHOP: tuple[Vendor, ...] = (
    # code hosting
    prefixed("github-token", "ghp_ gho_ ghu_ ghr_", f"{ALNUM}{{20,255}}+"),
    prefixed("github-token", "ghs_", f"{DOTTED}{{20,1500}}+"),
    prefixed("github-token", "github_pat_", r"[A-Za-z0-9_]{22,255}+"),
    prefixed("gitlab-token", "glpat- gldt- glrt- glft- glsoat- glffct- glimt- glagent- gloas- glwt-", f"{DOTTED}{{20,320}}+"),
    prefixed("gitlab-token", "glptt-", f"{HEX}{{32,80}}+"),
    prefixed("gitlab-token", "glcbt-", f"{WORD}{{20,320}}+"),
    prefixed("gitlab-token", "GR1348941", f"{WORD}{{16,64}}+"),
    prefixed("gitlab-session", "_gitlab_session=", f"{LOWER}{{32,64}}+"),
    loose("bitbucket-token", "ATBB", f"{ALNUM}{{28,48}}+"),
    prefixed("gitpod-token", "gitpod_pat_", f"{DOTTED}{{24,128}}+"),
    prefixed("codesandbox-token", "csb_v1_", f"{WORD}{{32,64}}+"),
    loose("jetbrains-token", "perm: perm-", r"[A-Za-z0-9+/=_\-]{8,80}+\.[A-Za-z0-9+/=_\-]{4,80}+\.[A-Za-z0-9]{20,64}+"),
    # generic
    prefixed("jwt", "eyJ", r"[A-Za-z0-9_\-]{8,4000}+\.[A-Za-z0-9_\-]{8,8000}+(?:\.[A-Za-z0-9_\-]{0,4000}+){0,3}+"),
    prefixed("private-key", "b3BlbnNzaC1rZXktdjE", f"{BASE64}{{40,20000}}+={{0,2}}+"),
    # package registries
    prefixed("npm-token", "npm_", f"{ALNUM}{{30,64}}+"),
    prefixed("pypi-token", "pypi-", f"{WORD}{{60,1000}}+"),
    prefixed("rubygems-key", "rubygems_", f"{HEX}{{40,64}}+"),
    loose("crates-io-token", "cio", f"{ALNUM}{{32,40}}+"),
    loose("nuget-key", "oy2", f"{LOWER}{{43}}(?![A-Za-z0-9])"),
    prefixed("clojars-token", "CLOJARS_", f"{LOWER}{{40,80}}+"),
    prefixed("docker-token", "dckr_pat_ dckr_oat_", f"{WORD}{{20,64}}+"),
    loose("artifactory-key", "AKCp", f"{ALNUM}{{60,80}}+"),
    loose("artifactory-token", "cmVmd", f"{ALNUM}{{55,64}}+"),
    prefixed("deno-token", "ddp_ ddo_ ddw_", f"{ALNUM}{{32,48}}+"),
    prefixed("val-town-token", "vtwn_", f"{ALNUM}{{24,48}}+"),
    # continuous integration
    prefixed("buildkite-token", "bkua_ bkaa_ bkct_ bkpt_", f"{ALNUM}{{36,64}}+"),
    prefixed("circleci-token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9]{20,24}+_[0-9a-f]{36,48}+"),
    loose("harness-token", "pat. sat.", r"[A-Za-z0-9_\-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20,24}+"),
    loose("octopus-key", "API-", f"{UPPER}{{25,40}}+"),
    prefixed("sonar-token", "sqp_ squ_ sqa_", f"{HEX}{{36,48}}+"),
    prefixed("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{30,40}+"),
    prefixed("postman-key", "PMAT-", f"{UPPER}{{26,40}}+"),
    prefixed("chromatic-token", "chpt_", f"{HEX}{{12,32}}+"),
    prefixed("infracost-key", "ico-", f"{ALNUM}{{32,48}}+"),
    inside("rapidapi-key", "[a-z0-9]{10}", "msh", r"[a-z0-9]{15}p1[a-z0-9]{4,8}jsn[a-z0-9]{10,16}+"),
    prefixed("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", f"{ALNUM}{{16,32}}+"),
    prefixed("intra42-secret", "s-s4t2ud- s-s4t2af-", f"{HEX}{{64,80}}+"),
    # feature flags
    loose("launchdarkly-key", "sdk- api- mob- rel-", UUID),
    prefixed("configcat-key", "configcat-sdk-1/", r"[A-Za-z0-9_\-]{22}/[A-Za-z0-9_\-]{22}"),
    loose("flagsmith-key", "ser.", f"{ALNUM}{{20,32}}+"),
    loose("statsig-key", "secret- console-", f"{ALNUM}{{36,64}}+"),
    # monitoring
    prefixed("datadog-key", "ddapp_", f"{ALNUM}{{30,48}}+"),
    prefixed("new-relic-key", "NRAK- NRII- NRIQ- NRRA- NRAA- NRSP-", r"[A-Za-z0-9_\-]{20,48}+"),
    prefixed("new-relic-key", "NRJS-", f"{HEX}{{19,32}}+"),
    inside("new-relic-key", r"[0-9a-fA-F]{30,36}(?:xx10(?:ue|su|vog))?", "NRAL", ""),
    prefixed("sentry-token", "sntrys_ sntryu_ sntrya_ sntryi_", r"[A-Za-z0-9+/=_\-]{40,400}+"),
    prefixed("grafana-token", "glsa_", r"[A-Za-z0-9]{28,40}+_[0-9A-Fa-f]{8}"),
    prefixed("grafana-token", "glc_", f"{BASE64}{{32,400}}+={{0,3}}+"),
    prefixed("grafana-key", "eyJrIjoi", f"{BASE64}{{60,400}}+={{0,3}}+"),
    prefixed("honeycomb-key", "hcaik_ hcbik_ hcxik_ hcmik_ hcxmk_ hcalk_", f"{ALNUM}{{40,80}}+"),
    prefixed("dynatrace-token", "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", r"[A-Z0-9]{8,32}+\.[A-Z0-9]{48,80}+"),
    prefixed("pagerduty-token", "pdus+_ pdeu+_", f"{WORD}{{30,64}}+"),
    prefixed("axiom-token", "xaat- xapt-", UUID),
    prefixed("logfire-token", "pylf_v1_ pylf_v2_", r"[a-z]{2,8}+_[A-Za-z0-9]{36,64}+"),
    prefixed("posthog-key", "phx_ phs_ pha_ phr_", f"{ALNUM}{{36,64}}+"),
    prefixed("inngest-key", "signkey-prod- signkey-test- signkey-branch-", f"{HEX}{{40,80}}+"),
    prefixed("trigger-dev-key", "tr_prod_ tr_dev_ tr_stg_ tr_pat_", f"{ALNUM}{{18,64}}+"),
    prefixed("liveblocks-key", "sk_prod_ sk_dev_", f"{WORD}{{40,96}}+"),
    prefixed("arcjet-key", "ajkey_", f"{LOWER}{{26,40}}+"),
    prefixed("zuplo-key", "zpka_", r"[A-Za-z0-9_]{32,80}+"),
    prefixed("ory-token", "ory_pat_ ory_at_ ory_st_ ory_rt_ ory_apikey_", f"{DOTTED}{{28,160}}+"),
    prefixed("permit-key", "permit_key_", f"{ALNUM}{{60,120}}+"),
    prefixed("kong-token", "kpat_ spat_", f"{ALNUM}{{40,64}}+"),
    prefixed("svix-key", "testsk_", r"[A-Za-z0-9._\-]{24,80}+"),
    prefixed("readme-key", "rdme_", f"{LOWER}{{60,80}}+"),
    prefixed(
        "authress-key",
        "scauth_ authress_",
        r"[A-Za-z0-9]{5,30}+\.[A-Za-z0-9]{4,6}+\.acc[_\-][A-Za-z0-9\-]{10,32}+\.[A-Za-z0-9+/_=\-]{30,120}+",
    ),
    prefixed("adobe-secret", "p8e-", f"{WORD}{{28,48}}+"),
    inside("maxmind-key", r"[A-Za-z0-9]{29}_[A-Za-z0-9]{6}", "_mmk", ""),
    loose("cal-com-key", "cal_live_ cal_test_ cal_", f"{ANYHEX}{{32,48}}+"),
)


PEOPLE: tuple[Vendor, ...] = (
    # messages
    prefixed("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxo- xoxs- xoxc- xoxd- xoxe-", r"[A-Za-z0-9\-%+/=_]{16,400}+"),
    prefixed("slack-token", "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9\-]{40,400}+"),
    prefixed("slack-token", "xapp- xwfp-", r"[A-Za-z0-9\-]{20,200}+"),
    inside("telegram-token", "[0-9]{7,12}", ":AA", f"{WORD}{{32,36}}+"),
    *(inside("discord-token", f"{WORD}{{23,28}}", f".{sign}", r"[A-Za-z0-9_\-]{5}\.[A-Za-z0-9_\-]{26,45}+") for sign in "GXYCD"),
    loose("twilio-key", "SK", f"{HEX}{{32}}(?![A-Za-z0-9])"),
    loose("sendgrid-key", "SG.", r"[A-Za-z0-9_\-]{16,32}+\.[A-Za-z0-9_\-]{32,64}+"),
    loose("mailgun-key", "key-", f"{HEX}{{32}}(?![A-Za-z0-9])"),
    loose("mailgun-key", "pubkey-", f"{HEX}{{32}}(?![A-Za-z0-9])"),
    inside("mailchimp-key", "[0-9a-f]{32}", "-us", "[0-9]{1,2}(?![A-Za-z0-9])"),
    loose("mandrill-key", "md-", f"{WORD}{{22}}(?![A-Za-z0-9_\\-])"),
    prefixed("brevo-key", "xkeysib- xsmtpsib-", r"[0-9a-f]{48,80}+(?:-[A-Za-z0-9]{12,24}+)?"),
    loose("resend-key", "re_", r"[A-Za-z0-9]{8,10}_[A-Za-z0-9]{20,32}+"),
    loose("mailersend-key", "mlsn.", f"{HEX}{{48,80}}+"),
    prefixed("onesignal-key", "os_v2_app_ os_v2_org_", f"{LOWER}{{60,128}}+"),
    loose("klaviyo-key", "pk_", f"{HEX}{{34}}(?![A-Za-z0-9])"),
    prefixed("intercom-token", "dG9rOm", f"{BASE64}{{40,80}}+={{0,2}}+"),
    prefixed("hubspot-token", "pat-na1- pat-na2- pat-eu1- pat-ap1-", UUID),
    inside("salesforce-session", "[A-Za-z0-9]{12,15}D00", "!", r"[A-Za-z0-9_.]{60,200}+"),
    # documents, plans, pictures
    prefixed("notion-token", "ntn_", f"{ALNUM}{{36,64}}+"),
    loose("notion-token", "secret_", f"{ALNUM}{{40,64}}+"),
    loose("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{40,80}+"),
    loose("asana-token", "1/ 2/", r"[0-9]{10,20}+(?:/[0-9]{10,20}+)?:[0-9a-f]{32}"),
    loose("clickup-token", "pk_", r"[0-9]{5,12}+_[A-Z0-9]{28,40}+"),
    prefixed("linear-key", "lin_api_ lin_oauth_ lin_wh_", f"{ALNUM}{{32,80}}+"),
    prefixed("atlassian-token", "ATATT3 ATCTT3 ATSTT3", r"[A-Za-z0-9_\-=]{40,400}+"),
    loose("trello-token", "ATTA", f"{ANYHEX}{{60,80}}+"),
    prefixed("figma-token", "figd_ figu_ figo_", f"{WORD}{{36,64}}+"),
    prefixed("canva-secret", "cnvca", f"{WORD}{{40,64}}+"),
    prefixed("contentful-token", "CFPAT-", f"{WORD}{{40,64}}+"),
    prefixed("frame-io-token", "fio-u-", r"[A-Za-z0-9_\-=]{60,80}+"),
    prefixed("typeform-token", "tfp_", r"[A-Za-z0-9_\-.=]{40,80}+"),
    loose("dropbox-token", "sl. sl.u.", r"[A-Za-z0-9_\-]{100,1400}+"),
    loose("zoho-token", "1000.", r"[0-9a-f]{32}\.[0-9a-f]{32}"),
    loose("mapbox-token", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_\-]{30,200}+(?:\.[A-Za-z0-9_\-]{16,40}+)?"),
    # crowds
    loose("facebook-token", "EAA", f"{ALNUM}{{80,400}}+"),
    loose("instagram-token", "IGQV IGQW IGAA", f"{WORD}{{80,400}}+"),
    loose("twitter-bearer", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,120}+"),
    prefixed("linkedin-secret", "WPL_AP1.", f"{ALNUM}{{12,40}}+(?:\\.[A-Za-z0-9+/=]{{4,16}}+)?"),
    prefixed("pinterest-token", "pina_", f"{ALNUM}{{60,120}}+"),
    loose("tiktok-token", "act.", r"[A-Za-z0-9]{40,100}+(?:![A-Za-z0-9.]{4,12}+)?"),
    # money and goods
    prefixed("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_ ek_live_ ek_test_", f"{WORD}{{16,256}}+"),
    prefixed("webhook-secret", "whsec_", r"[A-Za-z0-9+/_\-]{24,80}+={0,2}+"),
    prefixed("square-token", "sq0atp- sq0csp- sandbox-sq0csb- sandbox-sq0atb-", f"{WORD}{{20,64}}+"),
    loose("square-token", "EAAA", f"{WORD}{{58,64}}(?![A-Za-z0-9_\\-])"),
    prefixed("paypal-token", "access_token$production$ access_token$sandbox$", r"[0-9a-z]{12,24}+\$[0-9a-f]{28,40}+"),
    loose("paypal-token", "A21AA", f"{WORD}{{60,120}}+"),
    prefixed("razorpay-key", "rzp_live_ rzp_test_", f"{ALNUM}{{14,32}}+"),
    prefixed("flutterwave-key", "FLWSECK- FLWSECK_TEST- FLWSECK_LIVE-", r"[0-9A-Za-z]{12,40}+(?:-X)?"),
    loose("mollie-key", "live_ test_", f"{ALNUM}{{30,48}}+"),
    loose("gocardless-token", "live_ sandbox_", f"{WORD}{{40,48}}+"),
    prefixed("plaid-token", "access-sandbox- access-development- access-production-", UUID),
    loose("adyen-key", "AQE", f"{BASE64}{{60,120}}+={{0,2}}+\\-[A-Za-z0-9+/=\\-]{{30,120}}+"),
    prefixed("paddle-key", "pdl_live_ pdl_sdbx_ pdl_ntfset_", r"[A-Za-z0-9_+/=]{40,96}+"),
    prefixed("polar-token", "polar_oat_ polar_pat_ polar_whs_ polar_cst_", f"{WORD}{{32,80}}+"),
    prefixed("mercury-token", "secret-token:mercury_", f"{WORD}{{30,120}}+"),
    prefixed("brex-token", "bxt_", f"{ALNUM}{{32,64}}+"),
    prefixed("ramp-secret", "ramp_sec_", f"{ALNUM}{{32,64}}+"),
    prefixed("stytch-secret", "secret-live- secret-test-", r"[A-Za-z0-9_\-]{32,64}+={0,2}+"),
    prefixed("onfido-token", "api_live. api_sandbox. api_live_us. api_live_ca.", r"[A-Za-z0-9_\-]{8,16}+\.[A-Za-z0-9_\-]{24,48}+"),
    prefixed("persona-key", "persona_sandbox_ persona_production_", r"[0-9a-f\-]{32,48}+"),
    prefixed("shopify-token", "shpat_ shpca_ shppa_ shpss_ shprt_ shptka_", f"{ANYHEX}{{30,64}}+"),
    loose("woocommerce-key", "ck_ cs_", f"{HEX}{{40}}(?![A-Za-z0-9])"),
    prefixed("shippo-token", "shippo_live_ shippo_test_", f"{HEX}{{36,48}}+"),
    prefixed("easypost-key", "EZAK EZTK", f"{ALNUM}{{50,64}}+"),
    prefixed("duffel-token", "duffel_live_ duffel_test_", r"[A-Za-z0-9_\-=]{36,64}+"),
    # coins
    loose("bip32-key", "xprv yprv zprv tprv uprv vprv", r"[1-9A-HJ-NP-Za-km-z]{100,112}+"),
    loose("nostr-key", "nsec1", "[02-9ac-hj-np-z]{58}"),
)


MODELS: tuple[Vendor, ...] = (
    prefixed("anthropic-key", "sk-ant-", f"{WORD}{{16,512}}+"),
    prefixed("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", f"{WORD}{{20,512}}+"),
    inside("openai-key", r"[A-Za-z0-9_\-]{16,200}-ks", "T3BlbkFJ", f"{WORD}{{12,256}}+"),
    loose("openai-key", "sk-", f"{ALNUM}{{32,200}}+"),
    loose("openai-session", "sess-", f"{ALNUM}{{40,80}}+"),
    loose("openai-ephemeral-key", "ek_", f"{LOWER}{{32,80}}+"),
    prefixed("openrouter-key", "sk-or-", f"{WORD}{{32,128}}+"),
    prefixed("langfuse-key", "sk-lf- pk-lf-", UUID),
    prefixed("helicone-key", "sk-helicone- pk-helicone-", r"[A-Za-z0-9\-]{20,128}+"),
    prefixed("kimi-key", "sk-kimi-", f"{ALNUM}{{32,128}}+"),
    prefixed("dashscope-key", "sk-sp-", f"{ANYHEX}{{24,64}}+"),
    prefixed("cerebras-key", "csk-", f"{LOWER}{{40,80}}+"),
    loose("voyage-key", "pa- al-", f"{WORD}{{40,80}}+"),
    prefixed("groq-key", "gsk_", f"{ALNUM}{{40,128}}+"),
    loose("xai-key", "xai- xai-token-", f"{ALNUM}{{60,128}}+"),
    prefixed("perplexity-key", "pplx-", f"{ALNUM}{{32,96}}+"),
    prefixed("replicate-token", "r8_", f"{ALNUM}{{32,80}}+"),
    prefixed("huggingface-token", "hf_ api_org_", f"{ALNUM}{{30,80}}+", spelled=True),
    prefixed("nvidia-key", "nvapi-", f"{WORD}{{40,128}}+"),
    prefixed("together-key", "tgp_v1_", f"{WORD}{{32,128}}+"),
    prefixed("fireworks-key", "fw_", f"{ALNUM}{{22,64}}+"),
    prefixed("anyscale-key", "esecret_", f"{LOWER}{{20,64}}+"),
    prefixed("runpod-key", "rpa_", f"{ALNUM}{{36,80}}+"),
    loose("modal-token", "ak- as-", f"{ALNUM}{{22,32}}+"),
    prefixed("llamacloud-key", "llx-", f"{WORD}{{32,96}}+"),
    prefixed("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{24,40}+(?:_[0-9a-f]{6,16}+)?"),
    prefixed("langsmith-key", "ls__", f"{HEX}{{32,64}}+"),
    prefixed("pinecone-key", "pcsk_", r"[A-Za-z0-9]{4,8}+_[A-Za-z0-9]{40,80}+"),
    prefixed("tavily-key", "tvly-", f"{WORD}{{20,80}}+"),
    loose("firecrawl-key", "fc-", f"{HEX}{{32,64}}+"),
    prefixed("jina-key", "jina_", f"{WORD}{{40,96}}+"),
    prefixed("elevenlabs-key", "sk_", f"{HEX}{{48,64}}+"),
    prefixed("cartesia-key", "sk_car_", f"{ALNUM}{{20,64}}+"),
    prefixed("e2b-key", "e2b_", f"{HEX}{{40,64}}+"),
    prefixed("browserbase-key", "bb_live_", f"{WORD}{{20,64}}+"),
    prefixed("mem0-key", "m0-", f"{ALNUM}{{36,64}}+"),
    prefixed("zep-key", "z_1dWlkIjoi", f"{DOTTED}{{40,400}}+"),
    prefixed("apify-token", "apify_api_ apify_proxy_", f"{ALNUM}{{20,64}}+"),
    prefixed("weights-and-biases-key", "wandb_v1_", f"{WORD}{{40,128}}+"),
    prefixed("braintrust-key", "bt-st-", f"{ALNUM}{{32,64}}+"),
    loose("promptlayer-key", "pl_", f"{HEX}{{32,64}}+"),
    prefixed("openpipe-key", "opk_", f"{ALNUM}{{32,64}}+"),
    prefixed("friendli-token", "flp_", f"{ALNUM}{{40,80}}+"),
    prefixed("cursor-key", "crsr_", f"{HEX}{{48,80}}+"),
    loose("cursor-key", "key_", f"{LOWER}{{64,128}}+"),
    prefixed("sourcegraph-token", "sgp_", r"(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40,64}+"),
    prefixed("sourcegraph-token", "slk_", f"{HEX}{{40,80}}+"),
)


CLOUDS: tuple[Vendor, ...] = (
    # Amazon
    prefixed("aws-access-key", "AKIA ASIA", "[A-Z2-7]{16,20}+(?![A-Za-z0-9+/])", spelled=True),
    loose("aws-access-key", "ABIA ACCA", "[A-Z2-7]{16,20}+(?![A-Za-z0-9+/])", spelled=True),
    prefixed("aws-bedrock-key", "ABSK", f"{BASE64}{{80,400}}+={{0,2}}+"),
    prefixed("aws-bedrock-key", "bedrock-api-key-", f"{BASE64}{{40,4000}}+={{0,2}}+"),
    loose("aws-session-token", "IQoJb3JpZ2luX2Vj FwoGZXIvYXdz", f"{BASE64}{{40,4000}}+={{0,2}}+"),
    prefixed("aws-appsync-key", "da2-", f"{LOWER}{{26,32}}+"),
    # Google
    prefixed("google-api-key", "AIza", f"{WORD}{{30,48}}+"),
    loose("google-api-key", "AQ.Ab8RN6", f"{WORD}{{24,96}}+"),
    prefixed("google-client-secret", "GOCSPX-", f"{WORD}{{24,48}}+"),
    prefixed("google-access-token", "ya29.", f"{DOTTED}{{20,2000}}+"),
    loose("google-refresh-token", "1//0", f"{WORD}{{40,256}}+"),
    loose("google-authorization-code", "4/0A", f"{WORD}{{40,256}}+"),
    inside("firebase-key", f"{WORD}{{11,22}}", ":APA91b", f"{WORD}{{80,256}}+"),
    # Microsoft: a few characters in the middle of a key name its service
    inside("azure-client-secret", r"[0-9][A-Za-z0-9_.~\-]{3}", "Q~", r"[A-Za-z0-9_.~\-]{31,40}+"),
    inside("azure-storage-key", f"{BASE64}{{38,80}}", "+ASt", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-cosmos-key", f"{BASE64}{{60,80}}", "ACDb", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-service-bus-key", f"{BASE64}{{30,80}}", "+ASb", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-event-hub-key", f"{BASE64}{{30,80}}", "+AEh", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-iot-key", f"{BASE64}{{30,80}}", "AIoT", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-batch-key", f"{BASE64}{{60,80}}", "+ABa", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-ml-key", f"{BASE64}{{30,80}}", "+AMC", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-redis-key", f"{ALNUM}{{30,80}}", "AzCa", f"{ALNUM}{{4,8}}+={{0,2}}+"),
    inside("azure-search-key", f"{ALNUM}{{30,80}}", "AzSe", f"{ALNUM}{{4,8}}+={{0,2}}+"),
    inside("azure-function-key", f"{WORD}{{30,80}}", "AzFu", f"{WORD}{{4,8}}+={{0,2}}+"),
    inside("azure-registry-key", f"{BASE64}{{30,80}}", "+ACR", f"{BASE64}{{4,8}}+={{0,2}}+"),
    inside("azure-devops-token", f"{ALNUM}{{70,80}}", "AZDO", f"{ALNUM}{{4,8}}+"),
    inside("azure-openai-key", f"{ALNUM}{{40,60}}", "JQQJ99", f"{ALNUM}{{20,60}}+"),
    # other clouds
    loose("alibaba-access-key", "LTAI", f"{ALNUM}{{12,28}}+"),
    loose("tencent-secret-id", "AKID", f"{ALNUM}{{32,40}}+"),
    prefixed("baidu-key", "bce-v3/ALTAK-", r"[A-Za-z0-9]{20,24}+/[0-9a-f]{40,64}+"),
    loose("volcengine-key", "AKLT", f"{ALNUM}{{30,60}}+"),
    loose("yandex-key", "AQVN", f"{WORD}{{35,48}}+"),
    loose("yandex-token", "t1.9eu", r"[A-Za-z0-9_\-=.]{60,400}+"),
    loose("yandex-token", "y0_", f"{WORD}{{40,80}}+"),
    prefixed("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", f"{HEX}{{40,80}}+"),
    prefixed("heroku-key", "HRKU-", f"{WORD}{{36,80}}+"),
    prefixed("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", f"{WORD}{{24,96}}+"),
    prefixed("vercel-blob-token", "vercel_blob_rw_", f"{WORD}{{24,96}}+"),
    prefixed("netlify-token", "nfp_ nfc_ nfo_ nfb_ nfu_", f"{WORD}{{36,64}}+"),
    prefixed("cloudflare-token", "cfut_ cfat_ cfk_", f"{WORD}{{36,96}}+"),
    prefixed("cloudflare-origin-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,160}+"),
    prefixed("fly-token", "fo1_", f"{WORD}{{40,64}}+"),
    prefixed("fly-token", "fm1r_ fm1a_ fm2_", r"[A-Za-z0-9+/_\-]{60,4000}+={0,3}+"),
    prefixed("render-key", "rnd_", f"{ALNUM}{{28,48}}+"),
    prefixed("railway-token", "rw_Fe26.2**", r"[A-Za-z0-9_\-*.]{60,800}+"),
    prefixed("scalingo-token", "tk-us-", f"{WORD}{{40,64}}+"),
    loose("scaleway-access-key", "SCW", "[A-Z0-9]{17}(?![A-Za-z0-9])", spelled=True),
    prefixed("upcloud-token", "ucat_", f"{UPPER}{{20,40}}+"),
    loose("exoscale-key", "EXO", f"{HEX}{{24,32}}+"),
    loose("backblaze-key", "K001 K002 K003 K004 K005", f"{BASE64}{{27}}(?![A-Za-z0-9+/])"),
    loose("fernet-token", "gAAAAA", f"{WORD}{{80,800}}+={{0,2}}+"),
    prefixed("tailscale-key", "tskey-", r"[a-z]{2,12}+-[A-Za-z0-9]{8,24}+(?:-[A-Za-z0-9]{16,64}+)?"),
    prefixed("netbird-token", "nbp_", f"{ALNUM}{{30,48}}+"),
    prefixed("defined-networking-key", "dnkey-", r"[A-Za-z0-9_=]{20,32}+-[A-Za-z0-9_=\-]{40,64}+"),
    # secret stores and provisioning
    prefixed("vault-token", "hvs. hvb. hvr.", f"{WORD}{{20,400}}+"),
    loose("vault-token", "s.", f"{ALNUM}{{24}}(?![A-Za-z0-9.(])"),
    inside("terraform-token", f"{ALNUM}{{14}}", ".atlasv1.", r"[A-Za-z0-9_\-=]{50,96}+"),
    loose("pulumi-token", "pul-", f"{HEX}{{40,64}}+"),
    loose("doppler-token", "dp.pt. dp.sa. dp.scim. dp.audit.", f"{ALNUM}{{36,64}}+"),
    loose("doppler-token", "dp.st. dp.ct. dp.said.", r"(?:[a-z0-9_\-]{1,40}+\.)?[A-Za-z0-9]{36,64}+"),
    loose("infisical-token", "st.", r"[0-9a-f\-]{24,36}+\.[0-9a-f]{32,64}+\.[0-9a-f]{32,64}+"),
    loose("onepassword-secret-key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    prefixed("onepassword-service-token", "ops_eyJ", r"[A-Za-z0-9+/_\-]{60,4000}+={0,3}+"),
    loose("bitwarden-token", "0.", rf"{UUID}\.[A-Za-z0-9]{{30}}:[A-Za-z0-9+/]{{22}}={{0,2}}+"),
    prefixed("age-key", "AGE-SECRET-KEY-1", "[0-9A-Z]{40,80}+"),
    prefixed("openshift-token", "sha256~", f"{WORD}{{36,64}}+"),
    prefixed("portainer-token", "ptr_", r"[A-Za-z0-9+/_\-]{40,64}+=?"),
    loose("rancher-token", "kubeconfig-u- kubeconfig-user- token-", r"[a-z0-9.\-]{4,24}+:[a-z0-9]{50,60}+"),
    prefixed("jumpcloud-key", "jca_", f"{ALNUM}{{30,48}}+"),
    # databases
    loose("databricks-token", "dapi", r"[0-9a-f]{32,40}+(?:-[0-9])?"),
    loose("databricks-secret", "dose", f"{HEX}{{32,40}}+"),
    prefixed("planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[A-Za-z0-9_=\-.]{30,80}+"),
    prefixed("supabase-key", "sbp_ sbp_oauth_", f"{HEX}{{36,80}}+"),
    prefixed("supabase-key", "sb_secret_", f"{WORD}{{24,64}}+"),
    prefixed("neon-key", "napi_", f"{ALNUM}{{48,96}}+"),
    loose("neon-password", "npg_", f"{ALNUM}{{10,32}}+"),
    prefixed("xata-key", "xau_", f"{ALNUM}{{28,64}}+"),
    prefixed("aiven-password", "AVNS_", f"{WORD}{{12,32}}+"),
    prefixed("mongodb-atlas-secret", "mdb_sa_sk_", f"{WORD}{{36,64}}+"),
    loose("clickhouse-key", "4b1d", f"{ALNUM}{{38}}(?![A-Za-z0-9])"),
    loose("confluent-secret", "cflt", f"{BASE64}{{56,64}}+={{0,2}}+"),
    prefixed("dbt-token", "dbtc_ dbtu_", f"{WORD}{{36,80}}+"),
    prefixed("prefect-key", "pnu_ pnb_", f"{ALNUM}{{30,48}}+"),
    prefixed("elastic-key", "essu_", f"{BASE64}{{40,120}}+={{0,2}}+"),
    loose("convex-key", "prod: dev: preview:", r"[a-z0-9:\-]{3,60}+\|[A-Za-z0-9+/=_\-]{40,200}+"),
    prefixed("snowflake-token", "ver:1-hint:", r"[0-9]{3,20}+-[A-Za-z0-9+/=]{60,400}+"),
    prefixed("appwrite-key", "standard_", f"{HEX}{{60,300}}+"),
    prefixed("tinybird-token", "p.eyJ", f"{DOTTED}{{40,400}}+"),
)


VENDORS: tuple[Vendor, ...] = (*MODELS, *CLOUDS, *WORKSHOP, *PEOPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A vendor's token by one of its anchors, which is ``length`` characters long."""

    kind: str
    length: int
    body: re.Pattern[bytes]
    lead: re.Pattern[bytes] | None
    glued: bool
    spelled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorPatterns:
    r"""Expressions that find anchors: ``anywhere`` in general, ``edged`` only at an edge, but several times as fast.

    An edge is the front of a word, an escape (``\n``) or the rest of a colour code (``[31m``) before it. Group 1 is the anchor;
    without the group the whole match is an anchor that begins with a sign. ``suspects`` has by anchor the vendors that have it, and
    after them those with an anchor that is its prefix.
    """

    anywhere: re.Pattern[bytes]
    edged: re.Pattern[bytes]
    suspects: dict[bytes, tuple[Suspect, ...]]


def catalogue(vendors: Iterable[Vendor]) -> AnchorPatterns:
    suspects: dict[str, list[Suspect]] = {}
    for vendor in vendors:
        body = lazy_regex(vendor.body.encode())
        lead = lazy_regex(vendor.lead.encode()) if vendor.lead else None
        for anchor in vendor.anchors:
            suspects.setdefault(anchor, []).append(
                Suspect(kind=vendor.kind, length=len(anchor), body=body, lead=lead, glued=vendor.glued, spelled=vendor.spelled)
            )
    anywhere = any_of(suspects)
    signed = "".join(
        f"|(?<={re.escape(sign)}){any_of(anchor[1:] for anchor in suspects if anchor[0] == sign)}"
        for sign in sorted({anchor[0] for anchor in suspects if not anchor[0].isalnum()})
    )
    return AnchorPatterns(
        anywhere=lazy_regex(anywhere.encode()),
        edged=lazy_regex(rf"[^A-Za-z0-9](?:(?:(?<=\\)[bfnrt]|(?<=\[)[0-9;]{{1,12}}m)?({anywhere}){signed})".encode()),
        suspects={
            anchor.encode(): tuple(suspect for length in range(len(anchor), 0, -1) for suspect in suspects.get(anchor[:length], ()))
            for anchor in suspects
        },
    )


def any_of(literals: Iterable[str]) -> str:
    """Return an expression for the longest of ``literals``, which reads each character of the text only once or twice."""
    rests: dict[str, list[str]] = {}
    ends = False
    for literal in sorted(set(literals)):
        if literal:
            rests.setdefault(literal[0], []).append(literal[1:])
        else:
            ends = True
    branches = [re.escape(first) + any_of(rest) for first, rest in rests.items()]
    if not branches:
        return ""
    return f"(?:{'|'.join(branches)}){'?' if ends else ''}" if ends or len(branches) > 1 else branches[0]


@cache
def every_vendor() -> AnchorPatterns:
    """Return the catalogue, built on first use: most commands only show text that was redacted before."""
    return catalogue(VENDORS)

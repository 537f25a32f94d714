"""Abbreviations and full forms of common technical terms."""

_FORMS = """
postgres postgresql pg psql
kubernetes k8s kube
javascript js
typescript ts
python py
golang go
ruby rb
database db
repository repo
configuration config cfg
environment env
authentication auth authn
authorization authz
internationalization i18n
localization l10n
accessibility a11y
observability o11y
infrastructure infra
production prod
development dev
documentation docs
dependencies dependency deps dep
directory dir
administrator admin
elasticsearch elastic
terraform tf
github gh
continuous-integration ci
pull-request pr
message-queue mq
mongodb mongo
rabbitmq rabbit
"""
_OF = {form: tuple(line.split()) for line in _FORMS.strip().splitlines() for form in line.split()}
_TOO_COMMON = frozenset({"go"})


def others(word: str) -> tuple[str, ...]:
    """Return other forms of the same name, in lower case; none for a word that mostly means something else."""
    return () if word in _TOO_COMMON else tuple(form for form in _OF.get(word, ()) if form != word and "-" not in form)

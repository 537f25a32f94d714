"""Passwords that people make up, which only their name or their place shows; and what a secret may stand in the midst of."""

import json
import random
from collections.abc import Callable, Mapping

WORDS = [
    "summer",
    "orchard",
    "harvest",
    "ladder",
    "willow",
    "meadow",
    "copper",
    "thistle",
    "barley",
    "hollow",
    "lantern",
    "pebble",
]


def made_up(chance: random.Random) -> str:
    one, other, third = chance.sample(WORDS, 3)
    return chance.choice(
        (
            f"{one}-{other}-{chance.randrange(10, 99)}",
            f"{one.title()}{other.title()}{chance.randrange(1000, 9999)}!",
            f"{one}{other}{chance.randrange(10, 99)}",
            f"{one}_{other}_{third}",
        )
    )


PLACES: Mapping[str, Callable[[str], str]] = {
    "json": lambda word: json.dumps({"user": "ada", "password": word, "region": "eu"}),
    "json in json": lambda word: json.dumps({"out": json.dumps({"user": "ada", "password": word})}),
    "json indented": lambda word: json.dumps({"user": "ada", "password": word, "region": "eu"}, indent=2),
    "yaml": lambda word: f"db:\n  user: ada\n  password: {word}\n  region: eu\n",
    "yaml folded": lambda word: f"db:\n  user: ada\n  password: |\n    {word}\n  region: eu\n",
    "kubernetes": lambda word: f"env:\n- name: DB_PASSWORD\n  value: {word}\n- name: REGION\n  value: eu\n",
    "ecs": lambda word: json.dumps([{"name": "DB_PASSWORD", "value": word}, {"name": "REGION", "value": "eu"}], indent=2),
    "assignment": lambda word: f"DB_USER=ada\nDB_PASSWORD={word}\nREGION=eu\n",
    "export": lambda word: f"export DB_PASSWORD='{word}' && make run\n",
    "curl": lambda word: f"curl -sS https://api.example/v1/trees \\\n  -u ada:{word} \\\n  -o out.json\n",
    "docker login": lambda word: f"docker login registry.example \\\n  -u ada \\\n  -p {word}\n",
    "sshpass": lambda word: f"sshpass -p '{word}' ssh ada@orchard\n",
    "sudo": lambda word: f"echo '{word}' | sudo -S apt update\n",
    "address": lambda word: f"postgres://ada:{word}@db.example/orchard\n",
    "xml": lambda word: f"<db><user>ada</user><password>{word}</password></db>",
    "plist": lambda word: f"<dict>\n<key>password</key>\n<string>{word}</string>\n</dict>\n",
    "terraform": lambda word: f'variable "db_password" {{\n  type = string\n  default = "{word}"\n}}\n',
    "sql": lambda word: f"CREATE USER ada\n  WITH LOGIN\n  PASSWORD '{word}';\n",
    "netrc": lambda word: f"machine api.example\n  login ada\n  password {word}\n",
    "python": lambda word: f'requests.get(\n    url,\n    auth=(\n        "ada",\n        "{word}",\n    ),\n)\n',
    "list": lambda word: f'passwords = [\n    "{word}",\n    "{word}x",\n]\n',
    "cookie": lambda word: f"> Cookie: theme=dark; lang=en; seen=yes; orchard_sid={word}-{word}; last=7\n",
    "table": lambda word: f"| user | ada |\n| password | {word} |\n",
    "sentence": lambda word: f"For now the password is {word} until the trees are in.",
}


def _repeated(parts: tuple[str, ...]) -> Callable[[random.Random, int], str]:
    def filled(chance: random.Random, length: int) -> str:
        text = ""
        while len(text) < length:
            text += "".join(chance.choices(parts, k=40))
        return text[:length]

    return filled


SURROUNDINGS: Mapping[str, Callable[[random.Random, int], str]] = {
    "prose": _repeated(("the orchard ", "has trees\n", "that are grafted ", "in spring,\n    ", "(and in fall) ")),
    "one line": _repeated(("the orchard ", "has trees ", "that are grafted ", "in spring, ")),
    "chinese": _repeated(tuple("果园里的树每年春天嫁接，棚子里放着梯子。\n")),
    "json": _repeated(('"name":"pear",', '"size":12,', '"ripe":true,', '"kinds":["a","b"],', '"at":{"x":1},')),
    "log": _repeated(("2026-11-23T10:02:41.118Z INFO [worker-3] ", "tree 51 grafted in 12ms\n", "tree 7714 pruned\n")),
}

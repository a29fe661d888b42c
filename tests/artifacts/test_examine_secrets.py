"""Credentials are found before they are committed, and ordinary text is left alone."""

from __future__ import annotations

import json
import random
import string
import uuid
from pathlib import Path

import pytest

from yolo_fs.artifacts.examine import MAX_FINDINGS, find_secrets
from yolo_fs.core.credentials import HIDDEN, RULES, SecretPattern, fingerprint, redact
from yolo_fs.core.reasons import Fault, Finding, Reason, YoloError

PROJECT = Path(__file__).parents[2]
WORD = string.ascii_letters + string.digits


def of(alphabet: str, length: int) -> str:
    return "".join(random.Random(length).choice(alphabet) for _ in range(length))


FILES = sorted((PROJECT / "fixtures/secrets").iterdir())
PLANTED = [
    (case["rule"], "".join(case["parts"])) for case in map(json.loads, map(Path.read_text, FILES))
]
"""Invented credentials, one per file, cut in pieces so that no file holds one."""


def rules_hit(data: bytes) -> set[str]:
    return {finding.message.split()[1].rstrip(",") for finding in find_secrets(data, "x")}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_its_own_example_and_no_other_rule_does(rule: SecretPattern) -> None:
    assert rules_hit(b"see " + rule.example + b" there\n") == {rule.name}


@pytest.mark.parametrize(
    ("rule", "secret"), PLANTED, ids=[f"{name}-{n}" for n, (name, _) in enumerate(PLANTED)]
)
def test_a_planted_credential_is_found_in_every_surrounding(rule: str, secret: str) -> None:
    surroundings = [
        secret,
        f"text {secret} text\n",
        f"first\n{secret}\nlast\n",
        json.dumps({"content": f"line\n{secret}\nline"}),
        json.dumps({"content": json.dumps({"v": f"\t{secret}\n"})}),
    ]

    for text in surroundings:
        assert rule in rules_hit(text.encode()), text[:20]


def test_at_least_forty_credentials_are_planted_over_all_rules() -> None:
    assert len(PLANTED) >= 40
    assert {name for name, _ in PLANTED} == {rule.name for rule in RULES}


def test_the_finding_names_the_line_and_rule_and_never_the_value() -> None:
    secret = "ghp_" + of(WORD, 36)
    data = f"{{}}\n{{}}\n{secret}\n".encode()

    (finding,) = find_secrets(data, "phases/01/x.jsonl")

    assert (finding.reason, finding.path, finding.line) == (Reason.SECRET, "phases/01/x.jsonl", 3)
    assert "github_token" in finding.message
    assert secret[:12] not in repr(finding)
    assert secret[-12:] not in repr(finding)


def test_an_allowed_fingerprint_is_passed_over_and_only_that() -> None:
    one, two = (b"ghp_" + char * 36 for char in (b"a", b"b"))
    allowed = frozenset({fingerprint("github_token", one)})

    (finding,) = find_secrets(one + b"\n" + two + b"\n", "x", allowed)

    assert finding.line == 2
    assert finding.message.endswith(fingerprint("github_token", two))


def test_findings_stand_in_the_order_of_the_lines_and_are_limited() -> None:
    lines = b"".join(b"ghp_%036d\n" % number for number in range(MAX_FINDINGS * 2))

    assert [finding.line for finding in find_secrets(lines, "x")] == list(
        range(1, MAX_FINDINGS + 1)
    )


@pytest.mark.parametrize(
    "text",
    [
        "e83c5163316f89bfbde7d9ab23ca2e25604af290",
        "123e4567-e89b-12d3-a456-426614174000",
        '"ch":["abc1234","0123456789abcdef0123456789abcdef01234567"]',
        "password: string",
        '"password":"required, 8 characters"',
        "password=hash(user.password)",
        "password = req.body.password",
        "password: z.string().min(8)",
        'password="your-password-123"',
        "password=${DB_PASSWORD_1}",
        "password=<guid-1234>",
        "password=e83c5163316f89bfbde7d9ab23ca2e25604af290",
        "pwd=/home/user1/project",
        "https://example.org/a:b@c",
        "ssh://git@host:22/x",
        "postgres://user:password@localhost/db",
        "https://$USER:$PASS1@host/",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "the token eyJ is a prefix",
        "sk-learn",
        "task-0123456789abcdef0123456789abcdef",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN " + "CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUF\n",
        "AKIAIOSFODNN7" + "EXAMPLE",
        "sha512-" + of(WORD + "/+", 86) + "==",
        "01-02/T3",
        "ESC-01-02-T3",
        "SKIPPED",
        "npm_config_registry",
    ],
)
def test_ordinary_text_is_no_credential(text: str) -> None:
    assert find_secrets(f'{{"v":"{text}"}}\n{text}\n'.encode(), "x") == ()


def benign_line(chance: random.Random) -> str:
    words = [
        "password",
        "token",
        "secret",
        "hash",
        "login",
        "the",
        "auth",
        "api_key",
        "Bearer",
        "session",
        "commit",
        "url",
    ]
    record = {
        "id": f"C{chance.randrange(99)}",
        "ch": [f"{chance.getrandbits(160):040x}"[: chance.choice([7, 12, 40])] for _ in range(3)],
        "uuid": str(uuid.UUID(int=chance.getrandbits(128))),
        "sha": f"sha256:{chance.getrandbits(256):064x}",
        "f": [f"src/{chance.choice(words)}/{chance.choice(words)}.ts"],
        "q": " ".join(
            chance.choice(words) + chance.choice([":", "=", ",", "", "."]) for _ in range(12)
        ),
        "dt": f"2026-02-{chance.randrange(1, 28):02}T08:00:00Z",
        "url": f"https://host{chance.randrange(9)}.example.org:8080/{chance.choice(words)}?id={chance.getrandbits(64)}",
        "n": chance.getrandbits(60),
    }
    return json.dumps(record)


def test_ten_thousand_benign_lines_are_left_alone() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    data = "".join(benign_line(chance) + "\n" for _ in range(10_000)).encode()

    assert find_secrets(data, "x") == ()


def test_this_project_holds_no_credential() -> None:
    for folder in ("yolo_fs", "tests", "fixtures", "docs", "scripts"):
        for file in sorted((PROJECT / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                assert find_secrets(file.read_bytes(), str(file)) == ()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "unit",
    [
        b"eyJ",
        b"eyJa.",
        b"password=",
        b"password=a1",
        b"://",
        b"://a:",
        b"://a:bcd",
        b"-----BEGIN ",
        b"Q~",
        b"sk-",
        b"SK",
    ],
    ids=repr,
)
def test_four_mebibytes_of_almost_credentials_end(unit: bytes) -> None:
    assert len(find_secrets(unit * ((4 << 20) // len(unit)), "x")) <= MAX_FINDINGS


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


DISGUISES = {
    "first letter": lambda text: f'{{"a": "{escaped(text[0])}{text[1:]}"}}',
    "all letters": lambda text: f'{{"a": "{escaped(text)}"}}',
    "key": lambda text: f'{{"{escaped(text[:3])}{text[3:]}": 1}}',
    "slashes": lambda text: json.dumps({"a": text}).replace("/", "\\/"),
    "equals": lambda text: json.dumps({"a": text}).replace("=", "\\u003d"),
    "form feed": lambda text: f'{{"a": "see\\f{text}"}}',
    "backspace": lambda text: f'{{"a": "see\\b{text}"}}',
    "line feed": lambda text: f'{{"a": "see\\u000a{text}\\u000a"}}',
    "underscores": lambda text: f'{{"a": "GH_{text}_"}}',
    "JSON in JSON": lambda text: json.dumps({"a": json.dumps({"b": escaped(text)})}),
    "no JSON": lambda text: f'{{"a": {escaped(text)}',
    "an array": lambda text: f'{{"a": [["{text[0]}{escaped(text[1])}{text[2:]}"]]}}',
}
WORDS = {rule.name: rule for rule in RULES if rule.name != "private_key"}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", WORDS)
def test_a_credential_is_found_in_what_json_means(name: str, disguise: str) -> None:
    text = DISGUISES[disguise](WORDS[name].example.decode())
    assert name in rules_hit(text.encode() + b"\n")


def test_a_private_key_is_hidden_to_its_end_and_every_line_keeps_its_number() -> None:
    begin, *body = (
        next(rule for rule in RULES if rule.name == "private_key").example.decode().split("\n")
    )
    end = begin.replace("BEGIN", "END")
    key = [begin, *body, "MIIEbody" * 8, "MIIElast" * 4, end]
    for text in (
        "\n".join(["before", *key, "after"]),
        json.dumps({"a": "\n".join(key)}),
        "\n".join(key[:-1]),
    ):
        shown = redact(text)
        assert "MIIE" not in shown and HIDDEN in shown
        assert shown.count("\n") == text.count("\n")
    assert redact("\n".join(["before", *key, "after"])).endswith("\nafter")


@pytest.mark.parametrize("name", WORDS)
def test_no_finding_and_no_error_quotes_a_credential(name: str) -> None:
    text = WORDS[name].example.decode()
    told = f"got {text!r}, which is wrong"
    pointer = "/" + text.replace("~", "~0").replace("/", "~1")
    finding = Finding(Reason.UNKNOWN_KEY, "x", 1, pointer, told, told, told)
    fault = Fault(Reason.UNKNOWN_KEY, f"/{text}", told).as_finding("x")
    error = YoloError(Reason.BAD_CONFIG, told)
    value = text.rpartition(" ")[2]
    for shown in (
        str(finding),
        str(fault),
        str(error),
        error.message,
        json.dumps(finding.as_json()),
    ):
        assert value not in shown
        assert pointer not in shown
        assert HIDDEN in shown


def test_ordinary_text_is_told_as_it_is() -> None:
    assert redact("got 'not a secret at all', expected a number") == (
        "got 'not a secret at all', expected a number"
    )

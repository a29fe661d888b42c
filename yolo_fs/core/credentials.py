"""The forms of credentials, found in the decoded text: escapes are resolved first.

Each rule knows the fixed prefix that its provider gives to every token. There is no entropy rule,
so commit hashes, UUIDs and ids never match. Every pattern is only tried where its prefix is found,
so that the cost is linear.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

_START = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtfb]))"
"""No letter or digit before it, except the letter of an escape in a JSON string."""
_END = rb"(?![A-Za-z0-9])"
_LONG = 4
"""An anchor of at least this length that ends in a symbol is specific enough, even within a word.
"""


class SecretPattern(NamedTuple):
    """One kind of credential."""

    name: str
    anchors: tuple[bytes, ...]
    """Bytes with which every match starts, in lower case where `folded`."""
    pattern: bytes
    """Matched at an anchor, compiled when one is found: few processes see any. The group `value`,
    if there is one, is the credential itself."""
    example: bytes
    """Assembled from parts, so that this file itself contains no credential."""
    folded: bool = False
    """Anchors match in either case."""


def _make_rule(name: str, anchors: str, rest: str, example: str) -> SecretPattern:
    """Return the rule of a token: one of the anchors (words), then `rest`, as a whole word."""
    starts = tuple(anchor.encode() for anchor in anchors.split())
    either = b"|".join(
        (b"" if len(start) >= _LONG and start[-1:] in b"_-" else _START) + re.escape(start)
        for start in starts
    )
    pattern = b"(?:" + either + b")" + rest.encode() + _END
    return SecretPattern(name, starts, pattern, starts[0] + example.encode())


_PLACEHOLDERS = b"password|passwd|pass|pwd|secret|token|example|changeme|placeholder|redacted|xxx+"
_QUOTE = rb"""\\{0,4}["']"""
"""Quotes in JSON within JSON are escaped more than once."""
_PASSWORD = (
    # After a colon only in quotes: it may be prose.
    rb"""(?i:password|passwd|pwd)(?:%s)?[ ]?(?:=[ ]?(?:%s)?|:[ ]?%s)"""
    rb"""(?=[^\s"'\\]{0,63}[0-9])(?=[^\s"'\\]{0,63}[A-Za-z])"""
    rb"""(?!(?i:your|my|some|the|min|max|test|example|changeme|placeholder|redacted|xxx))"""
    rb"""(?![0-9a-f-]{7,64}(?:["'\s,;\\]|$))"""  # hashes and UUIDs
    rb"""(?P<value>[A-Za-z0-9!@#%%^&*+=~_-]{8,64})(?=%s|[\s,;]|\\{1,4}n|$)""" % ((_QUOTE,) * 4)
)

RULES: tuple[SecretPattern, ...] = (
    SecretPattern(
        "private_key",
        (b"-----BEGIN ",),
        (
            rb"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----(?:\\{1,4}[rn]|\s){1,8}"
            rb"(?:Proc-Type|Version|Comment|[A-Za-z0-9+/=]{24})"
        ),
        b"-----BEGIN " + b"RSA PRIVATE KEY-----\n" + b"MIIEow" * 6,
    ),
    _make_rule("aws_access_key_id", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}(?<!EXAMPLE)", "Z7" * 8),
    SecretPattern(
        "aws_secret_access_key",
        (b"aws_secret_access_key", b"secretaccesskey"),
        (
            rb"(?i:aws_secret_access_key|secretaccesskey)(?:%s)?[ ]?[:=][ ]?(?:%s)?"
            rb"(?P<value>[A-Za-z0-9/+]{40})(?<!EXAMPLEKEY)(?![A-Za-z0-9/+])" % (_QUOTE, _QUOTE)
        ),
        b"aws_secret_access_key" + b" = " + b"aB3/" * 10,
        folded=True,
    ),
    _make_rule("google_api_key", "AIza", "[A-Za-z0-9_-]{35}", "Sy0aB" * 7),
    _make_rule("google_oauth_secret", "GOCSPX-", "[A-Za-z0-9_-]{28}", "aB3d" * 7),
    _make_rule("google_oauth_token", "ya29.", "[A-Za-z0-9_-]{30,1024}", "a0Af" * 12),
    SecretPattern(
        "azure_storage_key",
        (b"AccountKey=",),
        rb"AccountKey=(?P<value>[A-Za-z0-9+/]{86}==)",
        b"AccountKey" + b"=" + b"aB" * 43 + b"==",
    ),
    SecretPattern(
        "azure_client_secret",
        (b"Q~",),
        rb"(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,34}" + _END,
        b"abc8" + b"Q~" + b"aB3_" * 8,
    ),
    _make_rule("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", "[a-f0-9]{64}", "0a1b" * 16),
    _make_rule("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{36,255}", "aB3d" * 9),
    _make_rule(
        "github_fine_grained_token",
        "github_pat_",
        "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        "aB" * 11 + "_" + "c" * 59,
    ),
    _make_rule(
        "gitlab_token", "glpat- gldt- glrt- glptt- glcbt-", "[A-Za-z0-9_.-]{20,128}", "aB3d" * 5
    ),
    _make_rule(
        "slack_token",
        "xoxa- xoxb- xoxe- xoxp- xoxr- xoxs-",
        "[A-Za-z0-9-]{20,255}",
        "1234567890-" * 3 + "aB",
    ),
    _make_rule(
        "slack_app_token",
        "xapp-",
        "[0-9]-[A-Z0-9]{8,16}-[0-9]{8,16}-[a-f0-9]{64}",
        f"1-{'A1' * 5}-{'2' * 9}-{'a' * 64}",
    ),
    SecretPattern(
        "slack_webhook",
        (b"hooks.slack.com/",),
        (
            rb"hooks\.slack\.com/(?:services|workflows)/T[A-Z0-9]{7,12}/[AB][A-Z0-9]{7,12}"
            rb"/[A-Za-z0-9/]{20,64}"
        ),
        b"hooks.slack.com" + b"/services/T" + b"0" * 8 + b"/B" + b"1" * 8 + b"/" + b"aB" * 12,
    ),
    SecretPattern(
        "discord_webhook",
        (b"/api/webhooks/",),
        rb"/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,80}",
        b"/api/" + b"webhooks/" + b"1" * 18 + b"/" + b"aB" * 34,
    ),
    SecretPattern(
        "telegram_bot_token",
        (b":AA",),
        rb"(?<=[0-9]{8}):AA[A-Za-z0-9_-]{33}" + _END,
        b"12345678" + b":AA" + b"aB3" * 11,
    ),
    _make_rule(
        "stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", "[A-Za-z0-9]{16,255}", "aB3d" * 6
    ),
    _make_rule("shopify_token", "shpat_ shpca_ shppa_ shpss_", "[A-Fa-f0-9]{32}", "0a1B" * 8),
    _make_rule(
        "sendgrid_key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", "aB" * 11 + "." + "c" * 43
    ),
    _make_rule("twilio_key", "SK", "[a-f0-9]{32}", "0a1b" * 8),
    _make_rule("npm_token", "npm_", "[A-Za-z0-9]{36}", "aB3d" * 9),
    _make_rule("pypi_token", "pypi-AgE", "[A-Za-z0-9_-]{50,512}", "aB3d" * 15),
    _make_rule("rubygems_key", "rubygems_", "[a-f0-9]{48}", "0a1b" * 12),
    _make_rule("docker_token", "dckr_pat_ dckr_oat_", "[A-Za-z0-9_-]{27,40}", "aB3" * 9),
    _make_rule("vault_token", "hvs. hvb.", "[A-Za-z0-9_-]{24,255}", "aB3d" * 8),
    _make_rule("hf_token", "hf_", "[A-Za-z]{34}", "aB" * 17),
    _make_rule(
        "sk_api_key",
        "sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-ant-",
        "[A-Za-z0-9_-]{40,255}",
        "aB3d" * 12,
    ),
    _make_rule("sk_api_key_plain", "sk-", "[A-Za-z0-9]{32,64}", "aB3d" * 12),
    _make_rule("linear_key", "lin_api_", "[A-Za-z0-9]{40}", "aB3d" * 10),
    _make_rule("age_secret_key", "AGE-SECRET-KEY-1", "[A-Z0-9]{58}", "QP" * 29),
    _make_rule(
        "json_web_token",
        "eyJ",
        r"[A-Za-z0-9_-]{10,4096}\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{16,2048}",
        f"{'aB' * 8}.eyJ{'cD' * 8}.{'eF' * 12}",
    ),
    SecretPattern(
        "authorization_header",
        (b"authorization",),
        (
            rb"(?i:authorization)(?:%s)?[ ]?[:=][ ]?(?:%s)?(?i:bearer|basic|token)[ ]{1,4}"
            rb"(?P<value>[A-Za-z0-9._~+/-]{20,4096}=*)" % (_QUOTE, _QUOTE)
        ),
        b"Authorization: " + b"Bearer " + b"aB3d" * 8,
        folded=True,
    ),
    SecretPattern(
        "password_value",
        (b"password", b"passwd", b"pwd"),
        _PASSWORD,
        b"password" + b"=" + b"hunter2x!",
        folded=True,
    ),
    SecretPattern(
        "url_with_password",
        (b"://",),
        (
            rb"""(?<=[A-Za-z])://[^\s/:@"'<>{}$\\]{0,64}:(?!(?i:%s)@)"""
            rb"""(?P<value>[^\s/:@"'<>{}$*\\]{3,128})@[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]{0,253}"""
            % _PLACEHOLDERS
        ),
        b"postgres" + b"://app:" + b"S3cr3tly" + b"@db.internal/app",
    ),
)


class Hit(NamedTuple):
    """A match of a rule."""

    offset: int
    rule: str
    fingerprint: str
    """Identifies the credential without revealing it; a configuration lists it to allow the
    credential."""
    value: bytes


def find_hits(data: bytes) -> Iterator[tuple[int, Hit]]:
    """Yield line and match of each credential, including one that is hidden by escapes."""
    seen = set()
    for text in _unescape_levels(data):
        for hit in _find_hits(text):
            line = text.count(b"\n", 0, hit.offset) + 1
            if (line, hit.rule, hit.fingerprint) not in seen:
                seen.add((line, hit.rule, hit.fingerprint))
                yield line, hit


def is_secret(text: str) -> bool:
    """Return whether a text contains what looks like a credential."""
    return next(find_hits(text.encode("utf-8", "replace")), None) is not None


def redact(text: str) -> str:
    """Return a text with its credentials hidden."""
    if len(text) < _SHORTEST:
        return text
    return _redact_again(text) if len(text) <= _OFTEN_MOST else _redact(text)


def _redact(text: str) -> str:
    if not is_secret(text):
        return text
    text = _WHOLE_KEY.sub(lambda match: HIDDEN + "\n" * match[0].count("\n"), text)
    for _, hit in find_hits(text.encode("utf-8", "replace")):
        text = text.replace(hit.value.decode("utf-8", "replace"), HIDDEN)
    return HIDDEN if is_secret(text) else text


_redact_again = lru_cache(maxsize=1024)(_redact)
"""Cached because findings mostly repeat the same texts: a file of bad lines has thousands."""
_OFTEN_MOST = 300

HIDDEN = "(hidden: it looks like a credential)"
_SHORTEST = 12
_WHOLE_KEY = re.compile(
    "-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY.*?"
    r"(?:-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
"""The extent of a private key to hide; its detection rule needs only the beginning."""


def fingerprint(rule: str, value: bytes) -> str:
    """Return 16 hexadecimal digits that identify a credential."""
    return hashlib.sha256(rule.encode() + b"\0" + value).hexdigest()[:16]


_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))")
_DEEPEST = 3
"""Maximum levels of escaped text: JSON in a string of JSON in a string."""


def _unescape_levels(data: bytes) -> Iterator[bytes]:
    """Yield the bytes, then with their escapes resolved, once for each level."""
    yield data
    for _ in range(_DEEPEST):
        if b"\\" not in data:
            return
        data = _ESCAPE.sub(_unescape, data)
        yield data


def _unescape(escape: re.Match[bytes]) -> bytes:
    code, letter = escape.groups()
    if code is None:
        return b" " if letter in b"nrtfb" else letter
    char = chr(int(code, 16))
    return b" " if char < " " else char.encode("utf-8", "replace")


def _find_hits(data: bytes) -> Iterator[Hit]:
    lowered = data.lower()
    for rule in RULES:
        haystack = lowered if rule.folded else data
        for anchor in rule.anchors:
            if anchor not in haystack:  # nearly always; spares a generator for each anchor
                continue
            for offset in _places(haystack, anchor):
                if match := _compiled(rule.pattern).match(data, offset):
                    value = match["value"] if "value" in match.re.groupindex else match[0]
                    yield Hit(offset, rule.name, fingerprint(rule.name, value), value)


_compiled = cache(re.compile)


def _places(haystack: bytes, needle: bytes) -> Iterator[int]:
    offset = haystack.find(needle)
    while offset >= 0:
        yield offset
        offset = haystack.find(needle, offset + 1)

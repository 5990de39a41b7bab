"""Keys, credentials and personal data by the grammars of their formats, and texts that only look so."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import struct
import sysconfig
import uuid
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"
CAPITALS = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
Draw = Callable[[random.Random], str]


def run(characters: str, least: int, most: int = 0) -> Draw:
    """Return a draw of so many characters."""
    return lambda chance: "".join(chance.choices(characters, k=chance.randint(least, most or least)))


def form(text: str, **parts: Draw) -> Draw:
    """Return a draw of a text with parts."""
    return lambda chance: text.format(**{name: part(chance) for name, part in parts.items()})


def tokens() -> dict[str, Draw]:
    """Return the keys of providers, in the lengths that they come in."""
    a, w, c, h = (partial(run, characters) for characters in (ALNUM, WORD, CAPITALS, HEX))
    return {
        "openai": form("sk-proj-{x}", x=w(120)),
        "openai old": form("sk-{x}", x=a(48)),
        "anthropic": form("sk-ant-api03-{x}-AA", x=w(93)),
        "openrouter": form("sk-or-v1-{x}", x=h(64)),
        "langfuse": lambda chance: f"sk-lf-{uuid.UUID(int=chance.getrandbits(128))}",
        "stripe": form("sk_live_{x}", x=run(ALNUM, 24, 99)),
        "stripe restricted": form("rk_test_{x}", x=a(24)),
        "stripe webhook": form("whsec_{x}", x=a(32)),
        "google": form("AIza{x}", x=w(35)),
        "google oauth": form("GOCSPX-{x}", x=w(28)),
        "google access": form("ya29.{x}", x=w(120)),
        "hugging face": form("hf_{x}", x=run(string.ascii_letters, 34)),
        "groq": form("gsk_{x}", x=a(52)),
        "xai": form("xai-{x}", x=a(80)),
        "perplexity": form("pplx-{x}", x=a(48)),
        "replicate": form("r8_{x}", x=a(37)),
        "langsmith": form("lsv2_pt_{x}_{y}", x=h(32), y=h(10)),
        "pinecone": form("pcsk_{x}_{y}", x=a(6), y=a(63)),
        "notion": form("secret_{x}", x=a(43)),
        "linear": form("lin_api_{x}", x=a(40)),
        "npm": form("npm_{x}", x=a(36)),
        "pypi": form("pypi-AgEIcHlwaS5vcmc{x}", x=w(130)),
        "sendgrid": form("SG.{x}.{y}", x=w(22), y=w(43)),
        "mailgun": form("key-{x}", x=h(32)),
        "twilio": form("SK{x}", x=h(32)),
        "shopify": form("shpat_{x}", x=h(32)),
        "vault": form("hvs.{x}", x=w(90)),
        "grafana": form("glsa_{x}_{y}", x=a(32), y=h(8)),
        "databricks": form("dapi{x}", x=h(32)),
        "doppler": form("dp.pt.{x}", x=a(43)),
        "docker": form("dckr_pat_{x}", x=w(27)),
        "new relic": form("NRAK-{x}", x=c(27)),
        "digitalocean": form("dop_v1_{x}", x=h(64)),
        "supabase": form("sbp_{x}", x=h(40)),
        "github": form("ghp_{x}", x=a(36)),
        "github fine": form("github_pat_{x}_{y}", x=a(22), y=a(59)),
        "gitlab": form("glpat-{x}", x=w(20)),
        "slack": form("xoxb-{x}-{x}-{y}", x=run(string.digits, 12), y=a(24)),
        "slack app": form("xapp-1-{x}-{y}-{z}", x=c(11), y=run(string.digits, 13), z=h(64)),
        "slack webhook": form("https://hooks.slack.com/services/T{x}/B{y}/{z}", x=c(9), y=c(10), z=a(24)),
        "telegram": form("{x}:AA{y}", x=run(string.digits, 8, 10), y=w(33)),
        "aws id": form("AKIA{x}", x=run(string.ascii_uppercase + "234567", 16)),
        "aws secret": form("aws_secret_access_key = {x}", x=run(ALNUM + "/+", 40)),
        "jwt": form("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{x}.{y}", x=w(120), y=w(43)),
        "private key": lambda chance: private_key(chance),
    }


def private_key(chance: random.Random) -> str:
    """Return a key in PEM, sometimes encrypted, sometimes of PGP."""
    kind = chance.choice(["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
    lines = [run(ALNUM + "+/", 64)(chance) for _ in range(chance.randint(3, 25))]
    if chance.random() < 0.2:
        lines = [
            "Proc-Type: 4,ENCRYPTED",
            f"DEK-Info: AES-128-CBC,{run(HEX, 32)(chance).upper()}",
            "",
            *lines,
        ]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])


SYMBOLS = "!#$%^*_-+.~?"
PASSWORD = run(ALNUM + SYMBOLS, 8, 24)


def credentials() -> dict[str, Draw]:
    """Return secrets that a name gives away; each stands after the last blank or ``=``."""
    names = ["password", "DB_PASSWORD", "passwd", "client_secret", "api_key", "apiKey", "accessToken"]
    names += ["userPassword", "SECRET_KEY", "refresh_token", "x-api-key", "private_key"]
    name = lambda chance: chance.choice(names)  # noqa: E731
    return {
        "assigned": form("{n}={p}", n=name, p=PASSWORD),
        "spaced": form("{n} = {p}", n=name, p=PASSWORD),
        "said": form("{n}: {p}", n=name, p=PASSWORD),
        "option": form("--password {p}", p=run(ALNUM + "_.+", 8, 24)),
        "bearer": form("Authorization: Bearer {p}", p=run(WORD, 24, 60)),
        "basic": lambda chance: (
            "Authorization: Basic " + base64.b64encode(f"me:{PASSWORD(chance)}".encode()).decode()
        ),
        "url": form("postgres://app:{p}@db.internal/app", p=run(ALNUM + "!$*_-+.~", 8, 24)),
    }


TOPS = [
    "com",
    "org",
    "net",
    "io",
    "de",
    "co.uk",
    "dev",
    "ai",
    "edu",
    "museum",
    "com.br",
    "info",
    "photography",
]
FIRST = ["ada", "ben", "maria.lopez", "j.smith", "o'brien", "x", "team-42", "first_last", "zoë"]
CALLING = {
    "+1": ["2## 5## ####"], "+44": ["20 #### ####", "7### ######"], "+49": ["30 ######", "171 #######"],
    "+33": ["6 ## ## ## ##"], "+34": ["6## ### ###"], "+39": ["06 #### ####"], "+91": ["9#### #####"],
    "+86": ["13# #### ####"], "+81": ["3 #### ####"], "+55": ["11 9#### ####"], "+61": ["4## ### ###"],
    "+46": ["70 ### ## ##"], "+31": ["6 ########"], "+351": ["91# ### ###"], "+353": ["85 ### ####"],
    "+971": ["50 ### ####"], "+372": ["5### ####"], "+65": ["8### ####"],
}  # fmt: skip
NATIONAL = [
    "(2##) 5##-####", "2##-5##-####", "2##.5##.####", "1-2##-5##-####", "020 #### ####", "07### ######",
    "(030) ######", "030 ########", "0171/#######", "06 ## ## ## ##", "01.##.##.##.##", "03-####-####",
    "06-########", "08-### ### ##", "(11) 9####-####", "0## ### ####",
]  # fmt: skip
NAMED = [
    "phone: {n}",
    "tel:{n}",
    "my mobile number is {n}",
    "call me at {n}",
    "WhatsApp {n}",
    "https://wa.me/{n}",
]


def filled(text: str, chance: random.Random) -> str:
    """Return a text with a digit for each ``#``."""
    return "".join(chance.choice(string.digits) if c == "#" else c for c in text)


def phone(chance: random.Random) -> str:
    """Return a telephone number: international, national as its country writes it, or after a word."""
    kind = chance.random()
    if kind < 0.5:
        code = chance.choice(sorted(CALLING))
        number = filled(chance.choice(CALLING[code]), chance)
        gap = chance.choice([" ", "-", ".", ""])
        zero = chance.choice([" ", " ", "-", " (0) "]) if gap else ""
        return code + zero + number.replace(" ", gap)
    if kind < 0.8:
        return filled(chance.choice(NATIONAL), chance)
    return chance.choice(NAMED).format(
        n=filled(chance.choice(["9#########", "6## ### ###", "4##########"]), chance)
    )


def email(chance: random.Random) -> str:
    """Return an e-mail address."""
    tag = chance.choice(["", "", "+news", ".2024"])
    host = ".".join(run(string.ascii_lowercase, 2, 9)(chance) for _ in range(chance.randint(1, 2)))
    return f"{chance.choice(FIRST)}{tag}@{host}.{chance.choice(TOPS)}"


def card(chance: random.Random) -> str:
    """Return a number of a payment card with its check digit, in one piece or in groups."""
    start, length = chance.choice([("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("37", 15), ("6011", 16)])
    digits = start + "".join(chance.choices(string.digits, k=length - len(start) - 1))
    doubled = [int(c) * (2 if n % 2 == 0 else 1) for n, c in enumerate(reversed(digits))]
    digits += str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)
    cuts = (4, 10) if length == 15 else (4, 8, 12)
    groups = [digits[a:b] for a, b in zip((0, *cuts), (*cuts, length), strict=True)]
    return chance.choice(["", " ", "-"]).join(groups)


COUNTRIES = {
    "DE": "9" * 18, "GB": "A" * 4 + "9" * 14, "FR": "9" * 23, "NL": "A" * 4 + "9" * 10, "NO": "9" * 11,
    "MT": "A" * 4 + "9" * 5 + "A" * 18, "CH": "9" * 17, "PL": "9" * 24, "BE": "9" * 12,
}  # fmt: skip
"""A nine for each digit and an A for each letter after the check digits."""


def iban(chance: random.Random) -> str:
    """Return an IBAN with its check digits, in one piece or in groups of four."""
    country = chance.choice(sorted(COUNTRIES))
    rest = "".join(
        chance.choice(string.digits if c == "9" else string.ascii_uppercase) for c in COUNTRIES[country]
    )
    number = "".join(str(int(c, 36)) for c in f"{rest}{country}00")
    whole = f"{country}{98 - int(number) % 97:02d}{rest}"
    return whole if chance.random() < 0.5 else " ".join(whole[n : n + 4] for n in range(0, len(whole), 4))


PERSONAL: Mapping[str, Draw] = {"email": email, "phone": phone, "card": card, "iban": iban}


def places(value: str, chance: random.Random) -> str:
    """Return a text that holds a value: prose, JSON, a URL, the arguments of a tool, JSON within JSON."""
    kind = chance.randrange(6)
    if kind == 0:
        return chance.choice(
            ["Please use {} from now on.", "It was {}, I think", "({})", "see: {}\nthanks"]
        ).format(value)
    if kind == 1:
        return json.dumps({"role": "user", "content": f"here it is: {value}"})
    if kind == 2:
        return f"https://example.org/search?lang=en&q={quote(value, safe='')}&page=2"
    if kind == 3:
        return json.dumps({"tool": "send", "arguments": json.dumps({"to": value, "n": 3})})
    if kind == 4:
        return f"curl -s https://example.org/v1 -d 'text={value}'"
    return f"<li>{value}</li>"


# -- what only looks like it


def picture(chance: random.Random) -> str:
    """Return a small PNG picture in base64: one line, a data URL, or lines of 76 characters."""
    rows = b"".join(b"\0" + chance.randbytes(3 * 8) for _ in range(8))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    text = base64.b64encode(png).decode()
    lines = "\n".join(text[n : n + 76] for n in range(0, len(text), 76))
    return chance.choice([text, f"![](data:image/png;base64,{text})", lines, json.dumps({"image": lines})])


def lines_of(chance: random.Random, folder: Path, count: int, pattern: str = "*.py") -> list[str]:
    """Return some lines of the files in a folder."""
    files = sorted(folder.glob(pattern))
    found: list[str] = []
    while len(found) < count:
        lines = chance.choice(files).read_text("utf-8", "replace").splitlines()
        found += chance.sample(lines, min(10, len(lines)))
    return [line for line in found[:count] if len(line) > 8]


NUMBERS = [
    "0.#######", "2025-0#-1#T0#:2#:3#.######Z", "1#########", "v3.1#.##", "[1#, 2##, 3###, 4####]",
    "17########.######", "1.#e+12, 3.#e-07", "@@ -1##,## +2##,## @@", "10.0.#.## 80#0/tcp", "#,###,###.##",
]  # fmt: skip


def harmless(chance: random.Random, root: Path) -> dict[str, list[str]]:
    """Return texts without secrets, by what they are."""

    def digest(name: str) -> bytes:
        return hashlib.new(name, chance.randbytes(8)).digest()

    own = lines_of(chance, root / "pytest_tfgrpo", 400, "**/*.py")
    hashes = [digest(name).hex() for name in ("md5", "sha1", "sha256", "sha512") for _ in range(50)]
    integrity = [f"sha256-{base64.b64encode(digest('sha256')).decode()}" for _ in range(30)]
    return {
        "this repository": own + lines_of(chance, root / "docs", 300, "*.md"),
        "the standard library": lines_of(chance, Path(sysconfig.get_path("stdlib")), 800),
        "hashes": hashes + integrity,
        "UUIDs": [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(150)],
        "pictures": [picture(chance) for _ in range(60)],
        "numbers": [filled(chance.choice(NUMBERS), chance) for _ in range(250)],
    }

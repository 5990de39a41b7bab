"""Where personal data stands in a text: e-mail addresses, telephone and card numbers, IBANs, IP addresses.

Candidates are found in bytes, one for each character, that separate digits, capitals and separators; a
pattern, a checksum or a table of prefixes then decides. Every search is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from pytest_tfgrpo.privacy.byte_runs import FoundSpan, compiled, one_byte


def personal_of(text: str, addresses: bool = False) -> Iterator[FoundSpan]:
    """Yield where personal data stands in `text`; IP `addresses` only where that is said."""
    if "@" in text:
        yield from _mails(text)
    marks = one_byte(text).translate(_MARKS)
    for match in _STRETCH.finditer(marks):
        yield from _numbers(text, marks, *match.span())
    at = marks.find(b"uudd")
    while at >= 0:
        yield from _iban(text, at)
        at = marks.find(b"uudd", at + 1)
    if addresses:
        yield from _addresses(text)


# -- e-mail

_LOCAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+^_`{|}~-")
_TRIM = ".!#$%&'*^`{|}~-"
"""What an address does not start with, though it may hold it."""
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,62}[^\W_])?\.){1,8}(?P<top>[^\W\d_]{2,24})(?![\w-])")
_NO_TOP = frozenset(
    {"css", "gif", "html", "jpeg", "jpg", "json", "pdf", "png", "svg", "txt", "webp", "yaml", "yml"}
)
"""Ends of the names of files: ``logo@2x.png``."""
_LONGEST_LOCAL = 64


def _mails(text: str) -> Iterator[FoundSpan]:
    at = text.find("@")
    while at >= 0:
        match = _DOMAIN.match(text, at + 1)
        if match and match["top"].lower() not in _NO_TOP:
            start = at
            while start > 0 and at - start < _LONGEST_LOCAL:
                before = text[start - 1]
                if before not in _LOCAL and not (before > "\x7f" and before.isalnum()):
                    break
                start -= 1
            while start < at and text[start] in _TRIM:
                start += 1
            remote = text.startswith("git", start) and at - start == 3 and text.startswith(":", match.end())
            if start < at and text[at - 1] != "." and not remote:
                yield start, match.end(), "email"
        at = text.find("@", at + 1)


# -- numbers


def _mark(character: str) -> str:
    if character in "0123456789":
        return "d"
    if "A" <= character <= "Z":
        return "u"
    return "s" if character in " ().-/+\xa0" else "x"


_MARKS = "".join(_mark(chr(c)) for c in range(256)).encode()
_STRETCH = re.compile(rb"d(?:s{0,3}d){6,}+")
"""Seven digits or more, with at most three separators between two of them."""
_FOURS = r"[0-9]{4}(?P<s>[ -])[0-9]{4}(?P=s)[0-9]{4}(?P=s)[0-9]{4}"
_CARDS = (
    r"(?<![\w.+-])(?P<n>[0-9]{13,19})(?!\w|[.,][0-9])",
    rf"(?<![\w.+-])(?P<n>{_FOURS}(?P=s)[0-9]{{3}})(?!\w)",
    rf"(?<![\w.+-])(?P<n>{_FOURS})(?!\w)",
    r"(?<![\w.+-])(?P<n>3[0-9]{3}(?P<s>[ -])[0-9]{6}(?P=s)[0-9]{4,5})(?!\w)",
)
_ISSUERS = (
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})",
    r"(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}",
    r"3[47][0-9]{13}",
    r"3(?:0[0-5]|09|[689][0-9])[0-9]{11,16}",
    r"(?:6011|65[0-9]{2}|64[4-9][0-9]|622[1-9]|62[4-6][0-9]|628[2-8])[0-9]{12,15}",
    r"35(?:2[89]|[3-8][0-9])[0-9]{12,15}",
)
"""Prefixes and lengths of Visa, Mastercard, American Express, Diners, Discover and UnionPay, JCB."""

_COUNTRY = (
    r"(?:1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]"
    r"|2[1-6][0-9]|29[0-9]|3[578][0-9]|42[0-9]|50[0-9]|59[0-9]|6[789][0-9]|80[08]|85[0-9]|8[78][0-9]|9[679][0-9])"
)
"""Calling codes."""
_GAP = r"(?:[ \xa0.]|[ ]?[/-][ ]?|[ ]?\(|\)[ .-]?)?"
"""Between two digits; its alternatives exclude each other, so that no search goes back far."""
_APART = r"(?<![\w.+/-])(?<![0-9][ ])"
_ENDS = r"(?![\w-]|[./ ][0-9])"
_INTERNATIONAL = (
    rf"(?<![\w+])(?:\+|(?<![0-9][ .\-/])00(?=[1-9][0-9]{{0,2}}[ \-/(]))[ ]?"
    rf"(?P<n>\(?[1-9](?:{_GAP}[0-9]){{6,14}})(?!\w)"
)
"""+49 (0) 30 901820, +14155552671, 0049 30 901820"""
_NATIONAL = (
    (
        (
            rf"{_APART}(?P<n>(?:1[ .-])?(?:\([2-9][0-9]{{2}}\)[ -]?|[2-9][0-9]{{2}}(?P<s>[ .-]))"
            rf"[2-9][0-9]{{2}}(?(s)(?P=s)|[ .-])[0-9]{{4}}){_ENDS}"
        ),
        10,
    ),
    (rf"{_APART}(?P<n>0[1-9](?P<s>[ .-])[0-9]{{2}}(?:(?P=s)[0-9]{{2}}){{3}}){_ENDS}", 10),
    (
        (
            rf"{_APART}(?P<n>\(?0[1-9][0-9]{{0,4}}(?:\)[ ]?|[ ]?[/-][ ]?|[ ])"
            rf"[0-9]{{3,8}}(?:[ -][0-9]{{2,5}}){{0,2}}){_ENDS}"
        ),
        9,
    ),
    (rf"{_APART}(?P<n>\([1-9][0-9]{{1,3}}\)[ ]?[0-9]{{4,5}}[ -][0-9]{{4}}){_ENDS}", 10),
)
"""(415) 555-2671 and 1-415-555-2671; 01 23 45 67 89; 020 7946 0958, (030) 901820, 03-1234-5678;
(11) 98765-4321.

With the fewest digits of each."""
_MOST_NATIONAL = 12
_SHORTEST_CARD = 13
_FEWEST, _MOST = 8, 15
"""Digits of a telephone number with its country; 9 without a separator or where there is no country."""
_NUMBER_NAMES = (
    "phone",
    "mobile",
    "mobil",
    "telefon",
    "telefono",
    "teléfono",
    "fax",
    "whatsapp",
    "wa.me",
    "msisdn",
)
"""What ends the name of a telephone number, also within a longer word."""
_NUMBER_WORDS = (
    "tel",
    "cell",
    "handy",
    "sms",
    "call",
    "ring",
    "dial",
    "call me",
    "call us",
    "reach me",
    "text me",
)
"""Whole words before a telephone number."""
_NUMBER_LINKS = ((" at", " on", " is", " under"), ("number", " no", "_no", " nr", " num"))
"""What may stand between the two, the second kind before the first."""
_BETWEEN = " \t\n:=#/\"'(+.,\xa0"
_PHONE_KEY = re.compile(
    r"(?:phone|mobile|tel|fax|msisdn|whatsapp)(?:[_-]?(?:number|no|nr|num))?\Z", re.IGNORECASE
)
_NUMBER = re.compile(r"\(?[0-9](?:[ ().\-/]{0,3}[0-9]){6,14}(?!\w)")


def _numbers(text: str, marks: bytes, start: int, end: int) -> Iterator[FoundSpan]:
    """Yield the cards and telephone numbers in a stretch of digits."""
    first, last = max(0, start - 2), end + 2
    if end - start >= _SHORTEST_CARD:
        yield from _cards(text, first, last)
    before = text[first:start]
    if "+" in before or "+" in (part := text[start:end]) or part.startswith("00"):
        for match in compiled(_INTERNATIONAL).finditer(text, first, last):
            if _is_international(match["n"]):
                yield (*match.span(), "phone")
    if b"s" in marks[start:end] and not text[start:end].replace(".", "", 1).isdigit():
        for pattern, fewest in _NATIONAL:
            for match in compiled(pattern).finditer(text, first, last):
                if fewest <= len(_digits(match["n"])) <= _MOST_NATIONAL:
                    yield (*match.span(), "phone")
    if _is_named(text, start):
        named = _NUMBER.match(text, start, last)
        if named:
            yield (*named.span(), "phone")


def _cards(text: str, first: int, last: int) -> Iterator[FoundSpan]:
    for pattern in _CARDS:
        for match in compiled(pattern).finditer(text, first, last):
            if _is_card(_digits(match["n"])):
                yield (*match.span("n"), "card")


def _is_named(text: str, start: int) -> bool:
    """Return whether words such as ``phone:`` or ``call me at`` stand before a place."""
    near = text[max(0, start - 40) : start].lower()
    tail = near.rstrip(_BETWEEN)
    for links in _NUMBER_LINKS:
        for link in links:
            if tail.endswith(link):
                tail = tail[: -len(link)].rstrip(_BETWEEN + "_-")
                break
    if tail.endswith(_NUMBER_NAMES):
        return True
    for word in _NUMBER_WORDS:
        if tail.endswith(word):
            apart = len(tail) == len(word) or not tail[-len(word) - 1].isalnum()
            return apart and not near[len(tail) :].startswith(("(", ".", "/"))
    return False


def _digits(text: str) -> str:
    return re.sub(r"[^0-9]", "", text)


def _is_card(digits: str) -> bool:
    if not any(compiled(issuer).fullmatch(digits) for issuer in _ISSUERS):
        return False
    doubled = (int(c) * (1 + n % 2) for n, c in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _is_international(number: str) -> bool:
    digits = _digits(number.replace("(0)", ""))
    least = 9 if number.isdigit() else _FEWEST
    return least <= len(digits) <= _MOST and compiled(_COUNTRY).match(digits) is not None


def is_phone(key: str, text: str) -> bool:
    """Return whether `text`, which stands under `key`, is a telephone number."""
    if not (text.isascii() and len(text) < 30 and _is_phone_key(key)):
        return False
    return 7 <= sum(map(str.isdigit, text)) <= _MOST


@lru_cache(maxsize=4096)
def _is_phone_key(key: str) -> bool:
    return _PHONE_KEY.search(key[-40:]) is not None


# -- IBAN

_LENGTHS: Mapping[str, int] = MappingProxyType(
    {
        "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27,
        "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28,
        "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
        "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27,
        "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25,
        "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18,
        "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33,
        "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28,
        "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
    }
)  # fmt: skip
"""Characters of an IBAN, by country (ISO 13616)."""


def _iban(text: str, at: int) -> Iterator[FoundSpan]:
    length = _LENGTHS.get(text[at : at + 2], 0)
    if not length or (at and text[at - 1].isalnum()):
        return
    match = _iban_pattern(length).match(text, at)
    if match:
        plain = re.sub(r"[ -]", "", match[0])
        number = "".join(str(int(c, 36)) for c in plain[4:] + plain[:4])
        if int(number) % 97 == 1:
            yield (*match.span(), "iban")


@lru_cache(maxsize=64)
def _iban_pattern(length: int) -> re.Pattern[str]:
    whole, rest = divmod(length - 4, 4)
    tail = f"(?P=s)[A-Z0-9]{{{rest}}}" if rest else ""
    return re.compile(
        rf"[A-Z]{{2}}[0-9]{{2}}(?P<s>[ -]?)[A-Z0-9]{{4}}(?:(?P=s)[A-Z0-9]{{4}}){{{whole - 1}}}{tail}(?!\w)"
    )


# -- IP

_V4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\w|[.-][0-9])")
_V6_AT = re.compile(r":[0-9A-Fa-f]{0,4}:")
_V6 = re.compile(r"(?=[^0-9]{0,39}[0-9])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])")
_V6_SIGNS = frozenset("0123456789abcdefABCDEF:")
_V6_LONGEST = 39


def _addresses(text: str) -> Iterator[FoundSpan]:
    if "." in text:
        for match in _V4.finditer(text):
            before = text[match.start() - 1 : match.start()]
            if not (before.isalnum() or before in ("_", ".", "-")) and _is_address(match[0]):
                yield (*match.span(), "ip")
    done = 0
    for sign in _V6_AT.finditer(text):
        start = sign.start()
        if start < done:
            continue
        while start > 0 and sign.start() - start < _V6_LONGEST and text[start - 1] in _V6_SIGNS:
            start -= 1
        before = text[start - 1 : start]
        whole = None if before.isalnum() or before in ("_", ".") else _V6.match(text, start)
        done = sign.end() if whole is None else whole.end()
        if whole is not None and _is_address(whole[0]):
            yield (*whole.span(), "ip")


def _is_address(text: str) -> bool:
    from ipaddress import ip_address

    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)

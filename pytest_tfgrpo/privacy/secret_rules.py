"""The shapes of secrets: tokens of many providers, and values that a name gives away."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple


class SecretRule(NamedTuple):
    """One shape of a secret."""

    kind: str
    pattern: str
    """Verbose; its group `secret` is taken out, or all of it for a token."""
    way: Literal["token", "hinted", "name", "sentence", "entropy"]
    hints: tuple[str, ...] = ()
    """A token starts with one of them; of other rules a text that the pattern fits contains one."""


def _token(kind: str, starts: str, pattern: str) -> SecretRule:
    return SecretRule(kind, pattern, "token", tuple(starts.split()))


NAME = r"""(?:
    passw(?:or)?d | passphrase | pwd | secret(?:[_-]?(?:key|access[_-]?key))? | client[_-]?secret
    | (?:api|access|private|account|signing|encryption)[_-]?key
    | (?:auth|access|refresh|bearer|session)[_-]?token )
    """
"""Of a secret, verbose; case does not count."""
LIKELY = r"(?: token | authorization | credentials? )"
"""Of what may be one."""
_IS = r"""["']? \s{0,4} (?: [:=] | => ) \s{0,4}"""
_SCHEME = r"(?: (?:bearer|basic)\s{1,4} )? (?!\[redacted:)"

# -- passwords in sentences

_PASSWORD = r"""(?i: passwor[dt] | passwd | passcode | passphrase | pwd | kennwort | contrase(?:ñ|n)a
    | mot\ de\ passe | senha )"""
_WHOSE = r"""(?: \s{1,3} (?i:for|of|to|on|at|für|de|para|pour) (?:\s{1,3}[\w.'@-]{1,40}){1,4}? )?"""
_SAYS = r"""(?: \s{1,3} (?i:is|was|will\ be|ist|lautet|es|est|è|é) | ['’]s )
    (?: \s{1,3} (?i:now|still|again|just|currently|jetzt) )? (?: \s{0,3} [:=] )? \s{1,3}"""
_CHANGED = rf"""(?i:set|chang(?:e|ed|ing)|reset|updat(?:e|ed|ing)|switch(?:ed|ing)?)
    (?:\s{{1,3}}[\w.'-]{{1,40}}){{0,4}}? \s{{1,3}} {_PASSWORD} {_WHOSE} \s{{1,3}} (?i:to|as|auf) \s{{1,3}}"""
_STATED = rf"""(?<![A-Za-z0-9]) (?: {_PASSWORD} {_WHOSE} {_SAYS} | {_CHANGED} )"""
_UNITS = r"""(?: char | digit | letter | symbol | word | bit | byte | time | second | minute | hour | day
    | week | month | year )"""
_NO_PASSWORD = rf"""(?! \[redacted: | \$\{{ | \$\( | %[sd(] | https?:
    | (?i: utf-?[0-9] | base-?[1-9][0-9] | sha-?[0-9] | md[245] | aes-?[0-9] | argon2 | pbkdf2 | rot13
        | v?[0-9.,–-]+ (?:-|\s{{1,3}}|(?=[a-z])) {_UNITS} ) )"""
_ADJECTIVE = r"""(?i: \w+ (?:ed|ing|en|ble|al|ous|ive|ful|less|ly|ant|ent|ic|ory|ar|id|ain) | wrong | weak
    | strong | safe | secure | right | correct | incorrect | good | fine | lost | gone | long | short | simple
    | same | easy | hard | empty | blank | null | none | unique | unset | unknown | okay | here | there
    | below | above | this | that | what | secret | too | ready | due | reset | private | public | necessary
    | mandatory | falsch | richtig | korrekt | weg )"""
"""What a sentence says of a password, which is none."""
RULES: Mapping[str, SecretRule] = MappingProxyType(
    {
        "private key": SecretRule(
            "private_key",
            r"(?P<secret> -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY(?:\ BLOCK)?-----"
            # a lookahead takes its first match and no other, as a possessive group does from Python 3.11.4 on
            r"  (?: (?=(?P<body>(?:(?!-----)[\s\S]){0,20000}))(?P=body)"
            r"      -----END\ [A-Z ]{0,30}KEY(?:\ BLOCK)?-----"
            r"    | (?=(?P<rest>(?:\s{0,4}[A-Za-z0-9+/=]{16,}+)*))(?P=rest) ) )",
            "hinted",
            ("-----BEGIN ",),
        ),
        "password in a URL": SecretRule(
            "url_password",
            r":// (?!\[redacted:) (?P<secret> [^\s/:@]{1,128}+ : [^\s/@]{1,256}+ )(?=@)",
            "hinted",
            ("://",),
        ),
        "Bearer": SecretRule(
            "named", r"\bBearer\s{1,4}(?P<secret> [A-Za-z0-9._~+/-]{12,}+=*+ )", "hinted", ("Bearer",)
        ),
        "Basic": SecretRule(
            "named", r"\bBasic\s{1,4}(?P<secret> [A-Za-z0-9._~+/-]{12,}+=*+ )", "hinted", ("Basic",)
        ),
        "signature in a URL": SecretRule(
            "named", r"[?&]sig=(?P<secret> [A-Za-z0-9%+/-]{30,}+=*+ )", "hinted", ("sig=",)
        ),
        "Slack webhook": SecretRule(
            "chat_token",
            r"hooks\.slack\.com/services/(?P<secret> T[A-Z0-9]{6,}+/B[A-Z0-9]{6,}+/[A-Za-z0-9]{16,}+ )",
            "hinted",
            ("hooks.slack.com/services/",),
        ),
        "Discord webhook": SecretRule(
            "chat_token",
            r"/api/webhooks/(?P<secret> [0-9]{16,20}/[A-Za-z0-9_-]{40,}+ )",
            "hinted",
            ("/api/webhooks/",),
        ),
        "Telegram": SecretRule(
            "chat_token",
            r"(?<![A-Za-z0-9])(?P<secret> [0-9]{8,10}:AA[A-Za-z0-9_-]{30,}+ )",
            "hinted",
            (":AA",),
        ),
        "key-": SecretRule(
            "api_key",
            r"(?P<secret> (?:key|Key|KEY)-[0-9a-fA-F]{32} )(?![A-Za-z0-9])",
            "hinted",
            ("key-", "Key-", "KEY-"),
        ),
        "password in a sentence": SecretRule(
            "named",
            rf"""{_STATED} {_NO_PASSWORD} (?P<secret>
                (?= [^\s]{{0,127}}? (?: [0-9] | [A-Za-z][!@#$%^&*+?~=][^\s.,;!?)*] ) )
                [^\s"'`,;<>{{}}()\[\]]{{4,128}}+ )""",
            "sentence",
        ),
        "password in quotes": SecretRule(
            "named",
            rf"""{_STATED} ["'`“«] {_NO_PASSWORD} (?! {_ADJECTIVE} ["'`”»] )
                (?P<secret> [^\s"'`”»][^\n"'`”»]{{3,127}}+ ) ["'`”»]""",
            "sentence",
        ),
        "password of a word": SecretRule(
            "named",
            rf"""(?<![A-Za-z0-9]) (?i:my|our|mein|unser|mi|mon|minha) \s{{1,3}}
                (?:[\w.'-]{{1,40}}\s{{1,3}}){{0,2}}?
                {_PASSWORD} {_WHOSE} {_SAYS} (?! {_ADJECTIVE} \b ) (?P<secret> [^\W\d_]{{4,128}}+ )
                (?= \s{{0,3}} (?:[.,;!?)\n]|\Z) | \s{{1,3}} (?i:and|but|for|so|und) \b )""",
            "sentence",
        ),
        "password before its name": SecretRule(
            "named",
            rf"""(?<![^\s"'`(]) (?! \[redacted: )
                (?P<secret> (?=[^\s]{{0,63}}?[0-9]) [^\s"'`,;]{{4,64}}+ ) ["'`]? \s{{1,3}}
                (?i:is|was|ist) \s{{1,3}} (?i:my|our|the|his|her|their|mein|das) \s{{1,3}} {_PASSWORD}
                (?! \s{{1,3}} (?i:reset|policy|manager|hash|field|rule|length) )""",
            "sentence",
        ),
        "PIN": SecretRule(
            "named",
            r"""(?<![A-Za-z0-9]) (?: PIN | (?i:my|our|your|mein|meine)\ (?i:pin) ) (?:[ -](?i:code|number))?
                (?: \s{1,3} (?i:is|was|ist|lautet) | ['’]s ) (?:\s{1,3}(?i:now|still))? \s{0,3} :? \s{1,3}
                (?P<secret> [0-9]{4,8} ) (?![\w-]|[.,][0-9])""",
            "sentence",
        ),
        "sk-": _token("api_key", "sk-", r"sk-[A-Za-z0-9_-]{16,}+"),
        "sk_live": _token(
            "api_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+"
        ),
        "whsec_": _token("api_key", "whsec_", r"whsec_[A-Za-z0-9]{20,}+"),
        "AIza": _token("api_key", "AIza", r"AIza[A-Za-z0-9_-]{30,}+"),
        "hf_": _token("api_key", "hf_", r"hf_[A-Za-z0-9]{20,}+"),
        "gsk_": _token("api_key", "gsk_", r"gsk_[A-Za-z0-9]{20,}+"),
        "xai-": _token("api_key", "xai- pplx- tvly- nvapi-", r"(?:xai|pplx|tvly|nvapi)-[A-Za-z0-9_-]{20,}+"),
        "r8_": _token(
            "api_key",
            "r8_ fw_ ntn_ nfp_ phc_ phx_",
            r"(?:r8|fw|ntn|nfp|ph[cx])_[A-Za-z0-9]{20,}+",
        ),
        "pcsk_": _token("api_key", "pcsk_", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{30,}+"),
        "lsv2_": _token("api_key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9_]{32,}+"),
        "lin_api_": _token("api_key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}+"),
        "secret_": _token("api_key", "secret_", r"secret_[A-Za-z0-9]{40,}+"),
        "npm_": _token("api_key", "npm_", r"npm_[A-Za-z0-9]{30,}+"),
        "pypi-": _token("api_key", "pypi-", r"pypi-[A-Za-z0-9_-]{30,}+"),
        "rubygems_": _token("api_key", "rubygems_", r"rubygems_[a-f0-9]{40,}+"),
        "SG.": _token("api_key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
        "SK": _token("api_key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
        "shpat_": _token("api_key", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}+"),
        "sq0": _token("api_key", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+"),
        "rzp_": _token("api_key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}+"),
        "dp.": _token(
            "api_key", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+"
        ),
        "hvs.": _token("api_key", "hvs. hvb. hvr.", r"hv[bsr]\.[A-Za-z0-9_-]{20,}+"),
        "glsa_": _token("api_key", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_]{30,}+"),
        "NRAK-": _token("api_key", "NRAK-", r"NRAK-[A-Z0-9]{20,}+"),
        "sntrys_": _token("api_key", "sntry", r"sntry[su]_[A-Za-z0-9_-]{20,}+"),
        "sbp_": _token("api_key", "sbp_", r"sbp_[a-f0-9]{40,}+"),
        "pscale_": _token("api_key", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9._-]{20,}+"),
        "HRKU-": _token("api_key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{30,}+"),
        "dckr_": _token("api_key", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}+"),
        "dapi": _token("api_key", "dapi", r"dapi[a-f0-9]{32}(?![A-Za-z0-9])"),
        "figd_": _token("api_key", "figd_", r"figd_[A-Za-z0-9_-]{30,}+"),
        "PMAK-": _token("api_key", "PMAK-", r"PMAK-[a-f0-9-]{30,}+"),
        "pul-": _token("api_key", "pul-", r"pul-[a-f0-9]{40}(?![A-Za-z0-9])"),
        "ATATT3": _token("api_key", "ATATT3 ATCTT3 ATBB3", r"AT(?:ATT|CTT|BB)3[A-Za-z0-9_-]{40,}+"),
        "CFPAT-": _token("api_key", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{30,}+"),
        "dt0c01.": _token("api_key", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{20,}+\.[A-Z0-9]{40,}+"),
        "tskey-": _token("api_key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{15,}+"),
        "AGE-": _token("private_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
        "dop_v1_": _token("cloud_key", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{60,}+"),
        "AKIA": _token(
            "cloud_key", "AKIA ASIA AGPA AROA", r"(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])"
        ),
        "LTAI": _token("cloud_key", "LTAI", r"LTAI[A-Za-z0-9]{16,20}(?![A-Za-z0-9])"),
        "GOCSPX-": _token("cloud_key", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
        "ya29.": _token("cloud_key", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}+"),
        "gh_": _token("git_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}+"),
        "github_pat": _token("git_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
        "glpat": _token(
            "git_token",
            "glpat- glrt- gldt- glptt- glcbt- glft- glimt- glsoat- glagent-",
            r"gl(?:pat|rt|dt|ptt|cbt|ft|imt|soat|agent)-[A-Za-z0-9_-]{16,}+(?:\.[a-z0-9]{2,20}){0,2}",
        ),
        "xox": _token("chat_token", "xox", r"xox[abeprs]-[A-Za-z0-9-]{10,}+"),
        "xapp": _token("chat_token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{20,}+"),
        "Discord": _token(
            "chat_token", "M N O", r"[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"
        ),
        "JWT": _token("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,2048}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?"),
        "name of a secret": SecretRule(
            "named",
            rf"""{NAME} {_IS} (?:
                (?P<quote>["']) {_SCHEME} (?P<quoted> (?:(?!(?P=quote))[^\\\n]|\\[^\n]){{4,512}}+ )(?P=quote)
                | ["']? {_SCHEME} (?P<secret> [^\s"',;]{{4,}}+ ) )""",
            "name",
        ),
        "option": SecretRule("named", rf"{NAME} \s{{1,4}} (?P<secret> [^\s\"'\[-][^\s\"']{{3,}}+ )", "name"),
        "name of what may be one": SecretRule(
            "named",
            rf"""{LIKELY} {_IS} ["']? {_SCHEME}
                (?P<secret> (?![^\W\d_]++(?:[\s"',;]|\Z)) [^\s"',;]{{4,}}+ )""",
            "name",
        ),
        "entropy": SecretRule("entropy", r"[A-Za-z0-9+/]{20,}+=*+", "entropy"),
    }
)
"""What counts as a secret."""

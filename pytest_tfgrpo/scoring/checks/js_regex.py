"""Regular expressions of JavaScript, written without flags, as those of the check ``regex``."""

from __future__ import annotations

import re

from pytest_tfgrpo.core.texts.named_values import short

_BLANKS = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_BLANKS = (
    r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_WORD = "0-9A-Z_a-z"
_NO_WORD = r"\x00-/:-@\[-\^`{-\U0010ffff"
_SETS = {
    "d": "0-9", "D": r"\x00-/:-\U0010ffff", "w": _WORD, "W": _NO_WORD, "s": _BLANKS, "S": _NO_BLANKS
}  # fmt: skip
_EDGE = rf"(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}])"
_NO_EDGE = rf"(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}])"
_ANY = r"[^\n\r\u2028\u2029]"
_REPEATS = re.compile(r"[*+?]|\{[0-9]+(?:,[0-9]*)?\}")
_GROUP = re.compile(r"\((?:(?!\?)|\?(?:[:=!]|<[=!]|<(?P<name>[A-Za-z_][A-Za-z0-9_]*)>))")
_NAME = re.compile(r"<([A-Za-z_][A-Za-z0-9_]*)>")
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|c([A-Za-z])|0(?![0-9])|([tnvfr])")


def as_python(pattern: str) -> str:
    """Return the pattern that finds the same in a text; raises ValueError where none does for certain.

    JavaScript knows no flags within, reads ``\\d``, ``\\w`` and ``\\b`` as ASCII, and ``$`` as the very end.
    """
    return _Reader(pattern).read()


class _Reader:
    """A pattern that is read from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups: list[str] = []
        """How each open bracket begins."""
        self._names: list[str] = []
        self._captured = 0
        """Groups that are closed."""
        self._is_back = self._is_branched = False
        """Whether it goes back to a group, and whether a group may have found nothing."""

    def read(self) -> str:
        parts = []
        while self._at < len(self._pattern):
            part, repeatable = self._item()
            parts.append(part + self._repeats(repeatable, is_group=part == ")"))
        if self._is_back and self._is_branched:
            raise ValueError("that goes back to a group which may have found nothing")
        return "".join(parts)

    def _take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        found = form.match(self._pattern, self._at)
        if found:
            self._at = found.end()
        return found

    def _item(self) -> tuple[str, bool]:
        """Return the next part, and whether it may be repeated."""
        sign = self._pattern[self._at]
        if sign == "(":
            return self._opened(), False
        self._at += 1
        if sign == ")":
            begun = self._groups.pop() if self._groups else ""
            self._captured += begun[:2] != "(?" or begun[-1] == ">"
            return ")", not begun.startswith("(?<") or begun[-1] == ">"
        if sign == "\\":
            return self._escaped()
        if sign == "[":
            return self._class(), True
        if sign == "|":
            self._is_branched = True
            return "|", False
        if sign in "^$":
            return ("^" if sign == "^" else r"\Z"), False
        if sign in "*+?":
            raise ValueError(f"with {sign} where nothing can be repeated, such as `*+`")
        return (_ANY if sign == "." else self._literal(sign)), True

    def _literal(self, sign: str) -> str:
        if ord(sign) > 0xFFFF and _REPEATS.match(self._pattern, self._at):
            raise ValueError("that repeats a character which JavaScript counts as two")
        if sign == "{" and _REPEATS.match(self._pattern, self._at - 1):
            raise ValueError("with { where nothing can be repeated")
        return re.escape(sign) if sign in "{}]" else sign

    def _repeats(self, repeatable: bool, *, is_group: bool) -> str:
        if not repeatable:
            return ""
        found = self._take(_REPEATS)
        if found is None:
            return ""
        self._is_branched |= is_group
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
            return found[0] + "?"
        return found[0]

    def _opened(self) -> str:
        found = self._take(_GROUP)
        if found is None:
            unknown = short(self._pattern[self._at : self._at + 4])
            raise ValueError(f"with {unknown}, which not every JavaScript knows")
        name = found["name"]
        self._groups.append(found[0])
        self._is_branched |= found[0] in ("(?!", "(?<!")
        if name is None:
            return found[0]
        if name in self._names:
            raise ValueError(f"with two groups {short(name)}")
        self._names.append(name)
        return f"(?P<{name}>"

    def _escaped(self) -> tuple[str, bool]:
        """Return what an escape outside of brackets is, and whether it may be repeated."""
        code = self._code()
        if code is not None:
            return re.escape(code), True
        sign = self._pattern[self._at : self._at + 1]
        self._at += 1
        if sign in ("b", "B"):
            return f"(?:{_EDGE if sign == 'b' else _NO_EDGE})", False
        if sign in _SETS:
            return f"[^{_SETS[sign.lower()]}]" if sign.isupper() else f"[{_SETS[sign]}]", True
        if sign == "k" and not self._groups and (name := self._take(_NAME)) and name[1] in self._names:
            self._is_back = True
            return f"(?P={name[1]})", True
        if sign.isdigit() and sign.isascii():
            return self._back(sign), True
        return self._itself(sign), True

    def _back(self, digit: str) -> str:
        more = self._pattern[self._at : self._at + 1]
        if digit == "0" or int(digit) > self._captured or (more.isascii() and more.isdigit()) or self._groups:
            raise ValueError(rf"with \{digit}, which may be no group that is closed before")
        self._is_back = True
        return f"(?:\\{digit})"

    def _itself(self, sign: str) -> str:
        if not sign:
            raise ValueError("that ends with a backslash")
        if sign.isalnum() or not sign.isascii():
            raise ValueError(f"with \\{sign}, which JavaScript reads as the character {sign}")
        return re.escape(sign)

    def _code(self) -> str | None:
        """Return the character of an escape that names its code; None where there is none."""
        found = self._take(_CODE)
        if found is None:
            return None
        if written := found[1] or found[2]:
            code = int(written, 16)
            if 0xD800 <= code <= 0xDFFF:
                raise ValueError("with halves of a character")
            return chr(code)
        if found[3]:
            return chr(ord(found[3]) % 32)
        return {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}.get(found[4] or "", "\0")

    def _class(self) -> str:
        opposite = self._pattern.startswith("^", self._at)
        self._at += opposite
        parts = []
        while not self._pattern.startswith("]", self._at):
            first, is_set = self._member()
            ahead = self._pattern[self._at : self._at + 2]
            if len(ahead) < 2 or ahead[0] != "-" or ahead[1] == "]":
                parts.append(first)
                continue
            self._at += 1
            last, is_last_set = self._member()
            parts.append(first + ("\\-" if is_set or is_last_set else "-") + last)
        self._at += 1
        if not parts:
            return r"[\x00-\U0010ffff]" if opposite else "(?!)"
        return f"[{'^' * opposite}{''.join(parts)}]"

    def _member(self) -> tuple[str, bool]:
        """Return the next member of a class, and whether it is itself a set."""
        sign = self._pattern[self._at : self._at + 1]
        if not sign:
            raise ValueError("with a [ that is not closed")
        self._at += 1
        if ord(sign) > 0xFFFF:
            raise ValueError("with a character in [ ] which JavaScript counts as two")
        if sign != "\\":
            return (re.escape(sign) if sign in "[]^-&~|" else sign), False
        code = self._code()
        if code is not None:
            return re.escape(code), False
        sign = self._pattern[self._at : self._at + 1]
        self._at += 1
        if sign in _SETS:
            return _SETS[sign], True
        return (r"\x08" if sign == "b" else self._itself(sign)), False

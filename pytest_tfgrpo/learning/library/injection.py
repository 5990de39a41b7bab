"""Injections: orders to the model that reads a lesson, in the words that attacks use."""

from __future__ import annotations

import re

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.suite.contamination.spelling import bare, fold

_NOUN = r"(?:instruction|prompt|rule|guideline|direction|directive|lesson|order|command|experience)s?"
_TOLD = r"(?:instruction|prompt|guideline|direction|directive|lesson)s?"
_BEFORE = r"(?:previous|prior|above|earlier|preceding|foregoing|former|system|your|other|existing)"
_IN_DATA = (
    r"(?: (?:that|which|found|hidden|written|given|quoted|stands?|are|is|appear))*"
    r" (?:in|inside|within|from|of)\b"
)
"""What follows where the data of a task gives orders: to ignore those is good advice."""
_DROP = r"(?<!not )(?<!never )(?<!dont )\b(?:ignore|disregard|forget|override|overrule|bypass)\b"
_LATIN = lazy_pattern(
    "|".join(
        (
            rf"{_DROP}(?: \w+){{0,4}}? {_BEFORE}(?: \w+){{0,2}}? {_NOUN}\b",
            rf"{_DROP}(?: \w+){{0,12}}? (?:{_BEFORE}|previously)(?: \w+){{0,3}}? {_TOLD}\b",
            rf"\b{_BEFORE} (?:\w+ )?{_TOLD}\b(?: \w+){{0,4}}? (?:ignored|disregarded|forgotten"
            r"|overridden|void|dropped)\b",
            rf"\b{_TOLD} (?:above|before|so far|you were given|given (?:above|before)): (?:ignore"
            r"|disregard|forget|drop) (?:it|them)\b",
            r"\b(?:whatever|what|all|everything|anything) (?:that )?you (?:were|have been) (?:told"
            r"|given|taught)(?: \w+){0,3}? "
            r"(?:forget|ignore|disregard|drop)\b",
            r"\b(?:do not|dont|never) (?:follow|obey|heed) (?:the |your |any )?(?:system|previous"
            rf"|prior|earlier|above) {_TOLD}\b",
            rf"{_DROP}(?: \w+){{0,2}}? (?:all|any|every|these|those|the) {_NOUN}\b(?!{_IN_DATA})",
            rf"{_DROP}(?: \w+)? (?:everything|anything|all|what)(?: \w+){{0,3}}? (?:above|before|so far)\b",
            rf"\b(?:end|start|beginning) of (?:the |all |these )?(?:\w+ )?{_NOUN}\b",
            r"\b(?:end|start|beginning) of (?:the )?(?:system|context|conversation)\b",
            r"(?:^|[.:] )new (?:system )?(?:rule|instruction|order|prompt)s?\b",
            r"\bnew (?:rule|instruction|order)s?:",
            r"\b(?:reveal|print|repeat|show|output) (?:me )?(?:the|your) (?:hidden )?(?:system|developer)"
            r" (?:prompt|message)",
            r"\byou are (?:now|no longer)\b|\bfrom now on you\b|\bpretend (?:to be|that you|you)\b",
            r"\b(?:developer|god|dan|jailbreak|sudo) mode\b|\bdo anything now\b|\bjailbreak",
            # German, French, Spanish and Portuguese, Italian
            r"\b(?:ignorier\w*|missachte\w*|vergiss|vergesst)(?: \w+){0,4}?"
            r" (?:anweisung|vorgabe|regel|lektion)\w*",
            r"\b(?:ignore[zr]?|oublie[zr]?)(?: \w+){0,3}? (?:instructions?|consignes?|regles?)"
            r" (?:precedente|ci dessus)",
            r"\b(?:ignor[ae]|olvid[ae]|esqueca)(?: \w+){0,3}? (?:instruc\w+|reglas?|regras?)"
            r" (?:anterior|previ|acima)",
            r"\b(?:ignora|dimentica)(?: \w+){0,3}? (?:istruzioni|regole) precedenti",
        )
    )
)
_ROLE = lazy_pattern(r"\b(?:system|assistant|user|human|developer):(?= |$)")
_OTHER = lazy_pattern(
    r"\b(?:игнориру|забудь)\w*(?: \w+){0,4}? (?:инструкци|правил|указани)\w*"
    r"|(?:忽略|无视|忘记).{0,12}(?:指令|指示|提示|规则)"
    r"|(?:指示|命令|ルール|プロンプト).{0,8}(?:無視|忘れ)"
)
"""Russian, Chinese, Japanese."""
_SPACED = lazy_pattern(r"(?<!\w)\w(?: \w){2,}(?!\w)")


def find_order(text: str) -> str | None:
    """Return the words of `text` that order a model to drop its instructions, as they are read, or None."""
    found = _LATIN.search(words_of(fold(text))) or _OTHER.search(words_of(bare(text).casefold()))
    return found[0].strip(" .:") if found else None


def find_role(text: str) -> str | None:
    """Return the marker of a speaker in `text`, whatever signs or blanks it is spelled with, or None."""
    found = _ROLE.search(words_of(fold(text)))
    return found[0].strip() if found else None


def words_of(text: str) -> str:
    """Return the words of a text with single blanks, and the signs that end a sentence or a heading."""
    plain = re.sub(r"['’]", "", text)
    plain = re.sub(r"[^\w:.!?;]+|_", " ", plain)
    plain = re.sub(r"\s*[:]+\s*", ": ", re.sub(r"\s*[.!?;]+\s*", ". ", plain))
    return _SPACED.sub(lambda match: match[0].replace(" ", ""), plain).strip()

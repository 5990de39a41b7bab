"""The template: a pattern written without a model, of the prompt, the changed functions and the fixed tests.

Every text has several wordings, from what says most to what says least; the first that passes the screens is
taken, as prompt, diff and names of tests are the words of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.patterns.authoring.changed_code import ChangedHunk, changed_hunks, excerpt_of
from pytest_tfgrpo.patterns.authoring.plain_text import first_sentence, plain, visible
from pytest_tfgrpo.patterns.authoring.subject import FixedTest, PatternSubject
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternBody
from pytest_tfgrpo.patterns.shelf.pattern_file import LESSON_WORDS, section_fault, stamped
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens

NO_ID = "p-" + "0" * 12
"""Until it lies on the shelf."""
TITLE_WORDS = 12
PROBLEM_WORDS = 150
NAMED = 3
"""Functions, files or tests that a text names."""
NAME_MAX = 50
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PARAMETERS = re.compile(r"\[[^\]]*\]$|\([^)]*\)$")

PassesScreens = Callable[[str], bool]


def write_by_template(subject: PatternSubject, screens: PatternScreens) -> Pattern:
    """Return the pattern of a subject, without relations and without a place on the shelf.

    Raises PatternError where every wording of a text is refused.
    """

    def chosen(what: str, texts: Iterable[str], limit: int = 2000) -> str:
        for text in texts:
            if len(text) <= limit and not section_fault(text) and not screens.refuse(text, subject.domain):
                return text
        raise PatternError(
            f"no pattern can be written of job {subject.evidence.job}: no {what} passes the screens"
        )

    def passes(text: str) -> bool:
        return not screens.refuse(text, subject.domain)

    hunks = changed_hunks(subject.diff)
    names, files = _shown(_names_of(hunks), passes), _shown(_files_of(hunks), passes)
    claims = _shown([_claim(test) for test in subject.tests], passes)
    where = _where(names, files)
    symptom = "".join(_shown([first_sentence(subject.prompt, TITLE_WORDS)], passes))
    title = chosen("title", _titles(subject, symptom, claims, where), 120)
    path, excerpt = excerpt_of(hunks)
    body = PatternBody(
        problem=chosen("problem", _problems(subject, claims)),
        solution=chosen("solution", [f"Change {where}.", "Make the change that these tests want."]),
        rationale=_rationale(subject, claims),
        when_not="Where the cause is another one: first see a test like these fail without the change.",
        files=(path,) if excerpt else (),
        excerpt=excerpt,
    )
    return stamped(
        Pattern(
            id=NO_ID,
            name=name_of(title),
            title=title,
            domain=subject.domain,
            lesson=chosen("lesson", _lessons(symptom, claims, where), 600),
            description=chosen("description", _descriptions(title, claims, where), 1024),
            body=body,
            evidence=subject.evidence,
        )
    )


def name_of(title: str) -> str:
    """Return the name of a pattern's file by its title."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    name = (
        "-".join(words)[:NAME_MAX].rpartition("-")[0] if len("-".join(words)) > NAME_MAX else "-".join(words)
    )
    return name or "pattern"


def _shown(texts: Sequence[str], passes: PassesScreens) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text and passes(text)][:NAMED]


def _names_of(hunks: Sequence[ChangedHunk]) -> list[str]:
    most = sorted(hunks, key=lambda hunk: -hunk.added)
    return [name for hunk in most for name in hunk.names]


def _files_of(hunks: Sequence[ChangedHunk]) -> list[str]:
    return [" ".join(visible(hunk.path).split()) for hunk in sorted(hunks, key=lambda hunk: -hunk.added)]


def _claim(test: FixedTest) -> str:
    """Return what a test's name says, in words: ``total counts each item once``."""
    last = _PARAMETERS.sub("", re.split(r"::| > |\s›\s", test.id)[-1])
    spaced = _CAMEL.sub(" ", last).replace("_", " ") if " " not in last else last
    words = visible(spaced).replace("\n", " ").split()
    while words and words[0].lower() in ("test", "tests", "it", "should"):
        words = words[1:]
    text = " ".join(words[:LESSON_WORDS])
    return text.lower() if text and " " not in last else text


def _where(names: Sequence[str], files: Sequence[str]) -> str:
    """Return what was changed: ``total in shop/cart.py``."""
    listed = ", ".join(names)
    place = ", ".join(files)
    if listed and place:
        return f"{listed} in {place}"
    return listed or place or "the code that these tests call"


def _titles(subject: PatternSubject, symptom: str, claims: Sequence[str], where: str) -> Iterable[str]:
    yield symptom
    yield from (claim[:1].upper() + claim[1:] for claim in claims)
    yield f"A proven change of {where}"
    yield f"A proven change in {subject.domain}"


def _lessons(symptom: str, claims: Sequence[str], where: str) -> Iterable[str]:
    for said in ("; ".join(claims[:n]) for n in range(len(claims), 0, -1)):
        yield from _fitting(f"When you change {where}, keep this true: {said}.")
    for claim in claims:
        yield from _fitting(f"Keep this true: {claim}.")
    if symptom:
        yield from _fitting(f"When you change {where}, mind what was wrong before: {symptom}.")
        yield from _fitting(f"Mind what was wrong before: {symptom}.")
    yield from _fitting(f"When you change {where}, run its tests before and after.")


def _fitting(text: str) -> Iterable[str]:
    return [text] if len(text.split()) <= LESSON_WORDS else []


def _descriptions(title: str, claims: Sequence[str], where: str) -> Iterable[str]:
    said = f" What holds then: {'; '.join(claims)}." if claims else ""
    yield f"{title}. Use it when you change {where}, or code that does the same.{said}"
    yield f"{title}. Use it when you change {where}, or code that does the same."
    yield f"{title}. Use it when you change code like this."


def _problems(subject: PatternSubject, claims: Sequence[str]) -> Iterable[str]:
    failed = [
        visible(test.message).replace("\n", " ").strip() for test in subject.tests if test.message.strip()
    ]
    told = f"It showed as: {'; '.join(dict.fromkeys(failed[:NAMED]))}" if failed else ""
    prompt = plain(subject.prompt, PROBLEM_WORDS)
    yield f"{prompt}\n\n{told}" if prompt and told else ""
    yield prompt
    yield told
    yield f"This did not hold: {'; '.join(claims)}." if claims else ""
    yield "Tests failed that pass since the change."


def _rationale(subject: PatternSubject, claims: Sequence[str]) -> str:
    repeats = subject.evidence.repeats
    count = len(subject.tests)
    what = "One test fails" if count == 1 else f"{count or 'Its'} tests fail"
    passed = "passes" if count == 1 else "pass"
    listed = f": {'; '.join(claims)}" + "; ..." * (count > len(claims)) if claims else ""
    return f"{what} without the change and {passed} with it, {repeats} times each{listed}."

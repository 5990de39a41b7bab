"""Overlap: tasks that two splits share, by equal words, by similar wording, and by equal data and answers.

A task with other data is another task, however alike the wording: two tasks are held against each other only
where the numbers of one are among those of the other, where neither has files that the other lacks, and where
their answers, as far as checks show them, can be the same.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import combinations

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.suite.contamination.findings import Finding, called, excerpt
from pytest_tfgrpo.suite.contamination.paraphrases import are_telling, numbers_of, quotations
from pytest_tfgrpo.suite.contamination.similar import similar
from pytest_tfgrpo.suite.contamination.words import data_of, words

PROMPT_WORDS = 20
"""A shorter prompt alone, without its data, may be the same in many tasks."""
SPLITS = ("train", "dev", "eval")
MAX_ANSWERS = 20
"""Answers of a scenario that are compared."""
_CHARACTERS = 20_000_000
"""Of all texts together, roughly; longer ones are compared by their beginnings."""

AnswersOf = Callable[[Scenario], Collection[str]]


@dataclass(frozen=True, slots=True)
class Text:
    """The text of some scenarios, the same except for case and typography."""

    words: tuple[str, ...]
    """Prompt and input."""
    files: tuple[str, ...]
    """Digests of the attachments, sorted, and of the workspace's archive."""
    scenarios: dict[str, list[Scenario]] = field(default_factory=dict)
    """The scenarios with it, by split."""

    @property
    def sides(self) -> int:
        """One bit for each split."""
        return sum(1 << SPLITS.index(split) for split in self.scenarios)


def overlaps(scenarios: Iterable[Scenario], answers: AnswersOf) -> list[Finding]:
    """Return what the splits of `scenarios` share, the clearest first; `answers` are those of a scenario."""
    known = list(scenarios)
    texts = _texts(known)
    found = [*_same_tasks(texts), *_same_prompts(known, answers), *_similar(texts, answers)]
    told = {(finding.subject, finding.other) for finding in found}
    return [*found, *(f for f in _paraphrases(texts, answers) if (f.subject, f.other) not in told)]


def alike(scenarios: Iterable[Scenario]) -> Iterator[tuple[Scenario, Scenario]]:
    """Yield the pairs of scenarios that must share a split: alike in wording, or in data and checks."""
    texts = _texts(list(scenarios))
    for text in texts:
        first, *others = (s for own in text.scenarios.values() for s in own)
        yield from ((first, other) for other in others)
    for pair in similar([text.words for text in texts]):
        a, b = texts[pair.first], texts[pair.second]
        if _same_data(a, b):
            yield next(iter(a.scenarios.values()))[0], next(iter(b.scenarios.values()))[0]
    for same in _about_equal_data(texts):
        checked: dict[str, Scenario] = {}
        for scenario in (s for text in same for own in text.scenarios.values() for s in own):
            one = checked.setdefault(
                stamp([[*check.content[:1], *check.content[2:]] for check in scenario.checks]), scenario
            )
            if one is not scenario:
                yield one, scenario


def _limit(n: int) -> int:
    """Return how many characters of each of `n` texts are compared word by word."""
    return max(1_000, min(100_000, _CHARACTERS // max(n, 1)))


def _words(text: str, limit: int) -> list[str]:
    """Return the words of a text, of a very long one those of its start and a stamp of the rest."""
    rest = text[limit:]
    return [*words(text[:limit]), *([stamp(rest.casefold().split())] if rest else [])]


def _texts(scenarios: Sequence[Scenario]) -> list[Text]:
    """Return the different texts, in order."""
    limit = _limit(len(scenarios))
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], Text] = {}
    held: dict[str, str] = {}  # each word once: they are most of what a large suite takes here
    for scenario in scenarios:
        text = scenario.wording
        if scenario.input is not None:
            text += "\n" + json.dumps(scenario.input, sort_keys=True, ensure_ascii=False)
        # signs alone are all there is to compare
        own = tuple(held.setdefault(word, word) for word in _words(text, limit) or text.split())
        files = _digests(scenario)
        known = found.setdefault((own, files), Text(own, files))
        known.scenarios.setdefault(scenario.split, []).append(scenario)
    return list(found.values())


def _digests(scenario: Scenario) -> tuple[str, ...]:
    archive = () if scenario.workspace is None else (scenario.workspace.sha256,)
    made = () if scenario.setup is None else (stamp(scenario.setup.content),)
    return (*sorted(file.sha256 for file in scenario.attachments), *archive, *made)


def _across(first: Text, second: Text) -> tuple[Scenario, Scenario]:
    """Return a scenario of each text, of different splits; eval against train where there is a choice."""
    wanted = sorted(
        ((a, b) for a in first.scenarios for b in second.scenarios if a != b),
        key=lambda pair: -abs(SPLITS.index(pair[0]) - SPLITS.index(pair[1])),
    )
    a, b = wanted[0]
    return first.scenarios[a][0], second.scenarios[b][0]


def _finding(kind: str, a: Scenario, b: Scenario, similarity: float = 1.0, more: int = 0) -> Finding:
    first, second = sorted((a, b), key=lambda s: -SPLITS.index(s.split))
    return Finding(
        kind=kind,  # type: ignore[arg-type]
        subject=called(first),
        where=first.source,
        other=called(second),
        other_where=second.source,
        similarity=round(similarity, 3),
        excerpt=excerpt(first.prompt) or excerpt(json.dumps(first.input, ensure_ascii=False)),
        more=more,
    )


def _same_tasks(texts: Iterable[Text]) -> Iterator[Finding]:
    for text in texts:
        for a, b in combinations(sorted(text.scenarios, key=SPLITS.index, reverse=True), 2):
            first, second = text.scenarios[a], text.scenarios[b]
            yield _finding("same_task", first[0], second[0], more=len(first) + len(second) - 2)


def _same_prompts(scenarios: Sequence[Scenario], answers: AnswersOf) -> Iterator[Finding]:
    """Yield long prompts of which one stands alone, and one comes with data, in different splits."""
    limit = _limit(len(scenarios))
    if not any(_has_data(s) for s in scenarios):
        return
    prompts: dict[tuple[str, ...], list[Scenario]] = {}
    for scenario in scenarios:
        own = _words(scenario.wording, limit)
        if len(own) >= PROMPT_WORDS:
            prompts.setdefault(tuple(own), []).append(scenario)
    for sharing in prompts.values():
        bare = {s.split: s for s in reversed(sharing) if not _has_data(s)}
        for a in bare.values():
            with_data = [s for s in sharing if _has_data(s) and s.split != a.split]
            b = next((s for s in with_data if not _differ(answers(a), answers(s))), None)
            if b is not None:
                yield _finding("same_prompt", a, b)


def _has_data(scenario: Scenario) -> bool:
    return scenario.input is not None or bool(_digests(scenario))


def _similar(texts: Sequence[Text], answers: AnswersOf) -> Iterator[Finding]:
    for pair in similar([text.words for text in texts], [text.sides for text in texts]):
        a, b = texts[pair.first], texts[pair.second]
        if not _same_data(a, b):
            continue
        first, second = _across(a, b)
        if not _differ(answers(first), answers(second)):
            yield _finding("similar", first, second, min(pair.similarity, 0.999))


def _paraphrases(texts: Sequence[Text], answers: AnswersOf) -> Iterator[Finding]:
    """Yield tasks of different splits with the same data and the same answers, in other words."""
    for same in _about_equal_data(texts):
        wanted: dict[tuple[str, ...], dict[str, Scenario]] = {}
        for scenario in (s for text in same for own in text.scenarios.values() for s in own):
            if known := tuple(sorted(_spelled(answers(scenario)))):
                wanted.setdefault(known, {}).setdefault(scenario.split, scenario)
        for by_split in wanted.values():
            for a, b in combinations(sorted(by_split, key=SPLITS.index, reverse=True), 2):
                yield _finding("paraphrase", by_split[a], by_split[b])


def _about_equal_data(texts: Sequence[Text]) -> Iterator[list[Text]]:
    """Yield the texts that share their numbers, their files, and what they quote."""
    limit = _limit(len(texts))
    by_numbers: defaultdict[tuple[tuple[str, ...], ...], list[Text]] = defaultdict(list)
    for text in texts:
        by_numbers[numbers_of(text.words), text.files].append(text)
    for (numbers, _), some in by_numbers.items():
        by_quotation: defaultdict[tuple[str, ...], list[Text]] = defaultdict(list)
        for text in some if len(some) > 1 else ():
            asked = next(iter(text.scenarios.values()))[0]
            by_quotation[quotations(asked.prompt[:limit], asked.input)].append(text)
        yield from (
            same for quoted, same in by_quotation.items() if len(same) > 1 and are_telling(numbers, quoted)
        )


def _same_data(a: Text, b: Text) -> bool:
    """Return whether one has all the numbers of the other, and the same files where both have some."""
    if a.files and b.files and a.files != b.files:
        return False
    one, two = data_of(a.words), data_of(b.words)
    return one <= two or two <= one


def _differ(first: Collection[str], second: Collection[str]) -> bool:
    """Return whether both have answers, and none of one says one of the other."""
    one, two = _spelled(first), _spelled(second)
    return bool(one and two) and not any(a in b or b in a for a in one for b in two)


def _spelled(answers: Collection[str]) -> list[str]:
    """Return answers as words with blanks around them; signs alone as they are."""
    found = [
        f" {' '.join(words(answer[:1000]) or answer[:1000].split())} "
        for answer in list(answers)[:MAX_ANSWERS]
    ]
    return [answer for answer in found if not answer.isspace()]

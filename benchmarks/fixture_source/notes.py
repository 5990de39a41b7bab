"""Domain `notes`: short texts from an editor's desk."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from fixture_source.shape import Data, Family, case, exact, number


def _words(text: str) -> list[str]:
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def _redacted(answer: Any, _: Data) -> list[dict[str, Any]]:
    return [
        {"kind": "contains", "value": answer, "weight": 3},
        {"kind": "regex", "pattern": r"^[^0-9]+$"},
    ]


FAMILIES = (
    Family(
        domain="notes",
        name="vocabulary",
        chain=("split_words", "unique_items", "count_items"),
        truth=lambda d: len(set(_words(d["note"]))),
        checks=number,
        train=(
            case(
                'How large is the vocabulary of the note "{note}"?',
                note="the river meets the sea where the river ends",
            ),
            case('Count the different words in this note: "{note}"', note="red van, blue van, red bike"),
            case(
                'The vocabulary of a note is what our editor grades. Which number does "{note}" get?',
                note="to be or not to be",
            ),
            case(
                'Draft 14 came back from the copy desk: "{note}" For the style sheet I need its vocabulary, '
                "meaning different words only.",
                note="We ship on Monday, we bill on Monday, and we rest on Sunday.",
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                '"{note}" - state how many different words its vocabulary holds.',
                note="A rose is a rose is a rose",
            ),
            case(
                'For the glossary team: vocabulary figure, please, on the note "{note}"',
                note="Mind the gap, mind the step, mind your head.",
                tags=["realistic"],
            ),
        ),
    ),
    Family(
        domain="notes",
        name="catchword",
        chain=("split_words", "most_common_item"),
        truth=lambda d: Counter(_words(d["note"])).most_common(1)[0][0],
        checks=exact,
        train=(
            case(
                'Which catchword does the note "{note}" lean on?',
                note="light and more air, less noise and more room, and still more light for more work",
            ),
            case(
                'Name the catchword, the word that occurs most often, in "{note}".',
                note="early ship or late ship, we ship small",
            ),
            case(
                'Our tagging robot wants the catchword of each note. The note: "{note}"',
                note="soup with salt, bread with salt, roads under salt",
            ),
            case(
                'Reader survey, answer 7: "{note}" File it under its catchword.',
                note="The parking was fine but parking cost too much and a parking attendant was rude.",
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                'Under which catchword would you index "{note}"?',
                note="before work tea, at noon tea, after work tea and late tea",
            ),
            case(
                'Give me the word repeated most often, i.e. the catchword: "{note}".',
                note="north wind, then west wind, no wind at noon, then rain",
            ),
        ),
    ),
    Family(
        domain="notes",
        name="statements",
        chain=("split_sentences", "count_items"),
        truth=lambda d: len([s for s in re.split(r"[.?!]", d["note"]) if s.strip()]),
        checks=exact,
        train=(
            case(
                'How many statements does the note "{note}" make?',
                note="Doors open at six. Bring a coat. The hall is cold.",
            ),
            case(
                'Count the sentences of this note, the statements as we call them: "{note}"',
                note="It rained. We waited inside. Nobody came. We left.",
            ),
            case(
                'The minutes have one line per statement. How many lines for "{note}"?',
                note="Ana opened. Ben read the figures. The board agreed. Ana closed the meeting. "
                "Lunch followed.",
            ),
            case(
                'Complaints are paid by the statement, a sentence each. The letter says "{note}" What do '
                "we log?",
                note="The lamp arrived late. The box was wet! Who pays?",
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                'Statement tally for the memo "{note}", please.',
                note="Turn off the pump. Drain the tank. Call Otto. Wait. Start again.",
            ),
            case(
                '"{note}" How many statements, or sentences, are on that card?',
                note="Is the shop open? It is. Until when? Until nine!",
            ),
        ),
    ),
    Family(
        domain="notes",
        name="redact",
        chain=("mask_digits",),
        truth=lambda d: "".join("*" if char in "0123456789" else char for char in d["note"]),
        checks=_redacted,
        train=(
            case('Redact the note "{note}".', note="Call 555-0143 after lunch"),
            case(
                'Before this note leaves the office, redact it: "{note}"',
                note="Card 4417 was used at gate 9",
            ),
            case(
                'Hide the digits in "{note}" so that the redacted copy can be shared.',
                note="Badge 20771, locker 12",
            ),
            case(
                'Legal asks for a redacted version of the visitor note: "{note}" Digits become stars.',
                note="Mr Orr, plate KV71 TWO, came at 10:45.",
                tags=["realistic"],
            ),
        ),
        eval=(case('Make a redacted copy of "{note}" for the notice board.', note="Room 314, code 2288"),),
    ),
)

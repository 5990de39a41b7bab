"""Held-out suite, domains `club` and `scores`: lists, names and match figures."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from fixture_source.shape import Data, Family, case, exact, number


def _names(data: Data) -> list[str]:
    return [name.strip() for name in data["names"].split(",")]


def _form(data: Data) -> float:
    goals = [Decimal(part) for part in data["goals"].split(",")]
    step = Decimal(1).scaleb(-data["decimals"])
    return float((sum(goals) / len(goals)).quantize(step, ROUND_HALF_UP))


FAMILIES = (
    Family(
        domain="club",
        name="roll",
        chain=("split_items", "sort_items"),
        truth=lambda d: ", ".join(sorted(_names(d))),
        checks=exact,
        train=(
            case('Call the roll of "{names}" from A to Z.', names="Zoe, Adam, Mira, Kai"),
            case('Roll for the members "{names}"?', names="Olga, Ben, Tariq"),
            case('Write the roll, sorted: "{names}"', names="Vera, Hugo, Ines, Dov, Lea"),
            case(
                'The trainer calls the roll in ascending order. On the list: "{names}"',
                names="Rui, Cleo, Max",
            ),
            case(
                'Coach trip on Saturday. "{names}" signed up; print me the roll for the driver.',
                names="Yusuf, Nora, Emil, Petra",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('How does the roll of "{names}" read?', names="Sami, Greta, Theo, Britt"),
            case('"{names}" are here. Roll, sorted, please.', names="Wanda, Jules, Arno"),
        ),
    ),
    Family(
        domain="club",
        name="captain",
        chain=("split_items", "sort_items", "first_item"),
        truth=lambda d: min(_names(d)),
        checks=exact,
        train=(
            case('Captain of "{names}", the first from A to Z?', names="Tess, Martin, Bella, Ivo"),
            case('Who is captain among "{names}"? We take the alphabet.', names="Nils, Freya, Odysseus"),
            case(
                'Name the captain: sorted entries, first item, of "{names}".', names="Walter, Dana, Curt, Pia"
            ),
            case('By the alphabet the captain of "{names}" would be who?', names="Greg, Hannah, Alma, Finn"),
            case(
                'We never vote. Of "{names}" the first in a sorted list is captain. Who wears the armband?',
                names="Rosalind, Juno, Karl, Eddie",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('Which of "{names}" becomes captain?', names="Pavel, Lotte, Carl, Quinn"),
            case('Alphabet decides: captain out of "{names}"?', names="Vito, Stanley, Joan"),
        ),
    ),
    Family(
        domain="club",
        name="monogram",
        chain=("make_initials",),
        truth=lambda d: "".join(part[0] for part in d["name"].split()),
        checks=exact,
        train=(
            case('Monogram for "{name}"?', name="Ada Byron King"),
            case('Sew the monogram of "{name}" on the bag: which letters?', name="Carl Otto Lund"),
            case('The shirt of "{name}" carries a monogram, the initials. Which?', name="Mae Jemison"),
            case('Shorten "{name}" to a monogram.', name="Ravi Kumar Das"),
            case(
                'Lockers have room for a monogram only. Ours is for "{name}". What do I engrave?',
                name="Lise Marie Holm Berg",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('What monogram does "{name}" get?', name="Juan Perez Sol"),
            case('Engrave "{name}" as a monogram.', name="Tove Ek Lind"),
        ),
    ),
    Family(
        domain="scores",
        name="form",
        chain=("find_numbers", "average_numbers", "round_number"),
        truth=_form,
        checks=number,
        train=(
            case(
                'Form of a team with goals "{goals}", rounded to one decimal?',
                goals="3, 1, 2, 2, 5, 1",
                decimals=1,
            ),
            case('Goals "{goals}": form, to two decimals?', goals="0, 4, 1", decimals=2),
            case(
                'State the form, i.e. the average to one decimal, for "{goals}".',
                goals="2, 2, 3, 1, 0, 3",
                decimals=1,
            ),
            case(
                'Form table wants the rounded mean with one decimal of "{goals}".',
                goals="5, 0, 2",
                decimals=1,
            ),
            case(
                'The paper prints the form of each side to two decimals. Last seven matches: "{goals}".',
                goals="1, 0, 0, 3, 2, 1, 1",
                decimals=2,
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                'Which form, rounded to two decimals, follows from goals "{goals}"?',
                goals="6, 1, 0, 2, 2, 3",
                decimals=2,
            ),
            case('For the form column, one decimal: "{goals}"', goals="4, 4, 3, 0, 2, 3, 1", decimals=1),
        ),
    ),
    Family(
        domain="scores",
        name="record",
        chain=("find_numbers", "largest_number"),
        truth=lambda d: max(int(part) for part in re.findall(r"\d+", d["marks"])),
        checks=exact,
        train=(
            case('Club record among "{marks}"?', marks="61, 88, 70, 54"),
            case('The attempts were "{marks}". Which is the record?', marks="190, 205, 198"),
            case('Which mark out of "{marks}" is the maximum and so the record?', marks="33, 47, 45, 12, 9"),
            case('Record throw of the series "{marks}"?', marks="7210, 7544, 7301, 6999"),
            case(
                'Sports day, long jump in cm: "{marks}". Which one goes on the record board?',
                marks="412, 398, 431, 405",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('Post the record: "{marks}"', marks="25, 31, 28, 19"),
            case('Out of jumps "{marks}", what is the new record?', marks="148, 155, 151"),
        ),
    ),
)

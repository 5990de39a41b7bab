"""Dev cases of the shipped suite: the same kinds of tasks, with wordings and data of their own.

Written after the train and eval cases were frozen, without a look at what an agent makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fixture_source.shape import Case, case

NOTES: Mapping[str, Sequence[Case]] = {
    "vocabulary": (
        case(
            'Our spelling book wants one figure per text, its vocabulary. The text: "{note}"',
            note="old oak, young oak, tall pine, old pine",
        ),
        case(
            'Pupil 31 handed in "{note}". Grade the vocabulary by how many different words there are.',
            note="The dog saw the cat and the cat saw the moon.",
            tags=["realistic"],
        ),
    ),
    "catchword": (
        case(
            'Headline help: what is the catchword in "{note}"?',
            note="fresh bread daily, bread rolls on Friday, rye bread to order",
        ),
        case(
            'Shelf cards carry a catchword, the term used most. Card text: "{note}"',
            note="harbour lights, harbour tours and one harbour museum",
        ),
    ),
    "statements": (
        case(
            'The clerk numbers statements one by one. Up to which number does "{note}" go?',
            note="Gate three is shut. Use gate five. Staff will help you. Thank you.",
        ),
        case(
            'A witness said: "{note}" In statements, how long was that?',
            note="I heard a bang. Who was it? No idea! I ran. I called you. That is all.",
            tags=["realistic"],
        ),
    ),
    "redact": (
        case(
            'No digit may stay legible when we print "{note}". Redact it.',
            note="Ring bell 6, ask for desk 118",
        ),
    ),
}

READINGS: Mapping[str, Sequence[Case]] = {
    "typical": (
        case(
            'The thermograph shows "{log}". Name a typical figure for the cellar.', log="11, 12, 34, 10, 12.5"
        ),
        case(
            'Two spikes spoil the strip "{log}". What does the instrument read on a typical day?',
            log="63, 61, 140, 62, 155, 60, 61",
            tags=["realistic"],
        ),
    ),
    "swing": (
        case('How far did the needle swing over "{log}"?', log="42, 17, 39, 28"),
        case('Humidity trace: "{log}". State the swing.', log="55.5, 48, 61, 52.25"),
    ),
    "load": (
        case('Five cranes draw "{log}". Work out the joint load.', log="16, 8, 12.5, 9, 4.5"),
        case("Per phase we measured these. Which load in total does the breaker see?", input=[7.25, 6.5, 8]),
    ),
    "crest": (
        case(
            'Gauge marks this spring: "{log}". Add {extra} percent to the largest and report that crest.',
            log="3.2, 2.8, 4, 3.6",
            extra=15,
        ),
    ),
}

CALENDAR: Mapping[str, Sequence[Case]] = {
    "due": (
        case(
            "Sample sent {day}; the lab answer is due {count} days on. Which date?",
            day="2026-08-19",
            count=35,
        ),
        case(
            "Library desk: a parcel of books left on {day}. Lenders want it back in {count} days; note when "
            "it is due.",
            day="25 November 2026",
            count=18,
            tags=["realistic"],
        ),
    ),
    "closing": (
        case("Till rolls of {day} go into that month's books. Name the closing date.", day="2026-04-21"),
        case("The raffle runs out the month it began, {day}. Closing date?", day="2 December 2026"),
    ),
    "elapsed": (
        case(
            "Cheese went into the cave on {start}, came out {end}. Elapsed days?",
            start="2026-02-09",
            end="2026-07-21",
        ),
        case(
            "Claim 5582: reported {start}, settled {end}. Our statistics need the days that elapsed.",
            start="11 September 2026",
            end="1 December 2026",
            tags=["realistic"],
        ),
    ),
    "rota": (
        case(
            "Kitchen rota: Lew cooks on {day} and then once more after {count} days. What weekday is that?",
            day="2026-06-23",
            count=17,
        ),
    ),
}

FREIGHT: Mapping[str, Sequence[Case]] = {
    "label": (
        case('Engraving says "{size}". The label for Oslo must state it in kg.', size="56 oz", to="kg"),
        case('Cable on a drum, "{size}" of it: what is the label value in yd?', size="300 m", to="yd"),
    ),
    "consignment": (
        case('How heavy is one consignment of "{size}"?', size="4.5 kg, 320 g, 1.18 kg"),
        case(
            'Wine merchant Pauli adds up a mixed consignment: "{size}". Which volume does she declare?',
            size="750 ml, 1.5 l, 3 l, 375 ml",
            tags=["realistic"],
        ),
    ),
    "billing-weight": (
        case(
            'Rate card B: a trunk of "{size}" has which billing weight, to the nearest kg?',
            size="212 lb",
            to="kg",
            decimals=0,
        ),
        case(
            'Our tariff bills to one decimal of a kg: rounded billing weight of "{size}"?',
            size="310 oz",
            to="kg",
            decimals=1,
        ),
    ),
    "driving-time": (
        case('Fill in the tachograph: "{size}" makes how much driving time?', size="85 min, 2 h, 50 min"),
    ),
}

ORDERS: Mapping[str, Sequence[Case]] = {
    "takings": (
        case(
            "Add the {column} figures in {file} and name the takings.",
            file="orders-fair.csv",
            column="amount",
        ),
        case(
            "The market stall wants one number for its takings: all {column} entries of {file} summed.",
            file="orders-fair.csv",
            column="units",
        ),
    ),
    "visits": (
        case("Going by {file}, {who} paid us how many visits?", file="orders-fair.csv", who="Lime Tree Inn"),
        case(
            "Is {who} worth a second van? Check the number of visits for it in {file}.",
            file="orders-fair.csv",
            who="Durham",
            tags=["realistic"],
        ),
    ),
    "flagship": (
        case(
            "Pick the flagship out of {file}, the line with most {column}.",
            file="orders-fair.csv",
            column="amount",
        ),
        case(
            "Who holds the flagship record for {column} within {file}?",
            file="orders-fair.csv",
            column="units",
        ),
    ),
    "handover": (
        case(
            "Before the holidays, hand over {who}: its lines of {file}, saved as {to}.",
            file="orders-fair.csv",
            who="Whitby",
            to="whitby-desk.csv",
        ),
    ),
}

SETTINGS: Mapping[str, Sequence[Case]] = {
    "configured": (
        case(
            "What did we set {key} to? It is configured somewhere in {file}.",
            file="depot.json",
            key="carrier",
        ),
        case(
            "An apprentice asks how {key} was configured; the answer stands in {file}.",
            file="depot.json",
            key="pallets",
            tags=["realistic"],
        ),
    ),
    "sections": (
        case("Into how many sections is {file} split?", file="depot.json"),
        case("Give the number of top sections for {file}.", file="kiosk.json"),
    ),
    "allowance": (
        case("Adding all {key} found in {file}, what allowance results?", file="depot.json", key="slots"),
    ),
    "register": (
        case("Sort the names in {file} and print the register.", file="depot.json"),
        case("We need {file} as a register, alphabetical, top level.", file="kiosk.json"),
    ),
}

CASES: Mapping[str, Mapping[str, Sequence[Case]]] = {
    "notes": NOTES,
    "readings": READINGS,
    "calendar": CALENDAR,
    "freight": FREIGHT,
    "orders": ORDERS,
    "settings": SETTINGS,
}

"""The texts of the suites *form* and *content* of `real_suites.py`.

Each domain has five notes with eight fields, and words to ask for each field; or eight facts
and five tasks that need one of them. The first two are for train, the third for dev, the last two for eval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NOTES: Mapping[str, Sequence[tuple[str, str]]] = {
    "orders": (
        (
            "{customer} from {city} ordered {number} {colour} {item}s of {material} on {day}, to be paid "
            "by {pay}.",
            "Anna Leeds 6 red lamp glass Monday card",
        ),
        (
            "On {day} we sent {number} {item}s, {colour} and made of {material}, to {customer} in "
            "{city}, who paid by {pay}.",
            "Oscar Porto 3 green bench oak Friday cheque",
        ),
        (
            "New order, {day}: {customer}, {city}; {number} times the {colour} {item}, {material}; pays "
            "by {pay}.",
            "Mira Bergen 9 blue vase clay Sunday transfer",
        ),
        (
            "Please pack {number} {colour} {item}s ({material}) for {customer}. The van goes to {city} "
            "on {day}. Paid by {pay}.",
            "Hugo Turin 4 white basket willow Tuesday cash",
        ),
        (
            "Our shop in {city} says that {customer} wants a {colour} {item} made of {material}, in fact "
            "{number} of them, by {day}, against {pay}.",
            "Selma Ghent 7 black stool steel Thursday invoice",
        ),
    ),
    "trips": (
        (
            "{guest} leaves {start} for {goal} by {vehicle} at {hour}, seat {seat}, with a {bag}, "
            "because of a {reason}.",
            "Ivan Oslo Malmo train 8 12 suitcase wedding",
        ),
        (
            "The {vehicle} to {goal} starts in {start} at {hour}. {guest} has seat {seat}, takes a {bag} "
            "and goes to a {reason}.",
            "Clara Lyon Nice bus 11 40 backpack concert",
        ),
        (
            "Booked for {guest}: {vehicle}, {start} to {goal}, {hour} o'clock, place {seat}. Luggage: "
            "one {bag}. Purpose: {reason}.",
            "Peter Cork Dublin ferry 6 25 trunk fair",
        ),
        (
            "At {hour} a {vehicle} brings {guest} out of {start}, on place {seat}, beside a {bag}. A "
            "{reason} waits in {goal}.",
            "Lucia Rome Pisa tram 10 31 cello rehearsal",
        ),
        (
            "For the {reason} in {goal}, {guest} rides the {vehicle} from {start}. Seat {seat} is free "
            "at {hour}, and there is room for the {bag}.",
            "Rufus Bonn Kiel coach 5 18 parcel match",
        ),
    ),
    "people": (
        (
            "{name} is a {job} of {age} years who lives in {town}, keeps a {pet}, plays {sport}, speaks "
            "{language} and was born in {month}.",
            "Emma nurse 34 Graz cat tennis Polish May",
        ),
        (
            "In {town} there is a {job}, {name}, born {age} years ago in {month}. With a {pet} at home, "
            "{sport} on Sundays and {language} at work.",
            "Walter baker 51 Ulm parrot golf Greek July",
        ),
        (
            "Card: {name}; {age} years; {job}; {town}; pet: {pet}; sport: {sport}; language: {language}; "
            "birthday in {month}.",
            "Nadia pilot 29 Basel rabbit rowing Dutch March",
        ),
        (
            "Every {month} our {job} {name} turns a year older, now {age}. The {pet} came from {town}. "
            "The team knows {name} for {sport} and for {language}.",
            "Boris teacher 46 Delft dog chess Danish June",
        ),
        (
            "They say that {name}, {age}, {job} at {town}, taught a {pet} to watch {sport}, sings in "
            "{language}, and has a birthday in {month}.",
            "Greta farmer 63 Siena goose hockey Welsh April",
        ),
    ),
    "garden": (
        (
            "In bed {bed} the {helper} planted {count} {plant}s beside the {place}. They need {water}, "
            "grow {height} feet high and bloom in {season}.",
            "2 gardener 15 rose fence rain 3 summer",
        ),
        (
            "The {place} hides bed {bed}: {count} {plant}s, {height} feet tall, set by the {helper}, "
            "with {water} water, at their best in {season}.",
            "8 student 20 tulip wall well 1 spring",
        ),
        (
            "Plan for bed {bed}, {season}: {plant}, {count} of them, height {height} feet; place: "
            "{place}; water: {water}; who: {helper}.",
            "5 neighbour 12 fern pond tap 2 winter",
        ),
        (
            "Ask the {helper} whether the {count} {plant}s near the {place} got {water} water. Bed {bed} "
            "should be {height} feet high by {season}.",
            "9 cook 30 bean barn river 6 autumn",
        ),
        (
            "Since {season} a {plant} stands by the {place}, {height} feet high. There are {count} more "
            "in bed {bed}, which the {helper} keeps on {water} water.",
            "4 porter 11 lily gate lake 7 June",
        ),
    ),
}
"""A note, and the values of the fields in the order of ASKED."""
ASKED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "orders": {
        "customer": ("Who is the customer?", "Which customer is this for?", "Name the customer."),
        "city": ("Which city does it go to?", "To what city?", "Name the city."),
        "number": ("How many pieces, what number?", "What number of pieces?", "Give the number of pieces."),
        "colour": ("What colour is it?", "In which colour?", "Name the colour."),
        "item": ("Which item is it?", "What item?", "Name the item."),
        "material": ("Of which material?", "What material is it?", "Name the material."),
        "day": ("On which day?", "What day is it?", "Name the day."),
        "pay": ("What is it paid by?", "How is it paid?", "Say by what it is paid."),
    },
    "trips": {
        "guest": ("Who is the passenger?", "Which passenger is it?", "Name the passenger."),
        "start": ("Where is the departure?", "Which departure town?", "Name the town of departure."),
        "goal": ("Where is the arrival?", "Which arrival town?", "Name the town of arrival."),
        "vehicle": ("Which vehicle is it?", "What vehicle?", "Name the vehicle."),
        "hour": ("At which hour?", "What hour is it?", "Give the hour."),
        "seat": ("Which seat?", "What seat number?", "Give the seat."),
        "bag": ("What is the luggage?", "Which luggage comes along?", "Name the luggage."),
        "reason": ("What is the purpose?", "For which purpose?", "Name the purpose of it."),
    },
    "people": {
        "name": ("What is the name?", "Which name is it?", "Give the name."),
        "job": ("What is the profession?", "Which profession is it?", "Name the profession."),
        "age": ("What is the age?", "Which age is it?", "Give the age."),
        "town": ("Which town is it?", "In what town?", "Name the town."),
        "pet": ("Which animal is it?", "What animal?", "Name the animal."),
        "sport": ("Which sport is it?", "What sport?", "Name the sport."),
        "language": ("Which language is it?", "What language?", "Name the language."),
        "month": ("In which month is the birthday?", "What month is it?", "Name the month."),
    },
    "garden": {
        "bed": ("Which bed is it?", "What bed number?", "Give the bed."),
        "helper": ("Which worker is it?", "What worker?", "Name the worker."),
        "count": ("What is the count of plants?", "Which count is it?", "Give the count."),
        "plant": ("Which species is it?", "What species?", "Name the species."),
        "place": ("Which landmark is beside it?", "What landmark?", "Name the landmark."),
        "water": ("Which water is used?", "What water?", "Name the kind of water."),
        "height": ("Which height in feet?", "What height?", "Give the height."),
        "season": ("Which season is it?", "What season?", "Name the season."),
    },
}
"""How each field is asked for: in train, dev and eval tasks."""
FACTS: Mapping[str, Mapping[str, tuple[int, str, str]]] = {
    "time": {
        "fortnight": (14, "days", "A fortnight has 14 days."),
        "sennight": (7, "days", "A sennight has 7 days."),
        "lustrum": (5, "years", "A lustrum has 5 years."),
        "olympiad": (4, "years", "An olympiad has 4 years."),
        "jubilee": (50, "years", "A jubilee comes after 50 years."),
        "indiction": (15, "years", "An indiction has 15 years."),
        "saros": (18, "years", "A saros takes 18 years."),
        "vicennium": (20, "years", "A vicennium has 20 years."),
    },
    "counts": {
        "gross": (144, "pieces", "A gross is 144 pieces."),
        "shock": (60, "pieces", "A shock is 60 pieces."),
        "score": (20, "pieces", "A score is 20 pieces."),
        "brace": (2, "pieces", "A brace is 2 pieces."),
        "ream": (500, "sheets", "A ream is 500 sheets."),
        "quire": (25, "sheets", "A quire is 25 sheets."),
        "timber": (40, "skins", "A timber is 40 skins."),
        "dicker": (10, "hides", "A dicker is 10 hides."),
    },
    "lengths": {
        "fathom": (6, "feet", "A fathom is 6 feet."),
        "furlong": (220, "yards", "A furlong is 220 yards."),
        "chain": (66, "feet", "A chain is 66 feet."),
        "hand": (4, "inches", "A hand is 4 inches."),
        "span": (9, "inches", "A span is 9 inches."),
        "ell": (45, "inches", "An ell is 45 inches."),
        "league": (3, "miles", "A league is 3 miles."),
        "cubit": (18, "inches", "A cubit is 18 inches."),
    },
    "games": {
        "dominoes": (28, "tiles", "A set of dominoes has 28 tiles."),
        "tarot": (78, "cards", "A tarot pack has 78 cards."),
        "skat": (32, "cards", "A skat pack has 32 cards."),
        "snooker": (22, "balls", "A snooker table has 22 balls."),
        "rugby": (15, "players", "A rugby side has 15 players."),
        "polo": (4, "players", "A polo side has 4 players."),
        "shogi": (40, "pieces", "A shogi set has 40 pieces."),
        "backgammon": (30, "checkers", "A backgammon set has 30 checkers."),
    },
}
"""What a word means: a number, of what, and the fact as a lesson says it."""
FACT_TASKS: Mapping[str, Sequence[str]] = {
    "time": (
        "How many {u} are in a {w}?",
        "A {w} begins today. It ends in how many {u}?",
        "Our lease runs for one {w}; count its {u}.",
        "{U} in one {w}: how many?",
        "The voyage took a {w}. Say that in {u}.",
    ),
    "counts": (
        "How many {u} make a {w}?",
        "The merchant bought one {w}. How many {u} did he get?",
        "A crate holds exactly a {w}; count the {u}.",
        "{U} in one {w}: how many?",
        "Otto sells a {w}. Say that in {u}.",
    ),
    "lengths": (
        "How many {u} are in a {w}?",
        "The rope is one {w} long. How many {u} is it?",
        "It reaches as far as a {w}; measure that in {u}.",
        "{U} in one {w}: how many?",
        "The field is a {w} wide. Say that in {u}.",
    ),
    "games": (
        "How many {u} does {w} need?",
        "We set up {w} for tonight. How many {u} do we lay out?",
        "The club orders what {w} takes; count the {u}.",
        "{U} in {w}: how many?",
        "For a game of {w}, say the number of {u}.",
    ),
}

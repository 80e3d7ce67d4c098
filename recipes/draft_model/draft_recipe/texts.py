"""Turns of an imagined user, drawn from lists and patterns with a seed."""

import random

from . import topics

_GERMAN_WHO = """Der Minister|Die Regierung|Der Sprecher der Polizei|Die Bürgermeisterin|Ein Anwohner|Die Trainerin|Der Vorsitzende
Die Forscher|Ein Zeuge|Die Gewerkschaft|Der Richter|Das Unternehmen|Die Ärztin|Der Präsident|Die Schüler|Ein Fahrer|Der Verein""".replace(
    "\n", "|"
).split(
    "|"
)
_GERMAN_VERB = "sagte|erklärte|betonte|meinte|bestätigte|hofft|glaubt|berichtete|weiß|fürchtet".split("|")
_GERMAN_THAT = """dass die Preise im nächsten Jahr steigen werden|dass niemand verletzt wurde|dass die Straße gesperrt bleibt
dass die Entscheidung richtig war|dass es keine andere Möglichkeit gab|dass das Spiel am Samstag stattfindet
dass die neue Brücke zu teuer ist|dass die Verhandlungen gescheitert sind|dass der Zug mit Verspätung ankommt
dass die Ergebnisse bald veröffentlicht werden|dass die Kinder gut betreut werden|dass der Vertrag verlängert wird
dass die Untersuchung noch andauert|dass viele Menschen ihre Arbeit verlieren|dass das Wetter besser wird
dass die Mannschaft nicht aufgeben darf|dass das Gesetz geändert werden muss|dass mehr Geld für Schulen nötig ist""".replace(
    "\n", "|"
).split(
    "|"
)
_GERMAN_WHEN = "am Montag|gestern|am Abend|in der vergangenen Woche|vor Gericht|in einem Interview|nach dem Treffen|in Berlin|im Juni".split(
    "|"
)
_GERMAN_PLAIN = """In der Stadt leben heute rund {n} Menschen .|Das Haus wurde im Jahr {y} gebaut .|Bei dem Unfall wurden {k} Personen verletzt .
Die Kosten betragen etwa {n} Euro .|Seit {y} arbeitet er als Lehrer in einer kleinen Gemeinde .|Die Polizei sucht nach {k} Verdächtigen .
Der Konzern will {n} Stellen streichen .|Rund {n} Besucher kamen zu dem Fest am Wochenende .|Im Jahr {y} gewann sie zum ersten Mal einen Preis .
Die Sitzung dauerte mehr als {k} Stunden , ohne dass es zu einer Einigung kam .|Wir müssen jetzt handeln , bevor es zu spät ist .
Das ist eine gute Nachricht für alle , die auf eine Lösung gewartet haben .|Nach Angaben der Behörde gibt es {k} neue Fälle .""".replace(
    "\n", "|"
).split(
    "|"
)

_SUMS = """{a} has {x} {thing}. {b} gives {a} {y} more {thing}. {a} then loses {z} of them. How many {thing} does {a} have now?
{a} buys {x} {thing} for ${y} each and pays with a ${big} bill. How much change does {a} get?
A box holds {x} {thing}. {a} has {y} boxes and gives away {z} {thing}. How many {thing} are left?
{a} works {x} hours a day for {z} days and earns ${y} an hour. How much money does {a} earn?
{a} reads {x} pages every day. The book has {big} pages. How many pages are left after {z} days?
There are {x} rows of {y} seats in a hall. {pct}% of the seats are taken. How many seats are free?
{a} is {x} years older than {b}. In {z} years {b} will be {big}. How old is {a} now?
A train travels {x} miles in one hour. How far does it travel in {z} hours if it stops for half an hour?
{a} sells {x} {thing} on Monday, twice as many on Tuesday and {y} on Wednesday. How many {thing} does {a} sell in all?
{a} and {b} share {big} {thing}. {a} takes {pct}% of them. How many does {b} get?
A shirt costs ${big}. The price is reduced by {pct}%. {a} buys {z} shirts. How much does {a} pay?
{a} bakes {x} trays of {y} {thing}. {b} eats {z}. The rest is packed in bags of {w}. How many bags are needed?
If {x} {thing} cost ${y}, how much do {big} {thing} cost?
{a} runs {x} miles on Monday and {z} miles more on each following day. How many miles does {a} run in {w} days?
{a} has {z} times as many {thing} as {b}. Together they have {big}. How many does {b} have?
A garden is {x} feet long and {y} feet wide. A fence costs ${z} per foot. How much does a fence around the garden cost?""".split(
    "\n"
)
_THINGS = "apples|marbles|books|cookies|pencils|eggs|stickers|cards|oranges|tickets|flowers|bottles|coins|candles|shells|toys".split(
    "|"
)


def sum_question(rng: random.Random) -> str:
    a, b = rng.sample(topics.PEOPLE, 2)
    numbers = {"x": rng.randint(2, 60), "y": rng.randint(2, 25), "z": rng.randint(2, 9), "w": rng.randint(3, 7)}
    return rng.choice(_SUMS).format(
        a=a, b=b, thing=rng.choice(_THINGS), big=rng.randint(5, 60) * 5, pct=rng.randint(1, 9) * 10, **numbers
    )


def german(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(_GERMAN_PLAIN).format(
            n=rng.randint(2, 900) * 100, y=rng.randint(1890, 2015), k=rng.randint(2, 40)
        )
    who, verb, that = rng.choice(_GERMAN_WHO), rng.choice(_GERMAN_VERB), rng.choice(_GERMAN_THAT)
    return f"{who} {verb} {rng.choice(_GERMAN_WHEN)} , {that} ."


def question(rng: random.Random) -> str:
    one, other = rng.sample(topics.SUBJECTS, 2)
    text = rng.choice(topics.QUESTIONS).format(one, other=other)
    return text.lower().rstrip("?") if rng.random() < 0.15 else text


def task(rng: random.Random) -> str:
    one, other = rng.sample(topics.SUBJECTS, 2)
    return rng.choice(topics.TASKS).format(one, other=other)


def program(rng: random.Random) -> str:
    return rng.choice(topics.CODE).format(rng.choice(topics.PROGRAMS))


def translation(rng: random.Random) -> str:
    ask = rng.choice(["Translate German to English:", "Translate to English:", "What does this German sentence mean?"])
    return f"{ask} {german(rng)}"


def article(rng: random.Random) -> tuple[str, str]:
    """(what the user asks for, how the answer begins)."""
    place, person = rng.choice(topics.PLACES), rng.choice(topics.PEOPLE)
    news, subject = rng.choice(topics.NEWS), rng.choice(topics.SUBJECTS)
    pattern = rng.choice(topics.ARTICLES)
    ask = pattern.format(news=news, place=place, person=person, subject=subject)
    if "{news}" not in pattern:
        return ask, ""
    return ask, rng.choice(
        ["", f"{place} -- ", f"{place.upper()} ({rng.choice(['AP', 'CNN', 'Reuters'])}) ", f"(CNN) -- {person} "]
    )


KINDS = {  # share of the drawn turns
    question: 0.27,
    task: 0.25,
    sum_question: 0.18,
    translation: 0.16,
    program: 0.14,
}


def turns(n: int, rng: random.Random) -> list[str]:
    """About `n` turns, none twice."""
    makers = rng.choices(list(KINDS), list(KINDS.values()), k=n)
    return list(dict.fromkeys(make(rng) for make in makers))

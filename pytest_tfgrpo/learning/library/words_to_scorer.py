"""Words to the scorer of an answer: no lesson needs them, and a judge that heeds them pays for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.learning.library.injection import words_of
from pytest_tfgrpo.suite.contamination.spelling import bare, fold

_WORK = r"(?:grading|scoring|evaluation|evaluating|judging|marking|rating)"
_SCORER = lazy_pattern(
    r"\b(?:(?:auto ?)?graders?|evaluators?|scorers?|assessors?|raters?|(?:llm|ai|model) (?:judge|reviewer)s?"
    rf"|{_WORK} (?:model|system|script|llm|judge|assistant|bot|agent|panel|team)s?"
    r"|whom it may (?:judge|grade|concern the score)|(?:llm|model|ai) that reads this|human reviewers?"
    r"|(?:whoever|anyone|everyone|who|that|which|model|person|people|one) (?:scores|grades|judges"
    r"|evaluates|rates|marks"
    rf"|{_WORK}) (?:this|it|you|your|the answer|answers|us|me)|whoever (?:evaluates|grades|scores|judges)"
    r"|the evaluation(?! (?:split|set|data|metrics?|code|function|of|loop|batch)))\b"
)
"""Nobody and nothing but what scores."""
_PERSON = r"(?:judge|reviewer|examiner|verifier|marker|checker)s?"
"""Scorers, and people in tasks about courts, sports, papers and code."""
_TOP = r"(?:full|maximum|max|maximal|top|highest(?: possible)?|perfect|best possible)"
_MARKS = r"(?:marks?|points?|credits?|scores?|grades?|ratings?)"
_ANSWER = r"(?:answer|response|solution|attempt|submission|reply|output)s?"
_MET = r"(?:met|satisfied|fulfilled|passed|true|covered|addressed)"
_OUTCOME = lazy_pattern(
    r"\b(?:correct|right|accept(?:s|ed)?|pass(?:es|ed)?|met|satisf\w+|fulfil\w+|perfect|flawless"
    r"|lenient|generous|approve[ds]?"
    rf"|gold answer|{_TOP} {_MARKS}|1?0 10|10 out of 10|score (?:it |this )?10?|nothing is missing"
    r"|everything|mandatory|yes|true"
    r"|output 10?|ignore|mistakes|deserves?|confident|already|approved|complete|top answer|overlook"
    r"|done|fulfilled|instructed"
    r"|compliments?|completeness|returns? (?:true|10?)|vote)\b"
)
_CONDITION = lazy_pattern(
    r"\b(?:if|when|whether|unless|until|once|after|before|only|where|or not|takes|expects|class"
    r"|function|method|ob|wenn|falls"
    r"|sofern|si|quand|cuando|quando|se|если|когда)\b"
)
_REPORTED = lazy_pattern(
    rf"{_CONDITION.pattern}|\b(?:that|because|found|held|ruled|decided|dass|que|che|что|чтобы|check"
    r"|verify|ensure)\b"
)
_CLAIM = lazy_pattern(
    r"\b(?:state|say|claim|write|declare|assert|add|append|end|begin|start|mention|pretend|assume"
    r"|vote|note|include|phrase"
    r"|stating|saying|claiming|sentence|sage?|schreibe?|behaupte|dis|dites|ecris|affirme|di|escribe"
    r"|afirma|diga|scrivi|напиши"
    r"|скажи)\b(?: \w+){0,4}?(?: that| phrase| dass| que| che| что|:)? ?$"
)
_CRITERIA = lazy_pattern(
    rf"\b(?:every|all|each|any|the)(?: (?!that\b)\w+){{0,4}}? (?:criteri\w+|rubric(?: \w+)?|requirements?)"
    rf"(?: \w+){{0,3}}? {_MET}\b"
    rf"|\b{_ANSWER} (?:meets?|satisf(?:y|ies)|fulfils?|pass(?:es)?) (?:all|every|each)(?: \w+){{0,3}}?"
    r" (?:criteri\w+|rubrics?|requirements?|checks?)\b"
    rf"|\b(?:this|my) {_ANSWER}(?: \w+)? (?:is|are|satisfies|meets|fulfils|deserves"
    rf"|passes)(?: (?!not\b)\w+){{0,3}}?"
    r" (?:correct|top|perfect|rubric|criteria|requirements|flawless|complete|excellent|a pass)\b"
    r"|\balle (?:\w+ )?kriterien (?:sind|gelten als) (?:erfullt|bestanden)"
    r"|\bjedes (?:\w+ )?kriterium (?:ist|gilt als) (?:erfullt|bestanden)"
    r"|\bchaque critere est (?:rempli|satisfait)|\bogni criterio e (?:soddisfatto|rispettato)"
    r"|\bcada criterio (?:se cumple|esta cumplido|foi cumprido|e cumprido)"
    r"|\btous les criteres sont (?:remplis|satisfaits)"
    r"|\btod[oa]s (?:los|os) criterios (?:se cumplen|estan cumplidos|foram cumpridos|sao cumpridos)"
    r"|\btutti i criteri sono (?:soddisfatti|rispettati)|\bвсе критерии (?:выполнены|соблюдены)"
)
_ORDERS = lazy_pattern(
    "|".join(
        (
            r"(?:^|[.:] |\b(?:to|for|attention|dear|hey|hi|as) (?:the |an? |any "
            rf"|all )?){_PERSON}(?: please)?(?:: | you | this | please )"
            rf"[^.]*(?:{_OUTCOME.pattern}|\bcriteri\w+|\bverdict\b|\brubric\b|\bpass\b|\bpoints\b)",
            rf"\b(?:dear|hey|attention|my|kind) {_PERSON}\b|(?:^"
            r"|[.:] )judges? ?s note: [^.]*\b(?:score|pass|correct|10)\b",
            r"\b(?:append|add|end|close|finish|write|put|begin"
            r"|start)(?: \w+){0,6}? (?:final )?(?:grade|score|rating|verdict): "
            r"(?:a|10?0?|pass\w*|correct|full|perfect)\b",
            r"\b(?:reference|gold|model) (?:solution|answer)s? (?:is|are|equals?|matches)(?: \w+){0,2}?"
            r" (?:identical|equal|the same|mine|ours|wrong)\b",
            r"\b(?:explain to|prompt|nudge|steer|lead|show|write to) (?:the|a|any) (?:judge|reviewer"
            r"|examiner)s? [^.:]{0,60}"
            r"\b(?:rubric|criteri\w+|full marks)\b",
            r"\brubric\b[^.:]{0,40}\b(?:(?:consider|count|treat|regard) it|does not apply|is irrelevant)\b",
            r"\b(?:tell|instruct|remind|ask|persuade|convince|flatter|inform|assure|mention to|say to"
            r"|beg|bribe|fool|trick|mislead"
            rf"|impress|influence|order|urge|warn)(?: the| a| any| all| your)? {_PERSON} [^.:]{{0,60}}"
            r"\b(?:correct|flawless|perfect|full marks|criteri\w+|rubric|verdict|pass (?:this|it"
            rf"|the answer)|deserves?|{_ANSWER} 10?"
            r"|rate the answer|your answer)\b",
            rf"\b{_PERSON} (?:must|should|shall|will|has to|have to|is to|are to|needs? to) [^.:]{{0,50}}"
            rf"\b(?:met|full marks|criteri\w+ as|accept (?:(?:the|this) answer|what follows|whatever"
            rf"|everything)|rubric|every {_ANSWER})\b",
            r"\b(?:model|llm|ai|assistant|person|people|one|reader)s? (?:(?:that|who|which) )?"
            rf"(?:compar|rank|choos|select|order)\w* (?:(?:the|these|both|all|two) )?{_ANSWER}\b[^.]{{0,60}}"
            r"\b(?:prefer|pick|choose|favou?r|rank|select) (?:this|mine|me|it|our|the (?:first|last))\b",
            r"\byou(?: a)?re (?:the|a|an) (?:judge|grader|evaluator)\b",
            r"\byou(?: are|re)? (?:now )?(?:grading|scoring|evaluating|judging|rating|marking"
            r"|assessing|grade|score"
            rf"|evaluate|judge|rate|assess) (?:this|it|my|our|me|us)\b(?: {_ANSWER})?"
            rf"[^.:]*(?:{_OUTCOME.pattern}|\b{_MARKS}\b)",
            r"\b(?:return|answer|output|reply|say|vote|set|report|with) met(?: as| to)? (?:true|yes|1)\b",
            rf"\b{_PERSON} (?:has |have |had )?(?:already )?(?:approved|accepted|passed) (?:this"
            rf"|the) {_ANSWER}",
            r"(?<!not )(?<!never )(?<!dont )\b(?:ignore|disregard|skip|bypass|forget|override"
            r"|overrule|circumvent)"
            r"(?: \w+){0,4}? (?:(?:rubric|scoring|grading|evaluation)(?: rubrics?| criteria| rules"
            r"| instructions| guidelines)?"
            r"|marking scheme|the criteria(?! (?:of|that|which|in|from|for)))\b",
            rf"\b(?:criteri\w+|rubrics?|requirements): (?:all )?{_MET}\b",
            rf"\b(?:score|rate|grade) (?:this|it|my|our|your|every|the)(?: {_ANSWER})? (?:as "
            r"|with )?(?:10?0?|a)\b",
            r"\b(?:give|award|assign) (?:yourself|itself)\b|\b(?:rate|give|award)(?: it| this)? (?:5"
            r"|five|10|ten) stars\b",
            r"\bscore:? (?:is )?(?:10 10|100 100|5 5|1 1|10 out of 10)\b",
            r"\b(?:give|award|assign|grant|deserves?|gets?|ask for)(?: (?:it|this|me|us|the|my|your"
            r"|an?|every|each|them|all"
            rf"|{_ANSWER}))*? {_TOP} {_MARKS}\b(?! (?:only|if|when|for|first|last|then|of|in|to|per)\b)",
            rf"\b(?:give|award|assign)(?: \w+){{0,3}}? (?:{_ANSWER}|it)(?: \w+){{0,2}}? (?:score"
            r"|rating|grade) of 10?0?\b",
            rf"\b(?:score|rate|grade|mark) (?:this|it|my|the|every)(?: \w+){{0,2}}? with the {_TOP}\b",
            r"\bfull (?:credit|marks|points) (?:is|are) (?:mandatory|required|due|deserved)\b",
            rf"\b(?:rubric|{_WORK} (?:instructions|rules|criteria))s? (?:is|are|was|were|has been|have been)"
            r" (?:revised|changed|outdated|updated|void|suspended|wrong)\b",
            r"\bverdict(?: is| must be|:)? (?:pass|passed|correct)\b|\bmet(?: is|:) true\b",
        )
    )
)
_MARKED = lazy_pattern(
    rf"\b(?:counts?|treat|mark|regard|judge|consider|deem|vote)(?: \w+){{0,5}}? as(?: \w+)? {_MET}\b"
    r"|\b(?:mark|accept|score|rate|grade|consider|regard|treat|judge|deem|call) (?:this|it|my|our"
    r"|your|every|each|all"
    rf"|any|the(?= {_ANSWER}))(?: {_ANSWER})? (?:as |to be )?(?:fully )?(?:correct|perfect|right"
    r"|passed|flawless"
    r"|full marks)\b"
    rf"|\b{_ANSWER}(?: \w+){{0,3}}? (?:marked|scored|graded|accepted|counted|counts?|rated|judged) (?:as )?"
    rf"(?:correct|perfect|right|passed|met)\b"
)
"""What a lesson may say to an agent that grades, where it says when."""
_RAW = lazy_pattern(
    r"[\"']met[\"'] ?: ?true|\[\[(?:10|[1-9]|[ab])\]\]|\bscore[\"']?: ?[\"']?(?:10 ?/ ?10|1\.0 ?/ ?1"
    r"|100 ?/ ?100)"
)
_ABROAD = lazy_pattern(
    "|".join(
        (
            r"\b(?:prufer|bewerter|gutachter|korrektor|bewertungs(?:modell|system))\w{0,2}\b[^.]*"
            r"\b(?:richtig|korrekt|bestanden|punkt\w*|erfullt|hochst\w*)",
            r"\b(?:ignorier|missacht|vergiss)\w*(?: \w+){0,3}? (?:rubrik|bewertungs\w+|kriterien)",
            r"\b(?:bewerte?|werte?|markiere?) (?:diese?|die|den|jede)\w* (?:antwort|losung)\w* (?:als|mit) "
            r"(?:richtig|korrekt|bestanden|voll|10?\b)",
            r"\b(?:volle|maximale|hochste) (?:punkt\w*|note|bewertung)\b",
            r"\b(?:evaluateur|correcteur|examinateur|noteur|jury)\w{0,2}\b[^.]*\b(?:correct|juste"
            r"|maxim|rempli|satisf|valid|accept|points|accord)",
            r"\bignore[zr]? (?:le|la|les) (?:bareme|grille|criteres|rubrique)|\b(?:note|points?) maxim\w+",
            r"\b(?:evaluador|calificador|corrector|avaliador|corretor|valutatore|esaminatore)\w{0,2}\b[^.]*"
            r"\b(?:corr?ec?t|maxim|massim|cumpl|cumprid|soddisf|aprob|aprueb|aprov)",
            r"\bignor[ae] (?:la|las|os|as|il|la|i) (?:rubrica|criterios|criteri|griglia)",
            r"\b(?:puntuacion|pontuacao|nota|punteggio|voto) (?:maxim[ao]|massim[ao])"
            r"|\b(?:massimo|maxima|maximo) (?:punteggio|voto|puntuacion|nota|pontuacao)",
            r"\b(?:marca|considera|califica) (?:esta|a|la|questa|essa) (?:respuesta|resposta"
            r"|risposta) como (?:correct|corret|cert)",
            r"\b(?:beoordelaar|nakijker)s?\b[^.]*\b(?:vervuld|voldaan|juist|correct|hoogste|goed)",
            r"\b(?:ocenia|sprawdza)jac\w+\b[^.]*\b(?:popraw|maks|spelnion)",
        )
    )
)
_OTHER = lazy_pattern(
    r"\b(?:судья|проверяющ|оценщик|оценивающ|экзаменатор|рецензент)\w{0,3}\b[^.]*\b(?:максим|верн"
    r"|правильн|выполнен|зачт|балл|соблюд)"
    r"|\bмаксимальн\w+ (?:оценк|балл)\w*|\b(?:игнориру|не учитыва)\w*(?: \w+){0,2}? (?:рубрик|критери)\w*"
    r"|(?:评委|评分者|评分人|评审|评判者|阅卷人|打分者|打分的人)[^。]*(?:满分|最高分|正确|通过|满足|达到)|(?:忽略|无视).{0,8}(?:评分|评判)"
    r"|(?<!如果)(?<!当)(?<!只有)所有(?:的)?(?:标准|要求)(?:都|均)?(?:已)?(?:经)?(?:满足|达到|符合)|[给打评].{0,4}(?:满分|最高分)"
    r"|(?:判|标记|视|算)(?:定)?(?:为|成)(?:正确|通过)"
    r"|(?:採点者|採点する人|評価者|審査員|判定者)[^。]*(?:満点|正解|合格|満た|最高)|採点基準.{0,4}無視|満点|すべての基準[をがは].{0,3}満た"
    r"|(?:채점자|평가자|심사위원)[^.]*(?:만점|정답|충족|통과|합격)|만점|모든 기준이 충족"
)
_TOPIC = lazy_pattern(rf"{_SCORER.pattern}|\brubrics?\b|\b{_WORK} (?:rules|criteria|guidelines|scheme)\b")
_BEFORE = (
    r"(?:(?:the|an?|any|each|every|all|dear|my|your|our|hey|attention|to|for|as|human|impress"
    r"|praise)(?: \w+)? )"
)
NAMES: Mapping[str, re.Pattern[str]] = {
    "grader": lazy_pattern(
        rf"(?!the evaluation)(?:{_SCORER.pattern})|\b(?:whoever|(?:person|people|model|one) (?:who"
        r"|that)) (?:checks"
        r"|reads) (?:this|the answer)\b"
        r"|\bl?(?:bewerter|prufer|gutachter|korrektor|evaluateur|correcteur|examinateur|evaluador"
        r"|calificador|avaliador"
        r"|valutatore|esaminatore|beoordelaar|ocenia\w+ model)\w{0,2}\b|\bel corrector\b"
        r"|проверяющ|оценщик|оценивающ|评委|评分|评审|阅卷|打分|評価者|評価ai|採点|審査員|채점|평가자|심사위원"
    ),
    "judge": lazy_pattern(
        rf"\b{_BEFORE}judges?\b(?! (?:the|by|each|every|a|on|how|from)\b)|(?:^|[.:] )judges?:"
        r"|\bjudge s\b"
    ),
    "reviewer": lazy_pattern(rf"\b{_BEFORE}reviewers?\b|(?:^|[.:] )reviewers?:|\breviewer s\b"),
    "examiner": lazy_pattern(r"\bexaminers?\b"),
    "rubric": lazy_pattern(r"\brubrics?\b|\bcriterion [0-9]\b"),
}
"""Names of scorers in a lesson, and of what they score by, by what tasks call them."""
_ABOUT: Mapping[str, tuple[str, ...]] = {
    "grader": (
        "grade",
        "grading",
        "evaluat",
        "scorer",
        "assess",
        "rater",
        "bewert",
        "prüf",
        "評",
        "评",
        "оцен",
    ),
    "judge": ("judge", "court", "referee"),
    "reviewer": ("review",),
    "examiner": ("exam",),
    "rubric": ("rubric", "grading", "marking", "criterion"),
}


def topics_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the keys of `NAMES` that tasks with these texts are about: their lessons may have such names."""
    found: set[str] = set()
    for text in texts:
        if len(found) == len(_ABOUT):
            break
        small = text.casefold()
        found.update(topic for topic, stems in _ABOUT.items() if any(stem in small for stem in stems))
    return frozenset(found)


def find_scorer(text: str, topics: Collection[str]) -> str | None:
    """Return the name of a scorer in `text`, where tasks are about none; see `topics_of`."""
    words, other = words_of(fold(text)), words_of(bare(text).casefold())
    wanted = [pattern for topic, pattern in NAMES.items() if topic not in topics]
    found = next((m for p in wanted for spelled in (words, other) if (m := p.search(spelled))), None)
    return found[0].strip(" .:") if found else None


def find_words_to_scorer(text: str) -> str | None:
    """Return the words of `text` that address the scorer of an answer, as they are read, or None."""
    folded = fold(text)
    words, other = words_of(folded), words_of(bare(text).casefold())
    for pattern, spelled in ((_ORDERS, words), (_ABROAD, words), (_RAW, folded), (_OTHER, other)):
        if found := pattern.search(spelled):
            return found[0].strip(" .:")
    if (scorer := _SCORER.search(words)) and _OUTCOME.search(words) and not _CONDITION.search(words):
        return scorer[0]
    return next(_claims(words), None) or next(_claims(other), None)


def is_about_scoring(text: str) -> bool:
    """Return whether a text names scorers or how to score, which an honest lesson of few tasks does."""
    words = words_of(fold(text))
    return bool(_TOPIC.search(words) or _MARKED.search(words))


def _claims(words: str) -> Iterator[str]:
    """Yield the words that say that criteria are met or answers right, and not whether or when they are."""
    for found in _CRITERIA.finditer(words):
        before = words[max(words.rfind(". ", 0, found.start()), 0) : found.start()]
        if words.startswith(" or not", found.end()):
            continue
        if _CLAIM.search(before) or not _REPORTED.search(f"{before}{found[0]}"):
            yield found[0]
    for found in _MARKED.finditer(words):
        if not _CONDITION.search(words):
            yield found[0]

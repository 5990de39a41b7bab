"""Words and signs beside a numeral: currencies, multipliers, words for a sign."""

from __future__ import annotations

import re

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern

SYMBOLS = "$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20c0\ufdfc"
"""Signs of currencies, for a class of a regular expression; fullwidth ones are folded before."""
_CODES = (
    "AED AFN ALL AMD AOA ARS AUD AZN BAM BBD BDT BGN BHD BND BOB BRL BTC BWP BYN CAD CDF CHF CLP CNY COP CRC "
    "CZK DKK DOP DZD EGP ETB ETH EUR FJD GBP GEL GHS GTQ HKD HNL HRK HUF IDR ILS INR IQD IRR ISK JMD JOD JPY "
    "KES KGS KHR KRW KWD KZT LAK LBP LKR LYD MAD MDL MGA MKD MMK MNT MOP MUR MVR MXN MYR MZN NAD NGN NIO NOK "
    "NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RMB RON RSD RUB RWF SAR SDG SEK SGD SOS SYP THB TJS TMT TND "
    "TRY TTD TWD TZS UAH UGX USD USDT UYU UZS VES VND XAF XOF YER ZAR ZMW"
)
_NAMES = "CHF|[Ff]r|[Kk]r|z\u0142|K\u010d|Ft|Rs|Re|Rp|RM|руб|лв|ден|дин|грн|Lei|lei|TL|DM|GH|KSh|TSh|USh"
_LETTERS = f"(?:{'|'.join(_CODES.split())}|{_NAMES})"
CURRENCY = (
    rf"(?:(?:(?<![^\W\d_])(?:US|CA|CAD|AU|NZ|HK|NT|MX|TT|RD|Mex|[ABCRSTZ]))?[{SYMBOLS}]"
    rf"|(?<![^\W\d_]){_LETTERS}\.?|(?<![^\W\d_])[BS]/\.?)"
)
"""A currency, as it stands before or behind an amount."""
ATTACHED_CURRENCY = lazy_pattern(
    rf"(?<![^\W\d_])(?:{'|'.join(set(_CODES.split()) - {'TOP', 'ALL', 'SOS', 'PEN'})}|Rs|Rp|RM|[Kk]r|Fr)$"
)
"""A currency whose letters may stand right before an amount."""
MAYBE_CURRENCY = lazy_pattern(rf"[A-Z{SYMBOLS}]|kr|z\u0142|лв|руб|дин|ден|грн|lei")
"""Found in every currency."""
COMMA_CURRENCY = lazy_pattern(
    r"R\$|[\u20ac\u20ab\u20ba\u20bd\u20b4\u20b2]|EUR|BRL|ARS|CLP|COP|IDR|VND|UYU|PYG|DKK|NOK|SEK|ISK|PLN|CZK|"
    r"HUF|RUB|UAH|TRY|RON|BGN|RSD|BAM|MKD|[Kk]r\b|z\u0142|K\u010d|Ft\b|Rp|руб|лв|грн|[Ll]ei\b|TL\b|[Ee]uros?\b"
    r"|đồng|[đĐ](?!\w)|dong\b|VNĐ|(?<!\w)kn(?!\w)|ден(?!\w)|дин(?!\w)|[Rr]upiah|[Rr]eais|[Pp]esos|[Kk]roner|[Kk]ronor|złotych|рубл"
)
"""Currencies of countries where a point parts thousands."""

_LATIN = (
    "hundred hundreds thousand thousands million millions billion billions trillion trillions quadrillion "
    "dozen dozens gross mill mn mln mio bn bln tn trn trln lakh lakhs lac lacs crore crores hundert "
    "tausend tsd millionen milliarde milliarden mrd billionen dutzend mille millier milliers milliard "
    "milliards centaines douzaine mil millón millones billón billones docena docenas cientos milhão "
    "milhões bilhão bilhões trilhão trilhões mila milione milioni miliardo miliardi duizend honderd "
    "miljoen miljard dozijn tusen tusind hundra hundrede miljon miljoner miljarder millionär millioner "
    "milliarder tys tysiąc tysiące tysięcy milion milionów miliony miliard miliardy miliardów tis tisíc "
    "tisíce milionů miliarda miliardů mld tisícky milión miliónov bin milyon milyar trilyon yüz nghìn "
    "ngàn triệu tỷ tỉ trăm ribu juta miliar triliun ratus tuhat tuhatta miljoona miljoonaa miljardi "
    "mlrd mdr mia mkr tkr mdkr cr jt rb "
    "miljardia ezer millió milliárd mii milioane miliarde elfu milioni libo myriad myriads "
)
_PARTS = (
    "thirds fifths sixths sevenths eighths ninths tenths hundredths thousandths millionths billionths "
    "drittel fünftel sechstel achtel zehntel hundertstel tausendstel millionstel"
)
_OTHER = (
    "тысяча тысячи тысяч тыс млн миллион миллиона миллионов млрд миллиард миллиарда миллиардов трлн триллион "
    "триллиона триллионов сотен сотни дюжина тисяча тисячі тисяч мільйон мільйона мільйонів млрд мільярд "
    "мільярди мільярдів хил хиляди милион милиона милиарда χιλιάδες χιλ εκατομμύρια εκατ δισεκατομμύρια δισ "
    "հազար միլիոն միլիարդ"
)
MULTIPLIERS = frozenset(f"{_LATIN} {_PARTS} {_OTHER}".casefold().split())
"""Words and short forms that make a numeral before them larger or smaller, in small letters."""
CASELESS_MULTIPLIERS = lazy_pattern(
    r"[十百拾佰仟萬万億亿兆]|千(?![克米瓦卡赫帕焦伏字兆比])|[천백십만억조](?!\w*[가-힣]{3})"
    r"|พัน(?!ธ)|หมื่น|แสน|ล้าน|ร้อย(?!ละ)"
    r"|ພັນ|ລ້ານ|ពាន់|លាន|သောင်း|သိန်း|သန်း"
    r"|(?:હજાર|લાખ|કરોડ|వేలు|వేల|లక్ష|లక్షలు|కోటి|కోట్లు|ಸಾವಿರ|ಲಕ್ಷ|ಕೋಟಿ|ആയിരം|ലക്ഷം|കോടി|ਹਜ਼ਾਰ|ਲੱਖ|ਕਰੋੜ|ათასი|მილიონი|მილიარდი|लाख|करोड़|करोड|हज़ार|हजार|अरब|सौ|লাখ|লক্ষ|কোটি|হাজার|ஆயிரம்|லட்சம்|கோடி"
    r"|مليون|ملايين|مليار|مليارات|بليون|تريليون|ألف|آلاف|الف|مائة|مئة|هزار|میلیون|میلیارد|صد|ہزار|لاکھ|کروڑ"
    r"|אלף|אלפים|אלפי|מיליון|מיליוני|מיליארד|מאות)(?!\w)"
)
"""The same in scripts that have no capitals; kilogram, kilometre and the like are units."""
SIGN_WORDS = lazy_pattern(
    r"(?:(?<!\w)(?:minus|negative|menos|moins|meno|минус|мінус|eksi|سالب|منفی)[ \u00a0-]|(?<!\w)(?:âm|ลบ) ?"
    r"|[负負]|マイナス|마이너스 ?|零下|氷点下|영하 ?|ऋण )$",
    re.IGNORECASE,
)
"""Words for a minus, at the end of what stands before a numeral."""
SIGN_WORD_ENDS = frozenset("seoiсبیmบ负負スー스下하ण")
"""Their last letters."""
BEFORE_A_SIGN = lazy_pattern(
    r"(?:^|[^\w\s%°)\]}]|[\n\r\t|]|(?<!\w)(?:is|was|are|be|been|equals?|to|of|at|by|gives?|becomes?|returns?|gets?|about|"
    r"approximately|roughly|around|exactly|answer|result|value|ist|sind|ergibt|war|beträgt|est|vaut|es|son|é|è|vale|"
    r"равно|равен|than|from|between|and|or))\s*$",
    re.IGNORECASE,
)
"""What stands before a word for a sign that cannot be a subtraction."""
COPULA = lazy_pattern(r"(?<!\w)(?:is|was|are|equals?|ist|est|es|é|è|gives?|of|to)\s*$", re.IGNORECASE)
MONTH = lazy_pattern(
    r"(?<!\w)(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zé]*\.?\s?$", re.IGNORECASE
)

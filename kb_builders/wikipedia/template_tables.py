"""Templates that stand for words, by name: a pattern and the templates that have it, separated by bars.

    {1} {text}     the first argument, the argument `text`
    {lt|1}         the first of these that is not empty
    {1:n}          a number, with the separators of the language
    [… {2}]        left out unless all its arguments are there
    a ‖ b          `b` if an argument that `a` needs is missing
    =date          a function of `templates`
    (empty)        a template without words: a note, a map, an icon

The case of the first letter of a name does not matter. A pattern has each argument once, so that a text
cannot grow. Every language has the first table beside its own.
"""

from collections.abc import Mapping
from typing import Final

__all__ = [
    "BETWEEN",
    "EVERYWHERE",
    "FAMILIES",
    "MUSIC",
    "POWERS",
    "RECORDING",
    "SMALLER_UNITS",
    "TABLES",
    "UNITS",
]

EVERYWHERE: Final = {
    "{1}": "nowrap|nobr|nobreak|no wrap|nbr|nwr|nowraplinks|j|small|smaller|big|bigger|larger|large|huge|"
    "nobold|normal|noitalic|noital|no italic|em|strong|bold|italics|underline|overline|strikethrough|sc|"
    "sc2|smallcaps|small caps|smallcaps all|allcaps|abbr|abbrv|abbrlink|abbreviation|tooltip|define|mono|"
    "monospace|code|kbd|samp|var|mvar|math|bigmath|serif|unicode|polytonic|nihongo2|nihongo krt|kanji|sub|"
    "sup|chem2|term|dfn|proper name|delink|midsize|longitem|by|mlby|nfly|stn|sta|stnlnk|rws|hebrew|arabic|"
    "nq|script/Hebrew|script/Arabic|script/Greek|script/Cyrillic|script/Coptic|script/Nastaliq|PIE|flagu|"
    "lc:|uc:|lcfirst:|ucfirst:|as written|text|xt|!xt",
    "{2}": "rtl-lang|ltr-lang|color|colour|background color|fgcolor|hover title|native phrase|script",
    "{3|2}": "transl|translit|transliteration|tlit|romanize|xlit|wikt-lang|font color|fontcolour",
    "{text|2}": "lang|langx|native name|nativename",
    "{text|3}": "langwithname|langnf",
    "{2|1}": "w|wikt|sort|resize|color link|colored link|no redirect|noredirect",
    "{text|1}": "visible anchor|vanchor|visible anchors",
    "{lt|display|1}": "ill|illm|ill2|iwl|link-interwiki|interlanguage link|interlanguage link multi|"
    "red link|redlink|ill-wd",
    "{1|3|2}[ {5}]": "nihongo|nihongo foot",
    "{3|1|2}": "nihongo3",
    "{hangul|1}[, {rr|mr}]": "korean|ko-hhrm|lang-ko2",
    "{c|s|t|1}[, {p|w|j}] ‖ {p|w|j|poj|tp}": "zh|zhi|zh-c|zh-s|zh-t|zh-cp|zh-sp|zh-tp|zh-stp|zh-tsp|zh-full|"
    "lang-zh|lang-zh-hans|lang-zh-hant|lang-yue",
    "{1} {2}/{3} ‖ {1}/{2} ‖ 1/{1}": "frac|fraction|sfrac|fract|vfrac|mfrac",
    "[{p}]{1:n}[ ± {2}][×10^{e}][ {u|ul}][/{up|upl}][{s}] ‖ 10^{e}[ {u|ul}]": "val",
    "{1:n}": "formatnum:|formatnum|number format|num|nts",
    "c. {1}[ – c. {2}] ‖ c.": "circa|c.|ca.|ca|circ",
    "fl. {1}[ – {2}] ‖ fl.": "floruit|fl.|fl",
    "r. {1}[ – {2}]": "reign|r.",
    "b. {1}": "b.|born in|born-in",
    "d. {1}": "d.|died in|died-in",
    "m. {1}": "m.|married in|married-in",
    "lit. '{1}'[ or '{2}']": "lit|lit.|literal|literally|literal translation",
    "'{1}'": "gloss|single quotes",
    "“{1}”": "qi|quote inline|tq|double quotes",
    "⟨{1}⟩": "angbr|angle bracket|angbr IPA",
    "née {1} ‖ née": "née|nee",
    "né {1} ‖ né": "né",
    "a.k.a. {1} ‖ a.k.a.": "aka|a.k.a.|also known as",
    "{1} {2}": "OldStyleDate|OldStyleDateNY|OldStyleDateDY|sortname",
    "{1}[{2}] ‖": "sic|not a typo|typo",
    "{text|1} ‖": "citation needed span|cn span|clarify span",
    "{name|2|1}": "flag|flagcountry|flag country|flag+link",
    "{ft} ft[ {in} in] ‖ {m} m ‖ {cm} cm": "height",
    "US${1}": "US$|USD",
    "£{1}": "£|GBP",
    "€{1}": "€|EUR|euro",
    "¥{1}": "¥|JPY|yen|CNY",
    "₹{1}": "₹|INR|Indian Rupee",
    "A${1}": "A$|AUD",
    "C${1}": "C$|CAD",
    "no. {1}": "no.|number",
    "vol. {1}": "vol.",
    "p. {1}": "p.",
    "pp. {1}": "pp.",
    "AD {1}": "AD",
    "RFC {1}": "IETF RFC",
    "√{1}": "radic|sqrt",
    "×10^{1}": "e",
    "[{b}][{p}]": "su",
    "{1}-{2}": "nuclide|simpleNuclide|simpleNuclide2",
    "|": "!|pipe",
    " – ": "snd|spnd|sndash|spndash|spaced ndash|spaced en dash|snds|spndsp|sndashs|dash",
    "–": "ndash|en dash|endash|nsndns|nsndn|–",
    " — ": "smdash|spaced em dash|spaced mdash",
    "—": "mdash|em dash|emdash|mdashb|nsmdns|—",
    "-": "hyphen|nbhyph|nbh|non breaking hyphen",
    " ": "nbsp|space|spaces|thin space|thinsp|thinspace|hair space|hairsp|nnbsp|narrow no-break space|sp|"
    "gap|figure space|en space|em space|px2|indent|pad|br|break|crlf",
    " · ": "·|•|dot|middot|bullet|bull|,",
    "'": "'|apostrophe|' '",
    "'s": "'s",
    "' \"": "' \"|'\"|'-\"",
    "\" '": "\" '|\"'|\"-'",
    '"': '"|quotation mark',
    "ʻ": "okina|'okina",
    "ʿ": "ayin",
    "ʾ": "hamza",
    "†": "dagger",
    "&": "&|ampersand",
    "#": "#|number sign",
    "±": "plusminus|±",
    "π": "pi|π",
    "CO2": "CO2",
    "H2O": "H2O",
    "C": "carbon",
    "H": "hydrogen",
    "O": "oxygen",
    "N": "nitrogen",
    "=": "=|equals",
    "=join": "linktext|chem|chem/link|gaps|hanzi",
    "=measure": "convert|cvt",
    "=date": "date|birth date|birthdate|birth-date|birth date and age|birth-date and age|"
    "birth year and age|bda|dob|death date|death-date|death date and age|death-date and age|"
    "death year and age|dda|start date|start-date|start date and age|end date|end-date|end date and age|"
    "film date|release date|dts|launch date",
    "=as of": "as of|asof",
    "=ship": "ARA|ARC|ARM|BAE|BAP|BNS|BRP|CCGS|CS|CSS|ENS|ESPS|FGS|GTS|HDMS|HMAS|HMBS|HMCS|HMHS|HMNZS|HMS|"
    "HMSAS|HMT|HMY|HNLMS|HNoMS|HSwMS|HSC|HTMS|ICGV|INS|JDS|JS|KRI|LÉ|MS|MT|MTS|MV|MY|NMS|NNS|NRP|ORP|PNS|PS|"
    "RFA|RMS|RNLB|ROCS|ROKS|RPS|RRS|RSS|RV|SAS|SLNS|SMS|SMU|SS|STS|SV|SY|TCG|TS|TSS|USAT|USAV|USCGC|USFC|"
    "USNS|USRC|USS",
    "=other ship": "ship",
    "=ship class": "sclass|sclass2|sclass-",
    "=music": "music",
    "=sound": "IPA|IPAblink|pronunciation|respell|respelling|pron|API|MSAPI|prononciation|AFI|IPA-Text|МФА|"
    "국제음성기호|發音|listen",
    "=audio": "audio|écouter",
    "=coordinates": "coord|coor|coords|coordinates|coordinate",
    # Requests to those who write, notes with their numbers, what is seen and not read.
    "": "citation needed|cn|fact|facts|citation required|ref needed|source?|cite needed|clarify|"
    "clarification needed|clarifyme|what|which|who|whom|by whom|by who|whose|when|where|why|how|how often|"
    "vague|weasel inline|weasel-inline|peacock inline|peacock term|according to whom|attribution needed|"
    "specify|dubious|disputed inline|disputed-inline|contradict-inline|contradictory inline|inconsistent|"
    "verify source|verification needed|vn|verify credibility|not verified|failed verification|"
    "not in citation given|unreliable source?|unreliable source|better source|better source needed|"
    "self-published inline|self-published source|sps|third-party inline|primary inline|"
    "primary source inline|non-primary source needed|original research inline|or|synthesis inline|"
    "neutrality inline|pov-inline|POV statement|undue-inline|undue inline|lopsided|relevance inline|"
    "importance inline|update inline|update after|full citation needed|full|page needed|pn|"
    "page number needed|quote without source|year needed|date needed|dead link|deadlink|broken anchor|"
    "cbignore|additional citation needed|medical citation needed|mcn|example needed|examples|"
    "definition needed|elucidate|buzz inline|jargon inline|awkward|copyedit inline|cleanup inline|"
    "tone inline|globalize inline|expand acronym|chronology citation needed|time needed|"
    "page range too broad|obsolete source|ref|refn|refnest|ref label|note|note label|notetag|note tag|efn|"
    "efn-ua|efn-lr|efn-la|efn-lg|efn-ur|efn-ug|sfn|sfnp|sfnm|sfnmp|harvnb|harv|harvp|harvtxt|harvcol|"
    "harvcolnb|harvs|r|rp|#tag:|cref|cref2|fnref|fn|cnote|ran|coord missing|"
    "anchor|anchors|anc|shy|wbr|zwsp|zwnj|zwj|zero width joiner|word joiner|wj|lrm|rlm|flagicon|flag icon|"
    "flagdeco|flag decoration|flagicon image|icon|increase|decrease|steady|hs|hid|0|clear|clr|clear left|"
    "clear right|-|italic title|lowercase title|lowercase|DISPLAYTITLE:|DEFAULTSORT:|"
    "SHORTDESC:|short description|use dmy dates|use mdy dates|good article|featured article|pp|pp-protected|"
    "pp-move|pp-semi|pp-move-indef|pp-semi-indef|spoken article|nowrap end|nowrap begin|noprint|"
    "osmrelation-inline|legend inline|color box",
}  # fmt: skip

_DE: Final = {
    "{1}": "DMG|sic|kapitälchen",
    "{2|1}": "fremdS|schriftfarbe|farbe",
    "„{1}“": '"|zitat inline',
    "{text} ‖ § {1}": "§",
    "Art. {1}": "Art.",
    "{1} m": "höhe|hoehe",
    "{1:n}": "formatNum|ZAHLENFORMAT:|zahl",
    "{1} {2}/{3} ‖ {1}/{2}": "bruch",
    "um {1}": "circa",
    "{1}[, {2}]": "jaS|nihongo",
    "{hangeul|hangul|1}[, {rr|mr}]": "koS",
    "{kurz|v|t|s|c|1}[, {p}]": "zh|zhS",
    "=date": "JULGREGDATUM|datum",
    "": "FN|FNZ|anker|belege fehlen|belege|beleg|quelle|nachweis|lückenhaft|veraltet|sortKey|"
    "internetquelle|literatur|toter Link|webarchiv|wer|wann|was|wo|unklar|SORTIERUNG:|SEITENTITEL:|absatz|!?",
}  # fmt: skip

_FR: Final = {
    "{1}": "lnobr|nobr romains|pc|petites capitales|petite capitale|terme défini|terme|exp|ind|exposant|"
    "indice|surligner|grec ancien|grec moderne|arabe|hébreu|souverain|souverain-|"
    "souverain2|infobulle|info",
    "{1} ‖": "passage à sourcer|référence nécessaire|refnec|référence souhaitée|référence à confirmer|quand|"
    "pas clair|citation à attribuer|passage évasif|passage non neutre|passage promotionnel|lesquelles|"
    "lequel|citation nécessaire",
    "{1} ": "abréviation discrète|abd|abréviation",
    "{text|texte|2}": "lang|langue",
    "{2|1}": "couleur",
    "{texte|fr|trad|1}": "lien|lien à traduire|lien rouge",
    "« {1} »": "citation|guil|guillemets|\"|cita",
    "« {2} »": "citation étrangère",
    "— {1} —": "incise",
    "{1:n} {2}": "tmp",
    "=join": "formule chimique|fchim",
    "=unité": "nombre|nb|unité|unite|tunité|unité/2",
    "{1}e": "s mini|s mini-",
    "{1}e millénaire": "millénaire",
    "=siècles et": "s2|s2-",
    "=siècles et av": "-s2|-s2-",
    "=siècle": "s|s-|siècle",
    "=siècle av": "-s|-s-",
    "=siècles": "sp|sp-",
    "=siècles av": "-sp|-sp-",
    "1er": "1er",
    "1re": "1re",
    "er": "er",
    "re": "re|ère",
    "e": "e|ème",
    "Ier": "Ier",
    "Cie": "Cie",
    "no {1} ‖ no": "numéro|n°",
    "no {1} ‖": "no",
    "nos {1} ‖ nos": "numéros",
    "av. J.-C.": "av JC|av. J.-C.|avjc|JC-",
    "apr. J.-C.": "ap JC|ap. J.-C.|apr. J.-C.|JC",
    "M. {1} ‖ M.": "M.",
    "MM. {1} ‖ MM.": "MM.",
    "Mme {1} ‖ Mme": "Mme",
    "Mlle {1} ‖ Mlle": "Mlle",
    "Mgr {1} ‖ Mgr": "Mgr",
    "Dr {1} ‖ Dr": "Dr",
    "Me {1} ‖ Me": "Me",
    "vers {1}": "circa",
    "{1} {2}/{3} ‖ {1}/{2}": "fraction",
    "{1} h {2} min {3} s ‖ {1} h[ {2}] ‖ {2} min[ {3} s]": "heure|durée",
    "{1|3|2}": "japonais",
    "=date": "date|date-|date de naissance|date de naissance-|date de décès|date de décès-|jma",
    "": "réf|référence insuffisante|harvsp|refa|ancre|coordonnées|drapeau|drapeau2|icône|"
    "source insuffisante|référence incomplète|lien brisé|lien mort|préciser|pertinence|quoi|par qui|qui|"
    "selon qui|où|comment|combien|pourquoi|vérifié|titre en italique|à jour|obsolète|,|AFFICHERTITRE:|"
    "CLEDETRI:|vérifier|non neutre|ar|ca|cs|da|de|el|en|es|fi|fr|grc|he|hu|it|ja|ko|la|mul|nl|pl|pt|ru|sv|"
    "tr|uk|zh",
}  # fmt: skip

_ZH: Final = {
    "{1}": "ruby|lj|ljh|日文|僻字|不換行|vi-nom|rareword|黑體|小字|link-wd",
    "{2}": "ruby-zh",
    "{d|3|1}": "le|ilh|internal link helper",
    "{4|3|2}": "tsl|translink|翻譯連結|內部連結",
    "{d|lt|display|1}": "ill|ilm|illm|多語言連結|綠連|绿链",
    "[{1}][{2}]－{3}[{4}] ‖ {1}[{2}]": "bd|BD|生卒",
    "{j|1}[, {rm}]": "jpn",
    "{1}年{2}月{3}日 ‖ {1}年{2}月 ‖ {1}年": "birth date and age|birth date|death date|death date and age|"
    "birthdate|start date|start date and age|end date|bda|dda|release date|film date|dts|出生日期|死亡日期|"
    "出生日期和年齡|死亡日期和年齡|首播日期|上映日期|birth year and age",
    "{1|2}": "nihongo",
    "截至{1}年[{2}月][{3}日]": "as of|asof|截至",
    "「{1}」": "qt|引號",
    "約{1}[－{2}]": "circa|c.|ca",
    "": "來源請求|来源请求|noteTA|noteTag|消歧義連結|誰|谁|何時|何时|何處|哪個|可疑|矛盾|查证请求|查證請求|"
    "頁碼請求|請求引文|不可靠來源|原创研究内文|需要解释|需要解釋|註釋|注释|註|備註|簡繁轉換|字詞轉換|"
    "en icon|link style",
}  # fmt: skip

_JA: Final = {
    "{1}": "中文表記|英文表記|JIS2004フォント|補助漢字フォント|CP932フォント|JIS90フォント|拡張漢字|"
    "特殊文字|機種依存文字",
    "{1}（{2}）": "読み仮名|読み仮名 ruby不使用|ふりがな|よみがな|ruby",
    "{2}": "フォント",
    "{label|redirect|1}": "仮リンク|ill|link-interwiki|日本語版にない記事リンク",
    "{1}年{2}月{3}日 ‖ {1}年{2}月 ‖ {1}年": "生年月日と年齢|死亡年月日と没年齢|生年月日|没年月日|"
    "birth date|birth date and age|death date|death date and age|start date|end date|dts|film date|bda|dda|"
    "release date",
    "": "要出典|要検証|要追加記述|誰|誰2|いつ|どこ|要説明|要ページ番号|信頼性要検証|脚注|ウィキ座標|"
    "要高次出典|補足|efn2|デフォルトソート:",
}  # fmt: skip

_KO: Final = {
    "{1}": "루비|작게|옛한글",
    "{1}({2})": "한자|루비 문자",
    "{2|1}": "llang",
    "{lt|1}": "임시링크|임시 링크|ill|빨간링크",
    "{1}년 {2}월 {3}일 ‖ {1}년 {2}월 ‖ {1}년": "출생일|사망일|출생일과 나이|사망일과 나이|birth date|"
    "birth date and age|death date|death date and age|start date|end date|release date|film date|bda|dda|"
    "dts",
    "": "출처|출처 필요|누구|언제|어디|각주|국기|국기그림|좌표|내용주",
}  # fmt: skip

_ES: Final = {
    "{1}": "esd|versalita|versalitas|negrita|cursiva",
    "{1:n}[ {2}]": "unidad|nombre|número",
    "siglo {1}[ {2}]": "siglo",
    "«{1}»": "cita corta|comillas",
    "a. C.": "a. C.|AC",
    "d. C.": "d. C.|DC",
    "{lt|1}": "enlace interlingüístico|ill",
    "=date": "fecha|nacimiento|fecha de nacimiento|fecha de inicio|fecha de fin|fallecimiento|"
    "fecha de estreno|inicio|fin",
    "": "cita requerida|cr|harvnp|harvsp|coordenadas|bandera|quién|cuándo|dónde|aclarar|ancla|ORDENAR:|"
    "demostrar|título en cursiva",
}  # fmt: skip

_IT: Final = {
    "{1}": "maiuscoletto|tutto attaccato|politonico",
    "{1} ‖": "chiarire|senza fonte|citazione necessaria",
    "{1:n}[ {2|u|ul|um}]": "M|unità",
    "a.C.": "a.C.",
    "d.C.": "d.C.",
    "«{1}»": "virgolette",
    "": "sf|bandiera|naz|chi|quando|dove|nota|NdR|collegamento interrotto|en|fr|de|es|it|la",
}  # fmt: skip

_PT: Final = {
    "{1}": "versalete|versaletes|abrev",
    "{1:n}[ {2}]": "fmtn|formatar número|unidade",
    "{1|2}": "PBPE|PEPB",
    "século {1}": "séc|século",
    "a.C.": "a.C.|AC",
    "d.C.": "d.C.|DC",
    "{lt|1}": "ill|link-interwiki",
    "=date": "dni|dnibr|dtlink|dtext|data|data de nascimento|nascimento|falecimento|morte|data de início|"
    "data de fim",
    "": "carece de fontes|fonte?|harvref|nota de rodapé|quem|quando|onde|esclarecer|não consta na fonte",
}  # fmt: skip

_RU: Final = {
    "{1}": "s|comment|неразрывно|иврит|lang-ru",
    "{2|1}": "нп|нп1|нп2|нп3|нп4|нп5|нп6|НП|НП2|НП3|НП4|НП5|НП6|не переведено|не переведено 2|"
    "не переведено 3|не переведено 4|не переведено 5|iw|iw2|нет статьи",
    "{1:n}[ {2}]": "число",
    "{1} век": "век",
    "{1} год": "год",
    "до н. э.": "до н. э.|до н.э.",
    "н. э.": "н. э.|н.э.",
    "{3} ({1}) {2} ‖ {1} {2}": "OldStyleDate|СС",
    "=date": "дата|дата рождения|дата смерти",
    "": "нет АИ|нет АИ 2|источник|источник?|не указано|sfn0|sfn-1|пояснение|кто|кто?|когда|когда?|где|где?|"
    "какой|какой?|уточнить|неавторитетный источник|проверить|переход|якорь|флаг|флагификация|"
    "ссылка на якорь|недоступная ссылка|ref-en|ref-de|ref-fr|ref-ru|ref-es|ref-it|ref-uk|ref-pl|ref+",
}  # fmt: skip

_UK: Final = {
    "{1}": "s|comment|lang-uk",
    "{2|1}": "нп|нп2|нп3|нп5|НП|не перекладено|iw|iw2",
    "{1:n}[ {2}]": "число",
    "до н. е.": "до н. е.|до н.е.",
    "{3} ({1}) {2} ‖ {1} {2}": "OldStyleDate",
    "=date": "дата|дата народження|дата смерті",
    "": "джерело|джерело?|якір|хто|коли|де|прапорець|прапор|немає АД|уточнити|ref-en|ref-uk|ref-ru",
}  # fmt: skip

_CS: Final = {
    "{1}": "nedělit|malé kapitálky",
    "{2}": "cizojazyčně|vjazyce2",
    "př. n. l.": "př. n. l.",
    "„{1}“": "uvozovky",
    "=date": "datum narození|datum narození a věk|datum úmrtí|datum úmrtí a věk",
    "": "doplňte zdroj|fakt|kdo|kdy|kde|vlajka|souřadnice|pozn",
}

_NL: Final = {"{1}": "afk", "": "bron?|feit|vlag|voetnoot|wie|wanneer"}

_PL: Final = {
    "=date": "data",
    "": "fakt|potrzebny przypis|odn|u|koordynaty|flaga|herb|kto|kiedy|gdzie|lang|SORTUJ:",
}

_SV: Final = {"f.Kr.": "f.Kr.", "": "källa behövs|vem|när|flagga|fotnot"}

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "cs": _CS, "de": _DE, "es": _ES, "fr": _FR, "it": _IT, "ja": _JA, "ko": _KO, "nl": _NL, "pl": _PL,
    "pt": _PT, "ru": _RU, "sv": _SV, "uk": _UK, "zh": _ZH,
}  # fmt: skip

# Families of names, where a name is in no table.
FAMILIES: Final = (
    ("", r"lang-[a-zA-Z-]+", "{text|1}"),
    ("", r"(?:iPA|iPAc|aPI)-.+", "=sound"),
    ("", r"(?:[cC]ite|[cC]itation|[uU]se) .+", ""),
    ("de", r"[a-z]{2,4}(?:-[a-z]+)?[SF]", "{1}"),
    ("", r"[a-z]{2}(?: icon)?", "=icon"),
    ("fr", r"[a-zA-Z][A-Z]{2}-d", ""),
    ("fr", r"[ivxIVX]+(?:er|e)(?: (?:siècle|millénaire|s)\b.*)?|[ivx][IVX]+|[0-9]+(?:er|re|e)", "=name"),
    ("zh", r"(?:link-|internal link helper/|ilh-)[a-z-]+", "{d|3|1}"),
)

# Words that lead to a recording, and are not what is heard.
RECORDING: Final = frozenset(
    "anhören ascolta aussprache escuchar help info listen ouvir posłuchaj prononciation pronunciación "
    "pronunciation pronuncia pronuncie pronúncia uitspraak uttal wymowa výslovnost écouter произношение "
    "слушать".split()
) | {""}
# Units that are not written as `convert` names them.
UNITS: Final = {
    "C": "°C", "F": "°F", "K": "K", "km2": "km²", "m2": "m²", "cm2": "cm²", "mi2": "sq mi", "sqmi": "sq mi",
    "sqft": "sq ft", "ft2": "sq ft", "sqkm": "km²", "sqm": "m²", "m3": "m³", "km3": "km³", "ft3": "cu ft",
    "cuft": "cu ft", "cumi": "cu mi", "acre": "acres", "l": "L", "kn": "knots", "kph": "km/h",
    "lt": "long tons", "ST": "short tons", "LT": "long tons", "MT": "t", "impgal": "imp gal",
    "USgal": "US gal", "floz": "fl oz", "nmi": "nmi", "/km2": "/km²", "/sqmi": "/sq mi", "PD/km2": "/km²",
    "PD/sqmi": "/sq mi", "inch": "inches", "foot": "feet", "mile": "miles",
}  # fmt: skip
POWERS: Final = {"e3": "thousand ", "e6": "million ", "e9": "billion ", "e12": "trillion "}
BETWEEN: Final = {
    "-": "–", "–": "–", "to": " to ", "to(-)": " to ", "and": " and ", "and(-)": " and ", "or": " or ",
    "x": " × ", "×": " × ", "*": " × ", "by": " by ", "xx": " × ", "by(x)": " by ", "+/-": " ± ",
    "±": " ± ", "+": " + ", "/": "/", ",": ", ",
}  # fmt: skip
SMALLER_UNITS: Final = frozenset("in inch oz lb ft yd furlong chain m cm min s".split())
MUSIC: Final = {
    "flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "n": "♮", "doubleflat": "𝄫", "bb": "𝄫",
    "doublesharp": "𝄪", "##": "𝄪",
}  # fmt: skip

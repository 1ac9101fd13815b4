"""What differs between the Wikipedias, as data: facts of MediaWiki's language files and of the wikis.

A dump names its own namespaces. What it does not name, and pages use, stands here: older names of
namespaces, words for a redirect, templates of disambiguation pages, the letters that belong to a link
they stand behind, and the prefixes that lead to other wikis.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

CANONICAL: Final[Mapping[str, int]] = {
    "media": -2, "special": -1, "talk": 1, "user": 2, "user talk": 3, "project": 4, "project talk": 5,
    "wikipedia": 4, "wikipedia talk": 5, "wp": 4, "wt": 5,
    "file": 6, "file talk": 7, "image": 6, "image talk": 7, "mediawiki": 8, "mediawiki talk": 9,
    "template": 10, "template talk": 11, "help": 12, "help talk": 13, "category": 14, "category talk": 15,
    "portal": 100, "portal talk": 101, "draft": 118, "draft talk": 119, "timedtext": 710,
    "timedtext talk": 711, "module": 828, "module talk": 829,
}  # fmt: skip
"""Names of namespaces that hold in every language, beside those that the dump gives."""

# Files and categories by names that a wiki had once, or has beside the one in its dumps.
_FILES: Final = {
    "ar": "صورة", "bg": "Картинка", "ca": "Imatge", "cs": "Obrázek", "da": "Billede", "de": "Bild",
    "el": "Εικόνα", "es": "Imagen", "fa": "تصویر", "fi": "Kuva", "fr": "Image Fichier", "he": "תמונה",
    "hu": "Kép", "id": "Gambar", "it": "Immagine", "ja": "画像", "ko": "그림", "nl": "Afbeelding",
    "no": "Bilde", "pl": "Grafika", "pt": "Imagem Arquivo Ficheiro", "ro": "Imagine",
    "ru": "Изображение", "sk": "Obrázok", "sr": "Слика Slika", "sv": "Bild", "tr": "Resim",
    "uk": "Зображення Изображение", "vi": "Hình", "zh": "文件 档案 檔案 圖像 图像 圖片",
}  # fmt: skip
_CATEGORIES: Final = {
    "es": "CAT", "it": "CAT", "ru": "К", "uk": "Категория", "zh": "分类 分類 CAT", "he": "קט",
    "hr": "KT", "sr": "Kategorija", "tr": "KAT",
}  # fmt: skip

_TRAILS: Final = {
    "ar": "a-zء-ي", "be": "a-zа-яёіўґćčłńśšŭźž", "bg": "a-zа-я", "ca": "a-zàèéíòóúç·ïü",
    "cs": "a-záčďéěíňóřšťúůýž", "da": "a-zæøå", "de": "a-zäöüß", "el": "a-zα-ωΑ-Ωάέήίόύώϊϋΐΰ",
    "es": "a-záéíóúñ", "et": "a-zäöõšüž", "fa": "a-zء-ی\u200c", "fi": "a-zäö",
    "fr": "a-zàâçéèêîôûäëïöüùÇÉÂÊÎÔÛÄËÏÖÜÀÈÙ", "he": "a-zא-ת", "hr": "a-zčšžćđß",
    "hu": "a-záéíóúöüőűÁÉÍÓÚÖÜŐŰ", "hy": "a-zա-և", "it": "a-zàéèíîìóòúù", "ka": "a-zა-ჰ",
    "mk": "a-zа-шѓѕјљњќџ", "nb": "a-zæøå", "nl": "a-zäöüïëéèà", "nn": "a-zæøå", "no": "a-zæøå",
    "pl": "a-zęóąśłżźćńĘÓĄŚŁŻŹĆŃ", "pt": "a-záâãàéêẽçíòóôõúüűũ", "ro": "a-zăâîşţșțĂÂÎŞŢȘȚ",
    "ru": "a-zа-яё", "sk": "a-záäčďéíľĺňóôŕšťúýž", "sl": "a-zčćđžš", "sr": "a-zа-шђјљњћџšđžčć",
    "sv": "a-zåäöéÅÄÖÉ", "tr": "a-zÇĞçğİıÖöŞşÜüÂâÎîÛû", "uk": "a-zа-яґєіїёъы",
    "vi": "a-zàâçéèêîôûäëïöüùÇÉÂÊÎÔÛÄËÏÖÜÀÈÙ",
}  # fmt: skip
_NO_TRAIL: Final = frozenset("zh ja-hani yue gan wuu lzh zh-classical zh-yue".split())

REDIRECT_WORDS: Final = tuple(
    "REDIRECT REDIRECTION REDIRECCIÓN REDIRECCION REDIRECIONAMENTO RINVIA RINVIO RIMANDO WEITERLEITUNG "
    "DOORVERWIJZING PATRZ PRZEKIERUJ TAM ПЕРЕНАПРАВЛЕНИЕ ПЕРЕНАПР ПЕРЕНАПРАВЛЕННЯ OMDIRIGERING OHJAUS "
    "UUDELLEENOHJAUS PŘESMĚRUJ ÁTIRÁNYÍTÁS YÖNLENDİRME YÖNLENDİR ĐỔI "
    "重定向 重新導向 転送 リダイレクト 넘겨주기 تحويل تغییر_مسیر تغییرمسیر הפניה ΑΝΑΚΑΤΕΥΘΥΝΣΗ "
    "ПРЕУСМЕРИ ПРЕУСМЈЕРИ пренасочване виж REDIRECTEAZA".split()
)
"""What stands behind the `#` of a redirect in the larger Wikipedias; old dumps say it in the text only."""

# Templates that make a page a disambiguation page, as written behind `{{`, in lower case.
_DISAMBIGUATION: Final = {
    "en": r"(?:[\w-]+ ){0,3}disambig(?:uation)?(?:[ -]cleanup| page)?|disambig-\w+|disamb|dab"
    "|hndis(?:-cleanup)?|geodis|mathdab|numberdis|schooldis|roaddis|callsigndis|letter-numbercombdisambig|mil-unit-dis",
    "ar": "توضيح", "bg": "пояснение", "ca": "desambiguació", "cs": "rozcestník", "da": "flertydig",
    "de": "begriffsklärung", "el": "αποσαφήνιση", "eo": "apartigilo", "es": "desambiguaci[oó]n|desambig",
    "et": "täpsustuslehekülg", "eu": "argipen", "fa": "ابهام‌زدایی", "fi": "täsmennyssivu",
    "fr": "homonymie[^|{}]*|patronymie|toponymie", "gl": "homónimos", "he": "פירושונים", "hr": "razdvojba",
    "hu": "egyért", "hy": "բազմիմաստություն", "it": r"disambigua|sigla\d?",
    "ja": "aimai|(?:人名の|地名の)?曖昧さ回避",
    "ka": "მრავალმნიშვნელოვანი", "ko": "동음이의|동명이인", "lt": "nuorodinis", "lv": "nozīmju atdalīšana",
    "nl": "dp|dpintro|doorverwijspagina", "nn": "fleirtyding",
    "no": "peker|pekerside", "nb": "peker|pekerside",
    "pl": "ujednoznacznienie", "pt": "desambigua[cç][aã]o|desambig", "ro": "dezambiguizare",
    "ru": "неоднозначность|многозначность|список однофамильцев", "sk": "rozlišovacia stránka",
    "sl": "razločitev", "sr": "вишезначна одредница", "sv": "förgrening|förgreningssida|gren|flertydig",
    "th": "แก้ความกำกวม", "tr": "anlam ayrımı", "uk": "багатозначність|неоднозначність",
    "vi": "(?:trang )?định hướng", "zh": "(?:人名|地名)?消歧[义義][页頁]?",
}  # fmt: skip

_SUFFIXES: Final = (
    "disambiguation|begriffsklärung|homonymie|homonymies|desambiguación|desambiguação|desambiguació|"
    "disambigua|disambiguazione|doorverwijspagina|ujednoznacznienie|значения|значення|неоднозначность|"
    "olika betydelser|rozcestník|rozlišovacia stránka|egyértelműsítő lap|anlam ayrımı|dezambiguizare|"
    "消歧[义義]|消歧[义義][页頁]|曖昧さ回避|동음이의|توضيح|ابهام‌زدایی|פירושונים|αποσαφήνιση|định hướng|"
    "täsmennyssivu|flertydig|peker|пояснение|razdvojba|apartigilo|disambiguasi|argipena"
)

WIKIPEDIAS: Final = frozenset(
    "aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb "
    "ba ban bar bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm "
    "bug bxr ca cbk-zam cdo ce ceb cho chr chy ckb co cr crh cs csb cu cv cy cz da dag de dga din diq "
    "dk dsb dtp dty dv dz ee el eml en eo epo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr "
    "fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur guw gv ha hak haw he hi hif ho "
    "hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jp jv ka kaa kab "
    "kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe "
    "lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min minnan mk "
    "ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na nah nan nap nb nds nds-nl ne new ng nia nl "
    "nn no nov nqo nr nrm nso nup nv ny oc olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms "
    "pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se "
    "sg sgs sh shi shn si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay "
    "tcy tdd te tet tg th ti tig tk tl tly tn to tokipona tpi tr trv ts tt tum tw ty tyv udm ug uk ur "
    "uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zgh zh zh-cfr zh-classical "
    "zh-cn zh-min-nan zh-tw zh-yue zu".split()
)
"""Prefixes of the Wikipedias, in lower case: `[[fr:Chien]]` is no part of a text, but `[[:fr:Chien]]` is."""

INTERWIKI: Final = WIKIPEDIAS | frozenset(
    # the other projects of the Wikimedia Foundation
    "b bugzilla bz c commons d f foundation gerrit incubator m mail mediawikiwiki meta metawikipedia mw "
    "n otrs outreach phab phabricator q quality s species strategy test2wiki testwiki ticket toolforge "
    "toollabs v voy w wikibooks wikidata wikifunctions wikimania wikinews wikiquote wikisource "
    "wikispecies wikitech wikiversity wikivoyage wikt wiktionary wmf "
    # wikis and services that pages are often linked to
    "acronym advogato arxiv cache citeseer doi everything2 flickruser foldoc google gutenberg hdl "
    "iarchive imdbname imdbtitle jstor mathworld memoryalpha mozillawiki oeis osmwiki planetmath pmid "
    "rev rfc scores sourceforge translatewiki tvtropes viaf whc wikia wikiasite wikilivres wikitravel "
    "wmde wmfblog wmuk wookieepedia worldcat youtube".split()
)
"""Prefixes that lead to another wiki, in lower case: such a link is none to a page of this one."""


# Months within a date, and the marks between thousands and before a fraction, as CLDR has them.
_MONTHS: Final = {
    "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "en": "January February March April May June July August September October November December",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada "
    "grudnia",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "uk": "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
}  # fmt: skip
_NUMBER_MARKS: Final = {
    "cs": " ,", "de": ".,", "es": ".,", "fr": " ,", "it": ".,", "nl": ".,", "pl": " ,", "pt": ".,",
    "ru": " ,", "sv": " ,", "uk": " ,",
}  # fmt: skip


# Words that say nothing without those that follow: of these a sentence is freed where a template is not read.
_NEED_MORE: Final = {
    "cs": "a i nebo v ve na do od z ze u k ke o po pro při s se mezi asi přibližně kolem",
    "de": "der die das den dem des ein eine einen einem einer eines und oder in im an am auf aus bei beim "
    "bis durch für gegen mit nach ohne seit über um unter von vom vor zu zum zur zwischen etwa rund ca. "
    "circa als wie sowie genannt",
    "en": "a an the and or of in on at to from by with for as about around approximately roughly nearly "
    "almost over under between into near since until during through via than c. circa up called named "
    "pronounced where when which who whose that if because",
    "es": "el la los las un una y e o u de del en a al por para con sin desde hasta entre sobre unos unas "
    "cerca como hacia",
    "fr": "le la les l’ l' un une des du de d’ d' et ou à au aux en dans par pour sur avec sans vers entre "
    "depuis environ près comme chez",
    "it": "il lo la i gli le l’ l' un uno una e o di del della dei delle in nel nella a al alla da dal "
    "dalla con per su sul tra fra circa come",
    "nl": "de het een en of in op aan van voor met door naar bij uit over onder tussen ongeveer circa rond "
    "tot sinds als",
    "pl": "i oraz lub w we na do od z ze u o po dla przy przez między około ok.",
    "pt": "o a os as um uma e ou de do da dos das em no na nos nas ao à por para com sem desde até entre "
    "sobre cerca como",
    "ru": "и или в во на до от из с со у к ко о об по для при через между около примерно",
    "sv": "en ett och eller i på av till från med för om vid under över mellan cirka ungefär som",
    "uk": "і й та або в у на до від з із зі о об по для при через між близько приблизно",
}  # fmt: skip
_VERBS: Final = {
    "cs": "je jsou byl byla bylo byli má mají",
    "de": "ist sind war waren wurde wurden hat haben hatte hatten beträgt wird werden",
    "en": "is are was were be been has have had measures covers became",
    "es": "es son fue fueron era eran tiene tienen está están",
    "fr": "est sont était étaient fut furent a ont avait avaient",
    "it": "è sono era erano fu furono ha hanno",
    "nl": "is zijn was waren heeft hebben had werd",
    "pl": "jest są był była było były ma mają",
    "pt": "é são foi foram era eram tem têm está",
    "ru": "был была было были имеет является",
    "sv": "är var har hade blev",
    "uk": "був була було були має є",
}  # fmt: skip
_UNSPACED: Final = frozenset("zh ja yue wuu gan lzh th lo km my bo".split())


@cache
def needs_more(language: str) -> frozenset[str]:
    """Return words, in small letters, that say nothing without those that follow."""
    return frozenset(_NEED_MORE.get(language, "").split())


@cache
def verbs(language: str) -> frozenset[str]:
    """Return the most common verbs of a first sentence, in small letters."""
    return frozenset(_VERBS.get(language, "").split())


def is_spaced(language: str) -> bool:
    """Return whether a language writes spaces between words."""
    return language not in _UNSPACED


def months(language: str) -> list[str]:
    """Return the names of the months within a date; none if they are not known."""
    return _MONTHS.get(language, "").split()


def number_marks(language: str) -> tuple[str, str]:
    """Return the mark between thousands, and the mark before a fraction."""
    marks = _NUMBER_MARKS.get(language, ",.")
    return marks[0], marks[1]


def base(language: str) -> str:
    """Return the language of a tag without script, region and dialect."""
    return language.lower().partition("-")[0]


def trail(language: str) -> str:
    """Return the letters that belong to a link they stand behind, as the inside of a character class."""
    if language.lower() in _NO_TRAIL or base(language) in _NO_TRAIL:
        return ""
    return _TRAILS.get(language.lower()) or _TRAILS.get(base(language), "a-z")


def namespace_aliases(language: str) -> dict[str, int]:
    """Return older names of the namespaces of files and categories, in lower case."""
    names = {name.lower(): 6 for name in _FILES.get(base(language), "").split()}
    return names | {name.lower(): 14 for name in _CATEGORIES.get(base(language), "").split()}


def disambiguation_template(language: str) -> re.Pattern[str]:
    """Return what finds a template of disambiguation pages."""
    names = [_DISAMBIGUATION["en"]]
    if own := _DISAMBIGUATION.get(base(language)):
        names.append(own)
    return re.compile(rf"\{{\{{\s*(?:template:)?(?:{'|'.join(names)})\s*(?:\||\}}\}})", re.IGNORECASE)


disambiguation_title: Final = re.compile(rf".+ ?[(（](?:{_SUFFIXES})[)）]", re.IGNORECASE).fullmatch
"""Says whether a title is that of a disambiguation page."""

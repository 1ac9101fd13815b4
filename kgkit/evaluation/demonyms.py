"""Words for people and things of a country or a continent, in English: `German`, `Dutch`, `Swiss`."""

from typing import Final

from kgkit.text import fold

_NAMES: Final = """
Afghan African Albanian Algerian American Andorran Angolan Antiguan Arab Arabian Argentine Argentinian
Armenian Asian Australian Austrian Azerbaijani Azeri Bahamian Bahraini Bangladeshi Barbadian Basque Batswana
Bavarian Belarusian Belarussian Belgian Belizean Beninese Bermudan Bermudian Bhutanese Bolivian Bosnian
Botswanan Brazilian Breton Briton British Bruneian Bulgarian Burkinabe Burmese Burundian Cambodian
Cameroonian Canadian Caribbean Catalan Chadian Chechen Chilean Chinese Colombian Congolese Corsican Croat
Croatian Cuban Cypriot Czech Czechoslovak Dane Danish Djiboutian Dominican Dutch Dutchman Ecuadorean
Ecuadorian Egyptian Emirati English Englishman Eritrean Estonian Ethiopian European Faroese Fijian Filipino
Finn Finnish Flemish French Frenchman Gabonese Gambian Georgian German Ghanaian Gibraltarian Greek Grenadian
Guatemalan Guinean Guyanese Haitian Honduran Hungarian Icelander Icelandic Indian Indonesian Iranian Iraqi
Irish Irishman Israeli Italian Ivorian Jamaican Japanese Jordanian Kazakh Kazakhstani Kenyan Korean Kosovan
Kurd Kurdish Kuwaiti Kyrgyz Lao Laotian Latvian Lebanese Liberian Libyan Lithuanian Luxembourger Macedonian
Malagasy Malawian Malaysian Maldivian Malian Maltese Mauritanian Mauritian Mexican Moldovan Monegasque
Mongolian Montenegrin Moroccan Mozambican Namibian Nepalese Nepali Netherlander Nicaraguan Nigerian Nigerien
Norwegian Omani Pakistani Palestinian Panamanian Papuan Paraguayan Persian Peruvian Pole Polish Portuguese
Prussian Qatari Romanian Russian Rwandan Salvadoran Salvadorean Samoan Sardinian Saudi Scandinavian Scot
Scotsman Scottish Senegalese Serb Serbian Sicilian Singaporean Slovak Slovakian Slovene Slovenian Somali
Soviet Spaniard Spanish Sudanese Surinamese Swazi Swede Swedish Swiss Syrian Taiwanese Tajik Tanzanian Tatar
Thai Tibetan Tobagonian Togolese Tongan Trinidadian Tunisian Turk Turkish Turkmen Ugandan Ukrainian
Uruguayan Uzbek Venezuelan Vietnamese Welsh Welshman Yemeni Yugoslav Yugoslavian Zairean Zambian Zimbabwean
"""

_DEMONYMS: Final = frozenset(map(fold, _NAMES.split()))


def is_demonym(surface: str) -> bool:
    """Return whether a surface, or what it is the plural of, is such a word; `West Indian` is one too."""
    last = fold(surface.split()[-1]) if surface.split() else ""
    return last in _DEMONYMS or (last.endswith("s") and last[:-1] in _DEMONYMS)

"""Two small knowledge bases for what foreign programs ask of the service.

cities    cities and countries with types, attributes of every kind and relations; two Berlins, one of them
          four times as frequent; names in Chinese and Arabic, and with an emoji; a key and texts of HTML
wiki      titles of Wikipedia, with its URL pattern
"""

import json
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import kgkit
from kgkit.building import Alias, Entity, Record, Triple
from tests.small_kb import Given, build

HTML_KEY: Final = "a/b 'c' \"d\" <e>&?#"
HTML_LABEL: Final = "<script>alert(1)</script>"

CITIES: Final = (
    Entity(
        "Q64", "Berlin", "capital of Germany", "place", types=("city", "capital"),
        attributes={
            "population": 3677472, "area": 891.3, "founded": "1237", "official": True,
            "twins": ["Paris", "Peking"], "nested": {"a": [1, 2]}, "empty": "",
        },
    ),
    Entity("Q614184", "Berlin", "city in New Hampshire", "place", types=("city",),
           attributes={"population": 9425}),
    Entity("Q90", "Paris", "capital of France", "place", types=("city", "capital")),
    Entity("Q956", "北京", "", "place", types=("city",)),
    Entity("Q85", "القاهرة", "", "place", types=("city",)),
    Entity("Q183", "Germany", "country in Europe", "place", types=("country",)),
    Entity("Q30", "United States", "x" * 400, "place", types=("country",)),
    Entity("Q142", "France", "", "place", types=("country",)),
    Entity("Q1", "🐘 Zoo", "", "zoo"),
    Entity(HTML_KEY, HTML_LABEL, "<img src=x onerror=alert(1)> & more", "thing", types=("<b>",)),
)  # fmt: skip

ALIASES: Final = (
    ("Berlin", "Q64", 80), ("Berlin", "Q614184", 20), ("Paris", "Q90", 10), ("北京", "Q956", 3),
    ("Peking", "Q956", 2), ("القاهرة", "Q85", 1), ("Cairo", "Q85", 1), ("Germany", "Q183", 9),
    ("USA", "Q30", 4), ("United States", "Q30", 4), ("France", "Q142", 3), ("🐘 Zoo", "Q1", 1),
    ("alert", HTML_KEY, 1),
)  # fmt: skip

COUNTRIES: Final = (
    ("Q64", "country", "Q183"),
    ("Q614184", "country", "Q30"),
    ("Q90", "country", "Q142"),
    ("Q64", "capital_of", "Q183"),
    ("Q90", "capital_of", "Q142"),
)

TITLES: Final = ("Berlin", "New York City", "AC/DC", "Café 100%")

TEXT: Final = "😀 Berlin, 北京 and القاهرة 👨‍👩‍👧 saw a 🐘 Zoo in Germany 𝔘."
"""Code points beyond the basic plane, a family joined by zero width joiners, letters from right to left."""

TEXT_SPANS: Final = tuple(
    (TEXT.index(name), TEXT.index(name) + len(name), name)
    for name in ("Berlin", "北京", "القاهرة", "🐘 Zoo", "Germany")
)
"""Start, end in code points, and text of its mentions, in their order."""


def build_cities(home: Path) -> None:
    """Build both knowledge bases in *home*."""
    records: list[Record] = [*CITIES]
    records += [Alias(*alias) for alias in ALIASES]
    records += [Triple(*fact) for fact in COUNTRIES]
    build(home, records, name="cities", inverses={"capital_of": "has_capital"}).close()
    titles: list[Record] = [Entity(title, title, kind="page") for title in TITLES]
    titles += [Alias(title, title, 1) for title in TITLES]
    titles.append(Triple("Berlin", "links_to", "AC/DC"))
    pattern = "https://en.wikipedia.org/wiki/{key:_}"
    kgkit.build_kb(Given(titles, {}, 0.0, "alias"), home, name="wiki", home=home, url_pattern=pattern)


class PageParser(HTMLParser):
    """Collects the tags of a page, with their attributes, and its text.

    Attributes:
        tags: tags with their attributes, in order.
        text: the text between tags.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def names(self) -> Iterator[str]:
        """Yield the names of the tags."""
        return (tag for tag, _ in self.tags)


def rpc(client: Any, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer of `/mcp` to a call of JSON-RPC."""
    answer = client.post(
        "/mcp",
        content=json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})}),
        headers={"Accept": "application/json, text/event-stream", "Content-Type": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    assert (record["jsonrpc"], record["id"]) == ("2.0", 1)
    return record

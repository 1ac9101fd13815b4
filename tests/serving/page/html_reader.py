"""Pages as a browser reads them: links, forms, ids, and what is shown."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


class Page(HTMLParser):
    """A page, read once.

    Attributes:
        text: texts of the body and the title, joined.
        links: addresses of `a`, in order.
        sources: addresses of style sheets, scripts and pictures.
        ids: ids of elements.
        forms: of each form its attributes and the names of its fields.
        elements: each start tag, with its attributes.
        rows: cells of each row of a table, as texts.
    """

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.links: list[str] = []
        self.sources: list[str] = []
        self.ids: list[str] = []
        self.forms: list[tuple[dict[str, str], list[str]]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.rows: list[list[str]] = []
        self.feed(content)
        self.close()
        assert self.open == [], f"elements that are not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("link", "script", "img") and (source := values.get("href") or values.get("src")):
            self.sources.append(source)
        if tag == "form":
            self.forms.append((values, []))
        if tag in ("input", "select", "textarea") and self.forms and "name" in values:
            self.forms[-1][1].append(values["name"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        self.text += data
        if ("td" in self.open or "th" in self.open) and self.rows:
            self.rows[-1][-1] += data

    def named(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of every element of a name."""
        return [values for name, values in self.elements if name == tag]

    def classes(self, tag: str) -> list[str]:
        """Return the class of every element of a name."""
        return [values.get("class", "") for values in self.named(tag)]

    @property
    def words(self) -> str:
        """Text with single spaces."""
        return " ".join(self.text.split())


def local(link: str) -> str:
    """Return the address of a link on the same host, without its fragment; empty for others."""
    parts = urlsplit(link)
    return "" if parts.scheme or parts.netloc or not parts.path else parts._replace(fragment="").geturl()

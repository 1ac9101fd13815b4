"""A knowledge base from a table: CSV, TSV or Parquet. `docs/your-own-kb.md` has an example.

The first row names the columns, every further row is an entity. A column is one of these; those that nobody
names are guessed by their headings:

    key          unique name of the entity; where there is none, the label
    label        name that people read, which is an alias too; where there is none, the key
    aliases      further names, in all columns with such headings; `aliases|` splits a cell at each `|`
    description  sentence on the entity
    kind         its kind: `company`
    count        how often the names of the row were seen with this meaning: priors are made of counts
    fact         fact of the entity: the heading is its relation, the cell a key or label of a row; `owns|`
                 splits cells
    number       an attribute that is a number, as `--popularity` reads it, in CSV too
    attribute    whatever else is kept; unless some are named, every other column

An empty name is no column: `--kind ""`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple, Self

from kb_builders.table_files import Table, open_table
from kgkit.building import (
    MAX_COUNT,
    POPULATION,
    Alias,
    Builder,
    Entity,
    Files,
    Record,
    SourceInfo,
    Triple,
    check_attributes,
)
from kgkit.errors import SourceError, UsageError, abbreviate

HEADINGS: Final[Mapping[str, Sequence[str]]] = {
    "key": (
        "key", "id", "qid", "identifier", "uri", "iri", "code",
        "schlüssel", "kennung",
        "identifiant", "clé", "identificador", "clave", "código", "identificativo", "chiave", "codice",
        "sleutel", "chave",
        "编号", "標識", "标识", "标识符", "代码", "编码", "編號", "代碼", "識別子", "コード",
    ),
    "label": (
        "label", "name", "nom", "nombre", "nome", "naam", "名称", "名稱", "名字", "姓名", "名前", "氏名",
        "full name", "vollständiger name", "nom complet", "nombre completo", "nome completo",
        "volledige naam",
        "title", "titel", "titre", "título", "titolo", "标题", "標題", "題名", "タイトル",
        "preflabel", "preferred label", "preferred name", "term",
        "bezeichnung", "benennung", "begriff",
        "libellé", "intitulé", "désignation", "dénomination", "terme",
        "denominación", "término", "denominazione", "termine", "benaming",
        "designação", "denominação", "termo",
    ),
    "aliases": (
        "aliases", "alias", "synonyms", "synonym", "altlabel", "altlabels", "also known as", "also called",
        "aka", "a k a", "other name", "other names", "alternative name", "alternative names",
        "alternate name", "alternate names", "name variant", "name variants", "variant name",
        "variant names", "variant form", "variant forms", "variant", "variants", "nickname", "nicknames",
        "names",
        "synonyme", "aliase", "andere namen", "weitere namen", "alternative namen", "auch bekannt als",
        "auch genannt", "namensform", "namensformen", "namensvariante", "namensvarianten", "nebenform",
        "nebenformen", "variante", "varianten", "andere bezeichnungen", "weitere bezeichnungen",
        "synonymes", "autres noms", "autre nom", "aussi connu sous le nom de", "aussi appelé", "dit aussi",
        "autres appellations", "autres dénominations", "variantes", "variantes du nom", "noms alternatifs",
        "formes du nom",
        "sinónimos", "sinónimo", "otros nombres", "otro nombre", "también conocido como", "también llamado",
        "variantes del nombre", "nombres alternativos", "otras denominaciones",
        "sinonimi", "sinonimo", "altri nomi", "altro nome", "varianti", "varianti del nome",
        "forme varianti", "anche noto come", "altre denominazioni", "nomi alternativi",
        "synoniemen", "synoniem", "andere naam", "ook bekend als", "ook genoemd", "naamsvariant",
        "naamsvarianten", "naamvarianten", "alternatieve namen",
        "outros nomes", "outro nome", "também conhecido como", "também chamado", "variantes do nome",
        "nomes alternativos", "outras denominações",
        "别名", "别称", "又名", "又称", "亦称", "异名", "同义词", "其他名称", "变体",
        "別名", "別稱", "又稱", "亦稱", "異名", "同義詞", "其他名稱", "變體", "別称",
        "同義語", "別表記", "異表記",
    ),
    "description": (
        "description", "descriptions", "definition", "definitions", "gloss", "summary", "abstract", "comment",
        "comments", "notes", "note", "remark", "remarks", "detail", "details", "explanation",
        "beschreibung", "erläuterung", "zusammenfassung", "kommentar", "anmerkung", "bemerkung",
        "beschreibungen", "erläuterungen", "erklärung", "kommentare", "anmerkungen", "bemerkungen", "notiz",
        "notizen", "hinweis", "hinweise",
        "résumé", "commentaire", "commentaires", "remarque", "remarques", "observation", "observations",
        "explication", "détail", "détails",
        "descripción", "definición", "resumen", "comentario", "comentarios", "nota", "notas",
        "observación", "observaciones", "explicación", "detalle", "detalles",
        "descrizione", "definizione", "riassunto", "commento", "commenti", "osservazione", "osservazioni",
        "annotazioni", "spiegazione", "dettaglio", "dettagli",
        "beschrijving", "omschrijving", "definitie", "samenvatting", "opmerking", "opmerkingen", "notitie",
        "notities", "aantekening", "aantekeningen", "toelichting",
        "descrição", "definição", "resumo", "comentário", "comentários", "observação", "observações",
        "anotações", "explicação", "detalhe", "detalhes",
        "描述", "说明", "简介", "定义", "摘要", "备注", "注释", "详情", "附注",
        "說明", "簡介", "定義", "備註", "註釋", "詳情", "附註", "説明", "概要", "備考", "注記", "注釈",
        "詳細", "メモ", "コメント",
    ),
    "kind": (
        "kind", "type", "category", "class", "kinds", "types", "categories", "classes",
        "art", "typ", "kategorie", "klasse", "gattung", "sorte", "arten", "typen", "kategorien", "klassen",
        "gattungen", "sorten",
        "catégorie", "classe", "catégories", "tipo", "categoría", "clase", "tipos", "categorías", "clases",
        "tipi", "categorie", "classi", "tipologia", "soort", "soorten", "espécie",
        "类型", "类别", "种类", "分类",
        "類型", "類別", "種類", "分類", "種別", "区分", "タイプ", "カテゴリ", "カテゴリー",
    ),
    "count": (
        "count", "counts", "frequency",
        "häufigkeit", "fréquence", "frecuencia", "frequenza", "frequentie", "frequência", "频率", "頻度",
    ),
}  # fmt: skip
"""Headings by which the columns are guessed, the first ones first; `Preferred_Name` is `preferred name`.

In English, then in German, French, Spanish, Italian, Dutch, Portuguese, Chinese and Japanese; accents, full
stops and capitals do not count.
"""

VARIANTS: Final = (
    "variant", "variants", "variante", "varianten", "variantes", "varianti", "变体", "變體",
)  # fmt: skip
"""Headings of aliases, or of sizes and colours: they are no aliases where another column has those."""

NUMBERS: Final = (
    "no", "n°", "#", "num", "number", "sku", "accession number", "call number", "shelfmark", "serial number",
    "record number", "item number", "nr", "nummer", "lfd nr", "lfdnr", "laufende nummer", "signatur",
    "kennziffer", "kennnummer", "numéro", "cote", "número", "signatura", "numero", "segnatura", "volgnummer",
    "signatuur", "cota", "号", "号码", "序号", "號", "號碼", "序號", "番号", "整理番号", "請求記号",
)  # fmt: skip
"""Headings of numbers and shelf marks: the first such column whose cells are unique and not empty has the
keys, where no heading is that of keys."""

_NUMBERED: Final = re.compile(r".(nummer|number|numero|nr)$|. (no|n°)$|.(編號|編号|编号|番号|號碼|号码)$")
"""So the heading of the first column may end too: `Inventarnummer`, `Part No.`"""

LAST_WORDS: Final[Mapping[str, str]] = {"key": "id", "label": "name"}
"""Last word by which a column is guessed where no heading is one of these: `Employee ID`, if it is the first
column, and `Product Name`, if no other heading ends so."""

SEVERAL: Final = ("aliases", "fact", "number", "attribute")
"""What several columns can be."""

SPLIT: Final = ("aliases", "fact")
"""Of what a cell may hold several, with a separator between them."""

SEPARATORS: Final = ("|", ";")
"""Characters at which the cells of aliases are split, where nobody says so: the first that there is."""

_LISTING: Final = (", ", "; ", ";", "|", " / ", "、", "，", "；", ",")
_LEAST_LISTS: Final = 0.1  # share of the cells of aliases; few names have a comma

_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][-+]?[0-9]{1,2})?")

_SPACED: Final = str.maketrans("_-.", "   ")

_MAX_LISTED: Final = 20  # columns that an error names
_ROWS_TO_GUESS: Final = 1_000
_ROWS_OF_PREVIEW: Final = 3


class TableLayout(NamedTuple):
    """What the columns of a table are, each by its index.

    Attributes:
        key: column of the keys; that of the labels where there are no keys.
        label: column of the labels; that of the keys where there are no labels.
        aliases: columns of aliases, each with the separator of a cell; "": a cell is one alias.
        description: column of the descriptions, if there is one.
        kind: column of the kinds, if there is one.
        attributes: columns of attributes.
        counts: column of the counts of names, if there is one.
        facts: columns of facts, each with the separator of a cell; "": a cell is one object.
        numbers: columns of attributes that are numbers.
    """

    key: int
    label: int
    aliases: tuple[tuple[int, str], ...] = ()
    description: int | None = None
    kind: int | None = None
    attributes: tuple[int, ...] = ()
    counts: int | None = None
    facts: tuple[tuple[int, str], ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def columns(self) -> list[int]:
        """Indices of all these columns."""
        single = (self.key, self.label, self.description, self.kind, self.counts)
        split = (index for index, _ in (*self.aliases, *self.facts))
        columns = {*single, *split, *self.attributes, *self.numbers}
        return sorted(index for index in columns if index is not None)


class TableRow(NamedTuple):
    """What a row says.

    Attributes:
        entity: the entity.
        surfaces: its aliases, the label first.
        frequency: how often each of them was seen with this meaning.
        facts: relation and object of each of its facts, the object as the cell has it.
    """

    entity: Entity
    surfaces: list[str]
    frequency: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()


class TableBuilder(Builder):
    """Entities with their names, a row each.

    Args:
        columns: names of the columns by what they are, as `with_columns` takes them.
    """

    smoothing = 1.0
    reads_columns = True
    reads_lines = True

    def __init__(self, columns: Mapping[str, str | Sequence[str]] | None = None) -> None:
        self.columns = {
            role: [names] if isinstance(names, str) else [*names] for role, names in (columns or {}).items()
        }
        roles = (*HEADINGS, "fact", "number", "attribute")
        for role, names in self.columns.items():
            if role not in roles:
                raise UsageError(f"a column of a table is one of {', '.join(roles)}, not {role!r}")
            if len(names) > 1 and role not in SEVERAL:
                raise UsageError(f"a table has one column for {role}, not {len(names)}: {', '.join(names)}")

    def with_columns(self, columns: Mapping[str, str | Sequence[str]]) -> Self:
        """Return a builder that reads these columns, and guesses the others."""
        builder = type(self)(columns)
        builder.skips_bad = self.skips_bad
        return builder

    def look(self, source: Path) -> Files:
        """Return the file, whose columns have to be told apart."""
        with open_table(source) as table:
            self._layout(table, source)
        return Files(SourceInfo(name=source.name.split(".")[0]), [source])

    def preview(self, source: Path) -> Iterator[str]:
        """Yield what each column is, then the first entities."""
        with open_table(source) as table:
            layout = self._layout(table, source)
            hint = "" if "label" in self.columns else _no_label(table.header, layout)
            yield f"{source}: {_described(table.header, layout)}{hint}{_unsplit(source, layout)}"
        with open_table(source) as table:
            for row in islice(self._good_rows(table, layout, source), _ROWS_OF_PREVIEW):
                entity = row.entity
                yield f"{entity.key}: {'; '.join([entity.label, *row.surfaces[1:]])}" + (
                    f" ({entity.description})" if entity.description else ""
                )

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield each row's entity, its aliases, and its facts."""
        with open_table(source) as table:
            layout = self._layout(table, source)
        keys = _RowNames()
        if layout.facts:
            with open_table(source) as table:
                keys.read(self._good_rows(table, layout, source))
        with open_table(source) as table:
            for row in _records(table, layout, source):
                if isinstance(row, SourceError):
                    yield self.bad_record(row)
                    continue
                entity, surfaces, frequency, facts = row
                yield entity
                for surface in surfaces:
                    yield Alias(surface, entity.key, frequency)
                for relation, written in facts:
                    yield Triple(entity.key, relation, keys.key_of(written, relation, source))

    def _good_rows(self, table: Table, layout: TableLayout, path: Path) -> Iterator[TableRow]:
        """Yield what each row says, without the rows that are left out.

        Raises:
            SourceError: at a row that cannot be read, unless such are left out.
        """
        for row in _records(table, layout, path):
            if isinstance(row, SourceError):
                self.bad_record(row)
            else:
                yield row

    def _layout(self, table: Table, path: Path) -> TableLayout:
        """Return what the columns are: those that were named, and the others by their headings."""
        named = {role: [name for name in names if name] for role, names in self.columns.items()}
        indices: dict[str, list[tuple[int, str]]] = {
            role: [_column(table.header, name, role, path) for name in names] for role, names in named.items()
        }
        used = {index for columns in indices.values() for index, _ in columns}
        for role in HEADINGS:
            if role not in indices and (guessed := _guess(table.header, role, used)):
                indices[role] = [(index, "") for index in guessed]
                used.update(guessed)
        if "key" not in indices and "label" in indices:
            number = _numbers(path, table.header, indices["label"][0][0], used)
            if number is not None:
                indices["key"] = [(number, "")]
                used.add(number)
        label = indices.get("label") or indices.get("key")
        key = indices.get("key") or label
        if not key or not label:
            raise SourceError(
                f"none of the columns {_listed(table.header)} looks like keys or names: "
                "say which it is with --label COLUMN, or --key COLUMN",
                path=path, line=1,
            )  # fmt: skip
        attributes = [index for index, _ in indices.get("attribute", [])]
        numbers = tuple(index for index, _ in indices.get("number", []))
        if "attribute" not in indices:
            attributes = [index for index, name in enumerate(table.header) if name and index not in used]
        if repeated := [name for name, count in _counts(table.header, used, attributes).items() if count > 1]:
            raise SourceError(f"two columns are called {repeated[0]!r}", path=path, line=1)
        aliases = indices.get("aliases", [])
        if "aliases" not in self.columns:
            aliases = [(index, separator) for index, separator in _with_separators(table, aliases)]
        return TableLayout(
            key[0][0], label[0][0], tuple(aliases), _only(indices, "description"), _only(indices, "kind"),
            tuple(attributes), _only(indices, "count"), tuple(indices.get("fact", [])), numbers,
        )  # fmt: skip


class _RowNames:
    """The keys and labels of all rows: what the cells of facts may name.

    What is neither is taken for a key, which may be that of an entity of the knowledge base that the table
    is added to; a build says which keys it does not know.
    """

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.labelled: dict[str, set[str]] = {}

    def read(self, rows: Iterator[TableRow]) -> None:
        """Take in the keys and labels of rows."""
        for row in rows:
            self.keys.add(row.entity.key)
            self.labelled.setdefault(row.entity.label, set()).add(row.entity.key)

    def key_of(self, written: str, relation: str, path: Path) -> str:
        """Return the key that a cell of facts means.

        Raises:
            SourceError: if it is the label of several rows.
        """
        labelled = self.labelled.get(written, {written})
        if written in self.keys:
            return written
        if len(labelled) > 1:
            raise SourceError(
                f"{written!r}, in column {relation!r}, is the label of {len(labelled)} rows "
                f"({', '.join(sorted(labelled)[:_ROWS_OF_PREVIEW])}): write the key of the right row",
                path=path,
            )
        return min(labelled)


def _records(table: Table, layout: TableLayout, path: Path) -> Iterator[TableRow | SourceError]:
    """Yield what each row says, and an error in the place of one that cannot be read.

    Empty rows are passed over.

    Raises:
        SourceError: if two rows have one key.
    """
    lines: dict[str, int] = {}

    def problem(message: str, number: int, cells: Sequence[Any]) -> SourceError:
        where = number if table.unit == "line" else None
        message = message if where else f"row {number:,}: {message}"
        return SourceError(message, path=path, line=where, text=", ".join(map(_text, cells)))

    for number, cells in table.rows(layout.columns):
        if isinstance(cells, SourceError):
            yield cells
            continue
        if not any(map(_text, cells)):
            continue
        try:
            row = _record(cells, layout, table.header)
        except ValueError as error:
            yield problem(str(error), number, cells)
            continue
        key = row.entity.key
        if key in lines:
            message = f"the key {key!r} is that of {table.unit} {lines[key]:,} too: keys are unique" + (
                "; name a column of keys with --key" if layout.key == layout.label else ""
            )
            raise problem(message, number, cells)
        lines[key] = number
        yield row


def _record(cells: Sequence[Any], layout: TableLayout, header: Sequence[str]) -> TableRow:
    """Return what a row says.

    Raises:
        ValueError: if it has no key, a count or number that is none, or an attribute that the store
            cannot hold.
    """
    key, label = _text(cells[layout.key]), _text(cells[layout.label])
    if not key:
        raise ValueError(f"the key, in column {header[layout.key]!r}, is empty")
    surfaces = [label or key]
    for index, separator in layout.aliases:
        surfaces += _surfaces(cells[index], separator)
    attributes = {header[index]: value for index in layout.attributes if (value := _value(cells[index]))}
    for index in layout.numbers:
        if _text(cells[index]):
            attributes[header[index]] = _number(cells[index], header[index])
    count = _count(cells, layout, header)
    if layout.counts is not None and header[layout.counts].strip().lower() in POPULATION and count:
        attributes[header[layout.counts]] = int(count)  # so that it is known to be no count of links
    check_attributes(attributes)
    description, kind = (
        "" if index is None else _text(cells[index]) for index in (layout.description, layout.kind)
    )
    entity = Entity(key, label or key, description, kind, attributes=attributes)
    facts = [
        (header[index], name)
        for index, separator in layout.facts
        for name in _surfaces(cells[index], separator)
    ]
    return TableRow(entity, [*dict.fromkeys(surfaces)], count, tuple(facts))


def _count(cells: Sequence[Any], layout: TableLayout, header: Sequence[str]) -> float:
    """Return the count of a row, 0 where there is none.

    Raises:
        ValueError: if it is no number from 0 on.
    """
    if layout.counts is None or not _text(cells[layout.counts]):
        return 0.0
    count = float(_number(cells[layout.counts], header[layout.counts]))
    if not 0 <= count <= MAX_COUNT:
        raise ValueError(
            f"the count {count:g}, in column {header[layout.counts]!r}, is not from 0 to {MAX_COUNT:g}"
        )
    return count


def _number(cell: Any, column: str) -> int | float:
    """Return a cell as a number.

    Raises:
        ValueError: if it is none.
    """
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return cell
    text = _text(cell)
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{abbreviate(repr(text))}, in column {column!r}, is no number: write it as 1234.5")
    return float(text) if "." in text or "e" in text.lower() else int(text)


def _surfaces(cell: Any, separator: str) -> Iterator[str]:
    """Yield the aliases of a cell."""
    values = cell if isinstance(cell, list) else _text(cell).split(separator) if separator else [cell]
    yield from filter(None, map(_text, values))


def _text(cell: Any) -> str:
    """Return a cell as text; an empty one for what is missing."""
    if cell is None or cell != cell:  # a float that is no number
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).strip()


def _value(cell: Any) -> Any:
    """Return a cell as an attribute: numbers, truths and lists as they are, all else as text."""
    if isinstance(cell, list):
        return [value if isinstance(value, bool | int) else _text(value) for value in cell]
    return cell if isinstance(cell, bool | int | float) and cell == cell else _text(cell)


def _column(header: Sequence[str], name: str, role: str, path: Path) -> tuple[int, str]:
    """Return the index of a column, and the separator behind its name; those of `SPLIT` may have one.

    Raises:
        SourceError: if there is no such column.
    """
    if name in header:
        return header.index(name), ""
    for heading in sorted(filter(None, header), key=len, reverse=True) if role in SPLIT else ():
        separator = name.removeprefix(heading)
        if separator != name and not any(letter.isalnum() for letter in separator):
            return header.index(heading), separator
    raise SourceError(f"has no column {name!r} for {role}; there are: {_listed(header)}", path=path, line=1)


def _listed(header: Sequence[str]) -> str:
    """Return the names of columns for an error, the first of many."""
    names = [repr(name) for name in header if name]
    further = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {further:,} more" if further > 0 else "")


def _guess(header: Sequence[str], role: str, used: set[int]) -> list[int]:
    """Return the indices of the columns whose headings say that they are *role*, of those that are free.

    That is one, or of aliases all.
    """
    plain = [*map(_plain, header)]
    headings = [*map(_plain, HEADINGS[role])]
    found = [index for heading in headings for index, name in enumerate(plain) if name == heading]
    if found := [index for index in found if index not in used]:
        several = sorted(index for index in found if plain[index] not in map(_plain, VARIANTS))
        return several if role == "aliases" and several else found[:1]
    word = LAST_WORDS.get(role)
    other_roles = {_plain(heading) for headings in HEADINGS.values() for heading in headings}
    indices = [
        index
        for index, name in enumerate(plain)
        if name.split()[-1:] == [word] and name not in other_roles and (role != "key" or index == 0)
    ]
    return indices if len(indices) == 1 and indices[0] not in used else []


def _plain(heading: str) -> str:
    """Return a heading in lower case, without accents, with a space between words."""
    letters = unicodedata.normalize("NFKD", heading).casefold().translate(_SPACED)
    return " ".join("".join(letter for letter in letters if not unicodedata.combining(letter)).split())


def _numbers(path: Path, header: Sequence[str], label: int, used: set[int]) -> int | None:
    """Return the index of a column of numbers that are keys, of those that are free; None if there is none.

    Args:
        path: the table.
        header: names of the columns.
        label: column of the labels.
        used: columns that are something else.
    """
    plain = [*map(_plain, header)]
    named = [plain.index(heading) for heading in map(_plain, NUMBERS) if heading in plain]
    if _NUMBERED.search(plain[0]):
        named.append(0)
    return next((index for index in named if index not in used and _identifies(path, index, label)), None)


def _identifies(path: Path, index: int, label: int) -> bool:
    """Say whether the cells of a column are unique, and none is empty beside a label."""
    found = set[str]()
    with open_table(path) as table:
        for _, cells in table.rows([index, label]):
            if isinstance(cells, SourceError):
                continue
            text = _text(cells[index])
            if text in found or (not text and _text(cells[label])):
                return False
            if text:
                found.add(text)
    return bool(found)


def _with_separators(table: Table, columns: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield columns of aliases with the separator that their first cells have."""
    if not columns:
        return
    numbered = islice(table.rows([index for index, _ in columns]), _ROWS_TO_GUESS)
    rows = [cells for _, cells in numbered if not isinstance(cells, SourceError)]
    for index, _ in columns:
        texts = [_text(cells[index]) for cells in rows]
        yield index, next((each for each in SEPARATORS if any(each in text for text in texts)), "")


def _counts(header: Sequence[str], used: set[int], attributes: Sequence[int]) -> Counter[str]:
    """Return how often the names of the columns occur that are read."""
    names = {header[index] for index in (*used, *attributes)}
    return Counter(name for name in header if name in names)


def _only(indices: Mapping[str, Sequence[tuple[int, str]]], role: str) -> int | None:
    return indices[role][0][0] if indices.get(role) else None


def _no_label(header: Sequence[str], layout: TableLayout) -> str:
    """Return a hint where no heading is that of labels; empty where one is."""
    others = {index for index in layout.columns if index != layout.label}
    if layout.label in _guess(header, "label", others):
        return ""
    name = header[layout.label]
    return f"; no heading is known as that of the names: --label COLUMN names another than {name!r}"


def _unsplit(path: Path, layout: TableLayout) -> str:
    """Return how to split cells of aliases that are one name each, but look like lists; "" if none do."""
    whole = [index for index, separator in layout.aliases if not separator]
    if not whole:
        return ""
    with open_table(path) as table:
        numbered = islice(table.rows(whole), _ROWS_TO_GUESS)
        rows = [cells for _, cells in numbered if not isinstance(cells, SourceError)]
    hints = []
    for index in whole:
        texts = [*filter(None, (_text(cells[index]) for cells in rows if not isinstance(cells[index], list)))]
        counts = {each: sum(each in text for text in texts) for each in _LISTING}
        separator = max(counts, key=counts.__getitem__)
        if counts[separator] > _LEAST_LISTS * len(texts):
            option = quote(table.header[index] + separator)
            share = f"{counts[separator]:,} of {len(texts):,} cells"
            hints.append(f"; {share} have {separator!r}: --aliases {option} splits them")
    return "".join(hints)


def _described(header: Sequence[str], layout: TableLayout) -> str:
    """Return what the columns are, as a message says it."""
    phrases = [f"key from {header[layout.key]!r}", f"label from {header[layout.label]!r}"]
    for index, separator in layout.aliases:
        split = f"split at {separator!r}" if separator else "a cell is one name"
        phrases.append(f"aliases from {header[index]!r} ({split})")
    for role, column in (
        ("description", layout.description), ("kind", layout.kind), ("counts", layout.counts),
    ):  # fmt: skip
        if column is not None:
            phrases.append(f"{role} from {header[column]!r}")
    if layout.attributes:
        phrases.append(f"attributes from {', '.join(repr(header[index]) for index in layout.attributes)}")
    for index, separator in layout.facts:
        phrases.append(f"facts from {header[index]!r}" + (f" (split at {separator!r})" if separator else ""))
    if layout.numbers:
        phrases.append(f"numbers from {', '.join(repr(header[index]) for index in layout.numbers)}")
    return ", ".join(phrases)

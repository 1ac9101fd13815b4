"""Tables as sources: columns by their headings or by name, separators, CSV of spreadsheets, Parquet."""

import pytest

import kgkit
from kgkit.errors import SourceError, UsageError
from tests.cli_helpers import run

NAMES = (
    "id,name,aliases,description,type,founded\n"
    'acme,Acme Corporation,Acme|The Acme,"A maker, of anvils",company,1899\n'
    "bolt,Bolt Ltd,,,company,\n"
)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def built(path, home, **columns):
    """Build a KB of a table, and return it open."""
    kgkit.build_kb("table", path, name="names", home=home, columns=columns)
    return kgkit.open_kb("names", home)


def keys_of(kb, surface):
    return [candidate.entity.key for candidate in kb.decode(kb.candidates(surface))]


def refused(path, home, **columns):
    with pytest.raises(SourceError) as error:
        kgkit.build_kb("table", path, home=home, columns=columns)
    assert error.value.path == path
    return error.value


def test_a_table_is_read_by_its_headings(tmp_path):
    with built(write(tmp_path / "names.csv", NAMES), tmp_path) as kb:
        acme = kb["acme"]
        assert (acme.label, acme.description, acme.kind) == (
            "Acme Corporation",
            "A maker, of anvils",
            "company",
        )
        assert acme.attributes == {"founded": "1899"} and kb["bolt"].attributes == {}
        assert [keys_of(kb, name) for name in ("acme", "the acme", "bolt ltd", "acme corporation")] == [
            ["acme"], ["acme"], ["bolt"], ["acme"],
        ]  # fmt: skip


STAFF = "id,name,aliases\n7,May Chen,May\n8,Will Ode,Will\n"


def test_with_a_language_function_words_of_a_text_are_no_names_of_a_table(tmp_path):
    path, text = write(tmp_path / "staff.csv", STAFF), "you may call may chen on monday."
    found = {}
    for language in (None, "en", "EN-GB", "zh", ""):
        kgkit.build_kb("table", path, name="staff", home=tmp_path, language=language)
        with kgkit.open_kb("staff", tmp_path) as kb:
            assert kb.manifest.language == (language or "")
            found[language] = [mention.text for mention in kgkit.AliasGenerator(kb).mentions(text)]
    either = ["may", "may chen"]
    assert found == {None: either, "en": ["may chen"], "EN-GB": ["may chen"], "zh": either, "": either}


def test_an_imported_folder_of_neo4j_has_the_language_that_is_named(tmp_path):
    (tmp_path / "staff").mkdir()
    write(tmp_path / "staff" / "nodes.csv", ":ID,:LABEL,name\n7,person,May\n")
    command = ["kb", "import", tmp_path / "staff", "--format", "neo4j", "--home", tmp_path]
    done = run(*command, "--language", "en")
    assert done.code == 0 and "function words" not in done.err, done.err
    with kgkit.open_kb("staff", tmp_path) as kb:
        assert kb.manifest.language == "en"
    assert "function words (may)" in run(*command).err


def test_a_language_is_a_tag(tmp_path):
    path = write(tmp_path / "staff.csv", STAFF)
    with pytest.raises(UsageError, match="'English'"):
        kgkit.build_kb("table", path, name="staff", home=tmp_path, language="English")


def test_a_build_without_a_language_names_the_names_that_are_function_words(tmp_path):
    path = write(tmp_path / "staff.csv", STAFF)
    command = ["build-kb", "table", path, "--name", "staff", "--home", tmp_path]
    assert "function words (may, will)" in run(*command).err
    assert "function words" not in run(*command, "--language", "").err
    assert "function words" not in run(*command, "--language", "en").err
    text = b"You may call May Chen on Monday."
    linked = run("link", "--kb", "staff", "--home", tmp_path, "--model", "prior", given=text)
    assert linked.out.count('"start":') == 1 and '"entity":"7"' in linked.out
    assert "function words" not in run(
        "build-kb", "table", write(tmp_path / "names.csv", NAMES), "--name", "n", "--home", tmp_path
    ).err  # fmt: skip


@pytest.mark.parametrize(
    ("header", "label"),
    [
        ("code;Common name;size", "Giraffe"),
        ("code;common_name;name", "big"),
        ("code;first name;last name", "1"),
        ("code;Username;size", "1"),
    ],
)
def test_the_only_heading_that_ends_in_name_is_the_label(tmp_path, header, label):
    with built(write(tmp_path / "names.csv", f"{header}\n1;Giraffe;big\n"), tmp_path) as kb:
        assert kb["1"].label == label


@pytest.mark.parametrize(
    ("header", "guess"),
    [
        ("Employee ID,Full Name,Manager ID", "key from 'Employee ID', label from 'Full Name'"),
        ("code,Alternative name,size", "key from 'code', label from 'code', aliases from 'Alternative name'"),
    ],
)
def test_ids_of_other_rows_and_names_of_another_role_are_no_keys_and_labels(tmp_path, header, guess):
    path = write(tmp_path / "names.csv", f"{header}\nE1,Ana Ruiz,E2\nE2,Bo Berg,\n")
    assert guess in run("build-kb", "table", path, "--limit", 0).out


@pytest.mark.parametrize(
    "header",
    [
        "id,Bezeichnung,Synonyme,Beschreibung,Art", "Schlüssel,TITEL,Andere Namen,Erläuterung,Kategorie",
        "id,nom,alias,description,type", "Clé,Libellé,Synonymes,DÉFINITION,Catégorie",
        "identificador,Nombre,Sinónimos,descripcion,Tipo", "codice,nome,altri_nomi,descrizione,categoria",
        "ID,naam,synoniemen,omschrijving,soort", "código,título,sinônimos,Descrição,Tipo",
        "编号,名称,别名,描述,类型", "ID,名稱,別名,說明,類別", "コード,名前,別名,説明,カテゴリー",
        "ＩＤ,Vollsta\u0308ndiger Name,aliase,Beschreibung,Typ",
        "Nr.,Name,Namensformen,Bemerkungen,Gattung", "Lfd. Nr.,Name,Namensvarianten,Notizen,Sorte",
        "SKU,name,Variants,Notes,Category", "No.,Name,a.k.a.,Remarks,Class",
        "#,Title,Other_Names,Details,Types",
        "Signatur,Titel,Auch genannt,Notiz,Kategorien", "N°,Nom,Variantes,Remarques,Catégories",
        "Numéro,Nom,Noms alternatifs,Observations,Classe", "Nº,Nombre,Variantes,Observaciones,Tipos",
        "Numero,Nome,Varianti,Osservazioni,Tipologia", "Volgnummer,Naam,Naamsvarianten,Notities,Soorten",
        "序号,名称,又称,注释,类型", "番号,名前,別表記,注記,区分", "Inventar-Nr.,Name,Varianten,Bemerkung,Art",
        "Part No.,Name,Nicknames,Note,Type", "Kundennummer,Name,Nebenformen,Hinweise,Typ",
    ],
)  # fmt: skip
def test_headings_are_known_in_the_languages_of_users(tmp_path, header):
    path = write(tmp_path / "names.csv", f"{header}\nf1,Lyon,Lugdunum,on the Rhône,town\n")
    with built(path, tmp_path) as kb:
        lyon = kb["f1"]
        assert (lyon.label, lyon.description, lyon.kind) == ("Lyon", "on the Rhône", "town")
        assert keys_of(kb, "Lugdunum") == ["f1"] and not keys_of(kb, "f1") and not lyon.attributes


@pytest.mark.parametrize(
    ("header", "names", "kept"),
    [
        ("id,name,aliases,also known as,synonyms", ["A", "B", "C", "D"], []),
        ("id,synonyms,name,AKA,Aliases", ["B", "A", "C", "D"], []),
        ("id,Name,Synonyme,Auch genannt,Ort", ["A", "B", "C"], ["Ort"]),
        ("id,Nom,Alias,Autres noms,Surnom", ["A", "B", "C"], ["Surnom"]),
        ("id,nombre,Otros nombres,sinónimos,alias", ["A", "B", "C", "D"], []),
        ("id,nome,Sinonimi,Altri nomi,Varianti", ["A", "B", "C"], ["Varianti"]),
        ("id,naam,synoniemen,ook bekend als,kleur", ["A", "B", "C"], ["kleur"]),
        ("id,名称,别名,又称,变体", ["A", "B", "C"], ["变体"]),
        ("id,name,variant,nickname,size", ["A", "C"], ["variant", "size"]),
        ("id,name,variant,variants,size", ["A", "B"], ["variants", "size"]),
        ("id,name,alias,Alias,size", ["A", "B", "C"], ["size"]),
        ("id,name,description,aka,other names", ["A", "C", "D"], []),
    ],
)
def test_all_columns_of_further_names_are_guessed(tmp_path, header, names, kept):
    with built(write(tmp_path / "names.csv", f"{header}\nf1,A,B,C,D\n"), tmp_path) as kb:
        assert sorted(name for name in "ABCD" if keys_of(kb, name)) == sorted(names)
        assert [*kb["f1"].attributes] == kept


def test_each_column_of_further_names_is_split_by_its_own_cells(tmp_path):
    path = write(tmp_path / "names.csv", "id,name,aliases,synonyms\nf1,A,B|C,D; E\n")
    with built(path, tmp_path) as kb:
        assert all(keys_of(kb, name) == ["f1"] for name in "ABCDE")
    with built(path, tmp_path, aliases="synonyms;") as kb:
        assert keys_of(kb, "D") == ["f1"] and kb["f1"].attributes == {"aliases": "B|C"}


@pytest.mark.parametrize("heading", ["Nr", "Lfd. Nr.", "Kundennummer"])
@pytest.mark.parametrize(
    ("numbers", "keys"),
    [
        (("7", "8", "9"), ["7", "8", "9"]), (("7", "8", "7"), ["Lyon", "Nice", "Tours"]),
        (("7", "", "9"), ["Lyon", "Nice", "Tours"]), (("", "", ""), ["Lyon", "Nice", "Tours"]),
    ],
)  # fmt: skip
def test_numbers_are_keys_where_they_are_unique_and_none_is_missing(tmp_path, heading, numbers, keys):
    rows = [f"{number},{name}\n" for number, name in zip(numbers, ("Lyon", "Nice", "Tours"), strict=True)]
    with built(write(tmp_path / "names.csv", f"{heading},Name\n{''.join(rows)},\n"), tmp_path) as kb:
        assert [entity.key for entity in kb.entities()] == keys


def test_numbers_are_no_keys_beside_ids_and_no_names_alone(tmp_path):
    with built(write(tmp_path / "names.csv", "Nr,Name,id\n7,Lyon,f1\n"), tmp_path) as kb:
        assert kb["f1"].attributes == {"Nr": "7"}
    with built(write(tmp_path / "names.csv", "Casino,Name\nA,Lyon\n"), tmp_path, key="") as kb:
        assert kb["Lyon"].attributes == {"Casino": "A"}
    assert refused(write(tmp_path / "names.csv", "Nr,Ort\n7,Lyon\n"), tmp_path).line == 1


@pytest.mark.parametrize(
    ("header", "options", "told"),
    [
        ("id,wat,size", (), True), ("id,wat,size", ("--label", "wat"), False), ("wat,name,size", (), False),
        ("id,wat,size", ("--label", "id"), False), ("id,name,size", ("--aliases", "name"), True),
        ("nombre,wat,size", (), False),
    ],
)  # fmt: skip
def test_a_build_tells_how_to_name_the_column_of_names_where_no_heading_is_known(
    tmp_path, header, options, told
):
    path = write(tmp_path / "names.csv", f"{header}\n1,Lyon,2\n")
    told_first = run("build-kb", "table", path, "--limit", 0, *options).out.splitlines()[0]
    assert ("--label" in told_first) == told


@pytest.mark.parametrize(
    ("cells", "option", "hint"),
    [
        (["Lugdunum, Lyons", "Nizza"], "--aliases=other", "'other, '"),
        (["Lugdunum; Lyons", "Nizza"], "--aliases=other", "'other; '"),
        (["Lugdunum|Lyons", "Nizza"], "--aliases=other", "'other|'"),
        (["里昂、卢格杜努姆", "尼斯"], "--aliases=other", "other、"),
        (["Lugdunum, Lyons", "Nizza, Nica"], "--aliases=other, ", None),
        (["Lugdunum", "", "Nizza"], "--aliases=other", None),
        (["Apple, Inc.", *"abcdefghijk"], "--aliases=other", None),
    ],
)  # fmt: skip
def test_a_build_tells_how_to_split_cells_that_look_like_lists(tmp_path, cells, option, hint):
    rows = "".join(f'{number},n{number},"{cell}"\n' for number, cell in enumerate(cells))
    path = write(tmp_path / "names.csv", f"id,name,other\n{rows}")
    [first, *_] = run("build-kb", "table", path, "--limit", 0, option).out.splitlines()
    assert hint in first if hint else "--aliases" not in first


def test_headings_of_several_words_are_guessed_by_the_last(tmp_path):
    table = 'Employee ID,Full Name,Also known as,Notes\nE1,Ana Ruiz,"Ana, Anita",pays\n'
    path = write(tmp_path / "names.csv", table)
    shown = run("build-kb", "table", path, "--limit", 0, "--home", tmp_path).out.splitlines()
    guess = (
        f"{path}: key from 'Employee ID', label from 'Full Name', aliases from 'Also known as' "
        "(a cell is one name), description from 'Notes'"
    )
    assert shown[0].startswith(guess) and shown[1:] == ["E1: Ana Ruiz; Ana, Anita (pays)"]
    path = write(tmp_path / "more.csv", "product name,parent id\nAle,drinks\n")
    assert (
        "key from 'product name', label from 'product name'"
        in run("build-kb", "table", path, "--limit", 0).out
    )
    error = refused(write(tmp_path / "two.csv", "first name,last name,parent id\nAna,Ruiz,b\n"), tmp_path)
    assert "looks like keys or names" in str(error)


def test_columns_may_be_named_with_the_separator_of_aliases(tmp_path):
    table = "nr;who;alias1;alias2;note\n7;Ada;A. L., Lovelace;Countess;x\n"
    columns = {"key": "nr", "label": "who", "aliases": ["alias1, ", "alias2"], "attribute": ["note"]}
    with built(write(tmp_path / "names.csv", table), tmp_path, **columns) as kb:
        assert [keys_of(kb, name) for name in ("ada", "a. l.", "lovelace", "countess")] == [["7"]] * 4
        assert kb["7"].attributes == {"note": "x"}
        assert "aliases=alias1, " in kb.manifest.options["columns"]


def test_an_empty_name_is_no_column(tmp_path):
    path = write(tmp_path / "names.csv", NAMES)
    with built(path, tmp_path, kind="", attribute="", description="") as kb:
        assert (kb["acme"].kind, kb["acme"].attributes, kb["acme"].description) == ("", {}, "")


def test_without_a_column_of_keys_the_names_are_the_keys(tmp_path):
    with built(write(tmp_path / "names.tsv", "Name\tOther names\nAda\tA;B\n"), tmp_path) as kb:
        assert kb["Ada"].label == "Ada" and keys_of(kb, "b") == ["Ada"]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffid;name;size\r\na;Ann;\"1;2\"\r\n",
        "sep=;\nid;name;size\na;Ann;\"1;2\"\n",
        "id\tname\tsize\na\tAnn\t1;2\n",
        "id|name|size\n\na|Ann|1;2\n||\n",
        '"id","name","size"\n"a","Ann","1;2"\n',
    ],
)  # fmt: skip
def test_tables_as_spreadsheets_write_them_are_read(tmp_path, content):
    with built(write(tmp_path / "names.csv", content), tmp_path) as kb:
        assert len(kb) == 1 and kb["a"].label == "Ann" and kb["a"].attributes == {"size": "1;2"}


def test_a_parquet_file_keeps_numbers_and_lists(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra scale is not installed")
    from pyarrow import parquet

    columns = {"id": [1, 2], "name": ["Ann", None], "aliases": [["A.", "Anny"], []], "age": [3.5, None]}
    parquet.write_table(arrow.table(columns), tmp_path / "names.parquet")
    with built(tmp_path / "names.parquet", tmp_path) as kb:
        assert kb["1"].attributes == {"age": 3.5} and keys_of(kb, "anny") == ["1"]
        assert kb["2"].label == "2"
    parquet.write_table(arrow.table({"id": [1, None], "name": ["a", "b"]}), tmp_path / "bad.parquet")
    assert "row 2: the key, in column 'id', is empty" in str(refused(tmp_path / "bad.parquet", tmp_path))
    write(tmp_path / "cut.parquet", (tmp_path / "names.parquet").read_bytes()[:200])
    assert "is no Parquet file" in str(refused(tmp_path / "cut.parquet", tmp_path))


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("id,name\na,Ann\n,Bob\n", 3, "the key, in column 'id', is empty"),
        ("id,name\na,Ann\nb,Bob\na,Cy\n", 4, "the key 'a' is that of line 2 too: keys are unique"),
        ("name\nAnn\nAnn\n", 3, "name a column of keys with --key"),
        ("id,name\na,Ann,1\n", 2, "expected 2 fields, as the header has them, found 3"),
        ('id,name\na,"Ann\nb,Bob\n', 2, "a quote in the row that begins in line 2 is not closed"),
        ("x,y\n1,2\n", 1, "none of the columns 'x', 'y' looks like keys or names"),
        (",".join(f"c{n}" for n in range(50)), 1, "'c0', .*'c19' and 30 more looks like keys or names"),
        (",,\n1,2,3\n", 1, "the first row names the columns, and this one is empty"),
        ("id,name,x,x\n1,2,3,4\n", 1, "two columns are called 'x'"),
        ("id,name\na,Caf\u00e9\n".encode("latin-1"), 2, "not UTF-8: .*iconv -f LATIN1 -t UTF-8"),
        ("id,name\n".encode("utf-16"), 1, "this is UTF-16: save the file as UTF-8"),
        (b"PK\x03\x04\x00\x00", None, "is a workbook of a spreadsheet program: save the sheet as CSV"),
        (b"", 1, "is empty: there is nothing to read"),
    ],
)
def test_what_is_wrong_in_a_table_is_said_with_its_line(tmp_path, content, line, message):
    error = refused(write(tmp_path / "names.csv", content), tmp_path)
    assert error.line == line
    with pytest.raises(SourceError, match=message):
        raise error


def test_a_column_that_is_not_there_is_refused(tmp_path):
    path = write(tmp_path / "names.csv", NAMES)
    error = refused(path, tmp_path, label="nmae")
    assert "has no column 'nmae' for label; there are: 'id', 'name'" in str(error)
    assert "no column 'aliasesx'" in str(refused(path, tmp_path, aliases="aliasesx"))
    with pytest.raises(UsageError, match="key, label"):
        kgkit.build_kb("table", path, home=tmp_path, columns={"name": "name"})
    with pytest.raises(UsageError, match=r"key.*id, name"):
        kgkit.build_kb("table", path, home=tmp_path, columns={"key": ["id", "name"]})
    with pytest.raises(UsageError, match="jsonl"):
        kgkit.build_kb("jsonl", path, home=tmp_path, columns={"key": "id"})


def test_the_guess_is_shown_before_the_build_and_alone(tmp_path):
    path = write(tmp_path / "names.csv", NAMES)
    guess = (
        f"{path}: key from 'id', label from 'name', aliases from 'aliases' (split at '|'), description from "
        "'description', kind from 'type', attributes from 'founded'"
    )
    shown = run("build-kb", "table", path, "--limit", 0, "--home", tmp_path)
    lines = [guess, "acme: Acme Corporation; Acme; The Acme (A maker, of anvils)", "bolt: Bolt Ltd"]
    assert (shown.code, shown.out.splitlines()) == (0, lines)
    assert not (tmp_path / "kbs").exists()
    done = run(
        "build-kb", "table", path, "--name", "names", "--aliases", "aliases|", "--home", tmp_path,
    )  # fmt: skip
    assert done.code == 0 and done.err.splitlines()[0] == guess
    assert run("build-kb", "wordnet", "--limit", 0, "--home", tmp_path).out == (
        "the builder wordnet has no preview\n"
    )


SHIPS = (
    "id,name,also,seen,tons,owner,sails with\n"
    "k,Kittiwake,Kitty,9,120,Ferry Company,a; b\n"
    "a,Alcedo,Kitty,1,80.5,co,\n"
    "b,Bittern,,,,,Kittiwake\n"
    "co,Ferry Company,,0,,,\n"
)
SHIP_COLUMNS = {"aliases": "also", "count": "seen", "number": "tons", "fact": ["owner", "sails with; "]}


def test_counts_make_priors(tmp_path):
    with built(write(tmp_path / "ships.csv", SHIPS), tmp_path, **SHIP_COLUMNS) as kb:
        assert keys_of(kb, "kitty") == ["k", "a"]
        priors = [candidate.prior for candidate in kb.decode(kb.candidates("kitty"))]
        assert priors == pytest.approx([10 / 12, 2 / 12])  # 9 and 1, each smoothed by 1


def test_a_column_called_count_is_taken_for_counts_and_an_empty_name_for_none(tmp_path):
    path = write(tmp_path / "names.csv", "id,name,frequency\na,Ann,3\nb,Ann,0\n")
    with built(path, tmp_path) as kb:
        assert [candidate.prior for candidate in kb.decode(kb.candidates("ann"))] == pytest.approx([0.8, 0.2])
        assert kb["a"].attributes == {}
    with built(path, tmp_path, count="", number="frequency") as kb:
        assert kb["a"].attributes == {"frequency": 3} and kb["b"].attributes == {"frequency": 0}


def test_numbers_are_attributes(tmp_path):
    with built(write(tmp_path / "ships.csv", SHIPS), tmp_path, **SHIP_COLUMNS) as kb:
        assert [kb[key].attributes.get("tons") for key in "kab"] == [120, 80.5, None]
        assert isinstance(kb["k"].attributes["tons"], int)
    with built(write(tmp_path / "ships.csv", SHIPS), tmp_path) as kb:
        assert kb["k"].attributes["tons"] == "120"


def test_a_column_may_be_counts_and_numbers(tmp_path):
    path = write(tmp_path / "ships.csv", SHIPS)
    with built(path, tmp_path, **{**SHIP_COLUMNS, "number": ["tons", "seen"]}) as kb:
        assert kb["k"].attributes == {"tons": 120, "seen": 9}
        assert keys_of(kb, "kitty") == ["k", "a"]


def test_facts_name_rows_by_key_or_label(tmp_path):
    with built(write(tmp_path / "ships.csv", SHIPS), tmp_path, **SHIP_COLUMNS) as kb:
        facts = [
            (key, relation, neighbor.key)
            for key in ("k", "a", "b")
            for relation in ("owner", "sails with")
            for neighbor in kb.neighbors(key, relation)
        ]
        assert sorted(facts) == [
            ("a", "owner", "co"), ("b", "sails with", "k"), ("k", "owner", "co"),
            ("k", "sails with", "a"), ("k", "sails with", "b"),
        ]  # fmt: skip
        assert kb["k"].attributes == {"tons": 120}


def test_a_fact_about_nothing_in_the_table_is_left_out_and_reported(tmp_path):
    path = write(tmp_path / "ships.csv", "id,name,owner\na,Alcedo,nobody\nb,Bittern,Alcedo\n")
    done = run("build-kb", "table", path, "--name", "ships", "--fact", "owner", "--home", tmp_path)
    assert done.code == 0
    assert "dropped: 1 × triple with an unknown end: a owner nobody" in done.err
    assert "facts from 'owner'" in done.err


def test_a_label_of_several_rows_is_no_object(tmp_path):
    path = write(tmp_path / "names.csv", "id,name,boss\na,Ann,\nb,Ann,\nc,Cy,Ann\n")
    message = str(refused(path, tmp_path, fact="boss"))
    assert "'Ann', in column 'boss', is the label of 2 rows (a, b): write the key" in message


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("many,1", "'many', in column 'seen', is no number: write it as 1234.5"),
        ('"1,5",1', "'1,5', in column 'seen', is no number"),
        ("-1,1", "the count -1, in column 'seen', is not from 0 to"),
        ("1,nan", "'nan', in column 'tons', is no number"),
        ("1,12 t", "'12 t', in column 'tons', is no number"),
    ],
)
def test_what_is_no_number_is_refused_with_its_line(tmp_path, cells, message):
    path = write(tmp_path / "names.csv", f"id,name,seen,tons\na,Ann,1,1\nb,Bob,{cells}\n")
    error = refused(path, tmp_path, count="seen", number="tons")
    assert error.line == 3 and message in str(error)


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), (" 0012 ", 12), ("-3", -3), ("2.50", 2.5), ("1e3", 1000.0), ("+4", 4)]
)
def test_numbers_as_people_write_them(tmp_path, text, number):
    path = write(tmp_path / "names.csv", f"id,name,tons\na,Ann,{text}\n")
    with built(path, tmp_path, number="tons") as kb:
        assert kb["a"].attributes == {"tons": number}


def test_counts_facts_and_numbers_are_options_of_the_command(tmp_path):
    path = write(tmp_path / "ships.csv", SHIPS)
    done = run(
        "build-kb", "table", path, "--name", "ships", "--aliases", "also", "--count", "seen",
        "--number", "tons",
        "--fact", "owner", "--fact", "sails with; ", "--home", tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "counts from 'seen', facts from 'owner', facts from 'sails with' (split at '; ')" in done.err
    assert "numbers from 'tons'" in done.err and "4 entities, 5 triples" in done.out


def test_parquet_gives_counts_and_numbers_as_they_are(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra scale is not installed")
    from pyarrow import parquet

    columns = {
        "id": ["a", "b"],
        "name": ["Ann", "Ann"],
        "count": [3, 0],
        "age": [3.5, None],
        "boss": [["b"], []],
    }
    parquet.write_table(arrow.table(columns), tmp_path / "names.parquet")
    with built(tmp_path / "names.parquet", tmp_path, fact="boss", number="age") as kb:
        assert kb["a"].attributes == {"age": 3.5} and kb["b"].attributes == {}
        assert [neighbor.key for neighbor in kb.neighbors("a")] == ["b"]
        assert keys_of(kb, "ann") == ["a", "b"]

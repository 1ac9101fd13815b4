"""Small knowledge bases of names, built of tables, for the joint linker."""

import pytest

from tests.cli_helpers import run

PEOPLE = """id,name,aliases,note,type
hope,Hope Ferrars,Hope,schoolteacher in Tarnbeck,person
june,June Okafor,June,nurse at the infirmary,person
mark,Mark Tollund,Mark,boatbuilder of the lower quay,person
rose,Rose Adeyemi,Rose,gardener at Ashcombe House,person
tarnbeck,Tarnbeck,,village on the river Tarn,place
reading,Reading,,town in Berkshire,place
tarn,Tarn Mills,the Mills,cotton mill in Tarnbeck,company
"""

PLACES = """key,name,within,kind
Ohio,Ohio,,region
Maine,Maine,,region
Texas,Texas,,region
Italy,Italy,,country
Milford-OH,Milford,Ohio,city
Milford-ME,Milford,Maine,city
Milford-TX,Milford,Texas,city
Florence,Florence,Italy,city
Paris-TX,Paris,Texas,city
Paris-ME,Paris,Maine,city
"""

GERMAN = """id,name,aliases,note,type
koch,Wilhelm Koch,Koch,Tischler in Ahlbeck,Person
bauer,Anna Bauer,Bauer,Lehrerin,Person
essen,Essen,,Stadt im Ruhrgebiet,Ort
ahlbeck,Ahlbeck,,Dorf an der Küste,Ort
"""

CHINESE = """id,name,note,type
nanjing,南京市,江苏的城市,地点
bridge,长江大桥,长江上的桥,地点
jiang,江大桥,市长,人物
dazhong,大众,汽车品牌,品牌
"""


def build_table(folder, name, table, *options):
    """Build a knowledge base of a table in the home *folder*."""
    path = folder / f"{name}.csv"
    path.write_text(table, encoding="utf-8")
    done = run("build-kb", "table", path, "--name", name, "--home", folder, "--quiet", *options)
    assert done.code == 0, done.err


@pytest.fixture(scope="session")
def names_home(tmp_path_factory):
    """A home with the knowledge bases `people`, `places`, `german` and `chinese`: not to be changed."""
    home = tmp_path_factory.mktemp("names")
    about = ("--description", "note", "--kind", "type")
    build_table(home, "people", PEOPLE, "--aliases", "aliases|", *about, "--language", "en")
    build_table(home, "places", PLACES, "--kind", "kind", "--fact", "within", "--language", "en")
    build_table(home, "german", GERMAN, "--aliases", "aliases|", *about, "--language", "de")
    build_table(home, "chinese", CHINESE, *about, "--language", "zh")
    return home

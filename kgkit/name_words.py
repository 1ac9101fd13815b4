"""Words that stand in and beside names: titles, months, states.

In lower case. Abbreviations whose full stop ends no sentence are in `kgkit.text`: how surfaces are folded
depends on them, so that list stays as it is.
"""

from typing import Final

ADDRESSES: Final = frozenset(
    "dame docteur doktor don dottor doña dr frau fräulein herr herrn hon madame meneer mevrouw miss mlle "
    "mme monsieur mr mrs ms mx prof professor rev reverend señor señora signor signora sir sr sra".split()
)
"""Forms of address: without one, a name is the same."""

RANKS: Final = frozenset(
    "adm admiral ambassador archbishop baron bishop bundeskanzler bundeskanzlerin capt captain cardinal "
    "chancellor coach col colonel count countess detective doctor duchess duke emperor empress father fr "
    "gen general gov governor graf inspector judge justice kanzler kanzlerin king lady lieutenant lord lt "
    "maj major mayor minister pope premier pres president prince princess präsident queen secretary sen "
    "senator sergeant sgt".split()
)
"""Offices and ranks, as they stand before names."""

KIN: Final = frozenset("aunt brother cousin saint sister st uncle".split())
"""Kin and saints: they stand before names, and are part of others, as of *St Louis*."""

WOMEN: Final = frozenset(
    "aunt bundeskanzlerin countess dame doña duchess empress frau fräulein kanzlerin lady madame mevrouw "
    "miss mlle mme mrs ms princess queen señora signora sister sra".split()
)
"""Those of all three that only women have."""

MONTHS: Final = tuple(
    "january february march april may june july august september october november december".split()
)
WEEKDAYS: Final = tuple("monday tuesday wednesday thursday friday saturday sunday".split())

REGIONS: Final = dict(
    each.split(maxsplit=1)
    for each in (
        "al alabama,ak alaska,az arizona,ar arkansas,ca california,co colorado,ct connecticut,"
        "dc district of columbia,de delaware,fl florida,ga georgia,hi hawaii,id idaho,il illinois,in indiana,"
        "ia iowa,ks kansas,ky kentucky,la louisiana,me maine,md maryland,ma massachusetts,mi michigan,"
        "mn minnesota,ms mississippi,mo missouri,mt montana,ne nebraska,nv nevada,nh new hampshire,"
        "nj new jersey,nm new mexico,ny new york,nc north carolina,nd north dakota,oh ohio,ok oklahoma,"
        "or oregon,pa pennsylvania,ri rhode island,sc south carolina,sd south dakota,tn tennessee,tx texas,"
        "ut utah,vt vermont,va virginia,wa washington,wv west virginia,wi wisconsin,wy wyoming,ab alberta,"
        "bc british columbia,mb manitoba,nb new brunswick,nl newfoundland and labrador,ns nova scotia,"
        "on ontario,pe prince edward island,pq quebec,qc quebec,sk saskatchewan,yt yukon"
    ).split(",")
)
"""States of the USA and provinces of Canada by their codes."""

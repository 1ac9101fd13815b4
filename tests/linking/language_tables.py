"""Tables of twenty rows, a name and its description, in one language each."""

from typing import Final

_TABLES: Final = {
    "en": """
Ada Vale: teacher at the school in Tarnbeck | Tarnbeck: village on the river Ull
Old Mill: watermill that was built in 1804 | Rose Inn: public house by the bridge
Hugo Marsh: baker and father of three | Ferrars & Sons: maker of clocks from Hull
Long Wood: forest to the north of the village | St Bride's: parish church with a square tower
Tom Reed: miller, died in 1911 | The Herald: weekly paper for the valley
Nell Price: nurse who kept a diary | Harbour Board: body that runs the port
Ull: river, rises in the hills | Low Farm: farm of the Reed family | Chapel Lane: street behind the church
Ruth Cole: singer, sister of Ada Vale | Market Hall: hall where the council meets
Skua: ferry to the mainland | Otto Frey: doctor and collector of beetles
Spring Fair: held on the green each May""",
    "de": """
Wilhelm Koch: Tischler in der Altstadt | Ahlbeck: Seebad auf Usedom
Anna Bauer: Lehrerin an der Dorfschule | Alte Mühle: Wassermühle, die 1804 gebaut wurde
Zum Anker: Gasthaus am Hafen | Regen: Stadt im Bayerischen Wald | Hafenamt: Behörde für den Hafen
Otto Frei: Arzt und Sammler von Käfern | Bote: Wochenblatt aus dem Tal
Kirchgasse: Straße hinter der Kirche | Seeschwalbe: Fähre zum Festland
Marktplatz: Platz, auf dem die Stände stehen | Ruth Kohl: Sängerin, Schwester von Anna Bauer
Frühlingsfest: Fest im Mai | Uhlenbach: Bach, der in die Elbe fließt | Bäckerei Sommer: Laden mit Café
Turnverein: Verein, gegründet 1887 | Forst: Wald nördlich des Dorfes
St. Marien: Pfarrkirche mit einem Turm | Niederhof: Hof der Familie Koch""",
    "fr": """
Beaune: ville de la Côte-d'Or | Jean Moreau: boulanger et père de trois enfants
Vieux Moulin: moulin à eau construit en 1804 | Au Soleil d'Or: auberge près du pont
Anne Petit: institutrice à l'école du village | Le Courrier: journal de la vallée
Bois Long: forêt au nord du bourg | Saint-Martin: église paroissiale avec une tour carrée
Paul Roche: meunier, mort en 1911 | La Mouette: bac qui mène à l'île
Rue des Lilas: rue derrière l'église | Ferme Basse: ferme de la famille Roche
Louise Blanc: chanteuse, sœur d'Anne Petit | Halle: bâtiment où se tient le marché
Ulle: rivière qui naît dans les collines | Hugo Faure: médecin et collectionneur
Fête du Printemps: fête sur la place, en mai | Bureau du port: service qui gère le port
Maison Faure: fabrique d'horloges | Club nautique: association fondée en 1887""",
    "es": """
Santos: club de fútbol junto al puerto | Juan Molina: panadero y padre de tres hijos
Molino Viejo: molino de agua construido en 1804 | La Posada: fonda cerca del puente
Ana Vega: maestra en la escuela del pueblo | El Correo: periódico del valle
Bosque Largo: monte al norte de la villa | San Martín: iglesia con una torre cuadrada
Pablo Roca: molinero, murió en 1911 | La Gaviota: barca que va a la isla
Calle Lirio: calle detrás de la iglesia | Granja Baja: granja de la familia Roca
Luisa Blanco: cantante, hermana de Ana Vega | Lonja: edificio donde se vende el pescado
Ulla: río que nace en las colinas | Hugo Ferrer: médico y coleccionista
Feria de mayo: fiesta en la plaza | Junta del puerto: organismo que lo administra
Casa Ferrer: taller de relojes | Club náutico: asociación fundada en 1887""",
    "pt": """
Santos: clube de futebol junto ao porto | João Moreira: padeiro e pai de três filhos
Moinho Velho: moinho de água construído em 1804 | A Pousada: estalagem perto da ponte
Ana Veiga: professora na escola da vila | O Correio: jornal do vale
Mata Longa: floresta ao norte da vila | São Martinho: igreja com uma torre quadrada
Paulo Rocha: moleiro, morreu em 1911 | A Gaivota: barco que vai para a ilha
Rua do Lírio: rua atrás da igreja | Quinta Baixa: quinta da família Rocha
Luísa Branco: cantora, irmã de Ana Veiga | Lota: edifício onde se vende o peixe
Ul: rio que nasce nas serras | Hugo Ferreira: médico e colecionador | Festa de Maio: festa na praça
Junta do porto: entidade que o gere | Casa Ferreira: oficina de relógios
Clube náutico: associação fundada em 1887""",
    "it": """
Como: città sul lago | Gianni Moro: fornaio e padre di tre figli
Mulino Vecchio: mulino ad acqua costruito nel 1804 | La Locanda: osteria vicino al ponte
Anna Villa: maestra nella scuola del paese | Il Corriere: giornale della valle
Bosco Lungo: foresta a nord del borgo | San Martino: chiesa con una torre quadrata
Paolo Rocca: mugnaio, morto nel 1911 | Il Gabbiano: traghetto per l'isola
Via dei Gigli: strada dietro la chiesa | Cascina Bassa: fattoria della famiglia Rocca
Luisa Bianco: cantante, sorella di Anna Villa | Loggia: edificio dove si tiene il mercato
Ulla: fiume che nasce sui colli | Ugo Ferri: medico e collezionista | Festa di maggio: festa in piazza
Capitaneria: ufficio che gestisce il porto | Ditta Ferri: fabbrica di orologi
Circolo nautico: associazione fondata nel 1887""",
    "nl": """
Delft: stad aan de Schie | Jan Molenaar: bakker en vader van drie kinderen
Oude Molen: watermolen, gebouwd in 1804 | De Zon: herberg bij de brug | Anna Visser: juf op de dorpsschool
De Bode: weekblad voor het dal | Lange Bos: bos ten noorden van het dorp
Sint-Maarten: kerk met een vierkante toren | Piet de Roos: molenaar, overleden in 1911
De Meeuw: veerboot naar het eiland | Lelielaan: straat achter de kerk
Lage Hoeve: boerderij van de familie De Roos | Loes Wit: zangeres, zus van Anna Visser
Waag: gebouw waar de markt is | Ulle: rivier die in de heuvels ontspringt | Hugo Smit: arts en verzamelaar
Lentefeest: feest op het plein | Havendienst: dienst die de haven beheert | Firma Smit: maker van klokken
Zeilclub: vereniging, opgericht in 1887""",
    "fi": """
Jyväskylä: kaupunki Keski-Suomessa | Matti Mylly: leipuri ja kolmen lapsen isä
Vanha mylly: vesimylly, joka on rakennettu vuonna 1804 | Aurinko: majatalo sillan vieressä
Anna Virta: kylän koulun opettaja | Sanomat: laakson viikkolehti | Pitkämetsä: metsä kylän pohjoispuolella
Pyhän Martin kirkko: kirkko, jossa on torni | Paavo Kivi: mylläri, kuoli 1911 | Lokki: lautta saarelle
Liljakuja: katu kirkon takana | Alatalo: Kiven suvun tila | Liisa Valkea: laulaja, Anna Virran sisar
Kauppahalli: talo, jossa tori on | Ullanjoki: joki, joka alkaa kukkuloilta
Hugo Seppä: lääkäri ja keräilijä | Kevätjuhla: juhla torilla toukokuussa
Satamalaitos: virasto, joka hoitaa satamaa | Seppä ja pojat: kellojen tekijä
Pursiseura: seura, perustettu 1887""",
    "sv": """
Lund: stad i Skåne | Johan Kvarn: bagare och far till tre barn
Gamla kvarnen: vattenkvarn som byggdes 1804 | Solen: värdshus vid bron | Anna Ström: lärare vid byns skola
Budet: veckotidning för dalen | Långskogen: skog norr om byn | Sankt Martin: kyrka med ett fyrkantigt torn
Per Sten: mjölnare, dog 1911 | Måsen: färja till ön | Liljegatan: gata bakom kyrkan
Nedergården: gård som ägs av familjen Sten | Lisa Vit: sångerska, syster till Anna Ström
Saluhallen: hus där torget är | Ullån: å som rinner från kullarna | Hugo Smed: läkare och samlare
Vårfesten: fest på torget i maj | Hamnkontoret: kontor som sköter hamnen
Smed och söner: tillverkare av klockor | Segelsällskapet: förening från 1887""",
    "pl": """
Toruń: miasto nad Wisłą | Jan Młynarz: piekarz i ojciec trojga dzieci
Stary Młyn: młyn wodny, który zbudowano w 1804 | Pod Słońcem: gospoda przy moście
Anna Wilk: nauczycielka w szkole na wsi | Goniec: tygodnik z doliny | Długi Las: las na północ od wsi
Święty Marcin: kościół z wieżą | Paweł Skała: młynarz, zmarł w 1911 | Mewa: prom na wyspę
Liliowa: ulica za kościołem | Dolny Dwór: gospodarstwo rodziny Skała
Luiza Biała: śpiewaczka, siostra Anny Wilk | Hala: budynek, w którym jest targ
Ula: rzeka, która płynie ze wzgórz | Hugo Kowal: lekarz i zbieracz | Święto wiosny: zabawa na rynku w maju
Zarząd portu: urząd do spraw portu | Kowal i synowie: wytwórnia zegarów
Klub żeglarski: klub założony w 1887""",
    "tr": """
Bursa: Marmara'da bir şehir | Ali Değirmen: fırıncı ve üç çocuk babası
Eski Değirmen: 1804 yılında yapılan su değirmeni | Güneş Hanı: köprünün yanında bir han
Ayşe Dere: köy okulunda öğretmen | Haberci: vadi için haftalık gazete
Uzun Orman: köyün kuzeyinde bir orman | Ulu Camii: iki minareli cami
Mehmet Kaya: değirmenci, 1911'de öldü | Martı: adaya giden vapur | Zambak Sokak: caminin arkasında sokak
Aşağı Çiftlik: Kaya ailesinin çiftliği | Leyla Ak: şarkıcı ve Ayşe Dere'nin kız kardeşi
Kapalıçarşı: pazarın olduğu bina | Ula: tepelerden gelen bir nehir | Hasan Demir: doktor ve koleksiyoncu
Bahar Bayramı: mayısta meydanda olan şenlik | Liman İdaresi: limanı yöneten kurum
Demir ve Oğulları: saat yapan firma | Yelken Kulübü: 1887 yılında kurulan dernek""",
    "cs": """
Tábor: město v jižních Čechách | Jan Mlynář: pekař a otec tří dětí
Starý mlýn: vodní mlýn, který byl postaven v roce 1804 | U Slunce: hostinec u mostu
Anna Vlková: učitelka ve vesnické škole | Posel: týdeník pro celé údolí | Dlouhý les: les na sever od vsi
Svatý Martin: kostel s věží | Pavel Skála: mlynář, zemřel v roce 1911 | Racek: přívoz na ostrov
Liliová: ulice za kostelem | Dolní dvůr: statek rodiny Skálovy | Luisa Bílá: zpěvačka a sestra Anny Vlkové
Tržnice: budova, ve které je trh | Ula: řeka, která pramení v kopcích | Hugo Kovář: lékař a sběratel
Jarní slavnost: slavnost na náměstí v květnu | Správa přístavu: úřad, který řídí přístav
Kovář a synové: výroba hodin | Jachtklub: spolek založený v roce 1887""",
    "la": """
Roma: urbs Italiae ad Tiberim sita | Marcus Pistor: pistor et pater trium liberorum
Mola Vetus: mola quae anno 1804 aedificata est | Ad Solem: taberna apud pontem
Anna Lupa: magistra in schola vici | Nuntius: acta quae in valle leguntur
Silva Longa: silva a septentrione vici | Sanctus Martinus: ecclesia cum turri
Paulus Petra: molitor, qui anno 1911 mortuus est | Larus: navis ad insulam
Via Liliorum: via post ecclesiam | Villa Inferior: villa gentis Petrae
Aloisia Alba: cantrix et soror Annae Lupae | Macellum: aedificium ubi forum est
Ulla: flumen quod ex collibus oritur | Hugo Faber: medicus et collector | Feriae vernae: festum in foro
Curia Portus: collegium quod portum regit | Faber et filii: fabri horologiorum
Sodalitas navium: societas anno 1887 condita""",
    "da": """
Ribe: by i Sønderjylland | Jens Møller: bager og far til tre børn
Den gamle mølle: vandmølle, der blev bygget i 1804 | Solen: kro ved broen
Anna Strøm: lærer på skolen i byen | Budet: ugeavis for dalen | Langskoven: skov nord for byen
Sankt Morten: kirke med et firkantet tårn | Per Sten: møller, døde i 1911 | Mågen: færge til øen
Liljegade: gade bag kirken | Nedergården: gård, som ejes af familien Sten
Lise Hvid: sanger og søster til Anna Strøm | Torvehallen: hus, hvor torvet er
Ulleåen: å, der løber fra bakkerne | Hugo Smed: læge og samler | Forårsfesten: fest på torvet i maj
Havnekontoret: kontor, der styrer havnen | Smed og sønner: fabrik, der laver ure
Sejlklubben: forening fra 1887""",
    "nb": """
Bergen: by på Vestlandet | Jens Møller: baker og far til tre barn
Den gamle møllen: vannmølle som ble bygd i 1804 | Solen: kro ved broen
Anna Strøm: lærer på skolen i bygda | Budet: ukeavis for dalen | Langskogen: skog nord for bygda
Sankt Morten: kirke med et firkantet tårn | Per Stein: møller, døde i 1911 | Måken: ferge til øya
Liljegata: gate bak kirken | Nedergården: gård som eies av familien Stein
Lise Hvit: sanger og søster av Anna Strøm | Torghallen: hus der torget er | Ulleåa: å som renner fra åsene
Hugo Smed: lege og samler | Vårfesten: fest på torget i mai | Havnekontoret: kontor som styrer havna
Smed og sønner: fabrikk som lager klokker | Seilklubben: forening fra 1887""",
    "hu": """
Eger: város a Mátra mellett | Molnár János: pék és három gyermek apja
Régi malom: vízimalom, amely 1804-ben épült | Napfény: fogadó a híd mellett
Farkas Anna: tanító az iskolában | Hírnök: a völgy hetilapja | Hosszú erdő: erdő a falu mellett
Szent Márton: templom és torony | Szikla Pál: molnár, aki 1911-ben halt meg | Sirály: komp a szigetre
Liliom utca: utca a templom mögött | Alsó major: a Szikla család majorja
Fehér Lujza: énekes, Farkas Anna húga | Vásárcsarnok: épület, ahol a piac van
Ulla: folyó, amely a dombok között ered | Kovács Hugó: orvos és gyűjtő | Tavaszi ünnep: ünnep a téren
Kikötőhivatal: hivatal, amely a kikötőt vezeti | Kovács és fiai: egy órás műhely
Vitorlás klub: egyesület, 1887""",
    "ro": """
Sibiu: oraș din Transilvania | Ion Moraru: brutar și tată a trei copii
Moara Veche: moară de apă care a fost construită în 1804 | La Soare: han lângă pod
Ana Lupu: învățătoare la școala din sat | Curierul: ziar pentru vale
Pădurea Lungă: pădure la nord de sat | Sfântul Martin: biserică cu un turn
Pavel Stan: morar, a murit în 1911 | Pescărușul: bac spre insulă
Strada Crinului: stradă din spatele bisericii | Conacul de Jos: ferma familiei Stan
Luiza Albu: cântăreață și sora Anei Lupu | Hala: clădirea în care este piața
Ula: râu care izvorăște din dealuri | Hugo Fieraru: medic și colecționar
Sărbătoarea primăverii: sărbătoare în piață | Oficiul portului: birou care conduce portul
Fieraru și fiii: fabrică de ceasuri | Clubul nautic: asociație din 1887""",
    "ca": """
Girona: ciutat a la vora de l'Onyar | Joan Moliner: forner i pare de tres fills
Molí Vell: molí d'aigua construït el 1804 | Cal Sol: fonda a prop del pont
Anna Llop: mestra a l'escola del poble | El Correu: diari de la vall | Bosc Llarg: bosc al nord de la vila
Sant Martí: església amb una torre quadrada | Pau Roca: moliner, va morir el 1911
La Gavina: barca que va a l'illa | Carrer del Lliri: carrer darrere l'església
Mas Baix: masia de la família Roca | Lluïsa Blanc: cantant i germana d'Anna Llop
Llotja: edifici on es ven el peix | Ulla: riu que neix als turons | Hug Ferrer: metge i col·leccionista
Festa de maig: festa a la plaça | Junta del port: organisme que el governa
Casa Ferrer: taller de rellotges | Club nàutic: associació fundada el 1887""",
    "gl": """
Lugo: cidade na beira do Miño | Xoán Muíño: panadeiro e pai de tres fillos
Muíño Vello: muíño de auga construído en 1804 | A Pousada: fonda preto da ponte
Ana Lobo: mestra na escola da vila | O Correo: xornal do val | Fraga Longa: bosque ao norte da vila
San Martiño: igrexa cunha torre | Paulo Rocha: muiñeiro, morreu en 1911 | A Gaivota: barca que vai á illa
Rúa do Lirio: rúa detrás da igrexa | Granxa Baixa: granxa da familia Rocha
Luísa Branco: cantante, irmá de Ana Lobo | Lonxa: edificio onde se vende o peixe
Ulla: río que nace nos montes | Hugo Ferreiro: médico e coleccionista | Festa de maio: festa na praza
Xunta do porto: organismo que o administra | Casa Ferreiro: taller de reloxos
Club náutico: asociación fundada en 1887""",
    "et": """
Pärnu: linn mere ääres | Jaan Mölder: pagar ja kolme lapse isa | Vana veski: vesiveski, mis ehitati 1804
Päike: kõrts silla juures | Anna Hunt: õpetaja küla koolis | Sõnumid: oru nädalaleht
Pikk mets: mets külast põhjas | Püha Martin: kirik, millel on torn | Paul Kivi: mölder, suri 1911
Kajakas: parvlaev saarele | Liilia tänav: tänav kiriku taga | Alumine talu: Kivi suguvõsa talu
Liisa Valge: laulja ja Anna Hundi õde | Turuhoone: maja, kus on turg
Ulla jõgi: jõgi, mis algab küngastelt | Hugo Sepp: arst ja koguja | Kevadpidu: pidu väljakul
Sadamaamet: amet, mis juhib sadamat | Sepp ja pojad: kellade tegija | Jahtklubi: selts, asutatud 1887""",
    "hr": """
Zadar: grad na moru | Ivan Mlinar: pekar i otac troje djece
Stari mlin: mlin na vodu koji je sagrađen 1804. | Kod Sunca: gostionica uz most
Ana Vuk: učiteljica u školi na selu | Glasnik: tjednik za dolinu | Duga šuma: šuma na sjeveru sela
Sveti Martin: crkva s tornjem | Pavao Stijena: mlinar, umro je 1911. | Galeb: trajekt za otok
Ljiljanova: ulica iza crkve | Donji dvor: imanje obitelji Stijena
Lujza Bijela: pjevačica i sestra Ane Vuk | Tržnica: zgrada u kojoj je tržnica
Ula: rijeka koja izvire u brdima | Hugo Kovač: liječnik i sakupljač
Proljetna svečanost: svečanost na trgu | Lučka uprava: ured koji vodi luku
Kovač i sinovi: tvornica satova | Jedriličarski klub: udruga od 1887.""",
    "sk": """
Nitra: mesto na západe Slovenska | Ján Mlynár: pekár a otec troch detí
Starý mlyn: vodný mlyn, ktorý bol postavený v roku 1804 | U Slnka: hostinec pri moste
Anna Vlková: učiteľka v škole na dedine | Posol: týždenník pre údolie | Dlhý les: les na sever od dediny
Svätý Martin: kostol s vežou | Pavol Skala: mlynár, zomrel v roku 1911 | Čajka: kompa na ostrov
Ľaliová: ulica za kostolom | Dolný dvor: majer rodiny Skala | Lujza Biela: speváčka a sestra Anny Vlkovej
Tržnica: budova, v ktorej je trh | Ula: rieka, ktorá pramení v kopcoch | Hugo Kováč: lekár a zberateľ
Jarná slávnosť: slávnosť na námestí | Správa prístavu: úrad, ktorý riadi prístav
Kováč a synovia: výroba hodín | Jachtklub: spolok založený v roku 1887""",
    "id": """
Solo: kota di Jawa Tengah | Budi Santoso: tukang roti dan ayah dari tiga anak
Kincir Lama: kincir air yang dibangun pada 1804 | Losmen Surya: penginapan di dekat jembatan
Ani Wulan: guru di sekolah desa | Berita: koran untuk lembah | Hutan Panjang: hutan di utara desa
Masjid Agung: masjid dengan dua menara | Joko Batu: tukang giling yang meninggal pada 1911
Camar: kapal ke pulau | Jalan Lili: jalan di belakang masjid | Kebun Bawah: kebun milik keluarga Batu
Lia Putih: penyanyi dan adik Ani Wulan | Pasar Besar: gedung tempat pasar
Ula: sungai yang mengalir dari bukit | Hadi Besi: dokter dan kolektor | Pesta Mei: pesta di alun-alun
Kantor Pelabuhan: kantor yang mengelola pelabuhan | Besi dan Anak: pembuat jam
Klub Layar: perkumpulan dari 1887""",
    "cy": """
Bala: tref ar lan llyn | Ifan Melin: pobydd a thad i dri o blant | Hen Felin: melin ddŵr a godwyd yn 1804
Yr Haul: tafarn ger y bont | Ann Blaidd: athrawes yn ysgol y pentref | Y Negesydd: papur y dyffryn
Coed Hir: coedwig i'r gogledd o'r pentref | Sant Martin: eglwys gyda thŵr
Pawl Craig: melinydd, bu farw yn 1911 | Gwylan: fferi i'r ynys | Lôn Lili: stryd y tu ôl i'r eglwys
Fferm Isaf: fferm teulu Craig | Lowri Wen: cantores a chwaer Ann Blaidd
Neuadd: adeilad lle mae'r farchnad | Ulla: afon o'r bryniau | Huw Gof: meddyg a chasglwr
Gŵyl Fai: gŵyl ar y sgwâr | Bwrdd yr harbwr: corff sy'n rhedeg y porthladd
Gof a'i Feibion: gwneuthurwyr clociau | Clwb hwylio: cymdeithas o 1887""",
}

TABLES: Final = {
    language: [tuple(row.strip().split(": ", 1)) for row in table.replace("\n", "|").split("|")]
    for language, table in _TABLES.items()
}
"""Rows by the BCP 47 tag of their language; Welsh, `cy`, is none that kgkit knows."""

// Corrections of links: made with the mouse or by keyboard, kept in this browser, downloaded as a file.
//
// They are sent with the text, and the service applies them: so they hold for every text that is linked here.
// A correction is a row as `kgkit link --corrections` reads it, and the label of its entity.
"use strict";

const STORED = "kgkit-corrections";
const COLUMNS = ["text", "entity", "label", "document", "start", "before", "after", "kb"];
const SENT = COLUMNS.filter(name => name !== "label");
const CONTEXT = 32;

const form = document.querySelector("form.panel");
const panel = document.getElementById("corrections");

// -- rows -----------------------------------------------------------------------

function rows() {
  try { return JSON.parse(localStorage.getItem(STORED)) || []; } catch { return []; }
}

function store(changed) {
  localStorage.setItem(STORED, JSON.stringify(changed));
}

const flat = text => text.replace(/\s+/g, " ").trim();
const about = row => JSON.stringify(["text", "document", "start", "before", "after", "kb"].map(name => row[name] ?? ""));
const isPlace = row => Boolean(row.before || row.after || row.start !== undefined);

// The rows that may be about a text, as JSON; empty if there are none.
function sent(kb, text) {
  const whole = flat(text);
  const some = rows().filter(row => row.kb === kb && whole.includes(row.text));
  if (!some.length) return "";
  return JSON.stringify(some.map(row => Object.fromEntries(
    SENT.filter(name => row[name] !== undefined).map(name => [name, row[name]]))));
}

form.addEventListener("submit", () => {
  form.elements.corrections.value = sent(form.elements.kb.value, form.elements.text.value);
});

// A dropped text file is the text, and its name the name of the text.
form.elements.text.addEventListener("drop", async event => {
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  form.elements.text.value = await file.text();
  form.elements.document.value = file.name;
});

// -- elements -------------------------------------------------------------------

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function button(text, press, className = "quiet") {
  const made = element("button", { type: "button", className }, text);
  made.addEventListener("click", press);
  return made;
}

// -- the text that is shown -----------------------------------------------------

const results = () => document.getElementById("results");
const shownText = () => results() && results().querySelector(".text");

// Nodes of the text, without the names of entities below it.
function textNodes() {
  const walker = document.createTreeWalker(shownText(), NodeFilter.SHOW_TEXT, {
    acceptNode: node => node.parentElement.closest("rt") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
  });
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  return nodes;
}

const wholeText = () => textNodes().map(node => node.data).join("");
const points = text => [...text].length;

// The words that are selected, in code points of the text; null if there are none.
function selectedWords() {
  const selection = getSelection();
  if (!shownText() || selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  if (!shownText().contains(range.commonAncestorContainer)) return null;
  let [before, words] = ["", ""];
  for (const node of textNodes()) {
    const place = document.createRange();
    place.selectNodeContents(node);
    if (range.compareBoundaryPoints(Range.END_TO_START, place) >= 0) { before += node.data; continue; }
    if (range.compareBoundaryPoints(Range.START_TO_END, place) <= 0) break;
    const from = range.startContainer === node ? range.startOffset : 0;
    const to = range.endContainer === node ? range.endOffset : node.data.length;
    if (!words) before += node.data.slice(0, from);
    words += node.data.slice(from, to);
  }
  const start = points(before) + points(words) - points(words.trimStart());
  return words.trim() ? { text: words.trim(), start } : null;
}

// The mark that begins at a code point, or the next one.
function markAt(start) {
  return [...results().querySelectorAll(".text a.mark")].find(mark => mark.dataset.start >= start);
}

// -- choosing -------------------------------------------------------------------

let chooser = null;

// Opens the choice of an entity for words of the text.
function choose(words, { entity = null, label = "", candidates = [], back = null, scores = "" } = {}) {
  if (chooser) chooser.remove();
  const kb = results().dataset.kb;
  const name = results().dataset.document;
  const whole = [...wholeText()];
  const end = words.start + points(words.text);
  const before = flat(whole.slice(Math.max(0, words.start - 2 * CONTEXT), words.start).join(""));
  const after = flat(whole.slice(end, end + 2 * CONTEXT).join(""));
  const context = {
    before: [...before].slice(-CONTEXT).join("").trim(),
    after: [...after].slice(0, CONTEXT).join("").trim(),
  };
  const text = flat(words.text);
  const place = { text, ...(name || !(context.before || context.after) ? { document: name || "text", start: words.start } : {}), ...context, kb };
  const everywhere = { text, kb };

  const options = element("div", { className: "options" });
  const search = element("input", { type: "search", placeholder: "Find another entity", autocomplete: "off" });
  search.setAttribute("aria-label", "Find another entity");
  const here = element("input", { type: "radio", name: "scope", checked: true });
  const wherever = element("input", { type: "radio", name: "scope" });

  function decide(key, keyLabel) {
    const scope = wherever.checked ? everywhere : place;
    const kept = rows().filter(row => about(row) !== about(scope) && about(row) !== about(place));
    store([...kept, { ...scope, entity: key, label: keyLabel }]);
    chooser.close();
    refresh(words.start);
  }

  function option(key, keyLabel, meaning) {
    const children = [element("b", {}, keyLabel || key)];
    if (keyLabel !== key) children.push(" ", element("span", { className: "key" }, key));
    if (meaning) children.push(element("span", { className: "meaning" }, meaning));
    const made = button("", () => decide(key, keyLabel || key), key === entity ? "option chosen" : "option");
    made.append(...children);
    return made;
  }

  const none = button("No name", () => decide(null, ""), "option none");

  function offer(entities) {
    const seen = new Set();
    const fresh = entities.filter(each => !seen.has(each.key) && seen.add(each.key));
    options.replaceChildren(...fresh.map(each => option(each.key, each.label, each.meaning)), none);
  }

  let asked = 0, waiting;
  async function find() {
    const number = ++asked;
    const query = search.value.trim();
    if (!query) { offer(candidates); return; }
    const parameters = new URLSearchParams({ q: query, kb, limit: 8 });
    const answer = await fetch(`/v1/search?${parameters}`);
    if (number !== asked || !answer.ok) return;
    const found = await answer.json();
    offer(found.map(each => ({ key: each.entity, label: each.label, meaning: each.description })));
  }
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 150);
  });

  const title = element("h2", { id: "chooser-title" }, element("bdi", {}, text));
  if (entity) title.append(element("small", {}, ` → ${label || entity}`));
  chooser = element("dialog", { className: "chooser" }, title,
    element("p", { className: "scope" }, element("label", {}, here, " here"), element("label", {}, wherever, " wherever it is written so")),
    search, options);
  chooser.setAttribute("aria-labelledby", "chooser-title");
  if (scores) {
    const link = element("a", { href: scores }, "Scores of the candidates");
    link.addEventListener("click", () => { back = null; chooser.close(); });
    chooser.append(element("p", {}, link));
  }
  chooser.addEventListener("keydown", event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.type === "radio") return;
    event.preventDefault();
    const stops = [search, ...options.children];
    const next = stops.indexOf(document.activeElement) + step;
    stops[Math.min(Math.max(next, 0), stops.length - 1)].focus();
  });
  chooser.addEventListener("click", event => { if (event.target === chooser) chooser.close(); });
  chooser.addEventListener("close", () => { if (back && back.isConnected) back.focus(); });
  document.body.append(chooser);
  if (candidates.length) offer(candidates);
  else { search.value = text; offer([]); find(); }
  const range = getSelection().rangeCount ? getSelection().getRangeAt(0) : null;
  const at = back || range;  // above the choice, which is at the foot of the window
  if (at) scrollBy(0, Math.max(0, at.getBoundingClientRect().bottom - innerHeight * .35));
  chooser.showModal();
  (options.querySelector(".chosen") || (candidates.length ? options.firstElementChild : search)).focus();
}

function chooseFor(mark) {
  const href = mark.getAttribute("href") || "";
  const inside = href.startsWith("#") ? document.getElementById(href.slice(1)) : null;
  const candidates = inside ? [...inside.querySelectorAll("tr[data-key]")].map(row => ({
    key: row.dataset.key, label: row.dataset.label, meaning: (row.querySelector(".meaning") || {}).textContent,
  })) : [];
  choose({ text: mark.dataset.text, start: Number(mark.dataset.start) }, {
    entity: mark.dataset.entity || null, label: mark.dataset.label, candidates, back: mark, scores: inside ? href : "",
  });
}

document.addEventListener("click", event => {
  const mark = event.target.closest(".text a.mark");
  if (!mark || event.ctrlKey || event.metaKey || event.shiftKey || !getSelection().isCollapsed) return;
  event.preventDefault();
  chooseFor(mark);
});

// Words that are selected become a link: by the button that appears, or by Enter.
const selector = button("", () => { const words = selectedWords(); if (words) choose(words); }, "selector");
selector.hidden = true;
selector.addEventListener("pointerdown", event => event.preventDefault());  // the selection stays
document.body.append(selector);
document.addEventListener("selectionchange", () => {
  const words = selectedWords();
  selector.hidden = !words;
  if (words) selector.textContent = `Link “${[...flat(words.text)].slice(0, 40).join("")}”`;
});
document.addEventListener("keydown", event => {
  if (event.key !== "Enter" || !(event.target === document.body || event.target.closest(".text"))) return;
  const words = selectedWords();
  if (words) { event.preventDefault(); choose(words); }
});

// -- what is corrected ----------------------------------------------------------

// Asks the service for the links again, and shows them.
async function refresh(start = null) {
  const old = results();
  const fields = new URLSearchParams(new FormData(old.querySelector("form")));
  fields.set("text", wholeText());
  fields.set("corrections", sent(old.dataset.kb, wholeText()));
  old.setAttribute("aria-busy", "true");
  const answer = await fetch("/", { method: "POST", body: fields });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("results");
  const problem = page.querySelector(".problem");
  old.removeAttribute("aria-busy");
  if (fresh) old.replaceWith(fresh);
  if (fresh) enliven();
  show(problem);
  if (start !== null) (markAt(start) || panel.querySelector("h2")).focus();
}

function csv(cells) {
  return cells.map(cell => /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell).join(",") + "\r\n";
}

function download() {
  const lines = [COLUMNS, ...rows().map(row => COLUMNS.map(name => String(row[name] ?? "")))];
  const blob = new Blob(["\ufeff", ...lines.map(csv)], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(blob), download: "corrections.csv" });
  link.click();
  URL.revokeObjectURL(link.href);
}

function change(changed) {
  store(changed);
  show();
  panel.querySelector("h2").focus();
  if (results()) refresh();
}

// Lists the corrections, the last one first.
function show(problem = null) {
  const all = rows();
  panel.hidden = !all.length && !problem;
  const list = element("ul", { className: "corrected" }, ...all.toReversed().map(row => {
    const scope = isPlace(row) ? (row.document ? `here, in ${row.document}` : "here") : "wherever it is written so";
    const what = element("span", {}, element("bdi", { className: "mention" }, row.text), " → ",
      row.entity ? element("b", {}, row.label || row.entity) : element("span", { className: "faint" }, "no name"));
    const undo = button("Undo", () => change(rows().filter(other => about(other) !== about(row))));
    undo.setAttribute("aria-label", `Undo: ${row.text}`);
    const where = isPlace(row) ? ` … ${row.before || ""} [${row.text}] ${row.after || ""} …` : "";
    return element("li", { title: where }, what, element("span", { className: "faint" }, `${scope} · ${row.kb}`), undo);
  }));
  panel.replaceChildren(
    element("h2", { tabIndex: -1 }, `${all.length} correction${all.length === 1 ? "" : "s"} `, element("small", {}, "kept in this browser")),
    ...(problem ? [problem] : []),
    element("p", { className: "row" }, button("Download", download, ""), button("Remove all", () => {
      if (confirm(`Remove all ${all.length} corrections from this browser?`)) change([]);
    })),
    list);
}

show();
if (results() && sent(results().dataset.kb, wholeText()) !== form.elements.corrections.value) refresh();

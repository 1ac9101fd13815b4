// What the page does more comfortably with a script; without it, all of it works as well.
"use strict";

// A mark in the text opens its candidates. Newer browsers open them by themselves.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target && target.closest("details");
  if (details) {
    details.open = true;
    details.scrollIntoView({ block: "nearest" });
  }
}
addEventListener("hashchange", openTarget);
openTarget();

// Marks of a link, and its entry in the list, are lit together; all candidates are opened at once.
function enliven() {
  for (const mark of document.querySelectorAll("a.mark[href^='#']")) {
    const inside = document.querySelector(mark.getAttribute("href"));
    const entry = inside && inside.closest("details");
    if (!entry) continue;
    const light = on => () => { entry.classList.toggle("lit", on); mark.classList.toggle("lit", on); };
    for (const part of [mark, entry]) {
      part.addEventListener("pointerenter", light(true));
      part.addEventListener("pointerleave", light(false));
    }
  }
  const list = document.querySelector(".links");
  if (!list || list.children.length < 2) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Open all";
  button.addEventListener("click", () => {
    const open = button.textContent === "Open all";
    for (const details of list.querySelectorAll("details")) details.open = open;
    button.textContent = open ? "Close all" : "Open all";
  });
  list.before(button);
}
enliven();

document.addEventListener("keydown", event => {
  const field = event.target;
  const writing = field.matches("input, textarea, select");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field.matches("textarea")) {
    field.form.requestSubmit();
  } else if (event.key === "/" && !writing && !event.ctrlKey && !event.altKey && !event.metaKey) {
    const first = document.querySelector("form input[type=search], form textarea");
    if (first) { first.focus(); event.preventDefault(); }
  } else if (event.key === "Escape" && field.closest && field.closest("details[open]")) {
    const details = field.closest("details[open]");
    details.open = false;
    details.querySelector("summary").focus();
  }
});

// A drawing that is wider than its frame is shown from its middle.
const frame = document.querySelector(".drawing");
if (frame) frame.scrollLeft = (frame.scrollWidth - frame.clientWidth) / 2;

// A dropped file is the column that is uploaded.
const upload = document.querySelector("input[type=file]");
if (upload) {
  const form = upload.form;
  form.addEventListener("dragover", event => event.preventDefault());
  form.addEventListener("drop", event => {
    if (event.dataTransfer.files.length) { event.preventDefault(); upload.files = event.dataTransfer.files; }
  });
}

/**
 * The style sheet and the script of the page, which works without a network. Both are the same on every page, so that the
 * page's policy can name them by their hashes. They never contain text of a transcript.
 */

import { PartKind } from "../../domain/evaluation/PartKind.ts"

/**
 * Colours come in pairs, for light and dark. Those of kinds follow Paul Tol's muted scheme, which is safe for colour-blind
 * readers, lightened for dark pages: tools are blue, users green, the model rose.
 */
export const sheet = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#fdfcfa, #16171a);
  --sunk: light-dark(#f4f2ed, #1f2125);
  --ink: light-dark(#23221f, #e4e2dc);
  --quiet: light-dark(#66635b, #a3a099);
  --line: light-dark(#e0dcd3, #34363b);
  --link: light-dark(#2a5d94, #8fbbe8);
  --accent: light-dark(#33679e, #7fb0e2);
  --warm: light-dark(#a8470f, #f0a06a);
  --user: light-dark(#23804a, #58b37c);
  --program: light-dark(#8c8c35, #b9b964);
  --model: light-dark(#c2586a, #e38a97);
  --thought: light-dark(#96539c, #c486ca);
  --summary: light-dark(#d0b04a, #e2cd7e);
  --call: light-dark(#7cb8dc, #a9d3ea);
  --output: light-dark(#3f72a8, #6c9ed3);
  --media: light-dark(#7d2a55, #c0719b);
  --other: light-dark(#8d8a83, #8f8d88);
  --added: light-dark(#d9f0dd, #173622);
  --removed: light-dark(#fbdfdc, #45201e);
  --hit: light-dark(#fde58a, #6b5710);
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Palatino Linotype", Palatino, Georgia, ui-serif, serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
:root[data-scheme="light"] { color-scheme: light; }
:root[data-scheme="dark"] { color-scheme: dark; }
* { box-sizing: border-box; }
html { scroll-padding-top: 4.5rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 0 1.25rem 4rem; max-width: 56rem;
  background: var(--paper); color: var(--ink);
  font: 0.9375rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word;
}
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.skip { position: absolute; left: -100vw; }
.skip:focus { position: static; }
header { padding-top: 3rem; }
h1, h2 { font-family: var(--serif); font-weight: 600; line-height: 1.2; text-wrap: balance; }
h1 { margin: 0.2rem 0 1rem; font-size: 1.9rem; }
h2 { margin: 0 0 0.35rem; font-size: 1.3rem; }
h3 { margin: 1.75rem 0 0.25rem; font-size: 0.9375rem; font-weight: 600; }
.over { margin: 0; color: var(--quiet); font-size: 0.8125rem; letter-spacing: 0.02em; }
.lead { max-width: 42rem; margin: 0 0 0.6rem; font-family: var(--serif); font-size: 1.125rem; line-height: 1.5; }
p { margin: 0.25rem 0 0.9rem; max-width: 42rem; }
.note { color: var(--quiet); font-size: 0.8125rem; }
section { margin-top: 3rem; padding-top: 1.1rem; border-top: 1px solid var(--line); }
code, pre, .id { font-family: var(--mono); font-size: 0.8125rem; }

dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1.25rem; margin: 1.25rem 0 0; font-size: 0.875rem; }
dl.facts dt { color: var(--quiet); }
dl.facts dd { margin: 0; min-width: 0; }
dl.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: 1.25rem 1rem; margin: 1.75rem 0 0; }
dl.numbers div { display: flex; flex-direction: column-reverse; justify-content: flex-end; }
dl.numbers dt { color: var(--quiet); font-size: 0.8125rem; line-height: 1.35; }
dl.numbers dd { margin: 0 0 0.1rem; font-family: var(--serif); font-size: 1.75rem; line-height: 1.15; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.1rem; margin: 1.75rem 0 0; padding: 0; list-style: none; font-size: 0.875rem; }
button, select, input { font: inherit; font-size: 0.875rem; color: inherit; }
button { padding: 0.1rem 0.6rem; border: 1px solid var(--line); border-radius: 0.35rem; background: none; cursor: pointer; }
.scheme { float: right; margin: 0 0 0.5rem 1rem; color: var(--quiet); }

${PartKind.literals.map((kind) => `svg .k-${kind}, .swatch.k-${kind} { fill: var(--${kind}); background: var(--${kind}); }`).join("\n")}
svg .gone { opacity: 0.35; }
svg .plain { fill: var(--other); }
.swatch { display: inline-block; width: 0.7em; height: 0.7em; margin-right: 0.45em; border-radius: 2px; }
.strip { display: block; width: 100%; height: 1.6rem; border-radius: 4px; background: var(--sunk); }
.strip rect { stroke: var(--paper); stroke-width: 1.5px; }
.bar { display: block; width: 100%; height: 0.75rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 1.1rem; margin: 0.5rem 0 0; padding: 0; list-style: none; font-size: 0.8125rem; color: var(--quiet); }

.wrap { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.875rem; line-height: 1.4; }
caption { padding: 0.9rem 0 0.35rem; text-align: left; font-weight: 600; }
th { font-weight: 400; text-align: left; vertical-align: baseline; }
thead th { padding-bottom: 0.3rem; color: var(--quiet); font-size: 0.8125rem; border-bottom: 1px solid var(--line); }
td, th { padding: 0.28rem 0 0.28rem 1rem; }
td:first-child, th:first-child { padding-left: 0; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
td { vertical-align: baseline; }
.n { text-align: right; white-space: nowrap; }
td.chart { width: 34%; vertical-align: middle; }
#tokens th:first-child { width: 20%; }
td.prose { color: var(--quiet); }
td.text { width: 38%; max-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--quiet); }
#largest td.chart { width: 20%; }
.any, h1, dd, .lead { overflow-wrap: anywhere; }
td a, th a { white-space: nowrap; }

figure { margin: 1rem 0 0; }
figcaption { margin-top: 0.4rem; color: var(--quiet); font-size: 0.8125rem; max-width: 42rem; }
.plot { display: block; max-width: 100%; height: auto; color: var(--quiet); overflow: visible; }
.plot text { white-space: pre; }
.plot.narrow { display: none; }
.plot .area { fill: var(--accent); fill-opacity: 0.14; }
.plot .line path, path.line { stroke: var(--accent); stroke-width: 1.6; }
.plot .dot circle { fill: var(--accent); stroke: none; }
.plot .recorded.line path, .plot .line.recorded path { stroke: var(--warm); }
.plot .dot.recorded circle { fill: var(--warm); }
.plot .cut line, .plot line.cut { stroke: var(--warm); stroke-dasharray: 4 3; stroke-width: 1.3; }
.plot .mark circle, .plot circle.mark { fill: var(--paper); stroke: var(--accent); stroke-width: 1.6; }
.plot a:hover circle, .plot a:focus circle { fill: var(--accent); }
.keyed { margin-right: 1.25rem; white-space: nowrap; }
.key { display: inline-block; width: 1.4em; height: 0; margin: 0 0.4em 0.25em 0; border-top: 2px solid var(--accent); vertical-align: middle; }
.key.recorded { border-color: var(--warm); }
.plot .line.series-0 path, .plot path.line.series-0, .plot .mark.series-0 circle, .plot circle.mark.series-0, .key.series-0 { stroke: var(--accent); border-color: var(--accent); }
.plot .line.series-1 path, .plot path.line.series-1, .plot .mark.series-1 circle, .plot circle.mark.series-1, .key.series-1 { stroke: var(--warm); border-color: var(--warm); }
.plot .line.series-2 path, .plot path.line.series-2, .plot .mark.series-2 circle, .plot circle.mark.series-2, .key.series-2 { stroke: var(--user); border-color: var(--user); }
.plot .line.series-3 path, .plot path.line.series-3, .plot .mark.series-3 circle, .plot circle.mark.series-3, .key.series-3 { stroke: var(--thought); border-color: var(--thought); }
.within { display: block; padding-left: 1.1em; color: var(--quiet); }
#figures th:first-child { min-width: 7rem; }
.key[class*="series-"] { border-top-width: 3px; }

form {
  position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: 0.5rem 0.75rem; align-items: center;
  padding: 0.6rem 0; background: var(--paper); border-bottom: 1px solid var(--line);
}
form[hidden] { display: none; }
input[type="search"] { flex: 1 1 12rem; min-width: 8rem; }
input, select { padding: 0.3rem 0.55rem; border: 1px solid var(--line); border-radius: 0.35rem; background: var(--sunk); max-width: 100%; }
output { color: var(--quiet); font-size: 0.8125rem; }
ol.rows { margin: 0; padding: 0; list-style: none; }
/* Not display: list-item. Browsers renumber all list items whenever one is hidden. */
ol.rows > li { display: block; border-bottom: 1px solid var(--line); content-visibility: auto; contain-intrinsic-size: auto 2.3rem; }
ol.rows > li.cut, ol.rows > li.gap { padding: 0.5rem 0; color: var(--quiet); font-size: 0.8125rem; }
ol.rows > li.cut { border-top: 2px dashed var(--warm); color: var(--warm); }
ol.rows > li[hidden] { display: none; }
.plainly { margin-top: 1rem; cursor: pointer; color: var(--quiet); font-size: 0.875rem; }
.message > details > summary {
  display: grid; grid-template-columns: 3.6rem 5.2rem 7rem 4.2rem 1fr; gap: 0 0.75rem; align-items: baseline;
  padding: 0.38rem 0; cursor: pointer; list-style: none; font-size: 0.875rem; line-height: 1.45;
}
.message > details > summary::-webkit-details-marker { display: none; }
.message > details > summary:hover { background: var(--sunk); }
.message > details > summary .id::before { content: "▸"; display: inline-block; width: 1.15em; color: var(--quiet); font-family: system-ui, sans-serif; }
details[open] > summary .id::before { content: "▾"; }
.message > details > summary .bar { align-self: center; }
.message > details > summary .words { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--quiet); unicode-bidi: isolate; }
li.turn > details > summary .words, li.turn > details > summary .who { color: var(--ink); font-weight: 600; }
li:target > details > summary { background: var(--sunk); box-shadow: -3px 0 0 var(--accent); }
.part { margin: 0 0 1rem; padding-left: 1.1rem; }
.part > p { margin: 0.4rem 0 0.3rem; max-width: none; font-size: 0.8125rem; color: var(--quiet); }
.part b { font-weight: 600; color: var(--ink); }
.about { margin: 0.2rem 0 0.6rem; padding-left: 1.1rem; color: var(--quiet); font-size: 0.8125rem; max-width: none; }
pre {
  margin: 0 0 0.4rem; padding: 0.6rem 0.8rem; max-height: 32rem; overflow: auto; background: var(--sunk); border-radius: 0.35rem;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.45; tab-size: 4; unicode-bidi: plaintext;
}
.code {
  margin: 0 0 0.6rem; padding: 0.6rem 0.8rem; max-height: 32rem; overflow: auto; background: var(--sunk); border-radius: 0.35rem;
  font-family: var(--mono); font-size: 0.8125rem; line-height: 1.45; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; unicode-bidi: plaintext;
}
.diff .added, .diff .removed { display: block; }
.diff .added { background: var(--added); }
.diff .removed { background: var(--removed); }
.diff .hunk { color: var(--quiet); }
.md { margin: 0.3rem 0 0.5rem; max-width: 46rem; unicode-bidi: plaintext; }
.part .md p { margin: 0 0 0.6rem; max-width: none; font-size: inherit; color: inherit; white-space: pre-line; overflow-wrap: anywhere; }
.part .md .title { margin-top: 0.9rem; font-weight: 600; }
.part .md .l1, .part .md .l2 { font-size: 1.0625rem; }
.part .md .item { margin-bottom: 0.2rem; padding-left: 1.4em; text-indent: -1.1em; }
.md .item span { color: var(--quiet); }
.part .md .d1 { margin-left: 1.4em; } .part .md .d2 { margin-left: 2.8em; } .part .md .d3 { margin-left: 4.2em; }
.part .md .d4 { margin-left: 5.6em; } .part .md .d5 { margin-left: 7em; }
.md .quote { padding-left: 0.9rem; border-left: 3px solid var(--line); color: var(--quiet); }
.md code { padding: 0.05em 0.3em; background: var(--sunk); border-radius: 0.25em; }
.md hr { border: 0; border-top: 1px solid var(--line); }
.md table { width: auto; margin-bottom: 0.6rem; }
.lead code { font-size: 0.85em; }
.exact > summary.plainly { margin: 0 0 0.4rem; font-size: 0.8125rem; }
ol.rows > li.turn-title { padding: 1.6rem 0 0.5rem; content-visibility: visible; }
.turn-title h3 { margin: 0; font-family: var(--serif); font-size: 1.0625rem; overflow-wrap: anywhere; }
.turn-title h3 span { font-weight: 400; }
.turn-title p { margin: 0; max-width: none; color: var(--quiet); font-size: 0.8125rem; }
td.begins { min-width: 9rem; }
#turns td.chart { width: 16%; }
#hits:empty, #told:empty { display: none; }
#told:not(:empty)::after { content: " messages"; }
::highlight(hit) { background: var(--hit); color: var(--ink); }
::highlight(now) { background: var(--accent); color: var(--paper); }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); }

@media (max-width: 640px) {
  body { padding: 0 1rem 3rem; }
  header { padding-top: 1.5rem; }
  h1 { font-size: 1.5rem; }
  .lead { font-size: 1.0625rem; }
  section { margin-top: 2.25rem; }
  .plot.wide { display: none; }
  .plot.narrow { display: block; }
  dl.numbers { grid-template-columns: 1fr 1fr; gap: 1rem; }
  dl.numbers dd { font-size: 1.4rem; }
  dl.facts { column-gap: 0.9rem; }
  td, th { padding-left: 0.6rem; }
  td.chart { width: 22%; }
  form { position: static; }
  html { scroll-padding-top: 1rem; }
  .extra, td .swatch, th .swatch { display: none; }
  #tokens th:first-child { width: auto; }
  .message > details > summary { grid-template-columns: 3.6rem 4.2rem 1fr 3.6rem; }
  .message > details > summary .words { grid-column: 1 / -1; padding-left: 0.85rem; }
  .part, .about { padding-left: 0.85rem; }
}
@media print {
  :root, :root[data-scheme] { color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  nav, form, .scheme, .skip { display: none; }
  pre { max-height: none; }
  ol.rows > li { content-visibility: visible; }
  section, figure, tr, dl { break-inside: avoid; }
  #conversation, #conversation tr { break-inside: auto; }
  svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`

/** Searches and filters rows, marks hits, unfolds rows, and switches the colours. Everything else works without it. */
export const script = `
"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const form = get("filter"), search = get("search"), kind = get("kind"), where = get("where"), told = get("told");
  const count = get("hits");
  const canMark = typeof Highlight === "function" && CSS.highlights !== undefined;
  const marks = canMark ? { hit: new Highlight(), now: new Highlight() } : undefined;
  if (marks) for (const [name, ranges] of Object.entries(marks)) CSS.highlights.set(name, ranges);
  const maxMarks = 5000;
  let hits = [], at = -1;
  /* Exact texts that are folded away repeat the rendered ones, so they are not searched. */
  const isSearched = (node) => node.parentElement.closest("details.exact:not([open])") === null;
  const mark = (words) => {
    hits = []; at = -1;
    if (marks) { marks.hit.clear(); marks.now.clear(); }
    if (words === "") { count.value = ""; return; }
    for (const row of messages) {
      if (row.hidden) continue;
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      const inBody = [], inSummary = [];
      for (let node = walker.nextNode(); node !== null && hits.length < maxMarks; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        if (text.length !== node.length || !text.includes(words) || !isSearched(node)) continue;
        const list = node.parentElement.closest(".words, .who, .id, .n") === null ? inBody : inSummary;
        for (let from = text.indexOf(words); from >= 0; from = text.indexOf(words, from + words.length)) {
          const range = document.createRange();
          range.setStart(node, from);
          range.setEnd(node, from + words.length);
          list.push(range);
          if (marks) marks.hit.add(range);
        }
      }
      hits.push(...(inBody.length > 0 ? inBody : inSummary));
      if (hits.length >= maxMarks) break;
    }
    count.value = hits.length === 0 ? "" : hits.length.toLocaleString("en") + (hits.length === 1 ? " hit" : " hits");
  };
  const step = (by) => {
    if (hits.length === 0) return;
    at = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    const hit = hits[at];
    const element = hit.startContainer.parentElement;
    if (element.closest("summary") === null) for (let fold = element.closest("details"); fold !== null; fold = fold.parentElement.closest("details")) fold.open = true;
    if (marks) { marks.now.clear(); marks.now.add(hit); }
    /* Scrolls to the hit, also within a scrolling box. Runs again because rows get their height only when they are near. */
    const show = () => {
      const box = element.closest("pre, .code");
      if (box !== null) box.scrollTop += hit.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
      scrollBy(0, hit.getBoundingClientRect().top - innerHeight / 2);
    };
    element.scrollIntoView({ block: "nearest" });
    show();
    requestAnimationFrame(() => requestAnimationFrame(show));
    count.value = (at + 1).toLocaleString("en") + " of " + hits.length.toLocaleString("en") + (hits.length === 1 ? " hit" : " hits");
  };
  const rows = [...document.querySelectorAll("ol.rows > li")];
  const messages = rows.filter((row) => row.dataset.kinds !== undefined);
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  let applied = "";
  const apply = () => {
    applied = [search.value, kind.value, where.value].join(" ");
    const words = search.value.trim().toLowerCase();
    const isFiltered = words !== "" || kind.value !== "" || where.value !== "";
    let shown = 0;
    for (const row of rows) {
      const { kinds, view } = row.dataset;
      const isShown = kinds === undefined ? !isFiltered
        : (kind.value === "" || kinds.split(" ").includes(kind.value))
        && (where.value === "" || where.value === view)
        && (words === "" || textOf(row).includes(words));
      row.hidden = !isShown;
      if (isShown && kinds !== undefined) shown += 1;
    }
    mark(words);
    told.value = isFiltered ? shown.toLocaleString("en") + " of " + messages.length.toLocaleString("en") : "";
  };
  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(apply, 120); };
  const unfold = () => {
    const row = /^#e\\d+$/.test(location.hash) ? get(location.hash.slice(1)) : null;
    if (row === null) return;
    if (row.hidden) { form.reset(); apply(); }
    row.firstElementChild.open = true;
    row.scrollIntoView();
  };
  if (form) {
    form.hidden = false;
    form.addEventListener("input", later);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (applied !== [search.value, kind.value, where.value].join(" ")) apply();
      step(event.submitter && event.submitter.value === "back" ? -1 : 1);
    });
    form.addEventListener("reset", () => setTimeout(apply));
    addEventListener("hashchange", unfold);
    unfold();
  }
  /* Makes scrolling boxes reachable by keyboard. */
  const reach = (boxes) => {
    for (const box of boxes) {
      if (box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    }
  };
  const reachTables = () => reach(document.querySelectorAll("section > .wrap"));
  addEventListener("resize", reachTables);
  reachTables();
  document.addEventListener("toggle", (event) => reach(event.target.querySelectorAll("pre, .code, .wrap")), true);
  const button = get("scheme");
  const root = document.documentElement;
  button.hidden = false;
  button.addEventListener("click", () => {
    const isDark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.scheme = isDark ? "light" : "dark";
  });
})();
`

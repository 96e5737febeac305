/** The page of the gateway, which shows the totals of its metrics. */

import { servedPage } from "./Document.ts"
import { markup } from "./Markup.ts"
import { tokenScript } from "./ServeScript.ts"

/** The script of the gateway's page: it reads the metrics and shows their totals. */
const gatewayScript = `
"use strict";
const at = (id) => document.getElementById(id);
const number = (value) => Math.round(value).toLocaleString("en-US");
const names = [
  ["compressions_total", "Compressions", number],
  ["tokens_saved_total", "Tokens not sent (estimated)", number],
  ["recalls_total", "Recalls", number],
  ["failures_total", "Failures", number],
  ["cost_microdollars_total", "Cost by the price table", (value) => "$" + (value / 1e6).toFixed(4)]
];
const show = (text) => {
  const sums = new Map();
  const requests = new Map();
  const tokens = new Map();
  for (const line of text.split("\\n")) {
    const found = /^palimpsest_gateway_(\\w+)(?:\\{(.*)\\})? (\\S+)$/.exec(line);
    if (found === null) continue;
    const [, name, labels = "", value] = found;
    sums.set(name, (sums.get(name) || 0) + Number(value));
    const label = (key) => (("," + labels).split("," + key + '="')[1] || "").split('"')[0];
    if (name === "requests_total") {
      const key = label("dialect") + " · " + label("view");
      requests.set(key, (requests.get(key) || 0) + Number(value));
    }
    if (name === "tokens_total") tokens.set(label("kind"), (tokens.get(label("kind")) || 0) + Number(value));
  }
  const facts = [
    ...names.map(([name, label, write]) => [label, write(sums.get(name) || 0)]),
    ...[...tokens].map(([kind, value]) => ["Tokens, " + kind, number(value)])
  ];
  at("facts").replaceChildren(...facts.flatMap(([label, value]) => {
    const term = document.createElement("dt");
    const text = document.createElement("dd");
    term.textContent = label;
    text.textContent = value;
    return [term, text];
  }));
  at("rows").replaceChildren(...[...requests].sort().map(([key, value]) => {
    const row = document.createElement("tr");
    for (const each of [...key.split(" · "), number(value)]) {
      const cell = document.createElement("td");
      cell.textContent = each;
      row.append(cell);
    }
    row.lastChild.className = "n";
    return row;
  }));
  at("state").textContent = number(sums.get("requests_total") || 0) + " requests";
};
${tokenScript}const read = () => fetch("/metrics", { headers: { authorization: "Bearer " + store.token } }).then(async (answer) => {
  if (answer.ok) show(await answer.text());
  else at("state").textContent = "Open the address that the gateway printed when it started: it has the token for these figures.";
}, () => {
  at("state").textContent = "The gateway does not answer.";
}).finally(() => setTimeout(read, 2000));
read();
`

const body = markup`<header><p class="over">palimpsest gateway</p></header>
<main id="main">
<h1>Gateway</h1>
<p id="state" class="lead" role="status" aria-live="polite">…</p>
<dl id="facts" class="facts"></dl>
<div class="wrap"><table class="sessions">
<thead><tr><th scope="col">Dialect</th><th scope="col">Requests</th><th scope="col" class="n">Count</th></tr></thead>
<tbody id="rows"></tbody>
</table></div>
<p class="note">The same figures for Prometheus are at <code>/metrics</code>, with <code>Authorization: Bearer TOKEN</code>.</p>
</main>`

/** The page of the gateway, whose script reads `/metrics` every few seconds. */
export const render = servedPage("Gateway", body, { script: gatewayScript })

import { gatewayScript } from "./GatewayScript.ts"
import { markup } from "./Markup.ts"
import { servedPage } from "./ServedPage.ts"

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

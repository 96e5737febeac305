import { Effect } from "effect"
import { policyHash } from "./Document.ts"
import { gatewayScript } from "./GatewayScript.ts"
import { markup, trusted } from "./Markup.ts"
import { serveSheet } from "./ServeScript.ts"
import { sheet } from "./Sheet.ts"

/** The page of the gateway: one document, whose script reads `/metrics` every few seconds. */

/** The page, and the content security policy that its answer carries. */
export const render: Effect.Effect<{ readonly html: string; readonly policy: string }> = Effect.gen(function* () {
  const styles = `${sheet}${serveSheet}`
  const policy = [
    "default-src 'none'",
    `style-src ${yield* policyHash(styles)}`,
    `script-src ${yield* policyHash(gatewayScript)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
  const { html } = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>Gateway · palimpsest</title>
<style>${trusted(styles)}</style>
</head>
<body>
<header><p class="over">palimpsest gateway</p></header>
<main id="main">
<h1>Gateway</h1>
<p id="state" class="lead" role="status" aria-live="polite">…</p>
<dl id="facts" class="facts"></dl>
<div class="wrap"><table class="sessions">
<thead><tr><th scope="col">Dialect</th><th scope="col">Requests</th><th scope="col" class="n">Count</th></tr></thead>
<tbody id="rows"></tbody>
</table></div>
<p class="note"><a href="/metrics">Metrics</a></p>
</main>
<script>${trusted(gatewayScript)}</script>
</body>
</html>
`
  return { html, policy }
})

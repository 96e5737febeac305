import { Effect } from "effect"
import { policyHash } from "./Document.ts"
import { type Html, markup, none, trusted } from "./Markup.ts"
import { serveSheet } from "./ServeScript.ts"
import { sheet } from "./Sheet.ts"

/** The frame of the pages that a server of ours serves: one document without data; its script fetches the data from the server. */

/** A page, and the content security policy that its answer carries. */
export interface ServedPage {
  readonly html: string
  readonly policy: string
}

/** Makes a page from its title, the content of its body, and its script and additional styles, if any. */
export const servedPage = Effect.fnUntraced(function* (
  title: string,
  body: Html,
  { script, styles: own = "" }: { readonly script?: string; readonly styles?: string }
) {
  const styles = `${sheet}${serveSheet}${own}`
  const policy = [
    "default-src 'none'",
    `style-src ${yield* policyHash(styles)}`,
    ...(script === undefined ? [] : [`script-src ${yield* policyHash(script)}`, "connect-src 'self'"]),
    // The empty icon.
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
<title>${title} · palimpsest</title>
<style>${trusted(styles)}</style>
</head>
<body>
${body}
${
  script === undefined
    ? none
    : markup`<script>${trusted(script)}</script>
`
}</body>
</html>
`
  return { html, policy }
})

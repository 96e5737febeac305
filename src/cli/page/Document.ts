/** The frames of all pages: one HTML document each, whose content security policy allows only its own style sheet and script. */

import { Effect } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { type Html, markup, none, trusted } from "./Markup.ts"
import { serveSheet } from "./ServeScript.ts"
import { script, sheet } from "./Sheet.ts"

/** The hash that identifies a text of the page in its content security policy. */
const policyHash = Effect.fnUntraced(function* (text: string) {
  const digest = yield* Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", encode(text).slice()))
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
})

const scriptOf = (text: string) => markup`<script>${trusted(text)}</script>
`

/** Renders a page. The HTML is well-formed Unicode and can be written as UTF-8. */
const framed = (title: string, head: Html, styles: string, body: Html): string =>
  markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="palimpsest">
<title>${title}</title>
<style>${trusted(styles)}</style>
</head>
<body>
${body}</body>
</html>
`.html

/** The content of a page of a report, which is self-contained, needs no network, and whose script contains nothing of a transcript. */
export interface Document {
  readonly title: string
  /** Markup within the header, after the switch of colours. */
  readonly header: Html
  /** Titles and ids of the sections. */
  readonly contents: ReadonlyArray<readonly [id: string, title: string]>
  readonly main: ReadonlyArray<Html>
  readonly footer: Html
}

/** Renders a page of a report. */
export const renderDocument = Effect.fn("Document.renderDocument")(function* ({
  contents,
  footer,
  header,
  main,
  title
}: Document) {
  const policy = [
    "default-src 'none'",
    `style-src ${yield* policyHash(sheet)}`,
    `script-src ${yield* policyHash(script)}`,
    "base-uri 'none'",
    "form-action 'none'"
  ].join("; ")

  const head = markup`<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">`
  const body = markup`<a class="skip" href="#main">To the numbers</a>
<header>
<button id="scheme" class="scheme" type="button" hidden>Light / dark</button>
${header}
<nav aria-label="Contents">
<ul>${contents.map(([id, name]) => markup`<li><a href="#${id}">${name}</a></li>`)}</ul>
</nav>
</header>
<main id="main">
${main}</main>
<footer class="note">
${footer}
</footer>
${scriptOf(script)}`
  return framed(title, head, sheet, body)
})

/** A page that a server of ours serves, without data, and the content security policy that its answer carries. */
export interface ServedPage {
  readonly html: string
  readonly policy: string
}

/** Makes a page from its title, the content of its body, and its script, which asks the server for data, and additional styles, if any. */
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
  const content = markup`${body}
${script === undefined ? none : scriptOf(script)}`
  return { html: framed(`${title} · palimpsest`, markup`<link rel="icon" href="data:,">`, styles, content), policy }
})

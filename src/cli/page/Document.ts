import { Effect } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { type Html, markup, trusted } from "./Markup.ts"
import { script, sheet } from "./Sheet.ts"

/**
 * The frame of every page: one self-contained HTML document that needs no network. Its content security policy allows only
 * its own style sheet and script, which contain nothing of a transcript.
 */

/** The content of a page. */
export interface Document {
  readonly title: string
  /** Markup within the header, after the switch of colours. */
  readonly header: Html
  /** Titles and ids of the sections. */
  readonly contents: ReadonlyArray<readonly [id: string, title: string]>
  readonly main: ReadonlyArray<Html>
  readonly footer: Html
}

/** The hash that identifies a text of the page in its content security policy. */
export const policyHash = Effect.fnUntraced(function* (text: string) {
  const digest = yield* Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", encode(text).slice()))
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
})

/** Renders a page. The HTML is well-formed Unicode and can be written as UTF-8. */
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

  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="palimpsest">
<title>${title}</title>
<style>${trusted(sheet)}</style>
</head>
<body>
<a class="skip" href="#main">To the numbers</a>
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
<script>${trusted(script)}</script>
</body>
</html>
`.html
})

import { Effect } from "effect"
import type { Report } from "../../../src/cli/output/InspectReport.ts"
import { renderPage } from "../../../src/cli/page/Page.ts"
import type { Content } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { inspect } from "../../../src/services/evaluation/Inspect.ts"

/** Pages of conversations that tests make up. */

/** What would act if it were not text, and what a page has to bear. */
export const hostile = {
  "a script": `</script><script>document.title = "owned"; alert(1)</script>`,
  "a script in capitals": `</SCRIPT ><ScRiPt>alert(2)</sCrIpT>`,
  "an image": `<img src=x onerror="alert(3)">`,
  "the end of an attribute": `"><svg onload=alert(4)>`,
  "the end of another": `' onmouseover='alert(5)' x='`,
  "the end of a sheet": `</style><style>body { display: none }</style>`,
  "the end of a text": `</pre></details></li></ol></main></body></html><h1>owned</h1>`,
  "a comment": `<!-- <!--> --!> <![CDATA[ ]]> <?php ?>`,
  "the end of a title": `</title></textarea></noscript><base href="https://example.com/">`,
  "an address": `javascript:alert(6)`,
  "a frame": `<iframe srcdoc="<script>parent.alert(7)</script>"></iframe><object data="data:text/html,x"></object>`,
  "a reference": `&lt;script&gt; &#60;b&#62; &amp;amp; &nbsp`,
  "a template": "${alert(8)} {{constructor.constructor('alert(9)')()}} `",
  controls: `\u0000\u0007\u001b[31mred\u001b]0;owned\u0007\u007f\u0085\u009b31m`,
  "another order": `\u202eexe.txt\u202c \u2066\u2067\u2069 \u200f\u061c`,
  "what hides": `a\u200bb\ufeffc\u2060d\u{e0041}\u{e0042}`,
  "other line ends": `one\u2028two\u2029three\rfour\r\nfive\u0085six`,
  "half a pair": `\ud83d and \ude00 and \udc80`,
  "no characters": `\ufffe\uffff\u{1ffff}`
} as const

/** Every one of them in one text. */
export const everything = Object.values(hostile).join("\n")

const handle = (entry: number, part: number): Handle =>
  Handle.make(`h_${`${entry}x${part}`.replace(/\d/g, (digit) => "abcdefghij"[Number(digit)] ?? "a").padStart(10, "a")}`)

/** An entry with a number of tokens for each part. */
export const entry = (
  sequence: number,
  content: Content,
  tokens: ReadonlyArray<number> = content.parts.map(() => 10),
  more: Partial<Conversation.Draft> = {}
): Conversation.Entry => ({
  id: Conversation.entryId(sequence),
  content,
  tokens,
  handles: content.parts.map((_, part) => handle(sequence, part)),
  ...more
})

/** A conversation of these entries. */
export const conversationOf = (entries: ReadonlyArray<Conversation.Entry>): Conversation.Conversation =>
  entries.reduce(Conversation.append, Conversation.empty)

/** What is told about a conversation that nothing else is known of. */
export const reportOf = (conversation: Conversation.Conversation, more: Partial<Report> = {}): Report => ({
  file: "talk.json",
  format: "contents",
  bytes: 0,
  session: null,
  model: null,
  cwd: null,
  ...Effect.runSync(inspect(conversation)),
  dropped: [],
  skipped: {},
  next: { waits: "below threshold", forced: null },
  torn: null,
  ...more
})

/** The page of a conversation. */
export const pageOf = (conversation: Conversation.Conversation, more: Partial<Report> = {}): Effect.Effect<string> =>
  renderPage({ conversation, report: reportOf(conversation, more) })

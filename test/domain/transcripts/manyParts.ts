import { argv, stdout } from "node:process"
import { model, type Part, text } from "../../../src/domain/content/Content.ts"
import { cut, readText, said, transcriptOf, viewOf, writtenText } from "../../support/transcripts.ts"

/**
 * `node manyParts.ts COUNT FORM…`: writes two messages of this many parts and a compaction in each form, reads them again, and prints the
 * number of parts of each message that is in view. `node manyParts.ts COUNT` prints a session of Claude Code with such messages, each with an answer.
 */
const [, , count, ...forms] = argv
const messageOf = (part: Part) => said({ role: "user", parts: Array.from({ length: Number(count) }, () => part) })
const messages = [messageOf({ later: 1 }), messageOf(text("a"))]
const transcript = transcriptOf([...messages, cut([], 0)])
for (const form of forms) {
  if (form !== "claude" && form !== "codex" && form !== "gemini" && form !== "pi") throw new Error(form)
  const back = readText(writtenText(form, transcript).text)
  stdout.write(`${[form, ...viewOf(back).map(({ content }) => content.parts.length)].join(" ")}\n`)
}
const answered = messages.flatMap((message) => [message, said(model(text("b")))])
if (forms.length === 0) stdout.write(writtenText("claude", transcriptOf(answered)).text)

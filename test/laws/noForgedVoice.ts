import { Effect } from "effect"
import { isSnapshot, parseSnapshot, sectionNames, userWordsIn } from "../../src/domain/compression/Snapshot.ts"
import { isText, plainText } from "../../src/domain/content/Content.ts"
import { allEntries } from "../../src/domain/conversation/Branches.ts"
import { type Conversation, type Entry, entries, view } from "../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { spokenText, voicesOf } from "../../src/domain/transcripts/voice/Voice.ts"
import { extractSnapshot } from "../support/extractSnapshot.ts"
import type { Check } from "../support/generate.ts"

/** Law 6: what the window shows as the user's words is what the user wrote, and nothing else appears as the user's. */

/** Why a quoted span is not what the user wrote in that entry. */
const forged = (
  conversation: Conversation,
  quoted: { readonly entry: string; readonly text: string }
): string | undefined => {
  // A snapshot of a branch that was left quotes what was said there.
  const entry = allEntries(conversation).find(({ id }) => id === quoted.entry)
  const said =
    entry !== undefined &&
    voicesOf(entry).some((voices, at) =>
      voices.some(
        ({ end, speaker, start }) =>
          speaker === "user" && spokenText(entry.content.parts[at]).slice(start, end).includes(quoted.text)
      )
    )
  return said ? undefined : `the user never wrote in ${quoted.entry}: ${JSON.stringify(quoted.text.slice(0, 120))}`
}

const count = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length

/** Why a snapshot has other sections than it should. */
const broken = (text: string): string | undefined => {
  for (const name of ["state_snapshot", ...sectionNames]) {
    const opened = count(text, new RegExp(`<${name}>`, "gi"))
    const closed = count(text, new RegExp(`</${name}>`, "gi"))
    // A section without statements is left out.
    if (opened !== closed || opened > 1) return `<${name}> opens ${opened} times and closes ${closed} times`
  }
  return /<\/?scratchpad/i.test(text) ? "there is a scratchpad in it" : undefined
}

/** Why a text must not stand among the constraints. */
const unbacked = (text: string): string | undefined => {
  const snapshot = parseSnapshot(text)
  if (!isSnapshot(snapshot)) return `it cannot be read: ${snapshot}`
  const wrong = snapshot.active_constraints.find(
    ({ text }) =>
      text !== "- none" &&
      !/^(?:[\w ()',.-]+:\n)?<user_words entry="[^"]*"(?: at="[^"]*")?>[^]*<\/user_words>(?:\n- … [^\n]* …)?$/.test(
        text
      ) &&
      !text.includes("written by a model")
  )
  return wrong === undefined ? undefined : `a constraint that nobody stands for: ${wrong.text.slice(0, 200)}`
}

const insertedProblem = (conversation: Conversation, entry: Entry): string | undefined => {
  if (entry.content.role === "model") return undefined
  const shown = plainText(entry.content)
  if (!shown.startsWith(runtimeMark)) return `${entry.id} is not marked as written by the runtime`
  return (
    userWordsIn(shown)
      .map((quoted) => forged(conversation, quoted))
      .find((problem) => problem !== undefined) ??
    broken(shown) ??
    unbacked(shown)
  )
}

/** Text in the user's role that the user did not write must be marked. */
const unmarked = (conversation: Conversation): string | undefined => {
  const said = new Map(view(conversation).map(({ entry }) => [entry.id, entry]))
  for (const { content, entry } of projectMessages(conversation)) {
    if (content.role !== "user") continue
    const texts = new Set(said.get(entry)?.content.parts.map((part) => part.text))
    for (const part of content.parts.filter(isText)) {
      if (!texts.has(part.text) && !part.text.startsWith(runtimeMark)) {
        return `${entry} speaks as the user, unmarked: ${part.text.slice(0, 120)}`
      }
    }
  }
  return undefined
}

/** Text that compressions and projection add to the window appears as nobody else's. */
export const noForgedVoice: Check = Effect.fnUntraced(function* ({ chat, inserted, moments }) {
  const conversation = yield* chat.conversation
  return (
    inserted.map((entry) => insertedProblem(conversation, entry)).find((problem) => problem !== undefined) ??
    moments.map(({ after }) => unmarked(after.conversation)).find((problem) => problem !== undefined)
  )
})

/** A snapshot that is parsed has the items that it was written from. */
export const readsAsWritten: Check = Effect.fnUntraced(function* ({ chat }) {
  const { snapshot, text } = yield* Work.run(
    extractSnapshot(entries(yield* chat.conversation), { budget: 4_000, kept: [], cwd: "/work" })
  )
  const found = parseSnapshot(text)
  if (!isSnapshot(found)) return `it cannot be read: ${found}`
  for (const name of sectionNames) {
    const written = snapshot[name].map((item) => item.text.trimEnd())
    const items = found[name].map((item) => item.text.trimEnd()).filter((item) => item !== "- none")
    if (JSON.stringify(items) !== JSON.stringify(written.filter((item) => item !== "- none"))) {
      const at = items.findIndex((item, index) => item !== written[index])
      return `${name} reads ${JSON.stringify(items[at])} for ${JSON.stringify(written[at])}`
    }
  }
  return undefined
})

import { outputText } from "../../src/domain/content/Content.ts"
import { foreignNotes, missingResponse } from "../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import { nothingInPlace } from "../../src/domain/transcripts/CompactionLayout.ts"
import type { Json, ModelRequest } from "./FakeProviders.ts"
import { type Item, ofContents, ofInput, ofMessages } from "./Items.ts"
import type { Program } from "./Programs.ts"

/**
 * What a program sends, held against our view, item by item. Every rule below is something the program does by itself, or
 * that the table in docs/formats.md says its format has no place for.
 */

/** The rules of one program. */
interface Rules {
  readonly items: (body: Json) => ReadonlyArray<Item>
  /** How many items at the beginning are the program's own. */
  readonly before: (sent: ReadonlyArray<Item>) => number
  /** How many items at the end, the prompt left out, are the program's own. `last`: the last item of our view. */
  readonly after: (sent: ReadonlyArray<Item>, last: Item | undefined) => number
  /** What the program is to send for an item of our view. `next`: the item behind it. */
  readonly sends: (item: Item, next: Item | undefined, source: Source, sent: ReadonlyArray<Item>) => ReadonlyArray<Item>
  /** What is to be sent, in the program's own order. */
  readonly arranged?: (wanted: ReadonlyArray<Item>) => ReadonlyArray<Item>
  /** Whether what is sent says the same though it is spelled otherwise. `next` is sent behind it. */
  readonly alike?: (wanted: Item, sent: Item, next: Item | undefined) => boolean
}

/** How Gemini CLI opened its environment message until 2026. */
const contextMark = "This is the Gemini CLI. We are setting up the context for our chat."

const noResult = outputText(missingResponse({ name: "any" }))

/** The agent that a conversation was recorded by. */
export type Source = "claude" | "codex" | "gemini" | "pi" | "contents"

const isUserText = (item: Item | undefined): item is Item => item?.role === "user" && item.kind === "text"

const within = (item: Item | undefined, name: string): boolean =>
  isUserText(item) && item.says.trim().startsWith(`<${name}>`) && item.says.trim().endsWith(`</${name}>`)

const startsWhile = (sent: ReadonlyArray<Item>, is: (item: Item) => boolean): number => {
  const at = sent.findIndex((item) => !is(item))
  return at < 0 ? sent.length : at
}

const endsWhile = (sent: ReadonlyArray<Item>, is: (item: Item) => boolean): number =>
  startsWhile([...sent].reverse(), is)

const isReminder = (item: Item): boolean => within(item, "system-reminder")

/** Stands in place of what a compaction left out where a format wants a text: our writers' own. */
const isNothing = (item: Item | undefined): boolean =>
  item?.says.includes(nothingInPlace) === true && item.says.length < 300

const byAddress = (item: Item): boolean => item.kind === "file" && /^https?:/.test(item.says)

/** Where a compaction's own record comes first, the environment message of another agent stands behind it. */
const summaryFirst = (items: ReadonlyArray<Item>): ReadonlyArray<Item> => {
  const [environment, summary, ...others] = items
  return environment?.says.startsWith(contextMark) === true && summary?.says.startsWith(runtimeMark) === true
    ? [summary, environment, ...others]
    : items
}

const claude: Rules = {
  items: (body) => ofMessages(body["messages"]),
  before: (sent) => {
    const reminders = startsWhile(sent, isReminder)
    return isNothing(sent[reminders]) ? reminders + 1 : reminders
  },
  after: (sent, last) => {
    const reminders = endsWhile(sent, isReminder)
    // Where nobody answered the user's last words, Claude Code puts an answer before the next ones.
    const filler = sent[sent.length - 1 - reminders]
    return last?.role === "user" && filler?.role === "model" && filler.says === "No response requested."
      ? reminders + 1
      : reminders
  },
  sends: (item, _next, source) => {
    // Only thoughts that Anthropic signed have a place.
    if (item.kind === "thought")
      return source !== "codex" && source !== "gemini" && item.signature !== undefined ? [item] : []
    // The type of a file that has only an address is not known.
    if (byAddress(item)) return []
    // Claude Code 2.1 sends its tool by the name that it has now.
    return [item.name === "Task" ? { ...item, name: "Agent" } : item]
  },
  arranged: summaryFirst,
  // Claude Code joins messages of the user with a line break between their texts.
  alike: (wanted, sent, next) => isUserText(wanted) && isUserText(next) && `${wanted.says}\n` === sent.says
}

/** How Codex opens the summary of its own compactions; nothing else need tell whose words they are. */
const codexSummary = "Another language model started to solve this problem and produced a summary"

/** Answers of our projection for calls that never got one; Codex and Pi have words of their own for that. */
const isOwed = (item: Item): boolean => item.kind === "result" && item.says === noResult

const length = (text: string): number => Array.from(text).length

/** Whether a result is ours with a piece in the middle left out, as Codex sends long ones that no compaction holds. */
const isShortened = (whole: string, sent: string): boolean => {
  const [, head, left, tail] = /^([^]*)…(\d+) chars truncated…([^]*)$/.exec(sent) ?? []
  return (
    head !== undefined &&
    tail !== undefined &&
    whole.startsWith(head) &&
    whole.endsWith(tail) &&
    length(head) + length(tail) + Number(left) === length(whole)
  )
}

/** Codex answers a call that has no result in words of its own, right behind it. */
const aborted = (items: ReadonlyArray<Item>): ReadonlyArray<Item> => {
  const owed = new Map(
    items.flatMap((item) => (isOwed(item) ? [[item.id, { ...item, says: "aborted" }] as const] : []))
  )
  return items.flatMap((item) => {
    if (isOwed(item)) return []
    const answer = item.kind === "call" ? owed.get(item.id) : undefined
    return answer === undefined ? [item] : [item, answer]
  })
}

const codex: Rules = {
  items: (body) => ofInput(body["input"]),
  before: () => 0,
  after: (sent) => endsWhile(sent, (item) => within(item, "environment_context")),
  sends: (item, next) => {
    if (item.says === foreignNotes.summary && next?.says.startsWith(codexSummary) === true) return []
    if (item.kind === "thought") return item.signature?.startsWith("gAAAA") === true ? [item] : []
    return byAddress(item)
      ? [{ ...item, kind: "text", says: "image content omitted because remote image URLs are not supported" }]
      : [item]
  },
  arranged: aborted,
  alike: (wanted, sent) => wanted.kind === "result" && isShortened(wanted.says, sent.says)
}

const gemini: Rules = {
  items: (body) => ofContents(body["contents"]),
  before: (sent) => startsWhile(sent, (item) => within(item, "session_context")),
  after: () => 0,
  sends: (item) => {
    // Gemini CLI sends no thoughts of answers that are over.
    if (item.kind === "thought") return []
    // Messages that look like commands are left out when a session is loaded.
    if (isUserText(item) && /^\s*[/?]/.test(item.says)) return []
    return [item]
  }
}

const piSummary = (text: string): string =>
  `The conversation history before this point was compacted into the following summary:\n\n<summary>\n${text}\n</summary>`

const pi: Rules = {
  items: (body) => ofMessages(body["messages"]),
  before: (sent) => (isNothing(sent[0]) ? 1 : 0),
  after: () => 0,
  sends: (item, next, _source, sent) => {
    // What Pi itself writes around a summary says that it is one.
    const isWrapped = next !== undefined && sent.some(({ says }) => says === piSummary(next.says))
    if (item.says === foreignNotes.summary && isWrapped) return []
    // To another model Pi tells thoughts as texts, and no blank ones.
    const told: Item = item.kind === "thought" ? { role: item.role, kind: "text", says: item.says } : item
    if (told.kind === "text" && told.role === "model" && told.says.trim() === "") return []
    if (isOwed(told)) return [{ ...told, says: "No result provided" }]
    return byAddress(told) ? [] : [told]
  },
  arranged: summaryFirst,
  alike: (wanted, sent) => isUserText(wanted) && sent.says === piSummary(wanted.says)
}

const rules: Readonly<Record<Program["name"], Rules>> = { claude, codex, gemini, pi }

const shown = (item: Item | undefined): string => {
  if (item === undefined) return "nothing"
  const { id, kind, name, role, says } = item
  const text = says.length > 160 ? `${says.slice(0, 120)} … ${says.slice(-30)}` : says
  return [role, kind, name, id, JSON.stringify(text)].filter((one) => one !== undefined).join(" ")
}

const isSame = (wanted: Item, sent: Item, next: Item | undefined, { alike }: Rules): boolean =>
  wanted.role === sent.role &&
  wanted.kind === sent.kind &&
  wanted.name === sent.name &&
  (wanted.id === undefined || wanted.id === sent.id) &&
  (wanted.signature === undefined || sent.kind !== "thought" || wanted.signature === sent.signature) &&
  (wanted.says === sent.says || alike?.(wanted, sent, next) === true)

/** How a comparison ended. */
export interface Compared {
  readonly items: number
  /** Items of our view that are not sent as they are, by a rule of the program. */
  readonly otherwise: number
  /** The first difference that no rule explains. */
  readonly difference: string | undefined
}

/** Calls and results of a request have to belong together, whatever their ids are. */
const unpaired = (sent: ReadonlyArray<Item>): string | undefined => {
  const calls = sent.filter(({ kind }) => kind === "call").map(({ id }) => id)
  const results = sent.filter(({ kind }) => kind === "result").map(({ id }) => id)
  const lone = calls.find((id) => !results.includes(id)) ?? results.find((id) => !calls.includes(id))
  return lone === undefined && calls.length === results.length
    ? undefined
    : `${calls.length} calls, ${results.length} results; not paired: ${lone ?? "one that is there twice"}`
}

/** Compares the request that holds the prompt with our view, contents for the Gemini API. */
export const compare = (
  name: Program["name"],
  source: Source,
  view: unknown,
  requests: ReadonlyArray<ModelRequest>,
  prompt: string
): Compared => {
  const own = rules[name]
  const ours = ofContents(view)
  const asked = requests.map(({ body }) => own.items(body)).filter((items) => items.at(-1)?.says === prompt)
  const [all] = asked
  if (all === undefined || asked.length !== 1) {
    return {
      items: ours.length,
      otherwise: 0,
      difference: `${requests.length} requests, ${asked.length} with the prompt`
    }
  }
  const said = all.slice(0, -1)
  const sent = said.slice(own.before(said), said.length - own.after(said, ours.at(-1)))
  const told = ours.flatMap((item, index) => own.sends(item, ours[index + 1], source, sent))
  const wanted = own.arranged?.(told) ?? told
  const at = Array.from({ length: Math.max(wanted.length, sent.length) }, (_, index) => index).find((index) => {
    const [left, right] = [wanted[index], sent[index]]
    const next = sent[index + 1] ?? all[all.length - 1]
    return left === undefined || right === undefined || !isSame(left, right, next, own)
  })
  return {
    items: ours.length,
    otherwise: ours.length - wanted.filter((item) => ours.includes(item)).length,
    difference:
      at === undefined
        ? unpaired(said)
        : `item ${at + 1} of ${wanted.length}: ours is ${shown(wanted[at])}, sent was ${shown(sent[at])}`
  }
}

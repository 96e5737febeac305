/**
 * Decodes an entry of a Pi session: a header, then a list of entries (version 1) or a tree whose last entry is the leaf (versions 2
 * and 3). The conversation and the facts of a session are folds over these records.
 */

import { isJson, type Json, jsonAt } from "../../text/JsonObject.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { kindAt, textAt, timeAt, usageOf, withCost } from "../JsonRecord.ts"
import { broken } from "../Problem.ts"

/** The model of answers without a model. */
export const unknownModel = "unknown"

/** Entries that this program knows and does not read. */
export const ignoredKinds: ReadonlySet<string> = new Set([
  "thinking_level_change",
  "model_change",
  "custom",
  "label",
  "leaf",
  "session_info",
  "bash left out of context"
])

const other = (kind: string) => ({ _tag: "Other", kind }) as const

const piUsage = (usage: Json): Usage | undefined =>
  withCost(
    usageOf({ input: usage.input, cacheRead: usage.cacheRead, cacheWrite: usage.cacheWrite, output: usage.output }),
    jsonAt(usage, "cost").total
  )

const modelAt = (record: Json, key: string): string | undefined => {
  const model = textAt(record, key)
  return model === unknownModel ? undefined : model
}

/** Returns the text of a command that the user ran, with its output and exit code. */
const commandText = (message: Json): string => {
  const output = textAt(message, "output") ?? ""
  const file = textAt(message, "fullOutputPath")
  const code = message.exitCode
  return [
    `$ ${textAt(message, "command") ?? ""}`,
    output === "" ? "(no output)" : output,
    ...(message.cancelled === true ? ["(cancelled)"] : []),
    ...(typeof code === "number" ? [`exit code ${code}`] : []),
    ...(message.truncated === true && file !== undefined ? [`full output: ${file}`] : [])
  ].join("\n")
}

/** The usage of requests that no answer in the session shows: those of a summary, and of a tool. */
const asideUsage = ({ usage }: Json): Usage | undefined => (isJson(usage) ? piUsage(usage) : undefined)

/** The summary of a branch that was left, or of a compaction within a list of messages. */
const summaryOf = (of: "branch" | "compaction", record: Json, root: ReadonlyArray<string>) =>
  typeof record.summary === "string"
    ? ({ _tag: "Summary", of, text: record.summary, path: [...root, "summary"], usage: asideUsage(record) } as const)
    : broken("summary", "expected a text")

/** What the user or the model said, or a program put there. `path` leads to the content: a text, or a list of blocks. */
const saidBy = (by: "user" | "model" | "program", record: Json, root: ReadonlyArray<string> = ["message"]) => {
  const usage = by === "model" && isJson(record.usage) ? record.usage : undefined
  return {
    _tag: "Message",
    by,
    content: record.content,
    path: [...root, "content"],
    model: by === "model" ? modelAt(record, "model") : undefined,
    usage: usage === undefined ? undefined : piUsage(usage),
    /** When it began. A copy of the message keeps that. */
    beganAt: timeAt(record),
    /** Whether it costs nothing here: an answer that was carried to Pi was paid where it was given. */
    isFree: isJson(usage?.cost) && usage.cost.total === 0
  } as const
}

const resultOf = (message: Json) =>
  ({
    _tag: "Result",
    call: textAt(message, "toolCallId"),
    tool: textAt(message, "toolName"),
    failed: message.isError === true,
    content: message.content,
    usage: asideUsage(message)
  }) as const

/** A command that the user ran, with its output. */
const commandOf = (message: Json) =>
  message.excludeFromContext === true
    ? other("bash left out of context")
    : ({ _tag: "Command", text: commandText(message) } as const)

const compactionOf = (record: Json) => {
  const { firstKeptEntryId: id, firstKeptEntryIndex: index, summary, tokensBefore: tokens } = record
  if (typeof summary !== "string") return broken("summary", "expected a text in a compaction")
  return {
    _tag: "Compacted",
    text: summary,
    path: ["summary"],
    /** An id, or in version 1 the number of a record (the header is 0). */
    firstKept: typeof id === "string" ? id : typeof index === "number" ? index : undefined,
    /** The number of messages that were kept, where they stand here once more (Pi since the harness of 2026). */
    kept: Array.isArray(record.retainedTail) ? record.retainedTail.length : 0,
    usage: asideUsage(record),
    tokens: typeof tokens === "number" && tokens > 0 ? tokens : undefined
  } as const
}

/** How a message of each role is read. */
const messageReaders = {
  user: (message: Json) => saidBy("user", message),
  assistant: (message: Json) => saidBy("model", message),
  toolResult: resultOf,
  bashExecution: commandOf,
  custom: (message: Json) => saidBy("program", message),
  hookMessage: (message: Json) => saidBy("program", message),
  branchSummary: (message: Json) => summaryOf("branch", message, ["message"]),
  compactionSummary: (message: Json) => summaryOf("compaction", message, ["message"])
}
type Message = ReturnType<(typeof messageReaders)[keyof typeof messageReaders]>
const messageReaderOf = new Map<unknown, (message: Json) => Message>(Object.entries(messageReaders))

const messageOf = ({ message }: Json) => {
  if (!isJson(message)) return broken("message", "expected an object with role and content")
  return messageReaderOf.get(message.role)?.(message) ?? other(`message: ${String(message.role)}`)
}

/** How each kind of entry is read. */
const readers = {
  session: (record: Json) =>
    ({
      _tag: "Session",
      version: record.version,
      folder: textAt(record, "cwd"),
      model: textAt(record, "modelId"),
      level: textAt(record, "thinkingLevel")
    }) as const,
  message: messageOf,
  compaction: compactionOf,
  branch_summary: (record: Json) => summaryOf("branch", record, []),
  custom_message: (record: Json) => saidBy("program", record, []),
  model_change: (record: Json) => ({ _tag: "ModelChanged", model: modelAt(record, "modelId") }) as const,
  thinking_level_change: (record: Json) => ({ _tag: "LevelChanged", level: record.thinkingLevel }) as const,
  session_info: (record: Json) => ({ _tag: "Titled", title: textAt(record, "name") ?? "" }) as const
}
type Body = ReturnType<(typeof readers)[keyof typeof readers]>
const readerOf = new Map<unknown, (record: Json) => Body>(Object.entries(readers))

/** The kinds of entries that are read as messages or as what is known of the session. */
export const readKinds: ReadonlyArray<string> = Object.keys(readers).filter((kind) => !ignoredKinds.has(kind))

/** Decodes an entry. The blocks of a message stay as they are: few folds read them. */
export const decodePi = (record: Json) => ({
  id: textAt(record, "id"),
  /** null at a root. */
  parent: textAt(record, "parentId") ?? null,
  at: timeAt(record) ?? timeAt(jsonAt(record, "message")),
  ...(readerOf.get(record.type)?.(record) ?? other(kindAt(record)))
})

/** An entry of Pi. */
export type PiRecord = ReturnType<typeof decodePi>

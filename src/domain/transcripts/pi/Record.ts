import type { Usage } from "../../tokens/Tokens.ts"
import { isJson, type Json, kindAt, textAt, timeAt } from "../JsonRecord.ts"
import { recordProblem, type RecordProblem } from "../Problem.ts"
import { piUsage } from "../RecordUsage.ts"

/**
 * Decodes an entry of a Pi session: a header, then a list of entries (version 1) or a tree whose last entry is the leaf (versions 2
 * and 3). The conversation and the facts of a session are folds over these records.
 */

/** Whose message it is: said in the conversation, or put there by a program. */
type Speaker = "user" | "model" | "program"

type Body =
  | {
      readonly _tag: "Session"
      readonly version: unknown
      readonly folder: string | undefined
      readonly model: string | undefined
      readonly level: string | undefined
    }
  | {
      readonly _tag: "Message"
      readonly by: Speaker
      /** A text, or a list of blocks. */
      readonly content: unknown
      /** The path to the content in the record. */
      readonly path: ReadonlyArray<string>
      readonly model: string | undefined
      readonly usage: Usage | undefined
      /** When it began. A copy of the message keeps that. */
      readonly beganAt: number | undefined
      /** Whether it costs nothing here: an answer that was carried to Pi was paid where it was given. */
      readonly isFree: boolean
    }
  | {
      readonly _tag: "Result"
      readonly call: string | undefined
      readonly tool: string | undefined
      readonly failed: boolean
      readonly content: unknown
    }
  /** A command that the user ran, with its output. */
  | { readonly _tag: "Command"; readonly text: string }
  /** The summary of a branch that was left, or of a compaction within a list of messages. */
  | {
      readonly _tag: "Summary"
      readonly of: "branch" | "compaction"
      readonly text: string
      readonly path: ReadonlyArray<string>
    }
  | {
      readonly _tag: "Compacted"
      readonly text: string
      readonly path: ReadonlyArray<string>
      /** An id, or in version 1 the number of a record (the header is 0). */
      readonly firstKept: string | number | undefined
      readonly tokens: number | undefined
    }
  | { readonly _tag: "ModelChanged"; readonly model: string | undefined }
  | { readonly _tag: "LevelChanged"; readonly level: unknown }
  | { readonly _tag: "Titled"; readonly title: string }
  | { readonly _tag: "Other"; readonly kind: string }
  | { readonly _tag: "Broken"; readonly problem: RecordProblem }

/** An entry of Pi. */
export type PiRecord = {
  readonly id: string | undefined
  /** null at a root. */
  readonly parent: string | null
  readonly at: number | undefined
} & Body

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

const broken = (path: string, detail: string): Body => ({ _tag: "Broken", problem: recordProblem(path, detail) })

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

const summaryOf = (of: "branch" | "compaction", { summary }: Json, root: ReadonlyArray<string>): Body =>
  typeof summary === "string"
    ? { _tag: "Summary", of, text: summary, path: [...root, "summary"] }
    : broken("summary", "expected a text")

const said = (by: Speaker, record: Json, root: ReadonlyArray<string>): Body => {
  const usage = by === "model" && isJson(record.usage) ? record.usage : undefined
  return {
    _tag: "Message",
    by,
    content: record.content,
    path: [...root, "content"],
    model: by === "model" ? modelAt(record, "model") : undefined,
    usage: usage === undefined ? undefined : piUsage(usage),
    beganAt: timeAt(record),
    isFree: isJson(usage?.cost) && usage.cost.total === 0
  }
}

const messageOf = (message: Json): Body => {
  const root = ["message"]
  switch (message.role) {
    case "user":
      return said("user", message, root)
    case "assistant":
      return said("model", message, root)
    case "toolResult":
      return {
        _tag: "Result",
        call: textAt(message, "toolCallId"),
        tool: textAt(message, "toolName"),
        failed: message.isError === true,
        content: message.content
      }
    case "bashExecution":
      return message.excludeFromContext === true
        ? { _tag: "Other", kind: "bash left out of context" }
        : { _tag: "Command", text: commandText(message) }
    case "custom":
    case "hookMessage":
      return said("program", message, root)
    case "branchSummary":
      return summaryOf("branch", message, root)
    case "compactionSummary":
      return summaryOf("compaction", message, root)
    default:
      return { _tag: "Other", kind: `message: ${String(message.role)}` }
  }
}

const compactionOf = (record: Json): Body => {
  const { firstKeptEntryId: id, firstKeptEntryIndex: index, summary, tokensBefore: tokens } = record
  if (typeof summary !== "string") return broken("summary", "expected a text in a compaction")
  return {
    _tag: "Compacted",
    text: summary,
    path: ["summary"],
    firstKept: typeof id === "string" ? id : typeof index === "number" ? index : undefined,
    tokens: typeof tokens === "number" && tokens > 0 ? tokens : undefined
  }
}

const bodyOf = (record: Json): Body => {
  switch (record.type) {
    case "session":
      return {
        _tag: "Session",
        version: record.version,
        folder: textAt(record, "cwd"),
        model: textAt(record, "modelId"),
        level: textAt(record, "thinkingLevel")
      }
    case "message":
      return isJson(record.message)
        ? messageOf(record.message)
        : broken("message", "expected an object with role and content")
    case "compaction":
      return compactionOf(record)
    case "branch_summary":
      return summaryOf("branch", record, [])
    case "custom_message":
      return said("program", record, [])
    case "model_change":
      return { _tag: "ModelChanged", model: modelAt(record, "modelId") }
    case "thinking_level_change":
      return { _tag: "LevelChanged", level: record.thinkingLevel }
    case "session_info":
      return { _tag: "Titled", title: textAt(record, "name") ?? "" }
    default:
      return { _tag: "Other", kind: kindAt(record) }
  }
}

/** Decodes an entry. The blocks of a message stay as they are: few folds read them. */
export const decodePi = (record: Json): PiRecord => ({
  id: textAt(record, "id"),
  parent: textAt(record, "parentId") ?? null,
  at: timeAt(record) ?? (isJson(record.message) ? timeAt(record.message) : undefined),
  ...bodyOf(record)
})

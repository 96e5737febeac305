/** The `recall` tool: reads back or searches what left the window, within a token budget. */

import { Effect, Option, Result, Schema } from "effect"
import { isMedia, isPart } from "../../../domain/content/Content.ts"
import { type Handle, isHandle, mentions } from "../../../domain/content/Handle.ts"
import { mediaText, responseContent } from "../../../domain/content/MediaBlocks.ts"
import type { Excerpt, Selection } from "../../../domain/conversation/Excerpt.ts"
import { recallable, similarHandles } from "../../../domain/conversation/Recall.ts"
import type { FoundParts, RecallSearch } from "../../../domain/conversation/RecallSearch.ts"
import { parsedOrUndefined } from "../../../domain/text/JsonText.ts"
import { markStart, redacting } from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../../domain/tokens/Tokens.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import type { Chat } from "../../chat/Chat.ts"
import type { BadPattern } from "../../platform/Patterns.ts"
import type { SessionStoreError } from "../../session/SessionStore.ts"
import { select, type TempStoreError } from "../../session/TempStore.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"

/** Another conversation that can be read: that of an agent this one started. */
export interface RecallSource extends Pick<Chat["Service"], "recall" | "search"> {
  /** The id of its session. */
  readonly session: string
}

/** Default and maximum tokens of an answer. A larger answer would be shortened again. */
const defaultTokens = 4_000
const maxTokensLimit = 10_000
/** The handle in an argument: models sometimes copy the text around it. */
const handleIn = (argument: string): Handle | undefined => {
  const trimmed = argument.trim()
  return isHandle(trimmed) ? trimmed : mentions(trimmed)[0]
}

const isMissing = (error: TempStoreError | BadPattern | SessionStoreError): boolean =>
  error._tag === "TempStoreError" && error.reason._tag === "HandleNotHeld"

const failed = (message: string, type: string): ToolFailure => new ToolFailure({ message, type })

/** The conversation whose agent recalls, and the agents it started. */
interface RecallScope {
  readonly chat: Pick<Chat["Service"], "recall" | "conversation"> &
    Partial<Pick<Chat["Service"], "settings">> & {
      readonly search: (
        request: RecallSearch
      ) => Effect.Effect<FoundParts, BadPattern | SessionStoreError | TempStoreError>
    }
  readonly others: Effect.Effect<ReadonlyArray<RecallSource>>
  /** Says who can read the secrets that are left out of what is behind this handle; without one, of everything. */
  readonly secretsReader: (handle: Handle | undefined) => string
}

const userWithCommand = (handle: Handle | undefined): string =>
  `the user reads them with palimpsest recall${handle === undefined ? "" : ` SESSION ${handle}`}`

const Parameters = Schema.Struct({
  handle: Schema.optionalKey(
    Schema.String.annotate({ description: "The handle, such as h_abcdefghij. Leave it out to search everything" })
  ),
  from: Schema.optionalKey(Schema.Natural.annotate({ description: "The first line, counted from 1" })),
  to: Schema.optionalKey(Schema.Natural.annotate({ description: "The last line" })),
  grep: Schema.optionalKey(Schema.String.annotate({ description: "A regular expression that the lines match" })),
  maxTokens: Schema.optionalKey(
    Schema.Natural.annotate({
      description: `Maximum tokens to read. Default: ${defaultTokens}; never more than ${maxTokensLimit}`
    })
  ),
  session: Schema.optionalKey(
    Schema.String.annotate({
      description: "For a handle from an agent that you started: the session that the agent named"
    })
  )
})
type Parameters = typeof Parameters.Type

/** The failure for a handle under which nothing is kept. It suggests similar handles of this conversation. */
const unknown = Effect.fnUntraced(function* ({ chat }: RecallScope, handle: string, session: string | undefined) {
  const near = session === undefined ? similarHandles(recallable(yield* chat.conversation), handle) : []
  if (near.length > 0) {
    return yield* failed(`nothing is kept under ${handle}; did you mean ${near.join(" or ")}?`, "unknown_handle")
  }
  const where = session === undefined ? "here" : `in session ${session}`
  return yield* failed(
    `nothing is kept under ${handle} ${where}; copy a handle exactly as a shortened output or the summary shows it, or run again what gave that output`,
    "unknown_handle"
  )
})

/** The conversations in which a call looks: all, or the one of a session. */
const sourcesOf = Effect.fnUntraced(function* ({ chat, others }: RecallScope, session: string | undefined) {
  const agents = yield* others
  if (session === undefined) return [chat, ...agents]
  const one = agents.find((source) => source.session === session)
  if (one !== undefined) return [one]
  const ids = agents.map((source) => source.session)
  return yield* failed(
    ids.length === 0
      ? `there is no session ${session}: no agent was started here; leave session out`
      : `there is no session ${session}; there are: ${ids.join(", ")}`,
    "unknown_session"
  )
})

const showsSecrets = Effect.fnUntraced(function* ({ chat: { settings } }: RecallScope) {
  return settings !== undefined && (yield* settings).policy?.redactSecrets === false
})

/** Searches everything that left the window. */
const searchAll = Effect.fnUntraced(function* (scope: RecallScope, { grep, session }: Parameters, maxTokens: number) {
  if (grep === undefined) {
    return yield* failed("give a handle, or grep to search everything that left", "invalid_tool_params")
  }
  const [source = scope.chat] = yield* sourcesOf(scope, session)
  const { matched, text } = yield* source
    .search({ pattern: grep, maxTokens, isRedacted: !(yield* showsSecrets(scope)) })
    .pipe(
      Effect.mapError((error) =>
        error._tag === "BadPattern"
          ? failed(`grep: ${error.message}`, "invalid_tool_params")
          : failed(error.message, "recall_failed")
      )
    )
  const note = text.includes(markStart) ? `\n(secrets are left out; ${scope.secretsReader(undefined)})` : ""
  return {
    value: `${text}${note}`,
    display: textDisplay(matched === 1 ? "1 part matches" : `${matched} parts match`)
  }
})

/** Reads a selection of what is kept under a handle. */
const readSelection = Effect.fnUntraced(function* (
  source: Pick<Chat["Service"], "recall">,
  handle: Handle,
  selection: Selection,
  isExact: boolean
) {
  if (isExact) return { found: yield* source.recall(handle, selection), secrets: 0 }
  // Redacts the whole text first: a selection could separate a secret from its name.
  const whole = yield* source.recall(handle)
  const { secrets, text } = yield* Work.run(redacting(whole.text))
  return { found: yield* select(text, selection), secrets: secrets.length }
})

/** Images and files behind a handle, which come back as they were; undefined for a text, and for more than an answer may have. */
const recalledMedia = Effect.fnUntraced(function* (
  source: Pick<Chat["Service"], "recall">,
  handle: Handle,
  found: Excerpt
) {
  if (!/^\{"(?:inlineData|fileData|functionResponse)"/.test(found.text)) return undefined
  const whole = yield* Effect.option(source.recall(handle))
  const part = Option.flatMap(whole, ({ text }) => Option.fromUndefinedOr(parsedOrUndefined(text)))
  if (Option.isNone(part) || !isPart(part.value)) return undefined
  const { media, text } = isMedia(part.value)
    ? { media: [part.value], text: mediaText(part.value) }
    : responseContent(part.value)
  let tokens = estimateText(text)
  for (const one of media) tokens += yield* Work.run(partTokens(one))
  if (media.length === 0 || tokens > maxTokensLimit) return undefined
  return { value: text, display: textDisplay(media.map(mediaText).join(" ")), media }
})

const run = Effect.fnUntraced(function* (scope: RecallScope, args: Parameters) {
  const { from, grep, handle: argument = "", maxTokens: budget = defaultTokens, session, to } = args
  const maxTokens = Math.min(budget, maxTokensLimit)
  if (argument.trim() === "") return yield* searchAll(scope, args, maxTokens)
  const handle = handleIn(argument)
  if (handle === undefined) return yield* unknown(scope, argument.trim(), session)
  const selection: Selection = {
    maxTokens,
    ...(from === undefined && to === undefined ? {} : { lines: [from ?? 1, to ?? Number.MAX_SAFE_INTEGER] }),
    ...(grep === undefined ? {} : { grep })
  }
  const isExact = yield* showsSecrets(scope)
  for (const source of yield* sourcesOf(scope, session)) {
    const read = yield* Effect.result(readSelection(source, handle, selection, isExact))
    if (Result.isSuccess(read)) {
      const isWhole = grep === undefined && from === undefined && to === undefined
      const media = isWhole ? yield* recalledMedia(source, handle, read.success.found) : undefined
      return media ?? recallAnswer(scope, handle, read.success, selection)
    }
    const error = read.failure
    if (isMissing(error)) continue
    return yield* error._tag === "BadPattern"
      ? failed(`grep is not a regular expression that can be used: ${error.message}`, "invalid_tool_params")
      : failed(error.message, "recall_failed")
  }
  return yield* unknown(scope, handle, session)
})

/**
 * The `recall` tool. Reads by handle, lines or pattern, or searches everything. Secrets are left out unless the chat's policy says
 * otherwise (`redactSecrets`); the user reads them with `palimpsest recall`.
 */
export const recall = (
  chat: RecallScope["chat"],
  others: RecallScope["others"] = Effect.succeed([]),
  secretsReader: RecallScope["secretsReader"] = userWithCommand
): Tool =>
  make({
    name: "recall",
    description:
      "Reads back exactly what left the conversation or was shortened. Give its handle (h_ and letters) as it is shown there; of long texts ask for lines, or for lines that match. Without a handle, grep searches everything that left: words of the user first, then yours, arguments and outputs, with the handle of each.",
    parameters: Parameters,
    result: Schema.String,
    kind: "read",
    title: ({ grep, handle }) => [handle, grep].filter((each) => each !== undefined).join(" "),
    run: (args) => run({ chat, others, secretsReader }, args)
  })

const lines = (count: number): string => (count === 1 ? "1 line" : `${count} lines`)

interface RecalledText {
  readonly found: Excerpt
  readonly secrets: number
}

const recallAnswer = (
  { secretsReader }: RecallScope,
  handle: Handle,
  { found: { omittedLines, text, totalLines }, secrets }: RecalledText,
  { grep, lines: range }: Selection
) => {
  const display = textDisplay(`${lines(totalLines)} behind ${handle}`)
  const note =
    secrets > 0 && text.includes(markStart) ? `\n(secrets in this text are left out; ${secretsReader(handle)})` : ""
  if (omittedLines > 0) {
    return {
      value: `${text}\n(${lines(omittedLines)} more of ${totalLines}; ask for them by number, or by grep)${note}`,
      display
    }
  }
  if (text !== "" || (grep === undefined && range === undefined)) return { value: `${text}${note}`, display }
  const why = grep === undefined ? "has none of the lines asked for" : "has no line that matches"
  return { value: `${handle} ${why}; it has ${lines(totalLines)}.`, display }
}

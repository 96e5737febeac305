/** The `recall` command: prints what left the window of a conversation in a file. */

import { Effect } from "effect"
import { Command } from "effect/cli"
import { payload } from "../../domain/content/Content.ts"
import { type Handle, isHandle, matches } from "../../domain/content/Handle.ts"
import { sourceOf } from "../../domain/conversation/Conversation.ts"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import { findHandle } from "../../domain/conversation/Recall.ts"
import { hiddenParts } from "../../domain/conversation/RecallSearch.ts"
import { recallableOf, type Session } from "../../domain/session/Session.ts"
import { decode, encode } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { BlobFolder, blobFolderOf, search, select, TempStore } from "../../services/session/TempStore.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

const unknown = (file: string, handle: string): ExitError =>
  badInput(`${file} has no handle ${handle}; "palimpsest inspect ${file}" lists the handles`)

/** Returns the blob folder named after the file without its extension; files that differ only in the extension share it. */
const sharedFolder = (file: string): string => `${file.replace(/(?<=[^/\\])\.[^./\\]+$/, "")}.blobs`

/** Whether a conversation contains a handle or its hash. */
const refersTo = (session: Session | undefined, name: Handle): boolean =>
  session !== undefined &&
  recallableOf(session).entries.some((entry) =>
    entry.content.parts.some((part, index) => payload(part, sourceOf(entry, index)).text.includes(name.slice(2)))
  )

const stored = Effect.fnUntraced(function* (file: string, name: string, sessions: ReadonlyArray<Session | undefined>) {
  if (file === "-" || !isHandle(name)) return yield* unknown(file, name)
  const { at } = yield* BlobFolder
  const isReferred = sessions.some((session) => refersTo(session, name))
  for (const folder of [blobFolderOf(file), ...(isReferred ? [sharedFolder(file)] : [])]) {
    const bytes = yield* TempStore.use((store) => Effect.flatMap(store.resolve(name), store.get)).pipe(
      Effect.catchReason("TempStoreError", "BlobMissing", () => Effect.void),
      Effect.mapError((error) =>
        error.reason._tag === "HandleAmbiguous" ? badInput(error.message) : failed(`${folder}: ${error.message}`)
      ),
      Effect.provide(at(folder))
    )
    if (bytes !== undefined) return bytes
  }
  return yield* unknown(file, name)
})

/** The default size of an answer without a handle. */
const defaultTokens = 4_000

/** Prints where a pattern occurs in everything that left the window. Like grep, the status tells whether it does. */
const searchAll = Effect.fnUntraced(function* (
  { session, sidecar }: { readonly session: Session; readonly sidecar: Session | undefined },
  pattern: string,
  maxTokens: number
) {
  const sessions = sidecar === undefined ? [session] : [session, sidecar]
  const parts = yield* Effect.forEach(sessions, ({ conversation }) => Work.run(hiddenParts(conversation)))
  if (parts.every((list) => list.length === 0)) {
    return yield* failed("nothing has left the window of this conversation; search the file itself")
  }
  const { matched, text } = yield* search(parts.flat(), { pattern, maxTokens, isRedacted: false }).pipe(
    Effect.mapError((error) => badInput(`--grep: ${error.message}`))
  )
  if (matched === 0) return yield* failed(`${text.replace(/\.$/, "")}; try another --grep`)
  if (yield* Output.exact(text)) yield* Output.notice(spelledNotice)
})

const spelledNotice = "invisible characters are shown as codes; redirect the output to a file for the exact bytes"

/** The command `palimpsest recall <file> [<handle>]`. */
export const recall = Command.make(
  "recall",
  {
    ...Input.conversation,
    handle: Input.optionalArgument(
      "handle",
      "Handle (h_…) as inspect lists it, or its beginning; without it, --grep searches what left the window"
    ),
    lines: Input.lines("lines", "Print only these lines, counted from 1"),
    grep: Input.text(
      "grep",
      "regex",
      "Print only matching lines, numbered; exit status 1 if none match. Without a handle, search everything that left the window"
    ),
    maxTokens: Input.size("max-tokens", "Print at most this many tokens")
  },
  Effect.fn("cli.recall")(function* (flags) {
    const input = { ...flags, file: yield* ConversationInput.locate(flags.file) }
    const { grep, lines, maxTokens } = input
    const file = printableLine(input.file)
    if (input.handle === undefined && (grep === undefined || lines !== undefined)) {
      return yield* badInput("give a handle, or --grep alone to search everything that left the window")
    }
    const { session, sidecar } = yield* ConversationInput.load(input)
    if (input.handle === undefined)
      return yield* searchAll({ session, sidecar }, grep ?? "", maxTokens ?? defaultTokens)
    const name = printableLine(input.handle)
    const own = findHandle(recallableOf(session), name)
    const match = own._tag === "Unknown" && sidecar !== undefined ? findHandle(recallableOf(sidecar), name) : own
    if (match._tag === "Ambiguous") {
      return yield* badInput(`${name} is the beginning of ${match.handles.length} handles: ${match.handles.join(", ")}`)
    }
    const bytes =
      match._tag === "Found" ? encode(match.payload.text) : yield* stored(input.file, name, [session, sidecar])
    if (match._tag === "Found" && name.length > match.handle.length) {
      const hash = yield* TempStore.use((store) => store.hash(bytes))
      if (!isHandle(name) || !matches(name, hash)) return yield* unknown(file, name)
    }

    const tellIfSpelled = (isSpelled: boolean) => (isSpelled ? Output.notice(spelledNotice) : Effect.void)
    if (grep === undefined && lines === undefined && maxTokens === undefined) {
      return yield* Effect.flatMap(Output.bytes(bytes), tellIfSpelled)
    }
    const selection: Selection = {
      ...(lines === undefined ? {} : { lines: lines }),
      ...(grep === undefined ? {} : { grep }),
      ...(maxTokens === undefined ? {} : { maxTokens })
    }
    const excerpt = yield* select(decode(bytes).text, selection).pipe(
      Effect.mapError((error) => badInput(`--grep: ${error.message}`))
    )
    if (excerpt.text !== "") yield* Effect.flatMap(Output.exact(excerpt.text), tellIfSpelled)
    const lineCount = Output.plural(excerpt.totalLines, "line")
    if (excerpt.omittedLines > 0) {
      yield* Output.notice(`${Output.plural(excerpt.omittedLines, "more line")} cut by --max-tokens`)
    } else if (excerpt.text === "") {
      // Like grep, the status tells a script whether any line matched.
      if (grep !== undefined) return yield* failed(`no match in ${lineCount}; try another --grep`)
      yield* Output.notice(`there are only ${lineCount}`)
    }
  })
).pipe(
  Input.withExamples({
    "palimpsest recall session.jsonl h_abcdefghij > output.txt": "Save a tool output byte for byte",
    "palimpsest recall session.jsonl h_abcdefghij --grep 'error|fail'": "Print matching lines",
    "palimpsest recall session.jsonl --grep timeout": "Find the handles of everything that mentions a word"
  })
)

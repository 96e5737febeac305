import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { decode, encode } from "../../domain/Bytes.ts"
import type { Selection } from "../../domain/Excerpt.ts"
import { payload } from "../../domain/Content.ts"
import { sourceOf } from "../../domain/Conversation.ts"
import { type Handle, isHandle, matches } from "../../domain/Handle.ts"
import { printable } from "../../domain/Inspection.ts"
import { find } from "../../domain/Recall.ts"
import { recallableOf, type Session } from "../../domain/Session.ts"
import { BlobFolder, blobFolderOf, select, TempStore } from "../../services/TempStore.ts"
import { badInput, type ExitError, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"

const unknown = (file: string, handle: string): ExitError =>
  badInput(`${file} holds nothing under the handle ${handle}; "palimpsest inspect ${file}" lists handles`)

/** The folder of blobs named without the file's extension. Files of other names and extensions may share it. */
const sharedFolder = (file: string): string => `${file.replace(/(?<=[^/\\])\.[^./\\]+$/, "")}.blobs`

/** Whether a conversation refers to what lies under a handle: it shows the handle, or the hash. */
const refersTo = (session: Session | undefined, name: Handle): boolean =>
  session !== undefined &&
  recallableOf(session).entries.some((entry) =>
    entry.content.parts.some((part, index) => payload(part, sourceOf(entry, index)).text.includes(name.slice(2)))
  )

const stored = Effect.fnUntraced(function* (
  file: string,
  name: string,
  sessions: ReadonlyArray<Session | undefined>
): Effect.fn.Return<Uint8Array, ExitError, BlobFolder> {
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

/** `palimpsest recall <file> <handle>`. */
export const recall = Command.make(
  "recall",
  {
    ...Input.conversation,
    handle: Argument.String("handle").pipe(
      Argument.withDescription("What to read: a handle (h_…) as inspect lists them, or its beginning")
    ),
    lines: Input.optional(Input.lines("lines")).pipe(Flag.withDescription("Only these lines, counted from 1")),
    grep: Input.optional(Flag.String("grep").pipe(Flag.withMetavar("regex"))).pipe(
      Flag.withDescription("Only lines that match, with their numbers; exit status 1 when none does")
    ),
    maxTokens: Input.optional(Input.size("max-tokens")).pipe(Flag.withDescription("No more than this many tokens"))
  },
  Effect.fn("cli.recall")(function* (input) {
    const file = printable(input.file)
    const name = printable(input.handle)
    const { session, sidecar } = yield* Input.load(input)
    const own = find(recallableOf(session), name)
    const found = own._tag === "Unknown" && sidecar !== undefined ? find(recallableOf(sidecar), name) : own
    if (found._tag === "Ambiguous") {
      return yield* badInput(`${name} is the beginning of ${found.handles.length} handles: ${found.handles.join(", ")}`)
    }
    const bytes =
      found._tag === "Found" ? encode(found.payload.text) : yield* stored(input.file, name, [session, sidecar])
    if (found._tag === "Found" && name.length > found.handle.length) {
      const hash = yield* TempStore.use((store) => store.hash(bytes))
      if (!isHandle(name) || !matches(name, hash)) return yield* unknown(file, name)
    }

    const { grep, lines, maxTokens } = input
    const tellIfSpelled = (isSpelled: boolean) =>
      isSpelled
        ? Output.notice("what cannot be seen is spelled out here; redirect the output to a file for the exact bytes")
        : Effect.void
    if (grep === undefined && lines === undefined && maxTokens === undefined) {
      return yield* Effect.flatMap(Output.bytes(bytes), tellIfSpelled)
    }
    const selection: Selection = {
      ...(lines === undefined ? {} : { lines }),
      ...(grep === undefined ? {} : { grep }),
      ...(maxTokens === undefined ? {} : { maxTokens })
    }
    const excerpt = yield* select(decode(bytes).text, selection).pipe(
      Effect.mapError((error) => badInput(`--grep: ${error.message}`))
    )
    if (excerpt.text !== "") yield* Effect.flatMap(Output.exact(excerpt.text), tellIfSpelled)
    const lineCount = Output.plural(excerpt.totalLines, "line")
    if (excerpt.omittedLines > 0) {
      yield* Output.notice(`${Output.plural(excerpt.omittedLines, "more line")} left out by --max-tokens`)
    } else if (excerpt.text === "") {
      // As grep does: a script learns from the status whether anything matched.
      if (grep !== undefined) return yield* failed(`no match in ${lineCount}; try another --grep`)
      yield* Output.notice(`there are only ${lineCount}`)
    }
  })
).pipe(
  Command.withDescription("Prints the exact bytes behind a handle"),
  Command.withExamples([
    { command: "palimpsest recall session.jsonl h_abcdefghij > output.txt", description: "Everything, byte for byte" },
    {
      command: "palimpsest recall session.jsonl h_abcdefghij --grep 'error|fail'",
      description: "The lines that matter"
    }
  ])
)

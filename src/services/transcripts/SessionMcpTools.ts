/** The tools and resources of the MCP server that reads sessions. All of them only read, and their answers are bounded. */

import { Context, Effect, Layer, Schema } from "effect"
import { McpSchema, McpServer } from "effect/ai"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { SessionAnswerError, SessionAnswers } from "./SessionAnswers.ts"

/** Default and maximum tokens of an answer. */
const defaultTokens = 4_000
const maxTokens = 20_000

const tokens = Schema.optionalKey(
  Schema.Natural.annotate({
    description: `Maximum tokens of the answer. Default: ${defaultTokens}; at most ${maxTokens}`
  })
)
const session = Schema.optionalKey(
  Schema.String.annotate({ description: "The id of another session of this folder. Leave it out for the current one" })
)

const since = Schema.optionalKey(
  Schema.String.annotate({
    description: "An entry (e12), a time (2026-02-03T10:00Z) or an age (30m, 2h, 1d). Default: the last compaction"
  })
)

const bounded = (requested: number | undefined): number => Math.min(requested ?? defaultTokens, maxTokens)

const answer = (effect: Effect.Effect<string, SessionAnswerError>) =>
  Effect.match(effect, {
    onSuccess: (text) => new McpSchema.CallToolResult({ content: [{ type: "text", text }] }),
    onFailure: ({ message }) =>
      new McpSchema.CallToolResult({ isError: true, content: [{ type: "text", text: message }] })
  })

/** Registers a tool that reads. */
const add = Effect.fnUntraced(function* <A>(options: {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly schema: Schema.Codec<A, unknown>
  readonly run: (input: A) => Effect.Effect<string, SessionAnswerError>
}) {
  const server = yield* McpServer.McpServer
  const decode = Schema.decodeUnknownEffect(options.schema)
  const { definitions, schema } = Schema.toJsonSchemaDocument(options.schema)
  yield* server.addTool({
    tool: new McpSchema.Tool({
      name: options.name,
      description: options.description,
      inputSchema: {
        type: "object",
        ...schema,
        ...(Object.keys(definitions).length > 0 ? { $defs: definitions } : {})
      },
      annotations: {
        title: options.title,
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false
      }
    }),
    annotations: Context.empty(),
    handle: (payload) =>
      decode(payload ?? {}).pipe(
        Effect.mapError(({ message }) => new McpSchema.InvalidParams({ message })),
        Effect.flatMap((input) => answer(options.run(input)))
      )
  })
})

const listed = ({ list }: SessionAnswers): Effect.Effect<string> =>
  Effect.map(list, (sessions) =>
    sessions.length === 0
      ? "no session was started in this folder"
      : sessions
          .map(({ file, session, title }) =>
            [
              session ?? file.id,
              file.agent,
              new Date(file.updatedAt).toISOString(),
              printableLine(title ?? "(no title)")
            ].join("  ")
          )
          .join("\n")
  )

const addResources = Effect.fnUntraced(function* ({ changes, snapshot }: SessionAnswers) {
  yield* McpServer.registerResource({
    uri: "palimpsest://session/snapshot",
    name: "Handover of the current session",
    description:
      "The user's words, where the work stands, files, commands, lessons, and an index of names with handles",
    mimeType: "text/plain",
    content: Effect.catch(snapshot(defaultTokens, undefined), ({ message }) => Effect.succeed(message))
  })
  yield* McpServer.registerResource({
    uri: "palimpsest://session/changes",
    name: "What changed since the last compaction",
    mimeType: "text/plain",
    content: Effect.catch(changes(undefined, undefined), ({ message }) => Effect.succeed(message))
  })
})

/** What the server tells a client about itself. */
export const instructions =
  "Exact recall of what this and earlier conversations in this folder said and did, also of what a compaction dropped. When something from before is missing (a decision, an error text, a file's content, the user's words), search_history finds it with its handle, and recall reads it back word for word."

/** The tools and resources. `others`: whether other sessions of the folder can be read. */
export const layer = (answers: SessionAnswers, others: boolean): Layer.Layer<never, never, McpServer.McpServer> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* add({
        name: "recall",
        title: "Recall a text by its handle",
        description:
          "Reads back the exact text behind a handle (h_ and letters): a message, the arguments of a call, a tool's output. Of long texts ask for lines, or for lines that match a pattern.",
        schema: Schema.Struct({
          handle: Schema.String.annotate({ description: "The handle, such as h_abcdefghij" }),
          from: Schema.optionalKey(Schema.Natural.annotate({ description: "The first line, counted from 1" })),
          to: Schema.optionalKey(Schema.Natural.annotate({ description: "The last line" })),
          pattern: Schema.optionalKey(
            Schema.String.annotate({ description: "A regular expression that the lines match" })
          ),
          tokens,
          session
        }),
        run: ({ from, handle, pattern, session, to, tokens }) =>
          answers.recall(
            handle,
            {
              maxTokens: bounded(tokens),
              ...(from === undefined && to === undefined ? {} : { lines: [from ?? 1, to ?? Number.MAX_SAFE_INTEGER] }),
              ...(pattern === undefined ? {} : { grep: pattern })
            },
            session
          )
      })
      yield* add({
        name: "search_history",
        title: "Search the conversation",
        description:
          "Searches everything said and done in the conversation, also before compactions: the user's words first, then the agent's, arguments and outputs, each with its handle for recall.",
        schema: Schema.Struct({
          pattern: Schema.String.annotate({ description: "A regular expression, or plain text" }),
          tokens,
          session
        }),
        run: ({ pattern, session, tokens }) => answers.search(pattern, bounded(tokens), session)
      })
      yield* add({
        name: "what_changed",
        title: "What changed since a point",
        description:
          "Lists files changed, commits, checks, commands and open failures since an entry, a time or the last compaction, with handles.",
        schema: Schema.Struct({ since, session }),
        run: ({ session, since }) => answers.changes(since, session)
      })
      yield* add({
        name: "snapshot",
        title: "Handover of a session",
        description:
          "Writes a handover of a conversation within a token budget: the user's words, where the work stands, files, commands, lessons, and an index of names with handles.",
        schema: Schema.Struct({ tokens, session }),
        run: ({ session, tokens }) => answers.snapshot(bounded(tokens), session)
      })
      if (others) {
        yield* add({
          name: "list_sessions",
          title: "Sessions of this folder",
          description: "Lists the newest sessions of this folder: id, agent, time and title, for the session argument.",
          schema: Schema.Struct({}),
          run: () => listed(answers)
        })
      }
      yield* addResources(answers)
    })
  )

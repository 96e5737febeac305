/** The HTTP API of the server: its paths, what they take and what they answer. */

import { Context, type Effect, Schema } from "effect"
import {
  HttpApi,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity,
  OpenApi
} from "effect/http-api"
import { Decision } from "../../domain/compression/Compression.ts"
import { Handle } from "../../domain/content/Handle.ts"
import { EntryId } from "../../domain/conversation/Conversation.ts"
import { Excerpt } from "../../domain/conversation/Excerpt.ts"
import { FoundParts } from "../../domain/conversation/RecallSearch.ts"
import { ServedEvent } from "../../domain/serve/EventBuffer.ts"
import { isBinary, textOf } from "../../domain/serve/MessageFiles.ts"
import { LedgerTotals, SessionLedger, ShownMessage } from "../../domain/serve/SessionLedger.ts"
import { Metadata, RecordChange, SessionRecord, TurnOptions } from "../../domain/serve/SessionRecord.ts"
import { CallQuestion, ClientAnswer } from "../../domain/session/CallQuestions.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import { BadRequest, bodyErrors, errors, NotFound, TooMany, Unauthorized, Unavailable } from "./ServeErrors.ts"

/** An id of a session or of a message. */
const Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/)).annotate({
  description: "1 to 64 letters, digits, hyphens or underscores"
})
const session = { id: Id }
const Count = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(0))
const upTo = (limit: number) => Count.check(Schema.isLessThanOrEqualTo(limit))
const maxText = 1_000_000
const Text = Schema.String.check(Schema.isMaxLength(maxText))
const maxMedia = 16

/** A session in a list. Times are milliseconds since 1970. */
export const SessionRow = Schema.Struct({
  id: Schema.String,
  title: Schema.NullOr(Schema.String),
  firstPrompt: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  startedAt: Schema.Finite,
  updatedAt: Schema.Finite,
  bytes: Schema.Natural,
  /** The message whose turn is running. */
  running: Schema.NullOr(Schema.String),
  /** Whether another process has it open. */
  isHeld: Schema.Boolean,
  /** Why it cannot be opened. */
  problem: Schema.NullOr(Schema.String),
  metadata: Metadata,
  /** Its totals, if requested. */
  totals: Schema.optionalKey(LedgerTotals)
})
export type SessionRow = typeof SessionRow.Type

/** An image, a sound, a document or a file of text of a message, as base64. The body of a request bounds its size. */
export const MessageMedia = Schema.Struct({
  mimeType: Schema.String.check(
    Schema.isPattern(/^(?:image|audio|video|text)\/[\w.+-]{1,60}$|^application\/(?:pdf|json|xml|yaml|toml)$/)
  ),
  data: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9+/]+={0,2}$/)),
  name: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[^\p{C}/\\]{1,120}$/u))).annotate({
    description: "The name of the file"
  })
}).check(
  Schema.makeFilter((media) => isBinary(media) || textOf(media) !== undefined, {
    expected: "a file of text in UTF-8"
  })
)
export type MessageMedia = typeof MessageMedia.Type

/** A page of a list of sessions. */
export const SessionPage = Schema.Struct({
  sessions: Schema.Array(SessionRow),
  /** The number of sessions after these. */
  more: Schema.Natural,
  /** The cursor of the next page; null where there is none. */
  next: Schema.NullOr(Schema.String)
})
export type SessionPage = typeof SessionPage.Type

/** A session with its last messages. */
export const SessionView = Schema.Struct({
  ...SessionRow.fields,
  totals: LedgerTotals,
  messages: Schema.Array(ShownMessage),
  /** The number of earlier messages. */
  earlier: Schema.Natural,
  /**
   * The id of the event after which the stream continues these messages: the last one before a running turn, else the
   * last one.
   */
  lastEvent: Schema.String,
  /** What clients set for it. */
  record: SessionRecord,
  /** The questions of the turn that wait for an answer. */
  questions: Schema.Array(CallQuestion)
})
export type SessionView = typeof SessionView.Type

/** The name of the schema of an event's data in the OpenAPI document, whose streams refer to it. */
const DocumentedEvent = ServedEvent.annotate({ identifier: "ServedEvent" })
const EventJson = Schema.String.annotate({
  contentMediaType: "application/json",
  contentSchema: { $ref: "#/components/schemas/ServedEvent" }
})

/** An event of a stream. Clients send `id` back in the header `Last-Event-ID`. */
export const StreamEvent = Schema.Struct({
  id: Schema.optionalKey(Schema.String),
  /** The tag of the event. */
  event: Schema.String,
  data: EventJson.pipe(Schema.decodeTo(fromJson(ServedEvent)))
})
export type StreamEvent = typeof StreamEvent.Type

const Events = HttpApiSchema.StreamSse({ events: StreamEvent })
const resume = { "last-event-id": Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))) }

/** The result of a compression. */
export const CompressionDone = Schema.Struct({
  /** Gemini CLI's name of the outcome, such as COMPRESSED or NOOP. */
  status: Schema.String,
  outcome: Schema.String,
  before: Schema.Finite,
  after: Schema.Finite,
  reason: Schema.NullOr(Schema.String),
  /** Null where nothing was compressed, and where the server that compressed died before it answered. */
  snapshot: Schema.NullOr(Schema.String)
})
export type CompressionDone = typeof CompressionDone.Type

/** The result of an undo or redo. */
export const Turned = Schema.Struct({ done: Schema.Boolean, tokens: Schema.Natural })

/** The sender of a request. */
export class Caller extends Context.Service<
  Caller,
  {
    readonly tenant: string
    /** Waits until the token of the request is revoked. */
    readonly revoked: Effect.Effect<void>
  }
>()("palimpsest/services/serve/Caller") {}

/** Accepts requests with a valid token, up to the tenant's limit of requests. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller }>()(
  "palimpsest/services/serve/Authorization",
  { security: { bearer: HttpApiSecurity.bearer }, error: [Unauthorized, TooMany] }
) {}

/** Turns a request that does not fit the schema into `BadRequest`, with the place and what was expected. */
export class RequestCheck extends HttpApiMiddleware.Service<RequestCheck>()("palimpsest/services/serve/RequestCheck", {
  error: BadRequest
}) {}

const described = (summary: string, description?: string) =>
  OpenApi.annotations({ summary, ...(description === undefined ? {} : { description }) })

/** What the requests of one session have in common, without and with a body. */
const ofSession = { params: session, error: errors }
const withBody = { params: session, error: bodyErrors }

/** Everything about sessions. */
const SessionsGroup = HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: {
        limit: Schema.optionalKey(upTo(1_000)),
        cursor: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200), Schema.isPattern(/^\d{15}-/))),
        search: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
        totals: Schema.optionalKey(Schema.Literals(["true", "false"]))
      },
      success: SessionPage,
      error: errors
    }).annotateMerge(
      described(
        "List sessions, the one written last first",
        "`search`: words of the title, the first message, the metadata or the id. `cursor`: the `next` of the page before."
      )
    ),
    HttpApiEndpoint.post("create", "/", {
      payload: Schema.Struct({
        id: Schema.optionalKey(Id),
        title: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
        ...SessionRecord.fields
      }),
      success: SessionRow.pipe(HttpApiSchema.status(201)),
      error: bodyErrors
    }).annotateMerge(described("Create a session")),
    HttpApiEndpoint.get("read", "/:id", {
      ...ofSession,
      query: { messages: Schema.optionalKey(upTo(1_000)), chars: Schema.optionalKey(upTo(100_000)) },
      success: SessionView
    }).annotateMerge(described("Read a session: its sums and its last messages")),
    HttpApiEndpoint.patch("change", "/:id", {
      ...withBody,
      payload: Schema.Struct({
        title: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
        ...RecordChange.fields
      }),
      success: SessionRow
    }).annotateMerge(
      described(
        "Change a session: its title, its tools, and how its turns are answered",
        "An empty title and null remove what was set. The turn that runs goes on with what it began with."
      )
    ),
    HttpApiEndpoint.delete("remove", "/:id", { ...ofSession, success: HttpApiSchema.NoContent }).annotateMerge(
      described("Delete a session and everything recallable from it")
    ),
    HttpApiEndpoint.post("fork", "/:id/fork", {
      ...withBody,
      payload: Schema.Struct({ id: Schema.optionalKey(Id), at: Schema.optionalKey(EntryId) }),
      success: SessionRow.pipe(HttpApiSchema.status(201))
    }).annotateMerge(described("Copy a session", "The copy goes back to the message `at`, as the chat's /tree does.")),
    HttpApiEndpoint.post("send", "/:id/messages", {
      ...withBody,
      headers: resume,
      payload: Schema.Struct({
        id: Schema.optionalKey(Id),
        text: Text.check(Schema.isMinLength(1)),
        media: Schema.optionalKey(Schema.Array(MessageMedia).check(Schema.isMaxLength(maxMedia))),
        onDisconnect: Schema.optionalKey(Schema.Literals(["continue", "cancel"])),
        ...TurnOptions.fields
      }),
      success: Events
    }).annotateMerge(
      described(
        "Send a message and stream its turn",
        "The message with the same id sent again is not answered again: the stream is that of its turn. What the message says about its turn replaces what the session says."
      )
    ),
    HttpApiEndpoint.get("turn", "/:id/messages/:message/events", {
      params: { id: Id, message: Id },
      headers: resume,
      success: Events,
      error: errors
    }).annotateMerge(described("Stream the turn of a message, from the event after Last-Event-ID")),
    HttpApiEndpoint.get("events", "/:id/events", {
      ...ofSession,
      headers: resume,
      success: Events
    }).annotateMerge(described("Stream everything that happens to a session")),
    HttpApiEndpoint.post("answer", "/:id/calls/:call", {
      params: { id: Id, call: Schema.String.check(Schema.isMaxLength(1_024)) },
      payload: ClientAnswer,
      success: HttpApiSchema.NoContent,
      error: bodyErrors
    }).annotateMerge(
      described(
        "Answer a question of the turn",
        "`result` or `error` for a call of the client's own tool, `decision` for a call that needs approval. The answer is stored before it is acknowledged; the same one again changes nothing."
      )
    ),
    HttpApiEndpoint.post("cancel", "/:id/cancel", {
      ...ofSession,
      success: Schema.Struct({ cancelled: Schema.Boolean })
    }).annotateMerge(described("Cancel the running turn")),
    HttpApiEndpoint.post("compress", "/:id/compress", {
      ...withBody,
      payload: Schema.Struct({
        focus: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(2_000))),
        force: Schema.optionalKey(Schema.Boolean)
      }),
      success: CompressionDone
    }).annotateMerge(described("Compress a session")),
    HttpApiEndpoint.get("plan", "/:id/plan", { ...ofSession, success: Decision }).annotateMerge(
      described("Show what a compression would do")
    ),
    HttpApiEndpoint.post("undo", "/:id/undo", { ...ofSession, success: Turned }).annotateMerge(
      described("Undo the last compression")
    ),
    HttpApiEndpoint.post("redo", "/:id/redo", { ...ofSession, success: Turned }).annotateMerge(
      described("Redo the compression that was undone last")
    ),
    HttpApiEndpoint.get("search", "/:id/recall", {
      ...ofSession,
      query: { pattern: Schema.String.check(Schema.isMaxLength(1_000)), maxTokens: Schema.optionalKey(upTo(100_000)) },
      success: FoundParts
    }).annotateMerge(described("Search everything that left the window")),
    HttpApiEndpoint.get("recall", "/:id/recall/:handle", {
      params: { id: Id, handle: Handle },
      query: {
        lines: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,9}-\d{1,9}$/))),
        grep: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(1_000))),
        maxTokens: Schema.optionalKey(Count)
      },
      success: Excerpt,
      error: errors
    }).annotateMerge(described("Recall the text behind a handle, or lines of it")),
    HttpApiEndpoint.get("ledger", "/:id/ledger", { ...ofSession, success: SessionLedger }).annotateMerge(
      described("List tokens, handles, compressions and cost of a session")
    ),
    HttpApiEndpoint.get("export", "/:id/export", {
      ...ofSession,
      query: { format: Schema.optionalKey(FormatName) },
      success: Schema.String.pipe(HttpApiSchema.asText())
    }).annotateMerge(described("Export a session in any format; palimpsest holds everything"))
  )
  .middleware(RequestCheck)
  .middleware(Authorization)
  .prefix("/v1/sessions")
  .annotateMerge(OpenApi.annotations({ title: "Sessions", description: "Sessions, their messages and their streams" }))

/** Everything of a tenant at once. */
const TenantGroup = HttpApiGroup.make("tenant")
  .add(
    HttpApiEndpoint.get("exportAll", "/export", {
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/x-ndjson" }),
      error: errors
    }).annotateMerge(
      described(
        "Export all sessions",
        'A stream of JSON lines: for each session `{"_tag": "Session", "id", "title", "record"}`, then the lines of its export in the format palimpsest; with `"problem"` in the place of those where it cannot be read.'
      )
    ),
    HttpApiEndpoint.delete("removeAll", "/tenant", {
      success: Schema.Struct({ sessions: Schema.Natural }),
      error: errors
    }).annotateMerge(
      described(
        "Delete everything of the tenant",
        "Cancels its turns, and deletes its sessions, with everything recallable from them, its memory and its folder of the server. Not for the tenant local."
      )
    )
  )
  .middleware(RequestCheck)
  .middleware(Authorization)
  .prefix("/v1")
  .annotateMerge(OpenApi.annotations({ title: "Tenant", description: "All data of the tenant" }))

/** What supervisors ask. */
const ServerGroup = HttpApiGroup.make("server", { topLevel: true })
  .add(
    HttpApiEndpoint.get("health", "/health", {
      success: Schema.Struct({ status: Schema.Literal("ok"), version: Schema.String }),
      error: BadRequest
    }).annotateMerge(described("Whether the process lives")),
    HttpApiEndpoint.get("ready", "/ready", {
      success: Schema.Struct({ status: Schema.Literal("ready") }),
      error: [BadRequest, Unavailable]
    }).annotateMerge(described("Whether it takes requests: not while it stops")),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" })),
      error: NotFound
    })
      .middleware(Authorization)
      .annotateMerge(described("Metrics for Prometheus", "Only with a token of the tenant local."))
  )
  .annotateMerge(OpenApi.annotations({ title: "Server", description: "The state of the server" }))

/** The API. */
export const ServeApi = HttpApi.make("palimpsest")
  .add(SessionsGroup)
  .add(TenantGroup)
  .add(ServerGroup)
  .annotate(HttpApi.AdditionalSchemas, [DocumentedEvent])
  .annotateMerge(
    OpenApi.annotations({
      title: "palimpsest",
      license: { name: "MIT", identifier: "MIT" },
      servers: [{ url: "/" }],
      description:
        "Sessions of an agent whose conversations may be of any length: what leaves the window stays recallable."
    })
  )

/** The API with the version of the program, for its OpenAPI document. */
export const versioned = (version: string): typeof ServeApi => ServeApi.annotate(OpenApi.Version, version)

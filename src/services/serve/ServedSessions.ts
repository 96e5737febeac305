/** The contract of the sessions of a server: every request of a tenant is one of its methods. */

import { Context, type Effect, type Scope, type Stream } from "effect"
import type { Decision } from "../../domain/compression/Compression.ts"
import type { Handle } from "../../domain/content/Handle.ts"
import type { EntryId } from "../../domain/conversation/Conversation.ts"
import type { Excerpt, Selection } from "../../domain/conversation/Excerpt.ts"
import type { FoundParts } from "../../domain/conversation/RecallSearch.ts"
import type { OnDisconnect } from "../../domain/serve/ServeSettings.ts"
import type { SessionLedger } from "../../domain/serve/SessionLedger.ts"
import type { RecordChange, SessionRecord, TurnOptions } from "../../domain/serve/SessionRecord.ts"
import type { ClientAnswer } from "../../domain/session/CallQuestions.ts"
import type { FormatName } from "../../domain/transcripts/Transcript.ts"
import type { CompressionDone, MessageMedia, SessionPage, SessionRow, SessionView, StreamEvent } from "./ServeApi.ts"
import type { Conflict, ServeError } from "./ServeErrors.ts"

/** A message to send. */
export interface MessageToSend {
  /** Default: the server makes one. A repeated id means the same message. */
  readonly id?: string | undefined
  readonly text: string
  readonly media?: ReadonlyArray<MessageMedia> | undefined
  readonly onDisconnect?: OnDisconnect | undefined
  /** What replaces the options of the session for this turn. */
  readonly options?: TurnOptions | undefined
  /** Another process has accepted it under the limits of the tenant. */
  readonly isAccepted?: boolean | undefined
}

/** What a list of sessions shows. */
export interface ListOptions {
  readonly limit: number
  /** Whether it has the totals of the first hundred. */
  readonly totals: boolean
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
  /** Words of the title, the first message, the metadata or the id. */
  readonly search?: string | undefined
}

/**
 * The sessions of all tenants, as a server offers them. Every method works on the sessions of one tenant. A session
 * is opened when it is first written, and closed after a minute without use; reading does not open it.
 */
export class ServedSessions extends Context.Service<
  ServedSessions,
  {
    /** Lists sessions, most recently written first. */
    readonly list: (tenant: string, options: ListOptions) => Effect.Effect<SessionPage, ServeError>
    /** Gives a session a title, which an empty one removes, and changes its record. */
    readonly change: (
      tenant: string,
      id: string,
      change: RecordChange & { readonly title?: string | undefined }
    ) => Effect.Effect<SessionRow, ServeError>
    /** Stores a new session. Fails with `TooMany` at the limit of the tenant. */
    readonly create: (
      tenant: string,
      options: SessionRecord & { readonly id?: string | undefined; readonly title?: string | undefined }
    ) => Effect.Effect<SessionRow, ServeError>
    /** Reads the totals and the last messages of a session from the store. */
    readonly read: (
      tenant: string,
      id: string,
      options: { readonly messages: number; readonly chars: number }
    ) => Effect.Effect<SessionView, ServeError>
    /** Deletes a session, and ends its streams. Fails with `Conflict` while a turn runs. */
    readonly remove: (tenant: string, id: string) => Effect.Effect<void, ServeError>
    /** Copies a session; with `at`, the copy goes back to that message. */
    readonly fork: (
      tenant: string,
      id: string,
      options: { readonly id?: string | undefined; readonly at?: EntryId | undefined }
    ) => Effect.Effect<SessionRow, ServeError>
    /**
     * Sends a message, and streams its turn. The turn continues when the scope closes, unless `onDisconnect` is
     * `cancel`.
     */
    readonly send: (
      tenant: string,
      id: string,
      message: MessageToSend,
      lastId?: string | undefined
    ) => Effect.Effect<Stream.Stream<StreamEvent>, ServeError, Scope.Scope>
    /** Streams the turn of a message again, or the answer in the session. */
    readonly turn: (
      tenant: string,
      id: string,
      message: string,
      lastId: string | undefined
    ) => Effect.Effect<Stream.Stream<StreamEvent>, ServeError, Scope.Scope>
    /** Streams everything that happens to a session. */
    readonly events: (
      tenant: string,
      id: string,
      lastId: string | undefined
    ) => Effect.Effect<Stream.Stream<StreamEvent>, ServeError, Scope.Scope>
    /** Takes a client's answer to a question of the turn. The same answer again changes nothing. */
    readonly answer: (tenant: string, id: string, call: string, answer: ClientAnswer) => Effect.Effect<void, ServeError>
    /** Cancels the running turn, and waits for its end. Returns false when none is running. */
    readonly cancel: (tenant: string, id: string) => Effect.Effect<boolean, ServeError>
    /** Compresses a session. `force`: even below the threshold (default true). */
    readonly compress: (
      tenant: string,
      id: string,
      options: {
        readonly focus?: string | undefined
        readonly force?: boolean | undefined
        /** Its id. A request that was carried out before is not carried out again. */
        readonly request?: string | undefined
      }
    ) => Effect.Effect<CompressionDone, ServeError>
    /** Returns the plan of a compression without carrying it out. */
    readonly plan: (tenant: string, id: string) => Effect.Effect<Decision, ServeError>
    /** Undoes or redoes a compression. */
    readonly turnBack: (
      tenant: string,
      id: string,
      by: "undo" | "redo"
    ) => Effect.Effect<{ readonly done: boolean; readonly tokens: number }, ServeError>
    /** Returns the text behind a handle of the session, or a selection of it. */
    readonly recall: (
      tenant: string,
      id: string,
      handle: Handle,
      selection: Selection
    ) => Effect.Effect<Excerpt, ServeError>
    /** Searches everything that left the window. */
    readonly search: (
      tenant: string,
      id: string,
      pattern: string,
      maxTokens: number
    ) => Effect.Effect<FoundParts, ServeError>
    /** Reads the tokens, handles, compressions and cost of a session. */
    readonly ledger: (tenant: string, id: string) => Effect.Effect<SessionLedger, ServeError>
    /** Returns a session in a format, large outputs included. */
    readonly exported: (tenant: string, id: string, format: FormatName) => Effect.Effect<string, ServeError>
    /** Streams everything of a tenant as JSON lines. */
    readonly exportAll: (tenant: string) => Effect.Effect<Stream.Stream<Uint8Array, ServeError>, ServeError>
    /** Deletes everything of a tenant. Returns the number of its sessions. */
    readonly removeAll: (tenant: string) => Effect.Effect<number, ServeError>
    /** Goes back to a message, as the chat's /tree does. */
    readonly branch: (tenant: string, id: string, at: EntryId) => Effect.Effect<void, ServeError>
    /** Closes a session that is open in this process: stops its turn and ends its streams. */
    readonly close: (tenant: string, id: string) => Effect.Effect<void>
    /** The same for one without a turn. Fails with `Conflict` while one runs. */
    readonly closeIdle: (tenant: string, id: string) => Effect.Effect<void, Conflict>
    /** Whether new requests are accepted. */
    readonly isReady: Effect.Effect<boolean>
    /** Accepts no new turns, and waits for the running ones up to the time in the settings; then stops them. */
    readonly drain: Effect.Effect<void>
  }
>()("palimpsest/services/serve/ServedSessions") {}

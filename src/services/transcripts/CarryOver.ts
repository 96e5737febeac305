/** Writes a session as one that an agent can open: below a size, legal, in the agent's format, where the agent looks for it. */

import { Clock, Effect, FileSystem, Path, Ref, Schema } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { statusOf } from "../../domain/compression/Compression.ts"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import { strategyDefaults } from "../../domain/compression/strategies/Strategies.ts"
import { entries, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { leadsOut } from "../../domain/text/WorkspacePath.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { geminiProjects } from "../../domain/transcripts/AgentFolders.ts"
import {
  carriedFolder,
  carriedId,
  carriedName,
  type CarriedPlace,
  carriedSession,
  resumeCommand,
  type WritableAgent
} from "../../domain/transcripts/CarriedSession.ts"
import { Chat } from "../chat/Chat.ts"
import { ChatDefaults } from "../chat/ChatSettings.ts"
import { AgentSessions } from "./AgentSessions.ts"
import type { Loaded } from "./LoadedTranscript.ts"
import * as Export from "./TranscriptExport.ts"

/** A session could not be carried over. Nothing was written. */
export class CarryOverError extends Schema.TaggedError<CarryOverError>()("CarryOverError", {
  message: Schema.String
}) {}

/** A session could not be made as small as it has to be. Nothing was written. */
export class SessionTooLarge extends Schema.TaggedError<SessionTooLarge>()("SessionTooLarge", {
  /** The tokens that it still has. */
  tokens: Schema.Natural
}) {
  override get message() {
    return `the session cannot be made smaller than ${this.tokens} tokens`
  }
}

const refused = (message: string): CarryOverError => new CarryOverError({ message })

const orRefused = <A, R>(work: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.mapError(work, ({ message }) => refused(message))

/** What is written, and where. */
export interface CarryOver {
  readonly loaded: Loaded
  /** The file that it was read from. */
  readonly file: string
  readonly agent: WritableAgent
  /** The agent whose file it is, if that is known. */
  readonly from: string | undefined
  /** The tokens that the messages may have. */
  readonly below: number
  /** The folder in which it was, if that is known. */
  readonly cameFrom?: string | undefined
  /** The folder in which it goes on. */
  readonly folder: string
}

/** What was done. */
export interface Carried {
  readonly file: string
  readonly id: string
  /** The command with which a person goes on. */
  readonly command: string
  readonly tokens: { readonly before: number; readonly after: number }
  readonly messages: { readonly before: number; readonly after: number }
  readonly bytes: { readonly before: number; readonly after: number }
  /** The status of the compression; undefined: it was small enough. */
  readonly status: string | undefined
  /** Content that the agent's format cannot hold, by kind. */
  readonly unheld: Readonly<Record<string, number>>
}

/** A log that collects events in memory, so that they can be written at the end or discarded. */
export const recording = (events: Ref.Ref<ReadonlyArray<SessionEvent>>, id: string) => ({
  id,
  append: (event: SessionEvent) => Ref.update(events, (before) => [...before, event])
})

const rescuePolicy = (below: number): Policy => ({
  ...defaultPolicy,
  ...strategyDefaults("palimpsest"),
  summarizer: "extractive",
  limit: TokenCount.make(below),
  minGain: 0
})

/** Returns the folder in which Gemini CLI looks for the sessions of a folder: it is named in a file that Gemini CLI writes. */
const geminiFolder = Effect.fnUntraced(function* (root: string, folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* Effect.orElseSucceed(fs.readFileString(path.join(path.dirname(root), "projects.json")), () => "")
  const [slug] = [...geminiProjects(text)].find(([, of]) => of === folder) ?? []
  if (slug === undefined) return yield* refused(`Gemini CLI does not know ${folder} yet; start it there once`)
  return path.join(root, slug, "chats")
})

const placeOf = Effect.fnUntraced(function* ({ agent, cameFrom, file, folder, from }: CarryOver, place: CarriedPlace) {
  const path = yield* Path.Path
  const roots = yield* AgentSessions.use((sessions) => sessions.roots)
  if (agent === "opencode") {
    // Its database is its own to write: it takes in a file of ours.
    const own = roots.find((one) => one.agent === "palimpsest")?.path
    if (own === undefined) return yield* refused("no folder of our own is known")
    return path.join(path.dirname(own), "opencode", carriedName(agent, place))
  }
  const root = roots.find((one) => one.agent === agent)?.path
  const isThere = root !== undefined && !leadsOut(path.relative(root, path.resolve(file)))
  const extension = path.extname(file)
  // Beside the original, which is where the agent looks for sessions of the same folder.
  if (from === agent && isThere && cameFrom === folder)
    return path.join(path.dirname(path.resolve(file)), carriedName(agent, place, extension))
  if (root === undefined) return yield* refused(`no folder of ${agent} is known`)
  const below = carriedFolder(agent, place)
  const inner = below === undefined ? yield* geminiFolder(root, folder) : path.join(root, below)
  return path.join(inner, carriedName(agent, place, agent === from ? extension : undefined))
})

/** Carries a session over. The original stays as it is, and everything it held stays recallable from the new file. */
export const carryOver = Effect.fn("CarryOver.carryOver")(function* (request: CarryOver) {
  const { agent, below, file, folder, loaded } = request
  const { session } = loaded
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (entries(session.conversation).length === 0) return yield* refused(`${file} holds no messages`)
  const now = yield* Clock.currentTimeMillis
  const at = new Date(now).toISOString()
  const uuid = yield* SecureRandom.SecureRandom.use((random) => random.uuidV7()).pipe(
    Effect.provide(SecureRandom.layerWebCrypto)
  )
  const id = carriedId(agent, uuid)
  const place = { id, folder, at }
  const out = yield* placeOf(request, place)
  const events = yield* Ref.make(loaded.events)
  const before = viewTokens(session.conversation)
  const kept = Chat.keep({
    session: { ...session, memory: freshMemory },
    log: recording(events, session.started?.session ?? ""),
    settings: { ...(yield* ChatDefaults), cwd: folder }
  })
  const chat = yield* orRefused(kept)
  const outcome =
    before <= below ? undefined : yield* orRefused(chat.compress({ policy: rescuePolicy(below), forced: true }))
  const after = yield* chat.session
  const status = outcome === undefined ? undefined : statusOf(outcome)
  if (viewTokens(after.conversation) > below) {
    return yield* new SessionTooLarge({ tokens: viewTokens(after.conversation) })
  }
  const held = carriedSession(after, agent, place)
  yield* orRefused(fs.makeDirectory(path.dirname(out), { recursive: true, mode: 0o700 }))
  const written = Export.write(out, agent, yield* Ref.get(events), { held })
  const unheld = yield* orRefused(Effect.scoped(written))
  const size = yield* Effect.orElseSucceed(
    Effect.map(fs.stat(out), ({ size }) => Number(size)),
    () => 0
  )
  return {
    file: out,
    id,
    command: resumeCommand(agent, place, out),
    tokens: { before, after: viewTokens(after.conversation) },
    messages: { before: entries(session.conversation).length, after: view(after.conversation).length },
    bytes: { before: loaded.bytes, after: size },
    status,
    unheld
  } satisfies Carried
})

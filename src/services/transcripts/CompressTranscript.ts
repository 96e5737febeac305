import { Effect, FileSystem, Layer, Path } from "effect"
import { adopt, patchOf } from "../../domain/compression/Compression.ts"
import type { Content } from "../../domain/content/Content.ts"
import { wireContent } from "../../domain/content/WireContent.ts"
import { view } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { droppedEntries, recall, recallable } from "../../domain/conversation/Recall.ts"
import { encode } from "../../domain/text/Bytes.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import type { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { Compression } from "../compression/Compression.ts"
import {
  type CompressedMessages,
  type CompressMessagesError,
  type CompressMessagesOptions,
  type CompressMessagesServices,
  nameOfText,
  policyOf
} from "../compression/CompressMessages.ts"
import { keepShown } from "../compression/EarlierCompression.ts"
import { HandleIndex, RangeName } from "../session/EntryBuilder.ts"
import { chooseReader } from "./ChooseReader.ts"
import type { TranscriptError } from "./TranscriptError.ts"

/** A text has no files beside it. */
const noFiles = Layer.merge(FileSystem.layerNoop({}), Path.layer)

/** How a transcript is compressed. */
export interface CompressTranscriptOptions extends CompressMessagesOptions {
  /** The format; detected when absent. */
  readonly from?: SourceFormat | undefined
}

/** The result of a compression of a transcript: the messages that go on from it. */
export interface CompressedTranscript extends CompressedMessages<Content> {
  readonly format: SourceFormat
}

/**
 * Compresses the text of a transcript, in any format that `palimpsest compress` reads. What an earlier compaction removed stays recallable.
 */
export const transcript = Effect.fn("Compress.transcript")(function* (
  text: string,
  options: CompressTranscriptOptions = {}
): Effect.fn.Return<CompressedTranscript, TranscriptError | CompressMessagesError, CompressMessagesServices> {
  const { from, ...changes } = options
  const bytes = encode(text)
  const reader = yield* chooseReader("the text", bytes, from === undefined ? {} : { from }, undefined)
  const { format, session } = yield* Effect.andThen(reader.push(bytes), reader.end).pipe(Effect.provide(noFiles))
  const { conversation } = session
  const policy = yield* policyOf(changes)
  const index = new HandleIndex()
  index.restore(recallable(conversation).entries)
  const compressing = Compression.use((compression) =>
    compression.compress({
      conversation,
      policy,
      forced: changes.forced ?? false,
      memory: freshMemory,
      held: index,
      cwd: changes.cwd ?? session.started?.cwd,
      family: changes.for ?? session.model
    })
  )
  const { dropped, outcome } = yield* Effect.provideService(compressing, RangeName, nameOfText)
  const after = adopt(conversation, outcome)
  const patch = patchOf(outcome)
  const drop = patch?.drop
  const ranges = [
    ...PersistentList.toArray(session.ranges),
    ...(drop === undefined || dropped === undefined
      ? []
      : [{ handle: dropped, entries: droppedEntries(view(conversation), drop) }])
  ]
  const held = recallable(after, ranges)
  const textOf = (handle: string) => recall(held, handle)?.text
  const changed = new Set([
    ...(patch?.insert ?? []).map(({ id }) => id),
    ...(patch?.shorten ?? []).map(({ entry }) => entry)
  ])
  const sent = projectMessages(after)
  yield* keepShown(
    sent.flatMap(({ content, entry }) => (changed.has(entry) ? [wireContent(content)] : [])),
    textOf
  )
  return { format, outcome, messages: sent.map(({ content }) => wireContent(content)), recall: textOf }
})

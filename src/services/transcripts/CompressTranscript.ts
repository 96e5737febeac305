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
  type CompressMessagesOptions,
  type CompressMessagesServices,
  policyOf
} from "../compression/CompressMessages.ts"
import { HandleIndex } from "../session/EntryBuilder.ts"
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
): Effect.fn.Return<CompressedTranscript, TranscriptError, CompressMessagesServices> {
  const { from, ...changes } = options
  const bytes = encode(text)
  const reader = yield* chooseReader("the text", bytes, from === undefined ? {} : { from }, undefined)
  const { format, session } = yield* Effect.andThen(reader.push(bytes), reader.end).pipe(Effect.provide(noFiles))
  const { conversation } = session
  const held = new HandleIndex()
  held.restore(recallable(conversation).entries)
  const { dropped, outcome } = yield* Compression.use((compression) =>
    compression.compress({
      conversation,
      policy: policyOf(changes),
      forced: changes.forced ?? false,
      memory: freshMemory,
      held,
      cwd: changes.cwd ?? session.started?.cwd,
      family: changes.for ?? session.model
    })
  )
  const after = adopt(conversation, outcome)
  const drop = patchOf(outcome)?.drop
  const ranges = [
    ...PersistentList.toArray(session.ranges),
    ...(drop === undefined || dropped === undefined
      ? []
      : [{ handle: dropped, entries: droppedEntries(view(conversation), drop) }])
  ]
  return {
    format,
    outcome,
    messages: projectMessages(after).map(({ content }) => wireContent(content)),
    recall: (handle) => recall(recallable(after, ranges), handle)?.text
  }
})

/** Compresses a transcript that a program has as text (`Compress.transcript`). */

import { Effect, FileSystem, Layer, Path, Predicate, Stream } from "effect"
import { patchOf } from "../../domain/compression/Compression.ts"
import { InvalidOption, valueCheck } from "../../domain/compression/InvalidOption.ts"
import type { Content } from "../../domain/content/Content.ts"
import { wireContent } from "../../domain/content/WireContent.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { encode } from "../../domain/text/Bytes.ts"
import type { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import {
  type CompressedMessages,
  type CompressMessagesOptions,
  compressKnown,
  policyOf
} from "../conversation/CompressMessages.ts"
import { keepShown } from "../conversation/EarlierCompression.ts"
import { knownConversation } from "../conversation/KnownConversation.ts"
import { chooseReader } from "./ChooseReader.ts"

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
) {
  const problem = valueCheck(Predicate.isString, "a text")("the transcript", text)
  if (problem !== undefined) return yield* new InvalidOption({ message: problem })
  const { from, ...changes } = options
  const bytes = encode(text)
  const reader = yield* chooseReader("the text", bytes, from === undefined ? {} : { from }, undefined)
  const { format, session } = yield* reader(Stream.make(bytes)).pipe(Effect.provide(noFiles))
  const policy = yield* policyOf(changes)
  const known = knownConversation({ ...session, memory: freshMemory })
  const { after = session.conversation, outcome, recall } = yield* compressKnown(known, policy, changes)
  const patch = patchOf(outcome)
  const changed = new Set([
    ...(patch?.insert ?? []).map(({ id }) => id),
    ...(patch?.shorten ?? []).map(({ entry }) => entry)
  ])
  const sent = projectMessages(after)
  yield* keepShown(
    sent.flatMap(({ content, entry }) => (changed.has(entry) ? [wireContent(content)] : [])),
    recall
  )
  return { format, outcome, messages: sent.map(({ content }) => wireContent(content)), recall }
})

import { Effect, type FileSystem, type Path, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { type Part, text } from "../../domain/content/Content.ts"
import * as Agent from "../agent/Agent.ts"
import type { Profile } from "../agent/AgentRun.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Approval } from "../tools/Approval.ts"
import type { AgentContext } from "./AgentContext.ts"
import type { AgentHost } from "./AgentHost.ts"
import { expandReferences, type ReferenceOptions } from "./MessageReferences.ts"

/** How a message reaches the agent: with the files that it references, and with what changed since the last one. */

/** What sending needs. */
export interface MessageSenderOptions {
  readonly profile: Profile
  readonly approval: Approval["Service"]
  readonly context: AgentContext
  /** How referenced files are read. */
  readonly references: Omit<ReferenceOptions, "typed">
  /** What hooks add before the first message. */
  readonly opening: string | undefined
}

const wasCancelled: ChatEvent = { _tag: "UserCancelled" }

const notice = (source: string, message: string): ChatEvent => ({ _tag: "Notice", source, message })

/** Makes the function that sends messages. What goes along once goes until a message with it was answered. */
export const make = Effect.fn("MessageSender.make")(function* ({
  approval,
  context,
  opening: openingText,
  profile,
  references
}: MessageSenderOptions): Effect.fn.Return<AgentHost["run"], never, FileSystem.FileSystem | Path.Path | TokenCounter> {
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path | TokenCounter>()
  let opening: ReadonlyArray<Attachment> = openingText === undefined ? [] : [{ parts: [text(openingText)] }]
  let count = 0

  /** A message with everything that goes along. */
  const prepare = Effect.fnUntraced(function* (message: string | ReadonlyArray<Part>, typed: string | undefined) {
    const refreshed = yield* Effect.result(context.refresh)
    const notices = refreshed._tag === "Success" ? refreshed.success : [refreshed.failure.message]
    const editor = yield* context.editorUpdates
    count += 1
    const sent =
      typeof message === "string"
        ? yield* expandReferences(message, `at-${count}`, { ...references, typed })
        : { text: message, attached: [], events: [], isStopped: false }
    const events = [
      ...notices.map((line) => notice("system prompt", line)),
      ...(editor.problem === undefined ? [] : [notice("editor", editor.problem)]),
      ...sent.events
    ]
    return { ...sent, editor, events }
  }, Effect.provideContext(platform))

  return (message, { typed, ...options } = {}) => {
    const { cancel = Effect.never } = options
    const working = Effect.map(prepare(message, typed), ({ attached, editor, events, isStopped, text: sent }) => {
      const before = Stream.fromIterable(events)
      if (isStopped) return before
      const markAnswered = Effect.suspend(() => {
        opening = []
        return editor.markSent
      })
      return Stream.concat(
        before,
        Agent.run(profile, sent, { ...options, attached: [...opening, ...editor.attached, ...attached] }).pipe(
          Stream.tap((event) => (event._tag === "Finished" ? markAnswered : Effect.void)),
          Stream.provideService(Approval, approval)
        )
      )
    })
    return Stream.unwrap(Effect.raceFirst(working, Effect.as(cancel, Stream.make(wasCancelled))))
  }
})

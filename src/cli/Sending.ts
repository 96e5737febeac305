import { Effect, type FileSystem, type Path, Stream } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import { type Part, text } from "../domain/Content.ts"
import * as Agent from "../services/Agent.ts"
import { Approval } from "../services/Approval.ts"
import type { Attachment } from "../services/Chat.ts"
import type { TokenCounter } from "../services/TokenCounter.ts"
import type { Knowledge } from "./Knowledge.ts"
import { mentioned, type MentionOptions } from "./Mentions.ts"
import type { Worker } from "./Worker.ts"

/** How a message of the command line reaches its agent: with the files it names, and with what is new since the last one. */

/** Who sends, to whom, and what goes along. */
export interface SendingOptions {
  readonly profile: Agent.Profile
  readonly approval: Approval["Service"]
  readonly knowledge: Knowledge
  /** How files are read that a message names. */
  readonly files: Omit<MentionOptions, "typed">
  /** What hooks add to the conversation that begins; undefined: nothing. */
  readonly opening: string | undefined
}

const wasCancelled: ChatEvent = { _tag: "UserCancelled" }

const notice = (source: string, message: string): ChatEvent => ({ _tag: "Notice", source, message })

/** Sends messages to an agent. What is told once is told with the first that was answered. */
export const make = Effect.fn("Sending.make")(function* ({
  approval,
  files,
  knowledge,
  opening: words,
  profile
}: SendingOptions): Effect.fn.Return<Worker["run"], never, FileSystem.FileSystem | Path.Path | TokenCounter> {
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path | TokenCounter>()
  let opening: ReadonlyArray<Attachment> = words === undefined ? [] : [{ parts: [text(words)] }]
  let count = 0

  /** A message with all that goes with it. */
  const prepared = Effect.fnUntraced(function* (message: string | ReadonlyArray<Part>, typed: string | undefined) {
    const refreshed = yield* Effect.result(knowledge.refresh)
    const said = refreshed._tag === "Success" ? refreshed.success : [refreshed.failure.message]
    const news = yield* knowledge.news
    count += 1
    const sent =
      typeof message === "string"
        ? yield* mentioned(message, `at-${count}`, { ...files, typed })
        : { text: message, attached: [], events: [], isStopped: false }
    const events = [
      ...said.map((line) => notice("system prompt", line)),
      ...(news.problem === undefined ? [] : [notice("editor", news.problem)]),
      ...sent.events
    ]
    return { ...sent, news, events }
  }, Effect.provideContext(platform))

  return (message, { typed, ...options } = {}) => {
    const { cancel = Effect.never } = options
    const working = Effect.map(prepared(message, typed), ({ attached, events, isStopped, news, text: sent }) => {
      const before = Stream.fromIterable(events)
      if (isStopped) return before
      const told = Effect.suspend(() => {
        opening = []
        return news.told
      })
      return Stream.concat(
        before,
        Agent.run(profile, sent, { ...options, attached: [...opening, ...news.attached, ...attached] }).pipe(
          Stream.tap((event) => (event._tag === "Finished" ? told : Effect.void)),
          Stream.provideService(Approval, approval)
        )
      )
    })
    return Stream.unwrap(Effect.raceFirst(working, Effect.as(cancel, Stream.make(wasCancelled))))
  }
})

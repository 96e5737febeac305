import { Clock, Context, Effect, Layer, Stream } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Chain from "../domain/Chain.ts"
import { patchOf } from "../domain/Compression.ts"
import { type Conversation, entries, type Entry, view, viewTokens } from "../domain/Conversation.ts"
import { handleOf } from "../domain/Handle.ts"
import { toContent } from "../domain/PromptContent.ts"
import { awaitedFrom, isLegal, repaired } from "../domain/PromptRepair.ts"
import { arrange, viewMessage } from "../domain/PromptView.ts"
import { project } from "../domain/Projection.ts"
import { emptySession, logVersion, type Session, step } from "../domain/Session.ts"
import { estimatorVersion, TokenCount } from "../domain/Tokens.ts"
import type { Calibrations } from "./Calibrations.ts"
import { Chat } from "./Chat.ts"
import type { Compression } from "./Compression.ts"
import type { HookSystem } from "./HookSystem.ts"
import { RangeName, type RangeNaming } from "./Intake.ts"
import { toMessages } from "./LanguageModelBridge.ts"
import { type Head, make as makeMemory, makeNames, noMark, type Place } from "./PromptMemory.ts"
import * as PromptRecall from "./PromptRecall.ts"
import {
  type Ask,
  type AskOptions,
  type AskStream,
  calling,
  type Declared,
  failed,
  make as makeWindow,
  type Ready,
  type WindowOptions
} from "./PromptWindow.ts"
import { Recall } from "./RecallTool.ts"
import type { TempStore } from "./TempStore.ts"
import type { TokenCounter } from "./TokenCounter.ts"

/**
 * Any `effect/ai` language model with a window that is never overrun: prompts that come near it are compressed before they
 * reach the model, and everything that leaves them can be recalled. Callers keep sending their whole history; what was
 * compressed once stays as it is, byte for byte, until the next compression, so that a provider's cache keeps working.
 */

/** How prompts are kept within the window. */
export interface Options extends WindowOptions {
  /**
   * The number of conversations that are held whole, ready for their next compression (default 64): each takes about
   * what its text takes. The state of any other is read again from the history that the caller sends.
   */
  readonly conversations?: number | undefined
  /**
   * The number of conversations whose compressions are remembered (default 10,000): each takes about what its snapshots
   * take. Any other is compressed anew when its caller comes back; its handles stay good.
   */
  readonly remembered?: number | undefined
}

const defaultConversations = 64
const defaultRemembered = 10_000
/** Growth after which a compression that changed nothing is tried again (as FailureMemory.ts has it). */
const growthMark = 1.1

/** Estimated tokens of a prompt as it is sent. */
const tokensOf = ({ head, mark: { said, system } }: Place): number =>
  system + said + (head === undefined ? 0 : head.tokens - head.mark.said)

/** What is sent for a prompt: the caller's own messages, behind what stands for those that left. */
const sentOf = (
  { mark: { standing } }: Place,
  head: Head | undefined,
  content: ReadonlyArray<Prompt.Message>
): ReadonlyArray<Prompt.Message> => {
  const sent =
    head?.items === undefined
      ? content
      : [
          ...head.items.flatMap((item) => (typeof item === "number" ? (content[item] ?? []) : [item])),
          ...content.slice(head.at)
        ]
  return isLegal(standing) ? sent : repaired(sent).flat()
}

/** The session of a conversation that its caller keeps. */
const sessionName = "effect-ai"

/** Which message of the prompt an entry is; -1 for what a compression inserted. */
const indexOf = (entry: Entry): number => (entry.origin?.line ?? 0) - 1

/** The number of messages up to the last of these entries that is one. */
const lastLine = (dropped: ReadonlyArray<Entry>): number =>
  dropped.reduce((last, { origin }) => Math.max(last, origin?.line ?? 0), 0)

/** The number of messages up to the last that left the view. */
const goneFrom = (conversation: Conversation): number => {
  const shown = new Set(view(conversation).map(({ entry }) => entry))
  return lastLine(entries(conversation).filter((entry) => !shown.has(entry)))
}

const isSystem = (message: Prompt.Message | undefined): boolean => message?.role === "system"

/** What is sent for the first `at` messages, as the view of the session says. */
const itemsOf = (
  { conversation }: Session,
  content: ReadonlyArray<Prompt.Message>,
  at: number
): ReadonlyArray<number | Prompt.Message> => {
  const inserted = new Map(project(conversation).map((sent) => [sent.entry, sent.content]))
  const indexes = Array.from({ length: at }, (_, index) => index)
  const spoken = content.findIndex((message) => !isSystem(message))
  const first = spoken < 0 ? at : Math.min(spoken, at)
  /** The system messages that stand right before `index`. */
  const before = (index: number): ReadonlyArray<number> => {
    let from = index
    while (from > 0 && isSystem(content[from - 1])) from -= 1
    return indexes.slice(from, index)
  }
  return arrange<number | Prompt.Message>(conversation, {
    leading: before(first),
    before: (entry) => (indexOf(entry) <= first ? [] : before(indexOf(entry))),
    shown: (item) => {
      const index = indexOf(item.entry)
      if (index >= 0 && item.shortened.size === 0) return [index]
      const rebuilt = viewMessage(item)
      if (rebuilt !== undefined) return [rebuilt]
      const made = inserted.get(item.entry.id)
      return made === undefined ? [] : toMessages([made]).flat()
    },
    trailing: first === at ? [] : before(at)
  })
}

type Model = LanguageModel.LanguageModel

type Requirements = Compression | HookSystem | TokenCounter | TempStore | Calibrations

/** Adds messages of a prompt to a session of ours. */
const said = Effect.fnUntraced(function* (
  chat: Chat["Service"],
  content: ReadonlyArray<Prompt.Message>,
  from: number,
  end: number
) {
  for (let at = from; at < end; at += 1) {
    const message = content[at]
    if (message === undefined || message.role === "system") continue
    yield* chat.append([{ content: toContent(message), origin: { line: at + 1, ids: [] } }])
  }
})

/** A session with these messages of a prompt behind what it has. */
const grown = Effect.fnUntraced(function* (
  session: Session,
  content: ReadonlyArray<Prompt.Message>,
  from: number,
  end: number
) {
  if (end <= from) return session
  const chat = yield* Chat.keep({ log: { append: () => Effect.void }, session })
  yield* said(chat, content, from, end)
  return yield* chat.session
})

const make = Effect.fnUntraced(function* (options: Options) {
  const inner = yield* LanguageModel.LanguageModel
  const context = yield* Effect.context<Requirements>()
  const window = yield* makeWindow(options)
  const names = yield* makeNames
  const memory = makeMemory(names, window.count, {
    whole: options.conversations ?? defaultConversations,
    known: options.remembered ?? defaultRemembered
  })
  const answering = yield* PromptRecall.make(names)

  const begun = Effect.fnUntraced(function* () {
    if (window.name === undefined) return emptySession
    return step(emptySession, {
      _tag: "Started",
      version: logVersion,
      session: sessionName,
      at: yield* Clock.currentTimeMillis,
      estimator: estimatorVersion,
      model: window.name
    })
  })

  /** The session behind a compression: as it was left, or made again of the history and of what compressions did. */
  const sessionOf = Effect.fnUntraced(function* (head: Head | undefined, content: ReadonlyArray<Prompt.Message>) {
    const held = head === undefined ? undefined : memory.session(head)
    if (held !== undefined) return held
    let session = yield* begun()
    let from = 0
    for (const { at, event } of Chain.toArray(head?.events)) {
      session = step(yield* grown(session, content, from, at), event)
      from = at
    }
    // A compression that changed nothing left no event, and the messages that it saw all the same.
    return yield* grown(session, content, from, head?.at ?? 0)
  })

  /** Compresses until it fits, alone on its conversation, and remembers what became of it. */
  const shrink = Effect.fnUntraced(function* (
    method: string,
    place: Place,
    content: ReadonlyArray<Prompt.Message>,
    declared: Declared
  ) {
    yield* memory.caughtUp(place, content)
    const began = place.head
    let head = began
    let session: Session | undefined
    let events = began?.events
    const beginnings = yield* names(content)
    // What effect/ai still has to do is sent as it is.
    const end = Math.max(began?.at ?? 0, awaitedFrom(content))
    const mark = yield* memory.marked(began?.mark ?? noMark, content.slice(began?.at ?? 0, end))
    const overhead = TokenCount.make(Math.ceil(place.mark.system + declared.tokens + place.mark.said - mark.said))
    const opened = Effect.gen(function* () {
      const chat = yield* Chat.keep({
        log: {
          append: (event) =>
            Effect.sync(() => {
              if (event._tag !== "Appended") events = Chain.append(events, { at: end, event }, 0)
            })
        },
        session: yield* sessionOf(began, content)
      })
      yield* said(chat, content, began?.at ?? 0, end)
      return chat
    })
    /** What left is named by the beginning of the conversation that it ends, so that its text can be made of any history. */
    const nameRange =
      ({ conversation }: Session): RangeNaming =>
      (dropped) => {
        const name = beginnings[Math.max(goneFrom(conversation), lastLine(dropped)) - 1]
        return name === undefined ? undefined : handleOf(name)
      }
    let chat: Chat["Service"] | undefined
    const kept = Effect.sync(() => {
      if (head !== undefined && session !== undefined) memory.remember(place, head, session, beginnings[end - 1])
    })
    const fitting = window.fit(
      method,
      {
        request: Effect.sync(() => ({
          messages: sentOf(place, head, content),
          tokens: tokensOf({ ...place, head }) + declared.tokens
        })),
        compress: Effect.fnUntraced(
          function* (policy, forced) {
            chat ??= yield* opened
            const outcome = yield* chat
              .compress({ policy: { ...policy, overhead }, forced })
              .pipe(Effect.provideService(RangeName, nameRange(yield* chat.session)))
            session = yield* chat.session
            const { waitUntil } = session.memory
            // That mark is the view's: what else the request holds is added to it.
            const waiting = waitUntil === 0 ? 0 : waitUntil + overhead
            const patched = patchOf(outcome) !== undefined
            const tokens = viewTokens(session.conversation)
            head = {
              at: end,
              mark,
              items: patched || head?.items !== undefined ? itemsOf(session, content, end) : undefined,
              tokens,
              waiting: patched ? waiting : Math.ceil((overhead + tokens) * growthMark),
              events
            }
            return outcome
          },
          Effect.mapError((error) => failed(method, error))
        )
      },
      declared,
      head?.waiting ?? 0
    )
    // Also of a request that is refused in the end: nobody pays for the same again.
    const { measured, messages } = yield* Effect.tapError(fitting, () => kept)
    yield* kept
    place.measured = { ...measured, head, beside: declared.tokens }
    return messages
  })

  const isSmall = (place: Place, { tokens }: Declared): boolean => {
    const { head, measured } = place
    const isComparable = measured?.head === head && measured?.beside === tokens
    return window.isSmall(tokensOf(place) + tokens, isComparable ? measured : undefined)
  }

  /** The same call with a prompt that surely fits. The same prompt, if it does. */
  const prepare = Effect.fnUntraced(function* (
    method: string,
    options: AskOptions
  ): Effect.fn.Return<Ready, AiError.AiError> {
    const prompt = Prompt.make(options.prompt)
    const { content } = prompt
    const declared = yield* window.declared(options)
    const place = yield* memory.place(content)
    const messages = isSmall(place, declared)
      ? sentOf(place, place.head, content)
      : yield* place.turn
          .withPermit(Effect.suspend(() => shrink(method, place, content, declared)))
          .pipe(Effect.provideContext(context))
    const asked = declared.toolkit === undefined ? options : { ...options, toolkit: declared.toolkit }
    return {
      asked,
      options: { ...asked, prompt: messages === content ? prompt : Prompt.fromMessages(messages) },
      messages,
      declared
    }
  })

  const { generate, stream } = calling(window, prepare, () => Effect.void)

  /** Tools that are run for a call recall within its prompt, and within those of the calls that it is made for. */
  const within =
    (ask: Ask): Ask =>
    (options) =>
      Effect.suspend(() => {
        const prompt = answering.seen(Prompt.make(options.prompt))
        return Effect.updateContext(ask({ ...options, prompt }), PromptRecall.within(prompt))
      })
  const withinStream =
    (ask: AskStream): AskStream =>
    (options) =>
      Stream.suspend(() => {
        const prompt = answering.seen(Prompt.make(options.prompt))
        return Stream.updateContext(ask({ ...options, prompt }), PromptRecall.within(prompt))
      })

  // The methods are generic in what the inner model resolves, toolkits and schemas, which are handed on as they are.
  const model = LanguageModel.LanguageModel.of({
    ...inner,
    generateText: within(generate("generateText", inner.generateText as Ask)) as unknown as Model["generateText"],
    generateObject: within(
      generate("generateObject", inner.generateObject as unknown as Ask)
    ) as unknown as Model["generateObject"],
    streamText: withinStream(stream("streamText", inner.streamText as AskStream)) as Model["streamText"]
  })

  return Context.make(LanguageModel.LanguageModel, model).pipe(Context.add(Recall, { recall: answering.recall }))
})

/**
 * The language model that is given, with prompts that surely fit its window (law 3): of one that would not, its oldest
 * part is compressed first. System messages stay as they are, calls stay with their results (law 5), what is kept is
 * handed on untouched, with its options. A prompt that needs nothing of this is handed on as the same object. When nothing
 * makes it fit, the call fails with `InvalidUserInputError` before anything is sent.
 *
 * `Recall` reads back what left, from the history that the caller sends: a tool that runs for a call finds every handle
 * that was ever shown for its prompt or a beginning of it, also after a restart, and no handle of any other conversation.
 * Outside of a call, `Recall.within(prompt)` says which conversation is meant.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<LanguageModel.LanguageModel | Recall, never, LanguageModel.LanguageModel | Requirements> =>
  Layer.effectContext(make(options))

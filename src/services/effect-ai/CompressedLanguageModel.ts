import { Clock, Context, Effect, Layer, Stream } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { patchOf } from "../../domain/compression/Compression.ts"
import { handleOf } from "../../domain/content/Handle.ts"
import { type Conversation, entries, type Entry, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { awaitedFrom, isLegal, repaired } from "../../domain/effect-ai/PromptRepair.ts"
import { arrange, viewMessage } from "../../domain/effect-ai/PromptView.ts"
import { emptySession, logVersion, type Session, applyEvent } from "../../domain/session/Session.ts"
import * as Chain from "../../domain/text/PersistentList.ts"
import { estimatorVersion, TokenCount } from "../../domain/tokens/Tokens.ts"
import { Chat } from "../chat/Chat.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import { RangeName, type RangeNaming } from "../session/EntryBuilder.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { toMessages } from "./LanguageModelBridge.ts"
import { type Head, make as makeMemory, makeNames, noMark, type Place } from "./PromptMemory.ts"
import * as PromptRecall from "./PromptRecall.ts"
import {
  type Call,
  type CallOptions,
  type StreamCall,
  guardedCalls,
  type Declarations,
  aiError,
  make as makeWindow,
  type ReadyCall,
  type WindowOptions
} from "./PromptWindow.ts"
import { Recall } from "./RecallTool.ts"

/**
 * Wraps any `effect/ai` language model so that its window is never exceeded: prompts that come near the limit are compressed before they reach the
 * model, and everything removed from them can be recalled. Callers continue to send their whole history. What was compressed once stays the same,
 * byte for byte, until the next compression, so that a provider's cache keeps working.
 */

/** How prompts are kept within the window. */
export interface Options extends WindowOptions {
  /**
   * The number of conversations held in memory, ready for their next compression (default 64). Each takes about as much memory as its text. The state
   * of any other is rebuilt from the history that the caller sends.
   */
  readonly conversations?: number | undefined
  /**
   * The number of conversations whose compressions are remembered (default 10,000). Each takes about as much memory as its snapshots. Any other is
   * compressed anew when its caller returns; its handles stay valid.
   */
  readonly remembered?: number | undefined
}

const defaultConversations = 64
const defaultRemembered = 10_000
/** Growth after which a compression that changed nothing is retried, as in FailureMemory.ts. */
const growthMark = 1.1

/** Estimated tokens of a prompt as it is sent. */
const tokensOf = ({ head, mark: { said, system } }: Place): number =>
  system + said + (head === undefined ? 0 : head.tokens - head.mark.said)

/** The messages sent for a prompt: replacements for those that left, then the caller's own messages. */
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

/** The session id of a conversation whose history the caller keeps. */
const sessionName = "effect-ai"

/** The index of an entry's message in the prompt; -1 for an entry that a compression inserted. */
const indexOf = (entry: Entry): number => (entry.origin?.line ?? 0) - 1

/** The number of messages up to the last of these entries that is a message of the prompt. */
const lastLine = (dropped: ReadonlyArray<Entry>): number =>
  dropped.reduce((last, { origin }) => Math.max(last, origin?.line ?? 0), 0)

/** The number of messages up to the last that left the view. */
const goneFrom = (conversation: Conversation): number => {
  const shown = new Set(view(conversation).map(({ entry }) => entry))
  return lastLine(entries(conversation).filter((entry) => !shown.has(entry)))
}

const isSystem = (message: Prompt.Message | undefined): boolean => message?.role === "system"

/** The items sent for the first `at` messages, by the view of the session. */
const itemsOf = (
  { conversation }: Session,
  content: ReadonlyArray<Prompt.Message>,
  at: number
): ReadonlyArray<number | Prompt.Message> => {
  const inserted = new Map(projectMessages(conversation).map((sent) => [sent.entry, sent.content]))
  const indexes = Array.from({ length: at }, (_, index) => index)
  const spoken = content.findIndex((message) => !isSystem(message))
  const first = spoken < 0 ? at : Math.min(spoken, at)
  /** The system messages directly before `index`. */
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

/** Adds messages of a prompt to a session. */
const withMessages = Effect.fnUntraced(function* (
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

/** Extends a session with these messages of a prompt. */
const grown = Effect.fnUntraced(function* (
  session: Session,
  content: ReadonlyArray<Prompt.Message>,
  from: number,
  end: number
) {
  if (end <= from) return session
  const chat = yield* Chat.keep({ log: { append: () => Effect.void }, session })
  yield* withMessages(chat, content, from, end)
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
    return applyEvent(emptySession, {
      _tag: "Started",
      version: logVersion,
      session: sessionName,
      at: yield* Clock.currentTimeMillis,
      estimator: estimatorVersion,
      model: window.name
    })
  })

  /** The session behind a compression: still in memory, or rebuilt from the history and the events of compressions. */
  const sessionOf = Effect.fnUntraced(function* (head: Head | undefined, content: ReadonlyArray<Prompt.Message>) {
    const held = head === undefined ? undefined : memory.session(head)
    if (held !== undefined) return held
    let session = yield* begun()
    let from = 0
    for (const { at, event } of Chain.toArray(head?.events)) {
      session = applyEvent(yield* grown(session, content, from, at), event)
      from = at
    }
    // A compression that changed nothing left no event, but the session contains the messages it saw.
    return yield* grown(session, content, from, head?.at ?? 0)
  })

  /** Compresses until the prompt fits, exclusively for its conversation, and remembers the outcome. */
  const shrink = Effect.fnUntraced(function* (
    method: string,
    place: Place,
    content: ReadonlyArray<Prompt.Message>,
    declared: Declarations
  ) {
    yield* memory.caughtUp(place, content)
    const began = place.head
    let head = began
    let session: Session | undefined
    let events = began?.events
    const beginnings = yield* names(content)
    // Messages that `effect/ai` still has to act on are sent unchanged.
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
      yield* withMessages(chat, content, began?.at ?? 0, end)
      return chat
    })
    /** A removed range is named by the beginning of the conversation that it ends, so that its text can be rebuilt from any history. */
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
            // The mark counts the view only; the rest of the request is added.
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
          Effect.mapError((error) => aiError(method, error))
        )
      },
      declared,
      head?.waiting ?? 0
    )
    // Also if the request is refused in the end, so that the same compression is not paid for again.
    const { measured, messages } = yield* Effect.tapError(fitting, () => kept)
    yield* kept
    place.measured = { ...measured, head, beside: declared.tokens }
    return messages
  })

  const isSmall = (place: Place, { tokens }: Declarations): boolean => {
    const { head, measured } = place
    const isComparable = measured?.head === head && measured?.beside === tokens
    return window.guard.isSmall(tokensOf(place) + tokens, isComparable ? measured : undefined)
  }

  /** Returns the call with a prompt that fits. The same prompt if it already does. */
  const prepare = Effect.fnUntraced(function* (
    method: string,
    options: CallOptions
  ): Effect.fn.Return<ReadyCall, AiError.AiError> {
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

  const { generate, stream } = guardedCalls(window, prepare, () => Effect.void)

  /** Notes the prompt of a call, so that tools that run for it can recall from its prompt and from those of the surrounding calls. */
  const noted = (options: CallOptions) => {
    const prompt = answering.seen(Prompt.make(options.prompt))
    return { options: { ...options, prompt }, context: PromptRecall.within(prompt) }
  }
  const within =
    (ask: Call): Call =>
    (given) =>
      Effect.suspend(() => {
        const { context, options } = noted(given)
        return Effect.updateContext(ask(options), context)
      })
  const withinStream =
    (ask: StreamCall): StreamCall =>
    (given) =>
      Stream.suspend(() => {
        const { context, options } = noted(given)
        return Stream.updateContext(ask(options), context)
      })

  // The methods are generic in what the inner model resolves, toolkits and schemas, which are passed through unchanged.
  const model = LanguageModel.LanguageModel.of({
    ...inner,
    generateText: within(generate("generateText", inner.generateText as Call)) as unknown as Model["generateText"],
    generateObject: within(
      generate("generateObject", inner.generateObject as unknown as Call)
    ) as unknown as Model["generateObject"],
    streamText: withinStream(stream("streamText", inner.streamText as StreamCall)) as Model["streamText"]
  })

  return Context.make(LanguageModel.LanguageModel, model).pipe(Context.add(Recall, { recall: answering.recall }))
})

/**
 * Wraps any `effect/ai` language model, so that its prompts surely fit its window.
 *
 * *When to use*: for a program that keeps its own history and sends it whole with every call. `CompressedChat` keeps the history
 * for you.
 *
 * *Details*: the oldest part of a prompt that would not fit is compressed first. System messages stay as they are, and calls stay
 * with their results. Kept messages are passed on untouched, with their options; a prompt that needs no change is passed on as the
 * same object. A prompt that nothing makes fit fails with `InvalidUserInputError` before anything is sent.
 *
 * `Recall` reads back what left, from the history that the caller sends: a tool that runs for a call finds every handle that was ever
 * shown for its prompt or a beginning of it, also after a restart, and no handle of another conversation. Outside of a call,
 * `Recall.within(prompt)` names the conversation.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<LanguageModel.LanguageModel | Recall, never, LanguageModel.LanguageModel | Requirements> =>
  Layer.effectContext(make(options))

import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { patchOf } from "../domain/Compression.ts"
import { type Entry, viewTokens } from "../domain/Conversation.ts"
import { toContent } from "../domain/PromptContent.ts"
import { awaitedFrom, beginning, follow, isLegal, repaired, type Standing } from "../domain/PromptRepair.ts"
import { arrange, sharedPrefix, viewMessage } from "../domain/PromptView.ts"
import { project } from "../domain/Projection.ts"
import { emptySession, logVersion, type Session, step } from "../domain/Session.ts"
import { estimatorVersion, TokenCount } from "../domain/Tokens.ts"
import type { Calibrations } from "./Calibrations.ts"
import { Chat } from "./Chat.ts"
import type { Compression } from "./Compression.ts"
import type { HookSystem } from "./HookSystem.ts"
import { toMessages } from "./LanguageModelBridge.ts"
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
import { Recall, recallFrom } from "./RecallTool.ts"
import { TempStore } from "./TempStore.ts"
import type { TokenCounter } from "./TokenCounter.ts"
import type { Measured } from "./Window.ts"

/**
 * Any `effect/ai` language model with a window that is never overrun: prompts that come near it are compressed before they
 * reach the model, and everything that leaves them can be recalled. Callers keep sending their whole history; what was
 * compressed once stays as it is, byte for byte, until the next compression, so that a provider's cache keeps working.
 */

/** How prompts are kept within the window. */
export interface Options extends WindowOptions {
  /** How many conversations are remembered (default 64); of more than that, the one longest unused is forgotten. */
  readonly conversations?: number | undefined
}

const defaultConversations = 64
/** Compressions of one conversation that prompts may branch off from again. */
const rememberedHeads = 16
/** Growth after which a compression that changed nothing is tried again (as FailureMemory.ts has it). */
const growthMark = 1.1

/** What is known of a conversation after one of its messages: sums from its beginning. */
interface Mark {
  /** Tokens of all that was said. */
  readonly said: number
  /** Tokens of system messages. */
  readonly system: number
  readonly standing: Standing
}

const noMark: Mark = { said: 0, system: 0, standing: beginning }

/** What stands for the first messages of a conversation since a compression. */
interface Head {
  /** How many messages it stands for. */
  readonly at: number
  readonly session: Session
  /** What is sent in their place, the caller's own messages by their index; absent: they themselves. */
  readonly items: ReadonlyArray<number | Prompt.Message> | undefined
  /** Tokens of what was said among them, as it is sent. */
  readonly tokens: number
  /** Below so many tokens no other compression is tried. */
  readonly waiting: number
}

/** One conversation as it was last sent: a list of messages that only grows. A prompt that differs branches off. */
interface Thread {
  readonly messages: Array<Prompt.Message>
  readonly marks: Array<Mark>
  /** By `at`. */
  heads: ReadonlyArray<Head>
  /** The request that was looked at closely last, and what it was made of. */
  measured: (Measured & { readonly head: Head | undefined; readonly beside: number }) | undefined
  /** Held by whoever compresses. */
  readonly turn: Semaphore.Semaphore
}

const thread = (messages: Array<Prompt.Message>, marks: Array<Mark>, heads: ReadonlyArray<Head>): Thread => ({
  messages,
  marks,
  heads,
  measured: undefined,
  turn: Semaphore.makeUnsafe(1)
})

/** What stands for the beginning of the first `length` messages. */
const headAt = (self: Thread, length: number): Head | undefined => self.heads.findLast(({ at }) => at <= length)

const markAt = (self: Thread, length: number): Mark => self.marks[length - 1] ?? noMark

/** Estimated tokens of the first `length` messages as they are sent. */
const tokensAt = (self: Thread, length: number): number => {
  const { said, system } = markAt(self, length)
  const head = headAt(self, length)
  return system + said + (head === undefined ? 0 : head.tokens - markAt(self, head.at).said)
}

/** A place in a conversation: its first messages, as many as a prompt has. */
interface Place {
  readonly thread: Thread
  readonly length: number
}

/** What is sent for a prompt: the caller's own messages, behind what stands for those that left. */
const sentOf = ({ length, thread }: Place, content: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> => {
  const head = headAt(thread, length)
  const sent =
    head?.items === undefined
      ? content
      : [
          ...head.items.flatMap((item) => (typeof item === "number" ? (content[item] ?? []) : [item])),
          ...content.slice(head.at)
        ]
  return isLegal(markAt(thread, length).standing) ? sent : repaired(sent).flat()
}

/** The log of a conversation that its caller keeps. */
const nowhere = { id: "effect-ai", append: () => Effect.void }

/** Which message of the prompt an entry is; -1 for what a compression inserted. */
const indexOf = (entry: Entry): number => (entry.origin?.line ?? 0) - 1

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

const make = Effect.fnUntraced(function* (options: Options) {
  const inner = yield* LanguageModel.LanguageModel
  const context = yield* Effect.context<Requirements>()
  const store = yield* TempStore
  const window = yield* makeWindow(options)
  const most = Math.max(1, options.conversations ?? defaultConversations)
  /** The one used last stands last. */
  let threads: ReadonlyArray<Thread> = []
  const intake = yield* Semaphore.make(1)

  /** The conversation that begins most like this prompt. */
  const nearest = (content: ReadonlyArray<Prompt.Message>) => {
    let best: { readonly thread: Thread; readonly shared: number; readonly identical: number } | undefined
    for (const each of threads) {
      const { identical, shared } = sharedPrefix(each.messages, content)
      if (shared > (best?.shared ?? 0)) best = { thread: each, shared, identical }
    }
    return best
  }

  const marksOf = Effect.fnUntraced(function* (from: Mark, messages: ReadonlyArray<Prompt.Message>) {
    const marks: Array<Mark> = []
    let { said, standing, system } = from
    for (const message of messages) {
      const tokens = yield* window.count(message)
      if (isSystem(message)) system += tokens
      else said += tokens
      standing = follow(standing, message)
      marks.push({ said, system, standing })
    }
    return marks
  })

  /** Finds a prompt's conversation, or begins one, and takes in what is new. Nothing is changed before all is counted. */
  const place = Effect.fnUntraced(function* (content: ReadonlyArray<Prompt.Message>) {
    const found = nearest(content)
    const { identical = 0, shared = 0 } = found ?? {}
    const known = found?.thread.messages.length ?? 0
    const marks = yield* marksOf(found === undefined ? noMark : markAt(found.thread, shared), content.slice(shared))
    const branch = found === undefined || (shared < known && shared < content.length)
    const self = branch
      ? thread(
          content.slice(0, shared),
          (found?.thread.marks ?? []).slice(0, shared),
          (found?.thread.heads ?? []).filter(({ at }) => at <= shared)
        )
      : found.thread
    // Whoever read the same prompt anew is known by these objects from now on.
    for (let at = identical; at < content.length; at += 1) {
      const message = content[at]
      if (message !== undefined) self.messages[at] = message
    }
    self.marks.push(...marks)
    threads = [...threads.filter((each) => each !== self), self].slice(-most)
    return { thread: self, length: content.length }
  })

  const begun = Effect.fnUntraced(function* () {
    if (window.name === undefined) return emptySession
    return step(emptySession, {
      _tag: "Started",
      version: logVersion,
      session: nowhere.id,
      at: yield* Clock.currentTimeMillis,
      estimator: estimatorVersion,
      model: window.name
    })
  })

  /** A conversation of ours that goes on from what a head stands for, and holds everything that was said up to `end`. */
  const opened = Effect.fnUntraced(function* (
    head: Head | undefined,
    content: ReadonlyArray<Prompt.Message>,
    end: number
  ) {
    const chat = yield* Chat.keep({ log: nowhere, session: head?.session ?? (yield* begun()) })
    for (let at = head?.at ?? 0; at < end; at += 1) {
      const message = content[at]
      if (message === undefined || message.role === "system") continue
      yield* chat.append([{ content: toContent(message), origin: { line: at + 1, ids: [] } }])
    }
    return chat
  })

  /** Compresses until it fits, alone on its conversation, and remembers what became of it. */
  const shrink = Effect.fnUntraced(function* (
    method: string,
    at: Place,
    content: ReadonlyArray<Prompt.Message>,
    declared: Declared
  ) {
    const { length, thread } = at
    const began = headAt(thread, length)
    let head = began
    // What effect/ai still has to do is sent as it is.
    const end = Math.max(began?.at ?? 0, awaitedFrom(content))
    const { said, system } = markAt(thread, length)
    const overhead = TokenCount.make(Math.ceil(system + declared.tokens + said - markAt(thread, end).said))
    const tried: Thread = { ...thread }
    let chat: Chat["Service"] | undefined
    const remember = (made: Head) => {
      head = made
      tried.heads = [...thread.heads.filter((each) => each.at !== end), made].sort((one, other) => one.at - other.at)
    }
    const { measured, messages } = yield* window.fit(
      method,
      {
        request: Effect.sync(() => ({
          messages: sentOf({ length, thread: tried }, content),
          tokens: tokensAt(tried, length) + declared.tokens
        })),
        compress: Effect.fnUntraced(
          function* (policy, forced) {
            chat ??= yield* opened(began, content, end)
            const outcome = yield* chat.compress({ policy: { ...policy, overhead }, forced })
            const session = yield* chat.session
            const patched = patchOf(outcome) !== undefined
            const before = overhead + viewTokens(session.conversation)
            remember({
              at: end,
              session,
              items: patched || head?.items !== undefined ? itemsOf(session, content, end) : undefined,
              tokens: viewTokens(session.conversation),
              waiting: patched ? session.memory.waitUntil : Math.ceil(before * growthMark)
            })
            return outcome
          },
          Effect.mapError((error) => failed(method, error))
        )
      },
      declared,
      head?.waiting ?? 0
    )
    if (head !== began) thread.heads = tried.heads.slice(-rememberedHeads)
    thread.measured = { ...measured, head, beside: declared.tokens }
    return messages
  })

  const isSmall = ({ length, thread }: Place, { tokens }: Declared): boolean => {
    const { measured } = thread
    const isComparable = measured?.head === headAt(thread, length) && measured?.beside === tokens
    return window.isSmall(tokensAt(thread, length) + tokens, isComparable ? measured : undefined)
  }

  /** The same call with a prompt that surely fits. The same prompt, if it does. */
  const prepare = Effect.fnUntraced(function* (
    method: string,
    options: AskOptions
  ): Effect.fn.Return<Ready, AiError.AiError> {
    const prompt = Prompt.make(options.prompt)
    const { content } = prompt
    const declared = yield* window.declared(options)
    const at = yield* intake.withPermit(place(content))
    const messages = isSmall(at, declared)
      ? sentOf(at, content)
      : yield* at.thread.turn
          .withPermit(Effect.suspend(() => shrink(method, at, content, declared)))
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

  // The methods are generic in what the inner model resolves, toolkits and schemas, which are handed on as they are.
  const model = LanguageModel.LanguageModel.of({
    ...inner,
    generateText: generate("generateText", inner.generateText as Ask) as unknown as Model["generateText"],
    generateObject: generate(
      "generateObject",
      inner.generateObject as unknown as Ask
    ) as unknown as Model["generateObject"],
    streamText: stream("streamText", inner.streamText as AskStream) as Model["streamText"]
  })

  const recall: Recall["Service"]["recall"] = (handle, selection) =>
    recallFrom(
      threads.toReversed().flatMap(({ heads }) => heads.map(({ session }) => session).reverse()),
      handle,
      selection
    ).pipe(Effect.provideService(TempStore, store))

  return Context.make(LanguageModel.LanguageModel, model).pipe(Context.add(Recall, { recall }))
})

/**
 * The language model that is given, with prompts that surely fit its window (law 3): of one that would not, its oldest
 * part is compressed first. System messages stay as they are, calls stay with their results (law 5), what is kept is
 * handed on untouched, with its options. A prompt that needs nothing of this is handed on as the same object. When nothing
 * makes it fit, the call fails with `InvalidUserInputError` before anything is sent. `Recall` reads back what left, as
 * long as the conversation is remembered.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<LanguageModel.LanguageModel | Recall, never, LanguageModel.LanguageModel | Requirements> =>
  Layer.effectContext(make(options))

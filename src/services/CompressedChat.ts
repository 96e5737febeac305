import { Clock, Context, Effect, Layer, Ref, type Scope, Semaphore, Stream } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as AiChat from "effect/ai/Chat"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type { Outcome, Policy } from "../domain/Compression.ts"
import type { Content } from "../domain/Content.ts"
import {
  type Conversation,
  type Entry,
  type EntryId,
  itemTokens,
  type Patch,
  view,
  type ViewItem,
  viewTokens
} from "../domain/Conversation.ts"
import { isPromptContent, systemBefore, type SpokenMessage, toContent } from "../domain/PromptContent.ts"
import { beginning, follow, isLegal, repaired } from "../domain/PromptRepair.ts"
import { arrange, sharedPrefix, viewMessage } from "../domain/PromptView.ts"
import { project } from "../domain/Projection.ts"
import { emptySession, logVersion, type Session, type SessionEvent, type Started, step } from "../domain/Session.ts"
import { estimatorVersion, TokenCount } from "../domain/Tokens.ts"
import type { Calibrations } from "./Calibrations.ts"
import { Chat } from "./Chat.ts"
import type { Compression } from "./Compression.ts"
import type { HookSystem } from "./HookSystem.ts"
import { rangeHandle } from "./Intake.ts"
import { toMessages } from "./LanguageModelBridge.ts"
import {
  type Ask,
  type AskOptions,
  type AskStream,
  calling,
  type Declared,
  failed,
  make as makeWindow,
  nothingDeclared,
  type Ready,
  type WindowOptions
} from "./PromptWindow.ts"
import { Recall } from "./RecallTool.ts"
import { type OpenSession, type SessionLog, SessionStore, type SessionStoreError } from "./SessionStore.ts"
import type { TempStore } from "./TempStore.ts"
import type { TokenCounter } from "./TokenCounter.ts"
import type { Measured } from "./Window.ts"

/** Which conversation, and how its prompts are kept within the window. */
export interface Options extends WindowOptions {
  /** The session that holds the conversation; one that is not known yet is begun. */
  readonly session: string
  /** What a new conversation begins with. Of one that is there already only the system messages before all else are taken. */
  readonly prompt?: Prompt.RawInput | undefined
}

/** A message of the history, and the entry of the session that holds it; system messages have none. */
interface Known {
  readonly message: Prompt.Message
  readonly entry: EntryId | undefined
  /** A system message that stood among what left, and comes behind the leading ones now. */
  readonly isMoved: boolean
}

type Requirements = SessionStore | Compression | HookSystem | TokenCounter | TempStore | Calibrations

type Model = LanguageModel.LanguageModel

/** A call that is ready to be made, and the history it is made from. */
interface ReadyTurn extends Ready {
  readonly history: Prompt.Prompt
}

/** Whether a patch only takes messages out: somebody changed the history. What came after may answer what it took. */
const isEdit = ({ drop, insert }: Patch): boolean => drop !== undefined && insert.length === 0

const isSystem = (message: Prompt.Message): message is Prompt.SystemMessage => message.role === "system"
const isSpoken = (message: Prompt.Message): message is SpokenMessage => message.role !== "system"

const begin = Effect.fnUntraced(function* (id: string, model: string | undefined) {
  const store = yield* SessionStore
  const started: Started = {
    _tag: "Started",
    version: logVersion,
    session: id,
    at: yield* Clock.currentTimeMillis,
    estimator: estimatorVersion,
    ...(model === undefined ? {} : { model })
  }
  return { log: yield* store.create(started), session: step(emptySession, started) }
})

/** A session with all that its store left out. */
const readWhole = (opened: OpenSession) =>
  opened.complete ? Effect.succeed(opened) : Effect.map(opened.log.whole, (session) => ({ log: opened.log, session }))

/** How many messages come before everything that was said. */
const frontOf = (history: ReadonlyArray<Prompt.Message>): number => {
  const first = history.findIndex(isSpoken)
  return first < 0 ? history.length : first
}

/** Where in a history the system messages stand that were moved to its front, as far as they are there still. */
const movedIn = (history: ReadonlyArray<Prompt.Message>, known: ReadonlyArray<Known>): ReadonlySet<number> => {
  const moved = known.filter(({ isMoved }) => isMoved).map(({ message }) => message)
  const found = new Set<number>()
  for (let at = frontOf(history) - 1; at >= 0; at -= 1) {
    if (moved.length === 0 || history[at] !== moved.at(-1)) continue
    moved.pop()
    found.add(at)
  }
  return found
}

/** System messages before all else, without those that were moved there. */
const leadingOf = (
  history: ReadonlyArray<Prompt.Message>,
  known: ReadonlyArray<Known>
): ReadonlyArray<Prompt.SystemMessage> => {
  const moved = movedIn(history, known)
  return history
    .slice(0, frontOf(history))
    .filter((_, at) => !moved.has(at))
    .filter(isSystem)
}

/** By message that was said, the system messages right before it; none for the first, which follows the leading ones. */
const systemsBetween = (history: ReadonlyArray<Prompt.Message>): ReadonlyArray<ReadonlyArray<Prompt.SystemMessage>> => {
  const between: Array<ReadonlyArray<Prompt.SystemMessage>> = []
  let waiting: Array<Prompt.SystemMessage> = []
  for (const message of history) {
    if (isSystem(message)) waiting.push(message)
    else {
      between.push(between.length === 0 ? [] : waiting)
      waiting = []
    }
  }
  return between
}

/** System messages after the last that was said. */
const trailingOf = (history: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.SystemMessage> => {
  const last = history.findLastIndex(isSpoken)
  return last < 0 ? [] : history.slice(last + 1).filter(isSystem)
}

/**
 * The messages that a session's view stands for. The same entry is the same object every time, as long as somebody holds
 * the session.
 */
const makeMessages = () => {
  const spoken = new WeakMap<Content, ReadonlyArray<Prompt.Message>>()
  const systems = new WeakMap<Content, ReadonlyArray<Prompt.SystemMessage>>()

  const hold = (content: Content, before: ReadonlyArray<Prompt.SystemMessage>) => {
    systems.set(content, before)
    return before
  }
  const before = (content: Content) => systems.get(content) ?? hold(content, systemBefore(content))

  /** A message as content of an entry that is about to be made. */
  const take = (message: SpokenMessage, systemMessages: ReadonlyArray<Prompt.SystemMessage>): Content => {
    const content = toContent(message, systemMessages)
    spoken.set(content, [message])
    hold(content, systemMessages)
    return content
  }

  /** Contents that were not made of a prompt: what compressions inserted, and sessions of other programs. */
  const foreign = (conversation: Conversation): ((item: ViewItem) => ReadonlyArray<Prompt.Message>) => {
    let made: ReadonlyMap<EntryId, ReadonlyArray<Prompt.Message>> | undefined
    const all = () => {
      const sent = project(conversation)
      const messages = toMessages(sent.map(({ content }) => content))
      return new Map(sent.map(({ entry }, index) => [entry, messages[index] ?? []]))
    }
    return ({ entry, shortened }) => {
      const known = shortened.size === 0 ? spoken.get(entry.content) : undefined
      if (known !== undefined) return known
      made ??= all()
      const messages = made.get(entry.id) ?? []
      if (shortened.size === 0) spoken.set(entry.content, messages)
      return messages
    }
  }

  const own = (item: ViewItem): ReadonlyArray<Prompt.Message> => {
    const { content } = item.entry
    const known = item.shortened.size === 0 ? spoken.get(content) : undefined
    if (known !== undefined) return known
    const message = viewMessage(item)
    const messages = message === undefined ? [] : [message]
    if (item.shortened.size === 0) spoken.set(content, messages)
    return messages
  }

  /** The view as a history, with the system messages in it that `isWanted`. */
  const history = (
    conversation: Conversation,
    by: {
      readonly leading: ReadonlyArray<Prompt.SystemMessage>
      readonly isWanted: (message: Prompt.SystemMessage) => boolean
      readonly trailing: ReadonlyArray<Prompt.SystemMessage>
    }
  ): ReadonlyArray<Known> => {
    const others = foreign(conversation)
    const plain = (isMoved: boolean) => (message: Prompt.Message) => ({ message, entry: undefined, isMoved })
    return arrange<Known>(conversation, {
      leading: by.leading.map(plain(false)),
      before: ({ content }, isShown) => before(content).filter(by.isWanted).map(plain(!isShown)),
      shown: (item) =>
        (isPromptContent(item.entry.content) ? own(item) : others(item)).map((message) => ({
          message,
          entry: item.entry.id,
          isMoved: false
        })),
      trailing: by.trailing.map(plain(false))
    })
  }

  /** Forgets the system messages before an entry that somebody took away: what he left stands where he put it. */
  const release = ({ content }: Entry) => {
    hold(content, [])
  }

  return { history, release, take }
}

/**
 * `effect/ai`'s chat over a session of ours. It is used like any other; before each call the history is compressed if it
 * is due, and `history` and the exports hold what is left. Everything that was said stays in the session: it can be
 * recalled, and a compression be undone. A call that an interruption left without its result is answered before the next
 * request (law 5). A history that somebody else changed is taken as it is: what it no longer holds leaves the view, and
 * can be had back by `undo`.
 */
export class CompressedChat extends Context.Service<
  CompressedChat,
  AiChat.Chat & {
    readonly session: Effect.Effect<Session>
    /** What a handle stands for: exactly, or the wanted part of it. */
    readonly recall: Recall["Service"]["recall"]
    /** Compresses now, whether it is due or not. */
    readonly compress: (policy?: WindowOptions["policy"]) => Effect.Effect<Outcome, AiError.AiError>
    /** Takes the last compression away, or the last change that somebody made to the history. False: there is none. */
    readonly undo: Effect.Effect<boolean, AiError.AiError>
    /** Lays the compression that was undone last again; a change that somebody made is not made again. False: there is none. */
    readonly redo: Effect.Effect<boolean, AiError.AiError>
  }
>()("palimpsest/services/CompressedChat") {
  /** The chat of one session, which stays open, and locked against others, as long as the scope. */
  static readonly make = Effect.fnUntraced(function* (
    options: Options
  ): Effect.fn.Return<CompressedChat["Service"], SessionStoreError | AiError.AiError, Requirements | Scope.Scope> {
    const context = yield* Effect.context<Requirements>()
    const store = yield* SessionStore
    const window = yield* makeWindow(options)
    const opened: { readonly log: SessionLog; readonly session: Session } = yield* store.open(options.session).pipe(
      Effect.flatMap(readWhole),
      Effect.catchReason("SessionStoreError", "SessionNotFound", () => begin(options.session, window.name))
    )
    const { log } = opened
    const turn = yield* Semaphore.make(1)
    const messages = makeMessages()

    let chat = yield* Chat.keep(opened)
    const first = Prompt.make(options.prompt ?? []).content
    const isNew = opened.session.conversation.log === undefined
    let known = messages.history(opened.session.conversation, {
      leading: isNew ? [] : leadingOf(first, []),
      isWanted: () => true,
      trailing: []
    })
    /** The conversation that `known` is of. */
    let version = opened.session.conversation.version
    let measured: (Measured & { readonly messages: ReadonlyArray<Prompt.Message>; readonly beside: number }) | undefined
    /** What was measured last says something only of a request that holds all of it. */
    const measuredOf = (messages: ReadonlyArray<Prompt.Message>, declared: Declared) =>
      measured?.beside === declared.tokens && measured.messages.every((message, at) => message === messages[at])
        ? measured
        : undefined

    const base = yield* AiChat.fromPrompt(Prompt.fromMessages(isNew ? first : known.map(({ message }) => message)))
    const current = Effect.map(Ref.get(base.history), ({ content }) => content)

    /** What the session's view stands for, with the system messages that the history has. */
    const seen = Effect.gen(function* () {
      const { conversation } = yield* chat.session
      const history = yield* current
      const present = new Set<Prompt.Message>(history)
      version = conversation.version
      measured = undefined
      known = messages.history(conversation, {
        leading: leadingOf(history, known),
        isWanted: (message) => present.has(message),
        trailing: trailingOf(history)
      })
    })

    /** The history as the session's view is from now on. */
    const refresh = Effect.andThen(
      seen,
      Effect.suspend(() => Ref.set(base.history, Prompt.fromMessages(known.map(({ message }) => message))))
    )

    /** Takes everything from an entry on out of the view: somebody took it out of the history. */
    const cut = Effect.fnUntraced(function* (from: EntryId) {
      const session = yield* chat.session
      const items = view(session.conversation)
      const at = items.findIndex(({ entry }) => entry.id === from)
      const dropped = items.slice(Math.max(0, at)).map(({ entry }) => entry)
      const last = dropped.at(-1)
      if (last === undefined) return
      const before = viewTokens(session.conversation)
      const removed = items.slice(Math.max(0, at)).reduce((sum, item) => sum + itemTokens(item), 0)
      const event: SessionEvent = {
        _tag: "Compressed",
        at: yield* Clock.currentTimeMillis,
        status: "EDITED",
        strategy: "edited",
        trigger: "manual",
        before: TokenCount.make(before),
        after: TokenCount.make(Math.max(0, before - removed)),
        patch: { drop: { from, to: last.id }, insert: [], shorten: [] },
        dropped: yield* rangeHandle(dropped)
      }
      const next = yield* Chat.keep({ log, session: step(session, event) })
      yield* Effect.uninterruptible(
        Effect.andThen(
          log.append(event),
          Effect.sync(() => {
            chat = next
            for (const entry of dropped) messages.release(entry)
          })
        )
      )
      yield* seen
    })

    /** The session holds what the history holds. */
    const record = Effect.fnUntraced(function* () {
      if ((yield* chat.session).conversation.version !== version) yield* seen
      const history = yield* current
      const spoken = history.filter(isSpoken)
      const before = systemsBetween(history)
      const held = known.filter(({ entry }) => entry !== undefined)
      let { shared } = sharedPrefix(
        held.map(({ message }) => message),
        spoken
      )
      // Of an entry that is two messages, both stay or none.
      while (shared > 0 && shared < held.length && held[shared]?.entry === held[shared - 1]?.entry) shared -= 1
      const from = held[shared]?.entry
      if (from !== undefined) yield* cut(from)
      const added = yield* chat.append(
        spoken
          .slice(shared)
          .map((message, index) => ({ content: messages.take(message, before[shared + index] ?? []) }))
      )
      let next = 0
      const moved = movedIn(history, known)
      known = history.map((message, index) => {
        if (isSystem(message)) return { message, entry: undefined, isMoved: moved.has(index) }
        const at = next
        next += 1
        return { message, entry: at < shared ? held[at]?.entry : added[at - shared]?.id, isMoved: false }
      })
      version = (yield* chat.session).conversation.version
    })

    const ours = <A, E extends { readonly message: string }>(
      method: string,
      effect: Effect.Effect<A, E, Requirements>
    ): Effect.Effect<A, AiError.AiError> =>
      effect.pipe(
        Effect.provideContext(context),
        Effect.mapError((error) => failed(method, error))
      )

    /** Whatever became of it, the history is what the session's view is. */
    const compressed = (method: string, policy: Policy, forced: boolean) =>
      ours(method, chat.compress({ policy, forced })).pipe(
        Effect.ensuring(
          Effect.flatMap(chat.session, ({ conversation }) => (conversation.version === version ? Effect.void : refresh))
        )
      )

    const tokensBeside = Effect.fnUntraced(function* (beside: ReadonlyArray<Prompt.Message>, declared: Declared) {
      let { tokens } = declared
      for (const message of beside) tokens += yield* window.count(message)
      return TokenCount.make(Math.ceil(tokens))
    })

    /** The same call, from a history that is legal, in the session, and small enough. */
    const prepare = Effect.fnUntraced(function* (
      method: string,
      given: AskOptions
    ): Effect.fn.Return<ReadyTurn, AiError.AiError> {
      const declared = yield* window.declared(given)
      const asked = declared.toolkit === undefined ? given : { ...given, toolkit: declared.toolkit }
      const before = yield* current
      let prompt = Prompt.make(given.prompt)
      const both = [...before, ...prompt.content]
      if (!isLegal(both.reduce(follow, beginning))) {
        const legal = repaired(both)
        yield* Ref.set(base.history, Prompt.fromMessages(legal.slice(0, before.length).flat()))
        prompt = Prompt.fromMessages(legal.slice(before.length).flat())
      }
      yield* ours(method, record())
      const systems = (yield* current).filter(isSystem)
      const overhead = yield* tokensBeside([...systems, ...prompt.content], declared)
      const request = Effect.gen(function* () {
        const { conversation } = yield* chat.session
        return { messages: [...(yield* current), ...prompt.content], tokens: overhead + viewTokens(conversation) }
      })
      let { messages, tokens } = yield* request
      if (!window.isSmall(tokens, measuredOf(messages, declared))) {
        const { memory } = yield* chat.session
        const fitting = yield* window.fit(
          method,
          {
            request,
            compress: (policy, forced) => compressed(method, { ...policy, overhead }, forced)
          },
          declared,
          memory.waitUntil
        )
        messages = [...fitting.messages]
        measured = { ...fitting.measured, messages, beside: declared.tokens }
      }
      return { asked, options: { ...asked, prompt }, history: yield* Ref.get(base.history), messages, declared }
    })

    /** What the call left in the history is in the session, or will be with the next call. */
    const recorded = Effect.ignore(ours("record", record()), {
      log: "Warn",
      message: "a chat could not be written to its session yet"
    })

    const { generate, stream } = calling(window, prepare, ({ history }) => Ref.set(base.history, history))

    const alone =
      <R>(ask: Ask<R>): Ask<R> =>
      (given) =>
        turn.withPermit(Effect.ensuring(ask(given), recorded))

    const aloneWhile =
      <R>(ask: AskStream<R>): AskStream<R> =>
      (given) =>
        Stream.unwrap(
          Effect.gen(function* () {
            yield* Effect.acquireRelease(turn.take(1), () => turn.release(1), { interruptible: true })
            yield* Effect.addFinalizer(() => recorded)
            return ask(given)
          })
        )

    const change = (method: string, work: Effect.Effect<boolean, AiError.AiError>) =>
      turn.withPermit(
        Effect.gen(function* () {
          yield* ours(method, record())
          return yield* Effect.ensuring(work, refresh)
        })
      )

    yield* ours("make", record())

    // The methods are generic in what the language model resolves, toolkits and schemas, which are handed on as they are.
    return {
      ...base,
      generateText: alone(
        generate("generateText", base.generateText as unknown as Ask<Model>)
      ) as unknown as AiChat.Chat["generateText"],
      generateObject: alone(
        generate("generateObject", base.generateObject as unknown as Ask<Model>)
      ) as unknown as AiChat.Chat["generateObject"],
      streamText: aloneWhile(
        stream("streamText", base.streamText as unknown as AskStream<Model>)
      ) as unknown as AiChat.Chat["streamText"],
      session: Effect.suspend(() => chat.session),
      recall: (handle, selection) => Effect.suspend(() => chat.recall(handle, selection)),
      compress: (policy) =>
        turn.withPermit(
          Effect.gen(function* () {
            yield* ours("compress", record())
            const overhead = yield* tokensBeside((yield* current).filter(isSystem), nothingDeclared)
            const wanted = { ...window.policy(window.room), ...policy, overhead }
            return yield* compressed("compress", wanted, true)
          })
        ),
      undo: change(
        "undo",
        Effect.suspend(() => ours("undo", chat.undo))
      ),
      redo: change(
        "redo",
        Effect.flatMap(
          Effect.suspend(() => chat.session),
          ({ conversation: { redoable } }) =>
            redoable === undefined || isEdit(redoable.value) ? Effect.succeed(false) : ours("redo", chat.redo)
        )
      )
    }
  })

  /** The chat as `effect/ai`'s `Chat`, with what it can do beyond it, and with `Recall` for the tool. */
  static readonly layer = (
    options: Options
  ): Layer.Layer<CompressedChat | AiChat.Chat | Recall, SessionStoreError | AiError.AiError, Requirements> =>
    Layer.effectContext(
      Effect.map(CompressedChat.make(options), (chat) =>
        Context.make(CompressedChat, chat).pipe(
          Context.add(AiChat.Chat, chat),
          Context.add(Recall, { recall: chat.recall })
        )
      )
    )
}

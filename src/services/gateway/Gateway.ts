import { Clock, Context, Effect, Layer, Metric, Schema } from "effect"
import { patchOf } from "../../domain/compression/Compression.ts"
import { outputText } from "../../domain/content/Content.ts"
import type { Handle } from "../../domain/content/Handle.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { recall as recallRange } from "../../domain/conversation/Recall.ts"
import { hiddenParts } from "../../domain/conversation/RecallSearch.ts"
import type { RecallCall } from "../../domain/gateway/Answer.ts"
import { compactedBy } from "../../domain/gateway/ClientCompaction.ts"
import {
  type CompressedView,
  CompressedViewJson,
  HiddenExchangeJson,
  type SentMessage,
  sentMessages
} from "../../domain/gateway/CompressedView.ts"
import type { Dialect, Route } from "../../domain/gateway/Dialect.ts"
import { forms } from "../../domain/gateway/DialectForms.ts"
import { gatewayPolicy, type GatewayWindows, requestLimit } from "../../domain/gateway/GatewayLimits.ts"
import type { HiddenExchange } from "../../domain/gateway/HiddenExchange.ts"
import { beginningsOf } from "../../domain/gateway/MessageChain.ts"
import { type RecallDeclaration, recallDeclaration } from "../../domain/gateway/RecallDeclaration.ts"
import { headOf, readBody, type RequestBody, withMessages as bodyWith } from "../../domain/gateway/RequestBody.ts"
import { isJson } from "../../domain/model/MessageForm.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../compression/Compression.ts"
import { HandleNotHeld, search, select, type TempStore, TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter, TokenCountError } from "../tokens/TokenCounter.ts"
import { recall as recallTool } from "../tools/builtin/Recall.ts"
import type { CallContext } from "../tools/Tool.ts"
import {
  addedSince,
  changedEnd,
  cutAt,
  type ConversationLog,
  emptyLog,
  isWithinGroup,
  viewMessages,
  withMessages,
  withPatch
} from "./ConversationLog.ts"
import { clientCompactions } from "./GatewayMetrics.ts"
import { GatewayStore, type GatewayStoreError } from "./GatewayStore.ts"

/** One file: what a request becomes, what its answer leaves behind, and the memory that both share. */

/** How the gateway treats conversations. */
export interface GatewayOptions extends GatewayWindows {
  /** Whether our tool is declared. Default: true. */
  readonly recall?: boolean | undefined
  /** Whether answers tell of calls of our tool. Default: false. */
  readonly showRecalls?: boolean | undefined
}

/** A request as it came. */
export interface GatewayRequest {
  /** Whose conversations are looked at: the hash of the client's key. */
  readonly owner: string
  readonly route: Route
  readonly text: string
  /** The name that the client gives to its conversation. */
  readonly session?: string | undefined
  /** Compress although the estimate says that the request fits: the provider refused it as too long. */
  readonly isTooLong?: boolean | undefined
}

/** How much of the names of conversations that were seen is kept. */
const maxBegun = 10_000

/** A request that goes out with other messages than it came with. */
export interface SentView {
  readonly owner: string
  readonly body: RequestBody
  /** The names of the beginnings of the client's messages. */
  readonly names: ReadonlyArray<string>
  readonly view: CompressedView
  /** The messages behind the view. */
  readonly rest: ReadonlyArray<SentMessage>
  readonly messages: ReadonlyArray<string>
  readonly declaration: RecallDeclaration | undefined
  /** Tokens that fit into the window, and those of the request. */
  readonly limit: number
  readonly tokens: number
}

/** What becomes of a request. Token counts are estimates. */
export type GatewayPlan =
  /** It goes out as it came. */
  | { readonly _tag: "Unchanged"; readonly model: string; readonly tokens: number | undefined }
  | {
      readonly _tag: "Changed"
      readonly model: string
      readonly text: string
      readonly sent: SentView
      /** Tokens as it came, and as it goes out. */
      readonly before: number
      readonly after: number
      /** Whether this request was the one to compress. */
      readonly isNew: boolean
    }

/** A text that is read back of what left the window. */
export interface Recalled {
  readonly text: string
  readonly isFailure: boolean
}

/** Why a request could not be looked at. It then goes out as it came. */
export type GatewayError = GatewayStoreError | TokenCountError

/** Keeps conversations of other programs within their windows. */
export class Gateway extends Context.Service<
  Gateway,
  {
    /** Decides what goes out for a request, and keeps what has to be known of it later. */
    readonly plan: (request: GatewayRequest) => Effect.Effect<GatewayPlan, GatewayError>
    /** Answers calls of our tool, within this many tokens in all. */
    readonly recall: (
      sent: SentView,
      calls: ReadonlyArray<RecallCall>,
      room: number
    ) => Effect.Effect<ReadonlyArray<Recalled>, GatewayError>
    /** Writes the request that follows: the same, and what was said since. */
    readonly following: (sent: SentView, since: ReadonlyArray<string>) => string
    /** Keeps what the client did not see of an answer, or that there was nothing. */
    readonly remember: (sent: SentView, exchange: HiddenExchange) => Effect.Effect<void, GatewayError>
    /** Whether answers tell of calls of our tool. */
    readonly showsRecalls: boolean
    /** Learns from the provider's count of a request how far estimates for its model are off. */
    readonly learn: (model: string, estimated: number, counted: number) => void
  }
>()("palimpsest/services/gateway/Gateway") {
  /** The decisions, with a memory of their own; what outlives the process is in the store. */
  static readonly layer = (
    options: GatewayOptions
  ): Layer.Layer<Gateway, never, Compression | GatewayStore | TempStore | TokenCounter> =>
    Layer.effect(Gateway, make(options))
}

/** Requests below this size are never compressed, nor part of a conversation that was. */
const minBytes = 4_000
/** Whole conversations, views and counts that are held in memory. */
const maxLogs = 12
const maxViews = 128
const maxCounts = 100_000
/** Tokens of one answer to the model. */
const maxRecallTokens = 4_000
const minRecallTokens = 200
/** Tokens that a message takes beside its parts. */
const frameTokens = 4
/** Share of the window by which a request grows between two compressions at least, as long as it fits at all. */
const minGrowth = 0.1
const maxFill = 0.95
/** A request that the provider refused as too long has this many times the estimated tokens at least. */
const refusedFactor = 1.3
/** What estimates may be off by, and the weight of the newest count. */
const factorBounds = { min: 0.8, max: 1.6 }
const factorWeight = 0.3
/** Conversations that another process may have compressed are looked for again after this time. */
const namesAgeMillis = 5_000

/** A map that forgets what was added first. */
class Bounded<V> {
  private readonly held = new Map<string, V>()
  private readonly size: number
  constructor(size: number) {
    this.size = size
  }
  get(key: string): V | undefined {
    return this.held.get(key)
  }
  set(key: string, value: V): void {
    this.held.delete(key)
    this.held.set(key, value)
    if (this.held.size <= this.size) return
    for (const first of this.held.keys()) {
      this.held.delete(first)
      return
    }
  }
}

/** What is known of the conversations of an owner: the names in the store. */
interface Known {
  readonly views: Set<string>
  readonly hidden: Set<string>
  readonly readAt: number
}

const decodeView = Schema.decodeUnknownEffect(CompressedViewJson)
const encodeView = Schema.encodeEffect(CompressedViewJson)
const decodeHidden = Schema.decodeUnknownEffect(HiddenExchangeJson)
const encodeHidden = Schema.encodeEffect(HiddenExchangeJson)

/** Tokens of one message, as it is counted within a conversation too. */
const messageTokens = (dialect: Dialect, json: string): number => {
  const [group] = forms[dialect].read([parsedOrUndefined(json)])
  if (group === undefined) return frameTokens + estimateText(json)
  return group.content.parts.reduce((sum, part) => sum + Work.runSync(partTokens(part, outputText(part))), frameTokens)
}

/** Nobody watches a call of ours. */
const unwatched: Omit<CallContext, "id"> = {
  agent: "gateway",
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: (work) => work
}

const make = Effect.fnUntraced(function* (options: GatewayOptions) {
  const store = yield* GatewayStore
  const context = yield* Effect.context<Compression | TempStore | TokenCounter>()
  const compression = yield* Compression
  const provide = Effect.provideContext(context)
  const owners = new Map<string, Known>()
  const views = new Bounded<CompressedView>(maxViews)
  const logs = new Bounded<ConversationLog>(maxLogs)
  const counts = new Bounded<number>(maxCounts)
  /** Tokens at which a compression found nothing to do, by the beginning that it went on from. */
  const inVain = new Bounded<number>(maxCounts)
  const factors = new Bounded<number>(maxViews)
  const begun = new Bounded<true>(maxBegun)

  /** What is known of an owner; `isFresh` asks the store again after a while. */
  const knownOf = Effect.fnUntraced(function* (owner: string, isFresh = false) {
    const held = owners.get(owner)
    const now = yield* Clock.currentTimeMillis
    if (held !== undefined && (!isFresh || now - held.readAt < namesAgeMillis)) return held
    const known: Known = {
      views: new Set(yield* store.names(owner, "view")),
      hidden: new Set(yield* store.names(owner, "hidden")),
      readAt: now
    }
    owners.set(owner, known)
    return known
  })

  /** The view under a name; undefined where it is gone or cannot be read. */
  const viewOf = Effect.fnUntraced(function* (owner: string, name: string) {
    const key = `${owner}/${name}`
    const held = views.get(key)
    if (held !== undefined) return held
    const text = yield* store.get(owner, "view", name)
    const read = text === undefined ? undefined : yield* Effect.option(decodeView(text))
    if (read?._tag !== "Some") return undefined
    views.set(key, read.value)
    return read.value
  })

  /** The deepest compression of a beginning of this conversation. */
  const deepest = Effect.fnUntraced(function* (owner: string, names: ReadonlyArray<string>) {
    const known = yield* knownOf(owner)
    if (known.views.size === 0) return undefined
    for (let at = names.length - 1; at > 0; at -= 1) {
      const name = names[at]
      if (name === undefined || !known.views.has(name)) continue
      const view = yield* viewOf(owner, name)
      if (view !== undefined && view.messages === at) return view
    }
    return undefined
  })

  /** The hidden exchanges of this conversation, by the number of messages before them. */
  const hiddenOf = Effect.fnUntraced(function* (owner: string, names: ReadonlyArray<string>, from: number) {
    const { hidden } = yield* knownOf(owner)
    const found = new Map<number, HiddenExchange>()
    if (hidden.size === 0) return found
    for (let at = from; at < names.length; at += 1) {
      const name = names[at]
      if (name === undefined || !hidden.has(name)) continue
      const text = yield* store.get(owner, "hidden", name)
      const read = text === undefined ? undefined : yield* Effect.option(decodeHidden(text))
      if (read?._tag === "Some") found.set(at, read.value)
    }
    return found
  })

  const countOf = (dialect: Dialect, json: string, key: string): number => {
    const held = counts.get(key)
    if (held !== undefined) return held
    const tokens = messageTokens(dialect, json)
    counts.set(key, tokens)
    return tokens
  }

  const counted = (dialect: Dialect, messages: ReadonlyArray<string>): number =>
    messages.reduce((sum, json) => sum + countOf(dialect, json, store.hash(json)), 0)

  const isOwnTool = (name: string): boolean => /^palimpsest_recall(?:_\d+)?$/.test(name)

  /** The conversation up to a view: held, or made again of the client's messages. */
  const logOf = Effect.fnUntraced(function* (
    owner: string,
    body: RequestBody,
    names: ReadonlyArray<string>,
    view: CompressedView | undefined
  ) {
    const chain: Array<CompressedView> = []
    let log: ConversationLog | undefined
    for (let each = view; each !== undefined && log === undefined;) {
      log = logs.get(`${owner}/${each.name}`)
      if (log !== undefined) break
      chain.unshift(each)
      each = each.parent === null ? undefined : yield* viewOf(owner, each.parent)
    }
    const [first] = chain
    let from =
      first === undefined
        ? 0
        : ((first.parent === null ? undefined : yield* viewOf(owner, first.parent))?.messages ?? 0)
    log ??= emptyLog(body.dialect)
    for (const each of chain) {
      const hidden = yield* hiddenOf(owner, names.slice(0, each.messages), from)
      const sent = sentMessages(body.dialect, body.messages.slice(0, each.messages), from, hidden)
      log = withPatch(yield* withMessages(log, sent, isOwnTool), each)
      logs.set(`${owner}/${each.name}`, log)
      from = each.messages
    }
    return log
  })

  /** Compresses; undefined where nothing could be made smaller. */
  const compress = Effect.fnUntraced(function* (
    { owner }: GatewayRequest,
    body: RequestBody,
    names: ReadonlyArray<string>,
    parent: CompressedView | undefined,
    rest: ReadonlyArray<SentMessage>,
    size: { readonly overhead: number; readonly limit: number; readonly before: number }
  ) {
    const base = yield* logOf(owner, body, names, parent)
    const whole = yield* withMessages(base, rest, isOwnTool)
    const { dropped, outcome } = yield* compression.compress({
      conversation: whole.conversation,
      policy: gatewayPolicy(size.limit, options.threshold, size.overhead),
      forced: true,
      mustFit: true,
      memory: freshMemory,
      held: whole.handles,
      family: body.model
    })
    const patch = patchOf(outcome)
    if (patch === undefined) return undefined
    const added = addedSince(whole, base)
    let end = Math.max(1, changedEnd(whole, patch, added))
    while (end < rest.length && (rest[end - 1]?.isEnd !== true || isWithinGroup(whole, added, end))) end += 1
    const messages = rest[end - 1]?.upTo
    const name = messages === undefined ? undefined : names[messages]
    if (messages === undefined || name === undefined) return undefined
    const begun = cutAt(whole, base, rest, end)
    const log = withPatch(begun, { patch, dropped: dropped ?? null })
    const sent = viewMessages(log)
    const after = size.overhead + counted(body.dialect, [...sent, ...rest.slice(end).map(({ json }) => json)])
    const view: CompressedView = {
      version: 1,
      name,
      messages,
      parent: parent?.name ?? null,
      sent,
      patch,
      dropped: dropped ?? null,
      handles: entries(begun.conversation).flatMap(({ handles, id }) => (base.sources.has(id) ? [] : handles)),
      model: body.model,
      at: yield* Clock.currentTimeMillis,
      tokens: { before: Math.round(size.before), after: Math.round(after) }
    }
    yield* store.put(
      owner,
      "original",
      name,
      `[${rest
        .slice(0, end)
        .map(({ json }) => json)
        .join()}]`
    )
    yield* store.put(owner, "view", name, yield* Effect.orDie(encodeView(view)))
    const known = yield* knownOf(owner)
    known.views.add(name)
    views.set(`${owner}/${name}`, view)
    logs.set(`${owner}/${name}`, log)
    return { view, rest: rest.slice(end) }
  })

  /** Counts a conversation that begins with a summary of the client's own, once. */
  const noteCompaction = Effect.fnUntraced(function* ({ messages }: RequestBody, names: ReadonlyArray<string>) {
    const name = names[Math.min(names.length - 1, 1)] ?? ""
    if (begun.get(name) !== undefined) return
    begun.set(name, true)
    const client = compactedBy(messages)
    if (client !== undefined) yield* Metric.update(Metric.withAttributes(clientCompactions, { client }), 1)
  })

  const plan = Effect.fn("Gateway.plan")(function* (
    request: GatewayRequest
  ): Effect.fn.Return<GatewayPlan, GatewayError> {
    const { isTooLong = false, owner, route, session = "", text } = request
    const body = text.length < minBytes ? undefined : readBody(route, text)
    if (body === undefined) return { _tag: "Unchanged", model: route.model ?? "", tokens: undefined }
    const { dialect, messages, model } = body
    const factor = Math.max(factors.get(model) ?? 1, isTooLong ? refusedFactor : 0)
    const limit = Math.floor(requestLimit(options, model, body.maxAnswer) / factor)
    const trigger = isTooLong ? 0 : limit * options.threshold
    const isSmall = text.length < trigger
    const known = yield* knownOf(owner, !isSmall)
    if (isSmall && known.views.size === 0) return { _tag: "Unchanged", model, tokens: undefined }
    const names = beginningsOf(`${dialect} ${session}`, messages, store.hash)
    yield* noteCompaction(body, names)
    let view = yield* deepest(owner, names)
    if (view === undefined && isSmall) return { _tag: "Unchanged", model, tokens: undefined }
    const headTokens = countOfText(headOf(body))
    const before =
      headTokens + messages.reduce((sum, json, at) => sum + countOf(dialect, json, names[at + 1] ?? json), 0)
    if (view === undefined && (before < trigger || route.asks === "count")) {
      return { _tag: "Unchanged", model, tokens: before }
    }
    const from = view?.messages ?? 0
    let rest = sentMessages(dialect, messages, from, yield* hiddenOf(owner, names, from))
    const declaration =
      body.canRecall && options.recall !== false && route.asks === "answer"
        ? recallDeclaration(dialect, body.tools === undefined ? "" : text.slice(body.tools.start, body.tools.end))
        : undefined
    const overhead = headTokens + (declaration === undefined ? 0 : countOfText(declaration.inDialect))
    const tokensOf = () => overhead + counted(dialect, [...(view?.sent ?? []), ...rest.map(({ json }) => json)])
    let tokens = tokensOf()
    let isNew = false
    const place = `${owner}/${view?.name ?? names[1] ?? ""}`
    // A head that fills the window must not lead to a compression in every turn.
    const grown = Math.min(maxFill * limit, (view?.tokens.after ?? 0) + minGrowth * limit)
    const due = isTooLong ? 0 : Math.max(trigger, grown, inVain.get(place) ?? 0)
    if (tokens >= due && route.asks === "answer") {
      const made = yield* provide(compress(request, body, names, view, rest, { overhead, limit, before: tokens }))
      if (made === undefined) inVain.set(place, tokens * (1 + minGrowth))
      else {
        view = made.view
        rest = made.rest
        tokens = tokensOf()
        isNew = true
      }
    }
    if (view === undefined) return { _tag: "Unchanged", model, tokens: before }
    const all = [...view.sent, ...rest.map(({ json }) => json)]
    return {
      _tag: "Changed",
      model,
      text: bodyWith(body, all, declaration),
      sent: { owner, body, names, view, rest, messages: all, declaration, limit, tokens },
      before,
      after: tokens,
      isNew
    }
  })

  /** Counts of heads, which clients repeat from request to request. */
  const countOfText = (text: string): number => {
    const key = store.hash(text)
    const held = counts.get(key)
    if (held !== undefined) return held
    const tokens = estimateText(text)
    counts.set(key, tokens)
    return tokens
  }

  /** Looks for a handle in everything that ever left conversations of this owner. */
  const recallElsewhere = Effect.fnUntraced(function* (owner: string, dialect: Dialect, handle: Handle) {
    for (const name of (yield* knownOf(owner)).views) {
      const view = yield* viewOf(owner, name)
      if (view === undefined || (view.dropped !== handle && !view.handles.includes(handle))) continue
      const text = yield* store.get(owner, "original", name)
      if (text === undefined) continue
      const values = parsedOrUndefined(text)
      if (!Array.isArray(values)) continue
      if (view.dropped === handle) return text
      const sent = values.map((value) => ({ json: JSON.stringify(value), upTo: 0, isEnd: true }))
      const log = yield* withMessages(emptyLog(dialect), sent, isOwnTool)
      const found = log.handles.text(handle)
      if (found !== undefined) return found
    }
    return undefined
  })

  const recall = Effect.fn("Gateway.recall")(function* (
    { body, names, owner, rest, view }: SentView,
    calls: ReadonlyArray<RecallCall>,
    room: number
  ) {
    const log = yield* withMessages(yield* logOf(owner, body, names, view), rest, isOwnTool)
    const tool = recallTool({
      conversation: Effect.succeed(log.conversation),
      // The provider has seen all of it before: exactly that comes back.
      settings: Effect.succeed({ model: body.model, policy: { redactSecrets: false } }),
      recall: Effect.fnUntraced(function* (handle, selection = {}) {
        const text =
          log.handles.text(handle) ??
          recallRange({ entries: [], ranges: log.ranges }, handle)?.text ??
          (yield* Effect.orElseSucceed(recallElsewhere(owner, body.dialect, handle), () => undefined))
        return text === undefined
          ? yield* new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice: "copy it as it is shown" }) })
          : yield* select(text, selection)
      }, provide),
      search: (query) => Effect.flatMap(Work.run(hiddenParts(log.conversation)), (parts) => search(parts, query))
    })
    const most = Math.max(minRecallTokens, Math.min(maxRecallTokens, Math.floor(room / Math.max(1, calls.length))))
    return yield* Effect.forEach(calls, ({ args, id }) =>
      tool.call({ ...(isJson(args) ? args : {}), maxTokens: most }, { ...unwatched, id }).pipe(
        Effect.flatMap(({ run }) => run),
        Effect.match({
          onFailure: ({ message }): Recalled => ({ text: message, isFailure: true }),
          onSuccess: ({ value }) => ({ text: String(value), isFailure: false })
        })
      )
    )
  }, provide)

  return {
    plan,
    recall,
    showsRecalls: options.showRecalls === true,
    following: ({ body, declaration, messages }, since) => bodyWith(body, [...messages, ...since], declaration),
    learn: (model, estimated, counted) => {
      if (estimated <= 0 || counted <= 0) return
      const before = factors.get(model) ?? 1
      const now = Math.min(factorBounds.max, Math.max(factorBounds.min, counted / estimated))
      factors.set(model, before + (now - before) * factorWeight)
    },
    remember: Effect.fn("Gateway.remember")(function* ({ names, owner }, exchange) {
      const name = names.at(-1)
      if (name === undefined) return
      // Another answer to the same request, of which nothing was hidden, takes the place of an earlier one.
      if (exchange.rounds.length === 0 && exchange.beside === undefined && !(yield* knownOf(owner)).hidden.has(name))
        return
      yield* store.put(owner, "hidden", name, yield* Effect.orDie(encodeHidden(exchange)))
      const known = yield* knownOf(owner)
      known.hidden.add(name)
    })
  } satisfies Gateway["Service"]
})

import { actionsOf } from "../actions/Actions.ts"
import { isCommand } from "../actions/AgentTools.ts"
import { isCall, isErrorResponse, isResponse, isThought, type Part } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import {
  canRedo,
  canUndo,
  type Entry,
  type EntryId,
  entryId,
  type Patch,
  sequenceOf,
  shown,
  view
} from "../conversation/Conversation.ts"
import { replacesView } from "../session/Checkpoint.ts"
import {
  emptySession,
  type Session,
  type SessionEvent,
  applyEvent,
  type Started,
  entriesOf
} from "../session/Session.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { PricedRequest } from "../tokens/Prices.ts"
import type { Usage } from "../tokens/Tokens.ts"
import { type Compaction, countedTokens } from "./Compactions.ts"
import { narrowColumn, Names, tinyColumn, wideColumn } from "./CompactLists.ts"
import { type InspectionContext, type Inspection, opensTurn, relativePathsTo, type Unpaired } from "./Inspection.ts"
import { OpenCalls } from "./OpenCalls.ts"
import { PartKind, partKindOf } from "./PartKind.ts"
import { type RecordedAnswer, isCounted, recordedCost, usageOf } from "./RecordedUse.ts"
import { RepeatedReads } from "./RepeatedReads.ts"
import { sumOf, tallied, Tally } from "./Tally.ts"

/**
 * Inspects a log that is too long for memory: takes its events one by one and keeps only a few numbers per message. The
 * result equals that of `Inspection.inspect`, except that no compaction reports the facts it kept.
 *
 * One file: the columns of numbers that events fill and the results are read from are one state.
 */

// --- the view -----------------------------------------------------------------------------------------------------------

/** Tokens of the parts that are shown in another form, by index. */
type Shorter = ReadonlyMap<number, number>

/** The data of a patch that is needed after its texts are gone. Messages by number, inserted entries by slot. */
interface SlimPatch {
  readonly from: number | undefined
  readonly to: number | undefined
  readonly insert: ReadonlyArray<number>
  readonly shorten: ReadonlyMap<number, Shorter>
}

interface Layer {
  readonly patch: SlimPatch
  readonly before: ReadonlyArray<number>
  /** Number of log messages when the patch was applied. */
  readonly entries: number
  readonly decided: Pick<Compaction, "strategy" | "trigger">
}

/** Limit of the bytes held for planning the next compression. The content of a window of a million tokens is smaller. */
const heldBytes = 16 * 1024 * 1024
/** Bytes that a message takes in memory besides its line. */
const heldMessage = 1_000

const kindNumber = new Map(PartKind.literals.map((kind, index) => [kind, index]))
const isEnvironment = 1
const isInserted = 2
const isModel = 4

/** Surveys a log, event by event. Mutable. */
export class Survey {
  started: Started | undefined
  model: string | undefined
  /** The number of the next entry. */
  next = 1
  /**
   * Times of the first and the last message of the log, in milliseconds since 1970. When no message has a time, `from` is
   * greater than `to`.
   */
  span = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY }
  /** What compressions dropped, oldest first: the handle of the range, and its messages. */
  readonly dropped: Array<{
    readonly handle: Handle
    readonly messages: number
    readonly from: EntryId
    readonly to: EntryId
  }> = []

  private readonly slots = { sequence: wideColumn(), parts: narrowColumn(), flags: tinyColumn(), tokens: wideColumn() }
  private readonly parts = { kind: tinyColumn(), tool: narrowColumn(), tokens: wideColumn(), isAnswered: tinyColumn() }
  private readonly log = narrowColumn()
  private readonly starts = narrowColumn()
  private readonly answers = {
    index: narrowColumn(),
    entry: narrowColumn(),
    model: narrowColumn(),
    answer: wideColumn(),
    thoughts: wideColumn(),
    isCounted: tinyColumn(),
    prompt: wideColumn(),
    usageAnswer: wideColumn(),
    usageThoughts: wideColumn(),
    cached: wideColumn(),
    cacheWrite: wideColumn(),
    cacheWriteHour: wideColumn()
  }
  private readonly tools = new Names()
  private readonly models = new Names()
  private readonly logged = new Tally()
  private readonly inserted = new Tally()
  private readonly open = new OpenCalls()
  private readonly reads: Array<{
    readonly call: number
    readonly paths: ReadonlyArray<string>
    readonly slot: number
    readonly tokens: number
  }> = []
  private readonly unpairedResponses: Array<{ readonly slot: number; readonly unpaired: Unpaired }> = []
  private readonly requests: Array<PricedRequest> = []
  /** Inserted messages. Their calls are reported after those of the log. */
  private readonly insertedMessages: Array<{
    readonly slot: number
    readonly entry: Pick<Entry, "content" | "id" | "handles" | "tokens">
  }> = []
  private readonly insertedParts = new Set<number>()
  private isAnswerOpen = false

  /** By slot; a negative number refers to a variant. */
  private items: Array<number> = []
  private readonly variants: Array<{ readonly slot: number; readonly shorter: Shorter }> = []
  /** Messages whose parts were bounded on arrival, in the form shown in a view. */
  private readonly bounded = new Map<number, number>()
  private layers: Array<Layer> = []
  private undone: Array<Layer> = []

  /** The part of the session that planning needs; undefined when it is too large. */
  private tail: Session | undefined = emptySession
  private tailBytes = 0
  private tailStart = 0

  // --- events

  /** Adds the next event, whose line has this many bytes in the log. */
  add(event: SessionEvent, bytes: number): void {
    switch (event._tag) {
      case "Started":
        this.started = event
        this.model = event.model
        break
      case "Appended":
      case "Answered":
        for (const entry of entriesOf(event)) this.append(entry)
        break
      case "ModelSwitched":
        this.model = event.model
        break
      case "Masked":
        this.items = this.patched(this.items, this.slimPatch({ insert: [], shorten: event.shorten }))
        break
      case "Compressed":
        this.recordCalls(event.calls)
        this.compress(event)
        break
      case "CompressionFailed":
      case "Prepared":
        this.recordCalls(event.calls)
        break
      case "Undone":
        this.undo()
        break
      case "Redone":
        this.redo()
        break
      case "EnvironmentSent":
      case "Pinned":
      case "Labelled":
      case "FileChanged":
      // A log with branches is not surveyed.
      case "Branched":
        break
    }
    this.follow(event, bytes)
  }

  private recordCalls(calls: Extract<SessionEvent, { readonly _tag: "Compressed" }>["calls"]): void {
    for (const { model, usage } of calls ?? []) if (usage !== null) this.requests.push({ model, usage })
  }

  private slotOf(item: number): number {
    return item >= 0 ? item : (this.variants[-item - 1]?.slot ?? 0)
  }
  private shorterOf(item: number): Shorter | undefined {
    return item >= 0 ? undefined : this.variants[-item - 1]?.shorter
  }
  private has(slot: number, flag: number): boolean {
    return (this.slots.flags.at(slot) & flag) !== 0
  }
  private variant(slot: number, shorter: Shorter): number {
    this.variants.push({ slot, shorter })
    return -this.variants.length
  }
  private firstForm(slot: number): number {
    return this.bounded.get(slot) ?? slot
  }
  private itemTokens(item: number): number {
    const slot = this.slotOf(item)
    if (this.has(slot, isEnvironment)) return 0
    let tokens = this.slots.tokens.at(slot)
    const first = this.slots.parts.at(slot)
    for (const [part, shorter] of this.shorterOf(item) ?? []) tokens += shorter - this.tokensAt(slot, first, part)
    return tokens
  }
  private partsEnd(slot: number): number {
    return slot + 1 < this.slots.parts.size ? this.slots.parts.at(slot + 1) : this.parts.kind.size
  }
  private tokensAt(slot: number, first: number, part: number): number {
    return first + part < this.partsEnd(slot) ? this.parts.tokens.at(first + part) : 0
  }
  private viewTokens(items: ReadonlyArray<number>): number {
    return items.reduce((total, item) => total + this.itemTokens(item), 0)
  }
  private idOf(slot: number): EntryId {
    return entryId(this.slots.sequence.at(slot))
  }

  /** Creates the slot of an entry. */
  private keep(entry: Entry, flags: number): number {
    const slot = this.slots.sequence.size
    this.next = Math.max(this.next, sequenceOf(entry.id) + 1)
    this.slots.sequence.push(sequenceOf(entry.id))
    this.slots.parts.push(this.parts.kind.size)
    this.slots.flags.push(
      flags | (entry.author === "environment" ? isEnvironment : 0) | (entry.content.role === "model" ? isModel : 0)
    )
    this.slots.tokens.push(countedTokens(entry))
    for (const [index, part] of entry.content.parts.entries()) {
      this.parts.kind.push(kindNumber.get(partKindOf(entry, part)) ?? 0)
      this.parts.tool.push(0)
      this.parts.tokens.push(entry.tokens[index] ?? 0)
      this.parts.isAnswered.push(0)
    }
    const shorter = new Map(
      Object.entries(entry.bounded ?? {}).flatMap(([index, { tokens }]) =>
        entry.content.parts[Number(index)] === undefined || entry.handles[Number(index)] === undefined
          ? []
          : [[Number(index), tokens]]
      )
    )
    if (shorter.size > 0) this.bounded.set(slot, this.variant(slot, shorter))
    return slot
  }

  private append(entry: Entry): void {
    const slot = this.keep(entry, 0)
    const index = this.log.size
    this.log.push(slot)
    this.items.push(this.firstForm(slot))
    if (opensTurn(entry)) this.starts.push(index)
    if (entry.at !== undefined && Math.abs(entry.at) <= 8.64e15) {
      this.span = { from: Math.min(this.span.from, entry.at), to: Math.max(this.span.to, entry.at) }
    }
    this.answer(entry, slot, index)
    this.count(this.logged, entry, slot)
  }

  /** Counts an entry, and pairs its calls with their responses. */
  private count(tally: Tally, entry: Pick<Entry, "content" | "id" | "handles" | "tokens">, slot: number): void {
    const { parts, role } = entry.content
    this.open.begin(role, parts.length === 0)
    const first = this.slots.parts.at(slot)
    const isSetup = this.has(slot, isEnvironment)
    for (const [index, part] of parts.entries()) {
      const tool = this.toolOf(entry, slot, first + index, index, part)
      if (tool !== undefined) this.parts.tool.set(first + index, this.tools.of(tool) + 1)
      if (!isSetup) this.sum(tally, entry, first + index, index, part, tool)
    }
    if (isSetup) tally.environment += entry.tokens.reduce((total, tokens) => total + tokens, 0)
    else sumOf(tally.roles, role).count += 1
  }

  private sum(
    tally: Tally,
    entry: Pick<Entry, "content" | "id" | "handles">,
    at: number,
    index: number,
    part: Part,
    tool: string | undefined
  ): void {
    const kind = PartKind.literals[this.parts.kind.at(at)] ?? "other"
    const tokens = this.parts.tokens.at(at)
    sumOf(tally.roles, entry.content.role).tokens += tokens
    const sums = [sumOf(tally.kinds, kind)]
    if (tool !== undefined) sums.push(sumOf(isCall(part) ? tally.calls : tally.outputs, tool))
    for (const sum of sums) {
      sum.count += 1
      sum.tokens += tokens
    }
    const handle = entry.handles[index] ?? null
    tally.add({ entry: entry.id, part: index, kind, tool: tool ?? null, tokens, handle }, part)
  }

  private toolOf(entry: Pick<Entry, "id">, slot: number, at: number, index: number, part: Part): string | undefined {
    if (isCall(part)) {
      const { args, id, name } = part.functionCall
      const actions = isCommand(args) ? [] : actionsOf(part, answeredWell)
      const paths = [...new Set(actions.flatMap((action) => (action._tag === "Read" ? [action.path] : [])))]
      this.open.open(id, { part: at, run: this.open.run, name, paths })
      return name
    }
    if (!isResponse(part)) return undefined
    const { id, name } = part.functionResponse
    const call = this.open.answered(id, name)
    const tool = name ?? call?.name ?? "unknown"
    if (call === undefined) {
      if (!this.has(slot, isEnvironment))
        this.unpairedResponses.push({ slot, unpaired: { entry: entry.id, part: index, tool } })
      return tool
    }
    this.parts.isAnswered.set(call.part, 1)
    if (call.paths.length > 0 && !isErrorResponse(part)) {
      this.reads.push({ call: call.part, paths: call.paths, slot, tokens: this.parts.tokens.at(at) })
    }
    return tool
  }

  /** As `RecordedUse.answersIn`, without the size of the view. */
  private answer(entry: Entry, slot: number, index: number): void {
    if (entry.content.role !== "model" || entry.author !== undefined) {
      this.isAnswerOpen = false
      return
    }
    const { answers } = this
    if (!this.isAnswerOpen) {
      answers.index.push(index)
      answers.entry.push(slot)
      for (const column of [answers.model, answers.answer, answers.thoughts, answers.isCounted]) column.push(0)
      for (const column of [answers.prompt, answers.usageAnswer, answers.usageThoughts, answers.cached]) column.push(0)
      answers.cacheWrite.push(-1)
      answers.cacheWriteHour.push(-1)
      this.isAnswerOpen = true
    }
    const last = answers.index.size - 1
    if (entry.model !== undefined) answers.model.set(last, this.models.of(entry.model) + 1)
    for (const [at, part] of entry.content.parts.entries()) {
      const column = isThought(part) ? answers.thoughts : answers.answer
      column.set(last, column.at(last) + (entry.tokens[at] ?? 0))
    }
    const { usage } = entry
    if (usage === undefined || !isCounted(usage)) return
    answers.entry.set(last, slot)
    answers.isCounted.set(last, 1)
    answers.prompt.set(last, usage.prompt)
    answers.usageAnswer.set(last, usage.answer)
    answers.usageThoughts.set(last, usage.thoughts)
    answers.cached.set(last, usage.cached)
    answers.cacheWrite.set(last, usage.cacheWrite ?? -1)
    answers.cacheWriteHour.set(last, usage.cacheWriteHour ?? -1)
    this.isAnswerOpen = false
  }

  // --- compressions

  private slimPatch({ drop, insert, shorten }: Patch): SlimPatch {
    const shorter = new Map<number, Map<number, number>>()
    for (const { entry, part, tokens } of shorten) {
      const parts = shorter.get(sequenceOf(entry)) ?? new Map<number, number>()
      shorter.set(sequenceOf(entry), parts.set(part, tokens))
    }
    const slots = insert.map((entry) => {
      const slot = this.keep(entry, isInserted)
      this.insertedMessages.push({ slot, entry: withoutLongTexts(entry) })
      return slot
    })
    return {
      from: drop === undefined ? undefined : sequenceOf(drop.from),
      to: drop === undefined ? undefined : sequenceOf(drop.to),
      insert: slots,
      shorten: shorter
    }
  }

  /** Applies a patch as `Conversation` does. */
  private patched(items: ReadonlyArray<number>, { from, insert, shorten, to }: SlimPatch): Array<number> {
    const next: Array<number> = []
    let dropping = false
    let isDone = insert.length === 0
    for (const item of items) {
      const slot = this.slotOf(item)
      const sequence = this.slots.sequence.at(slot)
      const isSetup = this.has(slot, isEnvironment)
      const opens = from === undefined && !isSetup
      dropping = dropping || sequence === from
      if (!isDone && (opens || dropping)) {
        isDone = true
        for (const one of insert) next.push(this.firstForm(one))
      }
      const parts = shorten.size === 0 ? undefined : shorten.get(sequence)
      if (!dropping || isSetup) {
        next.push(parts === undefined ? item : this.variant(slot, new Map([...(this.shorterOf(item) ?? []), ...parts])))
      }
      if (sequence === to) dropping = false
    }
    if (!isDone) for (const one of insert) next.push(this.firstForm(one))
    return next
  }

  private compress(event: Extract<SessionEvent, { readonly _tag: "Compressed" }>): void {
    const patch = this.slimPatch(event.patch)
    if (event.dropped !== undefined && patch.from !== undefined) {
      const { from, to } = patch
      const at = this.items.findIndex((item) => this.slots.sequence.at(this.slotOf(item)) === from)
      const end = this.items.findIndex((item) => this.slots.sequence.at(this.slotOf(item)) === to)
      const gone = at < 0 ? [] : this.items.slice(at, end < 0 ? undefined : end + 1)
      const slots = gone.map((item) => this.slotOf(item)).filter((slot) => !this.has(slot, isEnvironment))
      const [first] = slots
      const last = slots.at(-1)
      if (first !== undefined && last !== undefined) {
        const ids = { from: this.idOf(first), to: this.idOf(last) }
        this.dropped.push({ handle: event.dropped, messages: slots.length, ...ids })
      }
    }
    this.lay(patch, { strategy: event.strategy, trigger: event.trigger })
    this.undone = []
  }

  private lay(patch: SlimPatch, decided: Layer["decided"]): void {
    this.layers.push({ patch, before: this.items, entries: this.log.size, decided })
    this.items = this.patched(this.items, patch)
  }

  private undo(): void {
    const last = this.layers.pop()
    if (last === undefined) return
    const items = [...last.before]
    for (let index = last.entries; index < this.log.size; index += 1) items.push(this.firstForm(this.log.at(index)))
    this.items = items
    this.undone.push(last)
  }

  private redo(): void {
    const last = this.undone.pop()
    if (last !== undefined) this.lay(last.patch, last.decided)
  }

  // --- what can be planned

  /** Holds the content of the view while it is small enough. */
  private follow(event: SessionEvent, bytes: number): void {
    const { tail } = this
    if (tail === undefined) return
    const isStep =
      (event._tag === "Undone" && !canUndo(tail.conversation)) ||
      (event._tag === "Redone" && !canRedo(tail.conversation))
    // This undo or redo needs content that is no longer held.
    if (isStep && this.tailStart > 0) {
      this.tail = undefined
      return
    }
    const after = applyEvent(tail, event)
    this.tail = after
    this.tailBytes += bytes + heldMessage
    if (replacesView(event) && this.tailBytes > heldBytes / 2) {
      const items = view(after.conversation)
      const inserted = new Set(this.insertedMessages.map(({ entry }) => entry.id))
      this.tail = {
        ...after,
        conversation: shown(items, ({ id }) => inserted.has(id), after.conversation),
        ranges: undefined
      }
      this.tailStart = this.log.size
      this.tailBytes = items.reduce((total, { entry }) => total + 4 * countedTokens(entry) + heldMessage, 0)
    }
    if (this.tailBytes > heldBytes) this.tail = undefined
  }

  /** The number of log entries at each compression in force, oldest first. */
  get cuts(): ReadonlyArray<number> {
    return this.layers.map(({ entries }) => entries)
  }

  /** The session with only the content of its view; undefined when that was too large to hold. */
  get shown(): Session | undefined {
    return this.tail
  }

  /** Returns the position of each entry that is in the view. Used to check an event before it is added. */
  places(ids: ReadonlyArray<EntryId>): ReadonlyMap<EntryId, number> {
    const idBySequence = new Map(ids.map((id) => [sequenceOf(id), id]))
    const found = new Map<EntryId, number>()
    for (const [index, item] of this.items.entries()) {
      const id = idBySequence.get(this.slots.sequence.at(this.slotOf(item)))
      if (id !== undefined) found.set(id, index)
    }
    return found
  }

  // --- the result

  /** Returns the tokens of the view after each message, and the compressions in force. */
  private *viewSizes(): SlicedWork<{ readonly sizes: Float64Array; readonly laid: ReadonlyArray<Sizes> }> {
    const counts = new Float64Array(this.log.size)
    for (let index = 0; index < this.log.size; index += 1) {
      counts[index] = this.slots.tokens.at(this.log.at(index))
      if (index % stride === 0) yield stride * 10
    }
    const before = this.layers.map((layer) => this.viewTokens(layer.before))
    const now = this.viewTokens(this.items)
    const laid = this.layers.map((layer, index): Sizes => {
      const next = this.layers[index + 1]
      let appended = 0
      for (let at = layer.entries; at < (next?.entries ?? this.log.size); at += 1) appended += counts[at] ?? 0
      const later = next === undefined ? now : (before[index + 1] ?? 0)
      return { entries: layer.entries, before: before[index] ?? 0, after: later - appended }
    })
    const sizes = new Float64Array(this.log.size)
    let size = 0
    let at = 0
    for (let index = 0; index < sizes.length; index += 1) {
      for (let next = laid[at]; next !== undefined && next.entries <= index; next = laid[at]) {
        size = next.after
        at += 1
      }
      size += counts[index] ?? 0
      sizes[index] = size
      if (index % stride === 0) yield stride * 10
    }
    return { sizes, laid }
  }

  private *answered(sizes: Float64Array): Generator<RecordedAnswer> {
    const { answers } = this
    for (let at = 0; at < answers.index.size; at += 1) {
      const index = answers.index.at(at)
      const model = answers.model.at(at)
      const cacheWrite = answers.cacheWrite.at(at)
      const cacheWriteHour = answers.cacheWriteHour.at(at)
      const usage: Usage | undefined =
        answers.isCounted.at(at) === 0
          ? undefined
          : {
              prompt: answers.prompt.at(at),
              answer: answers.usageAnswer.at(at),
              thoughts: answers.usageThoughts.at(at),
              cached: answers.cached.at(at),
              ...(cacheWrite < 0 ? {} : { cacheWrite }),
              ...(cacheWriteHour < 0 ? {} : { cacheWriteHour })
            }
      yield {
        entry: this.idOf(answers.entry.at(at)),
        model: model === 0 ? undefined : this.models.list[model - 1],
        viewTokens: (sizes[index] ?? 0) - this.slots.tokens.at(this.log.at(index)),
        answer: answers.answer.at(at),
        thoughts: answers.thoughts.at(at),
        usage
      }
    }
  }

  /** Adds the content of the view to the sums. */
  private *seen(): SlicedWork<void> {
    for (const [index, item] of this.items.entries()) {
      if (index % stride === 0) yield stride * 50
      const slot = this.slotOf(item)
      if (this.has(slot, isEnvironment)) continue
      const tally = this.has(slot, isInserted) ? this.inserted : this.logged
      const role = sumOf(tally.roles, this.has(slot, isModel) ? "model" : "user")
      const shorter = this.shorterOf(item)
      const first = this.slots.parts.at(slot)
      for (let at = first; at < this.partsEnd(slot); at += 1) {
        const tokens = shorter?.get(at - first) ?? this.parts.tokens.at(at)
        const kind = PartKind.literals[this.parts.kind.at(at)] ?? "other"
        role.view += tokens
        sumOf(tally.kinds, kind).view += tokens
        const tool = this.tools.list[this.parts.tool.at(at) - 1]
        if (tool !== undefined) sumOf(kind === "call" ? tally.calls : tally.outputs, tool).view += tokens
      }
    }
  }

  /** Returns calls without a response: those of the log, then the inserted ones. */
  private *unanswered(): SlicedWork<ReadonlyArray<Unpaired>> {
    const unanswered: ReadonlyArray<Array<Unpaired>> = [[], []]
    const call = kindNumber.get("call") ?? 0
    for (let slot = 0; slot < this.slots.sequence.size; slot += 1) {
      if (slot % stride === 0) yield stride * 20
      if (this.has(slot, isEnvironment)) continue
      const first = this.slots.parts.at(slot)
      for (let at = first; at < this.partsEnd(slot); at += 1) {
        if (this.parts.kind.at(at) !== call || this.parts.isAnswered.at(at) === 1) continue
        const tool = this.tools.list[this.parts.tool.at(at) - 1] ?? "unknown"
        unanswered[this.has(slot, isInserted) ? 1 : 0]?.push({ entry: this.idOf(slot), part: at - first, tool })
      }
    }
    return unanswered.flat()
  }

  private compaction({ before, decided, entries, patch }: Layer, sizes: Sizes): Compaction {
    const shares = { dropped: { messages: 0, tokens: 0 }, kept: { messages: 0, tokens: 0 } }
    const shortened = { parts: 0, saved: 0 }
    let dropping = false
    for (const item of before) {
      const slot = this.slotOf(item)
      const sequence = this.slots.sequence.at(slot)
      dropping = dropping || sequence === patch.from
      if (!this.has(slot, isEnvironment)) {
        const share = dropping ? shares.dropped : shares.kept
        share.messages += 1
        share.tokens += this.itemTokens(item)
        const first = this.slots.parts.at(slot)
        for (const [part, tokens] of dropping ? [] : (patch.shorten.get(sequence) ?? [])) {
          shortened.parts += 1
          shortened.saved += (this.shorterOf(item)?.get(part) ?? this.tokensAt(slot, first, part)) - tokens
        }
      }
      if (sequence === patch.to) dropping = false
    }
    const inserted = patch.insert.filter((slot) => !this.has(slot, isEnvironment))
    return {
      after: entries === 0 ? null : this.idOf(this.log.at(entries - 1)),
      tokens: { before: sizes.before, after: sizes.after },
      ...decided,
      ...shares,
      inserted: {
        messages: inserted.length,
        tokens: inserted.reduce((total, slot) => total + this.slots.tokens.at(slot), 0)
      },
      shortened,
      facts: null
    }
  }

  private readAgain(cwd: string | undefined): Inspection["reads"] {
    const relative = relativePathsTo(cwd)
    const reads = new RepeatedReads<number>()
    const insertedLast = (call: number) => (this.insertedParts.has(call) ? 1 : 0)
    for (const { paths, slot, tokens } of this.reads.sort(
      (a, b) => insertedLast(a.call) - insertedLast(b.call) || a.call - b.call
    )) {
      const own = new Set(paths.map(relative))
      reads.add(own, tokens, slot)
    }
    return reads.repeated((slot) => this.idOf(slot))
  }

  /** Returns the result after all events were added, and the tokens of the view after each message. */
  *finish(
    about: Omit<InspectionContext, "events"> = {}
  ): SlicedWork<{ readonly inspection: Inspection; readonly sizes: Float64Array }> {
    for (const { entry, slot } of this.insertedMessages.splice(0)) {
      entry.content.parts.forEach((_, index) => this.insertedParts.add(this.slots.parts.at(slot) + index))
      this.count(this.inserted, entry, slot)
    }
    const { laid, sizes } = yield* this.viewSizes()
    yield* this.seen()
    const { all, environment, ...sums } = tallied([this.logged, this.inserted])
    const usage = usageOf(this.answered(sizes))
    yield this.answers.index.size * 50
    const isEstimated = usage === null && this.answers.index.size > 0
    const growth: Array<Inspection["growth"][number]> = []
    for (let turn = 0; turn < this.starts.size; turn += 1) {
      const last = (turn + 1 < this.starts.size ? this.starts.at(turn + 1) : this.log.size) - 1
      growth.push({ turn: turn + 1, entry: this.idOf(this.log.at(last)), tokens: sizes[last] ?? 0 })
      if (turn % stride === 0) yield stride * 50
    }
    const insertedLast = ({ slot }: { readonly slot: number }) => (this.has(slot, isInserted) ? 1 : 0)
    return {
      sizes,
      inspection: {
        messages: this.log.size,
        turns: this.starts.size,
        tokens: { all, view: this.viewTokens(this.items), environment },
        ...sums,
        growth,
        compactions: this.layers.flatMap((layer, index) => {
          const own = laid[index]
          return own === undefined ? [] : [this.compaction(layer, own)]
        }),
        reads: this.readAgain(about.cwd),
        usage,
        cost: recordedCost(this.answered(sizes), isEstimated, this.requests, about),
        compressing: recordedCost([], false, this.requests, about),
        broken: {
          calls: yield* this.unanswered(),
          responses: this.unpairedResponses
            .sort((a, b) => insertedLast(a) - insertedLast(b))
            .map(({ unpaired }) => unpaired)
        }
      }
    }
  }
}

interface Sizes {
  readonly entries: number
  readonly before: number
  readonly after: number
}

/** Number of entries between two pauses. */
const stride = 1_000

/** Stands for any response that is not an error: the files that a call reads depend on nothing else. */
const answeredWell: Part = { functionResponse: { response: { output: "" } } }

/** Returns the part of an inserted message that is counted later. Only a beginning of its texts is kept, for previews. */
const withoutLongTexts = ({ content, handles, id, tokens }: Entry) => ({
  id,
  handles,
  tokens,
  content: {
    role: content.role,
    parts: content.parts.map((part) =>
      part.text !== undefined && part.text.length > 1_000 ? { ...part, text: part.text.slice(0, 1_000) } : part
    )
  }
})

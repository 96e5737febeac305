import { Effect, FileSystem, Layer, Option, Path, Ref, Result, Schema, type Stdio } from "effect"
import { Command, Flag } from "effect/cli"
import { fromJson } from "../../domain/JsonText.ts"
import { encode } from "../../domain/Bytes.ts"
import {
  AuditResult,
  type Decision,
  Degraded,
  defaultPolicy,
  Outcome,
  Plan,
  type Policy,
  statusOf,
  strategyDefaults,
  StrategyName,
  tokensOf
} from "../../domain/Compression.ts"
import { type Conversation, EntryId, view, viewTokens } from "../../domain/Conversation.ts"
import { freshMemory } from "../../domain/FailureMemory.ts"
import { Handle } from "../../domain/Handle.ts"
import { printable } from "../../domain/Inspection.ts"
import { payload } from "../../domain/Content.ts"
import { project, sentJson } from "../../domain/Projection.ts"
import { type Session, type SessionEvent, spillBytes } from "../../domain/Session.ts"
import { TokenCount } from "../../domain/Tokens.ts"
import { formatFor, type WrittenFormat } from "../../domain/transcripts/FileEnding.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import { Chat } from "../../services/Chat.ts"
import { ChatDefaults } from "../../services/ChatSettings.ts"
import type { Environment } from "../../services/Environment.ts"
import * as Export from "../../services/Export.ts"
import * as ModelWindows from "../../services/ModelWindows.ts"
import { SessionFiles } from "../../services/SessionFiles.ts"
import type { Loaded } from "../../services/Transcripts.ts"
import { blobFolderOf, TempStore } from "../../services/TempStore.ts"
import { Trust } from "../../services/Trust.ts"
import { badInput, type ExitError, ExitError as Exit, failed } from "../ExitError.ts"
import * as FileWindow from "../FileWindow.ts"
import * as Input from "../Input.ts"
import { hasKey } from "../Key.ts"
import { failureLine, noopText, secretsText } from "../OutcomeText.ts"
import * as OpenChat from "../OpenChat.ts"
import * as Output from "../Output.ts"
import * as Watching from "../Watching.ts"
import type { Ground } from "../Worker.ts"

/** A plan in a file: with what it was made for, so that it is refused when the conversation has changed since. */
const PlanFile = Schema.Struct({ fingerprint: Schema.String, plan: Plan })

/** One part that left the window, or stands in it shortened. */
const Elided = Schema.Struct({
  entry: EntryId,
  part: Schema.Natural,
  handle: Handle,
  /** The blob that holds it, where it has one of its own. */
  file: Schema.NullOr(Schema.String),
  tokensBefore: Schema.Natural,
  tokensAfter: Schema.Natural
})
type Elided = typeof Elided.Type

/** What `--json` prints, but for the history, which is added as the exact text it is. */
const Report = Schema.Struct({
  status: Schema.String,
  outcome: Schema.Record(Schema.String, Schema.Unknown),
  tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural, limit: Schema.Natural }),
  split: Schema.Natural,
  kept: Schema.Natural,
  keptEntries: Schema.Array(EntryId),
  degraded: Schema.NullOr(Degraded),
  elided: Schema.Array(Elided),
  snapshot: Schema.NullOr(Schema.String),
  audit: Schema.NullOr(AuditResult)
})
type Report = typeof Report.Type

const flags = {
  ...Input.conversation,
  strategy: Flag.Literals("strategy", StrategyName.literals).pipe(
    Flag.withDescription("Who decides what stays"),
    Flag.withDefault("palimpsest")
  ),
  summarizer: Input.optional(Flag.Literals("summarizer", ["extractive", "model"])).pipe(
    Flag.withDescription("Who writes the snapshot: code, or a model")
  ),
  model: Input.optional(Flag.String("model")).pipe(Flag.withDescription("The summarizing model")),
  limit: Input.optional(Input.size("limit")).pipe(
    Flag.withDescription("The model's window, in tokens (default: by the name of the model that goes on with it)")
  ),
  threshold: Input.share("threshold").pipe(
    Flag.withDescription("Share of the window from which on a conversation is compressed"),
    Flag.withDefault(defaultPolicy.threshold)
  ),
  force: Flag.Boolean("force").pipe(
    Flag.withDescription("Compress whatever the threshold and earlier failures say"),
    Flag.withDefault(false)
  ),
  failed: Flag.Boolean("failed").pipe(
    Flag.withDescription(
      "Start as if a summary had failed before, so that no model is asked: strategy gemini only shortens tool outputs, palimpsest has code write the snapshot"
    ),
    Flag.withDefault(false)
  ),
  tokens: Input.optional(Input.size("tokens")).pipe(
    Flag.withDescription("Take this as the request's tokens before, in place of counting")
  ),
  preserve: Input.share("preserve").pipe(
    Flag.withDescription("Share of the conversation's end that is kept"),
    Flag.withDefault(defaultPolicy.preserve)
  ),
  minGain: Input.optional(Input.share("min-gain")).pipe(
    Flag.withDescription("Least share of the request that has to be saved (default 0.1; strategy gemini 0)")
  ),
  toolBudget: Input.size("tool-budget").pipe(
    Flag.withDescription("Tokens of tool output kept in full, newest first"),
    Flag.withDefault(Number(defaultPolicy.toolBudget))
  ),
  budget: Input.optional(Input.size("budget")).pipe(Flag.withDescription("Upper bound for the snapshot, in tokens")),
  focus: Input.optional(Flag.String("focus")).pipe(Flag.withDescription("What you want kept")),
  plan: Flag.Boolean("plan").pipe(
    Flag.withDescription("Say what would be done and change nothing; --out writes the plan"),
    Flag.withDefault(false)
  ),
  apply: Input.optional(Flag.String("apply")).pipe(
    Flag.withMetavar("plan"),
    Flag.withDescription("Carry out a plan that --plan --out wrote")
  ),
  out: Input.optional(Flag.String("out")).pipe(
    Flag.withMetavar("file"),
    Flag.withDescription("Write the compressed conversation here")
  ),
  to: Input.optional(Flag.Literals("to", FormatName.literals)).pipe(
    Flag.withDescription(
      "The format of --out (default: contents for .json, else palimpsest; of --in-place: the one it was read in)"
    )
  ),
  inPlace: Flag.Boolean("in-place").pipe(
    Flag.withDescription("Write the compressed conversation over the file it was read from"),
    Flag.withDefault(false)
  ),
  json: Input.json
}
type Flags = Command.Command.Config.Infer<typeof flags>

/** A model writes the snapshot when somebody asks for it, or when there is a key and nobody says otherwise. */
const summarizerOf = (input: Flags) =>
  Effect.map(hasKey, (isThere) => input.summarizer ?? (isThere ? "model" : "extractive"))

const policyOf = (
  input: Flags,
  loaded: Loaded,
  limit: number,
  summarizer: Policy["summarizer"],
  strategy: StrategyName,
  redactSecrets: boolean
): Policy => {
  const counted = viewTokens(loaded.session.conversation)
  const defaults = strategyDefaults[strategy]
  return {
    ...defaultPolicy,
    ...defaults,
    summarizer,
    // Who asks for a model wants to hear that it failed.
    ladder: input.summarizer !== "model",
    redactSecrets,
    limit: TokenCount.make(limit),
    threshold: input.threshold,
    preserve: input.preserve,
    minGain: input.minGain ?? defaults.minGain,
    toolBudget: TokenCount.make(input.toolBudget),
    overhead: TokenCount.make(Math.max(0, (input.tokens ?? counted) - counted)),
    ...(input.tokens === undefined ? {} : { promptTokens: TokenCount.make(input.tokens) }),
    ...(input.model === undefined ? {} : { model: input.model }),
    ...(input.budget === undefined ? {} : { snapshotBudget: TokenCount.make(input.budget) }),
    ...(input.focus === undefined ? {} : { focus: input.focus })
  }
}

/** The format that the name of `--out` asks for. */
const outFormat = (out: string): WrittenFormat =>
  Result.getOrElse(formatFor(out, undefined), (): WrittenFormat => "palimpsest")

/** Refuses flags that exclude each other before anything is read. */
const checked = Effect.fnUntraced(function* (
  input: Flags
): Effect.fn.Return<void, ExitError, FileSystem.FileSystem | Path.Path> {
  if (input.limit === 0) return yield* badInput("--limit 0 leaves no room for anything; give the window in tokens")
  if (input.inPlace && input.out !== undefined) return yield* badInput("--in-place and --out exclude each other")
  if (input.inPlace && input.file === "-")
    return yield* badInput("--in-place needs a file; standard input cannot be written to")
  const fs = yield* FileSystem.FileSystem
  if (input.out !== undefined && input.to === undefined && !input.plan && outFormat(input.out) === "markdown") {
    return yield* badInput(
      `--out ${input.out}: Markdown is for reading and cannot be read back; end the name in .json or .jsonl, or say --to FORMAT`
    )
  }
  if (input.out === undefined) return
  // Before a model is paid for what could not be written.
  yield* Effect.mapError(Export.checkPlace(input.out), (error) => badInput(error.message))
  if (input.file === "-") return
  const [read, written] = yield* Effect.forEach([input.file, input.out], (path) => Effect.option(fs.realPath(path)))
  if (read?._tag === "Some" && written?._tag === "Some" && read.value === written.value) {
    return yield* badInput(`--out names the file that is read; say --in-place to write over ${input.out}`)
  }
})

/** Names a state of the view: ids and handles of all that stands in it. */
const fingerprint = (conversation: Conversation): Effect.Effect<string, never, TempStore> =>
  TempStore.use((store) =>
    store.hash(
      encode(
        view(conversation)
          .map(({ entry, shortened }) => `${entry.id} ${entry.handles.join(" ")} ${shortened.size}`)
          .join("\n")
      )
    )
  )

const planJson = fromJson(PlanFile)
const isStrategyName = Schema.is(StrategyName)
const planStrategy = Schema.decodeUnknownOption(
  fromJson(Schema.Struct({ plan: Schema.Struct({ strategy: Schema.String }) }))
)

const readPlan = Effect.fnUntraced(function* (
  path: string,
  conversation: Conversation
): Effect.fn.Return<Plan, ExitError, FileSystem.FileSystem | TempStore> {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs
    .readFileString(path)
    .pipe(Effect.mapError(() => badInput(`${path} cannot be read; expected a plan that --plan --out wrote`)))
  const named = Option.getOrUndefined(planStrategy(text))?.plan.strategy ?? defaultPolicy.strategy
  if (!isStrategyName(named)) {
    return yield* badInput(
      `${path} was made with the strategy ${named}; expected ${StrategyName.literals.join(" or ")}`
    )
  }
  const file = yield* Schema.decodeEffect(planJson)(text).pipe(
    Effect.mapError(() => badInput(`${path} is no plan; expected what --plan --out wrote`))
  )
  if (file.fingerprint !== (yield* fingerprint(conversation))) {
    return yield* badInput(`the conversation has changed since ${path} was made; make a new plan with --plan`)
  }
  return file.plan
})

const elidedParts = (
  session: Session,
  outcome: Outcome,
  out: string | undefined,
  hashes: ReadonlyMap<string, string>
): Array<Elided> => {
  if (outcome._tag !== "Compressed" && outcome._tag !== "ContentTruncated") return []
  const items = view(session.conversation)
  const { drop, shorten } = outcome.patch
  const from = items.findIndex((item) => item.entry.id === drop?.from)
  const to = items.findIndex((item) => item.entry.id === drop?.to)
  const elided: Array<Elided> = []
  const add = (index: number, part: number, tokensAfter: number) => {
    const item = items[index]
    const handle = item?.entry.handles[part]
    if (item === undefined || handle === undefined) return
    const hash = hashes.get(handle)
    elided.push({
      entry: item.entry.id,
      part,
      handle,
      file: out === undefined || hash === undefined ? null : `${blobFolderOf(out)}/${hash}`,
      tokensBefore: item.shortened.get(part)?.tokens ?? item.entry.tokens[part] ?? 0,
      tokensAfter
    })
  }
  if (drop !== undefined) {
    for (let index = from; index <= to; index += 1) {
      const item = items[index]
      if (item?.entry.author === "environment") continue
      item?.entry.content.parts.forEach((_, part) => add(index, part, 0))
    }
  }
  const places = new Map(items.map((item, index) => [item.entry.id, index]))
  for (const one of shorten) add(places.get(one.entry) ?? -1, one.part, one.tokens)
  return elided
}

/** The blob names of the elided parts that are large enough to have one. */
const blobNames = Effect.fnUntraced(function* (
  session: Session,
  outcome: Outcome
): Effect.fn.Return<ReadonlyMap<string, string>, never, TempStore> {
  const store = yield* TempStore
  const names = new Map<string, string>()
  const items = new Map(view(session.conversation).map(({ entry }) => [entry.id, entry]))
  for (const { entry, handle, part } of elidedParts(session, outcome, undefined, names)) {
    const whole = items.get(entry)
    const value = whole?.content.parts[part]
    if (value === undefined) continue
    const bytes = encode(payload(value, whole?.source?.[String(part)]).text)
    if (bytes.length >= spillBytes) names.set(handle, yield* store.hash(bytes))
  }
  return names
})

const layoutOf = (session: Session, outcome: Outcome): Pick<Report, "split" | "kept" | "keptEntries"> => {
  const all = view(session.conversation).filter(({ entry }) => entry.author !== "environment")
  const layout = outcome._tag === "Compressed" ? outcome.plan.steps.find((step) => step._tag === "Layout") : undefined
  return layout === undefined
    ? { split: 0, kept: all.length, keptEntries: all.map(({ entry }) => entry.id) }
    : { split: layout.split, kept: layout.kept.length, keptEntries: layout.kept }
}

const encodeOutcome = Schema.encodeSync(Outcome)

/** The outcome without what the report has elsewhere. */
const outcomeJson = (outcome: Outcome): Record<string, unknown> => {
  const { patch: _patch, snapshot: _snapshot, ...rest }: Record<string, unknown> = { ...encodeOutcome(outcome) }
  return rest
}

const historyOf = (conversation: Conversation): string => {
  const environment = new Set(
    view(conversation).flatMap(({ entry }) => (entry.author === "environment" ? [entry.id] : []))
  )
  return sentJson(project(conversation).filter(({ entry }) => !environment.has(entry)))
}

/** Where what left the window can be read: all of it in what was written, else part by part in what was read. */
const recallHint = (report: Report, dropped: Handle | undefined, written: string | undefined, file: string): string => {
  const largest = [...report.elided].sort((a, b) => b.tokensBefore - a.tokensBefore)[0]?.handle ?? ""
  return written === undefined || dropped === undefined
    ? `palimpsest recall ${printable(file)} ${largest}   (the largest part; --json lists all)`
    : `palimpsest recall ${printable(written)} ${dropped}   (all that left the window)`
}

const describe = (report: Report, outcome: Outcome, hint: string, style: Output.Style): string => {
  const { after, before, limit } = report.tokens
  const saved = before === 0 ? "" : `, ${Output.share(before - after, before)} saved`
  const lines = [
    `${style.bold(report.status)}  ${Output.number(before)} → ${Output.number(after)} tokens${after < before ? saved : ""} (window ${Output.number(limit)})`
  ]
  if (outcome._tag === "Noop") lines.push(`  ${noopText[outcome.reason]}`)
  if (outcome._tag === "Compressed") {
    const step = outcome.plan.steps.find((candidate) => candidate._tag === "Summarize")
    const shown = report.elided.filter(({ tokensAfter }) => tokensAfter > 0).length
    const rows = [
      [
        "summarised",
        `${step?.from ?? ""} to ${step?.to ?? ""}, by ${outcome.by === "ladder" ? `${outcome.by} (stronger than asked)` : outcome.by === "extractive" ? "code" : outcome.by === "hook" ? "a hook" : "a model"}`
      ],
      [
        "kept",
        report.kept === 0 ? "no message in full" : `${report.kept} messages, from ${report.keptEntries[0] ?? ""} on`
      ],
      ...(shown > 0 ? [["shortened", `${shown} tool ${shown === 1 ? "output" : "outputs"}`]] : []),
      [
        "facts",
        `of the ${Output.number(outcome.audit.anchors)} names, paths and numbers that weigh most: ${outcome.audit.inSnapshot} in the snapshot, ${outcome.audit.inTail} in what is kept, the rest by recall`
      ],
      ...(secretsText(outcome) === "" ? [] : [["secrets", secretsText(outcome)]]),
      ["recall", hint]
    ]
    lines.push(...Output.table(rows.map((row) => ["", ...row])).split("\n"), "", outcome.snapshot)
  }
  if (outcome._tag === "ContentTruncated")
    lines.push(`  shortened ${report.elided.length} tool outputs; that was enough`)
  if (report.degraded !== null) lines.push(style.warn(`  note: ${report.degraded.message}`))
  return lines.join("\n")
}

const describePlan = (plan: Plan): string =>
  [
    `PLAN  ${Output.number(plan.before)} → about ${Output.number(plan.after)} tokens (strategy ${plan.strategy})`,
    ...Output.table(
      plan.steps.map((step) => {
        switch (step._tag) {
          case "Shorten":
            return [
              "",
              "shorten",
              `${step.entry} part ${step.part}`,
              `${Output.number(step.tokensBefore)} → ${Output.number(step.tokensAfter)} tokens, ${step.form}`
            ]
          case "Summarize":
            return [
              "",
              "summarise",
              `${step.from} to ${step.to}`,
              `at most ${Output.number(step.budget)} tokens, ${step.prompt}`
            ]
          case "Pin":
            return ["", "pin", step.entry, `${step.why}, characters ${step.start} to ${step.end}`]
          case "Layout":
            return [
              "",
              "keep",
              step.kept.length === 0 ? "nothing" : `${step.kept[0]} to ${step.kept[step.kept.length - 1]}`,
              `${step.kept.length} messages`
            ]
        }
      })
    ).split("\n")
  ].join("\n")

/** A log that keeps what is appended, to be written out at the end or not at all. */
const recording = (events: Ref.Ref<ReadonlyArray<SessionEvent>>, id: string) => ({
  id,
  append: (event: SessionEvent) => Ref.update(events, (before) => [...before, event])
})

const printPlan = Effect.fnUntraced(function* (input: Flags, conversation: Conversation, decision: Decision) {
  if (decision._tag === "Skip") {
    const { before, reason } = decision
    return yield* input.json
      ? Output.text(JSON.stringify({ plan: null, reason, before }))
      : Output.text(`NOOP  ${Output.number(before)} tokens: ${noopText[reason]}`)
  }
  const file = { fingerprint: yield* fingerprint(conversation), plan: decision.plan }
  const text = yield* Effect.orDie(Schema.encodeEffect(planJson)(file))
  if (input.out !== undefined)
    yield* Export.writeText(input.out, `${text}\n`).pipe(Effect.mapError((error) => failed(error.message)))
  yield* input.json ? Output.text(text) : Output.text(describePlan(decision.plan))
})

/** Says what was counted by kind, if anything was. */
const listNotice = (what: string, counts: Readonly<Record<string, number>>, comfort: string) => {
  const kinds = Object.entries(counts).map(([kind, count]) => `${printable(kind)} (${Output.number(count)})`)
  return kinds.length === 0 ? Effect.void : Output.notice(`${what}: ${kinds.join(", ")}; ${comfort}`)
}

/**
 * Adds the hooks of the settings, as a chat does. They run in the folder where the program runs, whatever folder the transcript
 * names: that one may be anybody's. What they stand on is loaded only where there are some.
 */
const addHooks = Effect.fnUntraced(function* <E, R>(
  file: string,
  hooking: Layer.Layer<Environment | Ground, E, R>,
  tell: (line: string) => Effect.Effect<void>
) {
  const found = yield* OpenChat.readSettings
  if (!Watching.hasHooks(found)) return
  const { of } = yield* Trust
  const path = yield* Path.Path
  const isTrusted = Effect.match(of(path.resolve(".")), {
    onFailure: () => false,
    onSuccess: (standing) => standing === "trusted"
  })
  yield* Watching.addHooks(found, tell, isTrusted).pipe(
    Effect.provideService(SessionFiles, {
      folder: path.resolve("."),
      of: () => (file === "-" ? "" : path.resolve(file))
    }),
    Effect.provideContext(yield* Layer.build(hooking))
  )
})

/** `palimpsest compress <file>`. `hooking`: what commands of hooks stand on. */
export const compress = <E, R>(hooking: Layer.Layer<Environment | Ground, E, R>) =>
  Command.make(
    "compress",
    flags,
    Effect.fn("cli.compress")(function* (input) {
      yield* checked(input)
      const stdio = yield* Effect.context<Stdio.Stdio>()
      const tell = (line: string) => Effect.provideContext(Output.notice(line), stdio)
      yield* addHooks(input.file, hooking, tell)
      const loaded = yield* Input.load(input)
      const { session } = loaded
      const settings = yield* FileWindow.settings
      const { models = {}, redactSecrets = true } = settings
      const summarizer = yield* summarizerOf(input)
      // The provider is asked only where it is about to be asked for a snapshot anyway.
      const asks = summarizer === "model" && !input.plan
      if (asks && input.model !== undefined) yield* OpenChat.checkModel({ model: input.model, models }, true)
      const limit =
        input.limit ?? (yield* FileWindow.of(loaded, settings, { asks, hint: "; --limit N says it for once" }))
      const policy = policyOf(input, loaded, limit, summarizer, input.strategy, redactSecrets)
      const options = { policy, forced: input.force, tell }
      const before = { ...session, memory: input.failed ? { failed: true, waitUntil: 0 } : freshMemory }
      const events = yield* Ref.make(loaded.events)
      const path = yield* Path.Path
      const chat = yield* Chat.keep({
        session: before,
        log: recording(events, session.started?.session ?? ""),
        settings: { ...(yield* ChatDefaults), cwd: path.resolve(".") }
      })
      if (input.plan) return yield* printPlan(input, session.conversation, yield* chat.plan(options))
      const plan = input.apply === undefined ? undefined : yield* readPlan(input.apply, session.conversation)
      const outcome = yield* chat.compress({ ...options, plan }).pipe(
        Effect.provideService(ModelWindows.Own, models),
        Output.progress("compressing"),
        Effect.mapError((error) => (error._tag === "PlanRefused" ? badInput(error.message) : failed(error.message)))
      )
      const out = input.inPlace ? input.file : input.out
      if (out !== undefined) {
        const byName = outFormat(out)
        const format = input.to ?? (input.inPlace ? loaded.format : byName === "markdown" ? "palimpsest" : byName)
        const unheld = yield* Export.write(out, format, yield* Ref.get(events)).pipe(
          Output.progress(`writing ${out}`),
          Effect.mapError((error) => failed(error.message))
        )
        yield* listNotice(`the format ${format} has no place for`, unheld, "the log beside the file keeps it")
        if (input.inPlace) yield* listNotice("left out", loaded.skipped, "they were no part of the conversation")
      }
      const after = yield* chat.session
      const hashes = out === undefined ? new Map<string, string>() : yield* blobNames(session, outcome)
      const report: Report = {
        status: statusOf(outcome),
        outcome: outcomeJson(outcome),
        tokens: { ...tokensOf(outcome), limit: policy.limit },
        ...layoutOf(session, outcome),
        degraded: outcome._tag === "Compressed" || outcome._tag === "ContentTruncated" ? outcome.degraded : null,
        elided: elidedParts(session, outcome, out, hashes),
        snapshot: outcome._tag === "Compressed" ? outcome.snapshot : null,
        audit: outcome._tag === "Compressed" ? outcome.audit : null
      }
      if (input.json) {
        const text = yield* Effect.orDie(Schema.encodeEffect(fromJson(Report))(report))
        yield* Output.text(`${text.slice(0, -1)},"history":${historyOf(after.conversation)}}`)
      } else {
        yield* Output.text(
          describe(
            report,
            outcome,
            recallHint(report, after.ranges?.value.handle, out, input.file),
            yield* Output.style
          )
        )
      }
      const problem = failureLine(outcome)
      if (problem !== undefined)
        return yield* new Exit({ message: problem, status: outcome._tag === "Cancelled" ? 130 : 1 })
    }, Effect.scoped)
  ).pipe(
    Command.withDescription("Compress a conversation once; everything that leaves it stays recallable"),
    Command.withExamples([
      {
        command: "palimpsest compress talk.jsonl --force --limit 64k",
        description: "See what a window of 64,000 tokens would keep"
      },
      {
        command: "palimpsest compress talk.jsonl --force --out small.jsonl",
        description: "Write the compressed conversation"
      }
    ])
  )

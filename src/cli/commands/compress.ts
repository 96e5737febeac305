/**
 * The `compress` command: reads a conversation, compresses it, and prints or writes the result. One file: the flags, the plan
 * file, the JSON report and the text report describe the same outcome.
 */

import { Effect, FileSystem, Layer, Option, Path, Ref, Result, Schema, type Stdio } from "effect"
import { Command, Flag } from "effect/cli"
import { Stubborn } from "../../domain/chat/ChatEvent.ts"
import {
  AuditResult,
  Cancelled,
  type Compressed,
  type Decision,
  Degraded,
  Outcome,
  patchOf,
  Plan,
  rangeText,
  statusOf,
  tokensOf
} from "../../domain/compression/Compression.ts"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import {
  defaultStrategy,
  defaultThreshold,
  strategyDefaults,
  StrategyName
} from "../../domain/compression/strategies/Strategies.ts"
import { thresholdOf } from "../../domain/compression/strategies/Threshold.ts"
import { unshrinkable } from "../../domain/compression/Unshrinkable.ts"
import { payload } from "../../domain/content/Content.ts"
import { Handle } from "../../domain/content/Handle.ts"
import { type Conversation, type Entry, EntryId, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { indexedView } from "../../domain/conversation/IndexedView.ts"
import { projectMessages, sentJson } from "../../domain/conversation/Projection.ts"
import { minSpillBytes, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import type { SettingsFile } from "../../domain/settings/Settings.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { formatFor, type WrittenFormat } from "../../domain/transcripts/FileExtension.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import { Chat } from "../../services/chat/Chat.ts"
import * as ModelWindows from "../../services/model/ModelWindows.ts"
import type { Environment } from "../../services/platform/Environment.ts"
import * as AgentNesting from "../../services/runtime/AgentNesting.ts"
import { isTrusted } from "../../services/runtime/FolderTrust.ts"
import type { Notify } from "../../services/runtime/RuntimeNotice.ts"
import type { RuntimePlatform } from "../../services/runtime/RuntimePlatform.ts"
import * as SessionObservers from "../../services/runtime/SessionObservers.ts"
import * as SessionOpening from "../../services/runtime/SessionOpening.ts"
import { SessionFiles } from "../../services/session/SessionFiles.ts"
import { blobFolderOf, TempStore } from "../../services/session/TempStore.ts"
import { recording } from "../../services/transcripts/CarryOver.ts"
import { goesOnFrom } from "../../services/transcripts/CodexHistory.ts"
import { inUtf8, lineText } from "../../services/transcripts/LineSplitter.ts"
import type { Loaded } from "../../services/transcripts/LoadedTranscript.ts"
import { canAsk } from "../flags/ApiKey.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as FileWindow from "../flags/FileWindow.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, ExitError, failed } from "../output/ExitError.ts"
import { failedModelsText, failureLine, noopReasonText, secretsText } from "../output/OutcomeText.ts"
import * as Output from "../output/Output.ts"
import * as RuntimeText from "../output/RuntimeText.ts"
import { checkPlace, isSameFile, writeText, writeTranscript } from "../output/WrittenExport.ts"

/** A saved plan with the fingerprint of its conversation. A plan is refused when the conversation has changed since. */
const PlanFile = Schema.Struct({ fingerprint: Schema.String, plan: Plan })

/** A part that left the window or was shortened in it. */
const Elided = Schema.Struct({
  entry: EntryId,
  part: Schema.Natural,
  handle: Handle,
  /** The blob that holds the part, if it has one of its own. */
  file: Schema.NullOr(Schema.String),
  tokensBefore: Schema.Natural,
  tokensAfter: Schema.Natural
})
type Elided = typeof Elided.Type

/** The output of `--json` without the history, which is added as exact text. */
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
  /** Where the result is larger than the window: its largest messages. */
  stubborn: Schema.optionalKey(Schema.Array(Stubborn)),
  audit: Schema.NullOr(AuditResult)
})
type Report = typeof Report.Type

const flags = {
  ...Input.conversation,
  strategy: Input.withDefault(
    Input.strategy,
    defaultStrategy.name,
    `Strategy that decides what stays: ${Input.strategyNames} (default: ${defaultStrategy.name})`
  ),
  summarizer: Input.choice(
    "summarizer",
    ["extractive", "model"],
    "Write the snapshot with a model or without one (default: model if a key is set)"
  ),
  model: Input.models(
    "model",
    "Model that writes the summary; of several, separated by commas, the next replaces one that fails"
  ),
  window: Input.size("window", "Context window in tokens (default: the window of the conversation's model)").pipe(
    Flag.withAlias("limit")
  ),
  threshold: Input.threshold,
  force: Input.flag("force", "Compress even below the threshold or after failures"),
  failed: Input.flag("failed", "Act as if a summary failed before, so that no model is called"),
  tokens: Input.size("tokens", "Take this many tokens as the size of the request instead of counting it"),
  preserve: Input.share("preserve", `Keep this part of the conversation's end (default: ${defaultPolicy.preserve})`),
  minGain: Input.share("min-gain", "Fail unless this part of the request is saved (default: 0.1; gemini: 0)"),
  toolBudget: Input.size("tool-budget", "Keep this many tokens of tool output in full, newest first"),
  toolOutputForm: Input.outputForm,
  budget: Input.size("budget", "Limit the snapshot to this many tokens"),
  focus: Input.text("focus", "words", "Tell the summarizer what the snapshot must keep"),
  plan: Input.flag("plan", "Show the plan and change nothing; --out saves it"),
  apply: Input.text("apply", "plan", "Carry out a saved plan"),
  out: Input.text("out", "file", "Write the compressed conversation to this file"),
  to: Input.choice(
    "to",
    FormatName.literals,
    "Output format (default: contents for .json, else palimpsest; --in-place: unchanged)"
  ),
  inPlace: Input.flag("in-place", "Replace the input file with the compressed conversation"),
  json: Input.json
}
type Flags = Command.Command.Config.Infer<typeof flags>

const policyOf = (
  input: Flags,
  loaded: Loaded,
  limit: number,
  summarizer: Policy["summarizer"],
  { compressionModel, redactSecrets = true, toolOutput }: SettingsFile
): Policy => {
  const model = input.model ?? compressionModel
  const counted = viewTokens(loaded.session.conversation)
  const defaults = strategyDefaults(input.strategy)
  return {
    ...defaultPolicy,
    ...defaults,
    summarizer,
    // A requested model reports its failure instead of falling back to code.
    ladder: input.summarizer !== "model",
    redactSecrets,
    limit: TokenCount.make(limit),
    threshold: thresholdOf(input.threshold, undefined) ?? defaultThreshold(input.strategy, limit),
    preserve: input.preserve ?? defaultPolicy.preserve,
    minGain: input.minGain ?? defaults.minGain,
    toolBudget: TokenCount.make(input.toolBudget ?? defaultPolicy.toolBudget),
    outputForm: input.toolOutputForm ?? toolOutput?.form ?? defaults.outputForm,
    overhead: TokenCount.make(Math.max(0, (input.tokens ?? counted) - counted)),
    ...(input.tokens === undefined ? {} : { promptTokens: TokenCount.make(input.tokens) }),
    ...(model === undefined ? {} : { model }),
    ...(input.budget === undefined ? {} : { snapshotBudget: TokenCount.make(input.budget) }),
    ...(input.focus === undefined ? {} : { focus: input.focus })
  }
}

/** The format that the file extension of `--out` selects. */
const outFormat = (out: string): WrittenFormat =>
  Result.getOrElse(formatFor(out, undefined), (): WrittenFormat => "palimpsest")

/** Rejects conflicting flags before any input is read. */
const checked = Effect.fnUntraced(function* (input: Flags) {
  if (input.window === 0) return yield* badInput("--window 0 leaves no room; give the window in tokens")
  if (input.inPlace && input.out !== undefined) return yield* badInput("use either --in-place or --out, not both")
  if (input.inPlace && input.file === "-") return yield* badInput("--in-place needs a file, not standard input")
  if (input.out === "-" && input.json) return yield* badInput("standard output takes one of --out - and --json")
  if (input.out !== undefined && input.to === undefined && !input.plan && outFormat(input.out) === "markdown") {
    return yield* badInput(
      `--out ${input.out}: Markdown cannot be read back; use a name that ends in .json or .jsonl, or --to FORMAT`
    )
  }
  if (input.out === undefined) return
  // Checked before a model call is paid for.
  yield* checkPlace(input.out)
  if (input.file === "-") return
  if (yield* isSameFile(input.file, input.out)) {
    return yield* badInput(`--out names the input file; use --in-place to replace ${input.out}`)
  }
})

/** Identifies a state of the view by the ids and handles of its entries. */
const fingerprint = (conversation: Conversation) =>
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

const readPlan = Effect.fnUntraced(function* (path: string, conversation: Conversation) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs
    .readFileString(path)
    .pipe(Effect.mapError(() => badInput(`${path} cannot be read; expected a plan saved with --plan --out`)))
  const strategy = Option.getOrUndefined(planStrategy(text))?.plan.strategy ?? defaultPolicy.strategy
  if (!isStrategyName(strategy)) {
    return yield* badInput(
      `${path} was made with the strategy ${strategy}; expected ${StrategyName.literals.join(" or ")}`
    )
  }
  const file = yield* Schema.decodeEffect(planJson)(text).pipe(
    Effect.mapError(() => badInput(`${path} is not a plan; expected a file saved with --plan --out`))
  )
  if (file.fingerprint !== (yield* fingerprint(conversation))) {
    return yield* badInput(`the conversation has changed since ${path} was made; make a new plan with --plan`)
  }
  return file.plan
})

/** The file of the blob that holds a part in a log; null where the part is too small for one. */
const blobFile = Effect.fnUntraced(function* ({ content, source }: Entry, part: number, out: string | undefined) {
  const value = content.parts[part]
  if (out === undefined || out === "-" || value === undefined) return null
  const bytes = encode(payload(value, source?.[String(part)]).text)
  if (bytes.length < minSpillBytes) return null
  return `${blobFolderOf(out)}/${yield* TempStore.use((store) => store.hash(bytes))}`
})

/** Returns the parts that left the window or were shortened in it. `out`: the log that was written. */
const elidedParts = Effect.fnUntraced(function* (session: Session, outcome: Outcome, out: string | undefined) {
  const patch = patchOf(outcome)
  if (patch === undefined) return []
  const items = view(session.conversation)
  const places = new Map(items.map((item, index) => [item.entry.id, index]))
  const { drop, shorten } = patch
  const dropped = drop === undefined ? [] : items.slice(places.get(drop.from) ?? 0, (places.get(drop.to) ?? -1) + 1)
  const gone = dropped
    .filter(({ entry }) => entry.author !== "environment")
    .flatMap((item) => item.entry.content.parts.map((_, part) => ({ item, part, tokensAfter: 0 })))
  const shorter = shorten.map(({ entry, part, tokens }) => ({
    item: items[places.get(entry) ?? -1],
    part,
    tokensAfter: tokens
  }))
  const elided: Array<Elided> = []
  for (const { item, part, tokensAfter } of [...gone, ...shorter]) {
    const handle = item?.entry.handles[part]
    if (item === undefined || handle === undefined) continue
    elided.push({
      entry: item.entry.id,
      part,
      handle,
      file: yield* blobFile(item.entry, part, out),
      tokensBefore: item.shortened.get(part)?.tokens ?? item.entry.tokens[part] ?? 0,
      tokensAfter
    })
  }
  return elided
})

const layoutOf = (session: Session, outcome: Outcome): Pick<Report, "split" | "kept" | "keptEntries"> => {
  const all = view(session.conversation).filter(({ entry }) => entry.author !== "environment")
  const layout = outcome._tag === "Compressed" ? outcome.plan.steps.find((step) => step._tag === "Layout") : undefined
  return layout === undefined
    ? { split: 0, kept: all.length, keptEntries: all.map(({ entry }) => entry.id) }
    : { split: layout.split, kept: layout.kept.length, keptEntries: layout.kept }
}

const encodeOutcome = Schema.encodeSync(Outcome)

/** Returns the outcome without the fields that the report has elsewhere. */
const outcomeJson = (outcome: Outcome): Record<string, unknown> => {
  const { patch: _patch, snapshot: _snapshot, ...rest }: Record<string, unknown> = { ...encodeOutcome(outcome) }
  return rest
}

const historyOf = (conversation: Conversation): string => {
  const environment = new Set(
    view(conversation).flatMap(({ entry }) => (entry.author === "environment" ? [entry.id] : []))
  )
  return sentJson(projectMessages(conversation).filter(({ entry }) => !environment.has(entry)))
}

/** The command that reads the dropped content: all of it from the written file, else part by part from the input file. */
const recallHint = (report: Report, dropped: Handle | undefined, written: string | undefined, file: string): string => {
  const largest = [...report.elided].sort((a, b) => b.tokensBefore - a.tokensBefore)[0]?.handle ?? ""
  return written === undefined || written === "-" || dropped === undefined
    ? `palimpsest recall ${printableLine(file)} ${largest}   (the largest part; --json lists all)`
    : `palimpsest recall ${printableLine(written)} ${dropped}   (everything that left the window)`
}

/** Who wrote a snapshot. */
const writerTexts: Readonly<Record<(typeof Compressed.Type)["by"], string>> = {
  model: "by a model",
  extractive: "without a model",
  ladder: "without a model (shortened more, to fit)",
  hook: "by a hook"
}

/** Returns what a compression kept and what became of the rest, and the snapshot. */
const compressedLines = (
  report: Report,
  conversation: Conversation,
  outcome: typeof Compressed.Type,
  hint: string
): ReadonlyArray<string> => {
  const step = outcome.plan.steps.find((candidate) => candidate._tag === "Summarize")
  const shown = report.elided.filter(({ tokensAfter }) => tokensAfter > 0).length
  const { anchors, inSnapshot, inTail } = outcome.audit
  const range =
    step === undefined
      ? ""
      : rangeText(view(conversation).find(({ entry }) => entry.id === step.from)?.entry, step.from, step.to)
  const rows = [
    ["summarized", `${range}, ${writerTexts[outcome.by]}`],
    [
      "kept",
      report.kept === 0
        ? "no messages in full"
        : `${Output.plural(report.kept, "message")}, from ${report.keptEntries[0] ?? ""} on`
    ],
    ["shortened", shown === 0 ? "" : `${shown} tool ${shown === 1 ? "output" : "outputs"}`],
    [
      "facts",
      anchors === 0
        ? ""
        : `top ${Output.number(anchors)} identifiers: ${inSnapshot} in the snapshot, ${inTail} in kept messages`
    ],
    ["secrets", secretsText(outcome)],
    ["recall", hint]
  ].filter(([, text]) => text !== "")
  return [...Output.table(rows.map((row) => ["", ...row])).split("\n"), "", outcome.snapshot]
}

/** Says what to do about a conversation that is still larger than the window. */
const tooLargeText = (report: Report, outcome: Outcome): string => {
  const isDefault = !("plan" in outcome) || outcome.plan?.strategy === defaultPolicy.strategy
  const [largest] = report.stubborn ?? []
  // Whatever is answered can be summarized.
  const isUnanswered = largest?.what === "user text" && largest.entry === report.keptEntries.at(-1)
  const isAlone = isUnanswered && largest.tokens > report.tokens.limit
  const advice = isAlone
    ? `: the ${largest.what} ${largest.entry ?? ""} alone has ${Output.number(largest.tokens)} tokens; shorten it, or use a model with a larger window`
    : isDefault
      ? ""
      : `; --strategy ${defaultPolicy.strategy} has stronger steps`
  return `still larger than the window${advice}`
}

const describe = (
  report: Report,
  { conversation }: Session,
  outcome: Outcome,
  hint: string,
  style: Output.Style
): string => {
  const { after, before, limit } = report.tokens
  const saved = before === 0 ? "" : `, ${Output.share(before - after, before)} saved`
  const lines = [
    `${style.bold(report.status)}  ${Output.number(before)} → ${Output.number(after)} tokens${after < before ? saved : ""} (window ${Output.number(limit)})`
  ]
  if (outcome._tag === "Noop") lines.push(`  ${noopReasonText[outcome.reason]}`)
  if (outcome._tag === "Compressed") lines.push(...compressedLines(report, conversation, outcome, hint))
  if (outcome._tag === "ContentTruncated")
    lines.push(`  shortened ${report.elided.length} tool outputs; that was enough`)
  const notes = [
    failedModelsText(outcome),
    report.degraded?.message ?? "",
    after > limit ? tooLargeText(report, outcome) : ""
  ]
  return [...lines, ...notes.filter((note) => note !== "").map((note) => style.warn(`  note: ${note}`))].join("\n")
}

const describePlan = (plan: Plan): string =>
  [
    `PLAN  ${Output.number(plan.before)} → up to about ${Output.number(plan.after)} tokens (strategy ${plan.strategy})`,
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
              "summarize",
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

/** Prints a report: to standard error where standard output takes what is written. */
const reportTo = (out: string | undefined) => (out === "-" ? Output.aside : Output.text)

const printPlan = Effect.fnUntraced(function* (input: Flags, conversation: Conversation, decision: Decision) {
  if (decision._tag === "Skip") {
    const { before, reason } = decision
    return yield* input.json
      ? Output.text(JSON.stringify({ plan: null, reason, before }))
      : Output.text(`NOOP  ${Output.number(before)} tokens: ${noopReasonText[reason]}`)
  }
  const file = { fingerprint: yield* fingerprint(conversation), plan: decision.plan }
  const text = yield* Effect.orDie(Schema.encodeEffect(planJson)(file))
  if (input.out !== undefined) yield* writeText(input.out, `${text}\n`)
  yield* input.json ? Output.text(text) : reportTo(input.out)(describePlan(decision.plan))
})

const printJson = Effect.fnUntraced(function* (report: Report, conversation: Conversation) {
  const text = yield* Effect.orDie(Schema.encodeEffect(fromJson(Report))(report))
  yield* Output.text(`${text.slice(0, -1)},"history":${historyOf(conversation)}}`)
})

/**
 * Adds the hooks of the settings, as a chat does. Hooks run in the current folder, not in the folder that the transcript names,
 * because that one is not trusted. The services of the hooks are loaded only when there are hooks.
 */
const addHooks = Effect.fnUntraced(function* <E, R>(
  file: string,
  hooking: Layer.Layer<Environment | RuntimePlatform, E, R>,
  notify: Notify
) {
  const settings = yield* RuntimeText.orExit(SessionOpening.readSettings(notify))
  if (!SessionObservers.hasHooks(settings)) return
  const path = yield* Path.Path
  const trusted = yield* isTrusted
  yield* Effect.gen(function* () {
    // A hook may run this command again.
    const { place } = yield* RuntimeText.orExit(AgentNesting.find(settings.settings))
    yield* SessionObservers.addHooks(settings, notify, trusted(path.resolve("."))).pipe(
      AgentNesting.passOn(place, Effect.succeed(place.approve))
    )
  }).pipe(
    Effect.provideService(SessionFiles, {
      folder: path.resolve("."),
      of: () => (file === "-" ? "" : path.resolve(file))
    }),
    Effect.provideContext(yield* Layer.build(hooking))
  )
})

/** A run of the command: what was asked for, and what was read. */
interface Run {
  readonly input: Flags
  readonly loaded: Loaded
  readonly policy: Policy
}

/** Reads the policy from the flags and the settings, and checks the models before anything is paid for. */
const findPolicy = Effect.fnUntraced(function* (
  input: Flags,
  loaded: Loaded,
  settings: SettingsFile,
  handlers: Effect.Success<typeof RuntimeText.handlers>
) {
  const summarizer = input.summarizer ?? ((yield* canAsk(undefined)) ? "model" : "extractive")
  // The provider is queried only when it writes the snapshot anyway.
  const asks = summarizer === "model" && !input.plan
  const [model, ...others] = input.model ?? []
  // With a fallback, a model that does not exist is skipped.
  if (asks && model !== undefined && others.length === 0) {
    yield* RuntimeText.orExit(SessionOpening.checkModel({ model, models: settings.models ?? {} }, true, handlers))
  } else if (asks) yield* RuntimeText.orExit(SessionOpening.checkSummarizers(input.model, true))
  const limit =
    input.window ?? (yield* FileWindow.windowOf(loaded, settings, { asks, hint: "; set it once with --window N" }))
  return policyOf(input, loaded, limit, summarizer, settings)
})

const reportOf = (
  { loaded: { session }, policy }: Run,
  outcome: Outcome,
  elided: ReadonlyArray<Elided>,
  conversation: Conversation
): Report => ({
  status: statusOf(outcome),
  outcome: outcomeJson(outcome),
  tokens: { ...tokensOf(outcome), limit: policy.limit },
  ...layoutOf(session, outcome),
  degraded: outcome._tag === "Compressed" || outcome._tag === "ContentTruncated" ? outcome.degraded : null,
  elided,
  snapshot: outcome._tag === "Compressed" ? outcome.snapshot : null,
  audit: outcome._tag === "Compressed" ? outcome.audit : null,
  ...(tokensOf(outcome).after > policy.limit
    ? { stubborn: unshrinkable(conversation, new Set(view(conversation).map(({ entry }) => entry.id))) }
    : {})
})

/** Says that a signal ended the run. The program ends with the signal's own status. */
const tellCancelled = Effect.fnUntraced(function* (run: Run) {
  const { conversation } = run.loaded.session
  if (!run.input.json) return yield* Output.notice("cancelled; nothing was written")
  const { requestTokens } = yield* Work.run(indexedView(conversation.view))
  const before = TokenCount.make(run.policy.overhead + requestTokens)
  yield* printJson(reportOf(run, Cancelled.make({ before }), [], conversation), conversation)
})

/** Writes the compressed conversation. Returns the file; undefined when none is written. */
const write = Effect.fnUntraced(function* (
  { input, loaded }: Run,
  outcome: Outcome,
  events: ReadonlyArray<SessionEvent>
) {
  const own = loaded.format
  // A file whose conversation stays as it is stays as it is, to the byte; and so does what an earlier run wrote.
  const isUnchanged = input.inPlace ? patchOf(outcome) === undefined : failureLine(outcome) !== undefined
  const out = isUnchanged ? undefined : input.inPlace ? input.file : input.out
  if (out === undefined) return undefined
  const byName = outFormat(out)
  const byFile = byName === "markdown" ? "palimpsest" : byName
  const format = input.to ?? (input.inPlace && own !== "opencode" ? own : byFile)
  const fs = yield* FileSystem.FileSystem
  const original = Effect.map(fs.readFile(out), (bytes) => lineText(inUtf8()(bytes), 1))
  const replaced = input.inPlace && format === own ? yield* Effect.option(original) : Option.none()
  yield* writeTranscript(out, format, events, { replaced: Option.getOrUndefined(replaced) })
  return out
})

/** Carries out a run. */
const carryOut = Effect.fnUntraced(function* (run: Run, models: NonNullable<SettingsFile["models"]>) {
  const { input, loaded, policy } = run
  const { session } = loaded
  const stdio = yield* Effect.context<Stdio.Stdio>()
  const path = yield* Path.Path
  const events = yield* Ref.make(loaded.events)
  const chat = yield* Chat.keep({
    session: { ...session, memory: input.failed ? { failed: true, waitUntil: 0 } : freshMemory },
    log: recording(events, session.started?.session ?? ""),
    settings: { ...(yield* SessionOpening.askableDefaults), cwd: path.resolve(".") }
  })
  const onNotice = (line: string) => Effect.provideContext(Output.notice(line), stdio)
  const options = { policy, forced: input.force, onNotice }
  if (input.plan) return yield* printPlan(input, session.conversation, yield* chat.plan(options))
  const plan = input.apply === undefined ? undefined : yield* readPlan(input.apply, session.conversation)
  // Before a model call is paid for.
  if (input.inPlace && loaded.format === "opencode") {
    return yield* badInput("sessions of opencode cannot be changed in place; write to a file with --out")
  }
  const other = input.inPlace && loaded.format === "codex" ? yield* goesOnFrom(input.file) : undefined
  if (other !== undefined) {
    return yield* badInput(
      `${printableLine(other)} goes on from the records of this session, and would lose them; write to a file with --out`
    )
  }
  const outcome = yield* chat.compress({ ...options, plan }).pipe(
    Effect.provideService(ModelWindows.Overrides, models),
    Output.progress("compressing"),
    Effect.onInterrupt(() => tellCancelled(run)),
    Effect.mapError((error) => (error._tag === "PlanRefused" ? badInput(error.message) : failed(error.message)))
  )
  const out = yield* write(run, outcome, yield* Ref.get(events))
  const { conversation, ranges } = yield* chat.session
  const report = reportOf(run, outcome, yield* elidedParts(session, outcome, out), conversation)
  const hint = recallHint(report, ranges?.value.handle, out, input.file)
  yield* input.json
    ? printJson(report, conversation)
    : reportTo(out)(describe(report, session, outcome, hint, yield* Output.style))
  const problem = failureLine(outcome)
  if (problem !== undefined)
    return yield* new ExitError({ message: problem, status: outcome._tag === "Cancelled" ? 130 : 1 })
})

/** The command `palimpsest compress <file>`. `hooking` provides the services that hook commands need. */
export const compress = <E, R>(hooking: Layer.Layer<Environment | RuntimePlatform, E, R>) =>
  Command.make(
    "compress",
    flags,
    Effect.fn("cli.compress")(function* (input) {
      yield* checked(input)
      const handlers = yield* RuntimeText.handlers
      yield* addHooks(input.file, hooking, handlers.notify)
      const loaded = yield* ConversationInput.load(input)
      const settings = yield* FileWindow.settings
      const policy = yield* findPolicy(input, loaded, settings, handlers)
      yield* carryOut({ input, loaded, policy }, settings.models ?? {})
    }, Effect.scoped)
  ).pipe(
    Input.withExamples({
      "palimpsest compress talk.jsonl --force --window 64k": "Show what a window of 64,000 tokens keeps",
      "palimpsest compress talk.jsonl --force --out small.jsonl": "Write the compressed conversation"
    })
  )

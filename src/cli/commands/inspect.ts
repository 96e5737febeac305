import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import * as Chain from "../../domain/Chain.ts"
import { EntryId } from "../../domain/Conversation.ts"
import { Handle } from "../../domain/Handle.ts"
import { Inspection, type Kind, inspect as inspectConversation, printable, viewSizes } from "../../domain/Inspection.ts"
import type { Session } from "../../domain/Session.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import * as Work from "../../domain/Work.ts"
import { defaultPolicy, NoopReason, type Plan } from "../../domain/Compression.ts"
import { view as conversationView } from "../../domain/Conversation.ts"
import { freshMemory } from "../../domain/FailureMemory.ts"
import { TokenCount, tokenLimit } from "../../domain/Tokens.ts"
import { Compression } from "../../services/Compression.ts"
import { HandleIndex } from "../../services/Intake.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"

/** What `inspect --json` prints. */
export const Report = Schema.Struct({
  file: Schema.String,
  format: FormatName,
  bytes: Schema.Natural,
  session: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  ...Inspection.fields,
  /** What compressions dropped, oldest first: one handle names all of it. */
  dropped: Schema.Array(Schema.Struct({ handle: Handle, messages: Schema.Natural, from: EntryId, to: EntryId })),
  /** Records of the file that are no part of the conversation, by kind. */
  skipped: Schema.Record(Schema.String, Schema.Natural),
  /** What a compression would do now. */
  next: Schema.Struct({
    /** Why an automatic one would leave the conversation alone; null: it would not. */
    waits: Schema.NullOr(NoopReason),
    /** Tokens of the request before and, as planned, after one that is asked for; null: there is nothing to compress. */
    forced: Schema.NullOr(Schema.Struct({ before: Schema.Natural, after: Schema.Natural, messages: Schema.Natural }))
  }),
  /** The number of the last line when it broke off in the middle and was left out. */
  torn: Schema.NullOr(Schema.Natural)
})
export type Report = typeof Report.Type

const kindNames: Record<Kind, string> = {
  user: "user text",
  program: "program text",
  model: "model text",
  thought: "thoughts",
  summary: "summaries",
  call: "call arguments",
  output: "tool output",
  media: "media",
  other: "other"
}

const { number, share, table } = Output

const plural = (count: number, one: string, many = `${one}s`): string => `${number(count)} ${count === 1 ? one : many}`

/** Tools told by name in the text; `--json` has them all. */
const toolsShown = 15

/** The report for a person. `sizes` are the view's tokens after each message. */
export const describe = (report: Report, sizes: ReadonlyArray<number>, style: Output.Style = Output.plain): string => {
  const { all, environment, view } = report.tokens
  const section = (title: string, body: string) => `${style.bold(title)}\n${body.replace(/^(?=.)/gm, "  ")}`
  const columns = ["", "tokens", "share", "in view"].map(style.dim)
  const sums = (name: string, sum: { readonly tokens: number; readonly view: number }) => [
    name,
    number(sum.tokens),
    share(sum.tokens, all),
    number(sum.view)
  ]

  const facts = [
    ["file", printable(report.file)],
    ["format", report.format],
    ...[
      ["session", report.session],
      ["model", report.model],
      ["folder", report.cwd]
    ].flatMap(([name, value]) =>
      typeof name === "string" && typeof value === "string" ? [[name, printable(value)]] : []
    ),
    ["size", `${number(report.bytes)} bytes, ${plural(report.messages, "message")}, ${plural(report.turns, "turn")}`],
    ["tokens", `${number(all)} in all, ${number(view)} in the current view`],
    ...(environment > 0 ? [["", `${number(environment)} in the environment message, not counted here`]] : [])
  ]

  const sections = [table(facts)]
  if (report.kinds.length > 0) {
    sections.push(
      section("By kind", table([columns, ...report.kinds.map((kind) => sums(kindNames[kind.kind], kind))], "lrrr")),
      section("By role", table([columns, ...report.roles.map((role) => sums(role.role, role))], "lrrr"))
    )
  }
  if (report.tools.length > 0) {
    const rows = report.tools
      .slice(0, toolsShown)
      .map((tool) => [
        printable(tool.tool),
        number(tool.calls),
        number(tool.arguments),
        number(tool.output),
        number(tool.view)
      ])
    const more = report.tools.length - rows.length
    sections.push(
      section(
        "By tool",
        table([["", "calls", "arguments", "output", "in view"].map(style.dim), ...rows], "lrrrr") +
          (more > 0 ? `\nand ${number(more)} more (--json has them all)` : "")
      )
    )
  }
  if (report.largest.length > 0) {
    const rows = report.largest.map((part) => [
      part.entry,
      kindNames[part.kind] + (part.tool === null ? "" : ` ${printable(part.tool)}`),
      number(part.tokens),
      part.handle ?? "",
      style.dim(part.preview)
    ])
    sections.push(section("Largest parts (read one with recall <file> <handle>)", table(rows, "llrll")))
  }
  if (sizes.length > 1) {
    const largest = sizes.reduce((a, b) => Math.max(a, b), 0)
    sections.push(
      section(
        `Growth over ${plural(sizes.length, "message")}, ${plural(report.turns, "turn")}`,
        `${Output.sparkline(sizes)}\nat most ${number(largest)} tokens in the view, ${number(view)} now`
      )
    )
  }
  if (report.compactions.length > 0) {
    const rows = report.compactions.map(({ after, tokens }) => [
      after === null ? "at the start" : `after ${after}`,
      number(tokens.before),
      "→",
      number(tokens.after)
    ])
    sections.push(section("Past compactions (tokens of the view)", table(rows, "lrlr")))
  }
  if (report.dropped.length > 0) {
    const rows = report.dropped.map(({ from, handle, messages, to }) => [
      `${from} to ${to}`,
      plural(messages, "message"),
      handle
    ])
    sections.push(section("Dropped ranges (recall <file> <handle> has them whole)", table(rows)))
  }
  sections.push(section("Next compression", nextText(report.next)))
  const { calls, responses } = report.broken
  if (calls.length + responses.length > 0) {
    const rows = [
      ...calls.map((call) => [call.entry, `call of ${printable(call.tool)} without a response`]),
      ...responses.map((response) => [response.entry, `response of ${printable(response.tool)} without a call`])
    ]
    sections.push(section("Broken pairs", style.warn(table(rows.slice(0, toolsShown)))))
    if (rows.length > toolsShown) sections.push(`  and ${number(rows.length - toolsShown)} more (--json has them all)`)
  }
  const skipped = Object.entries(report.skipped)
  if (skipped.length > 0) {
    sections.push(
      section(
        "Records that are no part of the conversation",
        table(
          skipped.sort((a, b) => b[1] - a[1]).map(([kind, count]) => [printable(kind), number(count)]),
          "lr"
        )
      )
    )
  }
  if (report.torn !== null) {
    sections.push(style.warn(`Line ${number(report.torn)}, the last one, broke off in the middle and was left out.`))
  }
  return sections.join("\n\n")
}

const droppedRanges = (session: Session): Report["dropped"] =>
  Chain.toArray(session.ranges).flatMap(({ entries, handle }) => {
    const [first] = entries
    const last = entries.at(-1)
    return first === undefined || last === undefined
      ? []
      : [{ handle, messages: entries.length, from: first.id, to: last.id }]
  })

/** What the standard policy would do in the window of the conversation's model. */
const nextCompression = Effect.fnUntraced(function* (session: Session) {
  const compression = yield* Compression
  const policy = { ...defaultPolicy, limit: TokenCount.make(tokenLimit(session.started?.model ?? "")) }
  const request = { conversation: session.conversation, memory: freshMemory, policy, held: new HandleIndex() }
  const automatic = yield* compression.plan({ ...request, forced: false })
  const forced = yield* compression.plan({ ...request, forced: true })
  const next: Report["next"] = {
    waits: automatic._tag === "Skip" ? automatic.reason : null,
    forced: forced._tag === "Skip" ? null : { ...forced.plan, messages: summarised(session, forced.plan) }
  }
  return next
})

const summarised = (session: Session, plan: Plan): number => {
  const layout = plan.steps.find((step) => step._tag === "Layout")
  const entries = conversationView(session.conversation).filter(({ entry }) => entry.author !== "environment")
  return layout === undefined ? 0 : entries.length - layout.kept.length
}

const nextText = ({ forced, waits }: Report["next"]): string => {
  const automatic = waits === null ? "it is due" : `not yet: ${waits}`
  return forced === null
    ? `${automatic}
there is nothing to compress`
    : `${automatic}
--force would put a snapshot in the place of ${plural(forced.messages, "message")}: ${number(forced.before)} → about ${number(forced.after)} tokens`
}

/** `palimpsest inspect <file>`. */
export const inspect = Command.make(
  "inspect",
  { ...Input.conversation, json: Input.json },
  Effect.fn("cli.inspect")(function* (input) {
    const loaded = yield* Input.load(input)
    const { conversation, started } = loaded.session
    const inspection = yield* Work.run(inspectConversation(conversation))
    const report: Report = {
      file: input.file,
      format: loaded.format,
      bytes: loaded.bytes,
      session: loaded.transcript?.session ?? started?.importedFrom?.session ?? started?.session ?? null,
      model: loaded.transcript?.model ?? started?.model ?? null,
      cwd: loaded.transcript?.cwd ?? started?.cwd ?? null,
      ...inspection,
      dropped: droppedRanges(loaded.session),
      skipped: loaded.skipped,
      next: yield* nextCompression(loaded.session),
      torn: loaded.torn ?? null
    }
    yield* input.json
      ? Output.json(Report, report)
      : Output.text(describe(report, viewSizes(conversation), yield* Output.style))
  })
).pipe(
  Command.withDescription("Shows where the tokens of a conversation go"),
  Command.withExamples([
    {
      command: "palimpsest inspect examples/claude-code-subagent.jsonl",
      description: "Look into a Claude Code transcript"
    },
    { command: "palimpsest inspect session.json --json | jq .tokens", description: "Take the numbers elsewhere" }
  ])
)

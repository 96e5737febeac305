import { Effect, Layer } from "effect"
import path from "node:path"
import { type Decision, patchOf, type PlanStep } from "../../../../src/domain/compression/Compression.ts"
import { plan } from "../../../../src/domain/compression/strategies/palimpsest/Plan.ts"
import { defaultPolicy, type Policy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { strategies, type StrategyName } from "../../../../src/domain/compression/strategies/Strategies.ts"
import { call, model, type Part, response, text, user } from "../../../../src/domain/content/Content.ts"
import { type Draft, entries } from "../../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../../src/domain/conversation/FailureMemory.ts"
import { seededRandom } from "../../../../src/domain/evaluation/SeededRandom.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../../src/layers/testing/MemoryTempStore.ts"
import type { CompressRequest } from "../../../../src/services/compression/strategies/CompressRequest.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { Summarizer } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../../src/services/hooks/HookSystem.ts"
import { TokenCounter } from "../../../../src/services/tokens/TokenCounter.ts"
import { brief } from "../../../support/brief.ts"
import { scripted } from "../../../support/compressing.ts"
import { root } from "../../../support/paths.ts"
import { describe, expect, it } from "../../../support/vitest.ts"

/** What every strategy decides about the same conversations, with one option after the other changed. */

const lines = (count: number, word: string) => Array.from({ length: count }, (_, n) => `${n} ${word}`).join("\n")

/** A conversation of turns with parallel calls, outputs of all sizes, files, commits, lists of work, media and programs. */
const conversation = (seed: number): ReadonlyArray<Draft> => {
  const random = seededRandom(seed)
  const below = (bound: number) => Math.floor(random() * bound)
  const tools: ReadonlyArray<(n: number) => readonly [name: string, args: object, answer: object]> = [
    (n) => ["read_file", { path: `src/f${below(4)}.ts` }, { output: lines(below(200), `line of file ${n}`) }],
    (n) => ["Edit", { file_path: `src/f${below(4)}.ts`, old_string: "a", new_string: `b${n}` }, { output: "ok" }],
    (n) => ["Bash", { command: `git commit -am 'Step ${n}'` }, { output: `[main abc${n}000] Step ${n}` }],
    (n) => [
      "Bash",
      { command: `type C:\\w\\f${n}.md` },
      { output: `see lib\\win\\${"d".repeat(90 + n)} and lib\\b${n}.ts` }
    ],
    () => [
      "Bash",
      { command: "npm test" },
      below(2) === 0 ? { error: "Exit code 1\nerror: no" } : { output: "1 passed" }
    ],
    (n) => ["TodoWrite", { todos: [{ content: `do ${below(3)}`, status: n % 2 === 0 ? "completed" : "pending" }] }, {}]
  ]
  const image: Part = { inlineData: { mimeType: "image/png", data: "A".repeat(4_000) } }
  const drafts: Array<Draft> = seed % 2 === 0 ? [{ content: user(text("folder /w")), author: "environment" }] : []
  if (seed === 3)
    drafts.push({ content: user(text(`<state_snapshot>${lines(40, "was done")}</state_snapshot>`)), author: "summary" })
  for (let turn = 0; turn < 8; turn += 1) {
    const words = below(4) === 0 ? "hi" : `Please build part ${turn}. ${"It matters. ".repeat(below(30))}`
    drafts.push({ content: user(text(words), ...(below(5) === 0 ? [image] : [])) })
    if (below(4) === 0) drafts.push({ content: user(text(`note ${turn}`)), author: "program" })
    for (let step = below(4); step > 0; step -= 1) {
      const made = Array.from({ length: 1 + below(3) }, (_, at) => {
        const [name, args, answer] = tools[below(tools.length)]?.(turn) ?? ["f", {}, {}]
        return [call(name, args, `c${turn}.${step}.${at}`), response(name, answer, `c${turn}.${step}.${at}`)] as const
      })
      drafts.push({ content: model(...made.map(([one]) => one)) }, { content: user(...made.map(([, one]) => one)) })
    }
    if (turn < 7 || seed % 3 > 0)
      drafts.push({ content: model(text(`Part ${turn} is built. ${"So. ".repeat(below(60))}`)) })
  }
  return drafts
}

const tokens = (count: number) => TokenCount.make(count)
const base = { ...defaultPolicy, limit: tokens(9_000), toolBudget: tokens(2_000), minGain: 0 }
/** The change with which the decision is carried out, too. */
const carriedOut: Partial<Policy> = {}
const changes: ReadonlyArray<Partial<Policy>> = [
  carriedOut,
  { preserve: 0 },
  { preserve: 0.8 },
  { limit: tokens(5_000) },
  { limit: tokens(60_000) },
  { overhead: tokens(2_500) },
  { toolBudget: tokens(0) },
  { toolBudget: tokens(600), outputForm: "head-tail-lines" },
  { snapshotBudget: tokens(700) },
  { summarizer: "model" },
  { threshold: 1 },
  { promptTokens: tokens(7_000) },
  { turnLimit: 2 }
]

const stepText = (step: PlanStep): string => {
  switch (step._tag) {
    case "Shorten":
      return `${step.entry}.${step.part} ${step.form}${step.chars ?? ""} ${step.tokensBefore}>${step.tokensAfter}`
    case "Summarize":
      return `${step.prompt} ${step.from}-${step.to} in ${step.budget}${step.verify ? "" : " unverified"}`
    case "Pin":
      return `${step.why} ${step.entry}.${step.part} ${step.start}-${step.end}`
    case "Layout":
      return `from ${step.split} keep ${step.kept.length}${step.acknowledge ? " acknowledged" : ""}`
  }
}
const decisionText = (decision: Decision): string =>
  decision._tag === "Skip"
    ? `${decision.reason} ${decision.before}`
    : `${decision.plan.before}>${decision.plan.after}: ${decision.plan.steps.map(stepText).join("; ")}`

/** Writes a summary of the files that were asked about. */
const { asked, summarizer } = scripted(
  () => "<state_snapshot><overall_goal>- [e5] user: build it in src/f1.ts</overall_goal></state_snapshot>"
)
const services = Layer.mergeAll(
  TokenCounter.layerEstimate,
  MemoryTempStore.layer,
  HookSystem.layer,
  Layer.effect(
    Summarizer,
    Effect.map(
      Effect.all([Effect.provide(Summarizer, Summarizer.layerExtractive), Effect.provide(Summarizer, summarizer)]),
      ([{ summarize }, scripted]) => ({ ...scripted, summarize })
    )
  )
)

/** The result of a strategy, with what it asked a model and all that it inserts. */
const resultOf = Effect.fnUntraced(function* (name: StrategyName, request: CompressRequest) {
  asked.length = 0
  const { dropped, outcome } = yield* runners[name].compress(request)
  const { insert = [], ...patch } = patchOf(outcome) ?? {}
  return [
    ...asked.map((one) => `  asks ${brief(one)}`),
    `  ${brief({ ...outcome, patch, dropped })}`,
    ...insert.flatMap(({ content }) => content.parts.map((part) => part.text?.replace(/^/gm, "  | ") ?? ""))
  ]
})

describe.each(strategies.map(({ name }) => name))("%s", (name) => {
  it.effect(
    "decides like this: see `test/golden/decisions`, and take a new one with `vitest -u`",
    services,
    function* () {
      const rows: Array<string> = []
      for (const seed of [1, 2, 3, 4, 5]) {
        /** What is decided without a change. */
        let unchanged = ""
        for (const change of changes) {
          const policy = {
            ...base,
            ...strategies.find((one) => one.name === name)?.defaults,
            ...change,
            strategy: name
          }
          const request = yield* requestFor(conversation(seed), policy)
          const pins = entries(request.conversation)
            .slice(2, 3)
            .map(({ id }) => ({ entry: id, part: 0, start: 0, end: 4 }))
          /** Each different decision, with the ways to ask that lead to it. */
          const ways = new Map<string, ReadonlyArray<string>>()
          const add = (way: string, decision: Decision) => {
            const text = decisionText(decision)
            ways.set(text, [...(ways.get(text) ?? []), way])
          }
          for (const forced of [false, true]) {
            add(forced ? "forced" : "due", yield* runners[name].decide({ ...request, forced, pins }))
          }
          for (const rung of name === "palimpsest" ? [1, 2] : []) {
            const options = { forced: true, memory: freshMemory, rung, pins }
            add(`rung ${rung}`, Work.runSync(plan(request.conversation, policy, options)))
          }
          const decided = [...ways].map(([text, asked]) => `  ${asked.join(", ")}: ${text}`).join("\n")
          const row = `conversation ${seed}, ${JSON.stringify(change)}`
          rows.push(decided === unchanged ? `${row}: as {}` : `${row}\n${decided}`)
          if (change !== carriedOut) continue
          unchanged = decided
          rows.push(...(yield* resultOf(name, { ...request, forced: true, pins })))
        }
      }
      const file = path.join(root, `test/golden/decisions/${name}.txt`)
      yield* Effect.promise(() => expect(`${rows.join("\n")}\n`).toMatchFileSnapshot(file))
    }
  )
})

import { Effect, Layer } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { createHash } from "node:crypto"
import { mentions } from "../src/domain/content/Handle.ts"
import * as Offline from "../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../src/layers/testing/MemoryCalibrations.ts"
import * as CompressedLanguageModel from "../src/services/effect-ai/CompressedLanguageModel.ts"
import { withConversation } from "../src/services/effect-ai/ConversationKey.ts"
import { Recall } from "../src/services/effect-ai/RecallTool.ts"
import { print, type Row } from "./table.ts"

/**
 * `npm run bench:tenants`: many conversations in one language model, interleaved and sequential, compared with a single
 * conversation, in one process. Measures the cost of a call, the memory of a conversation, and whether every handle returns
 * its own text. Numeric arguments set the number of conversations. With `--anew`, callers build their history anew for each call. With `--keyed`, each
 * conversation has a key, under which a store in memory keeps it; a recall reads its session, so that the handles of at most 50 conversations are recalled.
 * More than 300 conversations are played interleaved only.
 */

type Messages = ReadonlyArray<Prompt.Message>

const turns = 24
const isAnew = process.argv.includes("--anew")
const isKeyed = process.argv.includes("--keyed")
/** Runs an effect in the conversation of a tenant. */
const as =
  (tenant: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    isKeyed ? effect.pipe(withConversation(`tenant/${tenant}`)) : effect
const given = process.argv.slice(2).map(Number).filter(Number.isInteger)
const sizes = given.length === 0 ? [100, 1_000] : given

const page = (tenant: number, turn: number): string =>
  Array.from(
    { length: 12 },
    (_, line) => `tenant${tenant} ${turn}.${line} src/module${turn}.ts is red, see ${line}`
  ).join("\n")
const says = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })
const answers = (text: string) => Prompt.assistantMessage({ content: [Prompt.textPart({ text })] })
const system = Prompt.systemMessage({ content: "Be brief." })
const copied = (history: Messages): Messages =>
  history.map((message): Prompt.Message => JSON.parse(JSON.stringify(message)))

/** The history of a tenant at its turn. Its messages are the same objects in every turn. */
const histories = (tenants: number) => {
  const held = Array.from({ length: tenants }, (): Array<Prompt.Message> => [system])
  return (tenant: number, turn: number): Messages => {
    const history = held[tenant] ?? []
    if (turn > 0) history.push(answers(`tenant${tenant} answer ${turn}`))
    history.push(says(page(tenant, turn)))
    return isAnew ? copied(history) : history.slice()
  }
}

interface Shown {
  readonly tenant: number
  readonly handle: ReturnType<typeof mentions>[number]
  /** Whether the recalled text is the tenant's own, and its digest. */
  readonly isOwn: boolean
  readonly digest: string
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64")

/** Milliseconds of processor time of this thread, unaffected by other programs. */
const now = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

const maxLookedAt = 50

const played = (tenants: number, order: ReadonlyArray<readonly [tenant: number, turn: number]>) => {
  let asked: Messages = []
  let sent: Messages = []
  let recall: Recall["Service"]["recall"] = () => Effect.die("not yet")
  const shown: Array<Shown> = []
  let dead = 0
  let tenantNow = 0
  let looking = 0
  const seen = new Set<string>()
  const isLookedAt = (tenant: number) => !isKeyed || tenant % Math.ceil(tenants / maxLookedAt) === 0
  const inner = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: ({ prompt }) =>
        Effect.gen(function* () {
          const start = now()
          sent = prompt.content
          const written = sent.filter((message) => !asked.includes(message))
          const text = isLookedAt(tenantNow) ? JSON.stringify(isAnew ? written.slice(0, 3) : written) : ""
          for (const handle of new Set(mentions(text))) {
            if (seen.has(`${tenantNow} ${handle}`)) continue
            seen.add(`${tenantNow} ${handle}`)
            const found = yield* Effect.exit(recall(handle))
            if (found._tag === "Failure") dead += 1
            else {
              const { text } = found.value
              const isOwn = tenants === 1 || !text.includes(`tenant${(tenantNow + 1) % tenants} `)
              shown.push({ tenant: tenantNow, handle, isOwn, digest: digestOf(text) })
            }
          }
          looking += now() - start
          return [{ type: "text" as const, text: "ok" }]
        }),
      streamText: () => {
        throw new Error("unused")
      }
    })
  )
  const layer = CompressedLanguageModel.layer({ window: 4_000, reserve: 500 }).pipe(
    Layer.provide(inner),
    Layer.provide(Layer.merge(Offline.layer, MemoryCalibrations.layer))
  )
  return Effect.gen(function* () {
    recall = (yield* Recall).recall
    const of = histories(tenants)
    const latest: Array<Messages> = []
    /** Milliseconds of calls that compressed nothing, and of calls that compressed. */
    const calls = { plain: [] as Array<number>, compressing: [] as Array<number> }
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    const snapshots = new Map<number, string>()
    let total = 0
    for (const [tenant, turn] of order) {
      asked = of(tenant, turn)
      latest[tenant] = asked
      tenantNow = tenant
      looking = 0
      const start = now()
      yield* as(tenant)(LanguageModel.generateText({ prompt: Prompt.fromMessages(asked) }))
      const took = now() - start - looking
      total += took
      const snapshot = JSON.stringify(sent[1]).slice(0, 400)
      const isNew = sent.length < asked.length && snapshots.get(tenant) !== snapshot
      if (isNew) snapshots.set(tenant, snapshot)
      ;(isNew ? calls.compressing : calls.plain).push(took)
    }
    seen.clear()
    globalThis.gc?.()
    const held = process.memoryUsage().heapUsed - before
    let wrong = 0
    for (const { digest, handle, isOwn, tenant } of shown) {
      const found = yield* Effect.exit(recall(handle).pipe(Recall.within(latest[tenant] ?? []), as(tenant)))
      if (found._tag === "Failure" || digestOf(found.value.text) !== digest || !isOwn) wrong += 1
      if (tenants === 1) continue
      const next = (tenant + 1) % tenants
      const other = yield* Effect.exit(recall(handle).pipe(Recall.within(latest[next] ?? []), as(next)))
      if (other._tag === "Success") wrong += 1
    }
    const text = latest.reduce((sum, history) => sum + JSON.stringify(history).length, 0)
    return { calls, total: total / order.length, shown: shown.length, dead, wrong, held, text }
  }).pipe(Effect.provide(layer), Effect.runPromise)
}

const turnsOf = Array.from({ length: turns }, (_, turn) => turn)
const orders = (tenants: number) => {
  const all = Array.from({ length: tenants }, (_, tenant) => tenant)
  const interleaved = turnsOf.flatMap((turn) => all.map((tenant) => [tenant, turn] as const))
  return tenants > 300
    ? { interleaved }
    : { interleaved, "one after another": all.flatMap((tenant) => turnsOf.map((turn) => [tenant, turn] as const)) }
}

const mean = (values: ReadonlyArray<number>) =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
const us = (ms: number) => `${(ms * 1_000).toFixed(0)} µs`

// Warm up, so that compiling is not measured.
for (let run = 0; run < 3; run += 1) await played(20, orders(20).interleaved)
const alone = []
for (let run = 0; run < 20; run += 1) alone.push(await played(1, orders(1).interleaved))
const one = {
  plain: mean(alone.flatMap(({ calls }) => calls.plain)),
  compressing: mean(alone.flatMap(({ calls }) => calls.compressing)),
  total: mean(alone.map(({ total }) => total))
}
const rows: Array<Row> = [
  {
    what: `1 conversation, a call`,
    value: `${us(one.total)} mean, ${us(one.plain)} mean without compression, ${us(one.compressing)} mean with`,
    bound: undefined,
    ok: true
  }
]
for (const tenants of sizes) {
  for (const [name, order] of Object.entries(orders(tenants))) {
    const { calls, dead, held, shown, text, total, wrong } = await played(tenants, order)
    const more = total - one.total
    rows.push(
      {
        what: `${tenants} conversations, ${name}: a call more than with one`,
        value: `${us(more)} (mean ${us(total)}; mean without compression ${us(mean(calls.plain))}, mean with ${us(mean(calls.compressing))}, ${(calls.compressing.length / tenants).toFixed(1)} compressions each)`,
        bound: "500 µs",
        ok: more <= 0.5
      },
      {
        what: `${tenants} conversations, ${name}: a call that compresses nothing`,
        value: `${us(mean(calls.plain))} mean`,
        bound: "500 µs",
        ok: mean(calls.plain) <= 0.5
      },
      {
        what: `${tenants} conversations, ${name}: handles that were dead or wrong`,
        value: `${dead + wrong} of ${shown}`,
        bound: "0",
        ok: dead + wrong === 0 && shown > 0
      },
      {
        what: `${tenants} conversations, ${name}: memory of each beside its text`,
        value: `${((held - (isAnew ? 0 : text)) / tenants / 1024).toFixed(1)} KB (text ${(text / tenants / 1024).toFixed(1)} KB)`,
        bound: undefined,
        ok: true
      }
    )
  }
}
print(rows)

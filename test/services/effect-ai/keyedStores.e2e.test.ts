import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { KeyValueStore } from "effect/persistence"
import path from "node:path"
import { type Handle, mentions } from "../../../src/domain/content/Handle.ts"
import { ContextWindow } from "../../../src/index.ts"
import * as Home from "../../../src/layers/assembly/Home.ts"
import * as KeyValueSessionStore from "../../../src/layers/session/KeyValueSessionStore.ts"
import * as PostgresSessionStore from "../../../src/layers/session/PostgresSessionStore.ts"
import * as SqliteSessionStore from "../../../src/layers/session/SqliteSessionStore.ts"
import * as ScriptedLanguageModel from "../../../src/layers/testing/ScriptedLanguageModel.ts"
import { needs } from "../../support/machine.ts"
import { newFolder } from "../../support/paths.ts"
import { postgres } from "../../support/postgres.ts"
import { answers, says } from "../../support/prompts.ts"

/**
 * Conversations with a key on the stores that outlive a process: what was shown before a restart answers after it, with its own text. Forty
 * of them; a hundred where `npm run test:load` asks for them, or as many as the variable TENANTS says. A quarter of them in a KeyValueStore, which writes a file for each
 * message.
 */

const count = Number(process.env["TENANTS"] ?? (process.env["MODE"] === "load" ? 100 : 16))
const tenantsOf = (share = 1): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(count * share) }, (_, index) => `tenant/${index}`)
const turns = 4
const page = (tenant: string, turn: number): string =>
  Array.from({ length: 14 }, (_, line) => `${tenant} ${turn}.${line} src/module${turn}.ts is red`).join("\n")

const folder = newFolder("keyed-")

const bounds = { window: 1_400, reserve: 200 }
const sqlite = SqliteSessionStore.layer(path.join(folder, "chats.db"))
const keyed = KeyValueSessionStore.layer().pipe(
  Layer.provide(KeyValueStore.layerFileSystem(path.join(folder, "values"))),
  Layer.provide(NodeServices.layer),
  Layer.orDie
)
const stores = [
  {
    name: "files",
    tenants: tenantsOf(),
    program: undefined,
    store: Effect.succeed(ContextWindow.layer({ ...bounds, home: Home.layer(path.join(folder, "home")) }))
  },
  {
    name: "SQLite",
    tenants: tenantsOf(),
    program: undefined,
    store: Effect.succeed(ContextWindow.layer({ ...bounds, store: sqlite }))
  },
  {
    name: "a KeyValueStore",
    tenants: tenantsOf(1 / 4),
    program: undefined,
    store: Effect.succeed(ContextWindow.layer({ ...bounds, store: keyed }))
  },
  {
    name: "PostgreSQL",
    tenants: tenantsOf(),
    program: "PostgreSQL",
    store: Effect.map(postgres, (url) => ContextWindow.layer({ ...bounds, store: PostgresSessionStore.layer(url) }))
  }
] as const

for (const { name, program, store, tenants } of stores) {
  const suite = program === undefined ? describe : needs(program)
  suite(`${tenants.length} conversations with a key`, () => {
    it.live(
      `answer after a restart from ${name}, each for its tenant only`,
      () =>
        Effect.gen(function* () {
          const layer = yield* store
          /** A process of its own over the same store. */
          const started = <A, E>(
            effect: Effect.Effect<A, E, ContextWindow.Services | ScriptedLanguageModel.Script>
          ): Effect.Effect<A, unknown> =>
            Effect.provide(
              effect,
              Layer.provideMerge(
                layer,
                ScriptedLanguageModel.layer(() => "ok")
              ),
              { local: true }
            )
          const sentTo = (tenant: string, content: ReadonlyArray<Prompt.Message>) =>
            LanguageModel.generateText({ prompt: Prompt.fromMessages(content) }).pipe(
              ContextWindow.withConversation(tenant),
              Effect.andThen(ScriptedLanguageModel.Script.use(({ requests }) => requests)),
              Effect.map((all) => JSON.stringify(all.at(-1)?.prompt.content))
            )
          const histories = new Map<string, ReadonlyArray<Prompt.Message>>()
          const last = new Map<string, string>()
          const shown = new Map<string, { readonly tenant: string; readonly handle: Handle; readonly text: string }>()
          const recalled = (tenant: string, handle: Handle) =>
            ContextWindow.Recall.use(({ recall }) => recall(handle)).pipe(ContextWindow.withConversation(tenant))
          yield* started(
            Effect.gen(function* () {
              for (let turn = 0; turn < turns; turn += 1) {
                for (const tenant of tenants) {
                  const history = [...(histories.get(tenant) ?? []), says(page(tenant, turn))]
                  const sent = yield* sentTo(tenant, history)
                  last.set(tenant, sent)
                  for (const handle of mentions(sent)) {
                    shown.set(`${tenant} ${handle}`, { tenant, handle, text: (yield* recalled(tenant, handle)).text })
                  }
                  histories.set(tenant, turn === turns - 1 ? history : [...history, answers(`answer ${turn}`)])
                }
              }
            })
          )
          assert.isAtLeast(new Set([...shown.values()].map(({ tenant }) => tenant)).size, tenants.length)
          yield* started(
            Effect.gen(function* () {
              const asked = new Set<string>()
              for (const { handle, tenant, text } of shown.values()) {
                assert.strictEqual((yield* recalled(tenant, handle)).text, text)
                const names = new Set(text.match(/tenant\/\d+/g))
                assert.deepStrictEqual([...names], [tenant])
                if (asked.has(tenant)) continue
                asked.add(tenant)
                const other = tenants[(tenants.indexOf(tenant) + 1) % tenants.length] ?? ""
                const foreign = yield* Effect.result(recalled(other, handle))
                assert.strictEqual(foreign._tag, "Failure", `${handle} of ${tenant} answers for ${other}`)
              }
              for (const tenant of tenants) {
                assert.strictEqual(yield* sentTo(tenant, histories.get(tenant) ?? []), last.get(tenant))
              }
            })
          )
        }).pipe(Effect.scoped),
      60_000 + tenants.length * 500
    )
  })
}

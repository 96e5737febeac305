import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { type Handle, mentions } from "../../../src/domain/content/Handle.ts"
import { ContextWindow } from "../../../src/index.ts"
import * as SqliteSessionStore from "../../../src/layers/session/SqliteSessionStore.ts"
import * as ScriptedLanguageModel from "../../../src/layers/testing/ScriptedLanguageModel.ts"
import { answers, says } from "../../support/prompts.ts"

/** Conversations with a key on the stores that outlive a process: what was shown before a restart answers after it. */

const tenants = ["tenant/1", "tenant/2", "tenant/3"]
const page = (tenant: string, turn: number): string =>
  Array.from({ length: 12 }, (_, line) => `${tenant} ${turn}.${line} src/module${turn}.ts is red`).join("\n")

const folder = mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "keyed-"))

const stores = {
  files: () => ContextWindow.layer({ window: 2_000, reserve: 200, home: path.join(folder, "home") }),
  SQLite: () =>
    ContextWindow.layer({
      window: 2_000,
      reserve: 200,
      store: SqliteSessionStore.layer(path.join(folder, "chats.db"))
    })
}

describe("conversations with a key", () => {
  for (const [name, layer] of Object.entries(stores)) {
    it.effect(`answer after a restart from ${name}, each for its tenant only`, () =>
      Effect.gen(function* () {
        /** A process of its own over the same store. */
        const started = <A, E>(
          effect: Effect.Effect<A, E, ContextWindow.Services | ScriptedLanguageModel.Script>
        ): Effect.Effect<A, unknown> =>
          Effect.provide(
            effect,
            Layer.provideMerge(
              layer(),
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
            for (let turn = 0; turn < 10; turn += 1) {
              for (const tenant of tenants) {
                const history = [...(histories.get(tenant) ?? []), says(page(tenant, turn))]
                const sent = yield* sentTo(tenant, history)
                last.set(tenant, sent)
                for (const handle of mentions(sent)) {
                  shown.set(`${tenant} ${handle}`, { tenant, handle, text: (yield* recalled(tenant, handle)).text })
                }
                histories.set(tenant, turn === 9 ? history : [...history, answers(`answer ${turn}`)])
              }
            }
          })
        )
        assert.isAbove(shown.size, tenants.length)
        yield* started(
          Effect.gen(function* () {
            for (const { handle, tenant, text } of shown.values()) {
              assert.strictEqual((yield* recalled(tenant, handle)).text, text)
              const other = tenants[(tenants.indexOf(tenant) + 1) % tenants.length] ?? ""
              const foreign = yield* Effect.result(recalled(other, handle))
              assert.strictEqual(foreign._tag, "Failure", `${handle} of ${tenant} answers for ${other}`)
            }
            for (const tenant of tenants) {
              assert.strictEqual(yield* sentTo(tenant, histories.get(tenant) ?? []), last.get(tenant))
            }
          })
        )
      })
    )
  }
})

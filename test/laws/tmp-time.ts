import { Arbitrary, Effect } from "effect"
import { play, scripts, worldOf, policyOf } from "../support/generate.ts"
import { viewTokens } from "../../src/domain/Conversation.ts"
const go = Effect.gen(function* () {
  const all = yield* Arbitrary.sampleEffect(scripts, { count: 300, size: 24, seed: "x" })
  const tags: Record<string, number> = {}
  let tok = 0,
    n = 0
  const t0 = performance.now()
  const slow: Array<[number, string]> = []
  for (const s of all) {
    const t = performance.now()
    const w = worldOf()
    const p = yield* play(w, s).pipe(Effect.scoped, Effect.provide(w.services))
    for (const m of p.moments) {
      const k = m.action + " " + (m.outcome ? m.outcome._tag + (m.outcome._tag === "Noop" ? m.outcome.reason : "") : "")
      tags[k] = (tags[k] ?? 0) + 1
      tok += viewTokens(m.before.conversation)
      n++
    }
    slow.push([performance.now() - t, s.opening + " " + p.entered.length + " " + s.steps.map((x) => x.action)])
  }
  slow.sort((a, b) => b[0] - a[0])
  console.log(performance.now() - t0, tags, tok / n, slow.slice(0, 8), slow[150])
})
await Effect.runPromise(go)

import { assert, it } from "@effect/vitest"
import { gatherEvidence } from "../../../src/domain/compression/evidence/Evidence.ts"
import { composeSnapshot } from "../../../src/domain/compression/handover/Extractive.ts"
import { originalRequest } from "../../../src/domain/compression/strategies/palimpsest/OriginalRequest.ts"
import { plan } from "../../../src/domain/compression/strategies/palimpsest/Plan.ts"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import {
  append,
  compressed,
  empty,
  entries,
  entryId,
  type Patch,
  view
} from "../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../src/domain/conversation/FailureMemory.ts"
import { redactedEntries } from "../../../src/domain/conversation/RedactedEntries.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { cachedEqualsFresh } from "../../support/caches.ts"
import { entryOf } from "../../support/entries.ts"

/** What compressions of one conversation remember of each other does not show. */

const output = Array.from({ length: 120 }, (_, at) => `line ${at} of /work/app/src/part${at}.ts, at length`).join("\n")
const secret = `ghp_${"a1B2".repeat(9)}`

/** A value that only its place elsewhere makes a secret. */
const value = "Xk9vQ2mL7pR4"

const edit = (n: number): ReadonlyArray<Content> => {
  const args = {
    file_path: `/work/app/src/part${n}.ts`,
    old_string: `const old${n} = 1`,
    new_string: `const new${n} = 2`
  }
  return [
    model(call("replace", args, `e${n}`)),
    user(response("replace", { output: n === 3 ? `token=${secret}` : `ok ${value}` }, `e${n}`)),
    model(call("run_shell_command", { command: `cat src/part${n}.ts` }, `s${n}`)),
    user(response("run_shell_command", { output }, `s${n}`))
  ]
}

const contents: ReadonlyArray<Content> = [
  user(text("hi")),
  model(text("Hello.")),
  user(text("Rename the port setting in all files. Never touch src/legacy.")),
  ...Array.from({ length: 6 }, (_, n) => edit(n)).flat(),
  user(text(`Use ${secret} for it, and keep getUserById.`)),
  model(text("Done."))
]

/** All versions of a conversation, each of which continues the one before it. */
const versions = () => {
  let conversation = empty
  return contents.map((content, at) => {
    const entry = entryOf(at + 1, structuredClone(content), { tokens: content.parts.map(() => 1_500) })
    conversation = append(conversation, entry)
    return conversation
  })
}
type Versions = ReturnType<typeof versions>
const at = (all: Versions, index: number) => all.at(index) ?? empty

const limit = TokenCount.make(200_000)
const planned =
  (rung: number, outputForm: "last-lines" | "head-tail-lines", index = -1) =>
  (all: Versions) =>
    runSync(
      plan(
        at(all, index),
        { ...defaultPolicy, limit, outputForm, toolBudget: TokenCount.make(0), preserve: 0.6 },
        { forced: true, memory: freshMemory, rung }
      )
    )

it("plans at each rung and in each form", () => {
  cachedEqualsFresh(versions, {
    "the first rung": planned(0, "last-lines"),
    "the second rung": planned(1, "last-lines"),
    "the last rung": planned(2, "last-lines"),
    "another form": planned(0, "head-tail-lines"),
    "another form on the second rung": planned(1, "head-tail-lines"),
    "an earlier version": planned(0, "last-lines", -9)
  })
  const shortened = [planned(0, "last-lines"), planned(1, "last-lines"), planned(0, "head-tail-lines")].map((step) => {
    const decision = step(versions())
    const steps = decision._tag === "Go" ? decision.plan.steps : []
    return steps.flatMap((one) => (one._tag === "Shorten" ? [one.tokensAfter] : []))[0]
  })
  assert.strictEqual(new Set(shortened).size, 3, `each shortens to another size: ${shortened.join(", ")}`)
})

it("the original request of each version", () => {
  const steps = contents.map((_, index) => [`version ${index}`, (all: Versions) => originalRequest(at(all, index))])
  cachedEqualsFresh<Versions, unknown>(versions, Object.fromEntries(steps))
})

it("the original request is what the user typed, not the reason of a refusal", () => {
  const refused = {
    error: "The user rejected permission to use this specific tool call with the following feedback: use trash"
  }
  const said = [user(text("Clean up.")), model(call("bash", {}, "c")), user(response("bash", refused, "c"))]
  const conversation = said.reduce(
    (log, content, index) => append(log, { id: entryId(index + 1), content, tokens: [1], handles: [] }),
    empty
  )
  assert.strictEqual(originalRequest(conversation)?.text, "Clean up.")
})

it("evidence and snapshots of several sizes, folders and focuses", () => {
  const snapshot = (budget: number, cwd: string | undefined, focus?: string) => (all: Versions) => {
    const evidence = runSync(gatherEvidence(entries(at(all, 13)), { cwd }))
    return runSync(composeSnapshot(evidence, { budget, kept: [], cwd, focus }))
  }
  cachedEqualsFresh(versions, {
    small: snapshot(400, "/work/app"),
    large: snapshot(8_000, "/work/app"),
    "without a folder": snapshot(2_000, undefined),
    "with a focus": snapshot(2_000, "/work", "getUserById")
  })
})

it("redactions, with and without values that were found elsewhere", () => {
  const redacted =
    (count: number, more: ReadonlyArray<{ readonly kind: string; readonly value: string }>) => (all: Versions) =>
      runSync(redactedEntries(entries(at(all, -1)).slice(0, count), more))
  cachedEqualsFresh(versions, {
    few: redacted(6, []),
    "with a value": redacted(60, [{ kind: "token", value }]),
    all: redacted(60, [])
  })
})

it("a patch applied to several versions", () => {
  const applied =
    (index: number) =>
    ({ all, patch }: { readonly all: Versions; readonly patch: Patch }) =>
      view(compressed(at(all, index), patch)).length
  cachedEqualsFresh(
    () => ({ all: versions(), patch: { drop: { from: entryId(4), to: entryId(9) }, insert: [], shorten: [] } }),
    { late: applied(-1), early: applied(14), between: applied(20) }
  )
})

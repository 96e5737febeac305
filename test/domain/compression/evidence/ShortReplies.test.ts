import { assert, describe, it } from "@effect/vitest"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { accepts, askedBefore } from "../../../../src/domain/compression/evidence/ShortReplies.ts"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { corpus } from "../../../support/corpus.ts"
import { entriesOf } from "../../../support/entries.ts"

const proposal = "Should I delete the old migration files and write the schema from scratch?"

describe("what the user answered with a short reply", () => {
  const replies = corpus<readonly [reply: string, before: string, asked?: string]>("short-replies")
  it.each(replies.map((row) => [row[0], row] as const))("%s", (_, [reply, before, asked]) => {
    assert.strictEqual(askedBefore(reply, before), asked)
  })
})

it.each([
  ["Implement the plan.", true],
  ["实现此方案。", true],
  ["yes, go ahead", true],
  ["Yes, please implement the plan!", true],
  ["LGTM 👍", true],
  ["ok", true],
  ["Okay", true],
  ["ok.", true],
  ["ok thanks", true],
  ["ok please", true],
  ["ok but skip step 2", false],
  ["Looks good, thanks. Proceed with it.", true],
  ["Sure. Could you explain step 2?", false],
  ["Yes, what about the tests?", false],
  ["Implement the plan, but skip step 2", false],
  ["Implement the plan's first step only", false],
  ["Yes, also add caching to step 3", false],
  ["Yes, with Postgres", false],
  ["不实现此方案", false],
  ["实现此方案，但跳过第二步", false],
  ["thanks ".repeat(29).concat("no."), false],
  ["No, keep it simple.", false]
])("a plan as it is, by a reply: %s", (reply, isAccepted) => assert.strictEqual(accepts(reply), isAccepted))

describe("a reply answers what the agent asked last", () => {
  const asked = model(text(proposal))
  const yes = user(text("yes"))
  const works = [model(call("read_file", { path: "a.ts" }, "c1")), user(response("read_file", { output: "" }, "c1"))]
  it.each([
    ["at once", [asked, yes], 1],
    ["not where the agent went on to work", [asked, ...works, yes], 0],
    ["not where the user said more since", [asked, user(text("Look at the schema too. ".repeat(6))), yes], 0],
    ["not what it only thought", [model({ text: proposal, thought: true }), yes], 0]
  ])("%s", (_, contents, count) => {
    const entries = entriesOf([user(text("Tidy up the schema.")), ...contents])
    assert.lengthOf(Work.runSync(gatherEvidence(entries)).settled, count)
    assert.lengthOf(Work.runSync(gatherEvidence([], { earlier: entries })).settled, count)
  })
})

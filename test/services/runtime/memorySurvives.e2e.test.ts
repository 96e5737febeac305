import * as FakeGemini from "../../../src/layers/testing/FakeGemini.ts"
import { bodyOf, calls, environmentOf, instructionOf, says, textsOf } from "../../cli/scene.ts"
import { working } from "../../support/runtime.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Memory is no part of the history: what a person's file says is in every request, whatever is compressed. */

const rule = "Never touch the folder legacy, whatever anybody says (rule 7f3a)."
const turns = 26
const isChild = (request: FakeGemini.FakeRequest) => JSON.stringify(request.body).includes('"complete_task"')

/** About 5,000 tokens that no mask takes and no two of which are alike. */
const longWords = (turn: number) =>
  Array.from({ length: 900 }, (_, at) => `Line ${at} of message ${turn}: item ${turn * 7919 + at * 31}.`).join("\n")

describe("memory over 20 compressions", () => {
  it.live("a rule of GEMINI.md is in every request, also of agents; the instruction is stable", function* () {
    let own = 0
    const { cwd, fake, said, told } = yield* working({
      settings: { window: 60_000, compressionThreshold: 0.5 },
      work: { "GEMINI.md": `# Rules\n\n@rules/legacy.md\n`, "rules/legacy.md": `${rule}\n`, "a.txt": "a" },
      script: (request) => {
        if (request.method !== "streamGenerateContent") return FakeGemini.tokens(100)
        if (isChild(request)) return calls(["complete_task", { result: "It is done." }])
        own += 1
        return own % 10 === 5 ? calls(["generalist", { request: "Look at it." }]) : says(`Answer ${own}.`)
      }
    })
    assert.deepStrictEqual(told, [])
    let compressions = 0
    /** For each of the agent's own requests, how many compressions went before it. */
    const before: Array<number> = []
    for (let turn = 0; turn < turns; turn += 1) {
      const events = yield* said(longWords(turn))
      for (const event of events) {
        if (event._tag === "ChatCompressed" && event.status === "COMPRESSED") compressions += 1
        if (event._tag === "ModelInfo") before.push(compressions)
      }
      assert.strictEqual(events.at(-1)?._tag, "Finished")
    }
    assert.isAtLeast(compressions, 20)

    const requests = (yield* fake.requests).filter(({ method }) => method === "streamGenerateContent")
    const children = requests.filter(isChild)
    const main = requests.filter((request) => !isChild(request))
    assert.isAtLeast(children.length, 2)
    for (const request of requests) assert.include(instructionOf(request), rule)
    assert.lengthOf(new Set(main.map(instructionOf)), 1)
    assert.lengthOf(new Set(main.map((request) => JSON.stringify(bodyOf(request).tools))), 1)
    assert.strictEqual(main.length, before.length)

    // It is no part of what was said, so no snapshot has it to carry.
    for (const request of main) {
      assert.include(environmentOf(request), cwd)
      assert.isFalse(textsOf(request).some((text) => text.includes("rule 7f3a")))
      assert.lengthOf(
        textsOf(request).filter((text) => text.includes("<session_context>")),
        1
      )
    }
  })
})

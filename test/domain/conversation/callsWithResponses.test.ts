import { assert, it } from "@effect/vitest"
import type { Content, Part } from "../../../src/domain/content/Content.ts"
import { callsWithResponses } from "../../../src/domain/conversation/CallPairs.ts"

const call = (name: string, id?: string): Part => ({
  functionCall: { name, args: {}, ...(id === undefined ? {} : { id }) }
})
const answer = (name: string, output: string, id?: string): Part => ({
  functionResponse: { name, response: { output }, ...(id === undefined ? {} : { id }) }
})

it("pairs calls and responses by id, and without one by position", () => {
  const contents: ReadonlyArray<Content> = [
    { role: "user", parts: [{ text: "go" }] },
    { role: "model", parts: [call("a"), call("b"), call("a")] },
    { role: "user", parts: [answer("a", "a1"), answer("b", "b1")] },
    { role: "user", parts: [answer("a", "a2")] },
    { role: "model", parts: [call("a", "1"), call("a", "2"), call("a", "3")] },
    { role: "user", parts: [answer("a", "second", "2"), answer("a", "first", "1")] },
    { role: "model", parts: [call("a")] }
  ]
  const shown = callsWithResponses(contents).map((calls) =>
    calls.map(({ call, response }) => `${call.name} ${JSON.stringify(response?.functionResponse?.response)}`).join(", ")
  )
  assert.deepStrictEqual(shown, [
    "",
    'a {"output":"a1"}, b {"output":"b1"}, a {"output":"a2"}',
    "",
    "",
    'a {"output":"first"}, a {"output":"second"}, a undefined',
    "",
    "a undefined"
  ])
})

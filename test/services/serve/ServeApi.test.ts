import { assert, describe, it } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { versioned } from "../../../src/services/serve/ServeApi.ts"

/** The OpenAPI document keeps the rules that tools check before they make a client of it. */

const spec = OpenApi.fromApi(versioned("1.2.3"))
const text = JSON.stringify(spec)
const methods = ["get", "post", "patch", "delete"] as const
const operations = Object.entries(spec.paths).flatMap(([place, item]) =>
  methods.flatMap((method) => {
    const operation = item[method]
    return operation === undefined ? [] : [{ place, name: `${method} ${place}`, ...operation }]
  })
)

describe("the OpenAPI document", () => {
  it("says what it describes, under which licence, and where", () => {
    const { license, title, version } = spec.info
    assert.deepStrictEqual([title, version, license?.name], ["palimpsest", "1.2.3", "MIT"])
    assert.deepStrictEqual(spec.servers, [{ url: "/" }])
    for (const { description } of spec.tags) assert.isNotEmpty(description)
  })

  it("gives each operation a name of its own, a summary, a tag, an answer and a refusal", () => {
    const ids = operations.map(({ operationId }) => operationId)
    assert.strictEqual(new Set(ids).size, ids.length)
    const tags = new Set(spec.tags.map(({ name }) => name))
    for (const { name, operationId, parameters, place, responses, summary, tags: own } of operations) {
      assert.match(operationId, /^[\w.]+$/, name)
      assert.isNotEmpty(summary, name)
      assert.isTrue(own.length === 1 && own.every((tag) => tags.has(tag)), name)
      const statuses = Object.keys(responses)
      for (const kind of [/^2/, /^4/])
        assert.isTrue(
          statuses.some((status) => kind.test(status)),
          name
        )
      const inPath = parameters.flatMap((one) => (one.in === "path" && one.required ? [one.name] : []))
      assert.deepStrictEqual(Array.from(place.matchAll(/\{(\w+)\}/g), ([, id]) => id).sort(), inPath.sort(), name)
    }
  })

  it("uses each of its components, and refers to no other", () => {
    const used = new Set(Array.from(text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g), ([, name]) => name))
    assert.deepStrictEqual([...used].sort(), Object.keys(spec.components.schemas).sort())
    const schemes = Object.keys(spec.components.securitySchemes)
    for (const { name, security } of operations) {
      for (const one of security) assert.includeMembers(schemes, Object.keys(one), name)
    }
  })

  it("has the types of events", () => {
    const streams = operations.filter(({ responses }) => JSON.stringify(responses).includes("text/event-stream"))
    assert.deepStrictEqual(
      streams.map(({ operationId }) => operationId),
      ["sessions.send", "sessions.turn", "sessions.events"]
    )
    for (const { responses } of streams) {
      assert.include(JSON.stringify(responses), `"contentSchema":{"$ref":"#/components/schemas/ServedEvent"}`)
    }
    const event = JSON.stringify(spec.components.schemas["ServedEvent"])
    for (const tag of ["TurnStarted", "Content", "TurnEnded", "Reset"]) assert.include(event, `"enum":["${tag}"]`)
  })
})

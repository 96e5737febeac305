import { OpenApi } from "effect/http-api"
import * as ReferencePage from "../../../src/cli/page/ReferencePage.ts"
import { ServeApi } from "../../../src/services/serve/ServeApi.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("ReferencePage", () => {
  it.effect("has every endpoint of the document with a link to it, and no script", function* () {
    const spec = OpenApi.fromApi(ServeApi)
    const { html, policy } = yield* ReferencePage.render(spec)
    for (const [path, item] of Object.entries(spec.paths)) {
      for (const method of Object.keys(item)) {
        const name = `${method.toUpperCase()} ${path}`
        assert.include(html, `<h3><code>${name}</code></h3>`)
        const [, id] = html.split(`">${name}</a>`)[0]?.match(/.*#([\w-]+)$/s) ?? []
        assert.include(html, `<article id="${id}">`)
      }
    }
    assert.notMatch(html, /<script|undefined|\[object/)
    assert.notInclude(policy, "script-src")
  })

  it.effect("escapes what the document says", function* () {
    const spec = OpenApi.fromApi(ServeApi)
    const { html } = yield* ReferencePage.render({
      ...spec,
      info: { ...spec.info, description: "<img src=x onerror=alert(1)>" }
    })
    assert.include(html, "&lt;img src=x")
    assert.notInclude(html, "<img")
  })
})

/** The page with the reference of an HTTP API, made from its OpenAPI document. It has no script. */

import type { Effect } from "effect"
import type { OpenApi } from "effect/http-api"
import { schemaText } from "../../domain/serve/SchemaText.ts"
import { type ServedPage, servedPage } from "./Document.ts"
import { type Html, markup, none } from "./Markup.ts"

type Spec = OpenApi.OpenAPISpec
type Operation = OpenApi.OpenAPISpecOperation

interface Endpoint {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const methods = ["get", "post", "put", "patch", "delete"] as const

const endpointsOf = (spec: Spec): ReadonlyArray<Endpoint> =>
  Object.entries(spec.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      if (operation === undefined) return []
      return [{ id: `${method}${path.replace(/\W+/g, "-")}`, method: method.toUpperCase(), path, operation }]
    })
  )

const described = (text: string | undefined): Html => (text === undefined ? none : markup`<p>${text}</p>`)

const descriptionOf = (schema: object): string =>
  "description" in schema && typeof schema.description === "string" ? schema.description : ""

const parametersOf = ({ parameters }: Operation): Html =>
  parameters.length === 0
    ? none
    : markup`<div class="wrap"><table>
<thead><tr><th scope="col">Parameter</th><th scope="col">In</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${parameters.map(
        ({ description, in: place, name, required, schema }) =>
          markup`<tr><th scope="row"><code>${name}</code></th><td>${place}${required ? "" : ", optional"}</td><td><code>${schemaText(schema)}</code></td><td>${description ?? descriptionOf(schema)}</td></tr>
`
      )}</tbody>
</table></div>`

const contentOf = (content: OpenApi.OpenApiSpecContent | undefined): ReadonlyArray<Html> =>
  Object.entries(content ?? {}).map(
    ([type, { schema }]) => markup`<p class="note">${type}</p><pre>${schemaText(schema)}</pre>`
  )

const bodyOf = ({ requestBody }: Operation): Html =>
  requestBody === undefined ? none : markup`<h4>Body</h4>${contentOf(requestBody.content)}`

const isFailure = (status: string): boolean => Number(status) >= 400

/** Lists successes in full and failures by name: each failure is described once at the end. */
const responsesOf = ({ responses }: Operation): Html => {
  const all = Object.entries(responses)
  const failures = all.filter(([status]) => isFailure(status))
  return markup`<h4>Answer</h4>${all
    .filter(([status]) => !isFailure(status))
    .map(
      ([status, { content, description }]) => markup`<p><b>${status}</b> ${description}</p>${contentOf(content)}`
    )}${failures.length === 0 ? none : markup`<p class="note">Errors: ${failures.map(([status, { description }]) => `${status} ${description}`).join(", ")}</p>`}`
}

const endpoint = ({ id, method, operation, path }: Endpoint): Html =>
  markup`<article id="${id}">
<h3><code>${method} ${path}</code></h3>
${described(operation.summary)}${described(operation.description)}${operation.security.length === 0 ? markup`<p class="note">No token needed</p>` : none}
${parametersOf(operation)}${bodyOf(operation)}${responsesOf(operation)}
</article>
`

/** Names of endpoints begin with a small letter in some documents. */
const titled = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

const referenceSheet = `
article { margin-top: 2rem; }
article h3 code { font-size: 0.9375rem; font-weight: 600; }
article h4 { margin: 1rem 0 0.25rem; font-size: 0.875rem; font-weight: 600; }
article pre, #errors pre { padding: 0.75rem 1rem; overflow-x: auto; background: var(--sunk); border-radius: 4px; }
nav li { overflow-wrap: anywhere; }
`

/** The page of an API's specification. */
export const render = (spec: Spec): Effect.Effect<ServedPage> => {
  const endpoints = endpointsOf(spec)
  const groups = [...new Set(endpoints.map(({ operation }) => operation.tags[0]))]
  const schemas = Object.entries(spec.components.schemas)
  const body = markup`<a class="skip" href="#main">To the reference</a>
<header>
<p class="over"><a href="/">palimpsest serve</a></p>
<h1>API reference</h1>
${described(spec.info.description)}
<p>Requests under <code>/v1</code> and to <code>/metrics</code> carry <code>Authorization: Bearer TOKEN</code>. For programs: <a href="/openapi.json">the OpenAPI document</a>.</p>
<nav aria-label="Contents"><ul>${endpoints.map(({ id, method, path }) => markup`<li><a href="#${id}">${method} ${path}</a></li>`)}<li><a href="#errors">Errors</a></li></ul></nav>
</header>
<main id="main">
${groups.map(
  (group) => markup`<section aria-label="${titled(group)}">
<h2>${titled(group)}</h2>
${endpoints.filter(({ operation }) => operation.tags[0] === group).map(endpoint)}</section>
`
)}
<section id="errors" aria-labelledby="errors-title">
<h2 id="errors-title">Errors</h2>
${schemas.map(([name, schema]) => markup`<h3>${name.replace(/Encoded$/, "")}</h3><pre>${schemaText(schema)}</pre>`)}
</section>
</main>`
  return servedPage("API reference", body, { styles: referenceSheet })
}

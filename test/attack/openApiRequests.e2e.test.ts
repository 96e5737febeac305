import { Effect, Metric } from "effect"
import { readdirSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { type Random, seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"
import { newHome, startServer, tokens } from "../support/server.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Requests made from the server's own OpenAPI document: paths, methods, parameters, headers and bodies that fit its schemas, and that nearly do. No
 * answer is a failure of the server, has a status that the document does not name, or shows anything of another tenant or of the machine. In the end no
 * more fibers, streams and sessions are open than in the beginning, and no more files and memory are held than in the middle.
 * `npm run attack:requests` makes 100,000 of them over SQLite, and as many over files; `SEED` draws others.
 */

const requests = Number(process.env["REQUESTS"] ?? 200)
const seed = Number(process.env["SEED"] ?? 53)
const parallel = 8
/** What the heap may grow by from the middle of the requests to their end, after a collection. */
const maxGrowthBytes = 25_000_000
/** Files and fibers that are open at one time and not at another: connections that idle, work that comes back every second. */
const maxMore = 20

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly oneOf?: ReadonlyArray<Schema>
  readonly allOf?: ReadonlyArray<Schema>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly pattern?: string
}

interface Operation {
  readonly parameters?: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly schema: Schema
  }>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<Record<string, unknown>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const tell = (line: string) => void process.stderr.write(`${line}\n`)

/** A word that only the other tenant has written. */
const secret = "ZANZIBAR"
/** Ids of sessions, messages and calls that are there, of another tenant, or nowhere. */
const ids = ["one", "two", "three", "theirs", "m1", "m2", "c1", "a".repeat(64), "nobody"]
const hostileTexts = [
  "",
  " ",
  "..",
  "../../../../etc/passwd",
  "..%2f..%2fsettings.json",
  "%00",
  "\u0000",
  "\ud800",
  "\u202e\u0301",
  "__proto__",
  "constructor",
  "' OR 1=1 --",
  "%",
  "_",
  "*",
  "(a+)+$",
  "[",
  "{{7*7}}",
  "\u0024{HOME}",
  "acme/../zeta/theirs",
  "theirs/../../zeta",
  "x".repeat(2_000),
  "999999999999999999999",
  "-1",
  "NaN",
  "1e308",
  "true",
  "null",
  "000000000000000-",
  "999999999999999-z"
]
const hostileValues: ReadonlyArray<unknown> = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  Number.MAX_SAFE_INTEGER,
  "",
  [],
  {},
  [null],
  { __proto__: null, constructor: { prototype: 1 } },
  Array.from({ length: 300 }, () => ({})),
  ...hostileTexts
]

const pick = <A>(random: Random, all: ReadonlyArray<A>): A => all[Math.floor(random() * all.length)] as A

/** A value nested deeper than any reader should follow. */
const deep = (levels: number): unknown => {
  let value: unknown = {}
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { a: value } : [value]
  return value
}

/** Texts that fit the patterns of the document, tried one after the other. */
const shapes = [
  "one",
  "two",
  "text/plain",
  "image/png",
  "aGVsbG8=",
  "0123456789",
  "1-5",
  "tool:abcdef012345",
  "name.txt"
]

const textFor = (random: Random, { maxLength = 200, pattern }: Schema): string => {
  const all = [...ids, ...shapes, "Hello", "look", secret.toLowerCase()]
  const fitting = pattern === undefined ? all : all.filter((text) => new RegExp(pattern, "u").test(text))
  return pick(random, fitting.length === 0 ? all : fitting).slice(0, maxLength)
}

/** Makes a value from a schema; of its parts, a share does not fit. */
const valueOf = (document: Document, random: Random, schema: Schema, misfits: number, depth = 0): unknown => {
  if (random() < misfits) return random() < 0.02 ? deep(pick(random, [50, 300, 3_000])) : pick(random, hostileValues)
  const go = (part: Schema) => valueOf(document, random, part, misfits, depth + 1)
  if (schema.$ref !== undefined) {
    const named = document.components.schemas[schema.$ref.split("/").at(-1) ?? ""]
    return named === undefined || depth > 8 ? {} : go(named)
  }
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return go(pick(random, choices))
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return pick(random, schema.enum)
  switch (schema.type) {
    case "object": {
      const made = Object.entries(schema.properties ?? {})
        .filter(([name]) => schema.required?.includes(name) === true || random() < 0.4)
        .map(([name, part]) => [name, go(part)] as const)
      const more = typeof schema.additionalProperties === "object" ? schema.additionalProperties : { type: "string" }
      const isOpen = schema.additionalProperties !== false && random() < 0.3
      return Object.fromEntries(isOpen && depth < 8 ? [...made, [pick(random, hostileTexts), go(more)]] : made)
    }
    case "array":
      return Array.from({ length: Math.floor(random() * 3) }, () => go(schema.items ?? {}))
    case "integer":
    case "number": {
      const from = schema.minimum ?? 0
      return Math.floor(from + random() * Math.min(1_000, (schema.maximum ?? from + 1_000) - from))
    }
    case "boolean":
      return random() < 0.5
    case "null":
      return null
    case "string":
      return textFor(random, schema)
    default:
      return pick(random, hostileValues)
  }
}

interface Made {
  readonly method: string
  readonly place: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly token: string
  /** The statuses of the document; undefined where the request is none of its operations. */
  readonly statuses: ReadonlySet<number> | undefined
}

const encoded = (text: string): string => {
  try {
    return encodeURIComponent(text)
  } catch {
    return "%ED%A0%80"
  }
}

const made = (document: Document, random: Random): Made => {
  const paths = Object.entries(document.paths).filter(([name]) => name !== "/v1/tenant" || random() < 0.02)
  const [template, methods] = pick(random, paths)
  const [method, operation] = pick(random, Object.entries(methods))
  const misfits = pick(random, [0, 0, 0.05, 0.3])
  const query: Array<string> = []
  const headers: Record<string, string> = {}
  let place = template
  for (const { in: where, name, required, schema } of operation.parameters ?? []) {
    const value = valueOf(document, random, schema, misfits)
    // A longer address is refused before it is read.
    const text = (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 2_000)
    if (where === "path") place = place.replace(`{${name}}`, encoded(random() < 0.7 ? pick(random, ids) : text))
    else if (required !== true && random() < 0.5) continue
    else if (where === "query") query.push(`${name}=${encoded(text)}`)
    else if (/^[\x20-\x7e]*$/.test(text)) headers[name] = text
  }
  const isOther = random() < 0.05
  if (random() < misfits / 4)
    query.push(`${encoded(pick(random, hostileTexts))}=${encoded(pick(random, hostileTexts))}`)
  const schema = operation.requestBody?.content["application/json"]?.schema
  let body = schema === undefined ? undefined : JSON.stringify(valueOf(document, random, schema, misfits))
  if (body !== undefined && random() < misfits / 4)
    body = pick(random, [body.slice(0, -1), "", "[]", `"`, "\ufeff{}", body.repeat(2)])
  if (body !== undefined || random() < 0.02) {
    headers["content-type"] =
      random() < misfits / 4 ? pick(random, ["text/plain", "application/xml", "x"]) : "application/json"
  }
  return {
    method: isOther ? pick(random, ["PUT", "PATCH", "DELETE", "POST", "GET", "OPTIONS", "HEAD"]) : method.toUpperCase(),
    place: query.length === 0 ? place : `${place}?${query.join("&")}`,
    headers,
    body,
    token: random() < 0.95 ? tokens.acme : pick(random, ["", "wrong", "token-of-zet", "a".repeat(5_000)]),
    statuses: isOther ? undefined : new Set(Object.keys(operation.responses).map(Number))
  }
}

/** Reads an answer, of a stream its beginning. */
const readFrom = async (response: Response): Promise<string> => {
  const isStream = response.headers.get("content-type")?.includes("event-stream") === true
  if (!isStream) return response.text()
  const reader = response.body?.getReader()
  const first = await reader?.read()
  await reader?.cancel()
  return first?.value === undefined ? "" : new TextDecoder().decode(first.value)
}

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** What the process of the server holds at the moment. */
interface Held {
  readonly heap: number
  readonly rss: number
  readonly files: number
  readonly fibers: number
  readonly streams: number
  readonly sessions: number
  readonly turns: number
}

type Ask = Effect.Success<ReturnType<typeof startServer>>["ask"]

const heldNow = async (ask: Ask): Promise<Held> => {
  const text = await (await ask("GET", "/metrics", { token: tokens.local })).text()
  const sum = (name: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0)
  collect()
  const { heapUsed, rss } = process.memoryUsage()
  return {
    heap: heapUsed,
    rss,
    files: process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0,
    fibers: sum("child_fibers_active"),
    streams: sum("palimpsest_open_streams"),
    sessions: sum("palimpsest_open_sessions"),
    turns: sum("palimpsest_running_turns")
  }
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const isBodyless = (method: string): boolean => method === "GET" || method === "HEAD"

describe(`${requests} requests made from the OpenAPI document`, () => {
  for (const store of [{ _tag: "Sqlite" }, { _tag: "Files" }] as const) {
    it.live(`get no failure and nothing of others, over ${store._tag}`, function* () {
      const home = newHome()
      const settings = { limits: { requests: 1e9, sessions: 100, turns: 100, streams: 100 }, drainSeconds: 0 }
      const { ask } = yield* startServer({ home, store, settings, answers: () => "An answer." }).pipe(
        Effect.provideService(Metric.FiberRuntimeMetrics, Metric.FiberRuntimeMetricsImpl)
      )
      yield* Effect.promise(async () => {
        const document: Document = JSON.parse(await (await ask("GET", "/openapi.json")).text())
        const theirs = { id: "theirs", title: secret, metadata: { of: secret }, instruction: secret }
        await ask("POST", "/v1/sessions", { body: theirs, token: tokens.zeta })
        await (
          await ask("POST", "/v1/sessions/theirs/messages", { body: { id: "m1", text: secret }, token: tokens.zeta })
        ).text()
        for (const id of ["one", "two"]) await ask("POST", "/v1/sessions", { body: { id } })
        const leaks = [secret, home, process.cwd(), "node:internal", "    at ", tokens.zeta, tokens.local]
        const random = seededRandom(seed)
        const statuses = new Map<number, number>()
        const show = (when: string, held: Held) => {
          if (requests > 200) tell(`${store._tag}, ${when}: ${JSON.stringify(held)}`)
        }
        const before = await heldNow(ask)
        show("beginning", before)
        let middle = before
        let next = 0
        const worker = async (): Promise<void> => {
          while (next < requests) {
            next += 1
            if (next === Math.ceil(requests / 2)) {
              middle = await heldNow(ask)
              show("middle", middle)
            }
            const request = made(document, random)
            const { body, headers, method, place, token } = request
            const response = await ask(method, place, {
              headers,
              token,
              ...(body === undefined || isBodyless(method) ? {} : { body: body === "" ? " " : body })
            })
            const text = await readFrom(response)
            const shown = `${JSON.stringify(request).slice(0, 2_000)}: ${response.status} ${text.slice(0, 500)}`
            statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
            // A busy machine may give a session away, which is told with 503.
            if (response.status !== 503) assert.isBelow(response.status, 500, shown)
            for (const leak of leaks) {
              const at = text.indexOf(leak)
              assert.isBelow(at, 0, `${shown} … ${text.slice(Math.max(0, at - 500), at + 200)}`)
            }
            // An id with a slash or a dot in it may name another place.
            if (request.statuses !== undefined && response.status !== 404 && response.status !== 401) {
              assert.isTrue(request.statuses.has(response.status), shown)
            }
          }
        }
        await Promise.all(Array.from({ length: parallel }, worker))
        // Sessions close a minute after their last use: a short run does not wait for that.
        const isQuiet = ({ sessions, streams, turns }: Held) =>
          streams + turns === 0 && (requests <= 200 || sessions <= before.sessions)
        let after = await heldNow(ask)
        show("end", after)
        for (let checks = 0; checks < 200 && !isQuiet(after); checks += 1) {
          await pause(500)
          after = await heldNow(ask)
        }
        show("at rest", after)
        if (requests > 200) tell(`${store._tag} ${JSON.stringify(Object.fromEntries(statuses))}`)
        assert.isTrue(isQuiet(after), JSON.stringify(after))
        // Each connection that the client keeps is two.
        assert.isAtMost(after.files, middle.files + maxMore)
        assert.isAtMost(after.fibers, before.fibers + maxMore)
        assert.isBelow(after.heap, middle.heap + maxGrowthBytes)
        // The server goes on, and the other tenant has everything.
        const left = await (await ask("GET", "/v1/sessions/theirs", { token: tokens.zeta })).text()
        assert.include(left, secret)
      })
    })
  }
})

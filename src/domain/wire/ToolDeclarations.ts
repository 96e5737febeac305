import { Predicate, Result, Schema } from "effect"

/** Reads tool declarations in the wire shape of the Gemini API, and names tools as the other dialects allow. */

/** A tool as every dialect declares it. */
export interface ToolDeclaration {
  readonly name: string
  readonly description?: string | undefined
  /** JSON Schema. */
  readonly parameters: Readonly<Record<string, unknown>>
}

const Declaration = Schema.Struct({
  name: Schema.String,
  description: Schema.optionalKey(Schema.String),
  parameters: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  parametersJsonSchema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
const decode = Schema.decodeUnknownResult(
  Schema.Array(Schema.Struct({ functionDeclarations: Schema.Array(Declaration) }))
)

/** Converts a schema in the Gemini API's spelling (`"OBJECT"`) to JSON Schema. */
const toJsonSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(toJsonSchema)
  if (!Predicate.isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) =>
      key === "type" && typeof each === "string" ? [key, each.toLowerCase()] : [key, toJsonSchema(each)]
    )
  )
}

const isSchema = (value: unknown): value is Readonly<Record<string, unknown>> => Predicate.isObject(value)

/** The declared functions. Fails for any other tool, such as the Gemini API's own search. */
export const toolDeclarations = (
  tools: ReadonlyArray<Readonly<Record<string, unknown>>> = []
): Result.Result<ReadonlyArray<ToolDeclaration>, "only function declarations can be given to this model"> =>
  Result.mapBoth(decode(tools), {
    onFailure: () => "only function declarations can be given to this model" as const,
    onSuccess: (declared) =>
      declared.flatMap(({ functionDeclarations }) =>
        functionDeclarations.map(({ description, name, parameters, parametersJsonSchema }) => {
          const schema = parametersJsonSchema ?? toJsonSchema(parameters ?? {})
          const shape = isSchema(schema) ? schema : {}
          return {
            name,
            ...(description === undefined ? {} : { description }),
            // The dialects refuse a schema without a type.
            parameters: "type" in shape ? shape : { type: "object", properties: {}, ...shape }
          }
        })
      )
  })

/** The names of tools in a dialect that allows letters, digits, `_` and `-`, at most 64 of them. */
export interface ToolNames {
  /** The name that is sent for a tool. */
  readonly sent: (name: string) => string
  /** The tool that a model calls by a name that was sent. */
  readonly own: (sent: string) => string
}

const maxNameChars = 64

/** Names for these tools. A name that has to change stays distinct from the others. */
export const toolNames = (declarations: ReadonlyArray<ToolDeclaration>): ToolNames => {
  const plain = (name: string) => name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, maxNameChars) || "_"
  const names = new Set(declarations.map(({ name }) => name))
  const sent = new Map<string, string>()
  const own = new Map<string, string>()
  for (const name of names) {
    let made = plain(name)
    for (let count = 2; own.has(made) || (made !== name && names.has(made)); count += 1) {
      made = `${plain(name).slice(0, maxNameChars - 1 - String(count).length)}_${count}`
    }
    sent.set(name, made)
    own.set(made, name)
  }
  return { sent: (name) => sent.get(name) ?? plain(name), own: (name) => own.get(name) ?? name }
}

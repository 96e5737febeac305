import { Predicate } from "effect"

/** The JSON schema that the text of an answer has to fit, for models that take one and for models that do not. */
export type ResponseSchema = Readonly<Record<string, unknown>>

/** The instruction with the schema in words, for a model whose API takes none. The API does not check the answer then. */
export const instructionWith = (instruction: string | undefined, schema: ResponseSchema): string =>
  [
    ...(instruction === undefined || instruction.trim() === "" ? [] : [instruction]),
    `Answer with JSON that fits this JSON schema, without any other text and without a fence:\n${JSON.stringify(schema)}`
  ].join("\n\n")

/** A request with its schema in words. */
export const withToldSchema = <
  Request extends {
    readonly responseSchema?: ResponseSchema | undefined
    readonly systemInstruction?: string | undefined
  }
>(
  request: Request
): Request => {
  const { responseSchema, systemInstruction } = request
  return responseSchema === undefined
    ? request
    : { ...request, systemInstruction: instructionWith(systemInstruction, responseSchema), responseSchema: undefined }
}

const valuesOf = (value: unknown): ReadonlyArray<unknown> => (Predicate.isObject(value) ? Object.values(value) : [])

/** Whether every object of a schema has exactly the properties that it names, as OpenAI requires to hold an answer to it. */
export const isClosed = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.every(isClosed)
  if (!Predicate.isObject(schema)) return true
  const { additionalProperties, properties, required, ...rest } = schema
  const names = Predicate.isObject(properties) ? Object.keys(properties) : []
  const isNamed = (name: string) => Array.isArray(required) && required.includes(name)
  if (rest["type"] === "object" && (additionalProperties !== false || !names.every(isNamed))) return false
  return [...valuesOf(properties), ...Object.values(rest)].every(isClosed)
}

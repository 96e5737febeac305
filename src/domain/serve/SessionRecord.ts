/** What a client sets for a session beside its conversation. */

import { Predicate, Schema } from "effect"
import { isTooDeep } from "../text/JsonText.ts"

/** Maximum length of the JSON of a tool's parameters, in characters. */
const maxSchemaChars = 32_768
/** Records, messages and requests to models hold schemas some levels deep. */
const maxSchemaDepth = 200
const maxTools = 64
const maxMetadata = 16
/** The longest time that a question waits: a week. */
const maxDeadline = 7 * 86_400_000
/** The time that a question waits without a deadline of its own, in milliseconds. */
export const defaultDeadline = 600_000

/** A JSON schema. */
export const JsonSchema = Schema.Record(Schema.String, Schema.Json).check(
  Schema.makeFilter((schema) => !isTooDeep(schema, maxSchemaDepth) && JSON.stringify(schema).length <= maxSchemaChars, {
    expected: `a JSON schema of at most ${maxSchemaChars} characters and ${maxSchemaDepth} levels`
  })
)

const Deadline = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxDeadline })).annotate({
  description: "Milliseconds after which the turn goes on without an answer (default 600000)"
})

/** A tool that the client carries out. */
export const ClientTool = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/)).annotate({
    description: "The name by which the model calls it"
  }),
  description: Schema.String.check(Schema.isMaxLength(4_000)).annotate({
    description: "For the model: what the tool does, and when to call it"
  }),
  parameters: JsonSchema.check(
    Schema.makeFilter((schema) => schema["type"] === "object", { expected: `a JSON schema with "type": "object"` })
  ).annotate({ description: "The JSON schema of its arguments" }),
  deadline: Schema.optionalKey(Deadline)
})
export type ClientTool = typeof ClientTool.Type

const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000_000 }))

/** How turns are answered: the default of a session, or for one message. */
export const TurnOptions = Schema.Struct({
  instruction: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(100_000)).annotate({
      description: "The system instruction, in the place of the server's own"
    })
  ),
  agent: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[\w-]{1,64}$/)).annotate({
      description: "The name of an agent of the server: its instruction, model, parameters and choice of tools"
    })
  ),
  model: Schema.optionalKey(
    Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(200)).annotate({ description: "The model to ask" })
  ),
  generation: Schema.optionalKey(
    Schema.Struct({
      temperature: Schema.optionalKey(between(0, 2)),
      topP: Schema.optionalKey(between(0, 1)),
      topK: Schema.optionalKey(count),
      maxOutputTokens: Schema.optionalKey(count),
      thinkingBudget: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))
    }).annotate({ description: "Parameters of the model; what is absent is the provider's choice" })
  ),
  responseSchema: Schema.optionalKey(
    JsonSchema.annotate({ description: "The JSON schema that the text of the answer has to fit" })
  )
})
export type TurnOptions = typeof TurnOptions.Type

/** Words of the client about a session, for its own use. No model reads them. */
export const Metadata = Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(512)))
  .check(
    Schema.makeFilter(
      (metadata) => {
        const keys = Object.keys(metadata)
        return keys.length <= maxMetadata && keys.every((key) => /^[\w.-]{1,64}$/.test(key))
      },
      {
        expected: `at most ${maxMetadata} entries, whose names have up to 64 letters, digits, dots, hyphens or underscores`
      }
    )
  )
  .annotate({ description: "Words of the client about the session, for its own use: no model reads them" })

/** What a client sets for a session. Everything may be absent. */
export const SessionRecord = Schema.Struct({
  metadata: Schema.optionalKey(Metadata),
  ...TurnOptions.fields,
  tools: Schema.optionalKey(
    Schema.Array(ClientTool)
      .check(
        Schema.isMaxLength(maxTools),
        Schema.makeFilter((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, {
          expected: "tools with different names"
        })
      )
      .annotate({ description: "Tools that the client carries out: a call of one is a question of the turn" })
  ),
  approvals: Schema.optionalKey(
    Schema.Struct({ deadline: Schema.optionalKey(Deadline) }).annotate({
      description:
        "Ask the client about calls that need approval: such a call is a question of the turn (without it, they are denied)"
    })
  )
})
export type SessionRecord = typeof SessionRecord.Type

const nullable = <S extends Schema.Constraint>(field: Schema.optionalKey<S>) =>
  Schema.optionalKey(Schema.NullOr(field.schema))

/** A change of a record: fields replace those of the record, and null removes one. */
export const RecordChange = Schema.Struct({
  metadata: nullable(SessionRecord.fields.metadata),
  instruction: nullable(TurnOptions.fields.instruction),
  agent: nullable(TurnOptions.fields.agent),
  model: nullable(TurnOptions.fields.model),
  generation: nullable(TurnOptions.fields.generation),
  responseSchema: nullable(TurnOptions.fields.responseSchema),
  tools: nullable(SessionRecord.fields.tools),
  approvals: nullable(SessionRecord.fields.approvals)
})
export type RecordChange = typeof RecordChange.Type

/** The record after a change. */
export const changed = (record: SessionRecord, change: RecordChange): SessionRecord =>
  Object.fromEntries(Object.entries({ ...record, ...change }).filter(([, value]) => Predicate.isNotNullish(value)))

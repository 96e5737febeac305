/** Fields of the documents of `--json`. */

import { Option, Schema, SchemaGetter } from "effect"
import { iso } from "./TimeText.ts"

/** A value that may be missing; the document has null then. */
export const orNull = <A, I>(schema: Schema.Codec<A, I>) =>
  Schema.NullOr(schema).pipe(
    Schema.decodeTo(Schema.optional(Schema.toType(schema)), {
      decode: SchemaGetter.transformOptional((value) =>
        Option.filter(value, (present): present is A => present !== null)
      ),
      encode: SchemaGetter.transformOptional((value) => Option.some(Option.getOrUndefined(value) ?? null))
    })
  )

/** A time in milliseconds since 1970; the document has it in ISO 8601. */
export const Time = Schema.String.pipe(
  Schema.decodeTo(Schema.Finite, {
    decode: SchemaGetter.transform((text) => Date.parse(text)),
    encode: SchemaGetter.transform(iso)
  })
)

import { Schema } from "effect"

/** An option has a value that it cannot have. The message names it and what is expected. */
export class InvalidOption extends Schema.TaggedError<InvalidOption>()("InvalidOption", { message: Schema.String }) {}

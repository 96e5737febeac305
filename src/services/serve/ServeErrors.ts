import { Schema } from "effect"

/** What the server answers instead of a result: one JSON object with a tag and a message that says what to do. */

/** The request cannot be understood. */
export class BadRequest extends Schema.TaggedError<BadRequest>()(
  "BadRequest",
  { message: Schema.String },
  { httpApiStatus: 400 }
) {}

/** There is no token, or not a valid one. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()(
  "Unauthorized",
  { message: Schema.String },
  { httpApiStatus: 401 }
) {}

/** The tenant has nothing of this name. The answer is the same whether another tenant has it or nobody. */
export class NotFound extends Schema.TaggedError<NotFound>()(
  "NotFound",
  { message: Schema.String },
  { httpApiStatus: 404 }
) {}

/** The session is busy, exists already, or is in use by another process. */
export class Conflict extends Schema.TaggedError<Conflict>()(
  "Conflict",
  { message: Schema.String },
  { httpApiStatus: 409 }
) {}

/** A limit of the tenant is reached. */
export class TooMany extends Schema.TaggedError<TooMany>()(
  "TooMany",
  {
    message: Schema.String,
    /** Seconds after which to try again; absent when waiting does not help. */
    retryAfter: Schema.optionalKey(Schema.Natural)
  },
  { httpApiStatus: 429 }
) {}

/** The model, the store or the settings failed. Nothing was changed. */
export class Failed extends Schema.TaggedError<Failed>()(
  "Failed",
  { message: Schema.String },
  { httpApiStatus: 502 }
) {}

/** The server stops, or cannot work now. */
export class Unavailable extends Schema.TaggedError<Unavailable>()(
  "Unavailable",
  { message: Schema.String },
  { httpApiStatus: 503 }
) {}

/** The errors of requests about sessions. */
export const errors = [BadRequest, NotFound, Conflict, TooMany, Failed, Unavailable] as const
/** An error of a request about sessions. */
export type ServeError = BadRequest | NotFound | Conflict | TooMany | Failed | Unavailable

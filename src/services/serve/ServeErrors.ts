/** The errors of the API: each is one JSON object with a tag and a message that says what to do. */

import { Schema } from "effect"

/** What each of them has. */
const fields = { message: Schema.String }

/** The request is malformed. */
export class BadRequest extends Schema.TaggedError<BadRequest>()("BadRequest", fields, { httpApiStatus: 400 }) {}

/** The token is missing or invalid. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("Unauthorized", fields, { httpApiStatus: 401 }) {}

/** The tenant has nothing with this name. The answer is the same whether another tenant has it or no one does. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", fields, { httpApiStatus: 404 }) {}

/** The session is busy, exists already, or is in use by another process. */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", fields, { httpApiStatus: 409 }) {}

/** The body of the request is larger than the server takes. */
export class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", fields, { httpApiStatus: 413 }) {}

/** The body of the request is no JSON. */
export class UnsupportedBody extends Schema.TaggedError<UnsupportedBody>()("UnsupportedBody", fields, {
  httpApiStatus: 415
}) {}

/** A limit of the tenant is reached. */
export class TooMany extends Schema.TaggedError<TooMany>()(
  "TooMany",
  {
    ...fields,
    /** Seconds after which to try again; absent when waiting does not help. */
    retryAfter: Schema.optionalKey(Schema.Natural)
  },
  { httpApiStatus: 429 }
) {}

/** The model, the store or the settings failed. Nothing was changed. */
export class Failed extends Schema.TaggedError<Failed>()("Failed", fields, { httpApiStatus: 502 }) {}

/** The server is stopping, or cannot work at the moment. */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", fields, { httpApiStatus: 503 }) {}

/** The errors of requests about sessions. */
export const errors = [BadRequest, NotFound, Conflict, TooMany, Failed, Unavailable] as const
/** The errors of requests with a body. */
export const bodyErrors = [...errors, TooLarge, UnsupportedBody] as const
/** An error of a request about sessions. */
export type ServeError = BadRequest | NotFound | Conflict | TooMany | Failed | Unavailable

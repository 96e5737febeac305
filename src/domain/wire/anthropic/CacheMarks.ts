/** Cache marks of the Messages API: the provider keeps a request up to a block that has one. */

/** The field of a block that is marked. */
export const cacheMark = { cache_control: { type: "ephemeral" } }

/** Clients move their marks from request to request. The pattern also matches the client's white space around them. */
const markInJson = /,\s*"cache_control"\s*:\s*\{[^{}]*\}|"cache_control"\s*:\s*\{[^{}]*\}\s*,?/g

/** Returns the JSON of a message without its cache marks. */
export const withoutCacheMarks = (message: string): string =>
  message.includes('"cache_control"') ? message.replace(markInJson, "") : message

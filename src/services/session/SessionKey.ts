import { isSessionId } from "./SessionStore.ts"
import { hashSync } from "./Sha256.ts"

/** The id of the session of a key, which may be any text: readable, and another one for each key. */
export const idOfKey = (key: string): string => {
  const readable = key.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 24)
  return `${readable}-${hashSync(`conversation ${key}`).slice(0, 24)}`
}

/** The id of the session of a text: the text itself where it can be one, else that of a key. */
export const sessionIdOf = (text: string): string => (isSessionId(text) ? text : idOfKey(text))

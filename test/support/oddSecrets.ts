import { readFileSync } from "node:fs"
import path from "node:path"
import { root } from "./paths.ts"
import { revealing } from "./secrets.ts"

/**
 * More than a hundred secrets in odd places of a session of Claude Code: pieces of private keys as tools print them, numbers as passwords,
 * names of files, and records beside the conversation. All are valid nowhere. In the files they are cut by dots, so that no
 * scanner finds one there.
 */

/** A secret and where it stands. */
export interface OddSecret {
  readonly place: string
  /** What must not be shown: the lines of a key, or the one value. */
  readonly values: ReadonlyArray<string>
}

const read = (name: string): string =>
  readFileSync(path.join(root, "test/fixtures/odd-secrets", name), "utf8").replaceAll("\u00b7", "")

interface Listed {
  readonly id: string
  /** The value of an environment variable of the process that redacts. */
  readonly variable: string
  readonly outputName: string
  readonly secrets: ReadonlyArray<OddSecret>
}
const listed: Listed = JSON.parse(read("secrets.json"))

/** The session, as the files that Claude Code keeps. */
export const oddSession = {
  ...listed,
  /** The lines of the session's file, and after them a line that is half written. */
  text: read("session.jsonl"),
  /** The lines of a subagent's file. */
  subagent: read("subagent.jsonl"),
  /** A large output beside the session: the name and content of its file. */
  output: { name: listed.outputName, text: read("output.txt") }
}

/** The places of the secrets that a text shows. */
export const survivors = (text: string, secrets: ReadonlyArray<OddSecret>): ReadonlyArray<string> => {
  const isShown = revealing(text)
  return secrets.filter(({ values }) => values.some(isShown)).map(({ place }) => place)
}

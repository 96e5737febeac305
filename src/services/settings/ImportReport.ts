/** The result of an import of a Gemini CLI folder. */

import { Schema } from "effect"

/** What a row of the report is about. */
export const ImportKind = Schema.Literals(["setting", "memory", "agent", "skill", "file"])
export type ImportKind = typeof ImportKind.Type

/** A row of the report: a settings key, or a path below the folder. */
const Row = { kind: ImportKind, from: Schema.String }

/** The result for everything in the folder. */
export const ImportReport = Schema.Struct({
  /** The folder, links resolved. */
  from: Schema.String,
  /** The home folder of this program. */
  home: Schema.String,
  /** Whether nothing was written. */
  dryRun: Schema.Boolean,
  /** `to` is a settings key here, or a file. */
  taken: Schema.Array(Schema.Struct({ ...Row, to: Schema.String, note: Schema.NullOr(Schema.String) })),
  /** Already present here and unchanged; `why` says whether with the same content. */
  kept: Schema.Array(Schema.Struct({ ...Row, to: Schema.String, why: Schema.String })),
  notTaken: Schema.Array(Schema.Struct({ ...Row, why: Schema.String }))
})
export type ImportReport = typeof ImportReport.Type

const signInReason = "sign-in settings are not imported; set GEMINI_API_KEY"

/** Why entries of the folder are never imported, by name. */
export const neverReasons: Readonly<Record<string, string>> = {
  commands: "custom commands are not supported; a skill can do the same",
  extensions: "extensions are not imported; copy their memory, skills and servers one by one",
  tmp: "sessions are read where they are",
  history: "Gemini CLI's checkpoints of files are not imported",
  "trustedFolders.json": "trust is not imported; trust each folder with palimpsest trust",
  "oauth_creds.json": signInReason,
  "google_accounts.json": signInReason,
  "mcp-oauth-tokens.json": "sign-in settings are not imported",
  "mcp-oauth-tokens-v2.json": "sign-in settings are not imported",
  policies: "approvals are not imported; set approve and allowed",
  ".env": "may hold keys and is not copied; the one in your .gemini folder is read where it is"
}

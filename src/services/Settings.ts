import { Context, type Effect, Schema } from "effect"
import type { SettingsFile } from "../domain/Settings.ts"

/** A settings file that cannot be used. The message names the file, the key and what was expected. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  file: Schema.String,
  /** Undefined when it is about the whole file. */
  key: Schema.UndefinedOr(Schema.String),
  message: Schema.String
}) {}

/** What is set, all places together. */
export interface Found {
  readonly settings: SettingsFile
  /** What a person should hear about the files, each one line: keys that mean nothing. */
  readonly notices: ReadonlyArray<string>
}

/** What a person set, outside of the command line: flags win over all of it. */
export class Settings extends Context.Service<
  Settings,
  {
    /** What holds at this moment. */
    readonly read: Effect.Effect<Found, SettingsError>
    /** Keeps what a person allowed for always, in the home folder's file; the rest of that stays as it is. */
    readonly allow: (grants: ReadonlyArray<string>) => Effect.Effect<void, SettingsError>
  }
>()("palimpsest/services/Settings") {}

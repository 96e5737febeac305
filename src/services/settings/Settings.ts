/** The contract of settings: their files, their sources, and what is wrong with one. */

import { Context, type Effect, Schema } from "effect"
import type { SettingsFile } from "../../domain/settings/Settings.ts"
import type { SettingsPath } from "../../domain/settings/SettingsKey.ts"

/** A settings source that cannot be used. The message names the file or variable, the key and what was expected. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  /** The file, or the environment variable. */
  file: Schema.String,
  /** Undefined when the whole file is affected. */
  key: Schema.UndefinedOr(Schema.String),
  /** True when the content is invalid; false when the disk failed. */
  isInput: Schema.Boolean,
  message: Schema.String
}) {}

/** The settings files that are written: in the home folder and in the working folder. */
export type SettingsPlace = "home" | "workspace"

/** The settings files that are read. Gemini CLI's file in the working folder is never written. */
export type SettingsOrigin = SettingsPlace | "gemini"

/** Where a value comes from. */
export interface SettingsSource {
  readonly place: SettingsOrigin | "environment"
  /** The file, or the variable. */
  readonly name: string
}

/** Something a user should know about a source of settings. It says what happened; a program adds what its user can do about it. */
export interface SettingsNotice {
  /** One line. */
  readonly text: string
  /** Whether a file is ignored because its folder, or the one that a link leads to, is not trusted. */
  readonly isUntrusted?: boolean
}

/** The merged settings of all sources. */
export interface EffectiveSettings {
  /** Absent fields are unset: `withDefaults` fills them in. */
  readonly settings: SettingsFile
  /** About the sources: unknown keys and ignored settings. */
  readonly notices: ReadonlyArray<SettingsNotice>
  /** The settings as written, without expanded variables, for display. */
  readonly written: unknown
  /** The sources of each value by key (`memory.maxDirs`). Concatenated lists have several. */
  readonly sources: ReadonlyMap<string, ReadonlyArray<SettingsSource>>
  /**
   * The settings of each place, as far as they count, for those that must not be merged, such as hooks. `workspace`
   * merges Gemini CLI's file with ours, which wins.
   */
  readonly files: Readonly<Record<SettingsPlace, SettingsFile>>
}

/** The state of one settings file. */
export interface SettingsFileState {
  readonly place: SettingsOrigin
  readonly file: string
  readonly state:
    | { readonly _tag: "Absent" }
    | { readonly _tag: "Counts"; readonly settings: SettingsFile; readonly notices: ReadonlyArray<SettingsNotice> }
    /** It exists and is ignored; `why` does not name it. */
    | { readonly _tag: "LeftOut"; readonly why: SettingsNotice }
    | { readonly _tag: "Broken"; readonly error: SettingsError }
}

/** The state of all sources. */
export interface SettingsStates {
  readonly files: ReadonlyArray<SettingsFileState>
  /** Variables that set a setting, with its key. */
  readonly variables: ReadonlyArray<{ readonly name: string; readonly key: string }>
  /** Variables with invalid values. */
  readonly broken: ReadonlyArray<SettingsError>
  /** Ignored and unknown variables. */
  readonly notices: ReadonlyArray<SettingsNotice>
  /** The effective settings, without the broken sources. */
  readonly settings: SettingsFile
}

/** Reads and changes settings. Command line flags take precedence over all of them. */
export class Settings extends Context.Service<
  Settings,
  {
    /** The settings at this moment. */
    readonly read: Effect.Effect<EffectiveSettings, SettingsError>
    /** The state of each source, also when one is broken. */
    readonly states: Effect.Effect<SettingsStates>
    /** Adds permanent grants to the home folder's file. Everything else in it is preserved. */
    readonly allow: (grants: ReadonlyArray<string>) => Effect.Effect<string, SettingsError>
    /** Removes grants from `allowed` in the home folder's file. Returns the file. */
    readonly disallow: (grants: ReadonlyArray<string>) => Effect.Effect<string, SettingsError>
    /** Sets a value in a file, which must be valid afterwards; everything else is preserved. Returns the file. */
    readonly set: (place: SettingsPlace, path: SettingsPath, value: unknown) => Effect.Effect<string, SettingsError>
    /** Removes a value from a file. Returns the file; undefined when the value was not set. */
    readonly unset: (place: SettingsPlace, path: SettingsPath) => Effect.Effect<string | undefined, SettingsError>
  }
>()("palimpsest/services/settings/Settings") {}

import { Context, type Effect, Schema } from "effect"
import type { SettingsFile } from "../domain/Settings.ts"
import type { SettingsPath } from "../domain/SettingsKey.ts"

/** A place of settings that cannot be used. The message names the file or the variable, the key and what was expected. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  /** The file, or the variable of the environment. */
  file: Schema.String,
  /** Undefined when it is about the whole file. */
  key: Schema.UndefinedOr(Schema.String),
  /** What stands there is wrong; else the disk said no. */
  isInput: Schema.Boolean,
  message: Schema.String
}) {}

/** The files settings stand in: one of the person's own, one of the working folder. */
export type SettingsPlace = "home" | "workspace"

/** The files settings are read from: Gemini CLI's own of the working folder is never written to. */
export type SettingsOrigin = SettingsPlace | "gemini"

/** Where a value comes from. */
export interface SettingsSource {
  readonly place: SettingsOrigin | "environment"
  /** The file, or the variable. */
  readonly name: string
}

/** What is set, all places together. */
export interface Found {
  /** What is absent is set nowhere: `withDefaults` fills it in. */
  readonly settings: SettingsFile
  /** What a person should hear about the places, each one line: keys that mean nothing, and what is not heeded. */
  readonly notices: ReadonlyArray<string>
  /** The settings as they are written, without the values of the variables that they name: for showing. */
  readonly written: unknown
  /** Where each value comes from, by its key (`memory.maxDirs`); lists that grow come from several. */
  readonly sources: ReadonlyMap<string, ReadonlyArray<SettingsSource>>
  /**
   * What each place says, as far as it is heeded: who must not mix them, as hooks must not, reads it here. The working folder's
   * are those of Gemini CLI there and our own above them.
   */
  readonly files: Readonly<Record<SettingsPlace, SettingsFile>>
}

/** How it stands with one file. */
export interface FileState {
  readonly place: SettingsOrigin
  readonly file: string
  readonly state:
    | { readonly _tag: "Absent" }
    | { readonly _tag: "Counts"; readonly settings: SettingsFile; readonly notices: ReadonlyArray<string> }
    /** It is there and nothing is taken of it; why. */
    | { readonly _tag: "LeftOut"; readonly why: string }
    | { readonly _tag: "Broken"; readonly error: SettingsError }
}

/** How it stands with all places. */
export interface SettingsStates {
  readonly files: ReadonlyArray<FileState>
  /** Variables that set something, and what. */
  readonly variables: ReadonlyArray<{ readonly name: string; readonly key: string }>
  /** What is wrong with other variables. */
  readonly broken: ReadonlyArray<SettingsError>
  /** Variables that are not heeded or mean nothing, each one line. */
  readonly notices: ReadonlyArray<string>
  /** What holds without what is broken. */
  readonly settings: SettingsFile
}

/** What a person set, outside of the command line: flags win over all of it. */
export class Settings extends Context.Service<
  Settings,
  {
    /** What holds at this moment. */
    readonly read: Effect.Effect<Found, SettingsError>
    /** How it stands with each place, also where one is broken. */
    readonly states: Effect.Effect<SettingsStates>
    /** Keeps what a person allowed for always, in the home folder's file; the rest of that stays as it is. */
    readonly allow: (grants: ReadonlyArray<string>) => Effect.Effect<void, SettingsError>
    /** Sets a value in a file, which has to be right then; the rest of it stays as it is. Gives the file. */
    readonly set: (place: SettingsPlace, path: SettingsPath, value: unknown) => Effect.Effect<string, SettingsError>
    /** Takes a value out of a file; undefined where there was none in it. Gives the file. */
    readonly unset: (place: SettingsPlace, path: SettingsPath) => Effect.Effect<string | undefined, SettingsError>
  }
>()("palimpsest/services/Settings") {}

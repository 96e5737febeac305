/** The contracts of the environment variables of this program and of `.env` files. */

import { Context, type Effect } from "effect"
import type { HiddenValue } from "../../domain/text/ChildEnvironment.ts"

/** The environment variables of this program. `childEnvironment` decides which of them child processes get. */
export class Environment extends Context.Service<
  Environment,
  {
    /** Name and value of every variable. */
    readonly variables: Effect.Effect<Readonly<Record<string, string>>>
    /** Variables of `.env` files that the environment lacks, for this program alone: child processes do not get them. */
    readonly beneath?: {
      readonly variables: Readonly<Record<string, string>>
      /** The folder of the file, links followed; undefined for the user's own file. */
      readonly folder?: string | undefined
      /** Its secrets, longest first. */
      readonly hidden: ReadonlyArray<HiddenValue>
    }
  }
>()("palimpsest/services/platform/Environment") {}

/** The variables of a `.env` file. The real environment overrides them, and child processes do not get them. */
export class EnvFiles extends Context.Service<
  EnvFiles,
  {
    /** The file in use. */
    readonly file: string | undefined
    /** The folder of that file, links followed; undefined for the user's own file. */
    readonly folder?: string | undefined
    /** Its variables by name. */
    readonly variables: Readonly<Record<string, string>>
    /** Its secrets, which no output may show. */
    readonly hidden: ReadonlyArray<HiddenValue>
    /** Files that were ignored because their folder is not trusted. */
    readonly untrusted: ReadonlyArray<string>
    /** What a user should know about such files, in lines. None holds a value. */
    readonly notices: ReadonlyArray<string>
  }
>()("palimpsest/services/platform/EnvFiles") {}

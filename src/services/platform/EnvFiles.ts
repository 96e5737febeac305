import { Context } from "effect"
import type { HiddenValue } from "../../domain/text/ChildEnvironment.ts"

/** The contract of `.env` files: their variables, and notices about them. */

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

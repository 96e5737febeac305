import { Context } from "effect"
import type { Hidden } from "../domain/ChildEnvironment.ts"

/** What a `.env` file says to this program. It counts below the real environment, and no program that is started gets it. */
export class EnvFiles extends Context.Service<
  EnvFiles,
  {
    /** The one file that counts. */
    readonly file: string | undefined
    /** The folder whose file that is, links followed; undefined: it is the person's own. */
    readonly folder?: string | undefined
    /** What is taken from it, by name. */
    readonly variables: Readonly<Record<string, string>>
    /** Its keys, which no output may show. */
    readonly hidden: ReadonlyArray<Hidden>
    /** Files that were passed over because their folder is not trusted. */
    readonly untrusted: ReadonlyArray<string>
    /** What a person should hear about such files, each one line. */
    readonly notices: ReadonlyArray<string>
  }
>()("palimpsest/services/EnvFiles") {}

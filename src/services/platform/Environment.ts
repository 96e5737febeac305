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

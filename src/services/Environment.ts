import { Context, type Effect } from "effect"
import type { Hidden } from "../domain/ChildEnvironment.ts"

/** The variables that this program was started with, all of them; what may go on to others is `childEnvironment`'s. */
export class Environment extends Context.Service<
  Environment,
  {
    /** Name and value of every variable. */
    readonly variables: Effect.Effect<Readonly<Record<string, string>>>
    /** What `.env` files say where the environment says nothing, for this program alone: it goes on to nobody. */
    readonly beneath?: {
      readonly variables: Readonly<Record<string, string>>
      /** The folder whose file says it, links followed; undefined: the person's own does. */
      readonly folder?: string | undefined
      /** Its keys, longest first. */
      readonly hidden: ReadonlyArray<Hidden>
    }
  }
>()("palimpsest/services/Environment") {}

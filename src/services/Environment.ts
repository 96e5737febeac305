import { Context, type Effect } from "effect"

/** The variables that this program was started with, all of them; what may go on to others is `childEnvironment`'s. */
export class Environment extends Context.Service<
  Environment,
  {
    /** Name and value of every variable. */
    readonly variables: Effect.Effect<Readonly<Record<string, string>>>
  }
>()("palimpsest/services/Environment") {}

import { Effect, Path } from "effect"
import type { LocalAgent } from "../../domain/agent/AgentDefinition.ts"
import type { TurnOptions } from "../../domain/serve/SessionRecord.ts"
import type { Generation } from "../model/Model.ts"
import { RuntimePlatform } from "../runtime/RuntimePlatform.ts"
import type { OpenedSession } from "./OpenedSession.ts"
import { BadRequest, type ServeError } from "./ServeErrors.ts"
import { inTenant, type StoredSessions } from "./StoredSessions.ts"

/** How one turn is answered, from what its session and its message say. */
export interface TurnSettings {
  readonly instruction: string | undefined
  readonly model: string | undefined
  /** The model of the session, which decides who writes its summaries, whatever model one message has. */
  readonly chosen: string | undefined
  readonly generation: Generation | undefined
  /** Names and wildcards of the server's tools that it may use. Undefined: all. */
  readonly selects: ReadonlyArray<string> | undefined
}

/** The agent with this name. Sessions without tools have loaded none. */
const agentNamed = Effect.fnUntraced(function* (
  stored: StoredSessions,
  tenant: string,
  { agent }: OpenedSession,
  name: string
): Effect.fn.Return<LocalAgent, ServeError> {
  const loaded = agent.host.definitions.agents
  const { agents } =
    loaded.length > 0
      ? { agents: loaded }
      : yield* inTenant(
          stored,
          tenant,
          Effect.gen(function* () {
            const path = yield* Path.Path
            return yield* (yield* (yield* RuntimePlatform).agents(path.resolve("."), false)).all
          })
        )
  const definition = agents.find((one) => one.definition.name === name)?.definition
  if (definition?.kind === "local") return definition
  const names = agents.flatMap((one) => (one.definition.kind === "local" ? [one.definition.name] : []))
  return yield* new BadRequest({ message: `there is no agent ${name}; the agents are: ${names.join(", ")}` })
})

/** Returns how a turn is answered. What a message sets replaces what its session does, and what is set beside an agent replaces what the agent says. */
export const turnSettings = Effect.fnUntraced(function* (
  stored: StoredSessions,
  tenant: string,
  session: OpenedSession,
  record: TurnOptions,
  own: TurnOptions = {}
): Effect.fn.Return<TurnSettings, ServeError> {
  const { agent: name, generation, instruction, model, responseSchema } = { ...record, ...own }
  const agent = name === undefined ? undefined : yield* agentNamed(stored, tenant, session, name)
  const parameters: Generation = {
    ...(agent === undefined ? {} : { temperature: agent.temperature, topP: agent.topP }),
    ...generation,
    ...(responseSchema === undefined ? {} : { responseSchema })
  }
  return {
    instruction: instruction ?? agent?.prompt,
    model: model ?? (agent === undefined || agent.model === "inherit" ? undefined : agent.model),
    chosen: record.model,
    generation: Object.keys(parameters).length === 0 ? undefined : parameters,
    selects: agent?.tools
  }
})

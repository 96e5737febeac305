import { Effect, Layer } from "effect"
import { homeFolder } from "../layers/platform/HomeFolder.ts"
import * as NodeTerminal from "../layers/terminal/NodeTerminal.ts"
import * as Chat from "./commands/chat.ts"

/** `chat`, with its terminal. The user can type while the agent is loaded. */

const terminal = (isPlain: boolean) =>
  Layer.unwrap(Effect.map(homeFolder, (home) => NodeTerminal.layer(`${home}/history`, isPlain)))

const agent = Effect.promise(() => Promise.all([import("./agentCommands.ts"), import("../layers/assembly/Live.ts")]))

/** Starts a chat and runs it until the user leaves. */
export const converse = (options: Chat.Options) =>
  agent.pipe(
    Effect.flatMap(([{ converse }, { layer }]) => Effect.provide(converse(options), layer)),
    Effect.provide(terminal(options.plain === true))
  )

/** `chat`. */
export const chat = Chat.chat(converse)

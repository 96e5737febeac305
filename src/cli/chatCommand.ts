/** The command `chat`, with its terminal. The user can type while the agent is loaded. */

import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { homeFolder } from "../layers/platform/HomeFolder.ts"
import * as NodeTerminal from "../layers/terminal/NodeTerminal.ts"
import * as ChatFlags from "./flags/ChatFlags.ts"
import * as Input from "./flags/SharedFlags.ts"

const terminal = (isPlain: boolean) =>
  Layer.unwrap(Effect.map(homeFolder, (home) => NodeTerminal.layer(`${home}/history`, isPlain)))

const agent = Effect.promise(() => Promise.all([import("./agentCommands.ts"), import("../layers/assembly/Live.ts")]))

/** Starts a chat and runs it until the user leaves. */
export const converse = (options: ChatFlags.ChatOptions) =>
  agent.pipe(
    Effect.flatMap(([{ converse }, { layer }]) => Effect.provide(converse(options), layer)),
    Effect.provide(terminal(options.plain === true))
  )

/** The command `palimpsest chat`. */
export const chat = Command.make(
  "chat",
  {
    ...ChatFlags.flags,
    ...ChatFlags.agentFlags,
    plain: Input.flag("plain", "Write plain lines that never change, for screen readers and simple terminals")
  },
  converse
).pipe(
  Input.withExamples({
    "palimpsest chat": "Start a conversation",
    "palimpsest chat --approve edits": "Let the model edit files without asking",
    "palimpsest chat --continue": "Continue the newest conversation",
    "palimpsest chat --model replay:session.jsonl": "Step through a recording, without a key"
  })
)

import type { Effect } from "effect"
import { Command } from "effect/cli"
import type { HostOptions } from "../../services/runtime/AgentHost.ts"
import * as AgentFlags from "../flags/AgentFlags.ts"
import * as ChatFlags from "../flags/ChatFlags.ts"
import * as Input from "../flags/SharedFlags.ts"

/** The parsed flags of a chat. */
export type Options = ChatFlags.ChatFlags & HostOptions & { readonly plain?: boolean | undefined }

/** The command `palimpsest chat`. `converse` starts a chat and runs it until the user leaves. */
export const chat = <E, R>(converse: (options: Options) => Effect.Effect<void, E, R>) =>
  Command.make(
    "chat",
    {
      ...ChatFlags.flags,
      ...AgentFlags.flags,
      plain: Input.flag("plain", "Write plain lines that never change, for screen readers and simple terminals")
    },
    converse
  ).pipe(
    Command.withExamples([
      { command: "palimpsest chat", description: "Start a conversation" },
      { command: "palimpsest chat --approve edits", description: "Let the model edit files without asking" },
      { command: "palimpsest chat --continue", description: "Continue the newest conversation" },
      {
        command: "palimpsest chat --model replay:session.jsonl",
        description: "Step through a recording, without a key"
      }
    ])
  )

import type { Effect } from "effect"
import { Command } from "effect/cli"
import type { HostOptions } from "../../services/runtime/AgentParts.ts"
import * as ChatFlags from "../flags/ChatFlags.ts"
import * as Input from "../flags/SharedFlags.ts"

/** The `chat` command: its flags. What starts the chat is passed in. */

/** The parsed flags of a chat. */
export type Options = ChatFlags.ChatFlags & HostOptions & { readonly plain?: boolean | undefined }

/** The command `palimpsest chat`. `converse` starts a chat and runs it until the user leaves. */
export const chat = <E, R>(converse: (options: Options) => Effect.Effect<void, E, R>) =>
  Command.make(
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

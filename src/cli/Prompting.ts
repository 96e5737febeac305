import { Effect, Stdio } from "effect"
import { printable } from "../domain/Inspection.ts"
import { estimateText } from "../domain/Tokens.ts"
import * as AgentTools from "./AgentTools.ts"
import type { Assembled, PromptFlags } from "./commands/prompt.ts"
import { badInput } from "./ExitError.ts"
import * as OpenChat from "./OpenChat.ts"
import * as Output from "./Output.ts"

/** What would be sent from this folder before anything is said: as for a chat, but nobody is told that one begins. */
export const assemble = Effect.fn("Prompting.assemble")(function* ({ model, plan, size }: PromptFlags) {
  const opened = yield* OpenChat.passing({ model }, true)
  const { settings } = opened
  const stdio = yield* Stdio.Stdio
  const sized = size === undefined ? settings : { ...settings, prompt: { ...settings.prompt, size } }
  const { knowledge } = yield* AgentTools.make(
    { ...opened, settings: sized },
    { isLook: true, ...(plan ? { approve: "plan" as const } : {}) },
    { tell: (line) => Effect.provideService(Output.notice(line), Stdio.Stdio, stdio) }
  )
  const built = yield* Effect.mapError(knowledge.prompt, ({ message }) => badInput(printable(message)))
  const { tools } = yield* opened.chat.settings
  const assembled: Assembled = {
    built,
    toolTokens: tools === undefined ? 0 : estimateText(JSON.stringify(tools)),
    environment: yield* knowledge.environment
  }
  return assembled
}, Effect.scoped)

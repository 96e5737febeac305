/** The commands that need the services of an agent. They are loaded together when one of them is used. */

import { Effect, Layer, Option, Path } from "effect"
import { Command } from "effect/cli"
import { withDefaults } from "../domain/settings/Settings.ts"
import * as LiveNetwork from "../layers/assembly/LiveNetwork.ts"
import * as LiveTools from "../layers/assembly/LiveTools.ts"
import { Memory } from "../services/memory/Memory.ts"
import { untrustedNotice } from "../services/runtime/FolderTrust.ts"
import * as PromptPreview from "../services/runtime/PromptPreview.ts"
import { RuntimePlatform } from "../services/runtime/RuntimePlatform.ts"
import { readSettings } from "../services/runtime/SessionOpening.ts"
import { Settings } from "../services/settings/Settings.ts"
import * as ChatSessions from "./chat/ChatSessions.ts"
import * as Agents from "./commands/agents.ts"
import * as Ask from "./commands/ask.ts"
import * as MemoryCommand from "./commands/memory.ts"
import { promptCommand } from "./commands/prompt.ts"
import type { ChatOptions } from "./flags/ChatFlags.ts"
import * as RuntimeText from "./output/RuntimeText.ts"
import { version } from "./output/Version.ts"

/** The services of tools. */
export const tools = Layer.provideMerge(
  LiveTools.runtimePlatform(version),
  Layer.merge(LiveTools.layer, LiveNetwork.layer)
)

/**
 * Exports spans, metrics and logs to a collector if the settings name one. Invalid settings are reported by the command that
 * reads them.
 */
const exporting = Layer.unwrap(
  Effect.gen(function* () {
    const { read } = yield* Settings
    const effective = yield* Effect.option(read)
    if (Option.isNone(effective)) return Layer.empty
    const { enabled, endpoint, prompts } = withDefaults(effective.value.settings).telemetry
    if (!enabled || endpoint === undefined) return Layer.empty
    const { layer } = yield* Effect.promise(() => import("../layers/telemetry/Otlp.ts"))
    return layer({ endpoint, version, prompts })
  })
)

/** The services of a command that runs an agent. */
const working = Layer.merge(tools, exporting)

/** The memory of the working folder. */
const remembering = Layer.effect(
  Memory,
  Effect.gen(function* () {
    const { memory: of } = yield* RuntimePlatform
    const path = yield* Path.Path
    const notify = yield* RuntimeText.notify
    const { files, settings } = yield* RuntimeText.orExit(readSettings(notify))
    const all = withDefaults(settings)
    const own = withDefaults(files.home)
    const root = path.resolve(".")
    const untrusted = yield* untrustedNotice(root)
    if (untrusted !== undefined) yield* notify(untrusted)
    return yield* of({ root, added: all.includeDirectories, settings: all, own })
  })
)

/** Starts a chat and runs it until the user leaves. */
export const converse = (options: ChatOptions) => Effect.provide(ChatSessions.converse(options), working)

/** `ask`. */
export const ask = Command.provide(Ask.ask, working)

/** `agents`. */
export const agents = Command.provide(Agents.agents, working)

/** `memory`. */
export const memory = Command.provide(MemoryCommand.memory, Layer.provideMerge(remembering, tools))

/** `prompt`. */
export const prompt = promptCommand((flags) =>
  Effect.flatMap(RuntimeText.notify, (notify) => RuntimeText.orExit(PromptPreview.make(flags, notify)))
).pipe(Command.provide(tools))

import { Clock, Effect, Path } from "effect"
import { Environment } from "../../../services/platform/Environment.ts"
import { RuntimePlatform } from "../../../services/runtime/RuntimePlatform.ts"
import { Settings } from "../../../services/settings/Settings.ts"
import * as TranscriptExport from "../../../services/transcripts/TranscriptExport.ts"
import { bugReport } from "../../output/BugReport.ts"
import { iso } from "../../output/TimeText.ts"
import { version } from "../../output/Version.ts"
import { nextPosition, say, tableColumns } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash command `/bug`: writes a bug report into a file in the working folder. */

/** Variables that tell which terminal this is. */
const terminalVariables = ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "LANG", "TMUX"]

/** The command `/bug`. */
export const bug: SlashCommand = {
  name: "bug",
  help: "Write a file for a bug report, without secrets and without the conversation's words",
  run: Effect.fnUntraced(function* (session) {
    const { agent, chat } = session
    const path = yield* Path.Path
    const { platform } = yield* RuntimePlatform
    const { settings } = yield* Settings.use(({ read }) => read)
    const variables = yield* Environment.use((environment) => environment.variables)
    const now = yield* Clock.currentTimeMillis
    const { limit, tokens } = yield* chat.usage
    const { model } = yield* chat.settings
    const terminalValues = terminalVariables.flatMap((name) => {
      const value = variables[name]
      return value === undefined ? [] : [[name, name === "TMUX" ? "yes" : value] as const]
    })
    const report = bugReport({
      version,
      platform,
      terminal: { ...Object.fromEntries(terminalValues), columns: String(yield* tableColumns(session)) },
      session: { model, tokens, window: limit, messages: (yield* nextPosition(session)) - 1 },
      settings,
      records: (yield* agent.recent).records,
      home: variables["HOME"] ?? variables["USERPROFILE"] ?? ""
    })
    const file = `palimpsest-bug-${iso(now).slice(0, 19).replaceAll(":", "-")}.md`
    yield* TranscriptExport.writeText(path.resolve(file), report)
    yield* say(session, `Wrote ${file}. Read it, add what happened, and attach it to your report.`)
  })
}

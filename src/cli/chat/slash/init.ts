import { Effect, FileSystem, Path, Ref } from "effect"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash command `/init`: prepares a request for a file that tells agents about the folder. */

/** The file that `/init` writes. Other agents read it, too. */
const fileName = "AGENTS.md"

const request = (file: string, exists: boolean) =>
  `${exists ? `Improve ${file}` : `Write ${file}`}: what someone new to this folder has to know. Look at the folder first: \
its readme, its build and test files, and a few sources. Say in at most 60 lines what the project is, how it is built, tested and run (with the \
exact commands), where things are, and which rules of style and structure its code follows. Write only what you found in files${exists ? ", and keep what is still true" : ""}.`

/** The command `/init`. */
export const init: SlashCommand = {
  name: "init",
  help: `Ask for an ${fileName} that tells agents about this folder`,
  run: Effect.fnUntraced(function* (session) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const exists = yield* fs.exists(path.resolve(fileName))
    yield* Ref.set(session.prefill, request(fileName, exists))
    yield* say(session, `Press Enter to ask for ${fileName}, or change the request first.`)
  })
}

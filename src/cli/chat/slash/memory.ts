/** The slash commands `/memory` and `/init`: show and change what agents read about the user and the folder. */

import { Effect, FileSystem, Path, Ref } from "effect"
import { MemoryScope } from "../../../domain/memory/MemoryText.ts"
import { listText, showText, withTokens } from "../../output/MemoryReport.ts"
import { memoryErrorLine } from "../../output/RuntimeText.ts"
import { type ChatSession, say, type SlashCommand } from "./ChatSession.ts"

/** Saves a fact. The user names its scope; it is never guessed. */
const add = Effect.fnUntraced(function* (session: ChatSession, text: string) {
  const { memory } = session.agent.context
  const [, scopeName, fact = ""] = /^(?:(project|global)\s*:)?\s*([^]*)$/.exec(text) ?? []
  if (fact.trim() === "") {
    return yield* say(session, "Give the fact, for example: /memory add project: Tests run with make check")
  }
  const scope = MemoryScope.literals.find((each) => each === scopeName)
  if (scope === undefined) {
    yield* say(session, "Put a scope before the fact: project: (this folder only) or global: (every folder).")
    yield* Ref.set(session.prefill, `/memory add project: ${fact}`)
    return
  }
  const { shown: file } = yield* Effect.flatMap(memory.plan(fact, scope), memory.save).pipe(
    Effect.mapError((error) => ({ message: memoryErrorLine(error) }))
  )
  yield* say(session, `Saved to ${file}. Every request includes it from now on.`)
})

/** The command `/memory [show|list|add|refresh]`. */
export const memory: SlashCommand = {
  name: "memory",
  usage: "[show|list|add|refresh]",
  help: "Show memory, add a fact (add project: …), or read the files again",
  run: Effect.fnUntraced(function* (session, argument) {
    const { memory: files } = session.agent.context
    const [, action = "", text = ""] = /^(\S*)\s*([^]*)$/.exec(argument) ?? []
    switch (action) {
      case "add":
        return yield* add(session, text)
      case "":
      case "show":
      case "list":
      case "refresh":
      case "reload": {
        const loaded = yield* withTokens(
          yield* action === "refresh" || action === "reload" ? files.refresh : files.load
        )
        const print = action === "list" ? listText : showText
        if (loaded.blocks.length === 0) yield* say(session, "Memory is empty here; add a fact with /memory add.")
        else yield* session.terminal.write(`${print(loaded, session.style)}\n`)
        for (const problem of loaded.problems) yield* say(session, problem)
        return
      }
      default:
        return yield* say(session, `Unknown command /memory ${action}. Use show, list, add or refresh.`)
    }
  })
}

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

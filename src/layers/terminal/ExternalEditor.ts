import { Effect, Option } from "effect"
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { env } from "node:process"

/** Lets the user edit a text in the editor that VISUAL or EDITOR names. Returns none if there is none or it cannot be started. */
export const edited = (text: string): Effect.Effect<Option.Option<string>> => {
  const command = env["VISUAL"] ?? env["EDITOR"] ?? ""
  if (command === "") return Effect.succeedNone
  return Effect.acquireUseRelease(
    Effect.promise(() => mkdtemp(path.join(tmpdir(), "palimpsest-message-"))),
    (folder) =>
      Effect.gen(function* () {
        const file = path.join(folder, "message.md")
        yield* Effect.promise(() => writeFile(file, text, { mode: 0o600 }))
        const isDone = yield* Effect.callback<boolean>((resume) => {
          const child = spawn("sh", ["-c", `${command} "$0"`, file], { stdio: "inherit" })
          child.once("error", () => resume(Effect.succeed(false)))
          child.once("exit", (code) => resume(Effect.succeed(code === 0)))
        })
        if (!isDone) return Option.none()
        const after = yield* Effect.promise(() => readFile(file, "utf8"))
        return Option.some(after.replace(/\n$/, ""))
      }),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )
}

/** The user's clipboard: by the terminal (OSC 52), which also works over a connection, and by a program of the system. */

import { Effect } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { spawn } from "node:child_process"
import { env as environment, platform as thisPlatform } from "node:process"

/** A program and its arguments. */
export type Program = readonly [name: string, ...args: ReadonlyArray<string>]

type Variables = Readonly<Record<string, string | undefined>>

/** Over a connection, the clipboard of the other machine is not the user's. */
const isRemote = ({ SSH_CONNECTION, SSH_TTY }: Variables) => SSH_CONNECTION !== undefined || SSH_TTY !== undefined

/** The programs that may take a text on their input for the clipboard, in the order in which they are tried. */
export const copyPrograms = (platform: string, variables: Variables): ReadonlyArray<Program> => {
  if (isRemote(variables)) return []
  if (platform === "darwin") return [["pbcopy"]]
  if (platform === "win32") return [["clip.exe"]]
  return [
    ...(variables["WAYLAND_DISPLAY"] === undefined ? [] : [["wl-copy"] as const]),
    ...(variables["DISPLAY"] === undefined ? [] : [["xclip", "-selection", "clipboard"] as const]),
    ...(variables["WSL_DISTRO_NAME"] === undefined ? [] : [["clip.exe"] as const])
  ]
}

/** The programs that may write an image in the clipboard to their output, as PNG. */
export const imagePrograms = (platform: string, variables: Variables): ReadonlyArray<Program> => {
  if (isRemote(variables) || platform === "win32") return []
  if (platform === "darwin") {
    const script = "get the clipboard as «class PNGf»"
    return [["sh", "-c", `osascript -e '${script}' | sed 's/^«data PNGf//; s/»$//' | xxd -r -p`]]
  }
  return [
    ...(variables["WAYLAND_DISPLAY"] === undefined ? [] : [["wl-paste", "--type", "image/png"] as const]),
    ...(variables["DISPLAY"] === undefined
      ? []
      : [["xclip", "-selection", "clipboard", "-t", "image/png", "-o"] as const])
  ]
}

/** A program of the clipboard answers at once, or hangs. */
const deadline = "3 seconds"

/** Runs a program. Returns its output, which is empty when it takes a text; undefined when it is missing or fails. */
const output = ([name, ...args]: Program, text: string | undefined): Effect.Effect<Buffer | undefined> =>
  Effect.callback<Buffer | undefined>((resume) => {
    const child = spawn(name, args, { stdio: ["pipe", "pipe", "ignore"] })
    const pieces: Array<Buffer> = []
    child.stdout.on("data", (piece: Buffer) => pieces.push(piece))
    child.stdin.on("error", () => {})
    child.once("error", () => resume(Effect.undefined))
    // Programs that take a text may keep running to serve the clipboard, with our pipe open. Of the others, all output is read.
    child.once(text === undefined ? "close" : "exit", (code) =>
      resume(Effect.succeed(code === 0 ? Buffer.concat(pieces) : undefined))
    )
    child.stdin.end(text)
    return Effect.sync(() => child.kill())
  }).pipe(Effect.timeoutOrElse({ duration: deadline, orElse: () => Effect.undefined }))

const firstOutput = Effect.fnUntraced(function* (programs: ReadonlyArray<Program>, text: string | undefined) {
  for (const program of programs) {
    const written = yield* output(program, text)
    if (written !== undefined) return written
  }
  return undefined
})

/** Copies a text with a program of the system. Returns false without one. */
export const withProgram = (text: string): Effect.Effect<boolean> =>
  Effect.map(firstOutput(copyPrograms(thisPlatform, environment), text), (written) => written !== undefined)

/** Most terminals refuse more than 100,000 characters of Base64. */
const maxSequenceBytes = 74_000

/** Copies a text with a program of the system, and by asking the terminal. Returns false where neither can take it. */
export const copy = Effect.fnUntraced(function* (text: string, write: (sequence: string) => void) {
  const bytes = new TextEncoder().encode(text)
  const isShort = bytes.length <= maxSequenceBytes
  if (isShort) write(`\u001b]52;c;${Base64.encode(bytes)}\u0007`)
  return (yield* withProgram(text)) || isShort
})

/** Reads the image in the clipboard as PNG; undefined without one, or without a program that can. */
export const image: Effect.Effect<Uint8Array | undefined> = Effect.map(
  Effect.suspend(() => firstOutput(imagePrograms(thisPlatform, environment), undefined)),
  (bytes) => (bytes === undefined || bytes.length === 0 ? undefined : new Uint8Array(bytes))
)

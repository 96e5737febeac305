/** Carries out what the user types. `keyAction` decides what a key does, `CtrlCAction.ts` what Ctrl+C does. */

import { matchesKey } from "@earendil-works/pi-tui"
import { Effect, Option } from "effect"
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { env } from "node:process"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { Choice } from "../../services/terminal/ChatTerminal.ts"
import * as Clipboard from "./Clipboard.ts"
import { ctrlCAction } from "./CtrlCAction.ts"
import * as PastedImages from "./PastedImages.ts"
import type { TerminalParts } from "./TerminalParts.ts"

/** The state of the terminal that a key depends on. */
export interface KeyState {
  /** Work runs that can be cancelled. */
  readonly isWorking: boolean
  /** A question is open. */
  readonly isAsked: boolean
  /** The editor holds no text. */
  readonly isEmpty: boolean
  /** Messages wait for the next prompt. */
  readonly hasQueued: boolean
  /** The editor completes the text at the cursor with Tab. */
  readonly takesTab: boolean
  /** Escape means something in the editor: it closes a menu or leaves Vim's insert mode. */
  readonly takesEscape: boolean
}

/** The keys that mean the same wherever the focus is. `none`: the key does nothing. */
export type KeyAction =
  | "ctrlC"
  | "cancel"
  | "leave"
  | "none"
  | "takeLastQueued"
  | "cycleMode"
  | "sendLater"
  | "clearScreen"
  | "toggleCards"
  | "searchMessages"
  | "editOutside"
  | "pasteImage"
  | "suspend"

/** Decides what a key does. Returns undefined for the keys of the editor. */
export const keyAction = (
  key: string,
  { hasQueued, isAsked, isEmpty, isWorking, takesEscape, takesTab }: KeyState
): KeyAction | undefined => {
  if (matchesKey(key, "ctrl+c")) return "ctrlC"
  if (matchesKey(key, "escape")) return isWorking && !takesEscape ? "cancel" : undefined
  if (matchesKey(key, "ctrl+d")) return isEmpty ? (isAsked ? "none" : "leave") : undefined
  if (matchesKey(key, "up")) return isEmpty && hasQueued && !isAsked ? "takeLastQueued" : undefined
  if (matchesKey(key, "tab")) return isWorking && !isAsked && !isEmpty && !takesTab ? "sendLater" : undefined
  if (matchesKey(key, "shift+tab")) return "cycleMode"
  if (matchesKey(key, "ctrl+l")) return "clearScreen"
  if (matchesKey(key, "ctrl+o")) return "toggleCards"
  if (matchesKey(key, "ctrl+z")) return "suspend"
  if (isAsked) return undefined
  if (matchesKey(key, "ctrl+r")) return "searchMessages"
  if (matchesKey(key, "ctrl+g")) return "editOutside"
  if (matchesKey(key, "ctrl+v")) return "pasteImage"
  return undefined
}

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

/** Ends the input: prompts and questions fail from now on. */
export const leave = ({ question, queue, slot }: TerminalParts) => {
  queue.close()
  question.close()
  slot.close()
}

/** Cancels the work. What was typed for after it comes back into the editor, unless a question is open there. */
const cancel = ({ editor, progress, question, queue }: TerminalParts) => {
  if (!question.isOpen) {
    const texts = [...queue.takeBackAll(), editor.wholeText()]
    editor.fill(texts.filter((text) => text !== "").join("\n"))
  }
  progress.cancel()
}

const onCtrlC = (parts: TerminalParts) => {
  const { editor, progress, state } = parts
  const action = ctrlCAction({
    isWorking: progress.current !== undefined,
    hasInput: editor.getText() !== "",
    wasPressed: state.isLeaving
  })
  switch (action) {
    case "cancelWork":
      return cancel(parts)
    case "leave":
      return leave(parts)
    case "clearPrompt":
      return editor.setText("")
    case "warn":
      state.isLeaving = true
      editor.placeholder = "press Ctrl+C again to leave"
  }
}

/** Lets the user choose from a list in the place of the editor. A question waits until the list is closed. */
export const choose = <A>(
  { output, question, slot }: TerminalParts,
  title: string,
  choices: ReadonlyArray<Choice<A>>
) =>
  question.turns.withPermit(
    Effect.callback<Option.Option<A>>((resume) => {
      slot.pick(title, choices, (choice) => {
        output.draw()
        resume(Effect.succeed(choice === undefined ? Option.none() : Option.some(choice.value)))
      })
      output.draw()
      return Effect.sync(() => slot.close())
    })
  )

const searchMessages = Effect.fnUntraced(function* (parts: TerminalParts) {
  const messages = [...new Set(parts.history.entries)].map((text) => ({ value: text, label: printableLine(text) }))
  const chosen = yield* choose(parts, "Messages", messages)
  if (Option.isSome(chosen)) parts.editor.fill(chosen.value)
  parts.output.draw()
})

const editOutside = Effect.fnUntraced(function* ({ editor, output, screen }: TerminalParts) {
  screen.stop({ preserveScreen: true })
  const text = yield* edited(editor.wholeText())
  screen.start()
  screen.redraw((rows, columns) => output.transcript.keepLast(rows, columns))
  if (Option.isSome(text)) editor.fill(text.value)
  else output.show(() => output.addNote("Set EDITOR to the command of an editor, for example: export EDITOR=vim"))
})

/** Milliseconds until a process that nobody stopped goes on. */
const unstoppedMillis = 200

/** Stops the program until its shell continues it. Without a shell that controls jobs, the screen is only drawn again. */
const suspend = ({ output, screen }: TerminalParts) => {
  if (process.platform === "win32") return
  screen.stop({ preserveScreen: true })
  const resume = () => {
    clearTimeout(timer)
    process.off("SIGCONT", resume)
    screen.start()
    screen.redraw((rows, columns) => output.transcript.keepLast(rows, columns))
  }
  const timer = setTimeout(resume, unstoppedMillis)
  process.once("SIGCONT", resume)
  // The whole group, as the terminal itself would: a wrapper such as npm stops, too.
  process.kill(0, "SIGTSTP")
}

/** Puts the image in the clipboard into the message. */
const pasteImage = Effect.fnUntraced(function* ({ editor, images, output }: TerminalParts) {
  const bytes = yield* Clipboard.image
  const reference = bytes === undefined ? undefined : PastedImages.keep(images, bytes, ".png")
  if (reference === undefined) {
    output.show(() => output.addNote("There is no image in the clipboard that can be read here."))
    return
  }
  editor.insertTextAtCursor(`${reference} `)
  output.draw()
})

const toggleCards = ({ output: { transcript }, screen }: TerminalParts) => {
  transcript.toggleCards()
  screen.redraw((rows, columns) =>
    transcript.areCardsOpen() ? transcript.keepFromCard(rows, columns) : transcript.keepLast(rows, columns)
  )
}

const act = (parts: TerminalParts, action: KeyAction): void => {
  const { editor, output, progress, queue, screen, state } = parts
  switch (action) {
    case "ctrlC":
      return onCtrlC(parts)
    case "cancel":
      return cancel(parts)
    case "leave":
      if (progress.current !== undefined)
        output.show(() => output.addNote("Leaving when this is done; Esc cancels it."))
      return leave(parts)
    case "none":
      return
    case "takeLastQueued":
      return editor.fill(queue.takeBackLast() ?? "")
    case "sendLater":
      return editor.sendLater()
    case "cycleMode":
      return parts.run(state.modeKey)
    case "clearScreen":
      return screen.redraw((_, columns) => output.transcript.keepLast(0, columns))
    case "toggleCards":
      return toggleCards(parts)
    case "searchMessages":
      return parts.run(searchMessages(parts))
    case "editOutside":
      return parts.run(editOutside(parts))
    case "pasteImage":
      return parts.run(pasteImage(parts))
    case "suspend":
      return suspend(parts)
  }
}

/** Handles the keys that mean the same wherever the focus is. Returns whether the key was one. */
export const onKey = (parts: TerminalParts, key: string): boolean => {
  const { editor, output, progress, question, queue, slot, state } = parts
  if (!matchesKey(key, "ctrl+c")) {
    state.isLeaving = false
    editor.placeholder = ""
  }
  if (slot.isList) return false
  const isEmpty = editor.getText() === ""
  const taken = question.takesKey(key, isEmpty)
  if (taken === "changed") output.draw()
  if (taken !== undefined) return true
  const action = keyAction(key, {
    isWorking: progress.current !== undefined,
    isAsked: question.isOpen,
    isEmpty,
    hasQueued: queue.messages.length > 0,
    takesTab: editor.takesTab(),
    takesEscape: editor.isShowingAutocomplete() || editor.takesEscape()
  })
  if (action === undefined) return false
  act(parts, action)
  output.draw()
  return true
}

/** Takes a message that the editor completed: as the answer to the open question, or for the next prompt. */
export const onMessage = (parts: TerminalParts, text: string, isForPrompt: boolean) => {
  const { editor, history, question, queue, run, state } = parts
  if (question.isOpen) return question.answer(text.trim())
  if (!queue.isOpen || text.trim() === "") return
  // Stored now, because it may wait here for long; the prompt that takes it waits until it is stored.
  const store = Effect.runSync(Effect.cached(history.add(text)))
  run(store)
  if (!text.startsWith(" ")) editor.addToHistory(text)
  queue.add({ text, waits: isForPrompt || state.prompt.steers?.(text) === false, store })
}

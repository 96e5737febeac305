import { matchesKey } from "@earendil-works/pi-tui"

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

/**
 * What Ctrl+C does in a chat and in a question that the chat asks. It arrives as a key in `TerminalKeys.ts`, and in
 * `PlainTerminal.ts` where the terminal has no keys.
 */

/** The state of the terminal that Ctrl+C depends on. */
export interface CtrlCState {
  /** Work runs: a turn, a compression, a command. */
  readonly isWorking: boolean
  /** The prompt holds text, or lines of an unfinished message. */
  readonly hasInput: boolean
  /** Ctrl+C was the last key, on an empty prompt. */
  readonly wasPressed: boolean
}

/** Cancels the work, clears the prompt, warns that the next Ctrl+C leaves, or leaves. */
export type CtrlCAction = "cancelWork" | "clearPrompt" | "warn" | "leave"

/** Decides what Ctrl+C does: it cancels first, then clears, and leaves only when pressed twice on an empty prompt. */
export const ctrlCAction = ({ hasInput, isWorking, wasPressed }: CtrlCState): CtrlCAction =>
  isWorking ? "cancelWork" : hasInput ? "clearPrompt" : wasPressed ? "leave" : "warn"

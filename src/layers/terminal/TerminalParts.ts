import type { Terminal } from "@earendil-works/pi-tui"
import type { Clock, Effect } from "effect"
import type { TerminalSettings } from "../../domain/settings/Settings.ts"
import type { Question } from "../../services/terminal/ChatTerminal.ts"
import type { ChatOutput } from "./ChatOutput.ts"
import type { ChatScreen } from "./ChatScreen.ts"
import type { EditorSlot } from "./EditorSlot.ts"
import type { InputHistory } from "./InputHistory.ts"
import type { MessageEditor } from "./MessageEditor.ts"
import type { MessageQueue } from "./MessageQueue.ts"
import type { OpenQuestion } from "./OpenQuestion.ts"
import type { WorkProgress } from "./WorkProgress.ts"

/** The parts of the terminal, and its state. */
export interface TerminalParts {
  readonly clock: Clock.Clock
  readonly canColor: boolean
  /** The folder that takes copies of pasted images. */
  readonly images: string
  readonly history: InputHistory
  readonly terminal: Terminal
  readonly screen: ChatScreen
  readonly editor: MessageEditor
  readonly slot: EditorSlot
  readonly output: ChatOutput
  readonly queue: MessageQueue
  readonly question: OpenQuestion
  readonly progress: WorkProgress
  /** Runs an effect until the terminal closes. */
  readonly run: (effect: Effect.Effect<void>) => void
  readonly state: {
    /** The prompt for the next message. */
    prompt: Question
    /** Text that the next prompt puts into the editor. */
    prefill: string
    /** Whether the next Ctrl+C leaves. */
    isLeaving: boolean
    options: TerminalSettings
    /** What Shift+Tab does. */
    modeKey: Effect.Effect<void>
  }
}

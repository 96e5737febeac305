/**
 * Defaults of settings outside of compression that a strategy brings along, so that the strategy of another agent is used with
 * that agent's other defaults. A setting of the user takes precedence. Absent: the usual default of the setting.
 */
export interface AgentDefaults {
  /** How deep agents start agents, how many at once, and what they begin with (setting `subagents`). */
  readonly subagents?: {
    readonly depth?: number
    readonly children?: number
    readonly running?: number
    readonly tasks?: number
    readonly parallel?: number
    readonly prompt?: "own" | "minimal" | "none"
    readonly forkTokens?: number
    readonly runner?: "inside" | "process"
  }
  /** How much of the system prompt is sent (setting `prompt`). */
  readonly prompt?: { readonly size?: "full" | "brief" | "minimal" | "none" }
  /** Whether facts are saved to memory shortly before a compression (setting `memoryFlush`). */
  readonly memoryFlush?: boolean
  /** Sections of memory files that are repeated after a compression (setting `repeatRules`). */
  readonly repeatRules?: { readonly headings?: ReadonlyArray<string>; readonly chars?: number }
  /** How much of a tool result enters the window (setting `toolOutput`). */
  readonly toolOutput?: { readonly most?: number }
  /** Which memory files are read, and how much of them (setting `memory`). */
  readonly memory?: {
    readonly fileNames?: ReadonlyArray<string>
    readonly firstFound?: boolean
    readonly downward?: boolean
    readonly onTouch?: boolean
    readonly fileChars?: number
    readonly totalChars?: number
  }
}

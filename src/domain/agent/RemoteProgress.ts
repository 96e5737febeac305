/** The progress of a remote agent on a task, and its result. */

/** The stage of a task: working, waiting for input, waiting for authentication, or ended. */
export type RemoteStage = "working" | "asking" | "locked" | "GOAL" | "ERROR" | "ABORTED"

/** The stage that a task state of A2A means. */
export const stageOf = (state: string | undefined): RemoteStage => {
  switch (state) {
    case "TASK_STATE_COMPLETED":
      return "GOAL"
    case "TASK_STATE_FAILED":
    case "TASK_STATE_REJECTED":
      return "ERROR"
    case "TASK_STATE_CANCELED":
      return "ABORTED"
    case "TASK_STATE_INPUT_REQUIRED":
      return "asking"
    case "TASK_STATE_AUTH_REQUIRED":
      return "locked"
    default:
      return "working"
  }
}

/** Whether a task has ended. */
export const isOver = (stage: RemoteStage): boolean => stage !== "working" && stage !== "asking" && stage !== "locked"

/** An event of a remote agent. */
export type RemoteEvent = {
  /** The ids of the conversation and the task. Empty: none. */
  readonly contextId: string
  readonly taskId: string
} & (
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Status"; readonly stage: RemoteStage; readonly text: string }
  | {
      readonly _tag: "Task"
      readonly stage: RemoteStage
      readonly text: string
      /** The texts of its artifacts, by id. */
      readonly artifacts: ReadonlyArray<readonly [id: string, text: string]>
    }
  | {
      readonly _tag: "Artifact"
      readonly id: string
      readonly title: string
      readonly text: string
      /** Whether the text continues the artifact; otherwise it replaces it. */
      readonly append: boolean
    }
)

/** The answer received so far. */
export interface RemoteProgress {
  readonly taskId: string | undefined
  readonly stage: RemoteStage
  /** The last text outside its artifacts. */
  readonly words: string
  readonly artifacts: ReadonlyMap<string, string>
  readonly turns: number
}

/** The progress before the first event. */
export const nothingYet: RemoteProgress = {
  taskId: undefined,
  stage: "working",
  words: "",
  artifacts: new Map(),
  turns: 0
}

/** The answer after one more event. */
export const afterEvent = (progress: RemoteProgress, event: RemoteEvent): RemoteProgress => {
  const before = { ...progress, taskId: event.taskId === "" ? progress.taskId : event.taskId }
  const { artifacts, stage, turns, words } = before
  switch (event._tag) {
    case "Message":
      return {
        ...before,
        stage: "GOAL",
        words: stage === "GOAL" && words !== "" ? `${words}\n${event.text}` : event.text,
        turns: turns + 1
      }
    case "Status":
    case "Task":
      return {
        ...before,
        stage: event.stage,
        words: event.text === "" ? words : event.text,
        turns: turns + (event.text === "" ? 0 : 1),
        artifacts: event._tag === "Task" ? new Map([...artifacts, ...event.artifacts]) : artifacts
      }
    case "Artifact": {
      const { append, id, text } = event
      return { ...before, artifacts: new Map(artifacts).set(id, append ? `${artifacts.get(id) ?? ""}${text}` : text) }
    }
  }
}

/** Returns the text of an event about work in progress. Empty when there is none. */
export const thoughtOf = (event: RemoteEvent): string => {
  if (event._tag === "Status") return event.stage === "working" ? event.text : ""
  if (event._tag !== "Artifact" || event.append) return ""
  return `writes ${event.title === "" ? "an artifact" : event.title}`
}

/** Characters of the answer. */
export const answerLength = ({ artifacts, words }: RemoteProgress): number =>
  [...artifacts.values()].reduce((sum, { length }) => sum + length, words.length)

/** Returns the text of the answer: its artifacts, or the last text if it has none. */
export const answerText = ({ artifacts, words }: RemoteProgress): string =>
  (artifacts.size > 0 ? [...artifacts.values()] : [words]).filter((text) => text !== "").join("\n\n")

/** The result of an exchange. `failure`: why it broke off. */
export const remoteResult = (
  progress: RemoteProgress,
  failure: string | undefined
): { readonly reason: "GOAL" | "ERROR" | "ABORTED"; readonly text: string } => {
  const { artifacts, stage, words } = progress
  const answer = answerText(progress)
  const soFar = answer === "" ? "" : `\n\nPartial result:\n${answer}`
  if (failure !== undefined) return { reason: "ERROR", text: `${failure}${soFar}` }
  switch (stage) {
    case "working":
    case "GOAL":
      return { reason: "GOAL", text: answer === "" ? "(it finished without an answer)" : answer }
    case "asking": {
      const made = [...artifacts.values()].join("\n\n")
      const question = words === "" ? "(it gave no question)" : words
      return {
        reason: "GOAL",
        text: `${made === "" ? "" : `${made}\n\n`}The agent asks a question before it can continue:\n${question}\n\n(Your next message to it is taken as the answer.)`
      }
    }
    case "locked":
      return {
        reason: "ERROR",
        text: `The agent needs a permission that must be granted elsewhere: ${words}${soFar}`
      }
    case "ABORTED":
      return { reason: "ABORTED", text: `The agent cancelled the task.${soFar}` }
    case "ERROR":
      return { reason: "ERROR", text: `The agent failed: ${words}${artifacts.size === 0 ? "" : soFar}` }
  }
}

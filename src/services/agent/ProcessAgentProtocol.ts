/**
 * The protocol between an agent and the process that runs an agent which it starts: the whole definition and the task go in over stdin, as one
 * JSON document; events come out on stdout, one a line. The process reads no definition from the disk.
 */

import { Option, Schema } from "effect"
import { type LocalAgent, localDefaults } from "../../domain/agent/AgentDefinition.ts"
import { TerminateReason } from "../../domain/agent/AgentResult.ts"
import { Activity } from "../../domain/chat/ChatEvent.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { McpServersSettings } from "../../domain/tools/McpServer.ts"
import { type ParentShare } from "./AgentRunner.ts"

const ProcessTask = Schema.Struct({
  definition: Schema.Struct({
    name: Schema.String,
    displayName: Schema.optional(Schema.String),
    description: Schema.String,
    prompt: Schema.String,
    query: Schema.optional(Schema.String),
    /** The names of the tools and agents it may use. */
    tools: Schema.Array(Schema.String),
    mcpServers: McpServersSettings,
    model: Schema.String,
    temperature: Schema.Finite,
    topP: Schema.Finite,
    maxTurns: Schema.Int,
    timeoutMinutes: Schema.Int,
    compressionThreshold: Schema.optional(Schema.Finite)
  }),
  prompt: Schema.String,
  /** The model of its parent. */
  model: Schema.String
})

const taskJson = fromJson(Schema.toCodecJson(ProcessTask))
const encodeTask = Schema.encodeSync(taskJson)
const decodeTask = Schema.decodeOption(taskJson)

/** The text of a task. The tools of the definition are replaced by those that its parent has, too. */
export const taskText = (definition: LocalAgent, prompt: string, { model, tools }: ParentShare): string =>
  encodeTask({ definition: { ...definition, tools }, prompt, model })

/** A task as the process of an agent reads it. */
interface ReadTask {
  /** The definition, to be run in this process. */
  readonly definition: LocalAgent
  readonly prompt: string
  /** The model of its parent. */
  readonly model: string
}

/** Parses a task. Undefined: the text is none. */
export const parseTask = (text: string): ReadTask | undefined =>
  Option.getOrUndefined(
    Option.map(decodeTask(text), ({ definition: { displayName, query, ...definition }, model, prompt }) => ({
      definition: { ...localDefaults, ...definition, kind: "local", displayName, query },
      model,
      prompt
    }))
  )

/** What the process of an agent reports. */
export const ProcessEvent = Schema.TaggedUnion({
  Working: { activity: Activity },
  /** The last event. */
  Ended: {
    text: Schema.String,
    reason: TerminateReason,
    turns: Schema.Natural,
    /** Milliseconds. */
    duration: Schema.Finite,
    note: Schema.optional(Schema.String)
  }
})
export type ProcessEvent = typeof ProcessEvent.Type

const eventJson = fromJson(Schema.toCodecJson(ProcessEvent))

/** The line of an event. */
export const eventText = Schema.encodeSync(eventJson)

/** Parses an event. Undefined: the line is none. */
export const parseEvent = (line: string): ProcessEvent | undefined =>
  Option.getOrUndefined(Schema.decodeOption(eventJson)(line))

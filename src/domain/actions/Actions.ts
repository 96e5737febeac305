/** Reads what a tool call did from its name, its arguments and its response. */

import { Predicate } from "effect"
import { isErrorResponse, type Part } from "../content/Content.ts"
import { type Action, type Command, removed, written } from "./Action.ts"
import { commandIn, patchIn, pathsIn, queryIn, readsByCommand, todosIn, toolKind } from "./AgentTools.ts"
import { exitAlone, printedExit, printedOutput, type ScriptCall, scriptCalls, scriptResult } from "./ExecScript.ts"
import { shellFileActions } from "./ShellEffects.ts"
import { answerText, exitCode, wasNotMade } from "./ToolResults.ts"

const patchedFile = /^\*\*\* (Add|Update|Delete) File: (.+)$(?:\n\*\*\* Move to: (.+)$)?/gm

/** Returns the actions of a patch in Codex's form. A moved file counts as deleted and created. */
const patchActions = (patch: string): Array<Action> =>
  [...patch.matchAll(patchedFile)].flatMap(([, kind, file = "", moved]): Array<Action> => {
    const path = file.trim()
    if (kind === "Delete") return [removed(path)]
    if (kind === "Add") return [written(path, true)]
    return moved === undefined ? [{ _tag: "Edit", path }] : [removed(path), written(moved.trim(), true)]
  })

/**
 * Whether the tool reports that it created the file: decided by the first verb of the first line that is not part of a path.
 */
const createdBy = (path: string, answer: Part | undefined): boolean | undefined => {
  const [line = ""] = answerText(answer).slice(0, 2_000).split("\n", 1)
  const withoutPaths = line.replaceAll(path, "").replace(/\S*[/\\]\S*/g, "")
  const verb = /\b(created|updated|overwrote|overwritten|modified)\b/i.exec(withoutPaths)?.[1]
  return verb === undefined ? undefined : verb.toLowerCase() === "created"
}

/** An edit that replaces nothing may have created the file. */
const editedOrCreated = (path: string, answer: Part | undefined): Action =>
  createdBy(path, answer) === true ? written(path, true) : { _tag: "Edit", path }

const brief = (value: unknown): string => {
  const text = Predicate.isObject(value)
    ? Object.entries(value)
        .map(([key, field]) => `${key}=${typeof field === "string" ? field : JSON.stringify(field)}`)
        .join(", ")
    : JSON.stringify(value ?? "")
  const line = text.replace(/\s+/g, " ")
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

/** Returns the actions of a command of a shell: itself, and what it did to files when it succeeded. */
const commandActions = (tool: string, action: Command): ReadonlyArray<Action> => {
  const { command, exit } = action
  if (exit !== 0) return [action]
  return [action, ...shellFileActions(command, { withReads: readsByCommand(tool) })]
}

/** Returns a call, and the calls that it makes itself when it is a script. */
export const callsIn = ({ functionCall: made }: Part): ReadonlyArray<ScriptCall> =>
  made === undefined
    ? []
    : [
        { name: made.name, args: made.args },
        ...(toolKind(made.name, made.args) === "script" ? scriptCalls(patchIn(made.args)) : [])
      ]

/** Returns the actions of the calls that a script of Codex makes. */
const scriptActions = (script: string, answer: Part | undefined): ReadonlyArray<Action> => {
  const calls = scriptCalls(script)
  const result = scriptResult(answer)
  const ended = result?.state === "completed"
  const commands = calls.filter(({ args, name }) => toolKind(name, args) === "command")
  const printed = result?.outputs ?? []
  // A text for each command that is its exit code alone stands beside what the commands printed.
  const codes = printed.flatMap((text) => exitAlone(text) ?? [])
  const hasCodes = codes.length === commands.length
  const outputs = hasCodes ? printed.filter((text) => exitAlone(text) === undefined) : printed
  // A text for each command belongs to the commands in order; other texts belong to all of them.
  const outputAt = (index: number) => (outputs.length === commands.length ? (outputs[index] ?? "") : outputs.join("\n"))
  let at = 0
  return calls.flatMap(({ args, name }): ReadonlyArray<Action> => {
    if (toolKind(name, args) !== "command") {
      const inner: Part = { functionCall: { name, args } }
      const done = { functionResponse: { name, response: ended ? { output: "" } : { error: "" } } }
      return actionsOf(inner, result === undefined ? undefined : done)
    }
    const output = outputAt(at)
    const code = ended ? (hasCodes ? codes[at] : printedExit(output)) : undefined
    at += 1
    return commandActions(name, {
      _tag: "Command",
      command: commandIn(args) ?? "",
      exit: code ?? (ended ? 0 : undefined),
      output: printedOutput(output),
      ...(ended && code === undefined ? { isExitHidden: true } : {})
    })
  })
}

/**
 * Returns the actions of a call, given its response (undefined when there is none). A failed call did nothing to files; a
 * shell command is reported whatever its result.
 */
export const actionsOf = (call: Part, answer: Part | undefined): ReadonlyArray<Action> => {
  const made = call.functionCall
  if (made === undefined || wasNotMade(answer)) return []
  const { args, name } = made
  const kind = toolKind(name, args)
  const failed = answer !== undefined && isErrorResponse(answer)
  const done = answer !== undefined && !failed
  switch (kind) {
    case "script": {
      const actions = scriptActions(patchIn(args), answer)
      return actions.length > 0 ? actions : [{ _tag: "Other", summary: brief(args) }]
    }
    case "command": {
      const command = commandIn(args) ?? ""
      const exit = exitCode(answer)
      if (name.toLowerCase() !== "bash" && command.includes("*** Begin Patch")) {
        return exit === 0 ? patchActions(command) : []
      }
      return commandActions(name, {
        _tag: "Command",
        command,
        exit,
        // opencode, and Claude Code before 2, record that a command failed, and no code.
        ...(failed && exit === undefined ? { isExitHidden: true } : {})
      })
    }
    case "plan":
      return failed ? [] : [{ _tag: "Todos", todos: todosIn(args) }]
    case "patch":
      return done ? patchActions(patchIn(args)) : []
    case "read":
      return done ? pathsIn(args).map((path) => ({ _tag: "Read", path })) : []
    case "write":
      return done ? pathsIn(args).map((path) => written(path, createdBy(path, answer))) : []
    case "edit":
      return done ? pathsIn(args).map((path) => editedOrCreated(path, answer)) : []
    case "delete":
      return done ? pathsIn(args).map(removed) : []
    case "search":
      return [{ _tag: "Search", query: queryIn(args) ?? brief(args) }]
    default:
      return [{ _tag: "Other", summary: brief(args) }]
  }
}

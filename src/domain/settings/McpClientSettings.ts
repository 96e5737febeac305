/** Adds this program's MCP server to a client's settings, and removes it. */

import { Predicate, Result } from "effect"
import * as Toml from "effect/encoding/Toml"
import { type EditResult, edited, type FileEdit, isJsonRest, jsonEdit, jsonObject, refused } from "./InstalledFile.ts"
import { type McpClient, serverArguments, serverName, setupFile } from "./McpClients.ts"
import { isOwnCall, type OwnCommand } from "./OwnCommand.ts"
import { newlineOf, withExisting, withoutEntry, withValue } from "./SettingsEdits.ts"
import { valueAt } from "./SettingsKey.ts"
import type { SettingsProblem } from "./SettingsText.ts"

const unchanged: EditResult = { _tag: "Unchanged" }
const foreign: EditResult = { _tag: "Foreign", what: `an MCP server ${serverName}` }

const isTexts = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every(Predicate.isString)

/** The words with which an entry of a client's settings starts a server; empty when it does not say so. */
const wordsOf = (entry: unknown): ReadonlyArray<string> => {
  if (!Predicate.isObject(entry)) return []
  const { args = [], command } = entry
  if (isTexts(command)) return command
  return Predicate.isString(command) && isTexts(args) ? [command, ...args] : []
}

const isSame = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** The object in which a client's JSON settings have their servers. */
const listOf = (client: McpClient): string =>
  client === "opencode" ? "mcp" : client === "vscode" ? "servers" : "mcpServers"

/** The fields of an entry that say how to start the server. */
const startFields = (client: McpClient, [program, ...args]: OwnCommand): Readonly<Record<string, unknown>> =>
  client === "opencode" ? { command: [program, ...args] } : { command: program, args }

const entryOf = (client: McpClient, words: OwnCommand): Readonly<Record<string, unknown>> => {
  const fields = startFields(client, words)
  if (client === "opencode") return { type: "local", ...fields, enabled: true }
  return client === "vscode" ? { type: "stdio", ...fields } : fields
}

/** A server in a JSON file. Everything else stays, including comments. */
const inJson = (client: McpClient, command: OwnCommand): FileEdit => {
  const list = listOf(client)
  const path = [list, serverName]
  const args = serverArguments(client)
  const words: OwnCommand = [...command, ...args]
  /** Looks at the server in a text; the failure is the result of the edit. */
  const look = (text: string): Result.Result<ReadonlyArray<string> | undefined, EditResult> =>
    Result.flatMap(jsonObject(text), (json) => {
      const servers = json[list]
      if (servers !== undefined && !Predicate.isObject(servers)) return Result.fail(refused(`${list} is not an object`))
      const entry = valueAt(json, path)
      if (entry === undefined) return Result.succeed(undefined)
      const there = wordsOf(entry)
      return isOwnCall(there, args, command) ? Result.succeed(there) : Result.fail(foreign)
    })
  return {
    isRest: isJsonRest,
    isWholeFile: false,
    containers: [list],
    add: (text) =>
      edited(look(text), (there) => {
        if (there === undefined) return jsonEdit(withValue(text, path, entryOf(client, words)))
        if (isSame(there, words)) return unchanged
        return jsonEdit(
          Object.entries(startFields(client, words)).reduce<Result.Result<string, SettingsProblem>>(
            (next, [name, value]) => Result.flatMap(next, (so) => withExisting(so, [...path, name], value)),
            Result.succeed(text)
          )
        )
      }),
    remove: (text, removable) =>
      edited(look(text), (there) => (there === undefined ? unchanged : jsonEdit(withoutEntry(text, path, removable))))
  }
}

/** The tables of a TOML document. */
const tomlOf = (text: string): Result.Result<Readonly<Record<string, unknown>>, EditResult> =>
  Result.mapError(Toml.parse(text), ({ message }) => refused(`expected TOML: ${message}`))

const tables = "mcp_servers"
const byHand = (what: string): EditResult => refused(`it cannot be changed without harm to the rest; ${what} by hand`)

const name = (plain: string): string => `(?:${plain}|"${plain}"|'${plain}')`
const header = new RegExp(
  `^[ \\t]*\\[[ \\t]*${name(tables)}[ \\t]*\\.[ \\t]*${name(serverName)}[ \\t]*\\][^\\n]*(?:\\n|$)`,
  "gm"
)

/** The values of a TOML document without a server, to be compared. */
const valuesWithout = (toml: Readonly<Record<string, unknown>>): string => {
  const { [tables]: servers, ...rest } = toml
  const others = Predicate.isObject(servers) ? Object.entries(servers).filter(([key]) => key !== serverName) : []
  return JSON.stringify([rest, others], (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))
}

const hasServer = (text: string): boolean =>
  valueAt(Result.getOrUndefined(tomlOf(text)), [tables, serverName]) !== undefined

/** Whether only the server is gone, as a whole: a key behind its table would now be another table's. */
const isTomlRest = (rest: string, text: string): boolean => {
  const [left, before] = [tomlOf(rest), tomlOf(text)]
  if (Result.isFailure(left) || Result.isFailure(before)) return false
  const entry = valueAt(left.success, [tables, serverName])
  return (
    (entry === undefined || wordsOf(entry).length > 0) && valuesWithout(left.success) === valuesWithout(before.success)
  )
}

/**
 * Removes the server's table from a TOML document: its header, and its lines up to a blank one, a comment or the next header. The
 * result is parsed to see that nothing else is gone.
 */
const withoutTable = (text: string): EditResult => {
  for (const found of text.matchAll(header)) {
    const from = found.index
    const body = /^(?:[ \t]*[^\s#[][^\n]*(?:\n|$))*/.exec(text.slice(from + found[0].length))?.[0] ?? ""
    const rest = text.slice(from + found[0].length + body.length)
    // The blank line that separates tables goes with the one of them.
    const before = text.slice(0, from).replace(/(?<=\n|^)[ \t]*\r?\n$/, "")
    const next = `${before}${rest}`
    if (isTomlRest(next, text) && !hasServer(next)) return { _tag: "Written", text: next }
  }
  return byHand("remove the server")
}

/** A table of its own at the end of a TOML document. */
const withTable = (text: string, words: OwnCommand): EditResult => {
  const [program, ...args] = words
  const newline = newlineOf(text)
  const isBlank = text.replace(/^\uFEFF/, "").trim() === ""
  const gap = isBlank ? "" : text.endsWith("\n") ? newline : `${newline}${newline}`
  const table = [
    `[${tables}.${serverName}]`,
    `command = ${JSON.stringify(program)}`,
    `args = [${args.map((each) => JSON.stringify(each)).join(", ")}]`,
    ""
  ]
  const next = `${text}${gap}${table.join(newline)}`
  const there = wordsOf(valueAt(Result.getOrUndefined(tomlOf(next)), [tables, serverName]))
  return isSame(there, words) ? { _tag: "Written", text: next } : byHand("add the server")
}

/** A server in a TOML file, as Codex has them. */
const inToml = (client: McpClient, command: OwnCommand): FileEdit => {
  const args = serverArguments(client)
  const words: OwnCommand = [...command, ...args]
  const edit = (text: string, isAdded: boolean, toml: Readonly<Record<string, unknown>>): EditResult => {
    const entry = valueAt(toml, [tables, serverName])
    if (entry === undefined) return isAdded ? withTable(text, words) : unchanged
    const there = wordsOf(entry)
    if (!isOwnCall(there, args, command)) return foreign
    if (!isAdded) return withoutTable(text)
    if (isSame(there, words)) return unchanged
    const without = withoutTable(text)
    return without._tag === "Written" ? withTable(without.text, words) : without
  }
  const onToml = (text: string, isAdded: boolean): EditResult =>
    edited(tomlOf(text), (toml) => edit(text, isAdded, toml))
  return {
    isRest: isTomlRest,
    isWholeFile: false,
    containers: [],
    add: (text) => onToml(text, true),
    remove: (text) => onToml(text, false)
  }
}

/** The MCP server in a client's settings, started by `command`. */
export const serverEdit = (client: McpClient, command: OwnCommand): FileEdit =>
  setupFile(client).format === "json" ? inJson(client, command) : inToml(client, command)

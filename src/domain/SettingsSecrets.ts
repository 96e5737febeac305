import { Predicate } from "effect"
import { redact } from "./Redaction.ts"
import { type SettingsPath } from "./SettingsKey.ts"

/** What stands where a value is not shown. */
export const hiddenValue = "•••"

/** Objects whose values are secrets more often than not. */
const holders = new Set(["env", "headers"])

/** A flag of a command whose value comes next. */
const secretFlag = /^--?[\w-]*(?:key|token|secret|password|passwd|auth)[\w-]*$/i

const isList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

const within = (value: unknown, isHidden: boolean): unknown => {
  if (isList(value)) {
    return value.map((one, index) => {
      const before = value[index - 1]
      return within(one, isHidden || (typeof before === "string" && secretFlag.test(before)))
    })
  }
  if (Predicate.isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, within(one, isHidden || holders.has(name))])
    )
  }
  if (isHidden) return hiddenValue
  return typeof value === "string" ? redact(value) : value
}

/**
 * A value of the settings as it may be shown: what servers and hooks get as variables or headers is hidden, and so is what
 * looks like a secret anywhere.
 */
export const shownValue = (path: SettingsPath, value: unknown): unknown =>
  within(
    value,
    (path[0] === "mcpServers" || path[0] === "hooks") && path.slice(1, -1).some((name) => holders.has(name))
  )

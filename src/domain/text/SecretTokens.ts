/** Finds keys and tokens of known shapes. */

import type { Finding } from "./Finding.ts"
import { matchAt } from "./MatchAt.ts"
import { hasDigitAndLetter } from "./RandomText.ts"
import {
  discordShape,
  joinedReach,
  type JoinedShape,
  joinedShapes,
  type TokenShape,
  tokenShapes
} from "./SecretShapes.ts"

const isRun = new Uint8Array(128)
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") {
  isRun[character.charCodeAt(0)] = 1
}
const runAt = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code < 128 && isRun[code] === 1
}
/** No token has a shorter run, so checking one character in each interval of this length finds all runs. */
const minRunChars = 16
/** A run may contain names and separators before the token; no token is searched for beyond this distance. */
const runReach = 160

interface Row extends TokenShape {
  readonly pattern: RegExp
}

const rowsByStart: ReadonlyMap<string, ReadonlyArray<readonly [start: string, row: Row]>> = (() => {
  const rows = new Map<string, Array<readonly [string, Row]>>()
  for (const shape of tokenShapes) {
    const bound = shape.max < 100 ? "(?![A-Za-z0-9])" : ""
    const row = {
      ...shape,
      pattern: shape.shape ?? new RegExp(`${shape.of}{${shape.min},${shape.max}}${bound}`, "y")
    }
    for (const start of shape.starts) {
      const sameStart = rows.get(start.slice(0, 2)) ?? []
      sameStart.push([start, row])
      rows.set(start.slice(0, 2), sameStart)
    }
  }
  return rows
})()

const joinedByJoint: ReadonlyMap<string, ReadonlyArray<JoinedShape>> = new Map(
  joinedShapes.map(({ joint }) => [joint, joinedShapes.filter((shape) => shape.joint === joint)])
)

/** Words and numbers, as in branch and class names. */
const branch = /^(?:v?\d{1,6}|[a-z]{1,16})(?:[-_](?:v?\d{1,6}|[a-z]{1,16})){2,}$/

/** The text ends here or says that something was cut out: what began before may be the first half of a token. */
const cutHere = /(?:…|\.\.\.|\[…|\[\.\.\.)/y
const isCut = (text: string, at: number): boolean => at >= text.length || matchAt(cutHere, text, at) >= 0
/** Minimum length at which a truncated token is recognized. */
const minCutTokenChars = 8

/** Returns whether the preceding character belongs to an escaped line break or to `%3D` in an address. */
const isEscaped = (text: string, at: number): boolean =>
  /(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2})$/.test(text.slice(Math.max(0, at - 6), at))

/** Returns the token that begins at `at`. `runEnd` is the end of the run in which it begins. */
const tokenAt = (text: string, at: number, runEnd: number): Finding | undefined => {
  const rows = rowsByStart.get(text.slice(at, at + 2))
  if (rows === undefined) return undefined
  for (const [start, row] of rows) {
    // A short prefix occurs within many long names.
    if (!text.startsWith(start, at) || (start.length < 4 && runAt(text, at - 1) && !isEscaped(text, at))) continue
    const body = at + start.length
    const end = matchAt(row.pattern, text, row.shape === undefined ? body : at)
    if (end >= 0) {
      if (row.mixed === true && (!hasDigitAndLetter(text.slice(body, end)) || branch.test(text.slice(body, end))))
        continue
      // A run longer than any token is removed to its end.
      return { start: at, end: end - body >= row.max ? Math.max(end, runEnd) : end, kind: row.kind }
    } else if (
      start.length >= 4 &&
      runEnd - body >= minCutTokenChars &&
      isCut(text, runEnd) &&
      /\d/.test(text.slice(body, runEnd))
    ) {
      return { start: at, end: runEnd, kind: row.kind }
    }
  }
  return undefined
}

/** Returns the offsets in a run where a token may begin: its start, after an escaped line break or `%3D`, and after each `_` or `-`. */
const startsIn = (text: string, from: number, to: number): ReadonlyArray<number> => {
  const starts = [from]
  const before = text.charAt(from - 1)
  if (before === "\\") starts.push(from + 1, from + 5)
  if (before === "%") starts.push(from + 2)
  const end = Math.min(to - 8, from + runReach)
  for (let at = from; at < end; at += 1) {
    const character = text.charAt(at)
    if (character === "_" || character === "-") starts.push(at + 1)
  }
  return starts
}

const findInRun = (text: string, from: number, to: number, findings: Array<Finding>): number => {
  const joints = joinedByJoint.get(text.charAt(from - 1))
  if (joints !== undefined) {
    const before = text.slice(Math.max(0, from - joinedReach), from)
    for (const { after, kind, shape } of joints) {
      if (!after.test(before)) continue
      const end = matchAt(shape, text, from)
      if (end < 0) continue
      findings.push({ start: from, end, kind })
      return Math.max(end, to)
    }
  }
  for (const start of startsIn(text, from, to)) {
    const token = tokenAt(text, start, to)
    if (token !== undefined) {
      findings.push(token)
      return Math.max(token.end, to)
    }
  }
  const first = text.charAt(from)
  if ((first === "M" || first === "N" || first === "O") && text.charAt(to) === ".") {
    const end = matchAt(discordShape, text, from)
    if (end >= 0) {
      findings.push({ start: from, end, kind: "Discord token" })
      return end
    }
  }
  return to
}

/** Finds the tokens of known shapes whose run begins before `to`. Returns the offset up to which they extend. */
export const findTokens = (text: string, from: number, to: number, findings: Array<Finding>): number => {
  let done = from
  for (let probe = from + minRunChars - 1; probe < to + minRunChars; probe += minRunChars) {
    if (probe < done || !runAt(text, Math.min(probe, text.length - 1))) continue
    let start = Math.min(probe, text.length - 1)
    while (start > done && runAt(text, start - 1)) start -= 1
    let end = probe + 1
    while (runAt(text, end)) end += 1
    done = end - start >= minRunChars - 1 ? findInRun(text, start, end, findings) : end
  }
  return done
}

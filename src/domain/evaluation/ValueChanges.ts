import { replacementsIn } from "../actions/AgentTools.ts"
import type { Part } from "../content/Content.ts"

/** Values that an edit changed: a setting, a version, a port, a name. */

/** A named value before and after an edit. */
export interface ValueChange {
  readonly name: string
  readonly from: string
  readonly to: string
}

/** Matches a line that gives a name a literal: a number, a version, a switch, or a short text in quotes. */
const assignment =
  /^[ \t]*(?:(?:export|const|let|var|val|final|static|readonly|set|ENV)\s+)*["']?([A-Za-z_@][\w.-]{2,60})["']?\s*(?:=>|:=|[:=])\s*(?:"([^"\n]{1,60})"|'([^'\n]{1,60})'|([~^]?v?\d[\w.-]*|true|false|on|off))\s*[,;]?\s*(?:(?:#|\/\/).*)?$/gm

/** Returns the values in a text by name. A name that has several is left out. */
const valuesIn = (text: string): ReadonlyMap<string, string> => {
  const values = new Map<string, string | undefined>()
  for (const [, name = "", double, single, bare] of text.slice(0, 20_000).matchAll(assignment)) {
    const value = double ?? single ?? bare ?? ""
    values.set(name, values.has(name) && values.get(name) !== value ? undefined : value)
  }
  return new Map([...values].flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/** Returns the values that a call to an editing tool changed. */
export const valueChanges = (call: Part): ReadonlyArray<ValueChange> =>
  replacementsIn(call.functionCall?.args).flatMap(([replaced, made]) => {
    const before = valuesIn(replaced)
    const after = valuesIn(made)
    return [...before].flatMap(([name, from]) => {
      const to = after.get(name)
      return to === undefined || to === from ? [] : [{ name, from, to }]
    })
  })

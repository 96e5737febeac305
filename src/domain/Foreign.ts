import { protect } from "./Protected.ts"
import { visibleBlock, visibleLine } from "./Visible.ts"

/**
 * What somebody else wrote (a tool, a model, a hook, whoever named a file), as it may stand within a text of the runtime:
 * everything in it is seen, and nothing in it can pass for the runtime or for an element of ours.
 */

/** On one line: a name, a path, a reason. */
export const foreignLine = (text: string): string => protect(visibleLine(text))

/** With its line breaks: words that are quoted. */
export const foreignBlock = (text: string): string => protect(visibleBlock(text))

/** How agents write the summaries of their compactions. */

/** What Claude Code writes around a summary: where it comes from and its thoughts before it, an order to go on after it. */
const before = /^This session is being continued[^\n]*\n+(?:Analysis:[\s\S]*?\nSummary:\s*)?/
const after =
  /\n(?:If you need specific details from before compaction|Please continue the conversation)[\s\S]{0,1000}$/

/** Where the goal stands: in those of Claude Code, of Pi and opencode, and of Gemini CLI. */
const goal = /(?:Primary Request and Intent:?|#+ Goal|<overall_goal>)\s*([\s\S]{1,2000})/i
const nextPart = /\n(?=\d+\. \S|#+ )|<\//

/** Returns what a summary by another program tells. */
export const summaryBody = (summary: string): string => summary.trim().replace(before, "").replace(after, "")

/** Returns what such a summary says of the goal: under its heading, or at its beginning. */
export const summaryGoal = (summary: string): string => {
  const under = goal.exec(summary)?.[1] ?? summary
  return under.split(nextPart)[0] ?? under
}

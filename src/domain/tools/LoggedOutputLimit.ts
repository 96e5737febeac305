/** Bounds the length of a tool's output in the conversation. */

/** Maximum length of a tool's output in a conversation, in characters (UTF-16 units). */
export const maxOutputChars = 32 * 1024 * 1024

/**
 * Truncates a tool's output to `maxChars` characters by replacing its middle with a note. This bound only protects the
 * conversation log; the context window has a smaller one (`ToolOutputBound.ts`).
 */
export const truncateOutput = (output: string, maxChars = maxOutputChars): string => {
  if (output.length <= maxChars) return output
  const half = Math.floor(maxChars / 2)
  const left = output.length - 2 * half
  return `${output.slice(0, half)}\n... [${left} characters left out here: results are kept up to ${maxChars} characters] ...\n${output.slice(-half)}`
}

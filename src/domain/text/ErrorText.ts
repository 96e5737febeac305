/** The message of an error, or the value as text: whatever was thrown. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))

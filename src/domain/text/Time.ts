/** Times in milliseconds since 1970. */

/** Whether a number is a time that a date can have. Transcripts may hold others. */
export const isTime = (at: number): boolean => Math.abs(at) <= 8.64e15

/** The first line of every text that the runtime puts into a message with the user's role. */
export const runtimeMark = "[palimpsest: written by the runtime, not by the user]"

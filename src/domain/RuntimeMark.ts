/** Opens every text that the runtime puts into a message that travels in the user's role (law 6). */
export const runtimeMark = "[palimpsest: written by the runtime, not by the user]"

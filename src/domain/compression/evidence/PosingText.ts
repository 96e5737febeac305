/**
 * Lines of a tool's output that pose as somebody else: as the user, the system or the snapshot, or as an order to the agent.
 * A snapshot takes no names and no statements from them. This is one defence of several: what it misses is still shown as a
 * tool's text and never as an order.
 */

const posing =
  /\b(?:ignore|disregard|forget|override)\b[^\n]{0,40}\b(?:previous|prior|above|earlier|all)\b[^\n]{0,20}\b(?:instructions?|rules?|prompts?)\b|<\/?(?:user_words|state_snapshot|overall_goal|active_constraints|system|system-reminder)\b|^\W{0,4}(?:system|user|human|assistant)\s*:|\b(?:the|you as an?)\s+(?:assistant|agent|model)\s+must\b|\byou (?:must|are now|have to) (?:always|never|obey|first)\b/im

/** Returns a text without the lines that pose. */
export const withoutPosing = (text: string): string =>
  posing.test(text)
    ? text
        .split("\n")
        .filter((line) => !posing.test(line))
        .join("\n")
    : text

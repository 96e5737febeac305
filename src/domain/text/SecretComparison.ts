/** Whether two secrets are equal. Compares all characters, so that the time does not reveal how many of them are right. */
export const isEqualSecret = (one: string, other: string): boolean => {
  let difference = one.length ^ other.length
  for (let at = 0; at < other.length; at += 1) difference |= (one.charCodeAt(at) || 0) ^ other.charCodeAt(at)
  return difference === 0
}

/** A value as JSON, with long texts cut. */
export const brief = (value: unknown): string =>
  JSON.stringify(value ?? null, (_, each) =>
    typeof each === "string" && each.length > 40 ? `${each.slice(0, 20).split("\n")[0]}… ${each.length}` : each
  ).replace(/"(\w+)":/g, "$1:")

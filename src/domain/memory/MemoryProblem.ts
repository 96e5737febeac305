/** Why memory files and their imports are left out. Paths are as shown to the user unless noted as absolute. */

/** Why a file is not read. */
export type MemoryFault =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Folder" }
  /** `kind` is a kind of file in words, such as `a device`. */
  | { readonly _tag: "NotRegular"; readonly kind: string }
  | { readonly _tag: "TooLarge"; readonly bytes: number }
  | { readonly _tag: "Binary" }
  | { readonly _tag: "Changed" }
  | { readonly _tag: "LinkCircle" }
  /** `detail` is the disk's or the parser's message. */
  | { readonly _tag: "Unreadable"; readonly detail: string }
  | { readonly _tag: "LeadsOut"; readonly folders: ReadonlyArray<string> }
  | { readonly _tag: "LeadsToUntrusted" }
  | { readonly _tag: "OtherOwner"; readonly folder: string }
  | { readonly _tag: "InvalidExtension" }
  /** Only imports have the faults below. */
  | { readonly _tag: "Untrusted" }
  | { readonly _tag: "Address" }
  | { readonly _tag: "NoPath" }
  /** All files involved, absolute with links resolved. */
  | { readonly _tag: "Circle"; readonly files: ReadonlyArray<string> }
  | { readonly _tag: "TotalTooLarge"; readonly file: string }

/** A fault in words, in one line. */
export const memoryFaultText = (fault: MemoryFault): string => {
  switch (fault._tag) {
    case "Missing":
      return "there is no such file"
    case "Folder":
      return "it is a folder"
    case "NotRegular":
      return `it is ${fault.kind}, and only regular files are read`
    case "TooLarge":
      return `it has ${(fault.bytes / 1_048_576).toFixed(1)} MiB, and memory files of more than 1 MiB are not read`
    case "Binary":
      return "it is binary, and memory is text"
    case "Changed":
      return "it changed while it was being read"
    case "LinkCircle":
      return "its links form a cycle"
    case "Unreadable":
      return fault.detail
    case "LeadsOut":
      return `it leads out of ${fault.folders.join(" and ")}`
    case "LeadsToUntrusted":
      return "it leads into a folder that is not trusted"
    case "OtherOwner":
      return `its owner is not the owner of ${fault.folder}, so it was left out`
    case "InvalidExtension":
      return "expected a file of at most 1 MiB"
    case "Untrusted":
      return "its folder is not trusted"
    case "Address":
      return "only files can be imported, not addresses"
    case "NoPath":
      return "it is not a path"
    case "Circle":
      return "it is already being imported, so it imports itself"
    case "TotalTooLarge":
      return `${fault.file} with its imports would have more than 1 MiB`
  }
}

/** A memory file that was left out, or something that it imports. */
export type MemoryProblem = { readonly file: string } & (
  | { readonly _tag: "LeftOut"; readonly fault: MemoryFault }
  | { readonly _tag: "NotImported"; readonly path: string; readonly fault: MemoryFault }
  /** More than `depth` files import one another. */
  | { readonly _tag: "TooDeep"; readonly depth: number }
  /** Only `room` of its characters are read, because of the setting `memory.<setting>`. */
  | {
      readonly _tag: "Cut"
      readonly chars: number
      readonly room: number
      readonly setting: "fileChars" | "totalChars"
    }
)

/** A problem in words, in one line. */
export const memoryProblemText = (problem: MemoryProblem): string => {
  switch (problem._tag) {
    case "LeftOut":
      return `${problem.file}: ${memoryFaultText(problem.fault)}`
    case "NotImported":
      return `${problem.file}: @${problem.path} was not imported: ${memoryFaultText(problem.fault)}`
    case "TooDeep":
      return `${problem.file}: its imports were left out: more than ${problem.depth} files import one another`
    case "Cut":
      return `${problem.file}: has ${problem.chars} characters, of which ${problem.room} are read (memory.${problem.setting})`
  }
}

/** Leaves out repeated problems. A circle of imports is reported once, not for every way into it. */
export const distinctProblems = (problems: ReadonlyArray<MemoryProblem>): ReadonlyArray<MemoryProblem> => {
  const byText = new Map<string, MemoryProblem>()
  const reported = new Set<string>()
  for (const problem of problems) {
    const circle = problem._tag === "NotImported" && problem.fault._tag === "Circle" ? problem.fault.files : []
    if (circle.some((file) => reported.has(file))) continue
    for (const file of circle) reported.add(file)
    byText.set(memoryProblemText(problem), problem)
  }
  return [...byText.values()]
}
